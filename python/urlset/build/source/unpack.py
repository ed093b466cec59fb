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
        try:
            data = self._next(len(view))
        except lzma.LZMAError as error:
            raise ValueError(f"cannot be unpacked ({error}); make it anew") from None
        view[: len(data)] = data
        return len(data)

    def _next(self, size: int) -> bytes:
        """Up to ``size`` bytes, none at the end only."""
        data = b""
        while not data:
            packed = b""
            if self._from.eof:
                # padding between streams is of zero bytes
                packed = (self._from.unused_data or self._packed.read(1 << 16)).lstrip(b"\0")
                if not packed and not self._packed.peek(1):
                    break
                self._from = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
            elif self._from.needs_input:
                packed = self._packed.read(1 << 16)
                if not packed:
                    raise EOFError("the file is cut short; make it anew")
            data = self._from.decompress(packed, size)
        return data


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
