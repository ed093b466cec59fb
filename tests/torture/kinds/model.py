"""Random catalogs and options: every row must be where a plain model places it, in every format."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

from .. import catalogs
from ..case import SITE, Case
from ..sitemaps import entries, read_set, shards

WEIGHT = 4


def run(case: Case) -> None:
    rng = case.rng
    rows = catalogs.make(rng)
    drop, sort = rng.random() < 0.4, rng.random() < 0.3
    without = rng.choice((None, None, None, "b"))
    expected = catalogs.expect(rows, drop=drop, sort=sort, without=without)
    layout, split = rng.choice(("packed", "stable")), rng.random() < 0.25
    most = rng.choice((1, 7, 100, 1_000, 50_000))
    if split or len(rows) > 400 * most:
        most = max(most, 50)
    options: list[object] = [
        "--site", SITE, "--layout", layout, "--max-urls", most, "--max-rejects", "100%",
        "--level", rng.choice(("fast", "default", "best")),
        "--duplicates", "drop" if drop else "keep",
    ]  # fmt: skip
    options += ["--sort"] if sort else []
    options += ["--where", f"kind!={without}"] if without is not None else []
    options += ["--no-gzip"] if rng.random() < 0.2 else []
    options += ["--verify-staged"] if rng.random() < 0.5 else []
    options += ["--split-by", "kind"] if split else []
    options += ["--split-index", rng.choice(("each", "one"))] if split else []
    options += ["--max-sitemaps", rng.choice((1, 3, 1_000))] if rng.random() < 0.2 else []
    form = rng.choice(catalogs.FORMATS)
    source = catalogs.write(rows, case.folder / "c", form, rng)
    out = case.folder / "out"
    ended = case.urlset(
        "build", source, "--out", out, "--json", "-", "--threads", rng.choice((1, 2, 7, 16)),
        *options, statuses=(0, 1),
    )  # fmt: skip
    if not expected.entries:
        case.check(ended.status == 1 and "[rows.none]" in ended.err, ended)
        return
    case.check(ended.status == 0, ended)
    report = json.loads(ended.out)
    counts = {key: report[key] for key in ("rows", "urls", "rejected", "filtered", "duplicates")}
    wanted = {
        "rows": len(rows), "urls": len(expected.entries), "rejected": len(expected.rejected),
        "filtered": expected.filtered, "duplicates": expected.duplicates,
    }  # fmt: skip
    case.check(counts == wanted, f"{counts}, the model says {wanted}")
    _check_entries(case, out, expected.entries, layout, split, most)
    _check_rejects(case, out, expected.rejected)
    # the same rows in another format: the same files
    other = catalogs.write(rows, case.folder / "d", rng.choice(catalogs.FORMATS), rng)
    again = case.folder / "again"
    case.urlset("build", other, "--out", again, "--threads", 3, *options, statuses=(0,))
    for path in (path for path in out.rglob("*") if path.is_file() and ".urlset" not in path.parts):
        twin = again / path.relative_to(out)
        case.check(
            twin.exists() and twin.read_bytes() == path.read_bytes(),
            f"{path.name} is another from {other.name} than from {source.name}",
        )


def _check_entries(
    case: Case, out: Path, wanted: list[tuple[str, str]], layout: str, split: bool, most: int
) -> None:
    if layout == "packed" and not split:
        case.check(read_set(out, case.rng) == wanted, "the entries are not those of the model")
        return
    # equal shards of the stable layout share a file
    files = {name: entries(out / name, case.rng) for name in shards(out)}
    found = [entry for shard in files.values() for entry in shard]
    if layout == "stable":
        case.check(set(found) == set(wanted), "the entries are not those of the model")
        case.check(not Counter(found) - Counter(wanted), "entries are there too often")
    else:
        case.check(Counter(found) == Counter(wanted), "the entries are not those of the model")
    case.check(all(len(shard) <= most for shard in files.values()), "a shard is too long")


def _check_rejects(case: Case, out: Path, wanted: list[int]) -> None:
    path = out / ".urlset/rejects.csv"
    if not wanted:
        case.check(not path.exists(), "there is a reject file")
        return
    csv.field_size_limit(1 << 24)
    with path.open(newline="") as file:
        rows = [int(row["row"]) for row in csv.DictReader(file)]
    case.check(rows == wanted, f"rejects {rows[:20]}, the model says {wanted[:20]}")
