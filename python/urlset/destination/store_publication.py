"""A publication to an object store: one conditional write makes the new set live.

There is no lock. With the previous set live until step 4:

1. The commit record is read, with its version, and the manifest that it names. The journal of a
   killed build is completed.
2. Shards are uploaded while the build renders, each only if there is none of its name.
3. The journal, if there are other indexes than the first one, and the manifest are written under
   names that contain the digest of the manifest.
4. The commit record is replaced, only if it is still the version of step 1. If the response is
   lost, or denies the condition, the record is read back: it names the manifest of this build or
   that of another one.
5. The other indexes are written, those that are no longer needed are removed, then the journal.
6. Shards that neither the new set nor the previous one lists, and the previous manifest, are
   removed.

For maintainers: whatever is written before step 4 has a name that no other content has, so a build
that loses or is killed leaves only objects that nothing lists; ``urlset clean`` removes them.
``test_store_faults.py`` makes every request fail in every way and kills builds at every request.

One race is left: build A is delayed for the whole time of build B, between the last look at the
commit record and the removal of a shard that only an older set listed; B writes the same shard
again, finds that it exists, and looks for it a last time before A removes it. B looks right before
its commit, and A before it removes anything.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from .. import _core
from ..errors import ConflictError, Error, PublishError
from ..pool import Pool
from ..transport.store import Location, Object, VersionError
from ..transport.target import Target
from .completion import Completion
from .headers import STATE, Headers
from .interface import Stored
from .listing import found_in
from .manifest import Feed, Manifest, ShardRecord, StoreRecord, to_json
from .objects import ABSENT
from .publication import closed, job_staging
from .state import MANIFEST, REJECTS
from .store_state import (
    MARK_BYTES,
    OPEN,
    Live,
    State,
    StoreJournal,
    download,
    journal_name,
    manifest_name,
    marked,
    read_live,
)
from .uploads import TEMPORARY, Uploads

#: attempts of the commit while its outcome is not known, and the seconds before the next one,
#: times its number: together as long as a store takes to answer again
ATTEMPTS = 6
PAUSE = 0.3
#: requests at a time
THREADS = 16
#: an ETag that no object has
NO_E_TAG = '"00000000000000000000000000000000"'


class StorePublication:
    """A change of the set of a name in a store. A context manager.

    Args:
        out: where the set is.
        state: its state.
        name: of the set.
        headers: of its objects.
        conditional: the store must have conditional writes.
        job: the job whose staging is published; None for a build in one process.
    """

    def __init__(
        self, out: Location, state: State, name: str, headers: Headers, conditional: bool,
        job: str | None,
    ) -> None:  # fmt: skip
        self.notes: dict[str, int] = {}
        self.leftovers: dict[str, int] = {}
        self.published = False
        self.feeds: Sequence[Feed] = ()
        self.waited: set[str] = set()
        self._out, self._state, self._name = out, state, name
        self._headers, self._conditional, self._job = headers, conditional, job
        self._index = f"{name}.xml"
        self._live = Live()
        self._open = contextlib.ExitStack()
        self._listed: dict[str, Stored] | None = None
        self._has_rejects = True
        self._texts: dict[str, str] = {}
        self._put_feeds: set[str] = set()
        self._put_records: list[str] = []
        self._committing = False

    def __enter__(self) -> StorePublication:
        try:
            self._enter()
        except BaseException:
            self._open.close()
            raise
        return self

    def _enter(self) -> None:
        job = self._job
        if job is not None and self._head(f"{job_staging(job)}/{OPEN}") is None:
            raise closed(job)
        live = self._live = read_live(self._out, self._state, self._name)
        scratch = self._open.enter_context(tempfile.TemporaryDirectory(prefix="urlset-"))
        self._scratch = Path(scratch)
        self._uploads = Uploads(self._out, self._headers.of_shard)
        self._open.callback(self._uploads.close)
        if live.manifest is None or live.manifest.store is None:
            return
        if live.manifest.folder != self.folder:
            raise PublishError(
                f"{self._state.url()}: is the state of another prefix ({live.manifest.folder});"
                " choose another --state",
                code="state.other_folder",
            )
        if live.manifest.store.journal and self._complete_journal(live):
            self.notes["publish.recovered"] = 1
        feeds = live.manifest.store.feeds
        self.feeds = tuple(feed for feed in feeds if self._head(feed.pending) is not None)
        self.waited = {feed.pending for feed in self.feeds}

    def __exit__(self, *_: object) -> None:
        try:
            # what nothing lists; what cannot be removed now stays until it is cleaned
            with contextlib.suppress(PublishError):
                if not self.published:
                    if not self._committing:
                        self._state.location.delete(self._put_records)
                    for pending in self._put_feeds:
                        self.drop_feed(pending)
                elif self._job is not None:
                    self._state.clear(job_staging(self._job))
        finally:
            self._open.close()

    @property
    def folder(self) -> str:
        """The prefix as the manifest names it; a bucket can be copied with its state."""
        return ".." if self._state.location is self._out else str(self._out)

    @property
    def version(self) -> str:
        """The digest of the live manifest."""
        return self._live.digest or ABSENT

    def manifest(self) -> Manifest | None:
        """The manifest of what is live; None before the first build."""
        return self._live.manifest

    @property
    def index_overhead(self) -> int:
        """The first index names its manifest."""
        return MARK_BYTES

    def is_pending(self) -> bool:
        """Whether the commit record is being replaced: its outcome is not known."""
        return self._committing and not self.published

    def writing(self, place: Path) -> contextlib.AbstractContextManager[None]:
        """Converts an OSError of the temporary folder into a PublishError."""
        return Completion().writing(place)

    # -- staging

    @property
    def scratch(self) -> Path:
        """A temporary folder."""
        return self._scratch

    @property
    def temporary(self) -> Path:
        """The same folder."""
        return self._scratch

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the objects that this process has uploaded."""
        return {name: stored.size for name, stored in self._uploads.stored.items()}

    def sink(self) -> Uploads:
        """What uploads the shards."""
        return self._uploads

    def complete(self, names: Mapping[str, str], rejects: Sequence[Path]) -> list[str]:
        """Ends the part: its shards have their names."""
        return [path.name for path in rejects]

    def begin_parts(self, job: str) -> None:
        """Marks the job as open."""
        key = self._state.key(f"{job_staging(job)}/{OPEN}")
        self._state.location.put(key, b"{}", headers=STATE)

    # -- what is live

    def is_untouched(self, record: ShardRecord) -> bool:
        """Whether a live shard is as its build left it, by size and ETag."""
        found = self.stored(record.path, staged=False)
        if found is None or found.size != record.compressed_bytes:
            return False
        return record.e_tag in (None, found.e_tag) or found.e_tag is None

    def stored(self, path: str, *, staged: bool) -> Stored | None:
        """A shard. Those of parts that other processes wrote are listed."""
        known = self._uploads.stored.get(path)
        if known is not None:
            return known
        listed = self._listing()
        return listed.get(path)

    def expect(self, paths: Iterable[str]) -> None:
        """Lists the shards that other processes have written."""
        missing = set(paths).difference(self._uploads.stored, self._listing())
        self._listing().update(found_in(self._out, missing))

    def _listing(self) -> dict[str, Stored]:
        """The live shards, and whether there is a reject file, with as few requests as possible."""
        if self._listed is None:
            manifest = self._live.manifest
            paths = [shard.path for shard in manifest.shards] if manifest is not None else []
            within = self._state.location is self._out
            rejects = self._state.key(REJECTS)
            if paths:
                self._listed = found_in(self._out, paths, (rejects,) if within else ())
                self._has_rejects = not within or rejects in self._listed
            else:
                self._listed = {}
        return self._listed

    def owns(self, target: Target, files: Iterable[str]) -> bool:
        """Whether an address is one of these files of the set, or in its state."""
        if isinstance(target, Path):
            return False
        return target.is_under(self._state.url()) or any(
            str(target) == self._out.url(file) for file in files
        )

    def is_live(self, path: str, text: str) -> bool:
        """Whether an index is live with this content and with the headers of this build."""
        manifest = self._live.manifest
        if manifest is None or manifest.store is None:
            return False
        if manifest.store.headers != self._headers.of_index_digest:
            return False
        if path == self._index:
            return self._live.text == text
        record = next((index for index in manifest.indexes if index.path == path), None)
        return record is not None and record.digest == _core.digest(text)

    def local(self, path: str, *, staged: bool) -> Path | None:
        """A staged or live file as a temporary one."""
        target = self._scratch / "copy" / path
        if target.is_file():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        if staged and path in self._texts:
            target.write_bytes(self._texts[path].encode())
            return target
        return target if download(self._out, path, target) else None

    # -- publication

    def stage(self, files: Mapping[str, str]) -> None:
        """Keeps the text of the indexes until the publication."""
        self._texts = dict(files)

    def publish(
        self, moves: Sequence[str], manifest: Manifest, feeds: Sequence[Feed] | None = None
    ) -> bool:
        """Makes the new set live; False if it was live already.

        Raises:
            ConflictError: ``publish.conflict``: another build has published.
            PublishError: the store failed; ``store.unconditional``; ``publish.vanished``;
                ``publish.foreign``; ``publish.unknown``.
        """
        former = self._live.manifest
        feeds = tuple(self.feeds if feeds is None else feeds)
        record = StoreRecord(uuid4().hex, self._headers.of_index_digest, feeds=feeds)
        known = {index.path: index.digest for index in former.indexes} if former else {}
        manifest = manifest._replace(
            store=record,
            indexes=tuple(
                index._replace(
                    digest=_core.digest(self._texts[index.path])
                    if index.path in self._texts
                    else known.get(index.path)
                )
                for index in manifest.indexes
            ),
        )
        if not moves and former is not None and former.content() == manifest.content():
            self.feeds = feeds
            self.published = True
            return False
        self._check_reused(manifest)
        data, digest, journal = self._manifest(manifest)
        self._commit(manifest, data, digest)
        self.published = True
        self.feeds = feeds
        with self._live_already():
            if journal is not None:
                self._complete(journal, digest)
            self._remove(former, manifest, digest)
        return True

    def _check_reused(self, manifest: Manifest) -> None:
        """Shards that were there, and that no live set protected, must still be there."""
        former = self._live.manifest
        protected = set(former.files()) if former is not None else set()
        paths = [shard.path for shard in manifest.shards if shard.path in self._uploads.reused]
        paths = [path for path in paths if path not in protected]
        found = found_in(self._out, paths) if paths else {}
        missing = next((path for path in paths if path not in found), None)
        if missing is not None:
            raise PublishError(
                f"{self._out.url(missing)}: was removed while the build ran, by another build or by"
                " urlset clean; nothing was published; run the build again",
                code="publish.vanished",
            )

    def _manifest(self, manifest: Manifest) -> tuple[bytes, str, StoreJournal | None]:
        """Writes the manifest and the journal under names that contain its digest."""
        former = self._live.manifest
        new = {index.path for index in manifest.indexes}
        old = [index.path for index in former.indexes] if former is not None else []
        others = {path: text for path, text in self._texts.items() if path != self._index}
        gone = tuple(path for path in old if path not in new)
        for path in others:
            if path not in old and self._out.head(path) is not None:
                raise PublishError(
                    f"{self._out.url(path)}: is there and no build of urlset is known to have made"
                    " it; move it away, or choose another --name or --out",
                    code="publish.foreign",
                )
        journal = StoreJournal(others, gone) if others or gone else None
        if journal is not None and manifest.store is not None:
            manifest = manifest._replace(store=manifest.store._replace(journal=True))
        data = to_json(manifest).encode()
        digest = _core.digest(data)
        if journal is not None:
            self._put_state(journal_name(digest), journal.to_bytes())
        if self._index in new:
            self._put_state(manifest_name(digest), data)
        return data, digest, journal

    def _put_state(self, name: str, data: bytes) -> None:
        """Writes an object whose name no other content has."""
        self._state.location.put(self._state.key(name), data, headers=STATE)

    def _commit(self, manifest: Manifest, data: bytes, digest: str) -> None:
        """The single step that makes the set live."""
        if any(index.path == self._index for index in manifest.indexes):
            text = self._texts.get(self._index) or self._live.text or ""
            self._commit_as(self._out, self._index, marked(text, digest), self._headers.of_index())
            return
        self._commit_as(self._state.location, self._state.key(MANIFEST), data, STATE)
        if self._live.record is not None and self._live.is_index:
            # the manifest under its fixed name counts from here on
            self._out.delete([self._index])

    def _commit_as(
        self, location: Location, key: str, data: bytes, headers: Mapping[str, str]
    ) -> None:
        """Replaces the commit record, and reads it back until the outcome is known."""
        record = self._live.record
        if record is not None and (key == self._index) != self._live.is_index:
            record = location.get(key)  # of another kind: this one does not count yet
        only: Any = None
        if self._conditional:
            only = "create" if record is None else record.version
            self._check_conditional(record)
        self._committing = True
        for attempt in range(1, ATTEMPTS + 1):
            failure: Exception
            try:
                location.put(key, data, only=only, headers=headers)
                return
            except (VersionError, PublishError) as error:
                failure = error
            now = self._read_back(location, key, failure)
            if now is not None and now.data == data:
                return
            if (now and now.version) != (record and record.version):
                raise _conflict(location.url(key))
            if isinstance(failure, Error) and (failure.code not in TEMPORARY or attempt > 1):
                raise PublishError(f"{failure}; the previous set is still live", code=failure.code)
            time.sleep(PAUSE * attempt)
        raise PublishError(
            f"{location.url(key)}: the store denies to replace the version that it has; the"
            " previous set is still live; run the build again",
            code="store.busy",
        )

    def _read_back(self, location: Location, key: str, failure: Exception) -> Object | None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return location.get(key)
            except PublishError as error:
                last = error
                time.sleep(PAUSE * attempt)
        why = failure if isinstance(failure, Error) else last
        raise PublishError(
            f"{why}; it is not known whether the new set or the previous one is live, and either is"
            " complete; run the build again",
            code="publish.unknown",
        )

    def _check_conditional(self, record: Object | None) -> None:
        """Writes an object of the state again under a condition that does not hold."""
        key = self._state.key("probe.json")
        location = self._state.location
        try:
            if record is None:
                location.put(key, b"{}", headers=STATE)
                location.put(key, b"{}", only="create", headers=STATE)
            else:
                location.put(key, b"{}", only=_denied(record.version), headers=STATE)
        except VersionError:
            return
        except PublishError as error:
            if error.code != "store.unsupported":
                raise
        raise PublishError(
            f"{location}: this store ignores the conditions of writes, so that two builds at once"
            " could mix their sets; use another store, or --no-conditional if only one build runs"
            " at a time; nothing was published",
            code="store.unconditional",
        )

    @contextlib.contextmanager
    def _live_already(self) -> Iterator[None]:
        """Adds to an error that the new set is live."""
        try:
            yield
        except PublishError as error:
            raise PublishError(
                f"{error}; the new set is live, and the next build completes its other indexes",
                code=error.code,
            ) from None

    def _complete_journal(self, live: Live) -> bool:
        """Completes the publication of a killed build; False if it was complete."""
        digest = live.digest or ""
        found = self._state.location.get(self._state.key(journal_name(digest)))
        if found is None:
            return False
        journal = StoreJournal.parse(found.data, self._state.url(journal_name(digest)))
        self._complete(journal, digest)
        return True

    def _complete(self, journal: StoreJournal, digest: str) -> None:
        """Writes the indexes of a journal, unless another build has published since.

        For maintainers: the versions are read before the commit record is. If another build
        commits after that, it reads versions too, and one of the two writes is denied.
        """
        with Pool(THREADS) as threads:
            for _ in range(ATTEMPTS):
                found = list(threads.map(self._out.get, journal.indexes))
                if not self._is_live(digest):
                    return
                writes = [
                    (path, text.encode(), one)
                    for (path, text), one in zip(journal.indexes.items(), found, strict=True)
                    if one is None or one.data != text.encode()
                ]
                if all(threads.map(self._replace, writes)):
                    break
            else:
                raise PublishError(
                    f"{self._out}: the store denies to replace the indexes", code="store.busy"
                )
        self._out.delete(journal.remove)
        self._state.location.delete([self._state.key(journal_name(digest))])

    def _replace(self, write: tuple[str, bytes, Object | None]) -> bool:
        """Writes an index if it is still what was read; whether it was."""
        path, data, found = write
        only: Any = ("create" if found is None else found.version) if self._conditional else None
        try:
            self._out.put(path, data, only=only, headers=self._headers.of_index())
        except VersionError:
            return False
        return True

    def _is_live(self, digest: str) -> bool:
        return read_live(self._out, self._state, self._name).digest == digest

    def _remove(self, former: Manifest | None, manifest: Manifest, digest: str) -> None:
        """Removes what only the set before the previous one had; what cannot be stays."""
        new = set(manifest.files())
        paths = [path for path in former.files() if path not in new] if former is not None else []
        indexes = {index.path for index in former.indexes} if former is not None else set()
        old = [path for path in paths if path not in indexes]
        state = []
        if self._live.digest is not None and self._live.is_index:
            state.append(self._state.key(manifest_name(self._live.digest)))
        stamps = former.lastmod if former is not None else None
        if stamps is not None and stamps != manifest.lastmod:
            state.append(self._state.key(stamps.file))
        if not old and not state:
            return
        try:
            if not self._is_live(digest):  # another build may need these shards again
                return
            if self._state.location is self._out:
                old, state = old + state, []
            self._out.delete(old)
            self._state.location.delete(state)
        except PublishError:
            self.leftovers["store.left"] = len(old) + len(state)

    # -- rejects and feeds

    def reject_file(self, name: str) -> Path | None:
        """A reject file of a part, as a local one."""
        path = self._scratch / name
        if self._job is None:
            return path if path.is_file() else None
        return path if self._state.download(f"{job_staging(self._job)}/{name}", path) else None

    def put_rejects(self, file: Path) -> str:
        """Uploads the reject file."""
        self._state.upload(REJECTS, file, "text/csv; charset=utf-8")
        return self._state.url(REJECTS)

    def remove_rejects(self) -> None:
        """Removes the reject file of a previous build."""
        self._listing()
        if self._has_rejects and self._live.record is not None:
            self._state.location.delete([self._state.key(REJECTS)])

    def put_feed(self, pending: str, file: Path) -> None:
        """Uploads a feed that waits until the set is live."""
        self._put_feeds.add(pending)
        self._state.upload(pending, file, "application/octet-stream")

    def put_stamps(self, name: str, file: Path) -> None:
        """Uploads the stamps of this build."""
        self._put_records.append(self._state.key(name))
        self._state.upload(name, file, "application/octet-stream")

    def open_stamps(self, name: str) -> IO[bytes] | None:
        """The stamps of the last build, as a temporary file; None if they are gone.

        Raises:
            ConflictError: ``publish.conflict``: another build has published and removed them.
        """
        target = self._scratch / name
        if self._state.download(name, target):
            return target.open("rb")
        if not self._is_live(self._live.digest or ""):
            raise _conflict(self._out.url(self._index))
        return None

    def pending_name(self, suffix: str) -> str:
        """A name that no other build chooses."""
        return f"changes-pending-{uuid4().int % 10**9}{suffix}"

    def open_feed(self, pending: str) -> IO[bytes] | None:
        """A feed that waits, as a temporary file; None if it was delivered."""
        target = self._scratch / pending
        return target.open("rb") if self._state.download(pending, target) else None

    def drop_feed(self, pending: str) -> None:
        """Removes a feed that was delivered."""
        self._state.location.delete([self._state.key(pending)])

    def keep_feeds(self, feeds: Sequence[Feed]) -> None:
        """The manifest lists the feeds; those whose files are gone were delivered."""
        self.feeds = tuple(feeds)

    def feed_place(self, pending: str) -> str:
        """The address of a feed that waits."""
        return self._state.url(pending)

    def _head(self, name: str) -> Any:
        return self._state.location.head(self._state.key(name))


def _conflict(place: str) -> ConflictError:
    return ConflictError(
        f"{place}: another build published since this one began; its set is live, and nothing of"
        " this one; run the build again",
        code="publish.conflict",
    )


def _denied(version: Mapping[str, Any]) -> dict[str, Any]:
    """A version that no object has, of the kind that the store uses."""
    if version.get("version") is not None and version.get("e_tag") is None:
        return {"e_tag": None, "version": "1"}
    return {"e_tag": NO_E_TAG, "version": "1" if version.get("version") is not None else None}
