"""The URLs to announce: the change feed of a build, or a plain list; read as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from ..errors import ConfigError, InputError

CHANGES = ("added", "changed", "removed")

#: characters of a line
MAX_LINE = 1 << 20

#: names of the column of URLs, the preferred one first
_COLUMNS = ("loc", "url")
#: rows of a batch of Parquet, and bytes that are read at once
_BATCH, _BUFFER = 8_192, 1 << 20
#: characters of a value, of a column name and of a Parquet error that a message quotes; columns
_QUOTE, _ERROR_QUOTE, _COLUMNS_QUOTED = 40, 120, 20


class Row(NamedTuple):
    """One row of a list.

    Attributes:
        number: 1 for the first row after a header.
        change: one of :data:`CHANGES`; ``None`` in a plain list.
    """

    number: int
    url: str
    change: str | None


def read_url_list(path: Path, *, changes: bool) -> Iterator[Row]:
    """The rows of ``path``. Its extension decides the format: ``.parquet``, ``.csv``, ``.jsonl``;
    any other file has one URL per line.

    Args:
        changes: whether the file is a change feed with the columns ``change`` and ``loc``;
            of a plain list only the column ``loc`` (or ``url``) is read.

    Raises:
        ConfigError: ``feed.column``, ``feed.format``.
        InputError: ``feed.unreadable``, ``feed.damaged``, ``feed.change``; with the row.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        rows = _parquet(path, changes)
    elif suffix == ".csv":
        rows = _csv(path, changes)
    elif suffix in (".jsonl", ".ndjson"):
        rows = _jsonl(path, changes)
    elif changes:
        raise ConfigError(
            f"--changes {path}: the name of a change feed ends in .csv, .jsonl or .parquet;"
            " give a plain list of URLs with --urls",
            code="feed.format",
        )
    else:
        rows = _lines(path)
    for row in rows:
        if changes and row.change not in CHANGES:
            raise InputError(
                f"{path}: row {row.number}: change is {str(row.change)[:_QUOTE]!r},"
                " which is none of added, changed, removed",
                code="feed.change",
                input=str(path),
                row=row.number,
                column="change",
            )
        yield row


def _damaged(path: Path, why: str, row: int | None = None) -> InputError:
    where = f"row {row}: " if row is not None else ""
    return InputError(f"{path}: {where}{why}", code="feed.damaged", input=str(path), row=row)


def _open(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", code="feed.unreadable", input=str(path)
        ) from None


def _read_lines(path: Path, file: TextIO) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(MAX_LINE + 1)
        except UnicodeDecodeError:
            raise _damaged(path, "is not UTF-8") from None
        except OSError as error:
            raise _damaged(path, f"cannot be read: {error.strerror}") from None
        if not line:
            return
        if len(line) > MAX_LINE:
            raise _damaged(path, f"line {number} is longer than {MAX_LINE:,} characters")
        yield line


def _pick(path: Path, names: list[str], changes: bool) -> tuple[str, str | None]:
    """The names of the columns of the URL and of the change."""
    loc = next((name for name in _COLUMNS if name in names), None)
    missing = "loc" if loc is None else "change" if changes and "change" not in names else None
    if loc is None or missing is not None:
        found = ", ".join(repr(name[:_QUOTE]) for name in names[:_COLUMNS_QUOTED]) or "none"
        raise ConfigError(f"{path}: no column {missing!r}, only {found}", code="feed.column")
    return loc, "change" if changes else None


def _lines(path: Path) -> Iterator[Row]:
    with _open(path) as file:
        for number, line in enumerate(_read_lines(path, file), 1):
            if url := line.strip():
                yield Row(number, url, None)


def _csv(path: Path, changes: bool) -> Iterator[Row]:
    import csv

    with _open(path) as file:
        reader = csv.reader(_read_lines(path, file), strict=True)
        number = 0
        try:
            header = next(reader, [])
            loc, change = _pick(path, header, changes)
            loc_at, change_at = header.index(loc), header.index(change) if change else None
            last = max(loc_at, change_at or 0)
            for number, cells in enumerate(reader, 1):
                if not cells:
                    continue
                if len(cells) <= last:
                    raise _damaged(path, f"{len(cells)} cells instead of {len(header)}", number)
                kind = cells[change_at] if change_at is not None else None
                yield Row(number, cells[loc_at], kind)
        except csv.Error as error:
            raise _damaged(path, f"damaged CSV: {error}", number + 1) from None


def _jsonl(path: Path, changes: bool) -> Iterator[Row]:
    with _open(path) as file:
        for number, line in enumerate(_read_lines(path, file), 1):
            if not line.strip():
                continue
            value: Any = None
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                raise _damaged(path, "is not JSON", number) from None
            if isinstance(value, str) and not changes:
                yield Row(number, value, None)
                continue
            if not isinstance(value, dict):
                raise _damaged(path, "is not a JSON object", number)
            loc, change = _pick(path, list(value), changes)
            if not isinstance(value[loc], str):
                raise _damaged(path, f"{loc} is not a string", number)
            yield Row(number, value[loc], value[change] if change else None)


def _parquet(path: Path, changes: bool) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=_BUFFER) as file:
            loc, change = _pick(path, file.schema_arrow.names, changes)
            wanted = [loc, change] if change else [loc]
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted, use_threads=False):
                urls = batch.column(loc).to_pylist()
                kinds = batch.column(change).to_pylist() if change else [None] * len(urls)
                for url, kind in zip(urls, kinds, strict=True):
                    number += 1
                    if not isinstance(url, str):
                        raise _damaged(path, f"{loc} is not a string", number)
                    yield Row(number, url, kind)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror or 'damaged Parquet'}",
            code="feed.unreadable",
            input=str(path),
        ) from None
    except pa.ArrowException as error:
        first = (str(error).splitlines() or [""])[0]
        raise _damaged(path, f"damaged Parquet: {first[:_ERROR_QUOTE]}", number + 1) from None
