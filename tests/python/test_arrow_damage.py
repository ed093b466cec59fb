"""Damaged Arrow input ends with an error: no hang, no crash, no read out of bounds."""

from __future__ import annotations

import collections
import ctypes
import io
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset as pads
import pyarrow.feather
import pytest
import urlset as package
from conftest import SITE, read_set
from urlset import ConfigError

pytestmark = pytest.mark.long

CASES = Path(__file__).with_name("arrow_cases.py")


def cases(first: int, count: int, folder: Path) -> collections.Counter[str]:
    """Reads damaged files in a separate process; returns the outcomes."""
    command = [sys.executable, str(CASES), str(first), str(count), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30 + count)
    ends = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, ends[-1:], done.stderr[-2000:])
    assert len(ends) == count
    wrong = [end for end in ends if " wrong" in end]
    assert not wrong, wrong[:5]
    assert not done.stderr, done.stderr[-2000:]
    return collections.Counter(end.split(" ", 1)[1] for end in ends)


@pytest.mark.parametrize("first", range(0, 800, 200))
def test_damaged_files(first: int, tmp_path: Path) -> None:
    found = cases(first, 200, tmp_path)
    # no other outcome occurs, and each of these does
    assert set(found) <= {
        "built", "pyarrow", "InputError input.damaged", "InputError input.truncated",
        "InputError input.format", "InputError input.empty", "ConfigError column.missing",
        "ConfigError column.type", "ConfigError column.ambiguous",
    }, found  # fmt: skip
    assert found["built"] > 5 and found["InputError input.damaged"] > 50, found


@pytest.mark.slow
def test_damaged_files_many_times(tmp_path: Path) -> None:
    cases(10_000, 6_000, tmp_path)


def error_of(source: object, out: Path, **options: object) -> package.InputError:
    with pytest.raises(package.InputError) as info:
        package.build(source, site=SITE, out=out, **options)  # type: ignore[arg-type]
    assert info.value.code == "input.damaged"
    assert not list(out.glob("*.xml*"))
    return info.value


class Passed:
    """An object with only an Arrow stream: its library is unknown."""

    def __init__(self, source: object) -> None:
        self.source = source

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.source.__arrow_c_stream__()  # type: ignore[attr-defined]


def batch(type: pa.DataType, *values: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, type)], ["url"])


FIRST = batch(pa.string(), "/a", "/b", "/c")
OTHERS = {
    "large_string": batch(pa.large_string(), "/d"),
    "string_view": batch(pa.string_view(), "/d"),
    "int64": batch(pa.int64(), 4),
    "binary": batch(pa.binary(), b"/d"),
    "dictionary": pa.RecordBatch.from_arrays([pa.array(["/d"]).dictionary_encode()], ["url"]),
    "list": batch(pa.list_(pa.string()), ["/d"]),
    "more columns": pa.RecordBatch.from_pydict({"url": ["/d"], "more": ["x"]}),
    "no columns": pa.RecordBatch.from_arrays([], names=[]),
    "another name": pa.RecordBatch.from_pydict({"more": ["/d"]}),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_batch_of_another_schema(other: str, out: Path) -> None:
    batches = iter([FIRST, OTHERS[other], FIRST])
    error = error_of(pa.RecordBatchReader.from_batches(FIRST.schema, batches), out)
    assert "batch 2" in str(error) and "RecordBatchReader" in str(error)


@pytest.mark.parametrize("other", ["string_view", "int64", "dictionary", "more columns", "list"])
def test_a_batch_of_another_schema_from_anybody(other: str, out: Path) -> None:
    """The C interface has no types, but the numbers of buffers and children."""
    batches = iter([FIRST, OTHERS[other], FIRST])
    reader = Passed(pa.RecordBatchReader.from_batches(FIRST.schema, batches))
    assert "batch 2 cannot be read" in str(error_of(reader, out))


def test_large_text_under_the_schema_of_text_from_anybody(out: Path) -> None:
    long = batch(pa.large_string(), *(f"/{n}" for n in range(10)))
    reader = pa.RecordBatchReader.from_batches(FIRST.schema, iter([FIRST, long]))
    assert "batch 2 cannot be read" in str(error_of(Passed(reader), out))


def test_schemas_that_differ_in_what_is_of_no_account(out: Path) -> None:
    field = pa.field("url", pa.string(), nullable=False, metadata={"a": "b"})
    other = pa.RecordBatch.from_arrays([pa.array(["/d"])], schema=pa.schema([field]))
    reader = pa.RecordBatchReader.from_batches(FIRST.schema, iter([FIRST, other]))
    assert package.build(reader, site=SITE, out=out).urls == 4


def text_array(*offsets: int, data: bytes = b"/a/b/c", width: int = 4) -> pa.Array:
    """Text with arbitrary offsets, in memory with room on both sides."""
    kind = pa.string() if width == 4 else pa.large_string()
    packed = b"".join(offset.to_bytes(width, "little", signed=True) for offset in offsets)
    # pyarrow looks at the first and the last offset only
    buffers = [None, pa.py_buffer(packed), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


@pytest.mark.parametrize("wrap", [lambda table: table, Passed], ids=["pyarrow", "anybody"])
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize(
    ("offsets", "data"),
    [
        ((0, 5, 2, 6), b"/a/b/c"),
        ((0, 2, 1 << 20, 6), b"/a/b/c"),
        ((0, -2, 4, 6), b"/a/b/c"),
        ((0, 2, 4, 6), b"/a/b/\xff"),
        ((0, 2, 5, 6), b"/a/\xc3\xa4\xc3"),
        ((0, 4, 5, 6), "/a/ä/".encode()),
    ],
)
def test_text_that_is_none(
    wrap: Callable[[object], object], width: int, offsets: tuple[int, ...], data: bytes, out: Path
) -> None:
    good = pa.array(["/x"], pa.string() if width == 4 else pa.large_string())
    array = text_array(*offsets, data=data, width=width)
    source = pa.table({"url": pa.chunked_array([good, array])})
    assert re.search("batch 2", str(error_of(wrap(source), out)))


@pytest.mark.parametrize("wrap", [lambda table: table, Passed], ids=["pyarrow", "anybody"])
def test_keys_beyond_their_dictionary(wrap: Callable[[object], object], out: Path) -> None:
    for keys in ([0, 1, 2], [0, -1, 1], [0, 1, 100_000]):
        array = pa.DictionaryArray.from_arrays(pa.array(keys, pa.int32()), ["/a", "/b"], safe=False)
        assert "batch 1" in str(error_of(wrap(pa.table({"url": array})), out))
    # null values may have any key
    keys = pa.array([0, 1000, 1], pa.int32(), mask=pa.array([False, True, False]).to_numpy(False))
    array = pa.DictionaryArray.from_arrays(keys, ["/a", "/b"], safe=False)
    report = package.build(wrap(pa.table({"url": array})), site=SITE, out=out, max_rejects=1)  # type: ignore[arg-type]
    assert (report.urls, report.rejected) == (2, 1)


@pytest.mark.parametrize("wrap", [lambda table: table, Passed], ids=["pyarrow", "anybody"])
def test_lists_beyond_their_items(wrap: Callable[[object], object], out: Path) -> None:
    items = pa.array([f"/{n}.jpg" for n in range(4)])
    urls = pa.array(["/a", "/b"])

    def lists(*offsets: int) -> pa.Array:
        packed = pa.py_buffer(b"".join(n.to_bytes(4, "little", signed=True) for n in offsets))
        kind = pa.list_(pa.string())
        return pa.Array.from_buffers(kind, len(offsets) - 1, [None, packed], children=[items])

    for offsets in ((0, 100_000, 4), (0, 3, 1), (2, -1, 4)):
        source = wrap(pa.table({"url": urls, "images": lists(*offsets)}))
        assert "batch 1" in str(error_of(source, out, image=["images"]))
    good = wrap(pa.table({"url": urls, "images": lists(0, 1, 4)}))
    report = package.build(good, site=SITE, out=out, image=["images"])  # type: ignore[arg-type]
    assert report.urls == 2


def test_views_beyond_their_buffers(out: Path) -> None:
    data = b"/a-text-longer-than-a-view"
    for index, start, length in ((1, 0, 26), (0, 1, 26), (0, 0, 1 << 30), (0, 1 << 30, 20)):
        numbers = (length, int.from_bytes(data[start : start + 4], "little"), index, start)
        view = b"".join(number.to_bytes(4, "little") for number in numbers)
        buffers = [None, pa.py_buffer(view), pa.py_buffer(data)]
        array = pa.Array.from_buffers(pa.string_view(), 1, buffers)
        table = pa.table({"url": array})
        assert "batch 1" in str(error_of(table, out))
        assert "batch 1" in str(error_of(Passed(table), out))


def test_a_good_column_beside_a_bad_one(out: Path) -> None:
    """A damaged column that is not mapped is ignored unless pyarrow validates it."""
    table = pa.table({"url": ["/a", "/b", "/c"], "more": text_array(0, 5, 2, 6)})
    assert package.build(Passed(table), site=SITE, out=out).urls == 3


def test_a_producer_that_fails(out: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield FIRST
        raise RuntimeError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(FIRST.schema, batches())
    assert "the disk is gone" in str(error_of(reader, out))


def test_a_stream_that_was_taken(out: Path) -> None:
    capsule = pa.table({"url": ["/a"]}).__arrow_c_stream__()

    class Once:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return capsule

    assert package.build(Once(), site=SITE, out=out).urls == 1
    with pytest.raises(package.InputError, match="taken already"):
        package.build(Once(), site=SITE, out=out)


def test_no_rows_as_values(out: Path) -> None:
    """A stream of values is distinguished from one of rows, also for unknown types."""

    class Passed:
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return self.stream.__arrow_c_stream__()

    for values in (pa.chunked_array([["/a"]]), pl.Series(["/a"])):
        assert "not rows" in str(error_of(Passed(values), out))
        with pytest.raises(ConfigError, match="has no rows: pass"):
            package.build(values, site=SITE, out=out)


ENDLESS = """
import itertools, sys, urlset, pyarrow as pa
empty = pa.RecordBatch.from_pydict({"url": pa.array([], pa.string())})
reader = pa.RecordBatchReader.from_batches(empty.schema, itertools.repeat(empty))
class Passed:
    def __arrow_c_stream__(self, requested_schema=None):
        print("begun", flush=True)
        return reader.__arrow_c_stream__()
urlset.build(Passed(), site=sys.argv[1], out=sys.argv[2])
"""


def test_an_endless_stream_can_be_interrupted(out: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, SITE, str(out)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline() == "begun\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        begun = time.monotonic()
        child.wait(20)
        assert time.monotonic() - begun < 15
        assert "KeyboardInterrupt" in child.stderr.read()
    assert not list(out.glob("*.xml*"))


# C structs that no library exports


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE_SCHEMA), ("private_data", ctypes.c_void_p),
]  # fmt: skip
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE_ARRAY), ("private_data", ctypes.c_void_p),
]  # fmt: skip
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Schema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Array))
LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
RELEASE_STREAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
Stream._fields_ = [
    ("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", LAST_ERROR),
    ("release", RELEASE_STREAM), ("private_data", ctypes.c_void_p),
]  # fmt: skip


class Handmade:
    """A stream of one batch with one column ``url`` of two strings, changed before its export."""

    def __init__(self, change: Callable[[Array, Array], None], end: int = 0) -> None:
        self.change, self.end, self.given, self.kept = change, end, 0, []
        self.released = 0

    def keep(self, what: object) -> object:
        self.kept.append(what)
        return what

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p,
        ]  # fmt: skip

        @RELEASE_STREAM
        def release(stream: object) -> None:
            self.released += 1
            stream.contents.release = RELEASE_STREAM()  # type: ignore[attr-defined]

        get_schema, get_next = GET_SCHEMA(self.schema), GET_NEXT(self.next)
        stream = Stream(get_schema, get_next, LAST_ERROR(), release, None)
        for what in (stream, release, get_schema, get_next):
            self.keep(what)
        return new(ctypes.addressof(stream), b"arrow_array_stream", None)

    def schema(self, _stream: object, out: object) -> int:
        pa.schema([pa.field("url", pa.string())])._export_to_c(ctypes.addressof(out.contents))  # type: ignore[attr-defined]
        return 0

    def next(self, _stream: object, out: object) -> int:
        if self.given:
            out.contents.release = RELEASE_ARRAY()  # type: ignore[attr-defined]
            return self.end
        self.given += 1
        offsets = self.keep((ctypes.c_int32 * 3)(0, 2, 4))
        data = self.keep(ctypes.create_string_buffer(b"/a/b", 64))

        @RELEASE_ARRAY
        def release(array: object) -> None:
            array.contents.release = RELEASE_ARRAY()  # type: ignore[attr-defined]

        self.keep(release)
        pointers = (ctypes.c_void_p * 3)(None, ctypes.addressof(offsets), ctypes.addressof(data))  # type: ignore[arg-type]
        child = Array(2, 0, 0, 3, 0, self.keep(pointers), None, None, release, None)
        children = (ctypes.POINTER(Array) * 1)(ctypes.pointer(self.keep(child)))
        nothing = self.keep((ctypes.c_void_p * 1)(None))
        whole = Array(2, 0, 0, 1, 1, nothing, self.keep(children), None, release, None)
        self.keep(whole)
        self.change(whole, child)
        out[0] = whole  # type: ignore[index]
        return 0


def setting(where: str, name: str, value: object) -> Callable[[Array, Array], None]:
    def change(whole: Array, child: Array) -> None:
        setattr(whole if where == "whole" else child, name, value)

    return change


def offset(at: int, value: int) -> Callable[[Array, Array], None]:
    def change(_whole: Array, child: Array) -> None:
        ctypes.cast(child.buffers[1], ctypes.POINTER(ctypes.c_int32))[at] = value

    return change


def pointer(at: int, value: int | None) -> Callable[[Array, Array], None]:
    def change(_whole: Array, child: Array) -> None:
        child.buffers[at] = value

    return change


def misaligned(_whole: Array, child: Array) -> None:
    child.buffers[1] = child.buffers[1] + 1


def childless(whole: Array, _child: Array) -> None:
    whole.children[0] = ctypes.POINTER(Array)()


BIG = (1 << 63) - 1
CHANGES: dict[str, Callable[[Array, Array], None]] = {
    **{
        f"{where} {name} {value}": setting(where, name, value)
        for where in ("whole", "child")
        for name, values in {
            "length": (-1, -BIG, BIG, 1 << 62),
            "offset": (-1, -BIG, BIG, 1 << 62),
            "null_count": (-2, 3, BIG, -BIG, 1),
            "n_buffers": (-1, 0, 7, BIG, -BIG),
            "n_children": (-1, 3, BIG, -BIG),
        }.items()
        for value in values
    },
    "whole longer than its column": setting("whole", "length", 3),
    "whole beyond its column": setting("whole", "offset", 1),
    "no buffers": setting("child", "buffers", None),
    "no children": setting("whole", "children", None),
    "no child": childless,
    "no offsets": pointer(1, None),
    "no data": pointer(2, None),
    "offsets between numbers": misaligned,
    "the last offset is negative": offset(2, -1),
    "the last offset is the least": offset(2, -(1 << 31)),
    "the first offset is negative": offset(0, -4),
    "offsets descend": offset(1, 5),
    "an offset is negative": offset(1, -5),
}


@pytest.mark.parametrize("name", CHANGES)
def test_structs_that_lie(name: str, out: Path) -> None:
    source = Handmade(CHANGES[name])
    error = error_of(source, out)
    assert str(error).count("\n") == 0 and "batch 1" in str(error)
    assert source.released == 1


def test_structs_that_do_not(out: Path) -> None:
    source = Handmade(lambda whole, child: None)
    assert package.build(source, site=SITE, out=out).urls == 2
    assert [entry["loc"] for entry in read_set(out)] == [f"{SITE}/a", f"{SITE}/b"]
    assert source.released == 1
    # -1 means: not counted
    source = Handmade(setting("child", "null_count", -1))
    assert package.build(source, site=SITE, out=out).urls == 2


def test_an_error_without_a_word(out: Path) -> None:
    error = error_of(Handmade(lambda whole, child: None, end=5), out)
    assert "without a reason" in str(error)


def test_deep_types(out: Path) -> None:
    deep = pa.string()
    for _ in range(200):
        deep = pa.struct([("a", deep)])
    table = pa.schema([("url", pa.string()), ("deep", deep)]).empty_table()
    assert "nested deeper" in str(error_of(Passed(table), out))


# whole IPC files


def ipc(table: pa.Table, stream: bool = True) -> bytes:
    file = io.BytesIO()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return file.getvalue()


def command(*words: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    code = "from urlset.cli import main; main()"
    words = (sys.executable, "-c", code, *words)
    return subprocess.run([*map(str, words)], input=stdin, capture_output=True, timeout=60)


TABLE = pa.table({"url": [f"/{n}" for n in range(5)]})


def test_two_streams_in_one_file(tmp_path: Path, out: Path) -> None:
    """The rows of the second are not lost silently."""
    path = tmp_path / "two.arrows"
    path.write_bytes(ipc(TABLE) * 2)
    assert "after the end" in str(error_of(path, out))
    path.write_bytes(ipc(TABLE) + b"\0" * 64)
    assert package.build(path, site=SITE, out=out).urls == 5
    path.write_bytes(ipc(TABLE)[:-8])  # a stream may end without an end marker
    assert package.build(path, site=SITE, out=out).urls == 5


def test_a_file_through_a_pipe(tmp_path: Path, out: Path) -> None:
    """The directory of the file format is at its end: it is copied to a temporary file first."""
    for stream in (True, False):
        place = out / str(stream)
        ended = command(
            "build", "-", "--format", "arrow", "--site", SITE, "--out", place,
            stdin=ipc(TABLE, stream),
        )  # fmt: skip
        assert ended.returncode == 0, ended
        assert len(read_set(place)) == 5


def test_a_fifo(tmp_path: Path, out: Path) -> None:
    fifo = tmp_path / "rows.arrows"
    os.mkfifo(fifo)
    writer = subprocess.Popen(["/bin/sh", "-c", f"cat > {fifo}"], stdin=subprocess.PIPE)
    assert writer.stdin is not None
    writer.stdin.write(ipc(TABLE))
    writer.stdin.close()
    assert package.build(fifo, site=SITE, out=out).urls == 5
    assert writer.wait(10) == 0


def test_sizes_that_only_the_file_claims(tmp_path: Path, out: Path) -> None:
    """No memory is reserved for them."""
    path = tmp_path / "big.arrow"
    for squeezed in ("lz4", "zstd"):
        options = pa.ipc.IpcWriteOptions(compression=squeezed)
        table = pa.table({"url": ["/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] * 1000})
        with pa.ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table)
        whole = path.read_bytes()
        size = (48 * 1000).to_bytes(8, "little")
        assert whole.count(size) >= 1
        for claimed in (1 << 40, 1 << 62, (1 << 31) + 1):
            path.write_bytes(whole.replace(size, claimed.to_bytes(8, "little")))
            assert "inflate" in str(error_of(path, out))


def test_blocks_that_are_named_many_times(tmp_path: Path, out: Path) -> None:
    """A directory that lists one batch repeatedly does not yield more rows than the file has."""
    path = tmp_path / "again.arrow"
    whole = bytearray(ipc(pa.table({"url": [f"/{n:02}" for n in range(40)]}), stream=False))
    reader = pa.ipc.open_file(pa.py_buffer(bytes(whole)))
    assert reader.num_record_batches == 20
    # the blocks of the directory, three words each, begin with the positions of the messages
    footer = len(whole) - 10 - int.from_bytes(whole[-10:-6], "little")
    starts = [m.start() for m in re.finditer(re.escape(whole[8:12]), bytes(whole[:footer]))]
    places = [whole.index(start.to_bytes(8, "little"), footer) for start in starts[1:21]]
    last = whole[places[-1] : places[-1] + 24]
    for at in places:
        whole[at : at + 24] = last
    path.write_bytes(whole)
    report = package.build(path, site=SITE, out=out, duplicates="drop")
    assert report.rows == 40 and report.urls == 2
    for at in places:
        whole[at + 16 : at + 24] = (1 << 20).to_bytes(8, "little")
    path.write_bytes(whole)
    assert "not in the file" in str(error_of(path, out / "other"))


def test_a_dataset_of_files(tmp_path: Path, out: Path) -> None:
    for number, country in enumerate(("de", "fr")):
        folder = tmp_path / f"country={country}"
        folder.mkdir()
        table = pa.table({"number": [number], "slug": [f"s-{number}"], "other": [b"x"]})
        pa.feather.write_feather(table, folder / "a.arrow", compression="zstd")
    table = pa.table({"number": pa.array([7], pa.int32())})  # other types, and one column less
    pa.feather.write_feather(table, tmp_path / "country=fr" / "b.arrow")
    fields = [("number", pa.int64()), ("slug", pa.string()), ("country", pa.string())]
    kind = pads.partitioning(pa.schema(fields[2:]), flavor="hive")
    data = pads.dataset(tmp_path, format="ipc", partitioning=kind, schema=pa.schema(fields))
    options = {"site": SITE, "max_rejects": 1}
    report = package.build(data, out=out, loc_template=f"{SITE}/{{country}}/{{number}}", **options)  # type: ignore[arg-type]
    assert report.urls == 3
    assert {entry["loc"] for entry in read_set(out)} == {
        f"{SITE}/de/0", f"{SITE}/fr/1", f"{SITE}/fr/7",
    }  # fmt: skip
    narrow = data.filter(pads.field("number") > 0)
    report = package.build(narrow, out=out / "narrow", loc_template=f"{SITE}/{{number}}", **options)  # type: ignore[arg-type]
    assert report.urls == 2


def test_a_file_that_shrinks_is_no_crash(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "c.arrow"
    whole = ipc(TABLE, stream=False)
    dice = random.Random(1)
    for _ in range(20):
        path.write_bytes(whole[: dice.randrange(1, len(whole))])
        with pytest.raises(package.InputError):
            package.build(path, site=SITE, out=out)


def test_only_the_columns_of_a_file_that_are_needed(tmp_path: Path, out: Path) -> None:
    """All kinds of columns around the mapped one, and bodies of any alignment."""
    rows = 500
    urls = [f"/{n}" for n in range(rows)]
    others = {
        "a": pa.array([b"x"] * rows),
        "b": pa.array(["a text that is longer than a view"] * rows, pa.string_view()),
        "c": pa.array([[1, 2]] * rows, pa.list_view(pa.int8())),
        "d": pa.array([{"e": "f", "g": [1.5]}] * rows),
        "h": pa.nulls(rows),
        "i": pa.array([[("k", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
        "l": pa.array(["m"] * rows).dictionary_encode(),
        "n": pa.array([[1, 2]] * rows, pa.list_(pa.int16(), 2)),
        "o": pa.compute.run_end_encode(pa.array([1] * rows)),
        "p": pa.array([True] * rows),
        "q": pa.UnionArray.from_sparse(pa.array([0] * rows, pa.int8()), [pa.array(urls)]),
    }
    for place in range(len(others) + 1):
        names = [*others][:place], [*others][place:]
        columns = {
            **{name: others[name] for name in names[0]},
            "url": pa.array(urls, pa.string_view() if place % 2 else pa.string()),
            **{name: others[name] for name in names[1]},
        }
        table = pa.table(columns)
        for squeezed in (None, "lz4", "zstd"):
            path = tmp_path / f"{place}-{squeezed}.arrow"
            options = pa.ipc.IpcWriteOptions(compression=squeezed)
            with pa.ipc.new_file(path, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=200)
            assert package.build(path, site=SITE, out=out).urls == rows
            assert [entry["loc"] for entry in read_set(out)] == [SITE + url for url in urls]


PEAK = """
import re, sys, urlset
report = urlset.build(sys.argv[2], site=sys.argv[1], out=sys.argv[3])
print(report.urls, re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells no peak")
def test_memory_of_a_wide_batch(tmp_path: Path, out: Path) -> None:
    """A file of 400 MB that is one batch: unmapped columns take no memory."""
    rows, path = 100_000, tmp_path / "wide.arrow"
    wide = pa.array(["x" * 1000]).take(pa.array([0] * rows, pa.int32()))
    columns = {"url": pa.array([f"/{n}" for n in range(rows)]), **dict.fromkeys("abcd", wide)}
    table = pa.table(columns)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    assert path.stat().st_size > 400_000_000
    words = [sys.executable, "-c", PEAK, SITE, str(path), str(out)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    path.unlink()
    assert done.returncode == 0, done.stderr
    urls, kilobytes = map(int, done.stdout.split())
    assert urls == rows and kilobytes < 150 * 1024, kilobytes
