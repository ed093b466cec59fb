"""Ranges of locs: which rows of a job with ordered parts an engine brings together.

A range begins with the first loc of a part of the live set, so that its rows become the same shards
as before. A live set that was built in another way has no such locs; the engine then samples.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from ..destination.manifest import ShardRecord
from ..options import Options
from .plan import make_plan_of_parts
from .source.objects import object_input
from .source.scan import kinds_of

if TYPE_CHECKING:
    import pyarrow as pa


class Columns(NamedTuple):
    """Columns of the rows.

    Attributes:
        loc: those that the loc and the filters need.
        ties: those that the build reads and that can be compared, for the order of equal locs; the
            one of lastmod, the newest first, is separate.
        lastmod: the one of lastmod.
    """

    loc: tuple[str, ...]
    ties: tuple[str, ...]
    lastmod: str | None


@dataclass(frozen=True)
class Ranges:
    """The ranges of a job. They can be pickled.

    Attributes:
        settings: the configuration of the core, as JSON.
        bounds: the first loc of each range but the first one, ascending; None if neither a live set
            nor a sample has determined them.
    """

    settings: str
    bounds: tuple[str, ...] | None = None

    @property
    def count(self) -> int:
        """The number of ranges."""
        return len(self.bounds or ()) + 1

    def columns(self, schema: pa.Schema) -> Columns:
        """The columns that an engine needs, of rows with this schema.

        Raises:
            ConfigError: a missing or ambiguous column.
        """
        kinds = kinds_of(schema)
        needed, chosen = _core.choose(self.settings, schema.names, kinds)
        kind = dict(zip(schema.names, kinds, strict=True))
        plain = [name for name in needed if kind[name] in "ts"]
        dated = [one["from"] for one in json.loads(chosen) if one["field"] == "lastmod"]
        return Columns(
            loc=tuple(_core.loc_columns(self.settings, schema.names, kinds)),
            ties=tuple(name for name in plain if name not in dated),
            lastmod=next((name for name in plain if name in dated), None),
        )

    def locate(self, rows: pa.Table, without: int) -> tuple[pa.Array, pa.Array]:
        """The final loc of each row, and the number of its range, from 0.

        A row that will be rejected or filtered has a null instead of a loc, unless another field is
        the reason, and the range ``without``, modulo their number.

        Raises:
            ConfigError: a missing or ambiguous column.
            InputError: the rows are damaged.
        """
        import pyarrow as pa

        source = object_input(rows, Options())
        without %= self.count
        buffers = _core.locs(self.settings, "rows", source.handle, self.bounds or (), without)
        valid, offsets, text, ranges = map(pa.py_buffer, buffers)
        count = rows.num_rows
        locs = pa.LargeStringArray.from_buffers(count, offsets, text, valid)
        return locs, pa.Array.from_buffers(pa.int32(), count, [None, ranges])


def live_ranges(
    given: Mapping[str, Any], config: str | os.PathLike[str] | None, partitions: int | None
) -> Ranges:
    """The ranges of the live set, if its rows were ordered.

    Args:
        given: the options of the job.
        partitions: about the number of the ranges; None for that of the live set.

    Raises:
        ConfigError: wrong options.
        PublishError: the output cannot be written, or another build is publishing there.
    """
    plan = make_plan_of_parts(given, config, ordered=True)
    with plan.publication() as publication:
        manifest = publication.manifest()
    ranges = Ranges(json.dumps(plan.settings[0]))
    # under another site all rows would belong to the first range or to the last one
    if manifest is None or manifest.site != plan.options.site:
        return ranges
    return replace(ranges, bounds=live_bounds(manifest.shards, partitions))


def live_bounds(shards: Iterable[ShardRecord], partitions: int | None) -> tuple[str, ...] | None:
    """The bounds of ranges of about the same size.

    Only an edge of two live parts, or of two of their shards, becomes a bound. A bound at a shard
    costs nothing: under the stable layout the shards on both sides stay as they are. Without a
    previous edge the shards around it change. So a part is split if it has half as many URLs again
    as the average range, and joined with the next one only if it has less than half as many.
    """
    firsts = [(shard.first, shard) for shard in shards if shard.first is not None]
    known = sorted(firsts, key=itemgetter(0))
    if not known:
        return None
    count = partitions or sum(shard.edge for _, shard in known)
    size = sum(shard.urls for _, shard in known) / max(count, 1)
    parts: list[list[tuple[str, ShardRecord]]] = [[]]
    for loc, shard in known:
        if shard.edge and sum(one.urls for _, one in parts[-1]) >= size / 2:
            parts.append([])
        parts[-1].append((loc, shard))
    bounds: dict[str, None] = {}
    for part in parts:
        urls = sum(shard.urls for _, shard in part)
        piece = urls / max(round(urls / size), 1)
        before, begun = 0.0, 0
        for loc, shard in part:
            if before >= begun * piece:
                bounds[loc] = None
                begun += 1
            before += shard.urls
    return tuple(bounds)[1:]
