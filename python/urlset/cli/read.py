"""``urlset read``."""

from __future__ import annotations

from typing import Any

import click

from ..inspect.options import ReadOptions
from ..wording import count
from .output import must_be_redirected, quiet_option, rows_options
from .params import given, params_of, place
from .signals import stoppable

EXAMPLES = """\b
  urlset read sitemaps/ -o urls.parquet
  urlset read https://www.shop.example/sitemap.xml -o urls.csv
  urlset read old-sitemap.xml.gz --lenient -o - --format jsonl | jq .loc

From Python: urlset.read(...) returns rows for pyarrow, Polars, DuckDB and pandas."""


def _run(target: str, output: str, format: str | None, quiet: bool, **options: Any) -> int:
    """Turn sitemaps back into rows: a file, a folder, an index with its sitemaps, or a URL."""
    from ..inspect.read import read as rows_of
    from ..rows import format_of, write

    kind = format_of(output, format)
    must_be_redirected(kind, output)
    with stoppable(), rows_of(target, **given(options)) as rows:
        written = write(rows, output, kind)
    if not quiet:
        click.echo(f"{count(written, 'row')} written to {output}", err=True)
    return 0


read = click.Command(
    "read",
    callback=_run,
    params=[
        place("target"),
        *rows_options(),
        *params_of(ReadOptions),
        quiet_option("Print nothing about what was done.", "-q"),
    ],
    help=_run.__doc__,
    epilog=EXAMPLES,
)
