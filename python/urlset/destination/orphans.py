"""What killed builds leave that nothing lists: files of a set or of its state.

Only files whose names urlset alone makes are considered: shards with content names, manifests and
journals of publications to a store, change feeds that wait in a store, the staging of jobs. A file
that any manifest lists stays, and so do files of sets whose manifest is not in this state.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ..errors import PublishError
from ..transport.store import Location, open_store
from .completion import Completion
from .directory import Directory
from .folder import FolderDestination
from .lock import alone
from .manifest import JOB_STAGING, LASTMOD, PENDING, Manifest
from .object_store import StoreDestination
from .state import DEFAULT_NAME, RESERVED, STATE, read_journal, read_manifest, states_in
from .store_state import OF_A_PUBLICATION, State, journal_name, manifest_name, read_live

#: a shard with a content name; the stem begins with the name of its set
SHARD = re.compile(
    r"(?:[^/]+/)?(?P<stem>[^/]+)-[0-9a-f]{16}-[0-9a-f]{16}\.(?:xml|txt)(?:\.gz)?", re.ASCII
)
#: what a job with several parts has in a store
JOB_FILE = re.compile(rf"{JOB_STAGING}/(?:open|rejects-[0-9a-f]{{32}}-[0-9]+\.new)")


class Orphan(NamedTuple):
    """A file, or the staging folder of a job, that nothing lists.

    Attributes:
        path: the local path or the address.
        size: in bytes.
        modified: when it was written.
    """

    path: str
    size: int
    modified: datetime


class _Listed(NamedTuple):
    """What the manifests of a state protect: the files that they list, the names of their sets."""

    files: set[str]
    names: set[str]

    def add(self, name: str, manifest: Manifest) -> None:
        self.files.update(manifest.files())
        self.names.update((name, *manifest.sets))

    def is_orphan(self, path: str, indexes: set[str]) -> bool:
        """Whether a file is a shard of one of these sets that none of their manifests lists.

        Args:
            indexes: the names of all files that may be indexes.
        """
        match = SHARD.fullmatch(path)
        if match is None or path in self.files:
            return False
        folder = path[: match.start("stem")]
        words = match["stem"].split("-")
        # the longest name that has an index is the set, and must be one of these
        for end in range(len(words), 0, -1):
            stem = "-".join(words[:end])
            if stem in self.names:
                return True
            index = f"{folder}{stem}.xml"
            if index in indexes:
                return index in self.files
        return False


def clean(
    destination: FolderDestination | StoreDestination, before: datetime, *, dry_run: bool
) -> list[Orphan]:
    """Removes what nothing lists and what was written before a time.

    Returns:
        What was removed, or would be.

    Raises:
        PublishError: ``clean.no_manifest``; ``output.locked``; what reading a state raises.
    """
    if isinstance(destination, StoreDestination):
        return _clean_store(destination, before, dry_run)
    out, state = destination.out, destination.state
    with Completion().writing(out):
        return _clean_folder(out, out / STATE if state is None else state, before, dry_run)


def _no_manifest(state: str) -> PublishError:
    return PublishError(
        f"{state}: contains no manifest, so what is live is not known; name the --state of the"
        " builds",
        code="clean.no_manifest",
    )


def _clean_folder(out: Path, state: Path, before: datetime, dry_run: bool) -> list[Orphan]:
    listed = _Listed(set(), set())
    found: list[Orphan] = []
    with contextlib.ExitStack() as opened:
        live = opened.enter_context(Directory.open(out))
        try:
            root = opened.enter_context(Directory.open(state))
        except FileNotFoundError:
            raise _no_manifest(os.fspath(state)) from None
        opened.enter_context(alone(root))
        for name, folder in states_in(root):
            manifest, journal = read_manifest(folder), read_journal(folder)
            if manifest is not None:
                listed.add(name, manifest)
            if journal is not None:
                listed.files.update(journal.files())
            # the next build completes the publication of a killed commit from its staging
            needed = journal.staging if journal is not None and journal.new is not None else None
            for staging in (name for name in folder.list() if re.fullmatch(JOB_STAGING, name)):
                if staging == needed:
                    continue
                orphan = _size_of(folder, staging)
                if orphan.modified < before:
                    found.append(orphan)
                    if not dry_run:
                        folder.clear(staging)
        if not listed.names:
            raise _no_manifest(os.fspath(state))
        files = dict(_files(live))
        indexes = {path for path in files if path.endswith(".xml")}
        for path, about in files.items():
            modified = datetime.fromtimestamp(about.st_mtime, UTC)
            if modified < before and listed.is_orphan(path, indexes):
                found.append(Orphan(os.fspath(out / path), about.st_size, modified))
                if not dry_run:
                    live.delete(path)
    return found


def _files(live: Directory) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files of a folder and of the folders in it; links are not followed."""
    for name in live.list():
        about = live.stat(name)
        if about is not None and stat.S_ISREG(about.st_mode):
            yield name, about
        elif about is not None and stat.S_ISDIR(about.st_mode) and name != STATE:
            with live.sub(name) as folder:
                for inner in folder.list():
                    within = folder.stat(inner)
                    if within is not None and stat.S_ISREG(within.st_mode):
                        yield f"{name}/{inner}", within


def _size_of(folder: Directory, name: str) -> Orphan:
    """The staging folder of a job, with its size and the time of its newest file."""
    size, newest = 0, 0.0
    for path, _, files in os.walk(folder.path / name):
        for each in (path, *(f"{path}/{file}" for file in files)):
            try:
                about = os.lstat(each)
            except FileNotFoundError:  # a task or the commit works there
                newest = time.time()
                continue
            newest = max(newest, about.st_mtime)
            size += about.st_size if stat.S_ISREG(about.st_mode) else 0
    newest = newest or time.time()  # it was removed meanwhile
    return Orphan(os.fspath(folder.path / name), size, datetime.fromtimestamp(newest, UTC))


def _clean_store(destination: StoreDestination, before: datetime, dry_run: bool) -> list[Orphan]:
    out = open_store(destination.out, error=PublishError)
    state = None
    if destination.state is not None:
        state = open_store(destination.state, error=PublishError)
    listed, kept = _protected(out, state)
    if not listed.names:
        raise _no_manifest(State.of(out, state, DEFAULT_NAME).url())
    location, prefix = State.of(out, state, DEFAULT_NAME)
    found: list[tuple[Location, str, Orphan]] = []
    files = {one.key: one for one in out.list()}
    indexes = {key for key in files if key.endswith(".xml")}
    for key, one in files.items():
        if not key.startswith(f"{STATE}/") and listed.is_orphan(key, indexes):
            found.append((out, key, Orphan(out.url(key), one.size, one.modified)))
    for one in location.list(prefix):
        name = one.key.removeprefix(prefix)
        if one.key not in kept and _is_of_a_state(name, listed.names):
            found.append((location, one.key, Orphan(location.url(one.key), one.size, one.modified)))
    found = [each for each in found if each[2].modified < before]
    if found and not dry_run:
        if _protected(out, state) != (listed, kept):
            raise PublishError(
                f"{out}: a build published meanwhile; nothing was removed; run it again",
                code="publish.conflict",
            )
        for place in dict.fromkeys((out, location)):
            place.delete([key for where, key, _ in found if where is place])
    return [orphan for _, _, orphan in found]


def _is_of_a_state(path: str, names: set[str]) -> bool:
    """Whether urlset alone gives an object of a state this name."""
    if JOB_FILE.fullmatch(path) or JOB_FILE.fullmatch(path.partition("/")[2]):
        return True
    folder, _, name = path.rpartition("/")
    if folder and folder not in names:
        return False
    return bool(OF_A_PUBLICATION.fullmatch(name) or re.fullmatch(f"{PENDING}|{LASTMOD}", name))


def _protected(out: Location, state: Location | None) -> tuple[_Listed, set[str]]:
    """What the manifests of all names list, and the objects of the state that are in use."""
    listed = _Listed(set(), set())
    kept: set[str] = set()
    location, prefix = State.of(out, state, DEFAULT_NAME)
    names: set[str] = set()
    for one in location.list(prefix):
        folder, _, name = one.key.removeprefix(prefix).rpartition("/")
        if "/" not in folder and not re.fullmatch(RESERVED, folder) and "manifest" in name:
            names.add(folder or DEFAULT_NAME)
    for name in sorted(names):
        of_name = State.of(out, state, name)
        live = read_live(out, of_name, name)
        if live.manifest is None or live.manifest.store is None:
            continue
        listed.add(name, live.manifest)
        digest = live.digest or ""
        kept |= {of_name.key(manifest_name(digest)), of_name.key(journal_name(digest))}
        kept |= {of_name.key(feed.pending) for feed in live.manifest.store.feeds}
        if live.manifest.lastmod is not None:
            kept.add(of_name.key(live.manifest.lastmod.file))
    return listed, kept
