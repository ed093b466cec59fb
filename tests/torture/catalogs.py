"""Random catalogs, the files that they are written to, and the expected outcome of their rows.

The model is plain and slow and knows of urlset only what its documents say.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from .case import SITE
from .sitemaps import Entry

FORMATS = ("csv", "csv.gz", "jsonl", "parquet", "arrow")
#: characters that a path may contain unescaped (RFC 3986)
SAFE = "/-._~!$&'()*+,;=:@"
PATHS = ("p", "shoes", "a&b", "it's", "a-b", "grün", "鞋", "a b", "x,y", "~t", "q;r=s", "a(b)")
BAD_LOCS = (
    "",
    "ftp://www.shop.example/a",
    "https://other.example/x",
    "x:",
    SITE + "/" + "l" * 2100,
)
#: a lastmod and the expected text
LASTMODS = {"": "", "2026-01-02": "2026-01-02", "2026-03-04T05:06:07Z": "2026-03-04T05:06:07Z",
            "yesterday": ""}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A row as the input has it, and the loc that is written; None if it must be rejected."""

    url: str
    lastmod: str
    kind: str
    loc: str | None


@dataclass
class Expected:
    """The expected outcome of the rows of a catalog, in their order."""

    entries: list[Entry] = field(default_factory=list)
    #: the number of each rejected row, from 1
    rejected: list[int] = field(default_factory=list)
    filtered: int = 0
    duplicates: int = 0


def make(rng: random.Random, most: int = 4_000) -> list[Row]:
    """Random rows; some are repeated, some are invalid."""
    rows: list[Row] = []
    bad = rng.choice((0.0, 0.0, 0.02, 0.3))
    repeat = rng.choice((0.0, 0.0, 0.05, 0.6))
    for number in range(rng.randint(1, rng.choice((5, 300, most)))):
        if rows and rng.random() < repeat:
            rows.append(rng.choice(rows))
            continue
        kind = rng.choice(("a", "b", "b-c", "Größe", "", "A"))
        lastmod = rng.choice(list(LASTMODS))
        if rng.random() < bad:
            rows.append(Row(rng.choice(BAD_LOCS), lastmod, kind, None))
            continue
        words = rng.choices(PATHS, k=rng.randint(1, 6))
        path = "/".join((*words, f"{number:x}" + "y" * rng.choice((0, 0, 0, 60, 400))))
        loc = f"{SITE}/{quote(path, SAFE)}"
        url = f"{SITE}/{path}" if rng.random() < 0.9 else f"/{path}"
        rows.append(Row(url if rng.random() < 0.95 else f" {url}\t", lastmod, kind, loc))
    if rng.random() < 0.2:  # blocks that repeat
        rows = rows[: most // 8] * rng.randint(2, 8)
    return rows


def expect(rows: list[Row], *, drop: bool, sort: bool, without: str | None) -> Expected:
    """The expected outcome of the rows."""
    result = Expected()
    seen: set[str] = set()
    for number, row in enumerate(rows, 1):
        if without is not None and row.kind == without:
            result.filtered += 1
        elif row.loc is None:
            result.rejected.append(number)
        elif drop and row.loc in seen:
            result.duplicates += 1
        else:
            seen.add(row.loc)
            result.entries.append((row.loc, LASTMODS[row.lastmod]))
    if sort:
        result.entries.sort(key=lambda entry: entry[0].encode())
    return result


def write(rows: list[Row], stem: Path, form: str, rng: random.Random) -> Path:
    """Writes the rows as a file of a format."""
    path = stem.with_name(f"{stem.name}.{form}")
    columns = {
        "url": [row.url for row in rows],
        "lastmod": [row.lastmod for row in rows],
        "kind": [row.kind for row in rows],
    }
    if form in ("parquet", "arrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns]))
        size = rng.choice((1, 17, 1_000, 100_000))
        if form == "parquet":
            pq.write_table(table, path, row_group_size=max(size, len(rows) // 200))
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=max(size, len(rows) // 200))
    elif form == "jsonl":
        lines = (json.dumps(row) for row in _records(columns))
        path.write_text("".join(f"{line}\n" for line in lines))
    else:
        plain = path.with_suffix("") if form == "csv.gz" else path
        with plain.open("w", newline="") as file:
            writer = csv.DictWriter(
                file,
                list(columns),
                quoting=rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
                lineterminator=rng.choice(("\n", "\r\n")),
            )
            writer.writeheader()
            writer.writerows(_records(columns))
        if form == "csv.gz":
            path.write_bytes(gzip.compress(plain.read_bytes(), 1))
            plain.unlink()
    return path


def _records(columns: dict[str, list[str]]) -> list[dict[str, str]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain(path: Path, numbers: range | list[int]) -> list[str]:
    """A catalog of products by their numbers; returns its URLs."""
    urls = [f"{SITE}/product/{number:06d}" for number in numbers]
    path.write_text("url\n" + "".join(f"{url}\n" for url in urls))
    return urls
