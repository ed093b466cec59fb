"""What the page of a build shows besides the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..destination.manifest import BuildRecord
from ..report import Shard
from .rejects import Reject


@dataclass
class SetTotals:
    """The totals of a set: of a ``[[set]]`` table, or of a value of ``split_by``."""

    name: str
    urls: int = 0
    bytes: int = 0
    compressed_bytes: int = 0
    shards: int = 0
    written: int = 0

    def add(self, shards: Iterable[Shard]) -> None:
        """Adds shards."""
        for shard in shards:
            self.urls += shard.urls
            self.bytes += shard.bytes
            self.compressed_bytes += shard.compressed_bytes
            self.shards += 1
            self.written += shard.changed


@dataclass
class Details:
    """What the page of a build shows besides the report.

    Attributes:
        site: of the build.
        dry_run: nothing is published.
        unchanged: the set was live already with the same content.
        sets: their totals, in the order of the sitemaps.
        ages: the ages of the lastmods of all URLs, as ``_core.age_steps`` separates them.
        examples: the first rejected rows of each code.
        history: the last builds that changed the set, this one last if it is one of them.
    """

    site: str
    dry_run: bool = False
    unchanged: bool = False
    sets: list[SetTotals] = field(default_factory=list)
    ages: list[int] = field(default_factory=list)
    examples: dict[str, list[Reject]] = field(default_factory=dict)
    history: tuple[BuildRecord, ...] = ()
