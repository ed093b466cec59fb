"""Simulated sites: how often the intervals of an audit contain the true shares."""

from __future__ import annotations

from functools import lru_cache
from random import Random

from urlset.audit.interval import Count, of_set, of_stratum
from urlset.audit.sample import allocate

#: an interval is computed once for equal counts
interval_of = lru_cache(maxsize=1 << 20)(of_stratum)


def simulate(rng: Random, sites: int, rate: float, size: int, strata: int) -> tuple[float, float]:
    """The coverage for the whole set, and of all strata.

    Args:
        sites: each of 20,000 URLs in strata of random sizes; on half of the sites the shares of
            the strata differ widely around the rate.
        rate: the mean share of bad pages.
        size: of the sample.
    """
    hits = parts = intervals = 0
    for number in range(sites):
        cuts = sorted(rng.sample(range(100, 20_000, 100), strata - 1))
        sizes = [end - start for start, end in zip([0, *cuts], [*cuts, 20_000], strict=True)]
        spread = 10.0 if number % 2 else 1e9
        shares = [rng.betavariate(rate * spread, (1 - rate) * spread) for _ in sizes]
        bad = [sum(rng.random() < share for _ in range(n)) for n, share in zip(sizes, shares,
               strict=True)] if number % 2 else [round(n * rate) for n in sizes]  # fmt: skip
        counts = [
            Count(n, taken, sum(at < found for at in rng.sample(range(n), taken)))
            for n, taken, found in zip(sizes, allocate(sizes, size), bad, strict=True)
        ]
        whole = of_set(counts)
        hits += _contains(whole.low, sum(bad) / sum(sizes), whole.high)
        for count, found in zip(counts, bad, strict=True):
            interval = interval_of(count)
            parts += _contains(interval.low, found / count.size, interval.high)
            intervals += 1
    return hits / sites, parts / intervals


def _contains(low: float, value: float, high: float) -> bool:
    return low - 1e-9 <= value <= high + 1e-9
