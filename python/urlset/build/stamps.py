"""The stamps of ``lastmod_from``: what a build keeps of each URL for the next one.

They are a file in the state. The manifest names it, so that the commit point of the set is that of
the stamps: a build that is killed neither loses nor advances them. The file of another build has
another name, and the old one is removed after the commit.
"""

from __future__ import annotations

import os
from typing import IO, Any

from ..destination.interface import Publication
from ..destination.manifest import StampFile
from ..errors import PublishError
from ..options import Options
from ..outfile import random_id
from ..report import Warning, warnings_of
from ..system import native

#: the file that the core writes
NEW = "lastmod.new"
#: the counts of the core that are warnings
WARNINGS = {"clock_behind": "lastmod.clock", "adopted": "lastmod.columns"}


class Stamps:
    """The stamps of the last build and those of this one; a context manager while rows are read.

    Attributes:
        files: for the core: the stamps of the last build, and the path of those of this one; None
            without ``lastmod_from``.
        changes: what the core found; None if there is no such build.
    """

    def __init__(self, options: Options, publication: Publication) -> None:
        self.files: tuple[tuple[int, str, str] | None, str] | None = None
        self.changes: dict[str, Any] | None = None
        self._options, self._publication = options, publication
        self._open: IO[bytes] | None = None
        self._old: StampFile | None = None
        self._new: StampFile | None = None

    def __enter__(self) -> Stamps:
        if not self._options.lastmod_from:
            return self
        publication = self._publication
        manifest = publication.manifest()
        file = manifest.lastmod if manifest is not None else None
        old = None
        if file is not None and not self._options.lastmod_restart:
            place = publication.feed_place(file.file)
            try:
                self._open = publication.open_stamps(file.file)
            except OSError as error:
                raise _damaged(place, error.strerror or str(error)) from None
            if self._open is None:
                raise _damaged(place, "is missing")
            if os.fstat(self._open.fileno()).st_size != file.bytes:
                self._open.close()
                raise _damaged(place, "has another size than it had")
            old = (native(self._open.fileno()), place, file.digest)
            self._old = file
        self.files = (old, os.fspath(publication.temporary / NEW))
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    def file(self) -> StampFile | None:
        """The file for the manifest; that of the last build if nothing changed."""
        changes = self.changes or {}
        if self._old is not None and changes["digest"] == self._old.digest:
            return self._old
        self._new = StampFile(f"lastmod-{random_id()}", changes["bytes"], changes["digest"])
        return self._new

    def stage(self) -> None:
        """Puts the new file into the state, where nothing names it before the commit."""
        if self._new is not None:
            self._publication.put_stamps(self._new.file, self._publication.temporary / NEW)

    def summary(self) -> dict[str, Any]:
        """What the core found, for the report."""
        changes = {**(self.changes or {})}
        changes.pop("digest", None)
        return changes

    def warnings(self) -> list[Warning]:
        """The warnings of the report."""
        changes = self.changes or {}
        return warnings_of({code: changes[key] for key, code in WARNINGS.items() if changes[key]})


def _damaged(place: str, why: str) -> PublishError:
    return PublishError(
        f"{place}: {why}: it contains the time of the last change of each URL; restore it from a"
        " copy, or begin again without these times (--lastmod-restart)",
        code="lastmod.damaged",
    )
