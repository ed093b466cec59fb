"""The beginning of an input as a file that can be read several times."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import Error, InputError
from .stream import Stream

#: bytes of a text in a sample
SAMPLE = 4 << 20
#: first bytes of gzip, bzip2, xz, zstd
COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


@contextmanager
def sample(path: str) -> Iterator[str]:
    """A path with the beginning of ``path`` that can be read several times.

    It is ``path`` itself unless that is a pipe. Parquet and Arrow are copied as a whole: their
    metadata is at the end.

    Raises:
        InputError: it cannot be read.
    """
    place = Path(path)
    if path != "-" and ("://" in path or not place.exists() or place.is_file() or place.is_dir()):
        yield path
        return
    if path == "-" and sys.stdin is None:  # as with <&-
        raise InputError("-: standard input is closed", code="input.unreadable", input="-")
    with tempfile.NamedTemporaryFile(suffix="" if path == "-" else place.suffix) as file:
        try:
            with Stream(io.FileIO(0, closefd=False) if path == "-" else io.FileIO(path)) as stream:
                if stream.peek(6).startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
                    shutil.copyfileobj(stream, file)
                else:
                    head = stream.read(SAMPLE)
                    # an incomplete last line is dropped; a compressed text is cut anywhere
                    compressed = head.startswith(COMPRESSED)
                    cut = len(head) == SAMPLE and not compressed
                    end = head.rfind(b"\n") + 1 if cut else 0
                    file.write(head[:end] if end else head)
            file.flush()
        except OSError as error:
            raise InputError(
                f"{path}: {error.strerror}", code="input.unreadable", input=path
            ) from None
        try:
            yield file.name
        except Error as error:  # errors show the name that the user passed
            error.args = (str(error).replace(file.name, path),)
            raise
