"""The content of large objects, block by block, requested ahead."""

from __future__ import annotations

import io
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from ..threads import start
from .store import Location, NotFoundError, Stored, VersionError, stored_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: bytes of one request, and requests that are under way at once: 16 MiB in memory
BLOCK, AHEAD = 4 << 20, 4
#: the same for each column of a Parquet file
COLUMN_BLOCK, COLUMN_AHEAD = 2 << 20, 2
#: bytes at the end of a Parquet file that are read at once: its directory
TAIL = 256 << 10

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
    """The content of an object of unknown size: one request if it is small.

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


def blocks(place: Location, known: Stored, begin: int = 0) -> Iterator[memoryview]:
    """The content of an object in order, from a position.

    Raises:
        Error: as :func:`read_at`.
    """
    parts = [(at, min(BLOCK, known.size - at)) for at in range(begin, known.size, BLOCK)]
    ahead = _Ahead(place, known, parts, AHEAD)
    while (part := ahead.next()) is not None:
        yield part[1]


class _Ahead:
    """Parts of an object in a given order, some of them requested ahead."""

    def __init__(
        self, place: Location, known: Stored, parts: Iterable[tuple[int, int]], ahead: int
    ) -> None:
        self._place, self._known = place, known
        self._parts = deque(parts)
        self._under_way: deque[tuple[int, _Answer]] = deque()
        self._ahead = ahead

    def next(self) -> tuple[int, memoryview] | None:
        """The next part and its position; None after the last one."""
        while self._parts and len(self._under_way) < self._ahead:
            at, length = self._parts.popleft()
            self._under_way.append((at, self._begin(at, length)))
        if not self._under_way:
            return None
        at, answer = self._under_way.popleft()
        # a wait that a signal ends; the threads are daemons, which nothing joins
        data, error = answer.get()
        if error is not None:
            raise error
        return at, data

    def _begin(self, at: int, length: int) -> _Answer:
        answer: _Answer = SimpleQueue()

        def work() -> None:
            try:
                answer.put((read_at(self._place, self._known, at, length), None))
            except BaseException as error:  # noqa: BLE001 - raised where the part is used
                answer.put((None, error))

        start(threading.Thread(target=work, name=f"read {self._known.key}", daemon=True))
        return answer


class ObjectReader(io.RawIOBase):
    """An object as a binary file that can be read once.

    Attributes:
        failure: what a read raised.
    """

    def __init__(self, place: Location, known: Stored, head: bytes = b"") -> None:
        """
        Args:
            head: the first bytes, which were read already.
        """
        self._blocks = blocks(place, known, len(head))
        self._rest = memoryview(head)
        self.failure: Exception | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        """Up to ``size`` bytes as a buffer; none at the end."""
        if size < 0:
            return self.readall()
        try:
            if not self._rest:
                self._rest = next(self._blocks, memoryview(b""))
        except Exception as error:
            self.failure = error
            raise
        part, self._rest = self._rest[:size], self._rest[size:]
        return part

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        part = self.read(len(view))
        view[: len(part)] = part
        return len(part)


class _Column:
    """The chunks of one column, read from the first to the last one."""

    def __init__(self, place: Location, known: Stored, ranges: Sequence[tuple[int, int]]) -> None:
        parts = [
            (at, min(COLUMN_BLOCK, end - at))
            for begin, end in ranges
            for at in range(begin, end, COLUMN_BLOCK)
        ]
        self._ahead = _Ahead(place, known, parts, COLUMN_AHEAD)
        # the reader of a page begins again behind its header, which may be in the block before
        self._kept: deque[tuple[int, memoryview]] = deque(maxlen=2)
        self._lock = threading.Lock()

    def read_at(self, start: int, length: int) -> memoryview | None:
        """Bytes from a position, at least one; None if it was passed already."""
        with self._lock:
            while True:
                for at, data in self._kept:
                    if at <= start < at + len(data):
                        return data[start - at : start - at + length]
                if self._kept and start < self._kept[-1][0]:
                    return None
                part = self._ahead.next()
                if part is None:
                    return None
                self._kept.append(part)


class ParquetObject:
    """An object that is read at any position, and the columns that were announced ahead.

    Attributes:
        size: in bytes.
        failure: what a read raised.
    """

    def __init__(self, place: Location, known: Stored) -> None:
        self._place, self._known = place, known
        self.size = known.size
        self.failure: Exception | None = None
        self._tail: tuple[int, memoryview] | None = None
        self._begins: list[int] = []
        self._ranges: list[tuple[int, _Column]] = []
        self._lock = threading.Lock()

    def plan(self, columns: Sequence[Sequence[tuple[int, int]]]) -> None:
        """Announces the ranges of each column, in the order in which they are read."""
        more = []
        for ranges in columns:
            ranges = [(at, end) for at, end in ranges if 0 <= at < end <= self.size]
            column = _Column(self._place, self._known, ranges)
            more += [(at, end, column) for at, end in ranges]
        with self._lock:
            known = [(at, *rest) for at, rest in zip(self._begins, self._ranges, strict=True)]
            all_ranges = sorted([*known, *more], key=lambda each: each[0])
            self._begins = [at for at, _, _ in all_ranges]
            self._ranges = [(end, column) for _, end, column in all_ranges]

    def read_at(self, start: int, length: int) -> memoryview:
        """Bytes from a position, at least one before the end."""
        try:
            return self._read_at(start, min(length, max(0, self.size - start)))
        except Exception as error:
            self.failure = error
            raise

    def _read_at(self, start: int, length: int) -> memoryview:
        if length == 0:
            return memoryview(b"")
        with self._lock:
            found = bisect_right(self._begins, start) - 1
            end, column = self._ranges[found] if found >= 0 else (0, None)
        if column is not None and start < end:
            data = column.read_at(start, length)
            if data is not None:
                return data
        with self._lock:
            if self._tail is None and start >= self.size - TAIL:
                at = max(0, self.size - TAIL)
                self._tail = (at, read_at(self._place, self._known, at, self.size - at))
        if self._tail is not None and start >= self._tail[0]:
            at, data = self._tail
            return data[start - at : start - at + length]
        return read_at(self._place, self._known, start, length)
