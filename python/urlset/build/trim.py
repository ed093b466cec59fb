"""Which stable shards of two generations share a border, and what of them is to be compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _core
from .threads import Pool

#: path, name and digest of a file, as :mod:`urlset.inspect.diff` takes it
Shard = tuple[Any, str, str | None]

#: pairs at a time; each takes the memory of two documents
THREADS = 8


def trimmed(
    old: Sequence[Shard], new: Sequence[Shard], folder: Path
) -> tuple[list[Shard], list[Shard]]:
    """The same files; of those that share a border, copies in ``folder`` of what differs.

    An old file without a digest (it was edited by hand) stays as it is.

    Raises:
        PublishError: the folder cannot be written to.
    """
    by_border = {_border(name): (path, name, digest) for path, name, digest in old if digest}
    pairs = [
        (by_border.pop(_border(shard[1])), shard)
        for shard in new
        if _border(shard[1]) in by_border and _is_xml(shard[1])
    ]
    paired = [{pair[side][1] for pair in pairs} for side in (0, 1)]
    rest_old = [shard for shard in old if shard[1] not in paired[0]]
    rest_new = [shard for shard in new if shard[1] not in paired[1]]

    def cut(numbered: tuple[int, tuple[Shard, Shard]]) -> list[list[Shard]]:
        number, pair = numbered
        cuts = [folder / f"{number}-{side}.xml" for side in (0, 1)]
        written = _core.trim(pair[0][0], pair[1][0], cuts[0], cuts[1])
        if written is None:
            return [[shard] for shard in pair]
        return [
            [(path, shard[1], None)] if is_there else []
            for path, shard, is_there in zip(cuts, pair, written, strict=True)
        ]

    with Pool(min(os.cpu_count() or 1, THREADS)) as pool:
        for kept in pool.map(cut, enumerate(pairs)):
            rest_old += kept[0]
            rest_new += kept[1]
    return rest_old, rest_new


def _border(name: str) -> str:
    """``NAME-<border>`` of ``NAME-<border>-<digest>.xml.gz``."""
    return name.rpartition("-")[0]


def _is_xml(name: str) -> bool:
    return name.endswith((".xml", ".xml.gz"))
