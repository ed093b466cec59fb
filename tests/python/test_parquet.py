"""Parquet files have the rows that pyarrow reads, and damaged ones end with an error."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urlset as package
from conftest import SITE, files, read_set, urlset
from urlset import ConfigError, DataError, InputError

pytestmark = pytest.mark.long

N = 3_000


def table() -> pa.Table:
    """A column of every type that may be a part of a URL, with nulls."""
    when = [dt.datetime(2024, 1 + i % 12, 1 + i % 28, i % 24, i % 60) for i in range(N)]
    columns = {
        "id": pa.array(range(N)),
        "url": pa.array([f"{SITE}/p/{i}?q={'ü' * (i % 5)}" for i in range(N)]),
        "large": pa.array([f"l{i % 70}" for i in range(N)], pa.large_string()),
        "view": pa.array([f"v{'x' * (i % 30)}" for i in range(N)], pa.string_view()),
        "coded": pa.array([f"c{i % 9}" for i in range(N)]).dictionary_encode(),
        "i8": pa.array([i % 100 - 50 for i in range(N)], pa.int8()),
        "u16": pa.array([i % 60_000 for i in range(N)], pa.uint16()),
        "u64": pa.array([2**64 - 1 - i for i in range(N)], pa.uint64()),
        "f32": pa.array([i / 4 for i in range(N)], pa.float32()),
        "f64": pa.array([i / 8 for i in range(N)]),
        "price": pa.array([decimal.Decimal(i).scaleb(-2) for i in range(N)], pa.decimal128(12, 2)),
        "yes": pa.array([i % 3 == 0 for i in range(N)]),
        "day": pa.array([d.date() for d in when]),
        **{
            f"{unit}{'_utc' * bool(zone)}": pa.array(when, pa.timestamp(unit, zone))
            for unit in ("s", "ms", "us", "ns")
            for zone in (None, "UTC")
        },
    }
    data = pa.table(columns)
    for i, name in enumerate(data.column_names[2:], 2):
        holes = pa.array([row % (i + 3) == 0 for row in range(N)])
        column = data[name].cast(pa.string()) if name == "view" else data[name]
        gaps = pa.compute.if_else(holes, pa.scalar(None, column.type), column)
        data = data.set_column(i, name, gaps)
    return data


def built(source: object, out: Path, **options: object) -> tuple[object, dict[str, bytes]]:
    report = package.build(source, site=SITE, out=out, max_urls=700, **options)  # type: ignore[arg-type]
    numbers = (report.rows, report.urls, report.rejected, report.filtered)
    return numbers, files(out)


def all_of(data: pa.Table) -> str:
    names = [name for name in data.column_names if name not in ("url", "images")]
    return f"{SITE}/" + "/".join("{" + name + "}" for name in names)


WRITERS: dict[str, dict[str, object]] = {
    **{name: {"compression": name} for name in ("none", "snappy", "gzip", "brotli", "lz4", "zstd")},
    "pages of version 2": {"data_page_version": "2.0", "data_page_size": 500},
    "small pages": {"data_page_size": 300, "write_batch_size": 7},
    "no dictionaries": {"use_dictionary": False},
    "no statistics": {"write_statistics": False},
    "page index": {"write_page_index": True},
    "deltas": {
        "use_dictionary": False,
        "column_encoding": {"url": "DELTA_BYTE_ARRAY", "large": "DELTA_LENGTH_BYTE_ARRAY",
                            "id": "DELTA_BINARY_PACKED", "f64": "BYTE_STREAM_SPLIT"},
    },
    "types of Parquet alone": {"store_schema": False},
    "groups of one row too many": {"row_group_size": N - 1},
    "small groups": {"row_group_size": 13},
    "checksums": {"write_page_checksum": True},
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_as_pyarrow_reads_it(writer: str, tmp_path: Path) -> None:
    data = table()
    pq.write_table(data, tmp_path / "c.parquet", **WRITERS[writer])
    options = {"loc_template": all_of(data), "lastmod": "us_utc", "where": ["yes!=true", "u16!=9"]}
    options["max_rejects"] = N  # a null in a template
    # the types that pyarrow finds in the file, not those that were written
    wanted = built(pq.read_table(tmp_path / "c.parquet"), tmp_path / "wanted", **options)
    assert built(tmp_path / "c.parquet", tmp_path / "out", **options) == wanted
    assert wanted[0][1] > 100  # type: ignore[index]


def test_times_of_old_writers(tmp_path: Path) -> None:
    data = table().select(["url", "ns"])
    pq.write_table(data, tmp_path / "c.parquet", use_deprecated_int96_timestamps=True)
    wanted = built(data, tmp_path / "wanted", lastmod="ns")
    assert built(tmp_path / "c.parquet", tmp_path / "out", lastmod="ns") == wanted


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed", "struct", "map"])
def test_nested_columns(kind: str, tmp_path: Path) -> None:
    one = [f"{SITE}/{i}.jpg" for i in range(N)]
    urls = pa.array([f"{SITE}/{i}" for i in range(N)])
    if kind in ("list", "large_list", "fixed"):
        type = {
            "list": pa.list_(pa.string()),
            "large_list": pa.large_list(pa.string()),
            "fixed": pa.list_(pa.string(), 2),
        }[kind]
        many = [
            [image, image + "?2"] if i % 4 or kind == "fixed" else [] for i, image in enumerate(one)
        ]
        data = pa.table({"url": urls, "x": pa.array(many, type)})
        options: dict[str, object] = {"image": ["x"]}
    elif kind == "struct":
        struct = [
            {"content_loc": u, "thumbnail_loc": u, "title": "t", "description": "d"} for u in one
        ]
        data = pa.table({"url": urls, "x": struct})
        options = {"video": ["x"]}
    else:
        languages = pa.array(
            [[("de", u), ("fr", u + "f")] for u in one], pa.map_(pa.string(), pa.string())
        )
        data = pa.table({"url": urls, "x": languages})
        options = {"alternate": ["x"], "lang": "en"}
    pq.write_table(data, tmp_path / "c.parquet", row_group_size=1_001)
    wanted = built(data, tmp_path / "wanted", **options)
    assert built(tmp_path / "c.parquet", tmp_path / "out", **options) == wanted
    assert b".jpg" in b"".join(wanted[1].values())


def _by_duckdb(path: Path) -> None:
    duckdb.sql(f"copy (select '{SITE}/' || i as url, date '2024-01-01' + i::int as lastmod"
               f" from range({N}) t(i)) to '{path}' (row_group_size 2048)")  # fmt: skip


def _by_polars(path: Path) -> None:
    days = [dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(N)]
    pl.DataFrame({"url": [f"{SITE}/{i}" for i in range(N)], "lastmod": days}).write_parquet(path)


@pytest.mark.parametrize("write", [_by_duckdb, _by_polars])
def test_other_writers(write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path / "c.parquet")
    package.build(tmp_path / "c.parquet", site=SITE, out=tmp_path / "out")
    found = read_set(tmp_path / "out")
    first = dt.date(2024, 1, 1)
    assert found == [
        {"loc": f"{SITE}/{i}", "lastmod": str(first + dt.timedelta(i))} for i in range(N)
    ]


def test_files_whose_columns_differ(tmp_path: Path, out: Path) -> None:
    """Each file is read by its own columns, and its rows are counted from 1."""
    parts = tmp_path / "parts"
    parts.mkdir()
    pq.write_table(pa.table({"url": [f"{SITE}/1"], "priority": [1]}), parts / "a.parquet")
    second = {"priority": [0.5, 0.5], "x": [b"", b""], "url": ["ftp://no.example/", f"{SITE}/2"]}
    pq.write_table(pa.table(second), parts / "b.parquet")
    pq.write_table(
        pa.table({"url": pa.array([f"{SITE}/3"], pa.large_string())}), parts / "c.parquet"
    )
    package.build(parts, site=SITE, out=out, max_rejects=1)
    assert [(e["loc"][-1], e.get("priority")) for e in read_set(out)] == [
        ("1", "1.0"), ("2", "0.5"), ("3", None),
    ]  # fmt: skip
    [line] = (out / ".urlset/rejects.csv").read_text().splitlines()[1:]
    assert line.startswith(f'"{parts}/b.parquet",1,"url",loc.scheme,')
    with pytest.raises(ConfigError, match=r"c\.parquet: .*priority"):
        package.build(parts, site=SITE, out=out, priority="priority", max_rejects=1)


@pytest.mark.parametrize("group", [7_001, 131_072, 200_000, 1_000_000])
def test_threads_decode_ahead(group: int, tmp_path: Path) -> None:
    """Many cores decode one file at several positions, and the rows keep their order."""
    count = 600_000
    data = pa.table(
        {
            "url": pa.array([f"{SITE}/{i}" for i in range(count)]),
            "kind": pa.array(["abcd"[i * 4 // count] for i in range(count)]),
        }
    )
    pq.write_table(data, tmp_path / "c.parquet", row_group_size=group)
    report = package.build(
        tmp_path / "c.parquet",
        site=SITE,
        out=tmp_path / "out",
        threads=20,
        where=["kind!=b", "kind!=c"],
    )
    assert (report.rows, report.filtered) == (count, count // 2)
    wanted = [*range(count // 4), *range(count * 3 // 4, count)]
    assert [e["loc"] for e in read_set(tmp_path / "out")] == [f"{SITE}/{i}" for i in wanted]
    report = package.build(
        tmp_path / "c.parquet", site=SITE, out=tmp_path / "one", threads=20, where=["kind=c"]
    )
    assert (report.rows, report.filtered) == (count, count * 3 // 4)
    wanted = [*range(count // 2, count * 3 // 4)]
    assert [e["loc"] for e in read_set(tmp_path / "one")] == [f"{SITE}/{i}" for i in wanted]


def test_no_rows_and_no_groups(tmp_path: Path, out: Path) -> None:
    empty = pa.table({"url": pa.array([], pa.string())})
    pq.write_table(empty, tmp_path / "a.parquet")
    with pq.ParquetWriter(tmp_path / "b.parquet", empty.schema) as writer:
        writer.write_table(empty)
        writer.write_table(pa.table({"url": [f"{SITE}/1"]}))
        writer.write_table(empty)
    report = package.build([tmp_path / "a.parquet", tmp_path / "b.parquet"], site=SITE, out=out)
    assert (report.rows, report.urls) == (1, 1)


def test_a_pipe_is_no_parquet_file(tmp_path: Path, out: Path) -> None:
    os.mkfifo(tmp_path / "c.parquet")
    ended = urlset("build", tmp_path / "c.parquet", "--site", SITE, "--out", out)
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert "its metadata is at the end" in ended.err


def damaged(seed: int, tmp_path: Path) -> str:
    """Builds from a file with some of its bytes changed; returns the outcome."""
    dice = random.Random(seed)
    threads = dice.choice([2, 20])
    data = table().slice(0, 400)
    images = [[f"{SITE}/{i}.jpg"] * (i % 3) for i in range(400)]
    data = data.append_column("images", pa.array(images))
    writer = dict(WRITERS[dice.choice(list(WRITERS))])
    writer["row_group_size"] = dice.choice([50, 400])
    path, out = tmp_path / f"{seed}.parquet", tmp_path / str(seed)
    pq.write_table(data, path, **writer)
    whole = bytearray(path.read_bytes())
    directory = int.from_bytes(whole[-8:-4], "little") + 8
    # in pages and in the directory, although the directory is smaller
    start = dice.choice([0, len(whole) - directory])
    for _ in range(dice.choice([1, 1, 3, 20])):
        at = dice.randrange(start, len(whole))
        whole[at] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, whole[at] ^ (1 << dice.randrange(8))])
    path.write_bytes(whole)
    try:
        report = package.build(
            path, site=SITE, out=out, loc_template=all_of(table()), image=["images"],
            where=["yes=true", "i8!=3", "large!=l2"], max_rejects=400, threads=threads,
        )  # fmt: skip
    except (InputError, ConfigError, DataError) as error:
        assert not list(out.glob("*.xml*"))
        return error.code
    finally:
        path.unlink()
    assert report.rows == 400  # all of them, with any values, or an error
    return "built"


def _many(first: int, count: int, tmp_path: Path) -> None:
    codes = [damaged(seed, tmp_path) for seed in range(first, first + count)]
    # each of these codes is documented; no other outcome is allowed, and no thread may end
    assert set(codes) <= {
        "built", "input.damaged", "column.missing", "column.type",
    }, set(codes)  # fmt: skip
    assert codes.count("built") > count // 20
    assert codes.count("input.damaged") > count // 20


def test_damaged_bytes(tmp_path: Path) -> None:
    _many(0, 250, tmp_path)


@pytest.mark.slow
def test_damaged_bytes_many_times(tmp_path: Path) -> None:
    _many(1_000, 4_000, tmp_path)
