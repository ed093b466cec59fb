"""Where a set is published."""

from __future__ import annotations

import os
from pathlib import Path

from .folder import FolderDestination
from .interface import Destination


def open_destination(
    out: str | os.PathLike[str], state: str | os.PathLike[str] | None = None
) -> Destination:
    """The destination that the options ``out`` and ``state`` name. Nothing is read or created."""
    return FolderDestination(Path(out), Path(state) if state is not None else None)
