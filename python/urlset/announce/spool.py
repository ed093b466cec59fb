"""The URLs of one run, sorted by host and free of duplicates, in bounded memory.

SQLite's external sort does the work, in a private temporary file (``TMPDIR``) that vanishes with
the process however that ends: any number of rows and of hosts fits, and the same feed always
comes out in the same order.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from ..errors import InputError
from .address import place
from .feed import Row, read_feed
from .report import Outcome
from .session import Session

_ROWS = 2_000
_CACHE_KIB = 16_384


@dataclass(slots=True)
class Turned:
    """Rows that are not sent, and the first of them as an example."""

    count: int = 0
    example: str = ""


class Spool:
    """Fill once with :meth:`fill`, then read in order as often as needed.

    Attributes:
        count: distinct URLs.
        live: those of them that were not ``removed``.
        digest: of all rows in their order: names the feed.
        illegal: rows whose URL is not a legal one.
        foreign: rows whose address is not allowed.
    """

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KIB}"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("CREATE TABLE raw (host TEXT, url TEXT, live INTEGER)")
        self.count = self.live = 0
        self.digest = b""
        self.illegal, self.foreign = Turned(), Turned()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def fill(self, rows: Iterable[Row], allowed: Callable[[str, str], bool]) -> None:
        """Take all rows in whose host and path are ``allowed``.

        Raises:
            InputError: ``feed.spool`` where the temporary file cannot be written; and what
                reading the feed raises.
        """
        digest = hashlib.blake2b(digest_size=16)
        try:
            self._db.execute("BEGIN")
            pending: list[tuple[str, str, int]] = []
            for row in rows:
                found = place(row.url)
                if found is None:
                    self.illegal.count += 1
                    self.illegal.example = self.illegal.example or f"row {row.number}: " + repr(
                        row.url[:100]
                    )
                    continue
                if not allowed(*found):
                    self.foreign.count += 1
                    self.foreign.example = self.foreign.example or f"row {row.number}: {row.url}"
                    continue
                digest.update(f"{row.change}\t{row.url}\n".encode())
                pending.append((found[0], row.url, row.change != "removed"))
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
        """Host and URL of each, in order."""
        with closing(self._db.execute("SELECT host, url FROM sorted ORDER BY rowid")) as cursor:
            yield from cursor

    def hosts(self) -> Iterator[tuple[str, int]]:
        """Each host with the number of its URLs."""
        with closing(self._db.execute("SELECT host, count(*) FROM sorted GROUP BY host")) as cursor:
            yield from cursor


def fill_spool(
    session: Session, spool: Spool, engine: str, *, allowed: Callable[[str, str], bool], why: str
) -> None:
    """Read the feed into the spool and report the rows that will not be sent.

    Args:
        why: what is said of addresses that are not allowed.
    """
    options = session.options
    path = options.changes or options.urls
    assert path is not None  # noqa: S101 - checked by the options
    spool.fill(read_feed(path, changes=options.changes is not None), allowed)

    def refuse(turned: Turned, what: str, code: str) -> None:
        if turned.count:
            detail = f"not sent: {what}; the first is in {turned.example}"
            code = f"{engine}.{code}"
            session.add(
                Outcome(engine, str(path), "refused", turned.count, detail=detail, code=code)
            )

    refuse(spool.illegal, "not legal URLs", "bad_url")
    refuse(spool.foreign, why, "other_host")
