"""Regular files alone: what lies in a folder may be a FIFO or a device, which never ends."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_bytes(path: Path, most: int) -> bytes:
    """The bytes of a regular file, or of a link to one; anything else is not waited for.

    Args:
        most: bytes that are read at most; a larger file is an error.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path}: not a regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"{path}: more than {most:,} bytes")
    return data
