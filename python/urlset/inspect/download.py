"""One sitemap over HTTP into a file, within limits."""

from __future__ import annotations

import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import httpx

from ..errors import InputError
from ..transport import ExchangeError, PrivateAddressError
from ..transport.budget import Budget
from ..transport.client import Client
from ..transport.retry import MAX_REDIRECTS, backoff, is_transient, redirected, retry_after
from .inflate import gunzip, is_gzip

#: bytes of one file, as received and after Content-Encoding is undone: a sitemap has at most
#: 50 MiB before compression
MAX_BYTES = 256 << 20
#: bytes of all files of a target on disk
MAX_TOTAL = 16 << 30
#: characters of a URL: more than crawlers accept, so that verify can still report its length
MAX_URL = 8_192
MAX_ATTEMPTS = 3
#: seconds before the second attempt, and the maximum
BACKOFF, MAX_WAIT = 0.5, 10.0
#: seconds for one file, redirects and retries included, and for one operation on a connection
DEADLINE, TIMEOUT = 300.0, 30.0
#: seconds for all files of a target
TARGET_DEADLINE = 3_600.0

_BLOCK = 1 << 16


class DownloadError(Exception):
    """A file was not fetched.

    Attributes:
        code: ``fetch.failed``, ``fetch.refused``, ``fetch.status`` or ``fetch.encoding``.
        retry: another attempt can succeed.
        after: seconds to wait that the server asks for.
    """

    def __init__(self, code: str, message: str, *, retry: bool = False, after: float = 0.0) -> None:
        super().__init__(message)
        self.code = code
        self.retry = retry
        self.after = after


def too_late() -> DownloadError:
    message = f"not fetched: {TARGET_DEADLINE:,.0f} s for all files are over"
    return DownloadError("fetch.failed", message)


@dataclass
class Download:
    """A fetched file.

    Attributes:
        notes: (code, message) of what is unusual in the answer.
    """

    path: Path
    notes: list[tuple[str, str]] = field(default_factory=list)


class Downloader:
    """Fetches the files of one target into a folder; safe to use from several threads.

    Args:
        folder: its owner removes it after :meth:`stop`.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._lock = threading.Lock()
        self._count = 0
        self._total = 0
        self._stopped = False
        self._end = time.monotonic() + TARGET_DEADLINE

    def left(self) -> float:
        """Seconds left for the target; negative when they are over."""
        return self._end - time.monotonic()

    def stop(self) -> None:
        """Creates no file from now on."""
        with self._lock:
            self._stopped = True

    def get(self, url: str) -> Download:
        """Fetches one file, with retries.

        Raises:
            DownloadError: it cannot be fetched.
            InputError: ``fetch.disk``: the disk is full.
        """
        left = self.left()
        if left <= 0:
            raise too_late()
        with Budget(min(DEADLINE, left), MAX_BYTES, min_rate=True) as budget:
            for attempt in range(MAX_ATTEMPTS):
                try:
                    return self._attempt(url)
                except DownloadError as error:
                    wait = min(error.after or backoff(attempt, BACKOFF, MAX_WAIT), MAX_WAIT)
                    last = attempt + 1 == MAX_ATTEMPTS
                    if not error.retry or last or wait >= budget.left():
                        raise
                    time.sleep(wait)
        raise AssertionError  # the loop returns or raises

    def _attempt(self, url: str) -> Download:
        """Fetches one file; redirects are followed here, so that each hop is checked."""
        address = url
        try:
            for _ in range(MAX_REDIRECTS + 1):
                with self._client.exchange("GET", _checked(address)) as response:
                    if response.has_redirect_location:
                        address = _redirected(address, response.headers["Location"])
                        continue
                    _check_status(response)
                    done = self._save(response, address)
                if address != url:
                    done.notes.insert(0, ("fetch.redirect", f"redirected to {address}"))
                return done
        except PrivateAddressError as error:
            raise DownloadError("fetch.refused", str(error)) from None
        except ExchangeError as error:
            raise DownloadError("fetch.failed", str(error), retry=error.retry) from None
        raise DownloadError("fetch.failed", f"more than {MAX_REDIRECTS} redirects")

    def _save(self, response: httpx.Response, address: str) -> Download:
        """Writes the body after decoding its Content-Encoding."""
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise DownloadError("fetch.encoding", f"Content-Encoding {encoding} was not asked for")
        with self._lock:
            self._count += 1
            path = self._folder / f"{self._count:06}"
        with self._create(path) as file:
            for block in response.iter_raw(_BLOCK):
                file.write(block)
        if encoding in ("", "identity"):
            return Download(path)
        with path.open("rb") as source:
            if not is_gzip(source):
                note = "Content-Encoding is gzip, the bytes are not"
                return Download(path, [("fetch.encoding", note)])
        named_gz = urlsplit(address).path.lower().endswith(".gz")
        plain = self._gunzip(path)
        with plain.open("rb") as source:
            twice = is_gzip(source)
        # of a .gz with Content-Encoding, some clients undo one layer, some two, some none
        kept = plain if twice or not named_gz else path
        if plain != path:
            self._remove(path if kept == plain else plain)
        if named_gz:
            return Download(kept, [("fetch.encoding", "a .gz file with Content-Encoding: gzip")])
        return Download(kept, [("fetch.encoding", "compressed twice")] if twice else [])

    def _gunzip(self, path: Path) -> Path:
        """Decodes gzip; damaged data is kept, and its reader reports it."""
        out = path.with_suffix(".plain")
        try:
            with path.open("rb") as source, self._create(out) as target:
                for block in gunzip(source):
                    target.write(block)
        except zlib.error:
            return path
        return out

    @contextmanager
    def _create(self, path: Path) -> Iterator[_LimitedFile]:
        """A new file, removed where the block fails."""
        with self._lock:
            if self._stopped:
                raise DownloadError("fetch.failed", "stopped")
        try:
            with path.open("wb") as file:
                yield _LimitedFile(self, file)
        except OSError as error:  # of the disk: the transport raises other exceptions
            self._remove(path)
            raise InputError(
                f"{tempfile.gettempdir()}: fetched files cannot be written: {error.strerror};"
                " free some space, or set TMPDIR to another folder",
                code="fetch.disk",
            ) from None
        except BaseException:
            self._remove(path)
            raise

    def _remove(self, path: Path) -> None:
        try:
            size = path.stat().st_size
            path.unlink()
        except OSError:
            return  # the folder is removed already
        with self._lock:
            self._total -= size

    def grow(self, size: int) -> None:
        """Counts bytes that are written to disk."""
        with self._lock:
            if self._total + size > MAX_TOTAL:
                raise DownloadError("fetch.failed", f"more than {MAX_TOTAL:,} bytes in all files")
            self._total += size


class _LimitedFile:
    """A file that counts its bytes for itself and for the target."""

    def __init__(self, downloader: Downloader, file: BinaryIO) -> None:
        self._downloader, self._file = downloader, file
        self._size = 0

    def write(self, block: bytes) -> None:
        self._size += len(block)
        if self._size > MAX_BYTES:
            raise DownloadError("fetch.failed", f"more than {MAX_BYTES:,} bytes in one file")
        self._downloader.grow(len(block))
        self._file.write(block)


def _checked(address: str) -> httpx.URL:
    """The URL of a request.

    Raises:
        DownloadError: it is not an http or https URL.
    """
    if len(address) > MAX_URL:
        raise DownloadError("fetch.refused", f"a URL of more than {MAX_URL:,} characters")
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError, TypeError):  # ValueError: all errors of encoding
        raise DownloadError("fetch.refused", "not a URL") from None
    try:
        has_host = bool(url.host)
    except ValueError as error:  # the host is not legal IDNA
        raise DownloadError("fetch.failed", str(error)) from None
    if url.scheme not in ("http", "https") or not has_host:
        raise DownloadError("fetch.refused", "only http and https are fetched")
    return url


def _redirected(base: str, location: str) -> str:
    address = redirected(base, location)
    if address is None:
        raise DownloadError("fetch.refused", "redirected to what is not a URL")
    return address


def _check_status(response: httpx.Response) -> None:
    if response.status_code != 200:
        raise DownloadError(
            "fetch.status",
            f"HTTP status {response.status_code}",
            retry=is_transient(response.status_code),
            after=retry_after(response.headers) or 0.0,
        )
