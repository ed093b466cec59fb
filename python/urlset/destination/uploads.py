"""Shards on their way to an object store: uploaded at once, while the build renders the next ones.

For maintainers: a name covers the bytes of a shard before compression, its level and its headers,
so an object of this name is the same shard, unless it is damaged. An object of another size may
come from another encoder or CPU: its inflated content decides.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from .. import _core
from ..errors import PublishError
from ..pool import Pool
from ..transport.store import Location, VersionError
from .interface import Stored

#: requests at a time: an upload of a megabyte waits 50 to 100 ms for the store
THREADS = 16
#: compressed bytes that wait or are sent: the memory of the uploads
MAX_WAITING = 32 << 20
#: attempts where the store responds that another request for the same name is under way
ATTEMPTS = 5
#: what an attempt more may heal: obstore repeats only requests that may be sent twice, and does not
#: know that equal names are equal objects
TEMPORARY = ("store.timeout", "store.unreachable")
#: seconds before the next attempt, times its number
PAUSE = 0.2
#: window bits of zlib for a gzip file
GZIP = 31


class Uploads:
    """Takes the shards of a build (:class:`urlset.destination.interface.ShardSink`).

    Args:
        location: of the set.
        headers: the headers of a shard by its name.

    Attributes:
        stored: the objects, by name.
        reused: those that were there before.
    """

    def __init__(self, location: Location, headers: Callable[[str], Mapping[str, str]]) -> None:
        self.stored: dict[str, Stored] = {}
        self.reused: set[str] = set()
        self._location, self._headers = location, headers
        self._pool = Pool(THREADS, "upload")
        self._change = threading.Condition()
        self._waiting = 0
        self._failed: BaseException | None = None

    def put(self, name: str, data: Any, digest: str) -> None:
        """Takes a complete shard; waits while too many bytes are on their way.

        Raises:
            PublishError: an upload failed.
        """
        view = memoryview(data)
        with self._change:
            # a shard that is larger than the limit is sent alone
            self._change.wait_for(
                lambda: self._failed or not self._waiting
                or self._waiting + view.nbytes <= MAX_WAITING
            )  # fmt: skip
            if self._failed is not None:
                raise self._failed
            self._waiting += view.nbytes
        self._pool.submit(self._run, name, view, digest)

    def finish(self) -> None:
        """Returns when every shard is stored.

        Raises:
            PublishError: an upload failed.
        """
        with self._change:
            self._change.wait_for(lambda: self._failed or not self._waiting)
            if self._failed is not None:
                raise self._failed

    def close(self) -> None:
        """Ends the threads; shards that wait are dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, name: str, data: memoryview, digest: str) -> None:
        try:
            if self._failed is None:
                self._store(name, data, digest)
        except BaseException as error:  # noqa: BLE001 - raised in the threads of the core
            with self._change:
                self._failed = self._failed or error
        finally:
            with self._change:
                self._waiting -= data.nbytes
                self._change.notify_all()

    def _store(self, name: str, data: memoryview, digest: str) -> None:
        headers = self._headers(name)
        only: str | None = "create"
        for attempt in range(1, ATTEMPTS + 1):
            try:
                version = self._location.put(name, data, only=only, headers=headers)
                self.stored[name] = Stored(data.nbytes, 0, e_tag_of(version))
                return
            except VersionError:
                pass
            except PublishError as error:
                if error.code not in TEMPORARY or attempt > 1:
                    raise
                continue
            found = self._location.head(name)
            if found is None:  # another request for this name is under way, or it was removed
                threading.Event().wait(PAUSE * attempt)
            elif found.size == data.nbytes or self._is_same(name, found.size, digest):
                self.stored[name] = Stored(found.size, 0, e_tag_of(found.version))
                self.reused.add(name)
                return
            else:
                only = None  # it is damaged
        raise PublishError(
            f"{self._location.url(name)}: the store responds that it exists, and that it does not;"
            " run the build again",
            code="store.busy",
        )

    def _is_same(self, name: str, size: int, digest: str) -> bool:
        """Whether an object of another size has the same content."""
        if size > 2 * _core.MAX_BYTES:
            return False
        found = self._location.get(name)
        return found is not None and _core.digest(inflated(found.data)) == digest


def inflated(data: bytes) -> bytes:
    """The content of a shard, compressed or not; of a damaged one what it is."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return zlib.decompressobj(GZIP).decompress(data, _core.MAX_BYTES + 1)
    except zlib.error:
        return data


def e_tag_of(version: Mapping[str, Any] | None) -> str | None:
    """The ETag: listings of some stores have it without the quotes."""
    e_tag = version.get("e_tag") if version is not None else None
    return e_tag.strip('"') if isinstance(e_tag, str) else None
