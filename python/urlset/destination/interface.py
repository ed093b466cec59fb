"""The interfaces between a job and the place of publication.

A destination reads, writes, lists and deletes small objects, and it publishes a set. The job calls
only these interfaces, so that a folder and an object store are the same to it. The protocol of a
publication is the same for both: stage the shards, then the manifest, the index last.

An object store implements it as follows. Shards have content names (``name_salt``) and are
written at once, only if absent; staging is the final place. ``publish`` writes the manifest under a
name that the index contains, then replaces the index only if its version has not
changed. No index lists the files of a build that lost this race.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from ..transport.target import Target
from .manifest import Feed, Manifest, ShardRecord


class Stored(NamedTuple):
    """The metadata of a stored file.

    Attributes:
        size: in bytes.
        mtime_ns: its time, in a folder.
        e_tag: its ETag, in a store.
    """

    size: int
    mtime_ns: int
    e_tag: str | None = None


class ShardSink(Protocol):
    """What takes the shards of a build; threads of the core call it."""

    def put(self, name: str, data: Any, digest: str, /) -> None:
        """Takes a complete file: its content as a buffer, and the digest before compression."""

    def finish(self) -> None:
        """Returns when all files are durable."""


class Staging(Protocol):
    """The place to which one part of a job is written. Nothing in it is live."""

    @property
    def scratch(self) -> Path:
        """A local folder for temporary files of this process."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of files that may differ from what the core wrote, by name."""

    def sink(self) -> Path | ShardSink:
        """Where the core writes shards: an existing folder, or an object that receives them."""

    def complete(self, names: Mapping[str, str], rejects: Sequence[Path]) -> list[str]:
        """Ends a part.

        Args:
            names: the staged shards that the part keeps, each with its final name.
            rejects: the local reject files of the part.

        Returns:
            The names of the reject files, for :meth:`Publication.reject_file`.
        """


class Publication(Staging, Protocol):
    """The exclusive right to change the live set."""

    @property
    def notes(self) -> Mapping[str, int]:
        """The number of repairs at the start, by warning code."""

    @property
    def leftovers(self) -> Mapping[str, int]:
        """The number of files that the publication could not remove, by warning code."""

    @property
    def temporary(self) -> Path:
        """A local folder that is removed with the publication; :meth:`put_feed` takes its files."""

    @property
    def index_overhead(self) -> int:
        """The bytes that the destination adds to the first index."""

    @property
    def published(self) -> bool:
        """Whether the new set is live."""

    @property
    def feeds(self) -> Sequence[Feed]:
        """The change feeds that wait for delivery."""

    @property
    def waited(self) -> Collection[str]:
        """The pending names of the feeds of previous builds."""

    @property
    def folder(self) -> str:
        """The destination as the manifest names it, so that one state serves one destination."""

    @property
    def version(self) -> str:
        """The version of the live set; :data:`ABSENT` before the first build."""

    def manifest(self) -> Manifest | None:
        """The manifest of the live set; None before the first build."""

    def begin_parts(self, job: str) -> None:
        """Prepares the staging of a job with several parts."""

    def is_untouched(self, record: ShardRecord) -> bool:
        """Whether a live shard is as its build left it."""

    def owns(self, target: Target, files: Iterable[str]) -> bool:
        """Whether a path or an address is one of these files of the set, or of its state."""

    def is_live(self, path: str, text: str) -> bool:
        """Whether a small file is live with exactly this content."""

    def expect(self, paths: Iterable[str]) -> None:
        """Prepares :meth:`stored` for the shards of the parts of a job."""

    def stored(self, path: str, *, staged: bool) -> Stored | None:
        """A staged or live shard; None if there is none."""

    def local(self, path: str, *, staged: bool) -> Path | None:
        """A staged or live file as a local one, for reading; None if there is none."""

    def stage(self, files: Mapping[str, str]) -> None:
        """Stages small files, text by path."""

    def publish(
        self, moves: Sequence[str], manifest: Manifest, feeds: Sequence[Feed] | None = None
    ) -> bool:
        """Makes the staged files live, in this order: the indexes last.

        Args:
            moves: the paths of the staged files.
            manifest: of the new set; files of the previous one that it does not list are removed.
            feeds: the change feeds to deliver afterwards; None leaves those that wait.

        Returns:
            False if the set was live already with the same content, except for its history.
        """

    def is_pending(self) -> bool:
        """Whether the next build completes this publication."""

    def writing(self, place: Path) -> AbstractContextManager[None]:
        """Converts an OSError into a PublishError that reports the live set and what to do."""

    def reject_file(self, name: str) -> Path | None:
        """A reject file of a part, as a local file that may be changed; None if it is gone."""

    def put_rejects(self, file: Path) -> str:
        """Keeps a local reject file in the state; returns its place, for the report."""

    def remove_rejects(self) -> None:
        """Removes the reject file of a previous build."""

    def put_stamps(self, name: str, file: Path) -> None:
        """Moves a local file of :attr:`temporary` to the stamps of ``lastmod_from``."""

    def open_stamps(self, name: str) -> IO[bytes] | None:
        """The stamps of ``lastmod_from`` as a local file; None if they are gone."""

    def pending_name(self, suffix: str) -> str:
        """A name for a feed that waits."""

    def put_feed(self, pending: str, file: Path) -> None:
        """Moves a local file to the feeds that wait, durably."""

    def open_feed(self, pending: str) -> IO[bytes] | None:
        """A feed that waits; None if it was delivered."""

    def drop_feed(self, pending: str) -> None:
        """Removes a feed that was delivered."""

    def keep_feeds(self, feeds: Sequence[Feed]) -> None:
        """Records which feeds still have to be delivered."""

    def feed_place(self, pending: str) -> str:
        """The place of a pending feed, or of another file of the state, for messages."""


class Destination(Protocol):
    """The place of publication. It can be pickled; creating it neither reads nor writes."""

    @property
    def name_salt(self) -> str | None:
        """What content names of shards cover besides the content; None if they may have numbers."""

    def absolute(self) -> Destination:
        """The same destination for processes with another working directory."""

    def publication(
        self, name: str, sets: Sequence[str] = (), *, job: str | None = None
    ) -> AbstractContextManager[Publication]:
        """Locks without waiting, and completes or cleans up killed builds.

        Args:
            name: of the set; sets of other names in the same destination do not change.
            sets: the names of its ``[[set]]`` tables.
            job: publishes the staged files of the parts of this job.

        Raises:
            PublishError: ``output.locked``: another build is publishing here; ``job.closed``: the
                job was committed or aborted.
        """

    def staging(self, name: str, job: str) -> AbstractContextManager[Staging]:
        """The staging of one more part of a job; needs no lock.

        Raises:
            PublishError: ``job.closed``.
        """

    def abort(self, name: str, job: str) -> None:
        """Removes the staged files of the parts of a job."""

    def local_folders(self) -> tuple[Path, ...]:
        """The local folders that a publication creates."""

    def reserves(self, target: Target) -> bool:
        """Whether a target has the name of a sitemap of a set, or of a file of its state."""
