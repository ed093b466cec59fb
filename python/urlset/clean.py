"""``urlset.clean``: removes what killed builds left in a folder or an object store."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from .destination import open_destination
from .destination.orphans import Orphan
from .destination.orphans import clean as remove_orphans
from .errors import ConfigError
from .option_table import check_values, option, replaced
from .outfile import is_store, must_be_local

if TYPE_CHECKING:
    from typing import Unpack

    from obstore.store import ObjectStore

    from .keywords import CleanKeywords

__all__ = ["CleanOptions", "Orphan", "clean"]

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CleanOptions:
    """The options of :func:`urlset.clean`."""

    state: str | os.PathLike[str] | None = option(
        None, "Options", "The --state of the builds [DESTINATION/.urlset].", metavar="DIR|URL",
        keyword="str | os.PathLike[str] | ObjectStore | None",
    )  # fmt: skip
    older_than: str = option(
        "7d", "Options", "Leave files that were written within this time, as by a build that still"
        " runs: 7d, 12h, 30m.", metavar="TIME",
    )  # fmt: skip
    dry_run: bool = option(False, "Options", "List what would be removed, and remove nothing.")


def clean(
    destination: str | os.PathLike[str] | ObjectStore, **options: Unpack[CleanKeywords]
) -> list[Orphan]:
    """Remove the files of killed builds that no manifest lists.

    Args:
        destination: the ``out`` of the builds.
        options: those of the command line, with underscores; see ``urlset clean --help``.

    Returns:
        What was removed, or with ``dry_run`` would be.

    Raises:
        ConfigError: a wrong option.
        PublishError: ``clean.no_manifest``: the state contains no manifest; it cannot be read.
    """
    chosen = replaced(CleanOptions(), options, where="options")
    check_values(chosen)
    named: dict[str, Any] = {"destination": destination, "state": chosen.state}
    for name, target in named.items():
        if target is not None and not is_store(target):
            must_be_local(name, target)
    before = datetime.now(UTC) - _time(chosen.older_than)
    place: Any = open_destination(destination, chosen.state)
    return remove_orphans(place, before, dry_run=chosen.dry_run)


def _time(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})\s*([dhms])", text.strip())
    if match is None:
        raise ConfigError(
            f"older_than: {text!r} is not a time; write for example 7d, 12h or 30m",
            code="config.older_than",
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
