"""Shares of a sample, and their 95 % intervals.

Within a stratum the interval is the exact one for a sample without replacement: it contains each
number of hits in the stratum with which at least as many hits in the sample, and at most as many,
have a probability of more than 2.5 % (hypergeometric distribution). Its coverage is at least 95 %
for every share, also for rare findings, where the normal approximation fails, and for a stratum of
which nearly all was taken. Of a large stratum it is that of Clopper and Pearson; that of a stratum
that was taken as a whole has no width.

For the whole set the strata are weighted by their size. The variance of that estimate gives the
size of the simple random sample that would be as precise, and the interval is that of Clopper and
Pearson (Korn and Graubard, 1998), one URL of the set wider on each side, because the share is one
of finitely many. A stratum without a hit has the estimated variance 0 although its share can be
above 0: the shares are smoothed towards that of the set before the variance is computed.
tests/python/test_audit_interval.py simulates the coverage.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

#: the probability that an interval misses the share, on each side
TAIL = 0.025
#: pages of the share of the set that are added to each stratum before its variance is estimated
SMOOTHING = 2.0


class Interval(NamedTuple):
    """An estimated share from 0 to 1 and its 95 % interval."""

    share: float
    low: float
    high: float


class Count(NamedTuple):
    """The hits of a sample of a stratum.

    Attributes:
        size: of the stratum.
        sampled: elements of the sample, at most ``size``.
        hits: those with the property.
    """

    size: int
    sampled: int
    hits: int


def of_stratum(count: Count) -> Interval:
    """The share in one stratum, of which at least one element was sampled."""
    size, sampled, hits = count
    share = hits / sampled
    low, high = _fewest(size, sampled, hits), size - _fewest(size, sampled, sampled - hits)
    if low == high:  # without width only if nothing is left
        low, high = max(low - 1, hits), min(high + 1, size - sampled + hits)
    return Interval(share, min(low / size, share), max(high / size, share))


def _fewest(size: int, sampled: int, hits: int) -> int:
    """The smallest number of hits in a stratum for which those of its sample are not unlikely."""

    def likelihood(marked: int) -> float:
        if hits * size < sampled * marked:  # at least as many as expected
            return 1.0 - _at_most(hits - 1, size, sampled, marked)
        return _at_most(sampled - hits, size, sampled, size - marked)

    numbers = range(hits, size - sampled + hits + 1)
    return hits + bisect_left(numbers, TAIL, key=likelihood)


def _at_most(hits: int, size: int, sampled: int, marked: int) -> float:
    """The distribution function of the hypergeometric distribution, for hits below its mean."""
    rest = size - marked - sampled
    if hits < 0 or hits + rest < 0:
        return 0.0
    ways = _ways(marked, hits) + _ways(size - marked, sampled - hits) - _ways(size, sampled)
    term = total = math.exp(ways)
    while hits > 0 and term > total * 1e-16:
        term *= hits * (rest + hits) / ((marked - hits + 1) * (sampled - hits + 1))
        total += term
        hits -= 1
    return total


def _ways(size: int, taken: int) -> float:
    """The logarithm of the number of ways to take some of ``size`` elements."""
    return math.lgamma(size + 1) - math.lgamma(taken + 1) - math.lgamma(size - taken + 1)


def of_set(counts: Sequence[Count]) -> Interval:
    """The share in all strata together; those without a sampled element are left out."""
    counts = [count for count in counts if count.sampled]
    total = sum(count.size for count in counts)
    share = sum(count.size * count.hits / count.sampled for count in counts) / total
    if len(counts) == 1:
        return of_stratum(counts[0])
    # of one element: the variance of the estimate if the share were p everywhere is p (1 - p) times
    variance = simple = 0.0
    for count in counts:
        weight = (count.size / total) ** 2 * (count.size - count.sampled) / max(1, count.size - 1)
        local = (count.hits + SMOOTHING * share) / (count.sampled + SMOOTHING)
        variance += weight * local * (1 - local) / max(1, count.sampled - 1)
        simple += weight / count.sampled
    if simple == 0:
        return Interval(share, share, share)
    spread = share * (1 - share)
    effective = spread / variance if variance > 0 else 1 / simple
    # not more than the pages of the sample would give without strata: the variance is estimated
    _, low, high = _exact(share, min(effective, 1 / simple))
    # not more than what was seen excludes
    seen = sum(count.hits for count in counts) / total
    unseen = sum(count.sampled - count.hits for count in counts) / total
    low, high = max(low - 1 / total, seen), min(high + 1 / total, 1.0 - unseen)
    # the share itself is in it, whatever was rounded
    return Interval(share, min(low, share), max(high, share))


def _exact(share: float, size: float) -> Interval:
    """The interval of Clopper and Pearson for a sample size that may be a fraction."""
    hits = share * size
    low = 0.0 if hits <= 0 else _quantile(TAIL, hits, size - hits + 1)
    high = 1.0 if hits >= size else _quantile(1 - TAIL, hits + 1, size - hits)
    return Interval(share, min(low, share), max(high, share))


def _quantile(probability: float, a: float, b: float) -> float:
    """The quantile of the beta distribution: Newton's method, inside a bracket."""
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(200):
        error = beta(x, a, b) - probability
        low, high = (x, high) if error < 0 else (low, x)
        density = _density(x, a, b)
        new = x - error / density if density > 0 else 0.0
        if not low < new < high:
            new = (low + high) / 2
        if abs(new - x) <= 1e-12 * x:
            break
        x = new
    return x


def _density(x: float, a: float, b: float) -> float:
    """The density of the beta distribution."""
    return _kernel(x, a, b) / (x * (1 - x))


def _kernel(x: float, a: float, b: float) -> float:
    """x^a (1 - x)^b / B(a, b)"""
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(scale + a * math.log(x) + b * math.log1p(-x))


def beta(x: float, a: float, b: float) -> float:
    """The distribution function of the beta distribution: the regularised incomplete beta function.

    Its continued fraction converges quickly for x below the mean; the other side follows by
    symmetry.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - beta(1 - x, b, a)
    front = _kernel(x, a, b)
    # the algorithm of Lentz: the ratio of successive convergents
    c, d = 1.0, _reciprocal(1 - (a + b) * x / (a + 1))
    value, step = d, 0
    while True:
        step += 1
        twice = a + 2 * step
        even = step * (b - step) * x / ((twice - 1) * twice)
        odd = -(a + step) * (a + b + step) * x / (twice * (twice + 1))
        d, c = _reciprocal(1 + even * d), _nonzero(1 + even / c)
        value *= d * c
        d, c = _reciprocal(1 + odd * d), _nonzero(1 + odd / c)
        value *= d * c
        # about the root of the larger parameter; a million elements take 3,000 steps
        if abs(d * c - 1) < 1e-14 or step > 100_000:
            return front * value / a


def _nonzero(x: float) -> float:
    return x if abs(x) > 1e-300 else 1e-300


def _reciprocal(x: float) -> float:
    return 1 / _nonzero(x)
