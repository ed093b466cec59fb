"""The places where a set can be published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..outfile import is_store
from .folder import FolderDestination

if TYPE_CHECKING:
    from ..options import Options
    from .interface import Destination


def open_destination(out: Any, state: Any = None, options: Options | None = None) -> Destination:
    """The destination that the options ``out`` and ``state`` name. Nothing is read or created.

    Raises:
        ConfigError: ``config.state``: only one of the two is in an object store;
            ``config.header``.
    """
    if state is not None and is_store(out) != is_store(state):
        raise ConfigError(
            "state: of a set in an object store it is in one, too, and of a folder in a folder",
            code="config.state",
        )
    if not is_store(out):
        return FolderDestination(Path(out), Path(state) if state is not None else None)
    from .headers import Headers
    from .object_store import StoreDestination

    if options is None:
        return StoreDestination(out, state)
    return StoreDestination(out, state, Headers.of(options), options.conditional)
