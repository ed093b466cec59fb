"""A prefix in an object store as a destination."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from ..errors import PublishError
from ..transport.store import Location, open_store
from ..transport.target import Target
from .headers import Headers
from .manifest import is_sitemap
from .publication import closed, job_staging
from .state import DEFAULT_NAME, check_state_name
from .store_publication import StorePublication
from .store_state import OPEN, State
from .uploads import Uploads


@dataclass(frozen=True)
class StoreDestination:
    """A prefix in an object store, and one for its state.

    Attributes:
        out: an address, ``s3://bucket/prefix``, or a store object of obstore.
        state: the same for the state; None for ``OUT/.urlset``.
        headers: of the objects of the set.
        conditional: the store must have conditional writes.
    """

    out: Any
    state: Any = None
    headers: Headers = field(default_factory=Headers)
    conditional: bool = True

    def __str__(self) -> str:
        return str(self._location())

    @property
    def name_salt(self) -> str | None:
        """Equal names mean equal objects: a name covers the level and the headers too."""
        return self.headers.salt

    def absolute(self) -> StoreDestination:
        """The same destination: an address is absolute."""
        return self

    def publication(
        self, name: str, sets: Sequence[str] = (), *, job: str | None = None
    ) -> StorePublication:
        """See :class:`urlset.destination.interface.Destination`."""
        check_state_name(name)
        state = self._state(name)
        out = state.location if self.state is None else self._location()
        return StorePublication(out, state, name, self.headers, self.conditional, job)

    @contextlib.contextmanager
    def staging(self, name: str, job: str) -> Iterator[StoreStaging]:
        """The staging of one more part of a job.

        Raises:
            PublishError: ``job.closed``; the store cannot be written.
        """
        state = self._state(name)
        if state.location.head(state.key(f"{job_staging(job)}/{OPEN}")) is None:
            raise closed(job)
        with tempfile.TemporaryDirectory(prefix="urlset-") as scratch:
            staging = StoreStaging(self._location(), state, self.headers, Path(scratch), job)
            try:
                yield staging
            finally:
                staging.close()

    def abort(self, name: str, job: str) -> None:
        """Removes the staging of a job. Its shards stay until ``urlset clean`` removes them."""
        self._state(name).clear(job_staging(job))

    def local_folders(self) -> tuple[Path, ...]:
        """A publication creates no local folder that stays."""
        return ()

    def reserves(self, target: Target) -> bool:
        """Whether an address has the name of a sitemap of a set, or is in its state."""
        if isinstance(target, Path):
            return False
        state = self._state(DEFAULT_NAME)
        return target.is_under(state.url()) or (
            target.is_under(str(self._location())) and is_sitemap(target.name)
        )

    def _location(self) -> Location:
        return open_store(self.out, error=PublishError)

    def _state(self, name: str) -> State:
        state = None if self.state is None else open_store(self.state, error=PublishError)
        return State.of(self._location(), state, name)


class StoreStaging:
    """The staging of one attempt to write a part: shards go to their final place at once."""

    def __init__(
        self, out: Location, state: State, headers: Headers, scratch: Path, job: str
    ) -> None:
        self._state, self._job = state, job
        self._uploads = Uploads(out, headers.of_shard)
        self._scratch = scratch

    @property
    def scratch(self) -> Path:
        """A temporary folder."""
        return self._scratch

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the objects."""
        return {name: stored.size for name, stored in self._uploads.stored.items()}

    def sink(self) -> Uploads:
        """What uploads the shards."""
        return self._uploads

    def complete(self, names: Mapping[str, str], rejects: Sequence[Path]) -> list[str]:
        """Uploads the reject files of the part; its shards have their names."""
        kept = [f"rejects-{uuid4().hex}-{number}.new" for number, _ in enumerate(rejects)]
        for path, name in zip(rejects, kept, strict=True):
            self._state.upload(f"{job_staging(self._job)}/{name}", path, "text/csv")
        return kept

    def close(self) -> None:
        """Ends the uploads."""
        self._uploads.close()
