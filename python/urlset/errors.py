"""The exceptions of urlset.

Error                   everything below; ``.code`` is stable, ``.exit_status`` is the command's
├── ConfigError         wrong options, a missing or ambiguous column         exit 2
├── InputError          input missing, unreadable or damaged                 exit 3
├── DataError           the data says no, nothing was published              exit 1
│   └── RejectLimitError    more rejected rows than ``max_rejects`` allows
├── PublishError        output not writable, folder held by another build    exit 3
│   └── ConflictError       another build published since the job was planned
└── AnnounceError       a search engine said no                              exit 1
"""

from __future__ import annotations


class Error(Exception):
    """Above all errors of urlset.

    Attributes:
        code: stable, such as ``csv.unclosed_quote``.
        exit_status: what the command line ends with.
    """

    exit_status = 1

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class ConfigError(Error):
    """Wrong options, or a column that is missing or ambiguous.

    Attributes:
        columns: those of the input, where one of them is missing or ambiguous and they are known.
    """

    exit_status = 2

    def __init__(self, message: str, *, code: str, columns: tuple[str, ...] | None = None) -> None:
        super().__init__(message, code=code)
        self.columns = columns


class InputError(Error):
    """Input that is missing, unreadable or damaged.

    Attributes:
        input: the file as it was named, ``-`` for standard input.
        row: 1 for the first row after the header.
        column: by name.
    """

    exit_status = 3

    def __init__(
        self,
        message: str,
        *,
        code: str,
        input: str | None = None,
        row: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.input = input
        self.row = row
        self.column = column


class DataError(Error):
    """The data says no: no valid row, duplicates under ``fail``, a set that shrank too far."""

    exit_status = 1


class RejectLimitError(DataError):
    """More rows were rejected than ``max_rejects`` allows."""


class PublishError(Error):
    """The output cannot be written, or another build holds the folder."""

    exit_status = 3


class ConflictError(PublishError):
    """Another build published to the same destination since the job was planned."""


class AnnounceError(Error):
    """A search engine refused what was sent, or could not be asked."""

    exit_status = 1
