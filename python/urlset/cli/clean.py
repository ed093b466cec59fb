"""``urlset clean``."""

from __future__ import annotations

from typing import Any

import click

from ..clean import CleanOptions
from ..clean import clean as remove
from ..wording import count, one_line
from .output import quiet_option
from .params import given, params_of, place
from .signals import stoppable

EXAMPLES = """\b
  urlset clean /srv/sitemaps --dry-run
  urlset clean s3://bucket/sitemaps --older-than 7d

Exit status: 0 done, 2 wrong usage, 3 the destination cannot be read or written."""


def _run(destination: str, quiet: bool, **options: Any) -> None:
    """Remove the files of killed builds that no manifest lists.

    DESTINATION is the --out of the builds. Only files are removed whose names urlset alone makes:
    shards with content names, manifests of an object store, the staging of jobs.
    """
    with stoppable():
        found = remove(destination, **given(options))
    if quiet:
        return
    for orphan in found:
        click.echo(one_line(orphan.path))
    size = sum(orphan.size for orphan in found) / 1e6
    done = "would be removed" if options["dry_run"] else "removed"
    click.echo(f"{count(len(found), 'file')} {done}, {size:,.1f} MB")


clean = click.Command(
    "clean",
    callback=_run,
    params=[
        place("destination"),
        *params_of(CleanOptions),
        quiet_option("Print errors only."),
    ],
    short_help="remove what killed builds left",
    help=_run.__doc__,
    epilog=EXAMPLES,
)
