"""What an engine has accepted: on disk before the next thing happens.

An SQLite file in the state folder, with one row for each accepted batch that holds a hash of each
URL. The row is synced before the run goes on, so the journal is true after a crash at any moment.
(A batch whose answer never reached this machine is not in it, and will be sent again.)
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from ..errors import AnnounceError, InputError

#: PROTOCOL section 4: seconds between two announcements of one URL
QUIET = 300.0
#: seconds after which a run that was never finished is forgotten
FORGOTTEN = 7 * 86_400.0

_HASH = 16  # bytes: no two URLs of any number that fits on a disk share one

#: what a damaged file ends in: the message itself may be no text
_WRONG = (sqlite3.Error, ValueError, TypeError, OverflowError)
#: how a rollback journal ends that names a file, which SQLite then removes: never one of ours
_SUPER = bytes.fromhex("d9d505f920a163d7")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY AUTOINCREMENT, feed BLOB NOT NULL, started REAL NOT NULL, finished REAL);
CREATE TABLE IF NOT EXISTS accepted (
    run INTEGER NOT NULL, at REAL NOT NULL, urls BLOB NOT NULL);
"""


class Journal:
    """The journal of one engine; one process at a time.

    Args:
        folder: made if missing.
        engine: names the file.
        endpoint: what one endpoint accepted says nothing about another.
        feed: digest of the feed. A run of the same feed that was not finished is continued.
        read_only: for a dry run: nothing is made or recorded (SQLite may finish what a killed
            process left half done).

    Raises:
        AnnounceError: ``journal.busy``: another run holds it.
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
                self._hold(folder / f"{engine}.lock")
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
        except _WRONG as error:
            self.close()
            raise self._damaged(error) from None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file and of the lock."""
        if hasattr(self, "_db"):
            self._db.close()
        if self._known is not None:
            self._known.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def accepted(self, url: str) -> bool:
        """Whether ``url`` was accepted less than five minutes ago, or earlier in this run.

        What this process itself has recorded is not asked: a spool holds no URL twice.
        """
        if self._known is None:
            return False
        found = self._known.execute("SELECT 1 FROM known WHERE url = ?", (self._hash(url),))
        if found.fetchone() is None:
            return False
        self.skipped += 1
        return True

    def record(self, urls: Iterable[str]) -> None:
        """Remember that ``urls`` were accepted just now; synced when this returns."""
        hashes = b"".join(map(self._hash, urls))
        try:
            self._db.execute(
                "INSERT INTO accepted VALUES (?, ?, ?)", (self._run, time.time(), hashes)
            )
        except _WRONG as error:
            raise self._damaged(error) from None

    def finish(self) -> None:
        """All of the feed is accepted: the next run of it is a new one."""
        try:
            self._db.execute("UPDATE run SET finished = ? WHERE id = ?", (time.time(), self._run))
        except _WRONG as error:
            raise self._damaged(error) from None

    def _hash(self, url: str) -> bytes:
        return hashlib.blake2b(url.encode(), digest_size=_HASH, key=self._salt).digest()

    def _check_files(self) -> bool:
        """Whether there is a journal.

        Raises:
            OSError: it is none: no link is followed here, and nothing but a regular file opened.
        """
        if self.path.parent.is_symlink():
            raise OSError(errno.ELOOP, "its folder is a symbolic link", str(self.path.parent))
        for suffix in ("", "-journal", "-wal", "-shm"):
            path = self.path.with_name(self.path.name + suffix)
            if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
                raise OSError(errno.EINVAL, "is no regular file; remove it", str(path))
        rollback = self.path.with_name(f"{self.path.name}-journal")
        if rollback.exists():
            with rollback.open("rb") as file:
                file.seek(max(0, rollback.stat().st_size - len(_SUPER)))
                if file.read() == _SUPER:
                    raise OSError(errno.EINVAL, "its rollback journal names a file; remove it")
        return self.path.exists()

    def _hold(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._lock = os.open(path, flags, 0o666)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise AnnounceError(
                f"another announcement holds {path}: wait until it is done", code="journal.busy"
            ) from None

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
            self._db.execute("DELETE FROM run WHERE abs(? - started) > ?", (now, FORGOTTEN))
            self._db.execute(
                "DELETE FROM accepted WHERE abs(? - at) >= ?"
                " AND run NOT IN (SELECT id FROM run WHERE finished IS NULL)",
                (now, QUIET),
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
        self._learn(now)

    def _learn(self, now: float) -> None:
        """Put what must not be sent into a private temporary file, where it is found quickly.

        A time in the future, of a clock that was set back, counts by its distance from now.
        """
        batches = self._db.execute(
            "SELECT urls FROM accepted WHERE run = ? OR abs(? - at) < ?", (self._run, now, QUIET)
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
