"""The second half of a publication: from the journal to the live set."""

from __future__ import annotations

import contextlib
import errno
import stat
from collections.abc import Iterator
from pathlib import Path

from ..errors import PublishError
from ..signals import undisturbed
from .directory import Directory, folder_of
from .manifest import STAGING, Journal, is_sitemap, to_json
from .state import JOURNAL, MANIFEST

#: the state of the live set for the message of a failed step, by phase of the publication
BEFORE = "the previous set is still live"
DURING = "the publication was begun and the next build completes it: the new set goes live"
LIVE = "the new set is live, and the next build finishes the cleanup"


class Completion:
    """Moves staged files to the output folder, and keeps track of the phase.

    For maintainers: every step can be repeated, since a killed build is completed from its journal.
    ``test_an_end_at_every_step_of_the_publication`` fails if one cannot.

    Attributes:
        live: the output folder.
        phase: the current state of the live set, for messages.
        left: the number of foreign files with the names of old sitemaps; they were not removed.
    """

    live: Directory

    def __init__(self) -> None:
        self.phase = BEFORE
        self.left = 0

    @contextlib.contextmanager
    def writing(self, place: Path) -> Iterator[None]:
        """Converts an OSError into a PublishError that reports the live set and what to do."""
        try:
            yield
        except OSError as error:
            name = place if isinstance(error.filename, int) else error.filename or place
            why = error.strerror or str(error)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise PublishError(
                    f"{name}: {why}; {self.phase}: free some space and run again",
                    code="output.disk_full",
                ) from None
            if error.errno in (errno.EMFILE, errno.ENFILE):
                why += "; allow more open files (ulimit -n)"
            if self.phase != BEFORE:
                raise PublishError(
                    f"{name}: {why}; {self.phase}: fix this and run again",
                    code="output.unwritable",
                ) from None
            if error.errno in (errno.ENOTDIR, errno.EEXIST):
                raise PublishError(f"{name}: is not a folder", code="output.not_a_folder") from None
            raise PublishError(f"{name}: {why}", code="output.unwritable") from None

    def complete(self, journal: Journal, text: str, state: Directory) -> None:
        """Steps 5 and 6 of the publication; a step that was done before is skipped.

        Args:
            journal: of the state folder ``state``.
            text: the manifest of the journal.

        Raises:
            PublishError: ``publish.incomplete``: a staged file is gone.
        """
        self.phase = DURING
        folders = {folder_of(path): path for path in journal.moves}.values()
        for path in folders:
            self.live.make(path)
        with contextlib.ExitStack() as opened:
            moves = journal.moves
            try:
                staged = opened.enter_context(state.sub(journal.staging))
            except FileNotFoundError:  # all files were moved before, and it was removed
                staged, moves = state, ()
            with undisturbed():
                for path in moves:
                    with contextlib.suppress(FileNotFoundError):  # moved before the kill
                        staged.move(path, self.live, path)
        for path in folders:
            self.live.sync(path)
        missing = next((path for path in journal.moves if not self.live.is_file(path)), None)
        if missing is not None:
            raise PublishError(
                f"{self.live.path}: {missing} was staged and is gone; remove"
                f" {state.path / JOURNAL} and build again",
                code="publish.incomplete",
            )
        self.replace(state, MANIFEST, text)
        self.phase = LIVE
        for path in journal.remove:
            self._remove(path)
        if journal.staging != STAGING:
            state.clear(journal.staging)

    def _remove(self, path: str) -> None:
        """Removes a sitemap of the previous set; other files stay."""
        try:
            found = self.live.stat(path)
        except (NotADirectoryError, PublishError):  # a file or a link in the place of its folder
            self.left += 1
            return
        if found is None:
            return
        if not stat.S_ISREG(found.st_mode) or not is_sitemap(path):
            self.left += 1
            return
        self.live.delete(path)
        folder = folder_of(path)
        if folder:
            with contextlib.suppress(OSError):  # not empty: foreign files stay
                self.live.rmdir(folder)

    def begin(self, journal: Journal, text: str, state: Directory) -> None:
        """Step 4: writes the journal of a new set; from here on, the set goes live.

        Args:
            text: the manifest of the journal.
        """
        state.write(JOURNAL, to_json(journal, text).encode())
        self.phase = DURING
        state.sync()

    def replace(self, state: Directory, name: str, text: str) -> None:
        """Writes a manifest, or a journal without one."""
        state.write(name, text.encode())
        state.sync()
