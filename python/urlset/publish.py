"""Staged to live, so that what is live is whole at every instant.

The protocol, with the former build live until step 4:

1. A lock on ``STATE/lock`` keeps a second build out.
2. A journal of a killed build (``STATE/publish.json``) is completed; other litter is removed.
3. Shards and indexes are staged in ``STATE/staging`` on the same filesystem, each fsynced.
4. The journal, with every move and the new manifest, is written, fsynced and renamed into place:
   from here on the new build will be live, whoever finishes it.
5. Shards are renamed over the old ones, then the indexes; the folder is fsynced.
6. The manifest is renamed into place, files that only the former build had are removed, and last
   the journal.

Every step can be repeated, so a build that finds a journal runs 5 and 6 again. Files that no
manifest lists are never touched.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from .errors import PublishError
from .signals import undisturbed

MANIFEST = "manifest.json"
JOURNAL = "publish.json"
STAGING = "staging"
LOCK = "lock"
#: the version of manifest and journal; a newer one is not touched
VERSION = 1
#: files that are staged one after the other
FEW = 16
#: larger than the manifest of 2.5 billion URLs in 50,000 shards twice over
MAX_STATE_BYTES = 256 << 20
#: what a manifest says of a shard and later goes into other files
DIGEST, TIME = r"[0-9a-f]{32}", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class Publication:
    """A build's hold on its output folder. A context manager: locks, recovers, cleans up."""

    def __init__(self, out: Path, state: Path | None = None) -> None:
        self.out = out
        self.state = state if state is not None else out / ".urlset"
        self.staging = self.state / STAGING
        #: the output folder as the state folder sees it: one state serves one output
        self.folder = os.path.relpath(out, self.state)
        #: a build was found that had been killed during its publication, and was completed
        self.recovered = False
        self._lock: int | None = None

    def __enter__(self) -> Publication:
        with writing(self.out):
            if self.out.exists() and not self.out.is_dir():
                raise PublishError(f"{self.out}: is not a folder", code="output.not_a_folder")
            self.out.mkdir(parents=True, exist_ok=True)
            self.state.mkdir(parents=True, exist_ok=True)
            if self.out.stat().st_dev != self.state.stat().st_dev:
                raise PublishError(
                    f"{self.state} is on another filesystem than {self.out}: files could not be"
                    " moved at once; choose another --state",
                    code="output.other_filesystem",
                )
        self._acquire()
        try:
            with writing(self.state):
                self._recover()
                self._clean()
                self.staging.mkdir()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            # a failed build leaves nothing; whoever cannot remove it now leaves it to the next.
            # Once there is a journal, the next build needs what is staged to complete it.
            if not self.pending():
                shutil.rmtree(self.staging, ignore_errors=True)
        finally:
            self._release()

    def _acquire(self) -> None:
        path = self.state / LOCK
        with writing(path):
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise PublishError(
                    f"{path}: {error.strerror}; file locks are needed", code="output.lock"
                ) from None
            raise PublishError(
                f"{self.out}: another build is publishing here; wait for it, or choose another"
                " --out",
                code="output.locked",
            ) from None
        self._lock = lock

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def pending(self) -> bool:
        """Whether a publication was begun that the next build will complete."""
        return (self.state / JOURNAL).exists()

    def manifest(self) -> dict[str, Any] | None:
        """The manifest of what is live, or None for a first build.

        Raises:
            PublishError: it is damaged, or of a newer urlset.
        """
        return read_state(self.state / MANIFEST)

    def _recover(self) -> None:
        """Completes the publication of a build that was killed."""
        journal = read_state(self.state / JOURNAL)
        for known in (self.manifest(), (journal or {}).get("new")):
            if known is not None and known.get("folder", self.folder) != self.folder:
                raise PublishError(
                    f"{self.state}: is the state of another output folder ({known['folder']});"
                    " choose another --state",
                    code="state.other_folder",
                )
        if journal is not None:
            self._complete(journal)
            self.recovered = True

    def _clean(self) -> None:
        if self.staging.is_symlink():
            self.staging.unlink()
        elif self.staging.exists():
            shutil.rmtree(self.staging)
        for leftover in self.state.glob("*.new"):
            leftover.unlink()

    def stage(self, files: Mapping[str, str]) -> None:
        """Stages small files, path by text, each fsynced."""
        if len(files) < FEW:
            for path, text in files.items():
                self._stage(path, text)
            return
        from .threads import Pool

        # an index for each of 10,000 values: waiting for the disk 8 at a time takes a quarter
        with Pool(8) as threads:
            for _ in threads.map(self._stage, files, files.values()):
                pass

    def _stage(self, path: str, text: str) -> None:
        target = inside(self.staging, path)
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_synced(target, text)

    def is_live(self, path: str, text: str) -> bool:
        """Whether a small file is live with just this content."""
        live = inside(self.out, path)
        try:
            return live.stat().st_size == len(text.encode()) and live.read_bytes() == text.encode()
        except OSError:
            return False

    def publish(self, moves: list[str], manifest: dict[str, Any]) -> None:
        """Makes the staged files live, in the order given: the indexes last.

        Where nothing changed nothing is written.

        Args:
            moves: the staged files, by their paths in the output folder.
            manifest: of the whole new build; files of the former one that it does not list go.

        Raises:
            PublishError: a file is in the way that no manifest lists, or the disk failed.
        """
        former = self.manifest() or {}
        if not moves and former == manifest:
            return
        ours = set(files_of(former))
        for path in moves:
            live = inside(self.out, path)
            if live.is_dir() or (path not in ours and live.exists()):
                raise PublishError(
                    f"{self.out / path}: is there and no build of urlset is known to have made it;"
                    " move it away, or choose another --name or --out",
                    code="publish.foreign",
                )
        journal = {
            "manifest": VERSION,
            "moves": moves,
            "remove": sorted(ours - set(files_of(manifest))),
            "new": manifest,
        }
        with writing(self.out):
            for folder in {inside(self.staging, path).parent for path in moves}:
                sync_folder(folder)
            self._replace(JOURNAL, journal)
            self._complete(journal)

    def _complete(self, journal: dict[str, Any]) -> None:
        """Steps 5 and 6; whatever of them was done before is skipped."""
        moves = [str(path) for path in journal["moves"]]
        folders = {inside(self.out, path).parent for path in moves}
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        with undisturbed():
            for path in moves:
                with contextlib.suppress(FileNotFoundError):  # moved before the kill
                    inside(self.staging, path).replace(inside(self.out, path))
        for folder in folders:
            sync_folder(folder)
        missing = [path for path in moves if not inside(self.out, path).exists()]
        if missing:
            raise PublishError(
                f"{self.out}: {missing[0]} was staged and is gone; remove"
                f" {self.state / JOURNAL} and build again",
                code="publish.incomplete",
            )
        self._replace(MANIFEST, journal["new"])
        for path in journal["remove"]:
            stale = inside(self.out, str(path))
            with contextlib.suppress(FileNotFoundError):
                stale.unlink()
            if stale.parent != self.out:
                with contextlib.suppress(OSError):  # not empty: foreign files stay
                    stale.parent.rmdir()
        (self.state / JOURNAL).unlink()
        sync_folder(self.state)

    def _replace(self, name: str, content: dict[str, Any]) -> None:
        new = self.state / f"{name}.new"
        write_synced(new, json.dumps(content, separators=(",", ":")))
        new.replace(self.state / name)
        sync_folder(self.state)


def files_of(manifest: dict[str, Any]) -> Iterator[str]:
    """Every file that a manifest lists."""
    for kind in ("shards", "indexes"):
        for entry in manifest.get(kind, ()):
            yield str(entry["path"])
    for path in manifest.get("retired", ()):
        yield str(path)


def inside(folder: Path, path: str) -> Path:
    """``path`` in ``folder``; nothing that a journal or a manifest says leads out of it."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise PublishError(f"{path!r} leads out of {folder}", code="publish.path")
    return folder.joinpath(*parts)


def untouched(out: Path, entry: dict[str, Any]) -> bool:
    """Whether a live shard is as the build left it that wrote this entry of the manifest."""
    try:
        stat = inside(out, entry["path"]).stat()
    except OSError:
        return False
    return (stat.st_size, stat.st_mtime_ns) == (entry["compressed_bytes"], entry["mtime_ns"])


def read_state(path: Path) -> dict[str, Any] | None:
    """A manifest or journal; None if there is none.

    Raises:
        PublishError: it cannot be read, is damaged or of a newer urlset.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_STATE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PublishError(f"{path}: {error.strerror}", code="state.unreadable") from None
    try:
        if len(data) > MAX_STATE_BYTES:
            raise ValueError("too large")
        content = json.loads(data)
        version = content["manifest"]
        if type(version) is not int or version < 1:
            raise TypeError("version")
        if version <= VERSION:
            if path.name == JOURNAL and not {"moves", "remove", "new"} <= content.keys():
                raise KeyError("moves")
            _check_shape(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise PublishError(
            f"{path}: is damaged; put a copy of it back, or remove it together with the sitemaps"
            " of the former build and build everything anew",
            code="state.damaged",
        ) from None
    if version > VERSION:
        raise PublishError(
            f"{path}: was written by a newer urlset; update urlset, or choose another --out",
            code="state.newer",
        )
    return dict(content)


def _check_shape(content: dict[str, Any]) -> None:
    """The parts that are used are there and of their types, and no path leads out."""
    for holder in (content, content.get("new", {})):
        paths: list[Any] = []
        for kind in ("shards", "indexes"):
            paths += [entry["path"] for entry in _list(holder, kind)]
        for kind in ("retired", "moves", "remove"):
            paths += _list(holder, kind)
        for path in paths:
            if not isinstance(path, str):
                raise TypeError("path")
            inside(Path(), path)
        urls = holder.get("urls", 0)
        if type(urls) is not int or urls < 0:
            raise TypeError("urls")
        if not isinstance(holder.get("folder", ""), str):
            raise TypeError("folder")
        for shard in _list(holder, "shards"):
            for key, form in (("digest", DIGEST), ("changed_at", TIME)):
                if not re.fullmatch(form, shard[key], re.ASCII):
                    raise ValueError(key)
            for key in ("compressed_bytes", "mtime_ns"):
                if type(shard[key]) is not int:
                    raise TypeError(key)


def _list(holder: dict[str, Any], key: str) -> list[Any]:
    value = holder.get(key, [])
    if not isinstance(value, list):
        raise TypeError(key)
    return value


def write_synced(path: Path, text: str) -> None:
    """Writes a file with the usual mode (0666 less the umask) and waits for the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an OSError into a PublishError that says what to do."""
    try:
        yield
    except OSError as error:
        name = os.fspath(error.filename or path)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise PublishError(
                f"{name}: {error.strerror}; what was live still is: free some room and run again",
                code="output.disk_full",
            ) from None
        if error.errno in (errno.ENOTDIR, errno.EEXIST):
            raise PublishError(f"{name}: is not a folder", code="output.not_a_folder") from None
        raise PublishError(f"{name}: {error.strerror}", code="output.unwritable") from None
