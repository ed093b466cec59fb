"""A publication to a folder: from staged to live, complete at every instant.

The protocol, with the previous set live until step 4:

1. A lock on ``STATE/lock`` keeps a second build of the same name out.
2. The journal of a killed build (``STATE/publish.json``) is completed; other leftovers are removed.
3. Shards and indexes are staged in ``STATE/staging`` on the same filesystem, each fsynced.
4. The journal, with every move and the new manifest, is written, fsynced and renamed into place:
   from here on the new set goes live, in this build or in the next one.
5. Shards are renamed over the old ones, then the indexes; the folder is fsynced.
6. The manifest is renamed into place; files that only the previous set had are removed.
7. The change feeds in the journal are delivered (:mod:`urlset.build.changes`), and the journal is
   removed last; it stays, with only its feeds, if one could not be delivered.

For maintainers: every step can be repeated, so a build that finds a journal runs 5 to 7 again.
Files that no manifest lists are never touched. ``test_publish.py`` and ``test_crash.py`` kill
builds at every step, ``test_inject.py`` makes every system call fail.

Sets of different names share an output folder. Steps 2 and 4 to 6 happen under a lock on the state
folder as a whole, so that each of two builds reads the current manifest of the other.

A job with several parts stages in ``STATE/staging-ID`` without a lock; steps 1, 2 and 4 to 7 happen
at its commit. Other builds never remove its staging.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from .. import system
from ..errors import PublishError
from ..transport.target import Target
from .completion import DURING, LIVE, Completion
from .directory import Directory, folder_of, inside
from .interface import Stored
from .lock import alone, lock_state
from .manifest import (
    MAX_STATE_BYTES,
    STAGING,
    Feed,
    Journal,
    Manifest,
    ShardRecord,
    to_json,
)
from .objects import ABSENT
from .recovery import Recovery
from .relative import calls
from .state import (
    DEFAULT_NAME,
    MANIFEST,
    REJECTS,
    STATE,
    STATE_FILES,
    check_state_name,
    read_manifest,
)

#: up to this number, files are staged one after the other
FEW = 16
#: files that are staged at once; waiting for the disk with 8 threads takes a quarter of the time
STAGING_THREADS = 8


def job_staging(job: str) -> str:
    """The name of the staging folder of a job with several parts."""
    return f"{STAGING}-{job}"


def closed(job: str) -> PublishError:
    """The error for a job without staging."""
    return PublishError(
        f"job {job}: was committed or aborted, or the destination is not the one it was planned"
        " for; plan a new job",
        code="job.closed",
    )


class FolderPublication:
    """The exclusive right to change the set of a name in a folder; a context manager.

    Args:
        out: the output folder; created if missing.
        state: instead of ``OUT/.urlset``. Both may be links; nothing below them may be one.
        name: of the set; sets of other names in the same folder do not change.
        sets: the names of its ``[[set]]`` tables.
        job: the job whose staging is published; None for a build in one process.

    Raises:
        ConfigError: ``config.name``.
    """

    def __init__(
        self, out: Path, state: Path | None, name: str, sets: Sequence[str], job: str | None
    ) -> None:
        self.out = out
        self.name = check_state_name(name)
        #: the folder with the states of all names, and the one of this name
        self.root = state if state is not None else out / STATE
        self.state = self.root if name == DEFAULT_NAME else self.root / name
        self.staging = self.state / (STAGING if job is None else job_staging(job))
        #: the output folder relative to the state folder: one state serves one output
        self.folder = os.path.relpath(out, self.root)
        self.notes: dict[str, int] = {}
        self.waited: set[str] = set()
        self._own_state = state is None
        self._sets = sets
        self._job = job
        self._steps = Completion()
        self._open = contextlib.ExitStack()
        self._lock: int | None = None
        self._done = False

    def __enter__(self) -> FolderPublication:
        try:
            with self.writing(self.out):
                self._enter()
        except BaseException:
            self._release()
            raise
        return self

    def _enter(self) -> None:
        if self.out.exists() and not self.out.is_dir():
            raise PublishError(f"{self.out}: is not a folder", code="output.not_a_folder")
        self.out.mkdir(parents=True, exist_ok=True)
        live = self._steps.live = self._open.enter_context(Directory.open(self.out))
        if self._own_state:
            self._root = live.sub(self.root.name, make=True)
        else:
            self.root.mkdir(parents=True, exist_ok=True)
            self._root = Directory.open(self.root)
        self._open.enter_context(self._root)
        if calls.device(live.folder) != calls.device(self._root.folder):
            raise PublishError(
                f"{self.root} is on another filesystem than {self.out}: files cannot be moved"
                " atomically; choose another --state",
                code="output.other_filesystem",
            )
        with alone(self._root):
            self._files = self._state_of(self.name)
            self._lock = lock_state(self._files, self.out)
            self._recovery = Recovery(
                self._root, self._files, self._steps, self.name, self._sets, self.folder
            )
            self._recovery.run()
        self.waited = {feed.pending for feed in self._recovery.feeds}
        self.notes = {
            "publish.recovered": int(self._recovery.recovered),
            "changes.recovered": self._recovery.put_aside,
        }
        self._manifest = read_manifest(self._files)
        # recovery removed foreign links, so files staged through this path stay in the folder
        try:
            self._staged = self._open.enter_context(
                self._files.sub(self.staging.name, make=self._job is None)
            )
        except FileNotFoundError:
            raise closed(self._job or "") from None

    def __exit__(self, *_: object) -> None:
        try:
            # A failed build leaves nothing; what cannot be removed now, the next build removes.
            # Once there is a journal, the next build needs the staged files to complete it. The
            # commit of a job can be repeated until it succeeds.
            if not self.is_pending() and (self._job is None or self._done):
                with contextlib.suppress(OSError, PublishError):
                    self._files.clear(self.staging.name)
        finally:
            self._release()

    def _state_of(self, name: str) -> Directory:
        if name == DEFAULT_NAME:
            return self._root
        return self._open.enter_context(self._root.sub(name, make=True))

    def _release(self) -> None:
        if self._lock is not None:
            system.unlock(self._lock)
            self._lock = None
        self._open.close()

    @property
    def leftovers(self) -> dict[str, int]:
        """The number of foreign files with the names of old sitemaps; they were not removed."""
        return {"publish.left": self._steps.left} if self._steps.left else {}

    @property
    def index_overhead(self) -> int:
        """A folder adds nothing to an index."""
        return 0

    @property
    def published(self) -> bool:
        """Whether the new set is live."""
        return self._steps.phase == LIVE

    @property
    def feeds(self) -> Sequence[Feed]:
        """The change feeds that wait for delivery."""
        return self._recovery.feeds

    @property
    def version(self) -> str:
        """The version of the manifest; :data:`ABSENT` if there is none."""
        with self.writing(self.state):
            found = self._files.read(MANIFEST, MAX_STATE_BYTES)
        return ABSENT if found is None else found.version

    def manifest(self) -> Manifest | None:
        """The manifest of the live set; None before the first build."""
        return self._manifest

    def is_pending(self) -> bool:
        """Whether a publication was begun that the next build completes."""
        return self._steps.phase == DURING

    def writing(self, place: Path) -> AbstractContextManager[None]:
        """Converts an OSError into a PublishError that reports the live set and what to do."""
        return self._steps.writing(place)

    @property
    def scratch(self) -> Path:
        """The folder for temporary files of this process."""
        return self.state

    @property
    def temporary(self) -> Path:
        """The staging folder."""
        return self.staging

    @property
    def sizes(self) -> Mapping[str, int]:
        """The core knows the sizes of all files."""
        return {}

    def sink(self) -> Path:
        """The staging folder."""
        return self.staging

    def complete(self, names: Mapping[str, str], rejects: Sequence[Path]) -> list[str]:
        """Ends the part: renames its shards, where they have another final name."""
        with self.writing(self.staging):
            for path, name in names.items():
                if path != name:
                    self._staged.move(path, self._staged, name)
        return [path.name for path in rejects]

    def begin_parts(self, job: str) -> None:
        """Creates the staging of a job with several parts."""
        with self.writing(self.state):
            self._files.sub(job_staging(job), make=True).close()
            self._files.sync()

    def stage(self, files: Mapping[str, str]) -> None:
        """Stages small files, text by path, each fsynced."""
        if len(files) < FEW:
            for path, text in files.items():
                self._stage(path, text)
            return
        from ..pool import Pool  # concurrent.futures takes milliseconds at start-up

        with Pool(STAGING_THREADS) as threads:
            for _ in threads.map(self._stage, files, files.values()):
                pass

    def _stage(self, path: str, text: str) -> None:
        with self.writing(self.staging):
            self._staged.write(path, text.encode())

    def owns(self, target: Target, files: Iterable[str]) -> bool:
        """Whether a path is one of these files of the set, or of its state."""
        if not isinstance(target, Path):
            return False
        real, out = target.resolve(), self.out.resolve()
        if real in {self.state.resolve() / name for name in STATE_FILES}:
            return True
        return real.is_relative_to(out) and real.relative_to(out).as_posix() in set(files)

    def is_live(self, path: str, text: str) -> bool:
        """Whether a small file is live with exactly this content."""
        content = text.encode()
        try:
            found = self._steps.live.read(path, len(content) + 1)
        except (OSError, PublishError):
            return False
        return found is not None and found.data == content

    def is_untouched(self, record: ShardRecord) -> bool:
        """Whether a live shard is as its build left it, by size and time."""
        try:
            found = self.stored(record.path, staged=False)
        except (OSError, PublishError):
            return False
        return found == Stored(record.compressed_bytes, record.mtime_ns)

    def expect(self, paths: Iterable[str]) -> None:
        """The files of a folder need no preparation."""

    def stored(self, path: str, *, staged: bool) -> Stored | None:
        """A staged or live regular file; None if there is none."""
        found = (self._staged if staged else self._steps.live).stat(path)
        if found is None or not stat.S_ISREG(found.st_mode):
            return None
        return Stored(found.st_size, found.st_mtime_ns)

    def local(self, path: str, *, staged: bool) -> Path | None:
        """The path of a staged or live regular file; None if there is none or only a link."""
        folder = self._staged if staged else self._steps.live
        return inside(folder.path, path) if folder.is_file(path) else None

    def publish(
        self, moves: Sequence[str], manifest: Manifest, feeds: Sequence[Feed] | None = None
    ) -> bool:
        """Makes the staged files live, in this order: the indexes last.

        If nothing changed, nothing is written, and the result is False.

        Raises:
            PublishError: a file is in the way that no manifest lists, or the disk failed.
        """
        previous = self._manifest
        feeds = self.feeds if feeds is None else feeds
        same = previous is not None and previous.content() == manifest.content()
        if not moves and same:
            if tuple(feeds) != tuple(self.feeds):
                with self.writing(self.state):
                    self.keep_feeds(feeds)
            self._done = True
            return False
        old = set(previous.files()) if previous is not None else set()
        with self.writing(self.out), alone(self._root):
            self._check_targets(moves, manifest, old)
            for path in {folder_of(path): path for path in moves}.values():
                self._staged.sync(path)
            journal = Journal(
                manifest, tuple(moves), tuple(sorted(old.difference(manifest.files()))),
                tuple(feeds), self.staging.name,
            )  # fmt: skip
            text = to_json(manifest)
            self._steps.begin(journal, text, self._files)
            self._steps.complete(journal, text, self._files)
            former = previous.lastmod if previous is not None else None
            if former is not None and former != manifest.lastmod:
                self._files.clear(former.file)
            self._manifest = manifest
            self.keep_feeds(feeds)
        self._done = True
        return True

    def _check_targets(self, moves: Sequence[str], manifest: Manifest, old: set[str]) -> None:
        """Checks that no file is in the way that does not belong to this set."""
        others = self._recovery.others()
        for path in manifest.files():
            if path in others:
                raise self._recovery.of_another(path, others[path])
        for path in moves:
            found = self._steps.live.stat(path)
            if found is not None and (path not in old or not stat.S_ISREG(found.st_mode)):
                raise PublishError(
                    f"{self.out / path}: is there and no build of urlset is known to have made it;"
                    " move it away, or choose another --name or --out",
                    code="publish.foreign",
                )

    def reject_file(self, name: str) -> Path | None:
        """A reject file of a part; in a job with several parts a copy, for a repeated commit."""
        path = self.state / name
        if self._job is None:
            return path if self._files.is_file(name) else None
        with self.writing(path), contextlib.suppress(FileNotFoundError):
            with os.fdopen(self._staged.open_file(name), "rb") as file:
                self._files.delete(name)
                with path.open("xb") as copy:
                    shutil.copyfileobj(file, copy)
            return path
        return None

    def put_rejects(self, file: Path) -> str:
        """Moves a file that :meth:`reject_file` returned to the place of the reject file."""
        if not self._files.is_file(REJECTS):  # neither a link nor a pipe is replaced
            self._files.clear(REJECTS)
        self._files.move(file.name, self._files, REJECTS)
        return os.fspath(self.state / REJECTS)

    def remove_rejects(self) -> None:
        """Removes the reject file of a previous build."""
        with self.writing(self.state / REJECTS):
            self._files.clear(REJECTS)

    def put_stamps(self, name: str, file: Path) -> None:
        """Moves a file of the staging folder to the state; the journal makes its name durable."""
        with self.writing(file):
            self._staged.move(file.relative_to(self.staging).as_posix(), self._files, name)

    def open_stamps(self, name: str) -> IO[bytes] | None:
        """The stamps of the last build; None if they are gone."""
        try:
            return os.fdopen(self._files.open_file(name), "rb")
        except FileNotFoundError:
            return None

    def pending_name(self, suffix: str) -> str:
        """The name that follows those that wait."""
        numbers = [int(feed.pending.split("-")[2].partition(".")[0]) for feed in self.feeds]
        return f"changes-pending-{max(numbers, default=0) + 1}{suffix}"

    def put_feed(self, pending: str, file: Path) -> None:
        """Moves a file of the staging folder to the feeds that wait."""
        self._staged.move(file.relative_to(self.staging).as_posix(), self._files, pending)
        self._files.sync()

    def open_feed(self, pending: str) -> IO[bytes] | None:
        """A feed that waits; None if it was delivered."""
        try:
            return os.fdopen(self._files.open_file(pending), "rb")
        except FileNotFoundError:
            return None

    def drop_feed(self, pending: str) -> None:
        """Removes a feed that was delivered."""
        self._files.delete(pending)

    def keep_feeds(self, feeds: Sequence[Feed]) -> None:
        """Leaves only these feeds in the journal."""
        self._recovery.keep_feeds(feeds)

    def feed_place(self, pending: str) -> str:
        """The path of a file of the state."""
        return os.fspath(self.state / pending)
