"""From staged to live, so that what is live is whole at every instant.

The protocol, with the former build live until step 4:

1. A lock on ``STATE/lock`` keeps a second build of the same name out.
2. A journal of a killed build (``STATE/publish.json``) is completed; other litter is removed.
3. Shards and indexes are staged in ``STATE/staging`` on the same filesystem, each fsynced.
4. The journal, with every move and the new manifest, is written, fsynced and renamed into place:
   from here on the new build will be live, whoever finishes it.
5. Shards are renamed over the old ones, then the indexes; the folder is fsynced.
6. The manifest is renamed into place, files that only the former build had are removed.
7. Change feeds that the journal lists are delivered (:mod:`urlset.build.changes`), and last the
   journal is removed; it stays, with nothing but its feeds, where one could not be delivered.

Every step can be repeated, so a build that finds a journal runs 5 to 7 again. Files that no
manifest lists are never touched.

Sets of different names share an output folder. The state of ``sitemap`` is the state folder itself,
any other name has a folder in it. Steps 2 and 4 to 6 happen under a lock on the state folder as a
whole, so that two builds see each other's manifests as they are.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import PublishError
from ..signals import undisturbed
from .folder import Folder, folder_of
from .lock import alone, lock_state
from .state import (
    DEFAULT_NAME,
    JOURNAL,
    LITTER,
    LOCK,
    MANIFEST,
    PENDING,
    REJECTS,
    STAGING,
    STATE,
    VERSION,
    check_state_name,
    files_of,
    files_of_journal,
    is_of,
    is_sitemap,
    name_of,
    read_state,
    states_in,
)

#: files that are staged one after the other
FEW = 16
#: what is true of the live set when a step fails, by how far the publication is
BEFORE = "what was live still is"
DURING = "the publication was begun and the next build completes it: the new set goes live"
LIVE = "the new set is live, and the next build finishes the cleaning up"


class Publication:
    """A build's hold on its output folder. A context manager: locks, recovers, cleans up.

    Args:
        out: the output folder; made if missing.
        state: in place of ``OUT/.urlset``. Both may be links, what is below them may not.
        name: of the set; those of other names in the same folder are left alone.
        sets: the names of its ``[[set]]`` tables.

    Raises:
        ConfigError: ``config.name``.
    """

    def __init__(
        self,
        out: Path,
        state: Path | None = None,
        *,
        name: str = DEFAULT_NAME,
        sets: Sequence[str] = (),
    ) -> None:
        self.out = out
        self.name = check_state_name(name)
        self._sets = sets
        self._own_state = state is None
        #: the folder that the states of all names are in, and the one of this name
        self.root = state if state is not None else out / STATE
        self.state = self.root if name == DEFAULT_NAME else self.root / name
        self.staging = self.state / STAGING
        #: the output folder as the state folder sees it: one state serves one output
        self.folder = os.path.relpath(out, self.root)
        #: a build was found that had been killed during its publication, and was completed
        self.recovered = False
        #: files in the place of old sitemaps that are none of urlset's, and were left
        self.left = 0
        #: the feeds that former builds could not deliver: name in the state folder, and target
        self.feeds: list[dict[str, str]] = []
        #: those of them that were there when this build began
        self.waited: set[str] = set()
        #: feeds of urlset 0.1 that were kept as ``changes-recovered.*``
        self.put_aside = 0
        #: what is true of the live set now
        self.phase = BEFORE
        self._open = contextlib.ExitStack()
        self._lock: int | None = None
        # what manifest() has read; nobody else writes it under the lock
        self._known: tuple[dict[str, Any] | None] | None = None

    def __enter__(self) -> Publication:
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
        self.live_files = self._open.enter_context(Folder.open(self.out))
        if self._own_state:
            self._root = self.live_files.sub(self.root.name, make=True)
        else:
            self.root.mkdir(parents=True, exist_ok=True)
            self._root = Folder.open(self.root)
        self._open.enter_context(self._root)
        if os.fstat(self.live_files.descriptor).st_dev != os.fstat(self._root.descriptor).st_dev:
            raise PublishError(
                f"{self.root} is on another filesystem than {self.out}: files could not be"
                " moved at once; choose another --state",
                code="output.other_filesystem",
            )
        with alone(self._root):
            self.files = self._state_of(self.name)
            self._lock = lock_state(self.files, self.out)
            self._take_over()
            self._recover()
            others = self._others()
            taken = f"{self.name}.xml"
            if taken in others:
                raise self._of_another(taken, others[taken])
            self._clean()
        # what others planted is gone, so what is staged through this path stays in it
        self.staged_files = self._open.enter_context(self.files.sub(STAGING, make=True))

    def __exit__(self, *_: object) -> None:
        try:
            # a failed build leaves nothing; whoever cannot remove it now leaves it to the next.
            # Once there is a journal, the next build needs what is staged to complete it.
            if not self.pending():
                with contextlib.suppress(OSError, PublishError):
                    self.files.clear(STAGING)
        finally:
            self._release()

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Turns an OSError into a PublishError that says what is live and what to do."""
        try:
            yield
        except OSError as error:
            name = path if isinstance(error.filename, int) else error.filename or path
            why = error.strerror or str(error)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise PublishError(
                    f"{name}: {why}; {self.phase}: free some room and run again",
                    code="output.disk_full",
                ) from None
            if self.phase != BEFORE:
                raise PublishError(
                    f"{name}: {why}; {self.phase}: mend this and run again",
                    code="output.unwritable",
                ) from None
            if error.errno in (errno.ENOTDIR, errno.EEXIST):
                raise PublishError(f"{name}: is not a folder", code="output.not_a_folder") from None
            raise PublishError(f"{name}: {why}", code="output.unwritable") from None

    def _state_of(self, name: str) -> Folder:
        if name == DEFAULT_NAME:
            return self._root
        return self._open.enter_context(self._root.sub(name, make=True))

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self._open.close()

    def pending(self) -> bool:
        """Whether a publication was begun that the next build will complete."""
        return self.phase == DURING

    def manifest(self) -> dict[str, Any] | None:
        """The manifest of what is live, or None for a first build.

        Raises:
            PublishError: it is damaged, or of a newer urlset.
        """
        if self._known is None:
            self._known = (read_state(self.files, MANIFEST),)
        return self._known[0]

    def _states(self) -> Iterator[tuple[str, Folder]]:
        """The states of all other names, each open for one turn of the loop."""
        return ((name, state) for name, state in states_in(self._root) if name != self.name)

    def _others(self) -> dict[str, str]:
        """The files that sets of other names list, with their names.

        A state that is damaged protects nothing: its files are those that no manifest lists, which
        are never overwritten. Its own next build says so.
        """
        found: dict[str, str] = {}
        for name, folder in self._states():
            # the journal first: once it is gone, the manifest is the new one
            for file, files in ((JOURNAL, files_of_journal), (MANIFEST, files_of)):
                with contextlib.suppress(PublishError):
                    content = read_state(folder, file)
                    if content is not None and self._is_here(content):
                        found.update(dict.fromkeys(files(content), name))
        return found

    def _is_here(self, content: dict[str, Any]) -> bool:
        """Whether a manifest or journal is of this output folder."""
        known = content.get("new", content)
        return bool(known.get("folder", self.folder) == self.folder)

    def _of_another(self, path: str, name: str) -> PublishError:
        return PublishError(
            f"{self.out / path}: belongs to the set {name!r} in this folder; choose another --name"
            " or --out",
            code="publish.other_name",
        )

    def _take_over(self) -> None:
        """Finds the state of this set where urlset 0.1, or a job with other sets, left it."""
        if self.name == DEFAULT_NAME:
            self._make_way()
        if self.manifest() is not None:
            return
        for name, folder in self._states():
            try:
                journal, known = read_state(folder, JOURNAL), read_state(folder, MANIFEST)
            except PublishError:
                continue  # damaged, as above
            known = (journal or {}).get("new", known)
            if known is None or not self._is_here(known) or not is_of(known, self.name, self._sets):
                continue
            lock = lock_state(folder, self.out)
            try:
                self._adopt(folder, journal, self.files)
            finally:
                os.close(lock)
            if name != DEFAULT_NAME:
                folder.unlink(LOCK)
                with contextlib.suppress(OSError):  # not empty
                    self._root.rmdir(name)
            return

    def _make_way(self) -> None:
        """Gives the manifest that urlset 0.1 wrote for another name a folder of its own."""
        try:
            journal, known = read_state(self._root, JOURNAL), read_state(self._root, MANIFEST)
        except PublishError:
            return  # said by whoever reads it next
        known = (journal or {}).get("new", known)
        if known is None or "name" in known or is_of(known, self.name, self._sets):
            return
        if not self._is_here(known):
            return
        with self._root.sub(name_of(known), make=True) as folder:
            if folder.stat(MANIFEST) is not None:
                raise PublishError(
                    f"{folder.path / MANIFEST} and {self.root / MANIFEST} are both of one set;"
                    " remove the older one",
                    code="state.twice",
                )
            self._adopt(self._root, journal, folder)

    def _adopt(self, source: Folder, journal: dict[str, Any] | None, target: Folder) -> None:
        """Moves a set's state to another folder; a publication that was begun is completed."""
        if journal is not None and "new" in journal:
            self._complete(journal, source)
            self.recovered = True
        for pending in sorted(filter(PENDING.fullmatch, source.names())):
            self._put_aside(pending, source, target)
        source.unlink(JOURNAL)
        source.clear(STAGING)
        for name in (REJECTS, MANIFEST):
            with contextlib.suppress(FileNotFoundError):
                source.move(name, target, name)
        target.sync()
        source.sync()
        self._known = None
        self.phase = BEFORE

    def _put_aside(self, pending: str, source: Folder, target: Folder) -> None:
        """Keeps a feed of which nobody knows any more where it was to go."""
        number, kept = 1, f"changes-recovered{Path(pending).suffix}"
        while target.stat(kept) is not None:
            number += 1
            kept = f"changes-recovered-{number}{Path(pending).suffix}"
        source.move(pending, target, kept)
        self.put_aside += 1

    def _recover(self) -> None:
        """Completes the publication of a build that was killed."""
        journal = read_state(self.files, JOURNAL)
        for known in (self.manifest(), (journal or {}).get("new")):
            if known is not None and known.get("folder", self.folder) != self.folder:
                raise PublishError(
                    f"{self.state}: is the state of another output folder ({known['folder']});"
                    " choose another --state",
                    code="state.other_folder",
                )
        if journal is None:
            return
        if "new" in journal:
            self._complete(journal, self.files)
            self.recovered = True
        waiting = [feed for feed in journal.get("feeds", ()) if self.files.is_file(feed["pending"])]
        if "feeds" not in journal:  # of urlset 0.1, which did not note the target
            for pending in ("changes-pending.csv", "changes-pending.jsonl",
                            "changes-pending.parquet"):  # fmt: skip
                if self.files.is_file(pending):
                    self._put_aside(pending, self.files, self.files)
        self.keep_feeds(waiting)
        self.waited = {feed["pending"] for feed in waiting}
        self.phase = BEFORE

    def keep_feeds(self, feeds: list[dict[str, str]]) -> None:
        """Leaves nothing in the journal but the feeds that still have to be delivered."""
        if feeds:
            self._replace(self.files, JOURNAL, {"manifest": VERSION, "feeds": feeds})
        else:
            self.files.unlink(JOURNAL)
            self.files.sync()
        self.feeds = feeds

    def _clean(self) -> None:
        """Removes what builds that ended before their journal have left."""
        waiting = {feed["pending"] for feed in self.feeds}
        for name in self.files.names():
            if name not in waiting and LITTER.fullmatch(name):
                self.files.clear(name)

    def stage(self, files: Mapping[str, str]) -> None:
        """Stages small files, path by text, each fsynced."""
        if len(files) < FEW:
            for path, text in files.items():
                self._stage(path, text)
            return
        from ..build.threads import Pool

        # an index for each of 10,000 values: waiting for the disk 8 at a time takes a quarter
        with Pool(8) as threads:
            for _ in threads.map(self._stage, files, files.values()):
                pass

    def _stage(self, path: str, text: str) -> None:
        with self.writing(self.staging):
            self.staged_files.write(path, text)

    def is_live(self, path: str, text: str) -> bool:
        """Whether a small file is live with just this content."""
        content = text.encode()
        try:
            return self.live_files.read(path, len(content) + 1) == content
        except (OSError, PublishError):
            return False

    def untouched(self, entry: dict[str, Any]) -> bool:
        """Whether a live shard is as the build left it that wrote this entry of the manifest."""
        try:
            found = self.live_files.stat(entry["path"])
        except (OSError, PublishError):
            return False
        if found is None or not stat.S_ISREG(found.st_mode):
            return False
        return (found.st_size, found.st_mtime_ns) == (entry["compressed_bytes"], entry["mtime_ns"])

    def publish(
        self,
        moves: list[str],
        manifest: dict[str, Any],
        feeds: list[dict[str, str]] | None = None,
    ) -> None:
        """Makes the staged files live, in the order given: the indexes last.

        Where nothing changed nothing is written.

        Args:
            moves: the staged files, by their paths in the output folder.
            manifest: of the whole new build; files of the former one that it does not list go.
            feeds: that are to be delivered afterwards, those of former builds among them.

        Raises:
            PublishError: a file is in the way that no manifest lists, or the disk failed.
        """
        former = self.manifest() or {}
        feeds = self.feeds if feeds is None else feeds
        if not moves and former == manifest:
            if feeds != self.feeds:
                with self.writing(self.state):
                    self.keep_feeds(feeds)
            return
        with self.writing(self.out), alone(self._root):
            self._check_targets(moves, manifest, former)
            for path in {folder_of(path): path for path in moves}.values():
                self.staged_files.sync(path)
            journal = {
                "manifest": VERSION,
                "moves": moves,
                "remove": sorted(set(files_of(former)) - set(files_of(manifest))),
                "new": manifest,
                **({"feeds": feeds} if feeds else {}),
            }
            self._replace(self.files, JOURNAL, journal)
            self._complete(journal, self.files)
            self.keep_feeds(feeds)

    def _check_targets(
        self, moves: list[str], manifest: dict[str, Any], former: dict[str, Any]
    ) -> None:
        """Nothing is in the way that is not this set's own."""
        others = self._others()
        for path in files_of(manifest):
            if path in others:
                raise self._of_another(path, others[path])
        ours = set(files_of(former))
        for path in moves:
            found = self.live_files.stat(path)
            if found is not None and (path not in ours or not stat.S_ISREG(found.st_mode)):
                raise PublishError(
                    f"{self.out / path}: is there and no build of urlset is known to have made it;"
                    " move it away, or choose another --name or --out",
                    code="publish.foreign",
                )

    def _complete(self, journal: dict[str, Any], state: Folder) -> None:
        """Steps 5 and 6; whatever of them was done before is skipped."""
        self.phase = DURING
        moves = journal["moves"]
        folders = {folder_of(path): path for path in moves}.values()
        for path in folders:
            self.live_files.make(path)
        missing = ""
        with contextlib.ExitStack() as opened:
            staged = None
            with contextlib.suppress(FileNotFoundError):  # all was moved, and it was removed
                staged = opened.enter_context(state.sub(STAGING))
            with undisturbed():
                for path in moves:
                    if staged is not None:
                        with contextlib.suppress(FileNotFoundError):  # moved before the kill
                            staged.move(path, self.live_files, path)
        for path in folders:
            self.live_files.sync(path)
        missing = next((path for path in moves if not self.live_files.is_file(path)), "")
        if missing:
            raise PublishError(
                f"{self.out}: {missing} was staged and is gone; remove"
                f" {state.path / JOURNAL} and build again",
                code="publish.incomplete",
            )
        self._replace(state, MANIFEST, journal["new"])
        self.phase = LIVE
        for path in journal["remove"]:
            self._remove(path)

    def _remove(self, path: str) -> None:
        """Removes a sitemap of the former build; what is no file of urlset's stays."""
        try:
            found = self.live_files.stat(path)
        except (NotADirectoryError, PublishError):  # a file or a link in the place of its folder
            self.left += 1
            return
        if found is None:
            return
        if not stat.S_ISREG(found.st_mode) or not is_sitemap(path):
            self.left += 1
            return
        self.live_files.unlink(path)
        folder = folder_of(path)
        if folder:
            with contextlib.suppress(OSError):  # not empty: foreign files stay
                self.live_files.rmdir(folder)

    def _replace(self, folder: Folder, name: str, content: dict[str, Any]) -> None:
        self._known = None
        folder.write(f"{name}.new", json.dumps(content, separators=(",", ":")))
        folder.move(f"{name}.new", folder, name)
        if name == JOURNAL and "new" in content:
            self.phase = DURING
        folder.sync()
