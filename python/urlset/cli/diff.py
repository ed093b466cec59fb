"""``urlset diff``."""

from __future__ import annotations

import sys
from typing import Any

import click

from .numbers import Whole
from .signals import stoppable
from .sizes import SIZE


@click.command(
    epilog="""\b
  urlset diff yesterday/ today/
  urlset diff yesterday/ today/ -o changes.csv
  urlset diff https://www.shop.example/sitemap.xml sitemaps/ -o changes.parquet

Rows: change (added, changed, removed), loc, lastmod, old_lastmod.

Exit status 0, differences or not.""",
)
@click.argument("old")
@click.argument("new")
@click.option("--output", "-o", metavar="PATH",
              help="By its suffix .parquet, .csv, .jsonl or .arrow; - for stdout. "
                   "Default: only the counts.")  # fmt: skip
@click.option("--format", type=click.Choice(["parquet", "csv", "jsonl", "arrow"]),
              help="Default: by the suffix; csv for stdout.")  # fmt: skip
@click.option("--lenient", is_flag=True, help="Leave out what cannot be read.")
@click.option("--memory", type=SIZE, default="256MiB", show_default=True,
              help="Memory for entries; above that they go to disk.")  # fmt: skip
@click.option("--threads", type=Whole(1), help="Default: as many as there are cores.")
@click.option("--allow-private", is_flag=True, help="Fetch from private addresses, too.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing about what was done.")
def diff(
    old: str, new: str, output: str | None, format: str | None, quiet: bool, **options: Any
) -> int:
    """Tell which URLs were added, changed and removed from OLD to NEW."""
    from ..inspect.diff import diff as changes_of
    from ..rows import format_of, write
    from ..wording import count

    kind = format_of(output, format) if output else None
    if kind in ("parquet", "arrow") and output == "-" and sys.stdout.isatty():
        raise click.UsageError(f"{kind} is not for a terminal; redirect it or use --output PATH")
    with stoppable(), changes_of(old, new, **options) as changes:
        if output:
            write(changes, output, kind)
        else:
            for _ in changes:
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
