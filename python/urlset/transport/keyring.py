"""Keys in URLs and headers, masked in every text.

Everything that is printed, logged, reported or raised passes through :meth:`Keyring.hide` first.
"""

from __future__ import annotations

import json
import logging
from urllib.parse import quote, quote_plus

MASK = "***"

# httpx logs the URL of each request at INFO, and the query of Bing's URLs contains the key
_LOGGERS = (
    "httpx",
    "httpcore.connection",
    "httpcore.http11",
    "httpcore.http2",
    "httpcore.proxy",
)


class Keyring(logging.Filter):
    """The keys of one run. As a context manager it also masks them in the log lines of httpx."""

    def __init__(self) -> None:
        super().__init__()
        self._forms: list[str] = []

    def __repr__(self) -> str:
        return "Keyring(***)"

    def add(self, key: str) -> str:
        """Adds ``key`` in every form in which a URL, a body or an answer can contain it."""
        forms = {key, quote(key, safe=""), quote_plus(key), json.dumps(key)[1:-1], repr(key)[1:-1]}
        self._forms = sorted({*self._forms, *forms}, key=len, reverse=True)
        return key

    def hide(self, text: str) -> str:
        """``text`` with each key as ``***``."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self.hide(record.getMessage()), None
        return True

    def __enter__(self) -> Keyring:
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)
