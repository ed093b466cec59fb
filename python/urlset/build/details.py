"""What the page of a build shows besides the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..destination.manifest import BuildRecord
    from ..report import Shard


class SetTotals:
    """The totals of a set: of a ``[[set]]`` table, or of a value of ``split_by``."""

    # plain classes: as dataclasses, both take 1 ms at start-up
    def __init__(self, name: str) -> None:
        self.name = name
        self.urls = self.bytes = self.compressed_bytes = self.shards = self.written = 0

    def add(self, shards: Iterable[Shard]) -> None:
        """Adds shards."""
        for shard in shards:
            self.urls += shard.urls
            self.bytes += shard.bytes
            self.compressed_bytes += shard.compressed_bytes
            self.shards += 1
            self.written += shard.changed


class Details:
    """What the page of a build shows besides the report.

    Attributes:
        site: of the build.
        dry_run: nothing is published.
        history: the last builds that changed the set, this one last if it is one of them.
        unchanged: the set was live already with the same content.
        sets: their totals, in the order of the sitemaps.
        ages: the ages of the lastmods of all URLs, as ``_core.age_steps`` separates them.
        examples: the first rejected rows of each code, by the columns of the reject file.
    """

    def __init__(
        self, site: str, dry_run: bool = False, history: tuple[BuildRecord, ...] = ()
    ) -> None:
        self.site = site
        self.dry_run = dry_run
        self.history = history
        self.unchanged = False
        self.sets: list[SetTotals] = []
        self.ages: list[int] = []
        self.examples: dict[str, list[dict[str, str]]] = {}
