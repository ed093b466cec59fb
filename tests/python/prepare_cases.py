"""Rows whose final locs are known, and edits of a catalog, for the tests of prepare."""

from __future__ import annotations

import random
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from conftest import SITE, read_index, read_set, read_shard
from url_model import model

#: the text of a cell, and its final loc by the documented rules; None for a row that is rejected
LOCS: list[tuple[str | None, str | None]] = [
    (f"{SITE}/a", f"{SITE}/a"),
    # the spelling of the host and of escapes stays, so these are other locs
    ("HTTPS://WWW.Shop.Example/a", "HTTPS://WWW.Shop.Example/a"),
    ("/gr%c3%b6%C3%9Fe", f"{SITE}/gr%c3%b6%C3%9Fe"),
    ("/a", f"{SITE}/a"),
    ("/b/../a", f"{SITE}/a"),
    ("/größe", f"{SITE}/gr%C3%B6%C3%9Fe"),
    ("/gr%C3%B6%C3%9Fe", f"{SITE}/gr%C3%B6%C3%9Fe"),
    ("/中 文", f"{SITE}/%E4%B8%AD%20%E6%96%87"),
    ("/q?a=1&b='2'", f"{SITE}/q?a=1&b='2'"),
    ("/q?a=1(b)", f"{SITE}/q?a=1(b)"),
    ("/q?a=1", f"{SITE}/q?a=1"),
    ("/Z", f"{SITE}/Z"),
    ("/z~", f"{SITE}/z~"),
    ("x:", None),
    ("https://elsewhere.example/a", None),
    ("", None),
    (None, None),
]


def check_the_cases() -> None:
    """The locs of paths are those of the plain model."""
    for raw, loc in LOCS:
        if raw is not None and raw.startswith("/"):
            assert model(raw) == loc, raw


def many(rows: int, seed: int) -> list[tuple[str | None, str | None]]:
    """The cases among other rows, in random order; some of the others occur twice."""
    numbers = random.Random(seed).choices(range(rows), k=rows - len(LOCS))
    chosen = [(f"/p/{number}", f"{SITE}/p/{number}") for number in numbers] + LOCS
    random.Random(seed).shuffle(chosen)
    return chosen


class Catalog(NamedTuple):
    """Rows by number: their dates."""

    dates: dict[int, str]

    @property
    def rows(self) -> dict[str, list[str]]:
        """The columns; the rows are in no order."""
        numbers = list(self.dates)
        random.Random(7).shuffle(numbers)
        return {"loc": [loc(n) for n in numbers], "lastmod": [self.dates[n] for n in numbers]}

    @property
    def entries(self) -> dict[str, str]:
        """The dates by loc."""
        return {loc(number): date for number, date in self.dates.items()}

    def edited(self, groups: int, size: int, seed: int) -> Catalog:
        """Groups of adjacent rows with other dates; of ten rows one is removed and one is new."""
        rng = random.Random(seed)
        dates = dict(self.dates)
        known = sorted(dates)
        for _ in range(groups):
            start = rng.randrange(len(known) - size)
            for place, number in enumerate(known[start : start + size]):
                if place % 10 == 8:
                    dates.pop(number, None)
                elif place % 10 == 9:
                    dates[number + 1] = "2026-03-01"
                else:
                    dates[number] = "2026-02-01"
        return Catalog(dates)


def catalog(rows: int) -> Catalog:
    """Rows with room between their locs."""
    return Catalog({number * 3: f"2026-01-{1 + number % 28:02}" for number in range(rows)})


def loc(number: int) -> str:
    return f"{SITE}/p/{number:08}"


class Shards(NamedTuple):
    """The shards of a set: names, and the locs and dates of each, in the order of the index."""

    names: list[str]
    entries: list[dict[str, str]]


def shards_of(out: Path) -> Shards:
    """As a crawler finds them."""
    names = [entry["loc"].rpartition("/")[2] for entry in read_index(out / "sitemap.xml")]
    pages = [read_shard(out / name) for name in names]
    entries = [{one["loc"]: one.get("lastmod", "") for one in page} for page in pages]
    return Shards(names, entries)


def must_be_in_order(out: Path) -> list[str]:
    """The locs of the set; they ascend, and none occurs twice."""
    locs = [entry["loc"] for entry in read_set(out)]
    assert all(before.encode() < after.encode() for before, after in pairwise(locs))
    return locs


def rewritten(old: Shards, new: Shards) -> tuple[int, int]:
    """The number of new shards, and that of the old shards that hold an edit.

    A shard holds the locs from its first one up to the first one of the next shard.
    """
    firsts = [min(entries) for entries in old.entries]
    assert firsts == sorted(firsts)
    before = {loc: date for entries in old.entries for loc, date in entries.items()}
    after = {loc: date for entries in new.entries for loc, date in entries.items()}
    edits = {loc for loc in before.keys() | after.keys() if before.get(loc) != after.get(loc)}
    hit = {max(bisect_right(firsts, loc) - 1, 0) for loc in edits}
    return len(set(new.names) - set(old.names)), len(hit)
