"""The page of ``audit``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..audit.report import BAD, CODES, UNJUDGED, Code
from ..wording import count
from .charts import Bar, bars
from .document import duration, percent, render, visible

if TYPE_CHECKING:
    from ..audit.report import AuditReport, Estimate, Finding, Stratum

#: the strata, the samples of a code, and the statuses and types that the page shows
MAX_STRATA, MAX_SAMPLES, MAX_KINDS = 25, 8, 10
COLOURS = {"error": "error", "warning": "warning", "note": "note", "unjudged": "b"}
#: the ends of the axis of intervals, in percent
AXES = (1, 2, 5, 10, 20, 50, 100)


class Interval(NamedTuple):
    """A row of a table with an interval.

    Attributes:
        start, width, middle: of the interval and of the estimate, in percent of the axis.
        text: the estimate and its interval.
    """

    label: str
    start: float
    width: float
    middle: float
    text: str
    cells: Sequence[str]
    colour: str


class Axis:
    """From 0 to the first round share that no interval exceeds."""

    def __init__(self, estimates: Sequence[Estimate]) -> None:
        highest = max((100 * one.high for one in estimates), default=0)
        self.end = next(end for end in AXES if highest <= end or end == AXES[-1])

    def interval(
        self, label: str, one: Estimate, cells: Sequence[str], colour: str = "a"
    ) -> Interval:
        """The row of an estimate."""
        low, high, share = (
            round(10_000 * value / self.end, 2) for value in (one.low, one.high, one.share)
        )
        text = percent(one.share, 1)
        if one.low < one.high:
            text = f"{text} ({percent(one.low, 1)} to {percent(one.high, 1)})"
        return Interval(label, low, round(high - low, 2), share, text, cells, colour)


class Group(NamedTuple):
    """The pages of the sample with a code."""

    name: str
    code: Code
    total: int
    samples: Sequence[Finding]


def audit_page(report: AuditReport) -> str:
    """The page of a report."""
    estimates = [one for one in report.estimates if one.code in CODES]
    axis = Axis(report.estimates)
    strata = sorted(
        (one for one in report.strata if one.estimates),
        key=lambda one: (-one.estimates[0].share, one.name),
    )
    shown = strata[:MAX_STRATA] if len(report.strata) > 1 else []
    of_strata = Axis([one.estimates[0] for one in shown])
    asked = sum(report.statuses.values())
    return render(
        "audit.html",
        report=report,
        verdict=_verdict(report),
        tiles=_tiles(report),
        axis=axis.end,
        estimates=[
            *_totals(report, axis),
            *(
                axis.interval(
                    one.code, one, (_urls(one, report.covered), f"{one.count:,}"),
                    COLOURS[CODES[one.code].severity],
                )
                for one in estimates
            ),
        ],
        strata_axis=of_strata.end,
        strata=[_stratum(one, of_strata) for one in shown],
        hidden=len(report.strata) - len(shown),
        groups=_groups(report),
        answer=_answer,
        statuses=_kinds(report.statuses, asked),
        types=_kinds(report.content_types, asked),
    )  # fmt: skip


def _answer(one: Finding) -> str:
    """What the server said: the status once, although most details begin with it."""
    status, detail = str(one.status or ""), one.detail or ""
    if status and re.match(rf"(HTTP )?{status}\b", detail):
        return f"status {detail.removeprefix('HTTP ')}"
    return f"{f'status {status}' if status else 'no answer'}{detail and f', {detail}'}"


def _verdict(report: AuditReport) -> tuple[str, str, str]:
    total = report.estimate(BAD)
    if total is None:
        return "error", "No page could be judged", ""
    share = percent(total.share, 1)
    interval = f"between {percent(total.low, 1)} and {percent(total.high, 1)}, with 95 % confidence"
    text = interval if total.low < total.high else "every page was taken"
    if not report.complete:
        text += "; the audit was stopped early, so the intervals are wider"
    if not report.ok:
        text += f"; more than the limit of {percent(report.max_bad or 0, 1)}"
    kind = "ok" if not total.count else "warning"
    headline = f"{share} of {count(report.covered, 'URL')} are bad"
    return (kind if report.ok else "error"), headline, text[0].upper() + text[1:]


def _tiles(report: AuditReport) -> list[tuple[str, str, str]]:
    times = report.page_seconds
    found = [
        ("URLs", f"{report.urls:,}", f"in {count(len(report.strata), 'stratum', 'strata')}"),
        ("Pages judged", f"{report.judged:,}", f"of {report.sampled:,} in the sample"),
        ("Requests", f"{report.requests:,}", "with redirects and robots.txt"),
    ]
    if times:
        slow = f"{duration(times['p95'])} or more for the slowest 5 %"
        found.append(("Time of a page", duration(times["median"]), f"median; {slow}"))
    return [*found, ("Time", duration(report.seconds), f"seed {report.seed}")]


def _totals(report: AuditReport, axis: Axis) -> list[Interval]:
    names = {BAD: "bad in all", UNJUDGED: "could not be judged"}
    return [
        axis.interval(names[one.code], one, (_urls(one, report.covered), f"{one.count:,}"), "a")
        for one in report.estimates
        if one.code in names
    ]


def _urls(one: Estimate, covered: int) -> str:
    """The estimated number of URLs."""
    about = "about " if one.low < one.high else ""
    return f"{about}{round(one.share * covered):,}"


def _stratum(one: Stratum, axis: Axis) -> Interval:
    cells = (f"{one.urls:,}", f"{one.judged:,}")
    return axis.interval(visible(one.name, 120), one.estimates[0], cells)


def _groups(report: AuditReport) -> list[Group]:
    """The codes of the sample: errors first."""
    ranks = list(COLOURS)
    groups = [
        Group(name, CODES[name], total, [one for one in report.samples if one.code == name])
        for name, total in report.counts.items()
    ]
    groups.sort(key=lambda group: (ranks.index(group.code.severity), -group.total, group.name))
    return [group._replace(samples=group.samples[:MAX_SAMPLES]) for group in groups]


def _kinds(numbers: Mapping[str, int], total: int) -> list[Bar]:
    most = sorted(numbers.items(), key=lambda item: -item[1])[:MAX_KINDS]
    return bars([(visible(name, 80), n, (f"{n:,}", percent(n, total))) for name, n in most])
