"""Sitemaps of any producer as rows."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from .. import _core
from ..errors import ConfigError, InputError
from ..rows import Rows
from ..threads import available_cores
from .lookup import find
from .options import ReadOptions
from .targets import Found

if TYPE_CHECKING:
    from typing import Unpack

    from ..keywords import ReadKeywords


def read(target: str | os.PathLike[str], **options: Unpack[ReadKeywords]) -> Rows:
    """Read a sitemap, an index with its sitemaps, a folder, or an http(s) URL.

    The columns, in the order of the files and their entries:

    =============  ====================================  =========================================
    loc            string
    lastmod        timestamp[us, UTC]                    a date is its midnight; null if it is not
                                                         a W3C Datetime
    lastmod_text   string                                as written
    changefreq     string                                as written
    priority       double                                null if it is not a number
    images         list<string>
    alternates     list<struct<lang, href>>
    video          list<struct<thumbnail_loc, ...>>
    news           struct<name, language, ...>
    shard          string                                the file that contains it
    =============  ====================================  =========================================

    Args:
        target: a file, a folder or a URL, of any producer, plain or gzip, XML or text.
        options: those of ``urlset read --help``, with underscores. Without ``lenient`` the first
            damaged file or entry without loc is an error.

    Returns:
        Rows that can be read any number of times, each time from the files: ``read_all()`` for a
        ``pyarrow.Table``, iteration for batches, ``__arrow_c_stream__`` for everything else.

    Raises:
        InputError: the target does not exist or contains no sitemap; while reading, also damage
            with the codes of ``verify``, such as ``xml.truncated``.
    """
    chosen = ReadOptions(**options)
    stack = ExitStack()
    try:
        found = stack.enter_context(find(target, allow_private=chosen.allow_private))
        must_be_whole(found, chosen.lenient)
        files = [(item.path, item.name) for item in found.items]
        count = thread_count(chosen.threads)
        return Rows(_core.read_stream(files, count, chosen.lenient, stack), stack, count)
    except BaseException:
        stack.close()
        raise


def must_be_whole(found: Found, lenient: bool) -> None:
    """Raises InputError for a missing file that an index lists, unless ``lenient``."""
    if lenient:
        return
    for defect in found.problems:
        code, file = defect.code, defect.file
        missing = code in ("index.missing_file", "file.unreadable") or code.startswith("fetch.")
        if missing and code != "fetch.redirect":
            where = f"{file}: line {defect.line}" if defect.line else file
            what = f" ({defect.url})" if defect.url else ""
            raise InputError(f"{where}: {defect.message}{what}", code=code, input=file)


def thread_count(threads: int | None) -> int:
    """The number of threads: the option, else one for each core that this process may use."""
    if threads is None:
        return available_cores()
    if threads < 1:
        raise ConfigError("threads must be at least 1", code="read.options")
    return threads
