"""Catalogs of millions of rows to sitemaps, at the speed at which gzip can write them."""

import typing

from ._core import __version__
from .announce import announce  # the function, which imports its modules when it is called
from .build import build
from .diff import diff
from .errors import (
    AnnounceError,
    ConfigError,
    DataError,
    Error,
    InputError,
    PublishError,
    RejectLimitError,
)
from .read import read
from .report import Report
from .verify import verify

if typing.TYPE_CHECKING:
    from .announce import AnnounceReport

__all__ = [
    "AnnounceError",
    "AnnounceReport",
    "ConfigError",
    "DataError",
    "Error",
    "InputError",
    "PublishError",
    "RejectLimitError",
    "Report",
    "__version__",
    "announce",
    "build",
    "diff",
    "read",
    "verify",
]


def __getattr__(name: str) -> typing.Any:
    if name == "AnnounceReport":
        from .announce.report import AnnounceReport

        return AnnounceReport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
