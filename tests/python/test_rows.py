"""The rows of read and diff in pyarrow, Polars, pandas and DuckDB, any number of times."""

from __future__ import annotations

import csv
import gzip
import http.server
import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import urlset
from urlset.inspect.diff import Changes
from urlset.rows import Rows, _write

pytestmark = pytest.mark.long

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
FILES, URLS = 5, 20_000


def folder(root: Path, first: int = 0, lastmod: str = "2026-01-02") -> Path:
    root.mkdir(parents=True)
    for file in range(FILES):
        rows = "".join(
            f"<url><loc>https://e.example/{number}</loc><lastmod>{lastmod}</lastmod></url>"
            for number in range(first + file * URLS, first + (file + 1) * URLS)
        )
        data = f'<urlset xmlns="{NS}">{rows}</urlset>'.encode()
        (root / f"s{file}.xml.gz").write_bytes(gzip.compress(data, 1))
    return root


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("rows") / "old")


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("rows") / "new", first=10)


@pytest.fixture(params=["read", "diff"])
def rows(request: pytest.FixtureRequest, old: Path, new: Path) -> Iterator[Rows]:
    with urlset.read(new) if request.param == "read" else urlset.diff(old, new) as rows:
        yield rows


def locs(rows: Rows) -> list[str]:
    """By the file that the command writes, and Python's csv."""
    file = io.BytesIO()
    _write(rows, file, "csv")
    text = io.StringIO(file.getvalue().decode())
    return [row["loc"] for row in csv.DictReader(text)]


def numbers(found: list[str]) -> list[int]:
    return sorted(int(loc.rsplit("/", 1)[1]) for loc in found)


def wanted(rows: Rows) -> list[int]:
    last = FILES * URLS
    if isinstance(rows, Changes):
        return [*range(10), *range(last, last + 10)]
    return list(range(10, last + 10))


def test_every_library_twice(rows: Rows) -> None:
    expected = wanted(rows)
    assert numbers(locs(rows)) == expected
    for _ in range(2):
        assert numbers(pa.table(rows)["loc"].to_pylist()) == expected
        assert (
            numbers(pl.scan_arrow_c_stream(rows).select("loc").collect()["loc"].to_list())
            == expected
        )
        assert numbers(pl.DataFrame(rows)["loc"].to_list()) == expected
        assert numbers(pd.DataFrame.from_arrow(rows)["loc"].tolist()) == expected
        assert numbers(rows.read_all()["loc"].to_pylist()) == expected
        batches = [loc for batch in rows for loc in batch["loc"].to_pylist()]
        assert numbers(batches) == expected
        found = duckdb.sql("select loc from rows").fetchall()
        assert numbers([loc for (loc,) in found]) == expected
    assert rows.schema == pa.table(rows).schema == pa.schema(rows)


def test_duckdb_asks_the_same_object_many_things(rows: Rows) -> None:
    expected = wanted(rows)
    one = duckdb.sql("select count(*) n, count(distinct loc) d from rows").fetchall()
    assert one == [(len(expected), len(expected))]
    assert len(duckdb.sql("select loc from rows limit 3").fetchall()) == 3
    both = "select count(*) from rows a join rows b using (loc)"
    assert duckdb.sql(both).fetchall() == [(len(expected),)]
    relation = duckdb.sql("select loc from rows where loc like '%1'")
    ones = [number for number in expected if number % 10 == 1]
    assert numbers([loc for (loc,) in relation.fetchall()]) == ones
    with duckdb.connect() as connection:
        connection.register("them", rows)
        for _ in range(2):
            assert connection.sql("select count(*) from them").fetchall() == [(len(expected),)]


def test_two_readers_side_by_side(rows: Rows) -> None:
    expected = wanted(rows)
    one, other = rows.reader(), rows.reader()
    sides: tuple[list[str], list[str]] = ([], [])
    readers = [(one, sides[0]), (other, sides[1])]
    while readers:
        for reader, found in list(readers):
            try:
                found += reader.read_next_batch()["loc"].to_pylist()
            except StopIteration:
                readers.remove((reader, found))
    assert numbers(sides[0]) == numbers(sides[1]) == expected


def test_many_threads(rows: Rows) -> None:
    with ThreadPoolExecutor(6) as pool:
        tables = list(pool.map(lambda _: pa.table(rows), range(12)))
    for table in tables:
        assert numbers(table["loc"].to_pylist()) == wanted(rows)


def test_the_schema_starts_nothing(rows: Rows) -> None:
    before = threads()
    readers = [rows.reader() for _ in range(20)]
    assert [reader.schema for reader in readers] == [rows.schema] * 20
    assert threads() <= before + 2  # pyarrow may have its own


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_a_reader_that_goes_stops_its_threads(old: Path) -> None:
    rows = urlset.read(old)
    before = threads()
    for _ in range(30):
        rows.reader().read_next_batch()
    for _ in range(100):
        if threads() <= before + 8:
            return
        threading.Event().wait(0.05)
    raise AssertionError(threads())


def test_close_is_told(rows: Rows) -> None:
    begun, waiting = iter(rows), rows.reader()
    next(begun)
    rows.close()
    rows.close()
    for read in (rows.read_all, rows.reader, lambda: next(iter(rows)), lambda: list(begun)):
        with pytest.raises(urlset.InputError, match="closed") as info:
            read()
        assert info.value.code == "read.closed"
    with pytest.raises(urlset.InputError, match="closed"):
        rows.write_parquet(io.BytesIO())
    with pytest.raises(pa.ArrowException, match=r"read\.closed"):
        waiting.read_all()
    with pytest.raises((duckdb.Error, urlset.InputError), match="closed"):
        duckdb.sql("select count(*) from rows").fetchall()
    assert "loc" in rows.schema.names


def test_counts_of_changes(old: Path, new: Path) -> None:
    with urlset.diff(old, new) as changes:
        with pytest.raises(ValueError, match="read all rows first"):
            _ = changes.counts
        for _ in range(2):
            pa.table(changes)
            assert (changes.counts.added, changes.counts.removed) == (10, 10)


@pytest.fixture
def server(new: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(new)))
    threading.Thread(target=site.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{site.server_port}"
    site.shutdown()
    site.server_close()


def test_fetched_files_live_as_long_as_a_reader(server: str) -> None:
    def rows() -> Rows:
        return urlset.read(f"{server}/s0.xml.gz", allow_private=True)

    # the object itself is deleted before its rows are read
    reader = pa.RecordBatchReader.from_stream(rows())
    assert numbers(reader.read_all()["loc"].to_pylist()) == list(range(10, URLS + 10))
    assert numbers(pl.DataFrame(rows())["loc"].to_list()) == list(range(10, URLS + 10))
    kept = rows()
    for _ in range(2):
        assert duckdb.sql("select count(*) from kept").fetchall() == [(URLS,)]
    kept.close()
