"""The sample of an audit: its size in each stratum, and which URLs."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("lxml")

from urlset.audit.population import Batch
from urlset.audit.sample import MIN_PER_STRATUM, OTHERS, allocate, choose, strata_of

sizes = st.lists(st.integers(1, 5_000), min_size=1, max_size=40)


@settings(deadline=None)
@given(sizes, st.integers(1, 20_000))
def test_allocation(found: list[int], total: int) -> None:
    counts = allocate(found, total)
    assert sum(counts) == min(total, sum(found))
    assert all(0 <= count <= size for count, size in zip(counts, found, strict=True))
    least = min(MIN_PER_STRATUM, total // len(found))
    assert all(count >= min(size, least) for count, size in zip(counts, found, strict=True))
    # a larger stratum never gets less; equal ones differ by one URL at most
    for (one, more), (other, less) in zip(
        sorted(zip(found, counts, strict=True))[1:], sorted(zip(found, counts, strict=True)),
        strict=False,
    ):  # fmt: skip
        assert more >= less - 1, (one, other)


def test_allocation_is_proportional() -> None:
    assert allocate([10_000, 20_000, 70_000], 1_000) == [100, 200, 700]
    assert allocate([100, 99_900], 1_000) == [30, 970]
    assert allocate([5, 10], 100) == [5, 10]


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), st.integers(1, 100), min_size=1), st.integers(1, 300))
def test_small_values_share_a_stratum(found: dict[str, int], total: int) -> None:
    merged = strata_of(found, total)
    assert merged.keys() == found.keys()
    assert len(set(merged.values())) <= max(1, total // MIN_PER_STRATUM)
    own = [found[name] for name, stratum in merged.items() if stratum != OTHERS]
    rest = [found[name] for name, stratum in merged.items() if stratum == OTHERS]
    assert not own or not rest or min(own) >= max(rest)


def batches(rows: list[tuple[str, str]], size: int) -> list[Batch]:
    parts = [rows[at : at + size] for at in range(0, len(rows), size)]
    return [
        Batch(pa.array([loc for loc, _ in part]), pa.array([name for _, name in part]), None)
        for part in parts
    ]


def rows_of(number: int) -> list[tuple[str, str]]:
    return [(f"https://a.de/{n}", "abcc"[n % 4]) for n in range(number)]


def test_the_choice_depends_on_seed_and_urls_only() -> None:
    rows = rows_of(5_000)
    counts = Counter(name for _, name in rows)
    first = choose(batches(rows, 700), counts, 400, 1)
    assert Counter(place for places in first.places.values() for place in places) == {
        0: 100, 1: 100, 2: 200,
    }  # fmt: skip
    assert first.sizes == (1_250, 1_250, 2_500)
    random.Random(1).shuffle(rows)
    assert choose(batches(rows, 123), counts, 400, 1) == first
    other = choose(batches(rows, 123), counts, 400, 2)
    assert 0 < len(first.places.keys() & other.places.keys()) < 100
    # a URL that is added moves few others out
    rows.append(("https://a.de/new", "a"))
    again = choose(batches(rows, 123), Counter(name for _, name in rows), 400, 1)
    assert len(first.places.keys() & again.places.keys()) >= 395


def test_every_url_has_the_same_chance() -> None:
    rows = [(f"https://a.de/{n}", "a") for n in range(50)]
    chosen: Counter[str] = Counter()
    for seed in range(2_000):
        chosen.update(list(choose(batches(rows, 50), {"a": 50}, 10, seed).places))
    # 400 expected each, with a standard deviation of 18
    assert len(chosen) == 50
    assert all(abs(count - 400) < 90 for count in chosen.values())
    # and the first of the sample is any of them: an interrupted audit has a random sample, too
    first = Counter(next(iter(choose(batches(rows, 50), {"a": 50}, 10, seed).places))
                    for seed in range(2_000))  # fmt: skip
    assert len(first) == 50
    assert max(first.values()) < 90


def test_all_and_repeated_urls() -> None:
    rows = [
        *((f"https://a.de/{n}", "a") for n in range(100)),
        ("https://a.de/1", "b"),
        ("https://a.de/1", "a"),
    ]
    counts = Counter(name for _, name in rows)
    sample = choose(batches(rows, 7), counts, None, 0)
    assert len(sample.places) == 100
    assert sample.strata == ("a", "b")
    assert sorted(sample.places["https://a.de/1"]) == [0, 0, 1]
    assert sum(map(len, sample.places.values())) == 102
