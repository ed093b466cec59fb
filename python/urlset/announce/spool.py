"""The URLs of one run, sorted by host and without duplicates, in bounded memory.

SQLite's external sort does the work, in a private temporary file (``TMPDIR``) that disappears with
the process in any case. Any number of rows and hosts fits, and the same list always has the same
order.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from ..errors import InputError
from .address import split
from .report import EngineOutcome
from .session import Session
from .url_list import Row, read_url_list

#: rows of one INSERT, and the memory of SQLite's cache
_ROWS, _CACHE_KIB = 2_000, 16_384
#: bytes of the digest that names a list
_DIGEST = 16
#: characters of an invalid URL that a message quotes
_QUOTE = 100


@dataclass(slots=True)
class Skipped:
    """Rows that are not sent, with the first of them as an example."""

    count: int = 0
    example: str = ""

    def add(self, row: Row, text: str) -> None:
        self.count += 1
        self.example = self.example or f"row {row.number}: {text}"


class Spool:
    """Fill once with :meth:`fill`, then read in order any number of times.

    Attributes:
        count: distinct URLs.
        live: those of them that were not ``removed``.
        digest: of all rows in their order: names the list.
        illegal: rows whose URL is not legal.
        foreign: rows whose URL is not allowed.
    """

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KIB}"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("CREATE TABLE raw (host TEXT, url TEXT, live INTEGER)")
        self.count = self.live = 0
        self.digest = b""
        self.illegal, self.foreign = Skipped(), Skipped()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def fill(self, rows: Iterable[Row], allowed: Callable[[str, str], bool]) -> None:
        """Stores all rows whose host and path are ``allowed``.

        Raises:
            InputError: ``feed.spool`` if the temporary file cannot be written; and what
                reading the list raises.
        """
        digest = hashlib.blake2b(digest_size=_DIGEST)
        try:
            self._db.execute("BEGIN")
            pending: list[tuple[str, str, int]] = []
            for row in rows:
                parts = split(row.url)
                if parts is None:
                    self.illegal.add(row, repr(row.url[:_QUOTE]))
                    continue
                host = parts.authority
                if not allowed(host, parts.path or "/"):
                    self.foreign.add(row, row.url)
                    continue
                digest.update(f"{row.change}\t{row.url}\n".encode())
                pending.append((host, row.url, row.change != "removed"))
                if len(pending) == _ROWS:
                    self._db.executemany("INSERT INTO raw VALUES (?, ?, ?)", pending)
                    pending.clear()
            self._db.executemany("INSERT INTO raw VALUES (?, ?, ?)", pending)
            self._db.execute(
                "CREATE TABLE sorted AS SELECT host, url, max(live) AS live FROM raw"
                " GROUP BY host, url ORDER BY host, url"
            )
            self._db.execute("DROP TABLE raw")
            self._db.execute("COMMIT")
            self.count, self.live = self._db.execute(
                "SELECT count(*), coalesce(sum(live), 0) FROM sorted"
            ).fetchone()
        except sqlite3.Error as error:
            raise InputError(f"the temporary file failed: {error}", code="feed.spool") from None
        self.digest = digest.digest()

    def rows(self) -> Iterator[tuple[str, str]]:
        """Host and URL of each row, in order."""
        with closing(self._db.execute("SELECT host, url FROM sorted ORDER BY rowid")) as cursor:
            yield from cursor

    def hosts(self) -> Iterator[tuple[str, int]]:
        """Each host with the number of its URLs."""
        with closing(self._db.execute("SELECT host, count(*) FROM sorted GROUP BY host")) as cursor:
            yield from cursor


def open_spool(
    session: Session, engine: str, *, allowed: Callable[[str, str], bool], why: str
) -> Spool:
    """The URLs of the options ``changes`` or ``urls``; reports the rows that will not be sent.

    Args:
        allowed: whether the URLs of a host and a path may be sent.
        why: the detail of those that may not.
    """
    options = session.options
    path = options.changes or options.urls
    assert path is not None  # noqa: S101 - checked by the options
    spool = session.open(Spool())
    spool.fill(read_url_list(path, changes=options.changes is not None), allowed)
    for skipped, what, code in (
        (spool.illegal, "not legal URLs", "bad_url"),
        (spool.foreign, why, "other_host"),
    ):
        if skipped.count:
            detail = f"not sent: {what}; the first is in {skipped.example}"
            code = f"{engine}.{code}"
            session.add(
                EngineOutcome(engine, str(path), "refused", skipped.count, detail=detail, code=code)
            )
    return spool
