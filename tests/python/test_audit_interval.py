"""The intervals of an audit: their coverage on simulated sites, and their edges."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from audit_sites import simulate
from hypothesis import example, given, settings
from hypothesis import strategies as st
from urlset.audit.interval import Count, Interval, beta, of_set, of_stratum
from urlset.audit.report import Estimate
from urlset.cli.audit import share


def binomial_tail(hits: int, size: int, share: float) -> float:
    """The probability of ``hits`` or more."""
    return sum(
        math.comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(hits, size + 1)
    )


@pytest.mark.parametrize("share", [0.001, 0.02, 0.3, 0.5, 0.77, 0.999])
@pytest.mark.parametrize(("hits", "size"), [(1, 1), (1, 30), (7, 30), (30, 30), (3, 400)])
def test_the_incomplete_beta_function(share: float, hits: int, size: int) -> None:
    assert beta(share, hits, size - hits + 1) == pytest.approx(
        binomial_tail(hits, size, share), rel=1e-9, abs=1e-13
    )


def test_clopper_and_pearson() -> None:
    # values of their table, as every textbook has them: 0 of 10, 1 of 10, 5 of 10
    for hits, low, high in ((0, 0.0, 0.3085), (1, 0.0025, 0.4450), (5, 0.1871, 0.8129)):
        found = of_stratum(Count(10**9, 10, hits))
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


def test_large_samples() -> None:
    # the normal approximation is exact enough here
    found = of_stratum(Count(10**9, 1_000_000, 20_000))
    half = 1.96 * math.sqrt(0.02 * 0.98 / 1_000_000)
    assert found.low == pytest.approx(0.02 - half, rel=1e-3)
    assert found.high == pytest.approx(0.02 + half, rel=1e-3)


def drawn(size: int, marked: int, sampled: int) -> dict[int, float]:
    """The probability of each number of hits in a sample without replacement."""
    return {
        hits: math.comb(marked, hits) * math.comb(size - marked, sampled - hits)
        / math.comb(size, sampled)
        for hits in range(max(0, sampled - size + marked), min(sampled, marked) + 1)
    }  # fmt: skip


def contains(interval: Interval, share: float) -> bool:
    return interval.low - 1e-12 <= share <= interval.high + 1e-12


@pytest.mark.parametrize(
    ("size", "sampled"),
    [(2, 1), (31, 30), (35, 30), (50, 45), (60, 30), (100, 99), (200, 150), (300, 30), (500, 490)],
)
def test_the_coverage_of_a_stratum_is_exact(size: int, sampled: int) -> None:
    """Each number of hits that a stratum can have, and each sample: nothing is simulated."""
    found = [of_stratum(Count(size, sampled, hits)) for hits in range(sampled + 1)]
    for marked in range(size + 1):
        chances = drawn(size, marked, sampled)
        assert sum(chances.values()) == pytest.approx(1)
        covered = sum(p for hits, p in chances.items() if contains(found[hits], marked / size))
        assert covered >= 0.95, marked
        # what is outside an interval is unlikely
        for hits in chances:
            if not contains(found[hits], marked / size):
                tails = (sum(p for x, p in chances.items() if x >= hits),
                         sum(p for x, p in chances.items() if x <= hits))  # fmt: skip
                assert min(tails) <= 0.025


@pytest.mark.parametrize(
    "strata", [((31, 30), (31, 30)), ((40, 30), (300, 200)), ((100, 99), (50, 50), (40, 39))]
)
def test_the_coverage_of_a_set_of_which_nearly_all_was_taken(
    strata: tuple[tuple[int, int], ...],
) -> None:
    total = sum(size for size, _ in strata)
    for rate in (0.02, 0.1, 0.3, 0.5, 0.9):
        marked = [round(rate * size) for size, _ in strata]
        covered = 0.0
        chances = [drawn(n, m, k) for (n, k), m in zip(strata, marked, strict=True)]
        for hits in itertools.product(*chances):
            p = math.prod(one[x] for one, x in zip(chances, hits, strict=True))
            if p > 1e-9:
                counts = [Count(n, k, x) for (n, k), x in zip(strata, hits, strict=True)]
                covered += p * contains(of_set(counts), sum(marked) / total)
        assert covered >= 0.95, rate


counts = st.integers(1, 3_000).flatmap(
    lambda size: st.integers(1, size).flatmap(
        lambda sampled: st.builds(Count, st.just(size), st.just(sampled), st.integers(0, sampled))
    )
)


@settings(deadline=None, max_examples=200)
@given(st.lists(counts, min_size=1, max_size=8))
@example([Count(1_794, 1, 1), Count(1_794, 1_794, 347)])
@example([Count(41, 40, 0)])
@example([Count(100_000, 98_000, 98_000)])
def test_the_order_of_the_ends(found: list[Count]) -> None:
    whole = of_set(found)
    assert 0 <= whole.low <= whole.share <= whole.high <= 1
    total = sum(count.size for count in found)
    # what was seen exists
    assert whole.low * total >= sum(count.hits for count in found) - 1e-6
    assert (1 - whole.high) * total >= sum(c.sampled - c.hits for c in found) - 1e-6
    if all(count.sampled == count.size for count in found):
        assert whole.low == whole.high
        assert whole.share == pytest.approx(sum(c.hits for c in found) / total)
    else:
        assert whole.low < whole.high


def test_strata_are_weighted_by_their_size() -> None:
    found = of_set([Count(900, 100, 0), Count(100, 100, 100)])
    assert found.share == pytest.approx(0.1)
    assert of_set([Count(900, 0, 0), Count(100, 50, 5)]).share == pytest.approx(0.1)


def coverage(sites: int, rate: float, size: int, strata: int) -> tuple[float, float]:
    return simulate(random.Random(f"{rate} {size} {strata}"), sites, rate, size, strata)


@pytest.mark.long
@pytest.mark.parametrize("rate", [0.005, 0.2])
@pytest.mark.parametrize("strata", [1, 8])
def test_coverage(rate: float, strata: int) -> None:
    # of 150 sites with a coverage of 94 %, fewer than 132 are covered once in 1,000 tries; the
    # seed is fixed
    whole, parts = coverage(150, rate, 400, strata)
    assert whole >= 0.88
    assert parts >= 0.93 - (0.05 if strata == 1 else 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.005, 0.01, 0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("strata", [1, 4, 12])
@pytest.mark.parametrize("size", [400, 1_000])
def test_coverage_of_a_thousand_sites(rate: float, strata: int, size: int) -> None:
    whole, parts = coverage(1_000, rate, size, strata)
    assert whole >= 0.94
    assert parts >= 0.93


def test_the_wording() -> None:
    assert share(Estimate("bad", 21, 0.0214, 0.0154, 0.0274)) == "2.1 % ± 0.60 %"
    assert share(Estimate("bad", 4, 0.004, 0.0011, 0.0102)) == "0.40 % (0.11 % to 1.0 %)"
    assert share(Estimate("bad", 0, 0.0, 0.0, 0.0037)) == "0 % (at most 0.37 %)"
    assert share(Estimate("bad", 9, 1.0, 0.66, 1.0)) == "100 % (at least 66.0 %)"
    assert share(Estimate("bad", 5, 0.25, 0.25, 0.25)) == "25.0 % (all taken)"
