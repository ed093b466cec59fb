"""The same rows from every source result in the same bytes."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
from pathlib import Path

import duckdb
import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
import urlset as package
from conftest import SITE, files, read_set, urlset
from urlset import ConfigError, DataError, InputError

pytestmark = pytest.mark.long

N = 5_000


def rows() -> list[dict[str, object]]:
    """Text, as in a CSV file."""
    result: list[dict[str, object]] = []
    for i in range(N):
        result.append(
            {
                "id": i,
                "url": f"{SITE}/p/{i}?a=1&b={'ü' * (i % 3)}" if i % 50 else None,
                "updated_at": f"2024-0{i % 9 + 1}-11 10:{i % 60:02}:{i % 59:02}" if i % 7 else None,
                "priority": (i % 11) / 10 if i % 5 else None,
                "stock": "yes" if i % 3 else "no",
            }
        )
    return result


def table() -> pa.Table:
    data = pa.Table.from_pylist(rows())
    times = pa.array(
        [t and dt.datetime.fromisoformat(str(t)) for t in data["updated_at"].to_pylist()],
        pa.timestamp("us", "UTC"),
    )
    return data.set_column(2, "updated_at", times)


@pytest.fixture(scope="module")
def csv_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("csv") / "c.csv"
    pacsv.write_csv(pa.Table.from_pylist(rows()), path)
    return path


OPTIONS = {"site": SITE, "max_rejects": "10%", "where": ["stock=yes"], "max_urls": 700}


def built(source: object, out: Path, **options: object) -> dict[str, bytes]:
    report = package.build(source, out=out, **OPTIONS, **options)
    assert (report.rows, report.rejected, report.filtered) == (N, 66, 1667)
    return files(out)


@pytest.fixture(scope="module")
def wanted(csv_file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return built(csv_file, tmp_path_factory.mktemp("wanted"))


def _parquet(folder: Path) -> Path:
    pq.write_table(table(), folder / "c.parquet", row_group_size=700)
    return folder / "c.parquet"


def _parts(folder: Path, write) -> None:
    whole = table()
    for part in range(5):
        write(whole.slice(part * 1000, 1000), folder / f"part-{part}")


def _glob(folder: Path) -> str:
    _parts(folder, lambda part, path: pq.write_table(part, f"{path}.parquet"))
    return f"{folder}/part-*.parquet"


def _folder(folder: Path) -> Path:
    _glob(folder)
    (folder / "_SUCCESS").touch()
    (folder / ".hidden").write_text("x")
    return folder


def _csv_glob(folder: Path) -> str:
    data = pa.Table.from_pylist(rows())
    for part in range(5):
        pacsv.write_csv(data.slice(part * 1000, 1000), folder / f"{part}.csv")
    return f"{folder}/*.csv"


def _hive(folder: Path) -> Path:
    whole = table()
    for part, (i, stock) in enumerate((i, i) for i in range(5)):
        (folder / f"part={part}").mkdir()
        pq.write_table(whole.slice(i * 1000, 1000), folder / f"part={stock}" / "x.parquet")
    return folder


def _ipc_file(folder: Path) -> Path:
    with pa.ipc.new_file(folder / "c.arrow", table().schema) as writer:
        writer.write_table(table(), max_chunksize=300)
    return folder / "c.arrow"


def _ipc_stream(folder: Path) -> Path:
    with pa.ipc.new_stream(folder / "c.arrows", table().schema) as writer:
        writer.write_table(table(), max_chunksize=300)
    return folder / "c.arrows"


def _jsonl(folder: Path) -> Path:
    path = folder / "c.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return path


def _jsonl_gz(folder: Path) -> Path:
    import gzip

    path = folder / "c.jsonl.gz"
    path.write_bytes(gzip.compress(_jsonl(folder).read_bytes()))
    return path


def _large(_: Path) -> pa.Table:
    data = table()
    for name in ("url", "stock"):
        at = data.schema.get_field_index(name)
        data = data.set_column(at, name, data[name].cast(pa.large_string()))
    return data


def _view(_: Path) -> pa.Table:
    data = table()
    for name in ("url", "stock"):
        at = data.schema.get_field_index(name)
        data = data.set_column(at, name, data[name].cast(pa.string_view()))
    return data


def _dictionary(_: Path) -> pa.Table:
    data = table()
    for name in ("url", "stock"):
        at = data.schema.get_field_index(name)
        data = data.set_column(at, name, data[name].dictionary_encode())
    return data


def _chunked(_: Path) -> pa.Table:
    whole = table()
    return pa.concat_tables([whole.slice(i, 333) for i in range(0, N, 333)])


def _sliced(_: Path) -> pa.Table:
    whole = pa.concat_tables([table().slice(0, 17), table(), table().slice(9, 20)])
    return whole.combine_chunks().slice(17, N)


def _reader(_: Path) -> pa.RecordBatchReader:
    return table().to_reader(max_chunksize=450)


SOURCES = {
    "parquet": _parquet, "glob": _glob, "folder": _folder, "csv_glob": _csv_glob, "hive": _hive,
    "ipc_file": _ipc_file, "ipc_stream": _ipc_stream, "jsonl": _jsonl, "jsonl_gz": _jsonl_gz,
    "table": lambda _: table(), "batch": lambda _: table().combine_chunks().to_batches()[0],
    "reader": _reader, "dataset": lambda _: pads.dataset(table()),
    "scanner": lambda folder: pads.dataset(_parquet(folder)).scanner(batch_size=123),
    "large": _large, "view": _view, "dictionary": _dictionary, "chunked": _chunked,
    "sliced": _sliced, "polars": lambda _: pl.from_arrow(table()),
    "polars_categories": lambda _: pl.from_arrow(table()).with_columns(
        pl.col("stock").cast(pl.Categorical)
    ),
    "duckdb": lambda folder: duckdb.sql(f"select * from '{_parquet(folder)}'"),
    "pandas": lambda _: table().to_pandas(),
    "list": lambda folder: [table().slice(0, 2000), table().slice(2000, 0), table().slice(2000)],
    "uri": lambda folder: _parquet(folder).as_uri(),
    "csv_uri": lambda folder: Path(_csv_glob(folder)).parent.joinpath("0.csv").as_uri(),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(SOURCES.keys() - {"csv_uri"}))
def test_same_bytes_from(kind: str, tmp_path: Path, wanted: dict[str, bytes]) -> None:
    (tmp_path / "in").mkdir()
    source = SOURCES[kind](tmp_path / "in")
    options = {"lastmod": "updated_at"} if kind == "list" else {}
    assert built(source, tmp_path / "out", **options) == wanted


def test_standard_input(tmp_path: Path, wanted: dict[str, bytes]) -> None:
    common = ("--site", SITE, "--max-rejects", "10%", "--where", "stock=yes", "--max-urls", 700)
    for format, path in (("arrow", _ipc_stream(tmp_path)), ("jsonl", _jsonl(tmp_path))):
        out = tmp_path / format
        args = ("build", "-", "--format", format, "--out", out, *common)
        ended = urlset(*args, input=path.read_bytes())
        assert (ended.status, ended.err) == (0, "")
        assert files(out) == wanted
    ended = urlset("build", "-", "--format", "parquet", "--out", tmp_path / "p", *common, input=b"")
    assert ended.status == 3 and ended.err.count("\n") == 1


def test_a_csv_file_by_uri(tmp_path: Path, out: Path) -> None:
    report = package.build(SOURCES["csv_uri"](tmp_path), out=out, **OPTIONS)
    assert report.rows == 1000


def test_a_remote_file_that_breaks_off_is_not_taken_as_whole(out: Path) -> None:
    class Breaks(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(min(size or 0, 1 << 16))
            if not data:
                raise OSError("connection reset")
            return data

    class Breaking(fsspec.AbstractFileSystem):
        protocol = "breaking"

        def info(self, path: str, **_: object) -> dict[str, object]:
            return {"name": path, "size": 1 << 30, "type": "file"}

        def _open(self, path: str, mode: str = "rb", **_: object) -> io.BytesIO:
            return Breaks(b"url\n" + b"".join(b"%s/%d\n" % (SITE.encode(), i) for i in range(9999)))

    fsspec.register_implementation("breaking", Breaking, clobber=True)
    with pytest.raises(InputError, match=r"^breaking://x\.csv: connection reset$") as caught:
        package.build("breaking://x.csv", site=SITE, out=out)
    assert caught.value.code == "input.unreachable"
    assert not list(out.glob("*.xml*"))


def test_hive_partitions_can_be_asked_for(tmp_path: Path, out: Path) -> None:
    for year, stock in ((2023, "yes"), (2024, "no")):
        folder = tmp_path / "in" / f"year={year}" / f"stock={stock}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"url": [f"{SITE}/{year}"]}), folder / "x.parquet")
    for where, found in (("year=2024", 2024), ("year!=2024", 2023), ("stock=yes", 2023)):
        report = package.build(
            tmp_path / "in", site=SITE, out=out, where=[where], max_shrink="100%"
        )
        assert (report.rows, report.filtered) == (2, 1)
        assert read_set(out) == [{"loc": f"{SITE}/{found}"}]


def entries(data: pa.Table, out: Path, **options: object) -> list[dict[str, str]]:
    options |= {"max_rejects": "50%", "max_shrink": "100%"}
    package.build(data, site=SITE, out=out, **options)
    return [{k: v for k, v in e.items() if k != "loc"} for e in read_set(out)]


def one(column: str, array: pa.Array, out: Path, **options: object) -> list[str | None]:
    urls = [f"{SITE}/{i}" for i in range(len(array))]
    found = entries(pa.table({"url": urls, column: array}), out, **options)
    return [entry.get(column) for entry in found]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps(out: Path, unit: str) -> None:
    whole = [dt.datetime(2024, 7, 1, 12, 30, 15), None, dt.datetime(1969, 12, 31, 23, 59, 58)]
    for zone in (None, "UTC", "America/New_York"):
        array = pa.array(whole, pa.timestamp(unit, zone))
        assert one("lastmod", array, out) == [
            "2024-07-01T12:30:15Z", None, "1969-12-31T23:59:58Z",
        ]  # fmt: skip
    array = pa.array(whole, pa.timestamp(unit))
    assert one("lastmod", array, out, timezone="Europe/Berlin")[0] == "2024-07-01T10:30:15Z"
    if unit != "s":  # the fraction is cut, also before 1970
        part = pa.array([-1, 1], pa.int64()).cast(pa.timestamp(unit))
        assert one("lastmod", part, out) == ["1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"]


def test_dates(out: Path) -> None:
    dates = [dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]
    for kind in (pa.date32(), pa.date64()):
        assert one("lastmod", pa.array(dates, kind), out) == [
            "2024-02-29", None, "0001-01-01", "9999-12-31",
        ]  # fmt: skip
    extremes = pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())
    assert one("lastmod", extremes, out) == [None, None]
    extremes = pa.array([2**63 - 1, -(2**63)], pa.int64()).cast(pa.timestamp("s"))
    assert one("lastmod", extremes, out) == [None, None]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.float64(), pa.string()])
def test_integers_since_1970_only_when_asked_for(out: Path, kind: pa.DataType) -> None:
    seconds = pa.array([1_700_000_000, None], pa.int64()).cast(kind)
    assert one("lastmod", seconds, out) == [None, None]
    said = ["2023-11-14T22:13:20Z", None]
    assert one("lastmod", seconds, out, lastmod_epoch="seconds") == said
    millis = pa.array([1_700_000_000_999, None], pa.int64()).cast(kind)
    assert one("lastmod", millis, out, lastmod_epoch="milliseconds") == said


def test_numbers_as_priority(out: Path) -> None:
    d = decimal.Decimal
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        array = pa.array([0.5, 1, 0, 0.25, -0.0, None, 1.5, -0.5, float("nan"), float("inf")])
        assert one("priority", array.cast(kind), out) == [
            "0.5", "1.0", "0.0", "0.3", "0.0", None, None, None, None, None,
        ]  # fmt: skip
    assert one("priority", pa.array([0.15, 0.7], pa.float32()), out) == ["0.2", "0.7"]
    for array in (
        pa.array([d("0.50"), d("0.15"), d("1.00"), d("1.01"), None], pa.decimal128(5, 2)),
        pa.array([d("0.50"), d("0.15"), d("1.00"), d("1.01"), None], pa.decimal256(50, 2)),
    ):
        assert one("priority", array, out) == ["0.5", "0.2", "1.0", None, None]
    for kind in (pa.int8(), pa.int64(), pa.uint8(), pa.uint64()):
        assert one("priority", pa.array([0, 1, 2, None], kind), out) == ["0.0", "1.0", None, None]
    assert one("priority", pa.array([True, False]), out) == [None, None]


def test_columns_of_nothing(out: Path) -> None:
    assert one("lastmod", pa.nulls(3), out) == [None] * 3
    empty = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], "str"))
    assert one("lastmod", empty, out) == [None, None]
    inside = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 0], pa.int32()), pa.array(["2024-01-01", None])
    )
    assert one("lastmod", inside, out) == ["2024-01-01", None, None, "2024-01-01"]
    times = pa.array([0, None, 86_400], pa.int64()).cast(pa.timestamp("s")).dictionary_encode()
    assert one("lastmod", times, out)[2] == "1970-01-02T00:00:00Z"


def test_no_row_at_all(out: Path) -> None:
    for source in (table().slice(0, 0), table().slice(0, 0).to_reader()):
        with pytest.raises(DataError) as info:
            package.build(source, site=SITE, out=out)
        assert info.value.code == "rows.none"


@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"x"]), pa.array([b"x"], pa.large_binary()), pa.array([["x"]]),
        pa.array([{"a": "x"}]), pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
        pa.array([dt.timedelta(1)]), pa.array([dt.time(1)]),
        pa.RunEndEncodedArray.from_arrays([1], ["x"]),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
def test_a_column_of_a_type_that_is_no_field(out: Path, array: pa.Array) -> None:
    for column in ("url", "lastmod"):
        data = {"url": [f"{SITE}/1"], column: array}
        with pytest.raises((ConfigError, InputError, DataError)) as info:
            package.build(pa.table(data), site=SITE, out=out)
            raise DataError("it was taken", code="none")
        assert "\n" not in str(info.value)
        assert info.value.code == "column.type", info.value


def test_a_producer_that_fails_in_the_middle(out: Path) -> None:
    def batches():
        yield table().to_batches()[0]
        raise RuntimeError("the cursor\nwas closed")

    reader = pa.RecordBatchReader.from_batches(table().schema, batches())
    with pytest.raises(InputError) as info:
        package.build(reader, site=SITE, out=out, max_rejects="50%")
    assert "\n" not in str(info.value) and "the cursor" in str(info.value)
    assert info.value.code == "input.damaged"
    assert not list(out.glob("*.xml*"))


@pytest.mark.parametrize("source", [pa.chunked_array([["x"]]), object(), 5, [b"x"], b"url", None])
def test_what_is_no_source(out: Path, source: object) -> None:
    with pytest.raises((ConfigError, InputError)) as info:
        package.build(source, site=SITE, out=out)
    assert "\n" not in str(info.value)


def test_a_lazy_frame_says_what_to_do(out: Path) -> None:
    frame = pl.LazyFrame({"url": [f"{SITE}/1"]})
    if hasattr(frame, "__arrow_c_stream__"):
        pytest.skip("this Polars gives rows from it")
    with pytest.raises(ConfigError, match="collect"):
        package.build(frame, site=SITE, out=out)


@pytest.mark.parametrize("make", [_parquet, _ipc_file, _ipc_stream, _jsonl])
def test_files_cut_short(tmp_path: Path, out: Path, make) -> None:
    path = make(tmp_path)
    whole = path.read_bytes()
    for cut in (3, 9, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:-cut])
        ended = urlset("build", path, "--site", SITE, "--out", out, "--max-rejects", "10%")
        assert (ended.status, ended.err.count("\n")) == (3, 1), (cut, ended)
        assert not list(out.glob("*.xml*"))
    path.write_bytes(b"")
    ended = urlset("build", path, "--site", SITE, "--out", out)
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended


def test_json_lines_of_dates_and_mixed_numbers(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [
        {"loc": f"{SITE}/{i}", "lastmod": "2024-01-01", "priority": 1 if i < 200_000 else 0.5,
         "price": 1 if i < 200_000 else "none", **({"late": 1} if i > 200_000 else {})}
        for i in range(220_000)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert path.stat().st_size > 8 << 20
    package.build(path, site=SITE, out=out)
    found = read_set(out)
    assert found[0] == {"loc": f"{SITE}/0", "lastmod": "2024-01-01", "priority": "1.0"}
    assert found[-1]["priority"] == "0.5" and len(found) == 220_000


def test_no_match_and_mixed_folders(tmp_path: Path, out: Path) -> None:
    with pytest.raises(InputError, match="no file matches"):
        package.build(f"{tmp_path}/*.parquet", site=SITE, out=out)
    with pytest.raises(InputError, match="contains no file"):
        package.build(tmp_path, site=SITE, out=out)
    _parquet(tmp_path)
    _jsonl(tmp_path)
    with pytest.raises(InputError, match="several formats"):
        package.build(tmp_path, site=SITE, out=out)
    assert not out.exists()


def test_a_json_array_is_told_from_json_lines(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"url": "' + SITE + '/1"}\n{"url": "' + SITE + '/2"}\n')
    assert package.build(path, site=SITE, out=out).urls == 2
    path.write_text('\n[{"url": "' + SITE + '/1"}]')
    with pytest.raises(InputError, match=r"one JSON array.*jq -c") as caught:
        package.build(path, site=SITE, out=out)
    assert caught.value.code == "input.format"


def test_a_column_with_a_dot_in_parquet(tmp_path: Path, out: Path) -> None:
    pq.write_table(pa.table({"a.b": [f"{SITE}/1"], "a": [{"b": "x"}]}), tmp_path / "c.parquet")
    package.build(tmp_path / "c.parquet", site=SITE, out=out, loc="a.b")
    assert read_set(out) == [{"loc": f"{SITE}/1"}]


def test_pandas_with_gaps(out: Path) -> None:
    frame = pd.DataFrame({"url": [f"{SITE}/1", f"{SITE}/2"], "lastmod": [1_700_000_000, None]})
    package.build(frame, site=SITE, out=out, lastmod_epoch="seconds")
    assert [e.get("lastmod") for e in read_set(out)] == ["2023-11-14T22:13:20Z", None]


@pytest.mark.parametrize("where", ["kind=b", "n=7", "live=true", "kind=none", "kind!=b"])
def test_where_skips_row_groups_and_rows_keep_their_numbers(tmp_path: Path, where: str) -> None:
    """Row groups that a condition leaves out are not read; the report is that of a full read."""
    count = 1_000
    table = pa.table(
        {
            "url": [f"{SITE}/{i}" if i % 97 else "ftp://bad.example/x" for i in range(count)],
            "kind": ["abc"[i * 3 // count] for i in range(count)],
            "n": [i // 100 for i in range(count)],
            "live": [400 <= i < 650 for i in range(count)],
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    options = {"site": SITE, "where": [where], "max_rejects": 100}
    reports, rejects = [], []
    for source in (tmp_path / "rows.parquet", table):
        out = tmp_path / f"out{len(reports)}"
        try:
            report = package.build(source, out=out, **options)
            shards = [shard.digest for shard in report.shards]
            reports.append((report.rows, report.urls, report.filtered, report.rejected, shards))
        except DataError as error:
            reports.append(error.code)
        path = out / ".urlset/rejects.csv"
        lines = path.read_text().splitlines() if path.exists() else []
        rejects.append([line.split(",")[1] for line in lines[1:]])
    assert reports[0] == reports[1]
    assert rejects[0] == rejects[1]
    assert where in ("kind=none",) or rejects[0]
