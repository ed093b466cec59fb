"""The start of a build: completes a killed publication and finds the state of its set."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import system
from ..errors import PublishError
from .completion import BEFORE, Completion
from .directory import Directory
from .lock import lock_state
from .manifest import LASTMOD, PENDING, STAGING, Feed, Journal, Manifest, to_json
from .state import (
    DEFAULT_NAME,
    JOURNAL,
    LITTER,
    LOCK,
    MANIFEST,
    REJECTS,
    continues,
    name_of,
    read_journal,
    read_manifest,
    states_in,
)

#: the feeds of urlset 0.1, whose journal did not record where they go
FEEDS_OF_0_1 = tuple(f"changes-pending.{kind}" for kind in ("csv", "jsonl", "parquet"))


class Recovery:
    """The states in a state folder, under the lock on the folder as a whole.

    Args:
        root: the folder with the states of all names.
        name: of the set.
        sets: the names of its ``[[set]]`` tables.
        folder: the output folder as the manifest names it.

    Attributes:
        state: the state of this name.
        recovered: a build was found that was killed during its publication; it was completed.
        put_aside: the number of feeds of urlset 0.1 that were kept as ``changes-recovered.*``.
        feeds: the feeds that previous builds could not deliver.
    """

    def __init__(
        self, root: Directory, state: Directory, steps: Completion, name: str,
        sets: Sequence[str], folder: str,
    ) -> None:  # fmt: skip
        self.root, self.state = root, state
        self.recovered = False
        self.put_aside = 0
        self.feeds: tuple[Feed, ...] = ()
        self._steps = steps
        self._name, self._sets = name, sets
        self._folder = folder

    def run(self) -> None:
        """Finds the state, completes a publication that was begun, and removes leftovers.

        Raises:
            PublishError: ``publish.other_name``: the index of this name belongs to another set;
                what reading and completing a state raises.
        """
        self._take_over()
        self._complete_own()
        others = self.others()
        index = f"{self._name}.xml"
        if index in others:
            raise self.of_another(index, others[index])
        waiting = {feed.pending for feed in self.feeds}
        manifest = read_manifest(self.state)
        if manifest is not None and manifest.lastmod is not None:
            waiting.add(manifest.lastmod.file)
        for name in self.state.list():
            if name not in waiting and re.fullmatch(f"{LITTER}|{LASTMOD}", name):
                self.state.clear(name)

    def others(self) -> dict[str, str]:
        """The files that sets of other names list, with these names.

        A damaged state protects nothing: its files are like those that no manifest lists, which are
        never overwritten. The next build of its name reports the damage.
        """
        found: dict[str, str] = {}
        for name, folder in self._states():
            # the journal first: once it is gone, the manifest is the new one
            with contextlib.suppress(PublishError):
                journal = read_journal(folder)
                if journal is not None and (journal.new is None or self._is_here(journal.new)):
                    found.update(dict.fromkeys(journal.files(), name))
            with contextlib.suppress(PublishError):
                manifest = read_manifest(folder)
                if manifest is not None and self._is_here(manifest):
                    found.update(dict.fromkeys(manifest.files(), name))
        return found

    def of_another(self, path: str, name: str) -> PublishError:
        """The error for a file that a set of another name lists."""
        return PublishError(
            f"{self._steps.live.path / path}: belongs to the set {name!r} in this folder; choose"
            " another --name or --out",
            code="publish.other_name",
        )

    def keep_feeds(self, feeds: Sequence[Feed]) -> None:
        """Leaves only these feeds in the journal; without any, removes it."""
        if feeds:
            self._steps.replace(self.state, JOURNAL, to_json(Journal(feeds=tuple(feeds))))
        else:
            self.state.delete(JOURNAL)
            self.state.sync()
        self.feeds = tuple(feeds)

    def _states(self) -> Iterator[tuple[str, Directory]]:
        """The states of all other names, each open for one iteration of the loop."""
        return ((name, state) for name, state in states_in(self.root) if name != self._name)

    def _is_here(self, manifest: Manifest) -> bool:
        return manifest.folder == self._folder

    def _take_over(self) -> None:
        """Finds the state of this set where urlset 0.1, or a job with other sets, left it."""
        if self._name == DEFAULT_NAME:
            self._make_way()
        if read_manifest(self.state) is not None:
            return
        for name, folder in self._states():
            try:
                journal, known = _journal_and_manifest(folder)
            except PublishError:
                continue  # damaged, see others()
            if (
                known is None
                or not self._is_here(known)
                or not continues(known, self._name, self._sets)
            ):
                continue
            lock = lock_state(folder, self._steps.live.path)
            try:
                self._adopt(folder, journal, self.state)
            finally:
                system.unlock(lock)
            if name != DEFAULT_NAME:
                folder.delete(LOCK)
                with contextlib.suppress(OSError):  # not empty
                    self.root.rmdir(name)
            return

    def _make_way(self) -> None:
        """Moves the manifest that urlset 0.1 wrote for another name to its own folder."""
        try:
            journal, known = _journal_and_manifest(self.root)
        except PublishError:
            return  # the next read reports it
        if known is None or known.name is not None or continues(known, self._name, self._sets):
            return
        if not self._is_here(known):
            return
        with self.root.sub(name_of(known), make=True) as folder:
            if folder.stat(MANIFEST) is not None:
                raise PublishError(
                    f"{folder.path / MANIFEST} and {self.root.path / MANIFEST} are both of one set;"
                    " remove the older one",
                    code="state.twice",
                )
            self._adopt(self.root, journal, folder)

    def _adopt(self, source: Directory, journal: Journal | None, target: Directory) -> None:
        """Moves the state of a set to another folder; a publication that was begun is completed."""
        if journal is not None and journal.new is not None:
            self._steps.complete(journal, to_json(journal.new), source)
            self.recovered = True
        for pending in (name for name in source.list() if re.fullmatch(PENDING, name)):
            self._put_aside(pending, source, target)
        source.delete(JOURNAL)
        source.clear(STAGING)
        stamps = [name for name in source.list() if re.fullmatch(LASTMOD, name)]
        for name in (*stamps, REJECTS, MANIFEST):
            with contextlib.suppress(FileNotFoundError):
                source.move(name, target, name)
        target.sync()
        source.sync()
        self._steps.phase = BEFORE

    def _put_aside(self, pending: str, source: Directory, target: Directory) -> None:
        """Keeps a feed whose target is unknown."""
        number, kept = 1, f"changes-recovered{Path(pending).suffix}"
        while target.stat(kept) is not None:
            number += 1
            kept = f"changes-recovered-{number}{Path(pending).suffix}"
        source.move(pending, target, kept)
        self.put_aside += 1

    def _complete_own(self) -> None:
        """Completes the publication of a killed build of this name."""
        journal = read_journal(self.state)
        for known in (read_manifest(self.state), journal.new if journal is not None else None):
            if known is not None and not self._is_here(known):
                raise PublishError(
                    f"{self.state.path}: is the state of another output folder ({known.folder});"
                    " choose another --state",
                    code="state.other_folder",
                )
        if journal is None:
            return
        if journal.new is not None:
            self._steps.complete(journal, to_json(journal.new), self.state)
            self.recovered = True
        waiting = [feed for feed in journal.feeds or () if self.state.is_file(feed.pending)]
        if journal.feeds is None:
            for pending in filter(self.state.is_file, FEEDS_OF_0_1):
                self._put_aside(pending, self.state, self.state)
        self.keep_feeds(waiting)
        self._steps.phase = BEFORE


def _journal_and_manifest(folder: Directory) -> tuple[Journal | None, Manifest | None]:
    """The journal of a state, and the manifest that is live once the journal is completed."""
    journal, manifest = read_journal(folder), read_manifest(folder)
    if journal is not None and journal.new is not None:
        return journal, journal.new
    return journal, manifest
