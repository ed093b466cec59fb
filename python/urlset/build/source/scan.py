"""Datasets of pyarrow, and the validation of its batches."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ... import _core
from ...errors import ConfigError
from ...options import Options
from .input import Input, as_input_error

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as pads


def dataset_input(
    paths: str | list[str],
    name: str,
    options: Options,
    filesystem: Any = None,
    hide: Callable[[str], str] = str,
    base: str | None = None,
) -> Input:
    """Parquet of object stores and hive partitions, by pyarrow's scanner.

    Args:
        base: the folder below which the names of folders contain columns.
    """
    import pyarrow.dataset as pads

    with as_input_error(name, hide, remote=filesystem is not None):
        data = pads.dataset(
            paths,
            filesystem=filesystem,
            format="parquet",
            partitioning="hive",
            partition_base_dir=base,
        )
        return scan(data, name, options)


def scan(data: pads.Dataset, name: str, options: Options) -> Input:
    import pyarrow.dataset as pads

    columns = needed_of(data.schema, name, options)
    if _is_ipc(data):
        stream, names = _ipc_fragments(data, columns), tuple(data.schema.names)
        return Input(name, "arrow", stream, columns=names)
    scan_options = {}
    if isinstance(data, pads.FileSystemDataset) and data.format.default_extname == "parquet":
        # without read-ahead of whole column chunks: 240 MB of memory instead of 500
        scan_options["fragment_scan_options"] = pads.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True, buffer_size=1 << 16
        )
    rows = data.count_rows()
    gaps: list[tuple[int, int]] = []
    if options.where and scan_options:
        data, gaps = _prune(data, options)
    # Measured on two cores with 2 M rows: 1.3 s and 430 MiB with the threads of pyarrow, which
    # compete with compression; 0.8 s and 330 MiB without them.
    scanner = data.scanner(
        columns=columns,
        batch_size=32_768,
        batch_readahead=2,
        fragment_readahead=1,
        use_threads=(os.cpu_count() or 1) > 4,
        **scan_options,
    )
    stream, names = checked(scanner.to_reader()), tuple(data.schema.names)
    return Input(name, "arrow", stream, rows=rows, columns=names, gaps=tuple(gaps))


def _is_ipc(data: pads.Dataset) -> bool:
    """Whether a dataset consists of IPC files without a filter."""
    import pyarrow.dataset as pads

    return (
        isinstance(data, pads.FileSystemDataset)
        and isinstance(data.format, pads.IpcFileFormat)
        and not getattr(data, "_scan_options", None)
    )


def _ipc_fragments(data: pads.FileSystemDataset, columns: list[str]) -> pa.RecordBatchReader:
    """The columns of a dataset of IPC files, each batch validated before any other operation.

    The scanner of pyarrow ends the process with SIGSEGV for a damaged compressed file (26.0).
    """
    import pyarrow as pa
    import pyarrow.dataset as pads

    schema = pa.schema([data.schema.field(column) for column in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for fragment in data.get_fragments():
            known = pads.get_partition_keys(fragment.partition_expression)
            with fragment.open() as file, pa.ipc.open_file(file) as reader:
                for number in range(reader.num_record_batches):
                    batch = reader.get_batch(number)
                    try:
                        batch.validate(full=True)
                    except pa.ArrowException as error:
                        reason = str(error).splitlines()[0]
                        raise pa.ArrowInvalid(
                            f"{fragment.path}: batch {number + 1}: {reason}"
                        ) from None
                    yield _as_schema(batch, schema, known)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _as_schema(batch: pa.RecordBatch, schema: pa.Schema, known: dict[str, Any]) -> pa.RecordBatch:
    """The columns of a schema: from a batch, else the known value of all its rows, else null."""
    import pyarrow as pa

    columns = []
    for field in schema:
        if field.name in batch.schema.names:
            column = batch.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
        else:
            value = pa.scalar(known.get(field.name), field.type)
            columns.append(pa.repeat(value, batch.num_rows))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _prune(
    data: pads.FileSystemDataset, options: Options
) -> tuple[pads.FileSystemDataset, list[tuple[int, int]]]:
    """The dataset without the row groups that ``where`` excludes by their statistics.

    Returns also the gaps, so that the core can number and count the omitted rows. The core filters
    the rows of the other groups.
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
    """A condition of pyarrow; None for types that pyarrow may compare differently from the core."""
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


def checked(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The batches of pyarrow, each validated and compared with the schema.

    pyarrow does neither: it reads IPC files without checking their arrays, and its readers may
    return batches of another schema. The core cannot check either: in the C interface arrays have
    neither a type nor the lengths of their buffers.
    """
    import pyarrow as pa

    wanted = [(field.name, field.type) for field in reader.schema]

    def batches() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(reader, 1):
            try:
                found = [(field.name, field.type) for field in batch.schema]
                if found != wanted:
                    raise pa.ArrowInvalid(_difference(wanted, found))
                batch.validate(full=True)
            except pa.ArrowException as error:
                reason = str(error).splitlines()[0]
                raise pa.ArrowInvalid(f"batch {number}: {reason}") from None
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _difference(wanted: list[tuple[str, pa.DataType]], found: list[tuple[str, pa.DataType]]) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} columns where the schema has {len(wanted)}"
    column, is_, was = next(
        (a, b, c) for (a, b), c in zip(found, wanted, strict=True) if (a, b) != c
    )
    return f"column {column!r} is {is_} where the schema has {was[0]!r} as {was[1]}"


def needed_of(schema: pa.Schema, name: str, options: Options) -> list[str]:
    """The columns of a schema that the mapping needs."""
    try:
        columns, _ = _core.choose(json.dumps(options.core_json()), schema.names, kinds_of(schema))
    except ConfigError as error:
        error.args = (f"{name}: {error}",)
        error.columns = tuple(schema.names)
        raise
    return columns


def kinds_of(schema: pa.Schema) -> str:
    """The kind of each column, a letter as ``_core.choose`` takes it."""
    import pyarrow as pa

    return "".join(_kind(field.type, pa) for field in schema)


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
