"""The content of a large object, block by block, requested ahead."""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from ..threads import start
from .store import Location, NotFoundError, Stored, VersionError, stored_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: bytes of one request, and requests that are under way at once: 16 MiB in memory
BLOCK = 4 << 20
AHEAD = 4

_Answer = SimpleQueue[tuple[Any, BaseException | None]]


def read_at(place: Location, known: Stored, start: int, length: int) -> memoryview:
    """A part of an object, which must be the version that is known.

    Raises:
        Error: that of the location; ``.changed`` if it is another version, or gone.
    """
    try:
        data = memoryview(place.get_range(known.key, start, length, known.version))
    except (NotFoundError, VersionError):
        raise place.error(known.key, "changed", "changed while it was read; try again") from None
    if len(data) != length:
        message = f"the store sent {len(data):,} bytes of {length:,} at {start:,}; try again"
        raise place.error(known.key, "failed", message)
    return data


def content(place: Location, key: str, limit: int) -> Iterator[memoryview]:
    """The content of an object of which nothing is known: one request if it is small.

    Args:
        limit: of its bytes.

    Raises:
        NotFoundError: there is no such object.
        Error: as :func:`read_at`; ``.size``: more than ``limit`` bytes.
    """
    result = place.call(lambda: place.store.get(key), "read", key)
    known = stored_of(result.meta)
    if known.size > limit:
        raise place.error(key, "size", f"{known.size:,} bytes, more than {limit:,}")
    if known.size <= BLOCK * AHEAD:
        data = memoryview(place.call(result.bytes, "read", key))
        if len(data) != known.size:
            message = f"the store sent {len(data):,} bytes of {known.size:,}; try again"
            raise place.error(key, "failed", message)
        return iter([data])
    return blocks(place, known)


def blocks(place: Location, known: Stored) -> Iterator[memoryview]:
    """The content of an object in order.

    Raises:
        Error: as :func:`read_at`.
    """
    parts = deque((at, min(BLOCK, known.size - at)) for at in range(0, known.size, BLOCK))
    if len(parts) == 1:
        yield read_at(place, known, *parts[0])
        return
    under_way: deque[_Answer] = deque()
    while parts or under_way:
        while parts and len(under_way) < AHEAD:
            under_way.append(_begin(place, known, *parts.popleft()))
        # a wait that a signal ends; the threads are daemons, which nothing joins
        data, error = under_way.popleft().get()
        if error is not None:
            raise error
        yield data


def _begin(place: Location, known: Stored, at: int, length: int) -> _Answer:
    answer: _Answer = SimpleQueue()

    def work() -> None:
        try:
            answer.put((read_at(place, known, at, length), None))
        except BaseException as error:  # noqa: BLE001 - raised where the block is used
            answer.put((None, error))

    start(threading.Thread(target=work, name=f"read {known.key}", daemon=True))
    return answer


class ObjectReader(io.RawIOBase):
    """An object as a binary file that can be read once."""

    def __init__(self, place: Location, known: Stored) -> None:
        self._blocks = blocks(place, known)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        if not self._rest:
            self._rest = next(self._blocks, memoryview(b""))
        size = min(len(view), len(self._rest))
        view[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
