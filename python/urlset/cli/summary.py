"""The summary of a build for people."""

from __future__ import annotations

import click

from ..report import Report
from ..wording import count, one_line

#: indexes that are listed
MAX_INDEXES = 20


def _of_content(report: Report) -> str:
    """What ``--lastmod-from`` found."""
    found = report.lastmod or {}
    if found["first"]:
        parts = [f"first build, nothing to compare; {count(report.urls, 'URL')}"]
        if found["without"] < report.urls:
            parts.append(f"{report.urls - found['without']:,} with the lastmod of their row")
    else:
        parts = [f"{found['changed']:,} changed", f"{found['kept']:,} unchanged"]
        parts.append(f"{found['added']:,} new")
        if found["adopted"]:
            parts.append(f"{found['adopted']:,} not compared")
    for key, what in (
        ("without", "without lastmod"),
        ("gone", "gone and remembered"),
        ("forgotten", "forgotten"),
    ):
        if found[key]:
            parts.append(f"{found[key]:,} {what}")
    return ", ".join(parts)


def show(report: Report, *, dry_run: bool) -> None:
    """Prints the result of a build."""
    rate = report.rows / report.seconds if report.seconds else 0
    for chosen, column in report.mapping.items():
        click.echo(f"{chosen:>10}  from {one_line(column)}")
    outcomes = [count(report.urls, "URL")]
    for number, what in (
        (report.rejected, "rejected"),
        (report.filtered, "filtered"),
        (report.duplicates, "duplicates dropped"),
    ):
        if number:
            outcomes.append(f"{number:,} {what}")
    if report.expanded:
        outcomes.append(f"{report.expanded:,} expanded")
    rows = count(report.rows, "row")
    click.echo(f"{rows}: {', '.join(outcomes)}; {report.seconds:.1f} s, {rate:,.0f} rows/s")
    for code, number in sorted(report.rejects["by_code"].items(), key=lambda item: -item[1]):
        click.echo(f"  rejected {number:,}: {code}")
    if report.rejects["path"]:
        click.echo(f"  see {one_line(report.rejects['path'])}")
    for warning in report.warnings:
        click.echo(f"  {warning.count:,} {warning.message} [{warning.code}]")
    if report.lastmod is not None:
        click.echo(f"lastmod from content: {_of_content(report)}")
    size = sum(shard.compressed_bytes for shard in report.shards)
    written = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
    kept = sum(not shard.changed for shard in report.shards)
    unchanged = f", {kept:,} of them unchanged" if kept else ""
    indexes = len(report.indexes)
    several = f" in {indexes} indexes" if indexes > 1 else ""
    click.echo(f"{count(len(report.shards), 'sitemap')}{unchanged}, {written}{several}")
    for index in report.indexes[1:MAX_INDEXES]:
        click.echo(f"  {one_line(index.url)}")
    if indexes > MAX_INDEXES:
        click.echo(f"  and {indexes - MAX_INDEXES:,} more (--json lists all)")
    done = "dry run: nothing was published; the index would be" if dry_run else "live:"
    click.echo(f"{done} {one_line(report.url or '')}")
