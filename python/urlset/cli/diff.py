"""``urlset diff``."""

from __future__ import annotations

from typing import Any

import click

from ..inspect.options import DiffOptions
from ..wording import count
from .output import must_be_redirected, quiet_option, rows_options
from .params import given, params_of, place
from .signals import stoppable

EXAMPLES = """\b
  urlset diff yesterday/ today/
  urlset diff yesterday/ today/ -o changes.csv
  urlset diff https://www.shop.example/sitemap.xml sitemaps/ -o changes.parquet

Rows: change (added, changed, removed), loc, lastmod, old_lastmod.

Exit status: 0, with or without differences."""


def _run(
    old: str, new: str, output: str | None, format: str | None, quiet: bool, **options: Any
) -> int:
    """Show which URLs were added, changed and removed from OLD to NEW."""
    from ..inspect.diff import diff as changes_of
    from ..rows import format_of, write

    kind = format_of(output, format) if output else None
    must_be_redirected(kind, output)
    with stoppable(), changes_of(old, new, **given(options)) as changes:
        if output:
            write(changes, output, kind)
        elif options["report"] is None:
            for _ in changes:  # the page has read all
                pass
        counts = changes.counts
    if not quiet:
        where = f", written to {output}" if output else ""
        equal = f" ({count(counts.equal_files, 'file')} equal)" if counts.equal_files else ""
        click.echo(
            f"{counts.added:,} added, {counts.changed:,} changed, {counts.removed:,} removed"
            f"{where}{equal}",
            err=output == "-",
        )
    return 0


diff = click.Command(
    "diff",
    callback=_run,
    params=[
        place("old"),
        place("new"),
        *rows_options("only the counts"),
        *params_of(DiffOptions),
        quiet_option("Print nothing about what was done.", "-q"),
    ],
    help=_run.__doc__,
    epilog=EXAMPLES,
)
