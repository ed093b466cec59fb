"""``urlset init``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ..build.init import init as write_toml
from ..options import Options, make_options
from ..outfile import must_be_local
from . import one_line
from .signals import stoppable


@click.command(
    "init",
    epilog="""\b
Examples:
  urlset init products.csv
  urlset init products.parquet --site https://www.shop.example
  urlset init feed.csv --loc-template 'https://www.shop.example/p/{slug}-{id}'
then look at urlset.toml, and: urlset build
""",
)
@click.argument("input")
@click.option("--site", metavar="URL", help="The site [that of the first URL].")
@click.option("--loc", metavar="COL", help="Column of the URL.")
@click.option("--loc-template", metavar="TEXT", help="Or a template of columns.")
@click.option("--out", metavar="DIR", default="sitemaps", help="The folder to publish to.")
@click.option("--format", type=click.Choice(["csv", "parquet", "arrow", "jsonl", "lines"]))
@click.option("--delimiter", metavar="CHAR", help="Delimiter of CSV, or 'tab'.")
@click.option("--encoding", metavar="NAME", help="Encoding of CSV.")
@click.option(
    "-o", "--output", "target", type=click.Path(path_type=Path), default=Path("urlset.toml"),
    help="The file to write [urlset.toml].",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(input: str, target: Path, out: str, force: bool, **given: str | None) -> None:
    """Look at the columns of INPUT and write a commented urlset.toml."""
    options = make_options(
        Options(), {key: value for key, value in given.items() if value is not None}, where="init"
    )
    must_be_local("output", target)
    with stoppable():
        text = write_toml(input, target, options, out=out, force=force)
    click.echo("\n".join(one_line(line) for line in text.splitlines()))
    # without --config the command reads urlset.toml of the folder that it runs in
    default = target == Path("urlset.toml")
    build = "urlset build" if default else f"urlset build --config {shlex.quote(str(target))}"
    click.echo(f"\nwritten to {target}; next: {build}", err=True)
