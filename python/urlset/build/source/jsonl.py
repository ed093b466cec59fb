"""JSON Lines, parsed by pyarrow, only the needed columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...options import Options
from .input import Input, as_input_error
from .scan import needed_of
from .stream import decompressed

if TYPE_CHECKING:
    import pyarrow as pa

#: bytes of JSON Lines from which the types of the columns are inferred
JSONL_HEAD = 4 << 20
#: bytes of JSON Lines parsed at once
JSONL_BLOCK = 1 << 20
#: maximum size of a line in bytes
JSONL_LINE = 64 << 20


def jsonl_input(file: Any, name: str, options: Options, hide: Callable[[str], str] = str) -> Input:
    """JSON Lines from a binary file, compressed or not."""
    import io

    import pyarrow as pa
    from pyarrow import json as pajson

    with as_input_error(name, hide):
        stream = decompressed(file)
        head = _full(stream, JSONL_HEAD).removeprefix(b"\xef\xbb\xbf")
        whole = head[: head.rfind(b"\n") + 1] or head
        if not whole.strip():
            raise InputError(f"{name}: is empty", code="input.empty", input=name)
        # one block of any size
        at_once = pajson.ReadOptions(block_size=max(len(whole), 1))
        schema = pajson.open_json(io.BytesIO(whole), at_once).schema
        needed = needed_of(schema, name, options)
        columns = [schema.field(column) for column in needed]
        parse = pajson.ParseOptions(
            explicit_schema=pa.schema([_jsonl_type(field, pa) for field in columns]),
            unexpected_field_behavior="ignore",
        )
        batches = _jsonl_batches(head, stream, parse)
        rows = pa.RecordBatchReader.from_batches(parse.explicit_schema, batches)
        return Input(name, "arrow", rows, columns=tuple(schema.names))


def _full(stream: Any, size: int) -> bytes:
    """``size`` bytes, fewer only at the end: one read of a pipe may return fewer."""
    parts: list[bytes] = []
    while size > 0:
        part = stream.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _jsonl_batches(head: bytes, stream: Any, parse: Any) -> Iterator[pa.RecordBatch]:
    """The rows of whole lines, block by block.

    The streaming reader of pyarrow is not used: after damaged input its read-ahead threads call
    back into Python while the process exits, which ends it with SIGABRT.
    """
    import pyarrow as pa
    from pyarrow import json as pajson

    row, rest, more = 0, b"", head
    while more:
        data = rest + more
        more = _full(stream, JSONL_BLOCK)
        end = data.rfind(b"\n") + 1 if more else len(data)
        block, rest = data[:end], data[end:]
        if len(rest) > JSONL_LINE:
            raise pa.ArrowInvalid(f"a line of over {JSONL_LINE >> 20} MiB after row {row:,}")
        if not block.strip():
            continue
        # one block of any size
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
    """The field to read a column as: text, where pyarrow would convert text to timestamps."""
    if pa.types.is_timestamp(field.type) or pa.types.is_null(field.type):
        return pa.field(field.name, pa.string())
    if pa.types.is_integer(field.type) and field.name.lower() == "priority":
        return pa.field(field.name, pa.float64())  # 1 in the sample may be 0.5 a million rows later
    return field
