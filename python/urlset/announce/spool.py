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
from dataclasses import dataclass, field
from types import TracebackType

from ..errors import InputError
from .address import host_of, split
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
    hosts: set[str] = field(default_factory=set)


class Spool:
    """Fill once with :meth:`fill`, then read in order as often as needed.

    Attributes:
        count: distinct URLs.
        live: those of them that were not ``removed``.
        digest: of all rows in their order: names the feed.
        illegal: rows whose URL is not a legal one.
        foreign: rows whose host is not allowed.
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def fill(self, rows: Iterable[Row], allowed: Callable[[str], bool]) -> None:
        """Take all rows in.

        Raises:
            InputError: ``feed.spool`` where the temporary file cannot be written; and what
                reading the feed raises.
        """
        digest = hashlib.blake2b(digest_size=16)
        try:
            self._db.execute("BEGIN")
            pending: list[tuple[str, str, int]] = []
            for row in rows:
                parts = split(row.url)
                if parts is None:
                    self.illegal.count += 1
                    self.illegal.example = self.illegal.example or f"row {row.number}: " + repr(
                        row.url[:100]
                    )
                    continue
                host = host_of(parts)
                if not allowed(host):
                    self.foreign.count += 1
                    self.foreign.example = self.foreign.example or f"row {row.number}: {host}"
                    if len(self.foreign.hosts) < 1_000:
                        self.foreign.hosts.add(host)
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
            found = self._db.execute("SELECT count(*), coalesce(sum(live), 0) FROM sorted")
            self.count, self.live = found.fetchone()
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


def fill_spool(session: Session, spool: Spool, engine: str, own: str | None = None) -> None:
    """Read the feed into the spool and report the rows that will not be sent.

    Args:
        own: the only host that is allowed; by default ``hosts`` decides.
    """
    options, target = session.options, session.target
    path = options.changes or options.urls
    assert path is not None  # noqa: S101 - checked by the options
    rows = read_feed(path, changes=options.changes is not None)
    spool.fill(rows, lambda h: h == own if own is not None else options.allows(h, target.host))
    if spool.illegal.count:
        session.add(
            Outcome(
                engine, str(path), "refused", spool.illegal.count,
                detail=f"not legal URLs, not sent; the first is {spool.illegal.example}",
                code=f"{engine}.bad_url",
            )
        )  # fmt: skip
    if spool.foreign.count:
        many = len(spool.foreign.hosts)
        hint = "" if own is not None else "; --hosts any, or a list, would send them too"
        session.add(
            Outcome(
                engine, str(path), "refused", spool.foreign.count,
                detail=f"URLs of {many:,} other host{'' if many == 1 else 's'} than"
                f" {own or target.host}, not sent; the first is {spool.foreign.example}{hint}",
                code=f"{engine}.other_host",
            )
        )  # fmt: skip
