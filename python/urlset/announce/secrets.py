"""Keys from the environment or a file, never from the command line, which ``ps`` shows."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from ..errors import ConfigError
from ..transport.keyring import Keyring

#: bytes of a key file: the JSON of a service account has about 2,400
MAX_KEY_FILE = 1 << 16


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
    variable: str,
    file: Path | None,
    form: str,
    form_in_words: str,
    where_to_get: str,
) -> str:
    """The key of an engine: from ``file`` if given, else from the environment.

    Args:
        form: a regular expression that the whole key must match.

    Raises:
        ConfigError: ``ENGINE.no_key``, ``ENGINE.key_file``, ``ENGINE.bad_key``.
    """
    key, origin = os.environ.get(variable, "").strip(), f"the variable {variable}"
    if file is not None:
        key, origin = read_key_file(file, engine=engine), f"the file {file}"
    if not key:
        raise ConfigError(
            f"no {engine} key: set {variable}, or give --key-file {engine}=PATH ({where_to_get})",
            code=f"{engine}.no_key",
        )
    keyring.add(key)
    if not re.fullmatch(form, key):
        raise ConfigError(
            f"the {engine} key in {origin} has a wrong format: it must be {form_in_words}",
            code=f"{engine}.bad_key",
        )
    return key
