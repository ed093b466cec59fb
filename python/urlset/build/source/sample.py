"""The beginning of an input that can be read once, for who looks at it several times."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import Error, InputError
from .unpack import Stream

#: bytes of a text that are looked at
SAMPLE = 4 << 20
#: first bytes of gzip, bzip2, xz, zstd
PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


@contextmanager
def sample(path: str) -> Iterator[str]:
    """A path at which the beginning of ``path`` can be read as often as one likes.

    That is ``path`` itself for what is no pipe. Of Parquet and Arrow all is kept: their directory
    is at the end.

    Raises:
        InputError: it cannot be read.
    """
    place = Path(path)
    if path != "-" and ("://" in path or not place.exists() or place.is_file() or place.is_dir()):
        yield path
        return
    if path == "-" and sys.stdin is None:  # as under <&-
        raise InputError("-: standard input is closed", code="input.unreadable", input="-")
    with tempfile.NamedTemporaryFile(suffix="" if path == "-" else place.suffix) as file:
        try:
            with Stream(io.FileIO(0, closefd=False) if path == "-" else io.FileIO(path)) as stream:
                if stream.peek(6).startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
                    shutil.copyfileobj(stream, file)
                else:
                    head = stream.read(SAMPLE)
                    # a line that is cut is none; of what is packed the beginning is enough
                    packed = head.startswith(PACKED)
                    cut = len(head) == SAMPLE and not packed
                    end = head.rfind(b"\n") + 1 if cut else 0
                    file.write(head[:end] if end else head)
            file.flush()
        except OSError as error:
            raise InputError(
                f"{path}: {error.strerror}", code="input.unreadable", input=path
            ) from None
        try:
            yield file.name
        except Error as error:  # the user knows the input by its own name
            error.args = (str(error).replace(file.name, path),)
            raise
