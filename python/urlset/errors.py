"""The exceptions of urlset.

Error                   base class; ``.code`` is stable, ``.exit_status`` is that of the command
├── ConfigError         wrong options, a missing or ambiguous column         exit 2
├── InputError          input missing, unreadable or damaged                 exit 3
├── DataError           a data check failed, nothing was published           exit 1
│   └── RejectLimitError    more rejected rows than ``max_rejects`` allows
├── PublishError        output not writable, folder locked by another build  exit 3
│   └── ConflictError       another build published since the job was planned
└── AnnounceError       a search engine rejected the request                 exit 1
"""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """The base class of all errors of urlset. ``str(error)`` is the message, position included.

    Attributes:
        code: stable, such as ``csv.unclosed_quote``.
        input: the file as it was named, ``-`` for standard input; None if unknown.
        row: 1 for the first row after the header; None if unknown.
        column: its name; None if unknown.
        exit_status: the exit status of the command line.
    """

    exit_status = 1

    def __init__(
        self,
        message: str,
        *,
        code: str,
        input: str | None = None,
        row: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.input = input
        self.row = row
        self.column = column

    def __reduce__(self) -> tuple[Any, ...]:
        # pickle would call the class with the message alone; tasks send errors to other processes
        return _restored, (type(self), str(self), self.__dict__)


def _restored(kind: type[Error], message: str, attributes: dict[str, Any]) -> Error:
    error = kind.__new__(kind, message)
    error.__dict__.update(attributes)
    return error


class ConfigError(Error):
    """Wrong options, or a column that is missing or ambiguous.

    Attributes:
        columns: all columns of the input, if the error is about one of them.
    """

    exit_status = 2
    columns: tuple[str, ...] | None = None


class InputError(Error):
    """Input that is missing, unreadable or damaged."""

    exit_status = 3


class DataError(Error):
    """A data check failed: no valid row, duplicates under ``fail``, a set that shrank too far."""

    exit_status = 1


class RejectLimitError(DataError):
    """More rows were rejected than ``max_rejects`` allows."""


class PublishError(Error):
    """The output cannot be written, or another build has locked the folder."""

    exit_status = 3


class ConflictError(PublishError):
    """Another build published to the same destination since the job was planned."""


class AnnounceError(Error):
    """A search engine rejected the request, or could not be reached."""

    exit_status = 1
