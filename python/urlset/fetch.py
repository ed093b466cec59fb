"""Sitemaps from http(s): the index and all it lists, in parallel and within bounds.

What a fetched index lists is hostile by assumption: only http and https, no private addresses
unless allowed, redirects followed by hand and checked one by one, sizes and times bounded.
"""

from __future__ import annotations

import ipaddress
import socket
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar
from urllib.parse import urljoin, urlsplit

from . import _core
from .errors import InputError, PublishError
from .targets import Found, Item
from .threads import start

if TYPE_CHECKING:
    import httpx

J = TypeVar("J")
R = TypeVar("R")

#: bytes of one file: a sitemap has 50 MiB at most before compression
MOST_BYTES = 256 << 20
#: bytes of all files on disk, as they came
MOST_TOTAL = 16 << 30
REDIRECTS = 5
TRIES = 3
#: seconds for one file in all, and for one answer of the other side
DEADLINE = 300.0
TIMEOUT = 30.0
PARALLEL = 8


class Refused(Exception):
    """A file that was not fetched: code, message, whether to try again."""

    def __init__(self, code: str, message: str, *, again: bool = False, after: float = 0.0) -> None:
        super().__init__(message)
        self.code = code
        self.again = again
        self.after = after


@contextmanager
def fetched(url: str, *, allow_private: bool = False) -> Iterator[Found]:
    """The sitemap at ``url`` and, of an index, all it lists, as files until the block ends.

    Raises:
        InputError: ``url`` itself cannot be fetched.
    """
    import httpx

    from . import __version__

    headers = {
        "User-Agent": f"urlset/{__version__}",
        "Accept-Encoding": "gzip, identity",
        "Accept": "application/xml, text/xml, application/gzip, text/plain, */*;q=0.5",
    }
    limits = httpx.Limits(max_connections=PARALLEL)
    with (
        tempfile.TemporaryDirectory(prefix="urlset-") as folder,
        httpx.Client(headers=headers, timeout=TIMEOUT, limits=limits) as client,
    ):
        fetcher = _Fetcher(client, Path(folder), allow_private)
        try:
            found = Found()
            (first,) = fetcher.parallel(lambda address: fetcher.get(address, found), [url])
            found.items.append(Item(first, url, url))
            kind, children = _peek(first)
            if kind == "index":
                fetcher.children(url, children, found)
            yield found
        except Refused as error:
            raise InputError(f"{url}: {error}", code=error.code, input=url) from None
        finally:
            fetcher.stop()


def _peek(path: Path) -> tuple[str, list[tuple[str, str | None, int, int]]]:
    try:
        return _core.peek(path)
    except OSError:
        return "unknown", []


class _Fetcher:
    def __init__(self, client: httpx.Client, folder: Path, allow_private: bool) -> None:
        self._client = client
        self._folder = folder
        self._allow_private = allow_private
        self._lock = threading.Lock()
        self._count = 0
        self._total = 0
        self._stopped = False
        from urllib.request import getproxies

        self._proxied = bool({"http", "https", "all"} & set(getproxies()))

    def children(
        self, index: str, children: list[tuple[str, str | None, int, int]], found: Found
    ) -> None:
        """Fetches what an index lists; a file that cannot be had is a problem, not an error."""
        seen: dict[str, int] = {}
        jobs = []
        for loc, _, line, offset in children:
            place = (index, line, offset, loc)
            if loc in seen:
                problem = ("index.duplicate", *place, f"listed already in line {seen[loc]}")
                found.problems.append(problem)
            elif _same(loc, index):
                found.problems.append(("index.self", *place, "the index lists itself"))
            else:
                jobs.append((loc, place))
            seen.setdefault(loc, line)

        def one(job: tuple[str, tuple[str, int, int, str]]) -> tuple[Item | None, Found]:
            loc, place = job
            mine = Found()
            try:
                return Item(self.get(loc, mine, place), loc, loc, listed=True), mine
            except Refused as error:
                mine.problems.append((error.code, *place, str(error)))
                return None, mine

        for item, mine in self.parallel(one, jobs):
            found.problems += mine.problems
            if item is not None:
                found.items.append(item)

    def parallel(self, work: Callable[[J], R], jobs: Sequence[J]) -> list[R]:
        """The results of ``work``, in the order of the jobs.

        The calling thread only waits, so that a signal ends it at once, and a thread that is held
        up by the other side is left alone: those of an executor would be joined.
        """
        todo: SimpleQueue[tuple[int, J]] = SimpleQueue()
        done: SimpleQueue[tuple[int, R | None, BaseException | None]] = SimpleQueue()
        for numbered in enumerate(jobs):
            todo.put(numbered)

        def run() -> None:
            while not self._stopped:
                try:
                    number, job = todo.get_nowait()
                except Empty:
                    return
                try:
                    done.put((number, work(job), None))
                except BaseException as error:  # noqa: BLE001 - it goes on in the caller
                    done.put((number, None, error))

        for number in range(min(PARALLEL, len(jobs))):
            try:
                start(threading.Thread(target=run, daemon=True))
            except PublishError:
                if number == 0:
                    raise
                break  # those that there are do all the work
        results: dict[int, Any] = {}
        while len(results) < len(jobs):
            number, result, error = done.get()
            if error is not None:
                raise error
            results[number] = result
        return [results[number] for number in range(len(jobs))]

    def stop(self) -> None:
        """No file is made from now on: the folder is about to go."""
        with self._lock:
            self._stopped = True

    def _create(self, path: Path) -> BinaryIO:
        with self._lock:
            if self._stopped:
                raise Refused("fetch.failed", "stopped")
            return path.open("wb")

    def get(self, url: str, found: Found, place: tuple[str, int, int, str] | None = None) -> Path:
        """Fetches one file, trying again where that may help."""
        for attempt in range(1, TRIES + 1):
            try:
                return self._once(url, found, place)
            except Refused as error:
                if not error.again or attempt == TRIES:
                    raise
                time.sleep(min(error.after or 0.25 * 2**attempt, 10.0))
        raise AssertionError  # the loop returns or raises

    def _once(self, url: str, found: Found, place: tuple[str, int, int, str] | None) -> Path:
        import httpx

        deadline = time.monotonic() + DEADLINE
        address = url
        for _ in range(REDIRECTS + 1):
            self._check(address)
            try:
                with self._client.stream("GET", address) as response:
                    self._check_peer(response)
                    if response.is_redirect:
                        address = urljoin(address, response.headers.get("Location", ""))
                        continue
                    self._check_status(response)
                    path, note = self._save(response, address, deadline)
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
                again = isinstance(error, httpx.TransportError)
                what = str(error) or type(error).__name__
                raise Refused("fetch.failed", what, again=again) from None
            where = place or (url, 0, 0, url)
            if address != url:
                found.problems.append(("fetch.redirect", *where, f"redirected to {address}"))
            if note:
                found.problems.append(("fetch.encoding", *where, note))
            return path
        raise Refused("fetch.failed", f"more than {REDIRECTS} redirects")

    def _check(self, address: str) -> None:
        """Refuses what is not http(s), and hosts with a private address."""
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise Refused("fetch.refused", "not a URL") from None
        if parts.scheme.lower() not in ("http", "https") or not host:
            raise Refused("fetch.refused", "only http and https are fetched")
        if self._allow_private:
            return
        try:
            known = socket.getaddrinfo(host, port or 443, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise Refused("fetch.failed", f"{host}: no such host", again=True) from None
        for *_, address_of in known:
            self._must_be_public(str(address_of[0]))

    def _must_be_public(self, address: str) -> None:
        ip = ipaddress.ip_address(address.partition("%")[0])
        mapped = getattr(ip, "ipv4_mapped", None)
        if not (mapped or ip).is_global or ip.is_multicast:
            raise Refused("fetch.refused", "the host has a private address")

    def _check_peer(self, response: httpx.Response) -> None:
        """The address that answered: a name may mean another one than it did a moment ago."""
        if self._allow_private or self._proxied:
            return
        stream = response.extensions.get("network_stream")
        peer = stream.get_extra_info("server_addr") if stream is not None else None
        if peer:
            self._must_be_public(str(peer[0]))

    def _check_status(self, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        after = response.headers.get("Retry-After", "")
        raise Refused(
            "fetch.status",
            f"HTTP status {status}",
            again=status == 429 or status >= 500,
            after=float(after) if after.isdigit() and len(after) < 6 else 0.0,
        )

    def _save(self, response: httpx.Response, address: str, deadline: float) -> tuple[Path, str]:
        """Writes the body as it is after the transport's encoding is undone."""
        with self._lock:
            self._count += 1
            path = self._folder / f"{self._count:06}"
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise Refused("fetch.encoding", f"Content-Encoding {encoding} was not asked for")
        encoded = encoding in ("gzip", "x-gzip")
        got = 0
        with self._create(path) as file:
            for block in response.iter_raw(1 << 16):
                got += len(block)
                with self._lock:
                    self._total += len(block)
                if got > MOST_BYTES or self._total > MOST_TOTAL:
                    raise Refused("fetch.failed", f"more than {MOST_BYTES:,} bytes in one file")
                if time.monotonic() > deadline:
                    raise Refused("fetch.failed", f"not there after {DEADLINE:.0f} s")
                file.write(block)
        if not encoded:
            return path, ""
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        if not zipped:
            return path, "Content-Encoding says gzip, the bytes are not"
        named_gz = urlsplit(address).path.lower().endswith(".gz")
        plain = self._gunzip(path)
        with plain.open("rb") as file:
            doubly = file.read(2) == b"\x1f\x8b"
        if not named_gz:
            return plain, "compressed twice" if doubly else ""
        # a .gz with Content-Encoding: some clients unpack it once, some twice, some not at all
        return (plain if doubly else path), "a .gz file with Content-Encoding: gzip"

    def _gunzip(self, path: Path) -> Path:
        """Undoes Content-Encoding, bounded; damage stays as it is for the reader to find."""
        out = path.with_suffix(".plain")
        written = 0
        unzip = zlib.decompressobj(31)
        with path.open("rb") as source, self._create(out) as target:
            block = source.read(1 << 16)
            while block:
                try:
                    data = unzip.decompress(block, 1 << 20)
                except zlib.error:
                    return path
                written += len(data)
                if written > 4 * MOST_BYTES:
                    raise Refused("fetch.failed", "it inflates to more than 1 GiB")
                target.write(data)
                block = unzip.unconsumed_tail
                if unzip.eof:
                    block = unzip.unused_data + source.read(1 << 16)
                    if not block.startswith(b"\x1f\x8b"):
                        return out
                    unzip = zlib.decompressobj(31)
                elif not block:
                    block = source.read(1 << 16)
        return out if unzip.eof else path


def _same(a: str, b: str) -> bool:
    """Whether two URLs are the same file: fragments and the case of scheme and host aside."""
    try:
        first, second = (urlsplit(urljoin(url, "")) for url in (a, b))
        return (first.scheme.lower(), first.netloc.lower(), first.path, first.query) == (
            second.scheme.lower(), second.netloc.lower(), second.path, second.query,
        )  # fmt: skip
    except ValueError:
        return False
