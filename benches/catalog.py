"""Writes a product catalog of any size, the same rows for CSV and Parquet from one seed.

    python benches/catalog.py --rows 2M --out catalog.csv
    python benches/catalog.py --rows 100M --out catalog.parquet --seed 7 --wide --images 3

Six columns: id, title (2 % of the cells need quotes), url, price, updated_at, priority; about 186
bytes of CSV and 185 bytes of sitemap a row. Rows come in chunks of 65,536, each from a random
stream of its own (seed, number of the chunk), so a shorter catalog is the beginning of a longer
one and memory does not grow. Needs numpy and pyarrow.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import vocabulary

CHUNK = 1 << 16
WORDS = 6_000
ZIPF_EXPONENT = 1.1
TITLE_WORDS = 6
SITE = "https://www.shop.example"
#: the newest updated_at; a constant, because the rows must not depend on the current date
NEWEST = 1_795_000_000
TWO_YEARS = 63_072_000
LANGUAGES = ["de", "fr", "es", "it", "nl", "pl", "pt", "sv", "da", "fi", "cs", "hu", "ro", "el"]
MAX_IMAGES, MAX_ALTERNATES = 20, len(LANGUAGES)
ROW_GROUP_CHUNKS = 4

_STAMP = pa.timestamp("us", tz="UTC")
T = TypeVar("T")


@dataclass(frozen=True)
class Shape:
    """The optional columns of the rows."""

    seed: int = 1
    images: int = 0
    alternates: int = 0
    wide: bool = False
    #: the number of rows in 100,000 that repeat the URL of a row of the first chunk
    duplicates: int = 0


class Chunks:
    """Generates the columns of one chunk at a time; safe to call from several threads."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        words = vocabulary.words(WORDS)
        titles = [unquote(word).capitalize() for word in words]
        self._zipf = vocabulary.zipf_table(WORDS, ZIPF_EXPONENT)
        self._departments = pa.array([f"{SITE}/{path}/" for path in vocabulary.DEPARTMENTS])
        self._department_zipf = vocabulary.zipf_table(len(vocabulary.DEPARTMENTS), 0.5)
        # "-word" and " Word": the empty entry at the end means "no further word"
        self._slug_words = pa.array([f"{word}-" for word in words] + [""])
        self._title_words = pa.array([f"{word} " for word in titles] + [""])
        self._queries = pa.array([*vocabulary.QUERIES, ""])
        # The ends of titles, as plain text and in a quoted CSV cell.
        ends = ["Edition", "Model", "Series", '27" Wide', 'Black, Red, "XL"', "Small, 2 Pieces"]
        self._title_ends = pa.array(ends)
        self._csv_ends = pa.array(ends[:3] + [end.replace('"', '""') + '"' for end in ends[3:]])
        self._csv_opens = pa.array(["", "", "", '"', '"', '"'])
        self._prices = pa.array(
            [f"{cents // 100}.{cents % 100:02d}" for cents in range(199, 40_000)]
        )
        self._priorities = pa.array([f"0.{tenth}" for tenth in range(10)] + ["1.0"])
        self._texts = _sentences(titles) if shape.wide else None
        self._first_urls: pa.Array | None = None
        if shape.duplicates:
            self._first_urls = self._make(0)["url"]

    def names(self) -> list[str]:
        """Names of the columns, in their order."""
        names = ["id", "title", "url", "price", "updated_at", "priority"]
        names += ["description"] if self.shape.wide else []
        names += [f"image_{number + 1}" for number in range(self.shape.images)]
        return names + [f"url_{code}" for code in LANGUAGES[: self.shape.alternates]]

    def csv(self, chunk: int, rows: int) -> pa.Buffer:
        """The CSV bytes of the first `rows` rows of a chunk."""
        made = self._make(chunk, csv=True)
        parts: list[pa.Array | str] = []
        for name in self.names():
            column = made[name]
            if name == "id":
                column = pc.cast(column, pa.string())
            elif name == "updated_at":
                column = _rfc3339(column)
            parts += [column, ","]
        parts[-1] = "\n"
        lines = pc.binary_join_element_wise(*parts, "").slice(0, rows)
        return _values(lines)

    def table(self, chunk: int, rows: int) -> pa.Table:
        """The first `rows` rows of a chunk, typed: integers, doubles, timestamps, text."""
        made = self._make(chunk)
        for name in ("price", "priority"):
            made[name] = pc.cast(made[name], pa.float64())
        stamps = pa.array(made["updated_at"] * 1_000_000, pa.int64())
        made["updated_at"] = stamps.view(_STAMP)
        return pa.table({name: made[name] for name in self.names()}).slice(0, rows)

    def _make(self, chunk: int, csv: bool = False) -> dict[str, pa.Array | npt.NDArray[np.int64]]:
        """All columns of a whole chunk; as in a CSV file if `csv` is set."""
        # Raw bits and integer arithmetic only: numpy keeps raw bits stable across its versions.
        bits = np.random.PCG64([self.shape.seed, chunk])

        def draw(below: int | None = None) -> npt.NDArray[np.uint16]:
            raw = bits.random_raw(CHUNK // 4).view(np.uint16)
            return raw if below is None else (raw.astype(np.uint32) * below >> 16).astype(np.uint16)

        rows = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype=np.int64)
        # Ascending with gaps, as a primary key is.
        ids = pa.array(10_000_000 + rows * 11 + draw(11))

        picked = [self._zipf[draw()] for _ in range(7)]
        lengths = draw()
        for position, bound in ((4, 6_000), (5, 14_000), (6, 26_000)):
            picked[position][lengths < bound] = WORDS  # four to seven words
        indices = [pa.array(column) for column in picked]

        query = draw(len(vocabulary.QUERIES))
        query[draw() >= 5_900] = len(vocabulary.QUERIES)  # 9 % of the URLs carry a query string
        slugs = [self._slug_words.take(column) for column in indices]
        url = pc.binary_join_element_wise(
            self._departments.take(pa.array(self._department_zipf[draw()])),
            *slugs,
            pc.cast(ids, pa.string()),
            ".html",
            self._queries.take(pa.array(query)),
            "",
        )
        ending = draw(3)
        ending[draw() < 1_311] += 3  # 2 % of the titles need quotes
        end = pa.array(ending)
        title_parts = [self._title_words.take(column) for column in indices[:TITLE_WORDS]]
        if csv:
            title_parts = [self._csv_opens.take(end), *title_parts, self._csv_ends.take(end)]
        else:
            title_parts.append(self._title_ends.take(end))
        seconds = draw().astype(np.int64) << 16 | draw()
        made: dict[str, pa.Array | npt.NDArray[np.int64]] = {
            "id": ids,
            "title": pc.binary_join_element_wise(*title_parts, ""),
            "price": self._prices.take(pa.array(draw(len(self._prices)))),
            "updated_at": NEWEST - (seconds * TWO_YEARS >> 32),
            "priority": self._priorities.take(pa.array(draw(11))),
        }
        if self._first_urls is not None and chunk:
            repeats = draw().astype(np.int64) * 100_000 >> 16 < self.shape.duplicates
            url = pc.if_else(pa.array(repeats), self._first_urls, url)
        made["url"] = url
        if self._texts is not None:
            made["description"] = self._descriptions(draw, csv)
        hashes = [_hex(bits.random_raw(CHUNK)) for _ in range(self.shape.images)]
        for number, name in enumerate(hashes):
            made[f"image_{number + 1}"] = pc.binary_join_element_wise(
                "https://cdn.shop.example/p/", *slugs[:2], name, f"_{number + 1}.jpg", ""
            )
        for code in LANGUAGES[: self.shape.alternates]:
            made[f"url_{code}"] = pc.replace_substring(
                url, f"{SITE}/", f"{SITE}/{code}/", max_replacements=1
            )
        return made

    def _descriptions(self, draw: Callable[..., npt.NDArray[np.uint16]], csv: bool) -> pa.Array:
        """Four to six sentences; each cell is quoted, one in ten contains a line break."""
        assert self._texts is not None
        count = len(self._texts)
        picked = [pa.array(draw(count - 1)) for _ in range(5)]
        breaks = pc.if_else(pa.array(draw() < 6_554), "\n", " ")
        sentences = [self._texts.take(column) for column in picked]
        parts = [sentences[0], breaks, *sentences[1:]]
        joined = pc.binary_join_element_wise(*parts, "")
        if csv:
            doubled = pc.replace_substring(joined, '"', '""')
            return pc.binary_join_element_wise('"', doubled, '"', "")
        return joined


def _sentences(titles: list[str]) -> pa.Array:
    """Four thousand sentences of product prose, always the same; with commas and quotes."""
    bits = np.random.PCG64(20_260_102)
    table = vocabulary.zipf_table(len(titles), ZIPF_EXPONENT)
    made = []
    for number in range(4_000):
        raw = bits.random_raw(6).view(np.uint16)
        picked = [titles[table[value]].lower() for value in raw[: 8 + int(raw[-1]) % 12]]
        picked[3] = f'"{picked[3]}"' if number % 10 == 0 else picked[3]
        made.append(f"The {' '.join(picked[:5])}, {' '.join(picked[5:])}. ")
    return pa.array(made)


def _rfc3339(seconds: npt.NDArray[np.int64]) -> pa.Array:
    """Seconds since 1970 as YYYY-MM-DDThh:mm:ssZ, column by column (strftime takes 1 us a row)."""
    days, rest = np.divmod(seconds, 86_400)
    oldest = int(days.min())
    calendar = np.arange(oldest, int(days.max()) + 1).astype("datetime64[D]")
    dates = pa.array(np.datetime_as_string(calendar, unit="D"))
    two = np.array([[48 + number // 10, 48 + number % 10] for number in range(60)], dtype=np.uint8)
    clock = np.empty((len(seconds), 10), dtype=np.uint8)
    clock[:, [0, 3, 6, 9]] = np.frombuffer(b"T::Z", dtype=np.uint8)
    clock[:, 1:3] = two[rest // 3600]
    clock[:, 4:6] = two[rest // 60 % 60]
    clock[:, 7:9] = two[rest % 60]
    return pc.binary_join_element_wise(dates.take(pa.array(days - oldest)), _fixed(clock), "")


def _hex(numbers: npt.NDArray[np.uint64]) -> pa.Array:
    """Twelve hexadecimal digits of each number."""
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    shifts = np.arange(0, 48, 4, dtype=np.uint64)
    return _fixed(digits[(numbers[:, None] >> shifts & np.uint64(15)).astype(np.intp)])


def _fixed(cells: npt.NDArray[np.uint8]) -> pa.Array:
    """Rows of bytes as text."""
    rows, width = cells.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    offsets_buffer, data = pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(cells))
    return pa.StringArray.from_buffers(rows, offsets_buffer, data)


def _values(texts: pa.StringArray) -> pa.Buffer:
    """The bytes of all texts, one after another, without a copy: those of the Arrow array."""
    _, offsets, data = texts.buffers()
    edges = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return data.slice(int(edges[0]), int(edges[-1] - edges[0]))


def _spans(rows: int) -> Iterator[tuple[int, int]]:
    """The chunks of a catalog: (number, rows)."""
    for chunk in range(-(-rows // CHUNK)):
        yield chunk, min(CHUNK, rows - chunk * CHUNK)


def write(out: Path, rows: int, shape: Shape, threads: int | None = None) -> None:
    """Writes a catalog of `rows` rows to `out`, a .csv or .parquet file.

    Raises ValueError for another ending of the name and OSError where it cannot be written. The
    file appears under its name when it is whole.
    """
    if out.suffix not in (".csv", ".parquet"):
        raise ValueError(f"--out must end in .csv or .parquet: {out.name}")
    chunks = Chunks(shape)
    part = out.with_name(out.name + ".part")
    workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        if out.suffix == ".csv":
            with part.open("wb") as file:
                file.write((",".join(chunks.names()) + "\n").encode())
                for data in _ordered(pool, workers + 1, chunks.csv, rows):
                    file.write(data)
        else:
            _write_parquet(part, _ordered(pool, workers + 1, chunks.table, rows))
    part.replace(out)


def _ordered(
    pool: ThreadPoolExecutor, ahead: int, make: Callable[[int, int], T], rows: int
) -> Iterator[T]:
    """What `make` returns for each chunk, in order, with at most `ahead` chunks in progress."""
    waiting: deque[Future[T]] = deque()
    for span in _spans(rows):
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
        waiting.append(pool.submit(make, *span))
    while waiting:
        yield waiting.popleft().result()


def _write_parquet(path: Path, tables: Iterator[pa.Table]) -> None:
    """Row groups of 262,144 rows, Snappy, dictionaries for columns with repeated values."""
    writer: pq.ParquetWriter | None = None
    group: list[pa.Table] = []

    def flush() -> None:
        nonlocal writer
        joined = pa.concat_tables(group).combine_chunks()
        if writer is None:
            writer = pq.ParquetWriter(path, joined.schema, use_dictionary=["price", "priority"])
        writer.write_table(joined, row_group_size=len(joined))
        group.clear()

    for table in tables:
        group.append(table)
        if len(group) == ROW_GROUP_CHUNKS:
            flush()
    if group:
        flush()
    if writer is not None:
        writer.close()


def row_count(text: str) -> int:
    """`200k`, `2M` or `2_000_000` as a number of rows; ValueError for anything else or below 1."""
    units = {"k": 1_000, "m": 1_000_000}
    unit = units.get(text[-1:].lower())
    count = int(float(text[:-1]) * unit) if unit else int(text)
    if not 1 <= count <= 500_000_000:
        raise ValueError(f"rows must lie between 1 and 500M: {text}")
    return count


def at_least_one(text: str) -> int:
    """A number of rounds or shards; ValueError below 1."""
    count = int(text)
    if count < 1:
        raise ValueError(f"must be at least 1: {text}")
    return count


def _within(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise ValueError
        return value

    number.__name__ = f"number between {least} and {most}"
    return number


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, required=True, help="1 to 500M; 200k, 2M")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv|FILE.parquet")
    parser.add_argument("--seed", type=_within(0, 2**63), default=1)
    parser.add_argument("--images", type=_within(0, MAX_IMAGES), default=0, metavar="N")
    parser.add_argument("--alternates", type=_within(0, MAX_ALTERNATES), default=0, metavar="N")
    parser.add_argument("--wide", action="store_true", help="a description of about 490 bytes")
    parser.add_argument(
        "--duplicates",
        type=_within(0, 100_000),
        default=0,
        metavar="N",
        help="rows in 100,000 that repeat the URL of an earlier row",
    )
    options = parser.parse_args()
    shape = Shape(
        options.seed, options.images, options.alternates, options.wide, options.duplicates
    )
    start = time.perf_counter()
    try:
        write(options.out, options.rows, shape)
    except (OSError, ValueError) as error:
        sys.exit(f"catalog: {error}")
    seconds = time.perf_counter() - start
    size = options.out.stat().st_size
    print(
        f"{options.out}: {options.rows:,} rows, {size:,} bytes ({size / options.rows:.1f} a row), "
        f"{seconds:.1f} s ({options.rows / seconds / 1e6:.2f} M rows/s)"
    )


if __name__ == "__main__":
    main()
