"""The sample: how many URLs of each stratum, and which."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from heapq import heappush, heapreplace
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .population import Batch

#: URLs that a stratum gets at least, if it has them: fewer say little about it
MIN_PER_STRATUM = 30
#: the stratum of small values that do not get one of their own
OTHERS = "(others)"


def allocate(sizes: Sequence[int], total: int) -> list[int]:
    """How many URLs of each stratum are sampled.

    In proportion to its size, but at least :data:`MIN_PER_STRATUM` (fewer if that would be more
    than ``total`` for all) and at most its size.

    Args:
        sizes: of the strata.
        total: of the sample.

    Returns:
        Numbers that add up to ``total``, or to all URLs if there are fewer.
    """
    if total >= sum(sizes):
        return list(sizes)
    least = min(MIN_PER_STRATUM, total // max(1, len(sizes)))

    def ideal(rate: float) -> list[float]:
        return [min(size, max(least, rate * size)) for size in sizes]

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(ideal(middle)) > total else (middle, high)
    shares = ideal(low)
    counts = [math.floor(share) for share in shares]
    # the largest fractions get what is left; ties go to the first
    order = sorted(range(len(sizes)), key=lambda i: (counts[i] - shares[i], i))
    while (left := total - sum(counts)) > 0:
        for i in [i for i in order if counts[i] < sizes[i]][:left]:
            counts[i] += 1
    return counts


class Sample(NamedTuple):
    """The URLs of a sample.

    Attributes:
        strata: their names; small ones may be merged.
        sizes: the number of URLs of each stratum.
        places: for each URL the strata (as indices) that list it, once for each entry; in random
            order, so that the pages before an interruption are a random sample, too.
        lastmods: of each URL, if they are checked.
    """

    strata: tuple[str, ...]
    sizes: tuple[int, ...]
    places: dict[str, tuple[int, ...]]
    lastmods: dict[str, str | None]


def strata_of(sizes: Mapping[str, int], total: int) -> dict[str, str]:
    """The stratum of each value: its own for the largest ones, a common one for the others.

    There are at most as many strata as the sample has groups of :data:`MIN_PER_STRATUM` URLs.
    """
    limit = max(1, total // MIN_PER_STRATUM)
    if len(sizes) <= limit:
        return {name: name for name in sizes}
    largest = set(sorted(sizes, key=lambda name: (-sizes[name], name))[: limit - 1])
    return {name: name if name in largest else OTHERS for name in sizes}


def choose(
    batches: Iterable[Batch], sizes: Mapping[str, int], total: int | None, seed: int
) -> Sample:
    """The URLs with the smallest keyed hashes of each stratum.

    The choice depends on the seed and the URLs, not on their order: the same URLs are chosen again
    when the set is audited again. Memory: about 500 bytes for each URL of the sample.

    Args:
        batches: all URLs.
        sizes: of the strata in ``batches``.
        total: of the sample; None for all.
    """
    wanted = sum(sizes.values()) if total is None else total
    merged = strata_of(sizes, wanted)
    names = sorted(set(merged.values()))
    index = {name: names.index(stratum) for name, stratum in merged.items()}
    counts = [0] * len(names)
    for name, size in sizes.items():
        counts[index[name]] += size
    quotas = allocate(counts, wanted)
    # of each stratum the smallest hashes, negated: the largest one is at the root of the heap
    heaps: list[list[tuple[int, int, str, str | None]]] = [[] for _ in names]
    key, number = seed.to_bytes(8, "big"), 0
    for batch in batches:
        encoded = batch.strata.dictionary_encode()
        places = [index[name] for name in encoded.dictionary.to_pylist()]
        lastmods = repeat(None) if batch.lastmods is None else batch.lastmods.to_pylist()
        rows = zip(batch.locs.to_pylist(), encoded.indices.to_pylist(), lastmods, strict=False)
        for loc, code, lastmod in rows:
            number += 1
            place = places[code]
            heap = heaps[place]
            digest = blake2b(loc.encode(), digest_size=8, key=key).digest()
            rank = -int.from_bytes(digest, "big")
            if len(heap) < quotas[place]:
                heappush(heap, (rank, number, loc, lastmod))
            elif heap and rank > heap[0][0]:
                heapreplace(heap, (rank, number, loc, lastmod))
    chosen = [(-rank, loc, place, lastmod) for place, heap in enumerate(heaps)
              for rank, _, loc, lastmod in heap]  # fmt: skip
    heaps.clear()
    chosen.sort(key=itemgetter(0, 1, 2))
    found: dict[str, tuple[int, ...]] = {}
    dates: dict[str, str | None] = {}
    for _, loc, place, lastmod in chosen:
        found[loc] = (*found.get(loc, ()), place)
        if lastmod is not None:
            dates.setdefault(loc, lastmod)
    return Sample(tuple(names), tuple(counts), found, dates)
