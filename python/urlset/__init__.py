"""Catalogs of millions of rows to sitemaps, at the speed at which gzip can write them."""

from ._core import __version__
from .build import build
from .errors import (
    AnnounceError,
    ConfigError,
    DataError,
    Error,
    InputError,
    PublishError,
    RejectLimitError,
)
from .report import Report

__all__ = [
    "AnnounceError",
    "ConfigError",
    "DataError",
    "Error",
    "InputError",
    "PublishError",
    "RejectLimitError",
    "Report",
    "__version__",
    "build",
]
