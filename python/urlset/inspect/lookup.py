"""The sitemap files of a target: a file, a folder, an index, an http(s) URL, an object store."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError
from ..outfile import is_store
from .folder import files_of_file, files_of_folder
from .targets import Found


def is_url(target: str) -> bool:
    """Whether ``target`` is a URL and not a path."""
    return target.partition("://")[0].lower() in ("http", "https")


@contextmanager
def find(target: str | os.PathLike[str], *, allow_private: bool = False) -> Iterator[Found]:
    """The files of a target; fetched ones exist until the end of the block.

    Args:
        allow_private: also fetch from private addresses.

    Raises:
        InputError: ``target.missing``, ``target.unreadable``, ``target.kind``, ``target.empty``,
            and the codes of a URL that cannot be fetched.
    """
    if is_store(target):
        from .store import stored

        with stored(target) as found:
            yield found
        return
    text = os.fspath(target)
    if is_url(text):
        from .fetch import fetched  # httpx takes 60 ms

        with fetched(text, allow_private=allow_private) as found:
            yield found
        return
    path = Path(text)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise InputError(
            f"{text}: no such file or folder", code="target.missing", input=text
        ) from None
    except OSError as error:
        raise InputError(
            f"{text}: cannot be read: {error.strerror}", code="target.unreadable", input=text
        ) from None
    if stat.S_ISDIR(mode):
        yield files_of_folder(path)
    elif stat.S_ISREG(mode):
        yield files_of_file(path)
    else:  # a pipe cannot be read twice
        raise InputError(f"{text}: neither a file nor a folder", code="target.kind", input=text)
