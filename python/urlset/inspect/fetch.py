"""Sitemaps at a URL: the file and, if it is an index, the files that it lists.

The entries of a fetched index are assumed to be hostile: only http and https, no private addresses
unless allowed, redirects checked one by one, sizes and times bounded. A file that cannot be fetched
is a finding; all others are read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from .. import _core
from ..errors import InputError
from ..threads import completed
from ..transport.client import Client
from . import download
from .download import Download, Downloader, DownloadError, too_late
from .targets import Found, Item, peek

#: files of one index that are fetched: the limit of the protocol
MAX_FILES = 50_000
#: seconds that the calling thread waits for threads after the time for the target is over
GRACE = 5.0
PARALLEL = 8

_HEADERS = {
    "Accept-Encoding": "gzip, identity",
    "Accept": "application/xml, text/xml, application/gzip, text/plain, */*;q=0.5",
}


@contextmanager
def fetched(url: str, *, allow_private: bool = False) -> Iterator[Found]:
    """The sitemap at ``url`` and, if it is an index, all that it lists; files until the block ends.

    Raises:
        InputError: ``url`` itself cannot be fetched.
    """
    with (
        tempfile.TemporaryDirectory(prefix="urlset-") as folder,
        Client(
            _HEADERS,
            timeout=download.TIMEOUT,
            allow_private=allow_private,
            connections=PARALLEL,
        ) as client,
    ):
        downloader = Downloader(client, Path(folder))
        try:
            first = _all(downloader, [url])[0]
            if isinstance(first, DownloadError):
                raise InputError(f"{url}: {first}", code=first.code, input=url)
            found = Found([Item(first.path, url, url)])
            for code, message in first.notes:
                found.of_file(url, code, message, url)
            kind, children = peek(first.path)
            if kind == "index":
                _add_children(downloader, found, url, children)
            yield found
        finally:
            downloader.stop()


def _add_children(
    downloader: Downloader, found: Found, index: str, children: list[_core.Child]
) -> None:
    """Fetches the files of an index; a file that cannot be fetched is a problem, not an error."""
    jobs = []
    for child in found.first_entries(index, children):
        if _is_same(child.loc, index):
            found.of_entry(index, child, "index.self", "the index lists itself")
        else:
            jobs.append(child)
    if len(jobs) > MAX_FILES:
        message = f"lists {len(jobs):,} sitemaps: only the first {MAX_FILES:,} are fetched"
        found.of_file(index, "fetch.failed", message)
        del jobs[MAX_FILES:]
    for child, result in zip(jobs, _all(downloader, [child.loc for child in jobs]), strict=True):
        if isinstance(result, DownloadError):
            found.of_entry(index, child, result.code, str(result))
            continue
        for code, message in result.notes:
            found.of_entry(index, child, code, message)
        found.items.append(Item(result.path, child.loc, child.loc, listed=True))


def _all(downloader: Downloader, urls: list[str]) -> list[Download | DownloadError]:
    """The files at the URLs, in this order."""

    def get(url: str) -> Download | DownloadError:
        try:
            return downloader.get(url)
        except DownloadError as error:
            return error

    def left() -> float:
        return downloader.left() + GRACE

    results = dict(completed(get, urls, left, threads=PARALLEL))
    return [results.get(number) or too_late() for number in range(len(urls))]


def _is_same(a: str, b: str) -> bool:
    """Whether two URLs name the same file: fragments and the case of scheme and host aside."""
    try:
        first, second = (urlsplit(urljoin(url, "")) for url in (a, b))
        return (first.scheme.lower(), first.netloc.lower(), first.path, first.query) == (
            second.scheme.lower(), second.netloc.lower(), second.path, second.query,
        )  # fmt: skip
    except ValueError:
        return False
