"""Catalogs of millions of rows to sitemaps, at the speed at which gzip can write them."""

from ._core import __version__
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
from .verify import verify

__all__ = [
    "AnnounceError",
    "ConfigError",
    "DataError",
    "Error",
    "InputError",
    "PublishError",
    "RejectLimitError",
    "__version__",
    "diff",
    "read",
    "verify",
]
