"""The rows of ``read`` and ``diff`` as a stream of Arrow batches: to any library, or to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from . import _core
from .errors import ConfigError, PublishError
from .outfile import is_store, must_be_local
from .transport.target import replacing, target_of

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = (".parquet", ".csv", ".jsonl", ".arrow")


class Rows:
    """Rows as a stream of Arrow batches. Each pass reads the files again.

    Any consumer of ``__arrow_c_stream__`` accepts it, any number of times: DuckDB, Polars, pandas,
    pyarrow. Iteration yields ``pyarrow.RecordBatch`` objects. Fetched files exist as long as this
    object and its readers, or until :meth:`close`. After that, reading raises an
    :class:`InputError` with the code ``read.closed``.
    """

    def __init__(self, stream: _core.Stream, stack: ExitStack, threads: int) -> None:
        self._stream = stream
        self._stack = stack
        self._threads = threads

    def __arrow_c_schema__(self) -> object:
        return self._stream.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._stream.open().__arrow_c_stream__(requested_schema)

    def reader(self) -> pa.RecordBatchReader:
        """A new pass over the rows, as a ``pyarrow.RecordBatchReader``."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(self)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        import pyarrow as pa

        return pa.schema(self)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        reading = self._stream.open()
        reader = pa.RecordBatchReader.from_stream(reading)
        while True:
            reading.wait()  # a signal can end this wait, but not the next call
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except (pa.ArrowException, OSError):
                reading.check()  # raises the error of the core, of which pyarrow has only the text
                raise
            yield batch

    def read_all(self) -> pa.Table:
        """All rows as a ``pyarrow.Table``.

        Raises:
            InputError: a sitemap cannot be read.
        """
        import pyarrow as pa

        return pa.Table.from_batches(list(self), schema=self.schema)

    def write_parquet(self, file: BinaryIO) -> int:
        """Write all rows as Parquet; returns their number.

        Raises:
            InputError: a sitemap cannot be read.
            OSError: the file cannot be written.
        """
        return self._stream.write_parquet(file, self._threads)

    def close(self) -> None:
        """Delete fetched files; a pass that is not at its end fails."""
        self._stream.close()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def format_of(path: str, given: str | None = None) -> str:
    """The format of an output: ``given``, or the one of the suffix; ``-`` is CSV.

    Raises:
        ConfigError: the suffix is not one of ``.parquet .csv .jsonl .arrow``.
    """
    if given:
        return given
    if path == "-":
        return "csv"
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ConfigError(
            f"{path}: the name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}",
            code="output.format",
        )
    return suffix[1:]


def write(rows: Rows, path: str, format: str | None = None) -> int:
    """Write rows to a file or, ``-``, to stdout; returns the number of rows.

    A file is written under a temporary name in the same folder, and renamed when it is complete.

    Raises:
        ConfigError: the format is unknown.
        InputError: a sitemap cannot be read.
        PublishError: the output cannot be written.
    """
    if not is_store(path):
        must_be_local("output", path)
    kind = format_of(path, format)
    if path == "-":
        try:
            count = _write(rows, sys.stdout.buffer, kind)
            sys.stdout.buffer.flush()
        except OSError as error:
            with suppress(OSError, ValueError):  # no second attempt to flush the buffer at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            why = error.strerror or str(error)
            raise PublishError(f"stdout: {why}", code="output.unwritable") from error
        return count
    try:
        with replacing(target_of(path)) as file:
            return _write(rows, file, kind)
    except OSError as error:
        why = error.strerror or str(error)
        raise PublishError(f"{path}: {why}", code="output.unwritable") from error


def _write(rows: Rows, file: BinaryIO, kind: str) -> int:
    writers: dict[str, Callable[[BinaryIO, pa.Schema], Any]] = {
        "csv": _csv,
        "jsonl": _JsonLines,
        "arrow": _arrow,
    }
    if kind == "parquet":
        return rows.write_parquet(file)
    if kind not in writers:
        raise ConfigError(f"{kind!r} is not a format", code="output.format")
    schema = flat(rows.schema) if kind == "csv" else rows.schema
    count = 0
    with writers[kind](file, schema) as writer:
        for batch in rows:
            writer.write_batch(flatten(batch, schema) if kind == "csv" else batch)
            count += batch.num_rows
    return count


def _csv(file: BinaryIO, schema: pa.Schema) -> Any:
    import pyarrow.csv

    return pyarrow.csv.CSVWriter(file, schema)


def _arrow(file: BinaryIO, schema: pa.Schema) -> Any:
    import pyarrow as pa

    return pa.ipc.new_file(file, schema)


class _JsonLines:
    """One row per line; times in ISO 8601 and UTC, without missing values."""

    def __init__(self, file: BinaryIO, _schema: pa.Schema) -> None:
        self._file = file

    def __enter__(self) -> _JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write_batch(self, batch: pa.RecordBatch) -> None:
        lines = (_json({k: v for k, v in row.items() if v is not None}) for row in _pylist(batch))
        self._file.write("".join(f"{line}\n" for line in lines).encode())


def _pylist(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as dicts; times as text, because Python's datetime would need time zone data."""
    import pyarrow as pa

    for n, column in enumerate(batch.schema):
        if pa.types.is_timestamp(column.type):
            batch = batch.set_column(n, column.name, _iso(batch.column(n)))
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def _iso(column: Any) -> Any:
    """Times as ``2026-11-21T08:30:00Z``, with the fraction if it is not zero."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.strftime(column.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%SZ")
    return pc.replace_substring(text, ".000000Z", "Z")


def _json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_nested(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_nested(kind))


def flat(schema: pa.Schema) -> pa.Schema:
    """The schema for CSV: nested columns become JSON text, times ISO 8601."""
    import pyarrow as pa

    def column(field: Any) -> Any:
        text = _is_nested(field.type) or pa.types.is_timestamp(field.type)
        return pa.field(field.name, pa.string()) if text else field

    return pa.schema([column(field) for field in schema])


def flatten(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns of :func:`flat`."""
    import pyarrow as pa

    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_timestamp(field.type):
            column = _iso(column)
        elif _is_nested(field.type):
            if column.null_count == len(column):
                column = pa.nulls(len(column), pa.string())
            else:
                texts = [None if value is None else _json(value) for value in column.to_pylist()]
                column = pa.array(texts, pa.string())
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
