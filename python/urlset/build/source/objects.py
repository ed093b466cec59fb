"""Python objects with rows, and what to pass instead of objects without."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ...errors import ConfigError
from ...interruptible import interruptible
from ...options import Options
from .input import ArrowStream, Input, as_input_error
from .scan import checked, scan

#: what to pass instead of an object, by the module and the name of its type
ALTERNATIVES = {
    ("duckdb", "DuckDBPyConnection"): "a query of it: con.sql('select url from products')",
    ("polars", "LazyFrame"): "frame.collect()",
    ("polars", "Series"): "series.to_frame('loc')",
    ("pandas", "Series"): "series.to_frame('loc')",
    ("pyarrow", "ChunkedArray"): "pyarrow.table({'loc': array})",
    ("numpy", "ndarray"): "pyarrow.table({'loc': pyarrow.array(array)})",
    ("sqlite3", "Connection"): "a table, such as pandas.read_sql('select …', connection)",
    ("sqlite3", "Cursor"): "a table, such as pandas.read_sql('select …', connection)",
    ("pyspark", "DataFrame"): "frame.toArrow()",
}


def object_input(source: Any, options: Options) -> Input:
    """The input of an object.

    Raises:
        ConfigError: ``config.input``: the object has no rows; the message contains what to pass.
    """
    module = type(source).__module__.split(".")[0].lstrip("_")
    name = f"<{module} {type(source).__name__}>"
    hint = ALTERNATIVES.get((module, type(source).__name__)) or _hint(source)
    if hint is not None:
        raise ConfigError(f"{name} has no rows: pass {hint}", code="config.input")
    if type(source).__module__.startswith("adbc_driver_manager") and hasattr(
        source, "fetch_record_batch"
    ):
        from .database import cursor_input

        return cursor_input(source, name)
    if module == "pyarrow":
        source = _from_pyarrow(source, name, options)
        if isinstance(source, Input):
            return source
    if isinstance(source, ArrowStream):
        return Input(name, "arrow", source)
    if isinstance(source, Iterator):
        return Input(name, "arrow", checked(_from_iterator(source, name)))
    raise ConfigError(
        f"{name} has no rows: pass a path, something with __arrow_c_stream__, or an iterator of"
        " pyarrow record batches",
        code="config.input",
    )


def _hint(source: Any) -> str | None:
    """What to pass instead of an object of a common type."""
    if isinstance(source, Mapping):
        return "pyarrow.table(columns), or pyarrow.Table.from_pylist(rows) for a list of rows"
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "the path of a file, as text, or the parsed content"
    if isinstance(source, io.IOBase):
        return "the path of the file, or '-' for standard input"
    if isinstance(source, (set, frozenset)):
        return "pyarrow.table({'loc': sorted(urls)}), or a list of paths"
    if isinstance(source, type):
        return "an object, not its class"
    return None


def _from_pyarrow(source: Any, name: str, options: Options) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as pads

    if isinstance(source, pads.Dataset):
        with as_input_error(name):
            return interruptible(
                lambda: scan(source, name, options)
            )  # it may be in an object store
    if isinstance(source, pads.Scanner):
        return Input(name, "arrow", checked(source.to_reader()))
    if isinstance(source, pa.Array):
        raise ConfigError(
            f"{name} has no rows: pass pyarrow.table({{'loc': array}})", code="config.input"
        )
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return Input(name, "arrow", checked(source.to_reader()), rows=source.num_rows)
    if isinstance(source, pa.RecordBatchReader):
        return Input(name, "arrow", checked(source))
    return source


def _from_iterator(source: Iterator[Any], name: str) -> Any:
    """A reader of the record batches, or tables, of an iterator."""
    import pyarrow as pa

    first = next(source, None)
    if first is None:
        raise ConfigError(f"{name} is empty", code="config.input")
    if not isinstance(first, (pa.RecordBatch, pa.Table)):
        if isinstance(first, (str, bytes)):
            instead = "pyarrow.table({'loc': list(urls)}), or a list of paths"
        elif isinstance(first, Mapping):
            instead = "pyarrow.Table.from_pylist(list(rows))"
        else:
            instead = "an iterator of pyarrow record batches"
        raise ConfigError(
            f"{name} contains {type(first).__name__}, not record batches: pass {instead}",
            code="config.input",
        )

    def batches() -> Iterator[Any]:
        for part in chain([first], source):
            if isinstance(part, pa.Table):
                yield from part.to_batches()
            else:
                yield part

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def joined(sources: Iterable[Any]) -> list[Any]:
    """The sources; adjacent record batches of one schema become one table, numbered as one."""
    result: list[Any] = []
    batches: list[Any] = []

    def flush() -> None:
        if len(batches) > 1:
            import pyarrow as pa

            result.append(pa.Table.from_batches(batches))
        else:
            result.extend(batches)
        batches.clear()

    for source in sources:
        is_batch = type(source).__name__ == "RecordBatch" and hasattr(source, "schema")
        if batches and not (is_batch and source.schema.equals(batches[0].schema)):
            flush()
        if is_batch:
            batches.append(source)
        else:
            result.append(source)
    flush()
    return result


def refuse_pages(sources: Iterable[Any], options_format: str | None) -> None:
    """Refuses a list of page URLs: a list of strings is a list of inputs.

    Raises:
        ConfigError: ``config.input``.
    """
    from .names import by_ending

    if options_format is not None:
        return
    for source in sources:
        if not isinstance(source, str) or not source.lower().startswith(("http://", "https://")):
            continue
        if by_ending(source.partition("?")[0].partition("#")[0]) is None:
            from .secret import shown

            raise ConfigError(
                f"{shown(source)}: the strings of a list are paths and URIs of inputs; to publish"
                " a list of URLs pass urlset.build(pyarrow.table({'loc': urls}), …); if it is an"
                " input, name its format (format='csv')",
                code="config.input",
            )
