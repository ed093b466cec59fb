"""The places where a set can be published."""

from __future__ import annotations

import os
from pathlib import Path

from .folder import FolderDestination
from .interface import Destination


def open_destination(
    out: str | os.PathLike[str], state: str | os.PathLike[str] | None = None
) -> Destination:
    """The destination of the options ``out`` and ``state``. Nothing is read or created."""
    return FolderDestination(Path(out), Path(state) if state is not None else None)
