"""The page of ``verify``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .. import _core
from ..wording import count
from .charts import Bar, Series, age_bars, bars
from .document import duration, render, size, visible
from .files import FileSize, file_charts

if TYPE_CHECKING:
    from ..inspect.verify import Problem, VerifyReport

#: findings of each code that are shown
MAX_SAMPLES = 5
#: codes in the chart; all are listed below it
MAX_BARS = 12
#: files in the table of the fullest ones
MAX_LARGEST = 10

SEVERITIES = ("error", "warning", "note")


class Group(NamedTuple):
    """The findings of one code."""

    code: str
    severity: str
    help: str
    total: int
    samples: Sequence[Problem]


def verify_page(report: VerifyReport, target: str, *, strict: bool) -> str:
    """The page of a report.

    Args:
        strict: warnings count as errors.
    """
    groups = _groups(report)
    sitemaps = [file for file in report.files if file.kind != "index"]
    sizes = [FileSize(file.name, file.urls, file.bytes) for file in sitemaps]
    return render(
        "verify.html",
        target=target,
        report=report,
        verdict=_verdict(report, strict),
        tiles=_tiles(report, len(sitemaps)),
        groups=groups,
        codes=_codes(groups),
        charts=file_charts(sizes, [Series("sitemaps", "a")]),
        fullest=_fullest(sizes),
        ages=age_bars(report.ages) if report.ages else [],
    )


def _verdict(report: VerifyReport, strict: bool) -> tuple[str, str, str]:
    errors, warnings = report.total("error"), report.total("warning")
    if errors:
        text = "An error violates the protocol or its schema; crawlers may ignore what is wrong."
        return "error", f"Not valid: {count(errors, 'error')}", text
    if not report.ok:
        return "error", f"Not valid: --strict counts {count(warnings, 'warning')}", ""
    if warnings:
        return "warning", f"Valid, with {count(warnings, 'warning')}", ""
    return "ok", "Valid: no errors" + (" and no warnings" if strict else ""), ""


def _tiles(report: VerifyReport, sitemaps: int) -> list[tuple[str, str, str]]:
    indexes = len(report.files) - sitemaps
    return [
        ("URLs", f"{report.urls:,}", f"in {count(sitemaps, 'sitemap')}"),
        ("Errors", f"{report.total('error'):,}", ""),
        ("Warnings", f"{report.total('warning'):,}", f"and {count(report.total('note'), 'note')}"),
        ("Size", size(report.bytes), "before compression"),
        ("Indexes", f"{indexes:,}", ""),
        ("Time", duration(report.seconds), ""),
    ]


def _groups(report: VerifyReport) -> list[Group]:
    """The findings by code: errors first, then by number."""
    listed: dict[str, list[Problem]] = {}
    for problem in report.problems:
        listed.setdefault(problem.code, []).append(problem)
    severities = {code: (severity, help) for code, severity, help in _core.finding_codes()}
    groups = [
        Group(code, *severities[code], total, listed.get(code, [])[:MAX_SAMPLES])
        for code, total in report.counts.items()
    ]
    groups.sort(key=lambda group: (SEVERITIES.index(group.severity), -group.total, group.code))
    return groups


def _codes(groups: Sequence[Group]) -> list[Bar]:
    most = sorted(groups, key=lambda one: -one.total)[:MAX_BARS]
    found = bars([(one.code, one.total, (f"{one.total:,}", one.severity)) for one in most])
    return [bar._replace(colour=group.severity) for bar, group in zip(found, most, strict=True)]


def _fullest(sizes: Sequence[FileSize]) -> list[tuple[str, str, str, str, str]]:
    """The files that are nearest to a limit: name, URLs and bytes, each with its share."""
    limits = (_core.MAX_URLS, _core.MAX_BYTES)

    def share(file: FileSize) -> float:
        return max(file.urls / limits[0], file.bytes / limits[1])

    return [
        (visible(file.name, 120), f"{file.urls:,}", f"{100 * file.urls / limits[0]:.0f} %",
         size(file.bytes), f"{100 * file.bytes / limits[1]:.0f} %")
        for file in sorted(sizes, key=share, reverse=True)[:MAX_LARGEST]
    ]  # fmt: skip
