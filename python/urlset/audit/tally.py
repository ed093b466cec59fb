"""Judged pages to counts by stratum, and counts to estimates."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable

from .crawl import Page
from .interval import Count, Interval, of_set, of_stratum
from .report import BAD, CODES, UNJUDGED, Estimate, Finding, Stratum
from .sample import Sample

#: pages that the report lists for each code
MAX_SAMPLES = 20
#: content types that the report lists
MAX_TYPES = 20
#: upper bounds of the classes of page times: 1 ms, 5 % more each, up to ten minutes
TIMES = [0.001 * 1.05**i for i in range(273)]


class Tally:
    """The counts of a sample.

    Attributes:
        sample: the URLs.
        counts: pages by code.
        seen: the URLs that were counted.
        samples: the first pages of each code.
    """

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self._by_stratum: list[Counter[str]] = [Counter() for _ in sample.strata]
        self._done = [0] * len(sample.strata)
        self.seen: set[str] = set()
        self._times = [0] * (len(TIMES) + 1)
        self._statuses: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.samples: dict[str, list[Finding]] = {}

    def add(self, page: Page) -> bool:
        """Counts a page; returns False if it is not in the sample, or was counted already."""
        places = self.sample.places.get(page.loc)
        if places is None or page.loc in self.seen:
            return False
        self.seen.add(page.loc)
        for place in places:
            self._done[place] += 1
        if page.facts:
            self._add_facts(page, places)
        self._statuses[str(page.status) if page.status is not None else "none"] += 1
        if page.content_type is not None:
            self._types[page.content_type or "none"] += 1
            if len(self._types) > 100 * MAX_TYPES:  # a hostile site
                self._types = Counter(dict(self._types.most_common(MAX_TYPES)))
        if page.seconds is not None:
            self._times[bisect_left(TIMES, page.seconds)] += 1
        return True

    def _add_facts(self, page: Page, places: tuple[int, ...]) -> None:
        codes = {fact.code for fact in page.facts}
        severities = {CODES[code].severity for code in codes}
        if "unjudged" in severities:
            codes.add(UNJUDGED)
        elif severities & {"error", "warning"}:
            codes.add(BAD)
        for place in places:
            self._by_stratum[place].update(codes)
            self.counts.update(codes - {BAD, UNJUDGED})
        for finding in findings_of(page, self.sample):
            listed = self.samples.setdefault(finding.code, [])
            if len(listed) < MAX_SAMPLES:
                listed.append(finding)

    @property
    def done(self) -> int:
        """Pages counted, each as often as it is listed."""
        return sum(self._done)

    @property
    def judged(self) -> int:
        """Those that were judged."""
        return self.done - sum(counts[UNJUDGED] for counts in self._by_stratum)

    def _count(self, place: int, code: str) -> Count:
        counts, done = self._by_stratum[place], self._done[place]
        base = done if code == UNJUDGED else done - counts[UNJUDGED]
        return Count(self.sample.sizes[place], base, counts[code])

    def strata(self) -> tuple[Stratum, ...]:
        """The strata with their estimates, in the order of their names."""
        sampled: Counter[int] = Counter()
        for places in self.sample.places.values():
            sampled.update(places)
        found = []
        for place, name in enumerate(self.sample.strata):
            judged = self._count(place, BAD).sampled

            def estimate(code: str, place: int = place) -> Estimate | None:
                count = self._count(place, code)
                return _estimate(code, count.hits, of_stratum(count)) if count.sampled else None

            estimates = _listed(estimate, self._by_stratum[place])
            size = self.sample.sizes[place]
            found.append(Stratum(name, size, sampled[place], judged, estimates))
        return tuple(found)

    def estimates(self) -> tuple[Estimate, ...]:
        """The estimates for the whole set."""

        def estimate(code: str) -> Estimate | None:
            counts = [self._count(place, code) for place in range(len(self._done))]
            if not any(count.sampled for count in counts):
                return None
            return _estimate(code, sum(count.hits for count in counts), of_set(counts))

        total: Counter[str] = Counter()
        for counts in self._by_stratum:
            total.update(counts)
        return _listed(estimate, total)

    def covered(self) -> int:
        """URLs in strata with a judged page."""
        return sum(
            size for place, size in enumerate(self.sample.sizes) if self._count(place, BAD).sampled
        )

    def not_good(self) -> float:
        """The estimated share of pages that are bad or could not be judged; 1 without a page."""
        counts = [
            Count(self.sample.sizes[place], done, counts[BAD] + counts[UNJUDGED])
            for place, (done, counts) in enumerate(zip(self._done, self._by_stratum, strict=True))
        ]
        return of_set(counts).share if self.done else 1.0

    def statuses(self) -> dict[str, int]:
        """Pages by HTTP status."""
        return dict(sorted(self._statuses.items()))

    def content_types(self) -> dict[str, int]:
        """Pages by content type, the most frequent ones."""
        return dict(self._types.most_common(MAX_TYPES))

    def page_seconds(self) -> dict[str, float]:
        """Quantiles of the time of a page, to 5 %."""
        total = sum(self._times)
        if not total:
            return {}

        def quantile(share: float) -> float:
            seen = 0
            for number, count in enumerate(self._times):
                seen += count
                if seen >= share * total:
                    return round(TIMES[min(number, len(TIMES) - 1)], 4)
            raise AssertionError("the shares add up to 1")

        return {"median": quantile(0.5), "p95": quantile(0.95)}


def findings_of(page: Page, sample: Sample) -> Iterable[Finding]:
    """The findings of a page of the sample."""
    for fact in page.facts:
        stratum = sample.strata[sample.places[page.loc][0]]
        yield Finding(
            fact.code, page.loc, stratum, page.status, fact.target, fact.detail, page.seconds
        )


def _estimate(code: str, hits: int, interval: Interval) -> Estimate:
    return Estimate(code, hits, interval.share, interval.low, interval.high)


def _listed(
    estimate: Callable[[str], Estimate | None], counts: Counter[str]
) -> tuple[Estimate, ...]:
    """The estimates of all codes that occur, the largest share first behind the totals."""
    totals = [BAD, *([UNJUDGED] if counts[UNJUDGED] else [])]
    codes = [code for code in CODES if counts[code] and CODES[code].severity != "unjudged"]
    found = [one for code in codes if (one := estimate(code)) is not None]
    found.sort(key=lambda one: -one.share)
    return (*(one for code in totals if (one := estimate(code)) is not None), *found)
