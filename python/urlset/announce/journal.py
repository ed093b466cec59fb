"""The journal of the URLs that an engine has accepted.

An SQLite file in the state folder, with one row for each accepted batch, which contains a hash of
each URL. The row is synced before the run goes on, so the journal is correct after a crash at any
moment. (A batch whose answer never reached this machine is not in it, and is sent again.)
"""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from .. import system
from ..errors import AnnounceError, InputError

#: seconds between two announcements of one URL (IndexNow asks for five minutes)
MIN_INTERVAL = 300.0
#: seconds after which an unfinished run is removed
MAX_AGE = 7 * 86_400.0

#: bytes of a hash: no two URLs share one, for any number of URLs that fits on a disk
_HASH = 16

#: the exceptions for a damaged file; even the message can be no text
_DAMAGE = (sqlite3.Error, ValueError, TypeError, OverflowError)
#: the end of a rollback journal that names a file, which SQLite then removes: urlset writes none
_SUPER = bytes.fromhex("d9d505f920a163d7")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY AUTOINCREMENT, feed BLOB NOT NULL, started REAL NOT NULL, finished REAL);
CREATE TABLE IF NOT EXISTS accepted (
    run INTEGER NOT NULL, at REAL NOT NULL, urls BLOB NOT NULL);
"""


class AnnounceJournal:
    """The journal of one engine; one process at a time.

    Args:
        folder: created if missing.
        engine: the name of the file.
        endpoint: URLs that one endpoint accepted are new for another.
        feed: digest of the URLs. An unfinished run of the same URLs is continued.
        read_only: for a dry run: nothing is created or recorded (SQLite may complete the
            transaction of a killed process).

    Raises:
        AnnounceError: ``journal.busy``: another run uses it.
        InputError: ``journal.damaged``, ``journal.unwritable``.
    """

    def __init__(
        self, folder: Path, engine: str, endpoint: str, feed: bytes, *, read_only: bool = False
    ) -> None:
        self.path = folder / f"{engine}.sqlite3"
        self._salt = hashlib.blake2b(endpoint.encode(), digest_size=_HASH).digest()
        self._lock: int | None = None
        self._read_only = read_only
        self.skipped = 0
        self._run = -1
        self._known: sqlite3.Connection | None = None
        try:
            known = self._check_files()
            if read_only:
                where = f"{self.path.absolute().as_uri()}?mode=rw" if known else ":memory:"
            else:
                folder.mkdir(parents=True, exist_ok=True)
                self._acquire(folder / f"{engine}.lock")
                where = self.path.absolute().as_uri()
            self._db = sqlite3.connect(where, uri=True, isolation_level=None)
        except (OSError, sqlite3.OperationalError) as error:
            self.close()
            why = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"the journal {self.path} cannot be opened: {why}; --state DIR sets another place",
                code="journal.unwritable",
            ) from None
        try:
            self._start(hashlib.blake2b(self._salt + feed, digest_size=_HASH).digest())
        except _DAMAGE as error:
            self.close()
            raise self._damaged(error) from None

    def __enter__(self) -> AnnounceJournal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file and releases the lock."""
        if hasattr(self, "_db"):
            self._db.close()
        if self._known is not None:
            self._known.close()
        if self._lock is not None:
            system.unlock(self._lock)
            self._lock = None

    def accepted(self, url: str) -> bool:
        """Whether ``url`` was accepted less than five minutes ago, or before in this run.

        What this process has recorded does not count: a spool contains no URL twice.
        """
        if self._known is None:
            return False
        found = self._known.execute("SELECT 1 FROM known WHERE url = ?", (self._hash(url),))
        if found.fetchone() is None:
            return False
        self.skipped += 1
        return True

    def record(self, urls: Iterable[str]) -> None:
        """Records that ``urls`` are accepted; synced when this returns."""
        hashes = b"".join(map(self._hash, urls))
        try:
            self._db.execute(
                "INSERT INTO accepted VALUES (?, ?, ?)", (self._run, time.time(), hashes)
            )
        except _DAMAGE as error:
            raise self._damaged(error) from None

    def finish(self) -> None:
        """All URLs are accepted: the next run of the same URLs is a new one."""
        try:
            self._db.execute("UPDATE run SET finished = ? WHERE id = ?", (time.time(), self._run))
        except _DAMAGE as error:
            raise self._damaged(error) from None

    def _hash(self, url: str) -> bytes:
        return hashlib.blake2b(url.encode(), digest_size=_HASH, key=self._salt).digest()

    def _check_files(self) -> bool:
        """Whether there is a journal.

        Raises:
            OSError: a link, or not a regular file.
        """
        if self.path.parent.is_symlink():
            raise OSError(errno.ELOOP, "its folder is a symbolic link", str(self.path.parent))
        for suffix in ("", "-journal", "-wal", "-shm"):
            path = self.path.with_name(self.path.name + suffix)
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                raise OSError(errno.EINVAL, "is not a regular file; remove it", str(path))
        rollback = self.path.with_name(f"{self.path.name}-journal")
        if rollback.exists():
            with rollback.open("rb") as file:
                file.seek(max(0, rollback.stat().st_size - len(_SUPER)))
                if file.read() == _SUPER:
                    raise OSError(errno.EINVAL, "its rollback journal names a file; remove it")
        return self.path.exists()

    def _acquire(self, path: Path) -> None:
        self._lock = os.open(path, system.LOCK, 0o666)
        if not system.try_lock(self._lock):
            self.close()
            raise AnnounceError(
                f"another announcement uses {path}: wait until it is done", code="journal.busy"
            )

    def _start(self, feed: bytes) -> None:
        now = time.time()
        if self._read_only:
            names = self._db.execute("SELECT name FROM sqlite_master").fetchall()
            if ("run",) not in names or ("accepted",) not in names:
                return
        else:
            self._db.execute("PRAGMA synchronous=EXTRA")
            self._db.executescript(_SCHEMA)
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM run WHERE abs(? - started) > ?", (now, MAX_AGE))
            self._db.execute(
                "DELETE FROM accepted WHERE abs(? - at) >= ?"
                " AND run NOT IN (SELECT id FROM run WHERE finished IS NULL)",
                (now, MIN_INTERVAL),
            )
        found = self._db.execute(
            "SELECT id FROM run WHERE feed = ? AND finished IS NULL ORDER BY id DESC LIMIT 1",
            (feed,),
        ).fetchone()
        if found is None and not self._read_only:
            self._db.execute("INSERT INTO run (feed, started) VALUES (?, ?)", (feed, now))
            found = self._db.execute("SELECT last_insert_rowid()").fetchone()
        self._run = -1 if found is None else found[0]
        if not self._read_only:
            self._db.execute("COMMIT")
        self._load(now)

    def _load(self, now: float) -> None:
        """Copies the URLs that must not be sent to a private temporary file with an index.

        A time in the future, from before the clock was set back, counts by its distance from now.
        """
        batches = self._db.execute(
            "SELECT urls FROM accepted WHERE run = ? OR abs(? - at) < ?",
            (self._run, now, MIN_INTERVAL),
        )
        for (urls,) in batches:
            if self._known is None:
                self._known = sqlite3.connect("", isolation_level=None)
                for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-16384"):
                    self._known.execute(f"PRAGMA {pragma}")
                self._known.execute("CREATE TABLE found (url BLOB)")
                self._known.execute("BEGIN")
            if not isinstance(urls, bytes) or len(urls) % _HASH:
                raise sqlite3.DatabaseError("a batch in it is damaged")
            hashes = ((urls[i : i + _HASH],) for i in range(0, len(urls), _HASH))
            self._known.executemany("INSERT INTO found VALUES (?)", hashes)
        if self._known is not None:
            self._known.execute("CREATE TABLE known (url BLOB PRIMARY KEY) WITHOUT ROWID")
            self._known.execute("INSERT INTO known SELECT DISTINCT url FROM found ORDER BY url")
            self._known.execute("DROP TABLE found")
            self._known.execute("COMMIT")

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"the journal {self.path} cannot be used: {error}; if it is damaged, remove it:"
            " URLs of the last five minutes may then be sent twice",
            code="journal.damaged",
        )
