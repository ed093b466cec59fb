"""One input as the core takes it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from ...errors import ConfigError, InputError


@runtime_checkable
class ArrowStream(Protocol):
    """Anything with an Arrow C stream: pyarrow, Polars, DuckDB, pandas, ADBC."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Source: TypeAlias = "str | os.PathLike[str] | ArrowStream"

FileFormat: TypeAlias = Literal["csv", "lines", "parquet", "ipc"]


#: words of errors that are those of a network
NETWORK = re.compile(
    r"curl|time[d-]? ?out|connect|network|resolve|unreachable|aws error|unavailable|ssl|reset", re.I
)
#: of a file that is written
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Feed:
    """One input as the core takes it.

    Attributes:
        name: what errors and rejects show; the path of a file, a URI without its secrets.
        format: ``csv``, ``lines``, ``parquet`` or ``ipc`` for a file, ``arrow`` for a stream.
        stream: an object with ``__arrow_c_stream__``; None for a file.
        begun: the descriptor of a file that is open, and what was read of it; None where the core
            opens ``name`` itself.
        rows: how many a stream has, where that is known at once.
        size: bytes of a file, 0 where unknown.
        columns: all columns of the input that a stream was made from, also those that it leaves
            out; None where only the core, or the stream itself, knows them.
        gaps: where the stream lacks rows that ``where`` leaves out: before which of its rows, and
            how many.
        skipped: files of the same folder that are no data.
        close: to be called when the core has read it, or will not; raises what the core could not
            see.
    """

    name: str
    format: Literal["csv", "lines", "parquet", "ipc", "arrow"]
    stream: ArrowStream | None = None
    begun: tuple[int, bytes] | None = None
    rows: int | None = None
    size: int = 0
    columns: tuple[str, ...] | None = None
    gaps: tuple[tuple[int, int], ...] = ()
    skipped: tuple[str, ...] = ()
    close: Callable[[], None] = field(default=_nothing)

    @property
    def handle(self) -> Any:
        """What the core reads in place of the file ``name``: a stream, an open file, or None."""
        return self.stream if self.stream is not None else self.begun


def file_format(name: str) -> FileFormat:
    """``name``, which is one that the core reads from files."""
    return cast(FileFormat, name)


class readable:
    """Turns what pyarrow and the system raise on opening into an InputError.

    Args:
        name: what errors show.
        hide: takes the secrets of a URI out of a text.
        code: of whatever is not a missing file.
        remote: errors of a network are ``input.unreachable``.
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
            elif self.remote and isinstance(error, OSError) and NETWORK.search(str(error)):
                code = "input.unreachable"
            said = self.hide(str(error)).strip().splitlines()
            what = said[0] if said else type(error).__name__
            raise InputError(f"{self.name}: {what}", code=code, input=self.name) from None
