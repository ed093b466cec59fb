"""Binary files that are read once: their first bytes put back, and unpacked by these."""

from __future__ import annotations

import io
import lzma
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: bytes that the window of an xz file may take: what ``xz -9`` needs is 65 MiB
XZ_MEMORY = 256 << 20


class Stream(io.RawIOBase):
    """A binary file that can be read once, and looked at before.

    Args:
        raw: has ``read(size)``, which may give fewer bytes, and none at the end only.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._head = b""
        self._ended = False

    def peek(self, size: int) -> bytes:
        """The next bytes, ``size`` at least where there are as many; they are not taken."""
        while len(self._head) < size and not self._ended:
            more = self._raw.read(max(size - len(self._head), 1 << 16))
            self._ended = not more
            self._head += more or b""
        return self._head

    @property
    def ended(self) -> bool:
        """What :meth:`peek` gave is all."""
        return self._ended

    def take_head(self) -> bytes:
        """What was looked at; the stream goes on behind it."""
        head, self._head = self._head, b""
        return head

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """``size`` bytes, fewer only at the end: Arrow takes a short read for a cut."""
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


class _Xz(io.RawIOBase):
    """An xz file, one or several streams of it, with a limit of memory."""

    def __init__(self, packed: Stream) -> None:
        self._packed = packed
        self._from = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while True:
            data = b""
            if self._from.eof:
                # padding between streams is of zero bytes
                rest = (self._from.unused_data or self._packed.read(1 << 16) or b"").lstrip(b"\0")
                if not rest and not self._packed.peek(1):
                    return 0
                self._from = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
                data = self._from.decompress(rest, len(view))
            elif self._from.needs_input:
                more = self._packed.read(1 << 16)
                if not more:
                    raise EOFError("the file is cut short; make it anew")
                data = self._from.decompress(more, len(view))
            else:
                data = self._from.decompress(b"", len(view))
            if data:
                view[: len(data)] = data
                return len(data)


def unpacked(file: Any) -> Any:
    """A binary file with ``read``, of what a path or a :class:`Stream` holds, unpacked."""
    import pyarrow as pa

    if isinstance(file, str):
        with open(file, "rb") as opened:  # noqa: PTH123 - a string, as it was given
            head = opened.read(6)
    else:
        head = file.peek(6)
    if head.startswith(b"\xfd7zXZ\0"):
        # closed when it is thrown away
        stream = file if isinstance(file, Stream) else Stream(open(file, "rb"))  # noqa: PTH123, SIM115
        return _Xz(stream)
    native = pa.OSFile(file) if isinstance(file, str) else pa.PythonFile(file, mode="r")
    for first, codec in ((b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\x28\xb5\x2f\xfd", "zstd")):
        if head.startswith(first):
            return pa.CompressedInputStream(native, codec)
    return native
