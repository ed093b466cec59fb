"""Sitemaps from http(s): the index and all it lists, in parallel and within bounds.

What a fetched index lists is hostile by assumption: only http and https, no private addresses
unless allowed, redirects followed by hand and checked one by one, sizes and times bounded. What
one server answers is at most a finding about that file: the others are read all the same.
"""

from __future__ import annotations

import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx

from .. import _core
from ..errors import InputError
from ..transport import Budget, ExceededError, PrivateError, Transport
from .targets import Found, Item

J = TypeVar("J")
R = TypeVar("R")

#: bytes of one file, as it comes and as it is after Content-Encoding is undone: a sitemap has
#: 50 MiB at most before compression
MOST_BYTES = 256 << 20
#: bytes of all files of a target on disk
MOST_TOTAL = 16 << 30
#: files that are fetched of one index: the protocol allows no more
MOST_FILES = 50_000
#: characters of a URL: more than crawlers take, so that the finding can be about something else
MOST_URL = 8_192
REDIRECTS = 5
TRIES = 3
#: seconds for one file in all, redirects and retries included, and for one answer of the other side
DEADLINE = 300.0
TIMEOUT = 30.0
#: seconds for all files of a target
TARGET_DEADLINE = 3_600.0
#: seconds after which the calling thread no longer waits for threads that are late with that
GRACE = 5.0
PARALLEL = 8


class Refused(Exception):
    """A file that was not fetched: code, message, whether to try again."""

    def __init__(self, code: str, message: str, *, again: bool = False, after: float = 0.0) -> None:
        super().__init__(message)
        self.code = code
        self.again = again
        self.after = after


class _NoCookies(CookieJar):
    """Takes none: they are of no use here, and 50,000 answers could bring any number."""

    def extract_cookies(self, response: object, request: object) -> None:
        return


@contextmanager
def fetched(url: str, *, allow_private: bool = False) -> Iterator[Found]:
    """The sitemap at ``url`` and, of an index, all it lists, as files until the block ends.

    Raises:
        InputError: ``url`` itself cannot be fetched.
    """
    from .. import __version__

    headers = {
        "User-Agent": f"urlset/{__version__}",
        "Accept-Encoding": "gzip, identity",
        "Accept": "application/xml, text/xml, application/gzip, text/plain, */*;q=0.5",
    }
    transport = Transport(allow_private=allow_private, connections=PARALLEL)
    with (
        tempfile.TemporaryDirectory(prefix="urlset-") as folder,
        httpx.Client(
            headers=headers, timeout=TIMEOUT, transport=transport, cookies=_NoCookies()
        ) as client,
    ):
        fetcher = _Fetcher(client, Path(folder))
        try:
            found = Found()
            (first,) = fetcher.parallel(lambda address: fetcher.get(address, found), [url], _late)
            found.items.append(Item(first, url, url))
            kind, children = _peek(first)
            if kind == "index":
                fetcher.children(url, children, found)
            yield found
        except Refused as error:
            raise InputError(f"{url}: {error}", code=error.code, input=url) from None
        finally:
            fetcher.stop()


def _peek(path: Path) -> tuple[str, list[_core.Child]]:
    try:
        listing = _core.peek(path)
    except OSError:
        return "unknown", []
    return listing.kind, listing.children


def _late(_job: object) -> Refused:
    return Refused("fetch.failed", f"not fetched: {TARGET_DEADLINE:,.0f} s for all files are over")


class _Fetcher:
    def __init__(self, client: httpx.Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._lock = threading.Lock()
        self._count = 0
        self._total = 0
        self._stopped = False
        self._end = time.monotonic() + TARGET_DEADLINE

    def children(self, index: str, children: list[_core.Child], found: Found) -> None:
        """Fetches what an index lists; a file that cannot be had is a problem, not an error."""
        seen: dict[str, int] = {}
        jobs = []
        for child in children:
            loc, line = child.loc, child.line
            place = (index, line, child.offset, loc)
            if loc in seen:
                problem = ("index.duplicate", *place, f"listed already in line {seen[loc]}")
                found.problems.append(problem)
            elif _same(loc, index):
                found.problems.append(("index.self", *place, "the index lists itself"))
            else:
                jobs.append((loc, place))
            seen.setdefault(loc, line)
        if len(jobs) > MOST_FILES:
            message = f"lists {len(jobs):,} sitemaps: only the first {MOST_FILES:,} are fetched"
            found.problems.append(("fetch.failed", index, 0, 0, None, message))
            del jobs[MOST_FILES:]

        def one(job: tuple[str, tuple[str, int, int, str]]) -> tuple[Item | None, Found]:
            loc, place = job
            mine = Found()
            try:
                return Item(self.get(loc, mine, place), loc, loc, listed=True), mine
            except Refused as error:
                mine.problems.append((error.code, *place, str(error)))
                return None, mine

        def late(job: tuple[str, tuple[str, int, int, str]]) -> tuple[None, Found]:
            error = _late(job)
            return None, Found(problems=[(error.code, *job[1], str(error))])

        for item, mine in self.parallel(one, jobs, late):
            found.problems += mine.problems
            if item is not None:
                found.items.append(item)

    def parallel(
        self, work: Callable[[J], R], jobs: Sequence[J], late: Callable[[J], R | Refused]
    ) -> list[R]:
        """The results of ``work``, in the order of the jobs.

        The calling thread only waits, so that a signal ends it at once, and a thread that is held
        up by the other side is left alone: those of an executor would be joined.

        Args:
            late: the result of a job that is not done when the time for all of them is over.
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

        for count in range(min(PARALLEL, len(jobs))):
            try:
                threading.Thread(target=run, daemon=True).start()
            except RuntimeError:  # no more threads to be had
                if count == 0:
                    run()
                break
        results: dict[int, Any] = {}
        while len(results) < len(jobs):
            try:
                number, result, error = done.get(timeout=self._left() + GRACE)
            except Empty:
                break
            if error is not None:
                raise error
            results[number] = result
        for number, job in enumerate(jobs):
            if number not in results:
                results[number] = late(job)
                if isinstance(results[number], Refused):
                    raise results[number]
        return [results[number] for number in range(len(jobs))]

    def _left(self) -> float:
        """Seconds that are left for the target."""
        return max(0.0, self._end - time.monotonic())

    def stop(self) -> None:
        """No file is made from now on: the folder is about to go."""
        with self._lock:
            self._stopped = True

    def get(self, url: str, found: Found, place: tuple[str, int, int, str] | None = None) -> Path:
        """Fetches one file, trying again where that may help.

        Raises:
            Refused: it cannot be had.
            InputError: ``fetch.disk``: there is no room for it.
        """
        left = self._left()
        if left == 0:
            raise _late(url)
        with Budget(min(DEADLINE, left), MOST_BYTES, steady=True) as budget:
            for attempt in range(1, TRIES + 1):
                try:
                    return self._once(url, found, place)
                except Refused as error:
                    wait = min(error.after or 0.25 * 2**attempt, 10.0)
                    if not error.again or attempt == TRIES or wait >= budget.left():
                        raise
                    time.sleep(wait)
        raise AssertionError  # the loop returns or raises

    def _once(self, url: str, found: Found, place: tuple[str, int, int, str] | None) -> Path:
        address = url
        for _ in range(REDIRECTS + 1):
            try:
                with self._client.stream("GET", _parse(address)) as response:
                    if response.has_redirect_location:
                        address = _join(address, response.headers["Location"])
                        continue
                    _check_status(response)
                    path, note = self._save(response, address)
            except ExceededError as error:
                raise Refused("fetch.failed", str(error)) from None
            except PrivateError as error:
                raise Refused("fetch.refused", str(error)) from None
            except httpx.TransportError as error:
                what = str(error) or type(error).__name__
                raise Refused("fetch.failed", what, again=True) from None
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError) as error:
                what = str(error) or type(error).__name__
                raise Refused("fetch.failed", what) from None
            where = place or (url, 0, 0, url)
            if address != url:
                found.problems.append(("fetch.redirect", *where, f"redirected to {address}"))
            if note:
                found.problems.append(("fetch.encoding", *where, note))
            return path
        raise Refused("fetch.failed", f"more than {REDIRECTS} redirects")

    def _save(self, response: httpx.Response, address: str) -> tuple[Path, str]:
        """Writes the body as it is after the transport's encoding is undone."""
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise Refused("fetch.encoding", f"Content-Encoding {encoding} was not asked for")
        with self._lock:
            self._count += 1
            path = self._folder / f"{self._count:06}"
        with self._create(path) as file:
            for block in response.iter_raw(1 << 16):
                file.write(block)
        if encoding in ("", "identity"):
            return path, ""
        with path.open("rb") as source:
            zipped = source.read(2) == b"\x1f\x8b"
        if not zipped:
            return path, "Content-Encoding says gzip, the bytes are not"
        named_gz = urlsplit(address).path.lower().endswith(".gz")
        plain = self._gunzip(path)
        with plain.open("rb") as source:
            doubly = source.read(2) == b"\x1f\x8b"
        # a .gz with Content-Encoding: some clients unpack it once, some twice, some not at all
        kept = plain if doubly or not named_gz else path
        if plain != path:
            self._remove(path if kept == plain else plain)
        if named_gz:
            return kept, "a .gz file with Content-Encoding: gzip"
        return kept, "compressed twice" if doubly else ""

    def _gunzip(self, path: Path) -> Path:
        """Undoes Content-Encoding, bounded; damage stays as it is for the reader to find."""
        out = path.with_suffix(".plain")
        try:
            with path.open("rb") as source, self._create(out) as target:
                for block in gunzip(source):
                    target.write(block)
        except zlib.error:
            self._remove(out)
            return path
        return out

    @contextmanager
    def _create(self, path: Path) -> Iterator[_Limited]:
        """A new file; what was written of it goes where the block fails."""
        with self._lock:
            if self._stopped:
                raise Refused("fetch.failed", "stopped")
        try:
            with path.open("wb") as file:
                yield _Limited(self, file)
        except OSError as error:  # of the disk: what the network raises is httpx's
            self._remove(path)
            raise _no_room(error) from None
        except BaseException:
            self._remove(path)
            raise

    def _remove(self, path: Path) -> None:
        try:
            size = path.stat().st_size
            path.unlink()
        except OSError:
            return  # the folder is gone already
        with self._lock:
            self._total -= size

    def grow(self, size: int) -> None:
        """Counts bytes that go to disk."""
        with self._lock:
            if self._total + size > MOST_TOTAL:
                raise Refused("fetch.failed", f"more than {MOST_TOTAL:,} bytes in all files")
            self._total += size


class _Limited:
    """A file on disk that holds no more than one sitemap may, and counts for the target."""

    def __init__(self, fetcher: _Fetcher, file: BinaryIO) -> None:
        self._fetcher, self._file = fetcher, file
        self._size = 0

    def write(self, block: bytes) -> None:
        self._size += len(block)
        if self._size > MOST_BYTES:
            raise Refused("fetch.failed", f"more than {MOST_BYTES:,} bytes in one file")
        self._fetcher.grow(len(block))
        self._file.write(block)


def _no_room(error: OSError) -> InputError:
    return InputError(
        f"{tempfile.gettempdir()}: what is fetched cannot be kept: {error.strerror};"
        " make room, or set TMPDIR to another folder",
        code="fetch.disk",
    )


def _parse(address: str) -> httpx.URL:
    """The URL of a request.

    Raises:
        Refused: it is none, or not of http or https.
    """
    if len(address) > MOST_URL:
        raise Refused("fetch.refused", f"a URL of more than {MOST_URL:,} characters")
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError, TypeError):  # among them all errors of encoding
        raise Refused("fetch.refused", "not a URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise Refused("fetch.refused", "only http and https are fetched")
    return url


def _join(base: str, location: str) -> str:
    try:
        return urljoin(base, location)
    except ValueError:
        raise Refused("fetch.refused", "redirected to what is not a URL") from None


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if status == 200:
        return
    after = response.headers.get("Retry-After", "")
    digits = after.isascii() and after.isdigit() and len(after) < 6
    raise Refused(
        "fetch.status",
        f"HTTP status {status}",
        again=status == 429 or status >= 500,
        after=float(after) if digits else 0.0,
    )


#: bytes that are given to zlib at once: it copies those behind the end of a member, and there may
#: be a member in every 20 bytes
_ZLIB_INPUT = 4 << 10
_ZLIB_OUTPUT = 1 << 20


def gunzip(source: BinaryIO) -> Iterator[bytes]:
    """What a gzip file inflates to, member after member; bytes behind the last one are left.

    The time is linear in the number of bytes, compressed and inflated.

    Raises:
        zlib.error: the data is damaged or cut short.
    """
    unzip = zlib.decompressobj(31)
    rest = b""
    while True:
        rest = rest or source.read(_ZLIB_INPUT)
        if not rest:
            raise zlib.error("cut short")
        if data := unzip.decompress(rest, _ZLIB_OUTPUT):
            yield data
        rest = unzip.unconsumed_tail
        if not unzip.eof:
            continue
        rest = unzip.unused_data
        if len(rest) < 2:
            rest += source.read(_ZLIB_INPUT)
        if not rest.startswith(b"\x1f\x8b"):
            return
        unzip = zlib.decompressobj(31)


def _same(a: str, b: str) -> bool:
    """Whether two URLs are the same file: fragments and the case of scheme and host aside."""
    try:
        first, second = (urlsplit(urljoin(url, "")) for url in (a, b))
        return (first.scheme.lower(), first.netloc.lower(), first.path, first.query) == (
            second.scheme.lower(), second.netloc.lower(), second.path, second.query,
        )  # fmt: skip
    except ValueError:
        return False
