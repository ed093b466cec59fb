"""What a user may pass as an input, to what the core reads: CSV, Parquet, or an Arrow C stream."""

from __future__ import annotations

import glob
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from . import _core
from .errors import ConfigError, InputError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as pads

    from .config import Options


@runtime_checkable
class ArrowStream(Protocol):
    """Anything with an Arrow C stream: pyarrow, Polars, DuckDB, pandas, ADBC."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Source: TypeAlias = "str | os.PathLike[str] | ArrowStream"

CSV_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".psv")
PARQUET_ENDINGS = (".parquet", ".pq", ".parq")
ARROW_ENDINGS = (".arrow", ".arrows", ".feather", ".ipc")
JSONL_ENDINGS = (".jsonl", ".ndjson")
PACKED_ENDINGS = (".gz", ".zst", ".zstd")


@dataclass(frozen=True)
class Feed:
    """One input as the core takes it.

    Attributes:
        name: what errors and rejects show; the path of a file.
        format: ``csv`` or ``parquet`` for a file, ``arrow`` for a stream.
        stream: an object with ``__arrow_c_stream__``; None for a file.
        rows: how many a stream has, where that is known at once.
        size: bytes of a file, 0 where unknown.
        gaps: where the stream lacks rows that ``where`` leaves out: before which of its rows, and
            how many.
        close: to be called when the core has read it; raises what the core could not see.
    """

    name: str
    format: Literal["csv", "parquet", "arrow"]
    stream: ArrowStream | None = None
    rows: int | None = None
    size: int = 0
    gaps: tuple[tuple[int, int], ...] = ()
    close: Callable[[], None] = lambda: None


def feeds(sources: Iterable[Source], options: Options) -> list[Feed]:
    """All inputs of a build, in their order.

    Raises:
        InputError: an input is missing or cannot be opened.
        ConfigError: a column is missing, or an object is nothing that gives rows.
    """
    result: list[Feed] = []
    for source in sources:
        if isinstance(source, (str, os.PathLike)):
            result.extend(_path_feeds(os.fspath(source), options))
        else:
            result.append(_object_feed(source, options))
    if not result:
        raise ConfigError("which input? (urlset build INPUT ...)", code="config.input")
    return result


def must_not_be_read(name: str, target: Path, sources: Sequence[Any]) -> None:
    """A file that a build writes is none of its inputs, nor in a folder that is one.

    Raises:
        ConfigError: ``config.{name}``, where it is.
    """
    real = target.resolve()
    for source in sources:
        if not isinstance(source, (str, os.PathLike)) or os.fspath(source) == "-":
            continue
        text = os.fspath(source)
        paths = [text, *glob.glob(text, recursive=True)]
        if any(Path(path).resolve() in (real, *real.parents) for path in paths):
            raise ConfigError(
                f"{name}: {os.fspath(target)!r} is an input of the build, or in its folder; "
                "write it elsewhere",
                code=f"config.{name}",
            )


def _path_feeds(path: str, options: Options) -> Iterable[Feed]:
    if path == "-":
        yield _stdin_feed(options)
        return
    if "://" in path:
        yield _uri_feed(path, options)
        return
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path!r}: a file whose name is not UTF-8; rename it, or give it as standard input",
            code="input.name",
        ) from None
    place = Path(path)
    if place.is_dir():
        yield from _folder_feeds(place, options)
        return
    if not place.exists() and glob.has_magic(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise InputError(f"{path}: no file matches", code="input.missing", input=path)
        yield from _files_feeds(found, found, path, options)
        return
    if not place.exists():
        raise InputError(f"{path}: No such file or directory", code="input.missing", input=path)
    match options.format or _format_of(path):
        case "csv":
            yield Feed(path, "csv", size=place.stat().st_size if place.is_file() else 0)
        case "parquet":
            yield _parquet_feed(path, options)
        case "arrow":
            yield _ipc_feed(path, options)
        case _:
            yield _jsonl_feed(path, path, options)


def _format_of(path: str) -> str:
    """By its ending, else by its first bytes."""
    name = path.lower()
    for packed in PACKED_ENDINGS:
        name = name.removesuffix(packed)
    for format, endings in (
        ("csv", CSV_ENDINGS),
        ("parquet", PARQUET_ENDINGS),
        ("arrow", ARROW_ENDINGS),
        ("jsonl", JSONL_ENDINGS),
    ):
        if name.endswith(endings):
            return format
    if not Path(path).is_file():
        return "csv"  # a FIFO can be opened once only
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a string, as it was given
            head = file.read(6)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", code="input.unreadable", input=path) from None
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.lstrip().startswith(b"[") and name.endswith(".json"):
        raise InputError(
            f"{path}: is one JSON array; urlset reads JSON Lines, an object a line"
            " (jq -c '.[]' FILE.json > FILE.jsonl)",
            code="input.format",
            input=path,
        )
    return "jsonl" if head.startswith(b"{") else "csv"


def _folder_feeds(folder: Path, options: Options) -> Iterable[Feed]:
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and not any(p.startswith((".", "_")) for p in file.relative_to(folder).parts)
    ]
    kinds = {options.format or _format_of(str(file)) for file in files}
    if not files:
        raise InputError(f"{folder}: holds no file", code="input.missing", input=str(folder))
    if len(kinds) > 1:
        raise InputError(
            f"{folder}: holds files of several formats ({', '.join(sorted(kinds))}); name them by a"
            " glob, or the format (--format)",
            code="input.mixed",
            input=str(folder),
        )
    yield from _files_feeds([str(file) for file in files], str(folder), str(folder), options)


def _files_feeds(
    files: list[str], place: str | list[str], name: str, options: Options
) -> Iterable[Feed]:
    """Files one after the other; Parquet in folders that name columns (``country=de``) at once."""
    formats = {options.format or _format_of(file) for file in files}
    if any(map(_in_hive, files)) and formats == {"parquet"}:
        yield _dataset_feed(place, name, options)
        return
    for file in files:
        yield from _path_feeds(file, options)


def _in_hive(path: str) -> bool:
    """Whether a folder of it names a column and its value."""
    return any("=" in part for part in Path(path).parts[:-1])


def _parquet_feed(path: str, options: Options) -> Feed:
    if _in_hive(path):
        return _dataset_feed(path, path, options)
    if not Path(path).is_file():
        raise InputError(
            f"{path}: Parquet is read from files only: its directory is at its end",
            code="input.format",
            input=path,
        )
    return Feed(path, "parquet", size=Path(path).stat().st_size)


def _stdin_feed(options: Options) -> Feed:
    match options.format:
        case None | "csv":
            return Feed("-", "csv")
        case "arrow":
            import pyarrow as pa

            with _readable("-"):
                stream = pa.ipc.open_stream(pa.PythonFile(sys.stdin.buffer, mode="r"))
                return Feed("-", "arrow", stream)
        case "jsonl":
            return _jsonl_feed(sys.stdin.buffer, "-", options)
        case _:
            raise ConfigError(
                "Parquet cannot be read from standard input: its directory is at its end",
                code="config.format",
            )


def _uri_feed(uri: str, options: Options) -> Feed:
    format = options.format or _format_of_uri(uri)
    with _readable(uri):
        if format == "parquet":
            return _dataset_feed(uri, uri, options)
        file = _open_uri(uri)
    if format == "arrow":
        import pyarrow as pa

        with _readable(uri):
            return Feed(uri, "arrow", pa.ipc.open_stream(file))
    if format == "jsonl":
        return _jsonl_feed(file, uri, options)
    return _pipe_feed(file, uri)


def _format_of_uri(uri: str) -> str:
    name = uri.split("?", 1)[0].lower()
    for packed in PACKED_ENDINGS:
        name = name.removesuffix(packed)
    if name.endswith(PARQUET_ENDINGS):
        return "parquet"
    if name.endswith(ARROW_ENDINGS):
        return "arrow"
    return "jsonl" if name.endswith(JSONL_ENDINGS) else "csv"


def _open_uri(uri: str) -> Any:
    """A binary file by pyarrow, or by fsspec where pyarrow does not know the scheme."""
    from pyarrow import ArrowInvalid, fs

    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
        return filesystem.open_input_stream(path)
    except ArrowInvalid:
        try:
            import fsspec
        except ImportError:
            raise ConfigError(
                f"{uri}: pyarrow does not open such a URI; pip install 'urlset[fsspec]'",
                code="config.uri",
            ) from None
        return fsspec.open(uri, "rb").open()


def _pipe_feed(file: Any, uri: str) -> Feed:
    """CSV through a pipe, into which a thread sends a file that Python opened."""
    import shutil
    import threading

    from .threads import start

    reader, writer = os.pipe()
    failed: list[BaseException] = []

    def send() -> None:
        try:
            with os.fdopen(writer, "wb") as pipe, file:
                shutil.copyfileobj(file, pipe, 1 << 20)
        except BrokenPipeError:
            pass  # the core has left, with an error of its own
        except Exception as error:  # noqa: BLE001 - whatever a filesystem raises
            failed.append(error)

    thread = threading.Thread(target=send, name=f"read {uri}", daemon=True)
    start(thread)

    def close() -> None:
        # without a reader the thread ends, wherever it is
        os.close(reader)
        thread.join(1)
        with _readable(uri):
            for error in failed:
                raise OSError(str(error) or type(error).__name__)

    return Feed(f"/dev/fd/{reader}", "csv", close=close)


class _readable:
    """Turns what pyarrow and the system raise on opening into an InputError."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, (ConfigError, InputError)):
            return
        # pyarrow's exceptions are subclasses of these
        if isinstance(error, (OSError, ValueError, KeyError, NotImplementedError)):
            missing = isinstance(error, FileNotFoundError)
            code = "input.missing" if missing else "input.damaged"
            said = str(error).strip().splitlines()
            what = said[0] if said else type(error).__name__
            raise InputError(f"{self.name}: {what}", code=code, input=self.name) from None


def _dataset_feed(paths: str | list[str], name: str, options: Options) -> Feed:
    """Parquet of object stores and hive partitions, by pyarrow's scanner."""
    import pyarrow.dataset as pads

    with _readable(name):
        data = pads.dataset(paths, format="parquet", partitioning="hive")
        return _scan(data, name, options)


def _scan(data: pads.Dataset, name: str, options: Options) -> Feed:
    import pyarrow.dataset as pads

    columns = _needed(data.schema, name, options)
    scan_options = {}
    if isinstance(data, pads.FileSystemDataset) and data.format.default_extname == "parquet":
        # no whole column chunks ahead in memory: 240 MB in place of 500
        scan_options["fragment_scan_options"] = pads.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True, buffer_size=1 << 16
        )
    rows = data.count_rows()
    gaps: list[tuple[int, int]] = []
    if options.where and scan_options:
        data, gaps = _prune(data, options)
    # Measured on two cores with 2 M rows: pyarrow's threads take time from those that compress
    # (1.3 s, 430 MiB), without them it is 0.8 s and 330 MiB.
    scanner = data.scanner(
        columns=columns,
        batch_size=32_768,
        batch_readahead=2,
        fragment_readahead=1,
        use_threads=(os.cpu_count() or 1) > 4,
        **scan_options,
    )
    return Feed(name, "arrow", scanner.to_reader(), rows=rows, gaps=tuple(gaps))


def _prune(
    data: pads.FileSystemDataset, options: Options
) -> tuple[pads.FileSystemDataset, list[tuple[int, int]]]:
    """The dataset without the row groups that ``where`` leaves out by their statistics.

    Which rows of a row group are left out is the core's business; here only whole groups are, and
    where they were is told, so that rows keep their numbers and are counted.
    """
    import pyarrow.dataset as pads

    condition = None
    for filter in options.filters_json():
        part = _condition(data.schema, filter)
        if part is not None:
            condition = part if condition is None else condition & part
    if condition is None:
        return data, []
    fragments, gaps, given, missing = [], [], 0, 0
    for fragment in data.get_fragments():
        kept = fragment.subset(filter=condition, schema=data.schema)
        wanted = {group.id for group in kept.row_groups}
        for group in fragment.row_groups:
            if group.id not in wanted:
                missing += group.num_rows
                continue
            if missing:
                gaps.append((given, missing))
            given, missing = given + group.num_rows, 0
        if wanted:
            fragments.append(kept)
    if missing:
        gaps.append((given, missing))
    return pads.FileSystemDataset(fragments, data.schema, data.format, data.filesystem), gaps


def _condition(schema: pa.Schema, filter: dict[str, object]) -> Any:
    """A condition as pyarrow has it; None where its types might judge otherwise than the core."""
    import pyarrow as pa
    import pyarrow.dataset as pads

    column, value = str(filter["column"]), str(filter["value"])
    if column not in schema.names or filter["negate"] or not value:
        return None
    type = schema.field(column).type
    if pa.types.is_dictionary(type):
        type = type.value_type
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        return pads.field(column) == value
    if pa.types.is_boolean(type):
        known = {"true": True, "1": True, "false": False, "0": False}.get(value.lower())
        return None if known is None else pads.field(column) == known
    if pa.types.is_integer(type) and value.lstrip("-").isdecimal() and len(value) < 16:
        return pads.field(column) == int(value)
    return None


def _ipc_feed(path: str, options: Options) -> Feed:
    """Arrow IPC, the file format or the stream format."""
    import pyarrow as pa
    import pyarrow.dataset as pads

    with _readable(path):
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            is_file = file.read(6) == b"ARROW1"
        if is_file:
            return _scan(pads.dataset(path, format="ipc"), path, options)
        return Feed(path, "arrow", pa.ipc.open_stream(pa.OSFile(path)))


#: bytes of JSON Lines from which the types of the columns are told
JSONL_HEAD = 4 << 20
#: bytes of JSON Lines parsed at once
JSONL_BLOCK = 1 << 20
#: bytes of one line; a file without line breaks is refused there
JSONL_LINE = 64 << 20


def _jsonl_feed(file: Any, name: str, options: Options) -> Feed:
    """JSON Lines, by pyarrow's streaming reader and with only the columns needed."""
    import io

    import pyarrow as pa
    from pyarrow import json as pajson

    with _readable(name):
        stream = pa.input_stream(file, compression="detect") if isinstance(file, str) else file
        head = stream.read(JSONL_HEAD)
        whole = head[: head.rfind(b"\n") + 1] or head
        if not whole.strip():
            raise InputError(f"{name}: is empty", code="input.empty", input=name)
        # a block at once, whatever its size
        at_once = pajson.ReadOptions(block_size=max(len(whole), 1))
        schema = pajson.open_json(io.BytesIO(whole), at_once).schema
        needed = _needed(schema, name, options)
        columns = [schema.field(column) for column in needed]
        parse = pajson.ParseOptions(
            explicit_schema=pa.schema([_jsonl_type(field, pa) for field in columns]),
            unexpected_field_behavior="ignore",
        )
        batches = _jsonl_batches(head, stream, parse)
        rows = pa.RecordBatchReader.from_batches(parse.explicit_schema, batches)
        return Feed(name, "arrow", rows)


def _jsonl_batches(head: bytes, stream: Any, parse: Any) -> Iterator[pa.RecordBatch]:
    """The rows of whole lines, block by block.

    pyarrow's own streaming reader reads ahead in threads that still call back into Python when
    the process ends after damaged input, and then end it with SIGABRT.
    """
    import pyarrow as pa
    from pyarrow import json as pajson

    row, rest, more = 0, b"", head
    while more:
        data = rest + more
        more = stream.read(JSONL_BLOCK)
        end = data.rfind(b"\n") + 1 if more else len(data)
        block, rest = data[:end], data[end:]
        if len(rest) > JSONL_LINE:
            raise pa.ArrowInvalid(f"a line of over {JSONL_LINE >> 20} MiB after row {row:,}")
        if not block.strip():
            continue
        # a block at once, whatever its size
        at_once = pajson.ReadOptions(use_threads=False, block_size=len(block))
        try:
            table = pajson.read_json(pa.BufferReader(block), at_once, parse)
        except pa.ArrowInvalid as error:
            # pyarrow counts from 0, and from the start of the block
            found = re.search(r"in row (\d+)", str(error))
            where = f"in row {row + int(found[1]) + 1}" if found else f"after row {row}"
            raise pa.ArrowInvalid(re.sub(r" in row \d+", "", str(error)) + f" {where}") from None
        row += table.num_rows
        yield from table.to_batches()


def _jsonl_type(field: pa.Field, pa: Any) -> pa.Field:
    """The type to read a column as: as it stands, where pyarrow would take text for a time."""
    if pa.types.is_timestamp(field.type) or pa.types.is_null(field.type):
        return pa.field(field.name, pa.string())
    if pa.types.is_integer(field.type) and field.name.lower() == "priority":
        return pa.field(field.name, pa.float64())  # 1 here, 0.5 a million rows later
    return field


def _object_feed(source: Any, options: Options) -> Feed:
    name = f"<{type(source).__module__.split('.')[0]} {type(source).__name__}>"
    if type(source).__module__.startswith("pyarrow"):
        source = _from_pyarrow(source, name, options)
        if isinstance(source, Feed):
            return source
    if isinstance(source, ArrowStream):
        return Feed(name, "arrow", source)
    hint = "; call .collect() first" if type(source).__name__ == "LazyFrame" else ""
    raise ConfigError(
        f"{name} gives no rows: pass a path or something with __arrow_c_stream__{hint}",
        code="config.input",
    )


def _from_pyarrow(source: Any, name: str, options: Options) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as pads

    if isinstance(source, pads.Dataset):
        with _readable(name):
            return _scan(source, name, options)
    if isinstance(source, pads.Scanner):
        return Feed(name, "arrow", source.to_reader())
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return Feed(name, "arrow", source, rows=source.num_rows)
    return source


def _needed(schema: pa.Schema, name: str, options: Options) -> list[str]:
    """Which columns of a schema the mapping needs."""
    import pyarrow as pa

    kinds = "".join(_kind(field.type, pa) for field in schema)
    try:
        columns, _ = _core.choose(json.dumps(options.core_json()), schema.names, kinds)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}", code=error.code) from None
    return columns


def _kind(type: pa.DataType, pa: Any) -> str:
    types = pa.types
    if types.is_dictionary(type):
        return _kind(type.value_type, pa)
    if types.is_string(type) or types.is_large_string(type) or types.is_string_view(type):
        return "t"
    if types.is_nested(type):
        return "n"
    if types.is_binary(type) or types.is_large_binary(type) or types.is_fixed_size_binary(type):
        return "x"
    return "s"
