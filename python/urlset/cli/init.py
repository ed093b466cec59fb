"""``urlset init``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from ..build.init import InitOptions
from ..build.init import init as write_toml
from ..wording import one_line
from .params import given, params_of, place
from .signals import stoppable

EXAMPLES = """\b
Examples:
  urlset init products.csv
  urlset init products.parquet --site https://www.shop.example
  urlset init feed.csv --loc-template 'https://www.shop.example/p/{slug}-{id}'
then check urlset.toml, and run: urlset build
"""
#: the file that ``urlset build`` reads without ``--config``
DEFAULT = Path("urlset.toml")


def _run(input: str, target: Path, force: bool, **options: Any) -> None:
    """Inspect the columns of INPUT and write a commented urlset.toml."""
    with stoppable():
        text = write_toml(input, target, InitOptions(**given(options)), force=force)
    click.echo("\n".join(one_line(line) for line in text.splitlines()))
    build = f"urlset build --config {shlex.quote(str(target))}"
    if target == DEFAULT:
        build = "urlset build"
    click.echo(f"\nwritten to {target}; next: {build}", err=True)


init = click.Command(
    "init",
    callback=_run,
    params=[
        place("input"),
        *params_of(InitOptions),
        click.Option(
            ["-o", "--output", "target"], type=click.Path(path_type=Path), default=DEFAULT,
            help=f"The file to write [{DEFAULT}].",
        ),
        click.Option(["--force"], is_flag=True, help="Replace the file if it exists."),
    ],
    help=_run.__doc__,
    epilog=EXAMPLES,
)  # fmt: skip
