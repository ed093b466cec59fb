"""Keys: where they come from, and how they are kept out of every text.

A key is read from the environment or from a file, never from the command line, which ``ps`` shows.
Everything that is printed, logged, reported or raised passes through :meth:`Keyring.hide` first.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, quote_plus

from ..errors import ConfigError

MASK = "***"

#: bytes of a key file: the JSON of a service account has about 2,400
MAX_KEY_FILE = 1 << 16

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


def read_key_file(path: Path, *, engine: str) -> str:
    """The content of a key file without white space at both ends and a byte order mark.

    Raises:
        ConfigError: ``ENGINE.key_file``: unreadable, empty, too large or not text. The message
            contains the name of the file, never its content.
    """

    def wrong(why: str) -> ConfigError:
        return ConfigError(f"the {engine} key file {path} {why}", code=f"{engine}.key_file")

    try:
        with path.open("rb") as file:
            raw = file.read(MAX_KEY_FILE + 1)
    except OSError as error:
        raise wrong(f"cannot be read: {error.strerror}") from None
    if len(raw) > MAX_KEY_FILE:
        raise wrong(f"is larger than {MAX_KEY_FILE:,} bytes: not a key file")
    text = None
    with contextlib.suppress(UnicodeDecodeError):  # its message contains the content
        text = raw.decode("utf-8-sig").strip()
    if text is None:
        raise wrong("is not UTF-8 text")
    if not text:
        raise wrong("is empty")
    return text


def find_key(
    keyring: Keyring,
    *,
    engine: str,
    variables: Iterable[str],
    file: Path | None,
    form: str,
    form_in_words: str,
    where_to_get: str,
) -> str:
    """The key of an engine: from ``file`` if given, else from the first variable that is set.

    Args:
        form: a regular expression that the whole key must match.

    Raises:
        ConfigError: ``ENGINE.no_key``, ``ENGINE.key_file``, ``ENGINE.bad_key``.
    """
    names = list(variables)
    key, origin = None, ""
    if file is not None:
        key, origin = read_key_file(file, engine=engine), f"the file {file}"
    else:
        for name in names:
            if os.environ.get(name, "").strip():
                key, origin = os.environ[name].strip(), f"the variable {name}"
                break
    if key is None:
        raise ConfigError(
            f"no {engine} key: set {' or '.join(names)}, or give --key-file {engine}=PATH"
            f" ({where_to_get})",
            code=f"{engine}.no_key",
        )
    keyring.add(key)
    if not re.fullmatch(form, key):
        raise ConfigError(
            f"the {engine} key in {origin} has a wrong format: it must be {form_in_words}",
            code=f"{engine}.bad_key",
        )
    return key
