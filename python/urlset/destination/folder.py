"""A folder as a destination."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..outfile import random_id
from ..transport.target import Target
from .completion import Completion
from .directory import Directory, folder_of
from .manifest import is_sitemap
from .publication import FolderPublication, closed, job_staging
from .state import DEFAULT_NAME, STATE, STATE_FILES, read_journal


@dataclass(frozen=True, slots=True)
class FolderDestination:
    """A folder, and the folder for its state.

    Attributes:
        out: the output folder.
        state: the state folder; None for ``OUT/.urlset``.
    """

    out: Path
    state: Path | None = None

    def __str__(self) -> str:
        return os.fspath(self.out)

    @property
    def name_salt(self) -> str | None:
        """Only shards of jobs with several parts need content names."""
        return None

    def absolute(self) -> FolderDestination:
        """The same destination for processes with another working directory."""
        return FolderDestination(self.out.absolute(), self.state and self.state.absolute())

    def publication(
        self, name: str, sets: Sequence[str] = (), *, job: str | None = None
    ) -> FolderPublication:
        """See :class:`urlset.destination.interface.Destination`."""
        return FolderPublication(self.out, self.state, name, sets, job)

    @contextlib.contextmanager
    def staging(self, name: str, job: str) -> Iterator[FolderStaging]:
        """The staging of another part of a job.

        Each attempt writes to a separate folder: a task that runs twice never writes to the files
        of its other run.

        Raises:
            PublishError: ``job.closed``; ``output.unwritable``.
        """
        attempt = f"part-{random_id()}"
        with Completion().writing(self._state), contextlib.ExitStack() as opened:
            files = self._open_staging(name, job, opened)
            folder = opened.enter_context(files.sub(attempt, make=True))
            try:
                yield FolderStaging(files, folder, attempt)
            finally:
                files.clear(attempt)

    def abort(self, name: str, job: str) -> None:
        """Removes the staging of a job; it is not an error if there is none.

        A commit that was cut off after its journal was written is completed by the next build,
        which needs what is staged.
        """
        with (
            Completion().writing(self._state),
            contextlib.suppress(FileNotFoundError),
            contextlib.ExitStack() as opened,
        ):
            state = self._state_of(name, opened)
            journal = read_journal(state)
            if journal is not None and journal.new and journal.staging == job_staging(job):
                return
            state.clear(job_staging(job))

    def _open_staging(self, name: str, job: str, opened: contextlib.ExitStack) -> Directory:
        try:
            return opened.enter_context(self._state_of(name, opened).sub(job_staging(job)))
        except FileNotFoundError:
            raise closed(job) from None

    def _state_of(self, name: str, opened: contextlib.ExitStack) -> Directory:
        if self.state is None:
            root = opened.enter_context(Directory.open(self.out)).sub(STATE)
        else:
            root = Directory.open(self.state)
        opened.enter_context(root)
        return root if name == DEFAULT_NAME else opened.enter_context(root.sub(name))

    @property
    def _state(self) -> Path:
        return self.state if self.state is not None else self.out / STATE

    def local_folders(self) -> tuple[Path, ...]:
        """The folders that a publication creates."""
        return self.out, self._state

    def reserves(self, target: Target) -> bool:
        """Whether a path has the name of a sitemap of a set, or of a file of its state."""
        if not isinstance(target, Path):
            return False
        real = target.resolve()
        of_state = real.is_relative_to(self._state.resolve()) and real.name in STATE_FILES
        return of_state or (real.is_relative_to(self.out.resolve()) and is_sitemap(real.name))


class FolderStaging:
    """The staging folder of one attempt to write a part."""

    def __init__(self, files: Directory, folder: Directory, attempt: str) -> None:
        self._files, self._folder = files, folder
        self._attempt = attempt

    @property
    def scratch(self) -> Path:
        """The folder of the attempt."""
        return self._folder.path

    @property
    def sizes(self) -> Mapping[str, int]:
        """The core knows the sizes of all files."""
        return {}

    def sink(self) -> Path:
        """The folder of the attempt."""
        return self._folder.path

    def complete(self, names: Mapping[str, str], rejects: Sequence[Path]) -> list[str]:
        """Moves shards and reject files to the staging of the job, durably.

        Two parts that write the same shard write the same bytes under the same content name, so
        the second may replace the first.
        """
        for staged, name in names.items():
            self._files.make(name)
            self._folder.move(staged, self._files, name)
        # the suffix makes a copy of it in the state folder leftovers
        kept = [f"rejects-{self._attempt}-{number}.new" for number, _ in enumerate(rejects)]
        for path, name in zip(rejects, kept, strict=True):
            self._folder.move(path.name, self._files, name)
        for name in {folder_of(name): name for name in names.values()}.values():
            self._files.sync(name)
        self._files.sync()
        return kept
