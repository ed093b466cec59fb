"""``urlset read``."""

from __future__ import annotations

import sys
from typing import Any

import click

from .numbers import Whole
from .signals import stoppable


@click.command(
    epilog="""\b
  urlset read sitemaps/ -o urls.parquet
  urlset read https://www.shop.example/sitemap.xml -o urls.csv
  urlset read old-sitemap.xml.gz --lenient -o - --format jsonl | jq .loc

From Python: urlset.read(...) gives rows to pyarrow, Polars, DuckDB and pandas.""",
)
@click.argument("target")
@click.option("--output", "-o", required=True, metavar="PATH",
              help="By its suffix .parquet, .csv, .jsonl or .arrow; - for stdout.")  # fmt: skip
@click.option("--format", type=click.Choice(["parquet", "csv", "jsonl", "arrow"]),
              help="Default: by the suffix; csv for stdout.")  # fmt: skip
@click.option("--lenient", is_flag=True, help="Leave out what cannot be read.")
@click.option("--threads", type=Whole(1), help="Default: as many as there are cores.")
@click.option("--allow-private", is_flag=True, help="Fetch from private addresses, too.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing about what was done.")
def read(target: str, output: str, format: str | None, quiet: bool, **options: Any) -> int:
    """Turn sitemaps back into rows: a file, a folder, an index with all it lists, or a URL."""
    from ..inspect.read import read as rows_of
    from ..rows import format_of, write
    from ..wording import count

    kind = format_of(output, format)
    if kind in ("parquet", "arrow") and output == "-" and sys.stdout.isatty():
        raise click.UsageError(f"{kind} is not for a terminal; redirect it or use --output PATH")
    with stoppable(), rows_of(target, **options) as rows:
        written = write(rows, output, kind)
    if not quiet:
        click.echo(f"{count(written, 'row')} written to {output}", err=True)
    return 0
