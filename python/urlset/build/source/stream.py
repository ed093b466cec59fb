"""Binary streams that can be read once: inspected before reading, and decompressed."""

from __future__ import annotations

import io
import lzma
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: maximum memory in bytes to decompress xz; ``xz -9`` needs 65 MiB
XZ_MEMORY = 256 << 20


class Stream(io.RawIOBase):
    """A binary file that can be read once, with a look at its first bytes.

    Args:
        raw: an object with ``read(size)``, which may return fewer bytes, but no bytes only at the
            end.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._head = b""
        self._ended = False

    def peek(self, size: int) -> bytes:
        """The next bytes, at least ``size`` if there are enough; they remain in the stream."""
        while len(self._head) < size and not self._ended:
            more = self._raw.read(max(size - len(self._head), 1 << 16))
            self._ended = not more
            self._head += more or b""
        return self._head

    @property
    def ended(self) -> bool:
        """Whether :meth:`peek` returned the rest of the stream."""
        return self._ended

    def take_head(self) -> bytes:
        """Removes and returns the bytes that :meth:`peek` read."""
        head, self._head = self._head, b""
        return head

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """``size`` bytes, fewer only at the end: Arrow treats a short read as the end."""
        if size < 0:
            return self.readall()
        parts: list[bytes] = []
        while size > 0 and (part := super().read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._head[: len(view)]
        if data:
            self._head = self._head[len(data) :]
        elif not self._ended:
            data = self._raw.read(len(view)) or b""
            self._ended = not data
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _XzReader(io.RawIOBase):
    """Decompresses an xz file of one or several streams, with a limit of memory."""

    def __init__(self, packed: Stream) -> None:
        self._packed = packed
        self._from = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = self._next(len(view))
        except lzma.LZMAError as error:
            raise ValueError(f"cannot be decompressed ({error}); create the file again") from None
        view[: len(data)] = data
        return len(data)

    def _next(self, size: int) -> bytes:
        """Up to ``size`` bytes; no bytes only at the end."""
        data = b""
        while not data:
            packed = b""
            if self._from.eof:
                # the padding between streams consists of zero bytes
                packed = (self._from.unused_data or self._packed.read(1 << 16)).lstrip(b"\0")
                if not packed and not self._packed.peek(1):
                    break
                self._from = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
            elif self._from.needs_input:
                packed = self._packed.read(1 << 16)
                if not packed:
                    raise EOFError("the file is truncated; create it again")
            data = self._from.decompress(packed, size)
        return data


def decompressed(file: Any) -> Any:
    """The decompressed content of a path or a :class:`Stream`, as a file with ``read``."""
    import pyarrow as pa

    if isinstance(file, str):
        with open(file, "rb") as opened:  # noqa: PTH123 - a string, as it was given
            head = opened.read(6)
    else:
        head = file.peek(6)
    if head.startswith(b"\xfd7zXZ\0"):
        # closed by the garbage collector
        stream = file if isinstance(file, Stream) else Stream(open(file, "rb"))  # noqa: PTH123, SIM115
        return _XzReader(stream)
    native = pa.OSFile(file) if isinstance(file, str) else pa.PythonFile(file, mode="r")
    for first, codec in ((b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\x28\xb5\x2f\xfd", "zstd")):
        if head.startswith(first):
            return pa.CompressedInputStream(native, codec)
    return native
