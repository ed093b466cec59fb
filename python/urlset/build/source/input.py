"""One input as the core takes it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from ...errors import ConfigError, InputError
from ...system import native


@runtime_checkable
class ArrowStream(Protocol):
    """Anything with an Arrow C stream: pyarrow, Polars, DuckDB, pandas, ADBC."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Source: TypeAlias = "str | os.PathLike[str] | ArrowStream"

FileFormat: TypeAlias = Literal["csv", "lines", "parquet", "ipc"]


#: words in errors of a network
NETWORK = (
    r"(?i)curl|time[d-]? ?out|connect|network|resolve|unreachable|aws error|unavailable|ssl|reset"
)
#: errors of a full disk
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Input:
    """One input as the core takes it.

    Attributes:
        name: the name in errors and rejects: the path of a file, a URI without its secrets.
        format: ``csv``, ``lines``, ``parquet`` or ``ipc`` for a file, ``arrow`` for a stream.
        stream: an object with ``__arrow_c_stream__``; None for a file.
        begun: the descriptor of an open file, and the bytes that were read from it; None if the
            core opens ``name`` itself.
        remote: an object in a store, with ``read`` or, for Parquet, with ``read_at``.
        rows: the number of rows of a stream, if known without reading it.
        size: the size of a file in bytes, 0 if unknown.
        columns: all columns of the input behind a stream, also those that the stream omits; None
            if only the core or the stream knows them.
        gaps: the rows that ``where`` excludes and that the stream omits: the row of the stream
            after the gap, and the number of omitted rows.
        skipped: files in the same folder that are not data.
        close: called when the core has finished; raises errors that the core cannot see.
    """

    name: str
    format: Literal["csv", "lines", "parquet", "ipc", "arrow"]
    stream: ArrowStream | None = None
    begun: tuple[int, bytes] | None = None
    remote: Any = None
    rows: int | None = None
    size: int = 0
    columns: tuple[str, ...] | None = None
    gaps: tuple[tuple[int, int], ...] = ()
    skipped: tuple[str, ...] = ()
    close: Callable[[], None] = field(default=_nothing)

    @property
    def handle(self) -> Any:
        """What the core reads instead of the file ``name``: a stream, an open file, or None."""
        if self.stream is not None:
            return self.stream
        if self.remote is not None or self.begun is None:
            return self.remote
        descriptor, head = self.begun
        return native(descriptor), head


def file_format(name: str) -> FileFormat:
    """``name`` as a format that the core reads from files."""
    return cast(FileFormat, name)


class as_input_error:
    """A context that converts errors of pyarrow and the operating system to InputError.

    Args:
        name: the name in errors.
        hide: removes the secrets of a URI from a text.
        code: for errors other than a missing file.
        remote: errors of a network become ``input.unreachable``.
    """

    def __init__(
        self,
        name: str,
        hide: Callable[[str], str] = str,
        code: str = "input.damaged",
        *,
        remote: bool = False,
    ) -> None:
        self.name, self.hide, self.code, self.remote = name, hide, code, remote

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, (ConfigError, InputError)):
            return
        # pyarrow's exceptions are subclasses of these
        if isinstance(error, (OSError, ValueError, KeyError, NotImplementedError, EOFError)):
            code = self.code
            if isinstance(error, FileNotFoundError):
                code = "input.missing"
            elif isinstance(error, OSError) and error.errno in NO_ROOM:
                return
            elif self.remote and isinstance(error, OSError) and re.search(NETWORK, str(error)):
                code = "input.unreachable"
            lines = self.hide(str(error)).strip().splitlines()
            what = lines[0] if lines else type(error).__name__
            raise InputError(f"{self.name}: {what}", code=code, input=self.name) from None
