"""The pages that were judged, in a file: an audit continues with it, and findings come from it.

Lines of JSON: a header, then an array for each page. A line that a killed audit left incomplete at
the end is cut off.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..errors import ConfigError, InputError, PublishError
from ..system import try_lock
from .crawl import Page
from .page import Fact, Rules
from .report import CODES

#: the version of the format
FORMAT = 1
#: seconds after which written pages are passed to the system, so that a kill does not lose them
FLUSH_SECONDS = 1.0
#: json.dumps makes an encoder for each call with these separators: 20 µs instead of 5
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


class Journal:
    """Judged pages.

    Args:
        path: None for a file that nothing else can read.
        rules: pages that were judged by others cannot be used.

    Raises:
        ConfigError: ``audit.resume``: a file of another kind, or of other rules.
        PublishError: ``audit.resume``: it cannot be written.
    """

    def __init__(self, path: Path | None, rules: Rules) -> None:
        self._name = str(path)
        self._flushed = time.monotonic()
        header = {"urlset_audit": FORMAT, **rules._asdict()}
        try:
            if path is None:
                self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
            else:
                mode = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
                self._file = os.fdopen(os.open(path, mode, 0o666), "r+b")
            if not try_lock(self._file.fileno()):
                raise self._wrong("another audit is writing to it")
            line = json.dumps(header).encode() + b"\n"
            first = self._file.readline(1 << 16)
            if line.startswith(first) and line != first:  # new, or killed at once
                self._file.seek(0)
                self._file.write(line)
            else:
                self._check(first, header)
                self._file.seek(self._end())
            self._file.truncate()
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> PublishError:
        place = tempfile.gettempdir() if self._name == "None" else self._name
        return PublishError(f"resume: {place}: {error.strerror}", code="audit.resume")

    def _wrong(self, why: str) -> ConfigError:
        return ConfigError(
            f"resume: {self._name}: {why}; name another file, or remove it", code="audit.resume"
        )

    def _check(self, first: bytes, header: dict[str, object]) -> None:
        try:
            found = json.loads(first)
        except ValueError:
            found = None
        if not isinstance(found, dict) or "urlset_audit" not in found:
            raise self._wrong("is not the file of an audit")
        if found != header:
            raise self._wrong("its pages were judged with other options")

    def _end(self) -> int:
        """The offset behind the last complete line."""
        end = self._file.seek(0, os.SEEK_END)
        at = end
        while at > 0:
            begin = max(0, at - (1 << 16))
            self._file.seek(begin)
            found = self._file.read(at - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            at = begin
        return 0

    def add(self, page: Page) -> None:
        """Appends a page.

        Raises:
            PublishError: ``audit.resume``: it cannot be written.
        """
        values = (page.loc, page.status, page.facts, page.content_type, page.seconds)
        try:
            self._file.write(_encode(values).encode() + b"\n")
            now = time.monotonic()
            if now - self._flushed > FLUSH_SECONDS:
                self._flushed = now
                self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def __iter__(self) -> Iterator[Page]:
        """All pages in the order in which they were judged; not while pages are added.

        Raises:
            InputError: ``audit.resume``: a line is damaged.
        """
        self._file.flush()
        with os.fdopen(os.dup(self._file.fileno()), "rb") as file:
            file.seek(0)
            file.readline()
            for number, line in enumerate(file, 2):
                try:
                    loc, status, facts, kind, seconds = _decode(line.decode())
                    page = Page(loc, status, tuple(Fact(*fact) for fact in facts), kind, seconds)
                    if not all(fact.code in CODES for fact in page.facts):
                        raise ValueError
                except (ValueError, TypeError):
                    raise InputError(
                        f"resume: {self._name}: line {number} is damaged; remove the file",
                        code="audit.resume",
                    ) from None
                yield page
            file.seek(0, os.SEEK_END)  # the position is that of the writer, too

    def close(self) -> None:
        self._file.close()
