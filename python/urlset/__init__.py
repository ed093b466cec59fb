"""Catalogs of millions of rows to sitemaps, at the speed at which gzip can write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._core import __version__
from .errors import (
    AnnounceError,
    ConfigError,
    DataError,
    Error,
    InputError,
    PublishError,
    RejectLimitError,
)

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

if TYPE_CHECKING:
    from .diff import diff
    from .read import read
    from .verify import verify

_LAZY = ("diff", "read", "verify")  # imported when they are used: start-up counts


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{name}", __name__), name)
    globals()[name] = value
    return value

