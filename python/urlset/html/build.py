"""The page of a build."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from .. import _core
from ..report import Report, Shard
from ..wording import count
from .charts import Bar, Columns, Series, age_bars, bars, columns
from .document import duration, percent, render, signed, size, visible
from .files import FileSize, file_charts

if TYPE_CHECKING:
    from ..build.details import Details, SetTotals
    from ..destination.manifest import BuildRecord, UrlChanges

#: the sets that the page lists; the others are one row
MAX_SETS = 30

WRITTEN, KEPT = Series("written by this build", "a"), Series("unchanged", "b")


def build_page(report: Report, details: Details) -> str:
    """The page of a build, whatever its end."""
    reasons = sorted(report.rejects["by_code"].items(), key=lambda item: (-item[1], item[0]))
    return render(
        "build.html",
        report=report,
        details=details,
        verdict=_verdict(report, details),
        tiles=_tiles(report, details),
        outcomes=_outcomes(report),
        sets=_sets(details.sets),
        shards=_shards(report.shards),
        fullest=max(report.shards, key=lambda one: one.urls, default=None),
        largest=max(report.shards, key=lambda one: one.bytes, default=None),
        reasons=bars(
            [(code, n, (f"{n:,}", percent(n, report.rows))) for code, n in reasons], "warning"
        ),
        ages=age_bars(details.ages),
        history=_history(details.history),
        limits={"urls": _core.MAX_URLS, "bytes": _core.MAX_BYTES},
    )


def _verdict(report: Report, details: Details) -> tuple[str, str, str]:
    """The kind of the headline, the headline and its text."""
    error = report.error
    if report.published and error is not None:
        return "warning", "Published, with a problem afterwards", error["message"]
    if error is not None:
        return "error", "Refused: nothing was published", error["message"]
    if details.dry_run:
        return "warning", "Dry run: nothing was published", ""
    index = f"The index is {report.url}" if report.url else ""
    if details.unchanged:
        return "ok", "Nothing changed: the live set has the same content", index
    return "ok", f"Published: {count(report.urls, 'URL')} are live", index


def _tiles(report: Report, details: Details) -> list[tuple[str, str, str]]:
    """The title, the value and a comparison of each."""
    shards = report.shards
    written = sum(shard.changed for shard in shards)
    compressed = sum(shard.compressed_bytes for shard in shards)
    plain = sum(shard.bytes for shard in shards)
    last, this = _records(report, details)
    urls = "no build before" if last is None else "as in the last build"
    if last is not None and report.urls != last.urls:
        urls = f"{signed(report.urls - last.urls)} since the last build"
    if last is not None and this is not None and this.changes is not None:
        changes = this.changes
        urls = f"{changes.added:,} added, {changes.changed:,} changed, {changes.removed:,} removed"
    rate = f"{report.rows / report.seconds:,.0f} rows a second" if report.seconds else ""
    share = percent(report.rejected, report.rows)
    files = [
        ("Sitemaps", f"{len(shards):,}", f"{written:,} of them written"),
        ("Size", size(compressed), f"{size(plain)} before compression"),
    ]
    return [
        ("URLs", f"{report.urls:,}", urls),
        ("Rejected rows", f"{report.rejected:,}", f"{share} of all"),
        *(files if shards else []),
        ("Time", duration(report.seconds), rate),
    ]


def _records(report: Report, details: Details) -> tuple[BuildRecord | None, BuildRecord | None]:
    """The build before this one, and this one if it changed the set."""
    before, this = list(details.history), None
    if report.published and not details.unchanged:
        this = before.pop()
    return (before[-1] if before else None), this


def _outcomes(report: Report) -> list[tuple[str, str, int, str]]:
    """The outcomes of the rows: name, colour, number and text."""
    total = report.rows + report.expanded
    named = (
        ("URLs", "a", report.urls),
        ("rejected", "error", report.rejected),
        ("duplicates dropped", "warning", report.duplicates),
        ("filtered", "b", report.filtered),
    )
    return [
        (name, colour, n, f"{n:,} ({percent(n, total)})")
        for name, colour, n in named
        if n and total
    ]


def _sets(sets: Sequence[SetTotals]) -> list[Bar]:
    """The sets, the largest first; empty if there is only one."""
    if len(sets) < 2:
        return []
    ordered = sorted(sets, key=lambda one: -one.urls)
    rows = [(visible(one.name, 120), one) for one in ordered[:MAX_SETS]]
    rest = ordered[MAX_SETS:]
    if rest:
        others = type(rest[0])(count(len(rest), "other set"))
        for one in rest:
            for key in ("urls", "bytes", "compressed_bytes", "shards", "written"):
                setattr(others, key, getattr(others, key) + getattr(one, key))
        rows.append((others.name, others))
    return bars([
        (name, one.urls, (f"{one.urls:,}", size(one.compressed_bytes), f"{one.shards:,}",
                          f"{one.written:,}"))
        for name, one in rows
    ])  # fmt: skip


def _shards(shards: Sequence[Shard]) -> list[Columns]:
    """URLs and bytes of the sitemaps, in the order of the index."""
    kinds = [(one, kind) for one, kind in ((WRITTEN, True), (KEPT, False))
             if any(shard.changed is kind for shard in shards)]  # fmt: skip
    numbers = {kind: number for number, (_, kind) in enumerate(kinds)}
    sizes = [
        FileSize(shard.path, shard.urls, shard.bytes, numbers[shard.changed]) for shard in shards
    ]
    return file_charts(sizes, [one for one, _ in kinds])


def _history(history: Sequence[BuildRecord]) -> list[Columns]:
    """The URLs of the last builds, and the sitemaps that each has written."""
    if len(history) < 2:
        return []
    times = [build.at.replace("T", " ").removesuffix("Z") for build in history]
    labels = {0: times[0][:10], len(times) - 1: times[-1][:10]}
    changes = [0, *(b.urls - a.urls for a, b in pairwise(history))]
    urls = [
        [time, f"{build.urls:,}", signed(change), f"{build.rejected:,}", f"{build.seconds:,.1f} s"]
        for time, build, change in zip(times, history, changes, strict=True)
    ]
    written = [
        [time, f"{build.written:,}", f"{build.shards:,}", size(build.compressed_bytes)]
        for time, build in zip(times, history, strict=True)
    ]
    # the bar of a first build, which adds all URLs, would hide the others
    known = [
        (time, build.changes)
        for time, build in zip(times, history, strict=True)
        if build.changes is not None and build.changes.added < build.urls
    ]
    span = f"The last {len(history)} builds that changed the set, from {times[0]} to {times[-1]}."
    return [
        columns(
            "history-urls", "URLs by build",
            f"{span} First {history[0].urls:,} URLs, last {history[-1].urls:,}.",
            [Series("URLs", "a")], [[build.urls] for build in history],
            heads=["Published (UTC)", "URLs", "Change", "Rejected rows", "Time"],
            rows=urls[::-1], labels=labels,
        ),
        columns(
            "history-written", "Sitemaps written by build",
            f"{span} The last one wrote {history[-1].written:,} of {history[-1].shards:,}.",
            [Series("sitemaps written", "a")], [[build.written] for build in history],
            heads=["Published (UTC)", "Written", "Sitemaps", "Size"],
            rows=written[::-1], labels=labels,
        ),
        *(_changes(known) if known else []),
    ]  # fmt: skip


def _changes(known: Sequence[tuple[str, UrlChanges]]) -> list[Columns]:
    """The URLs that builds with a change feed added, changed and removed."""
    series = [Series("added", "ok"), Series("changed", "a"), Series("removed", "error")]
    last = known[-1][1]
    labels = {0: known[0][0][:10], len(known) - 1: known[-1][0][:10]}
    return [
        columns(
            "history-changes", "URLs changed by build",
            f"{count(len(known), 'build')} with a change feed. The last one added {last.added:,},"
            f" changed {last.changed:,} and removed {last.removed:,} URLs.",
            series, [numbers for _, numbers in known],
            heads=["Published (UTC)", *(one.name for one in series)],
            rows=[[time, *(f"{n:,}" for n in numbers)] for time, numbers in reversed(known)],
            labels=labels,
        )
    ]  # fmt: skip
