"""``urlset announce``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ..announce.options import AnnounceOptions
from ..errors import Error
from ..wording import one_line
from .output import as_json, check_target, quiet_option, write_report
from .params import given, params_of, place
from .signals import Stopped, stopping

if TYPE_CHECKING:
    from ..announce.report import AnnounceReport

EXAMPLES = """\b
Examples:
  the lines of robots.txt, and whether the live one has them
    urlset announce sitemaps --to robots --robots /srv/www/robots.txt
    urlset announce sitemaps --to robots --check
\b
  what the last build changed, to Bing, Yandex, Naver, Seznam, Yep at once
    urlset announce sitemaps --init-key              (once; then upload the key's file)
    urlset announce sitemaps --to indexnow --changes changes.csv
\b
  the sitemap itself, to the consoles
    export URLSET_GOOGLE_KEY_FILE=account.json URLSET_BING_KEY=...
    urlset announce sitemaps --to google --to bing
    urlset announce sitemaps --to google --property sc-domain:shop.example --status
\b
  exactly what would be sent
    urlset announce sitemaps --to indexnow --changes changes.csv --dry-run
\b
Keys are read from URLSET_INDEXNOW_KEY, URLSET_BING_KEY, URLSET_YANDEX_TOKEN, from the file that
URLSET_GOOGLE_KEY_FILE or GOOGLE_APPLICATION_CREDENTIALS names, or from --key-file; never from the
command line, which other users can see.
\b
Exit status: 0 all accepted, 1 one refused, 2 wrong options or keys, 3 files that cannot be read
or written, 130 and 143 interrupted: the same command continues where it stopped.
"""

UNWRITABLE = "report.unwritable"


def _run(target: str, json_path: str | None, quiet: bool, **options: Any) -> int:
    """Announce the sitemaps of TARGET to search engines: a folder, an index, or its address."""
    from ..announce import AnnounceReport
    from ..announce import announce as run

    check_target("json", json_path, code=UNWRITABLE, undone="nothing was sent")
    stdout = json_path != "-"
    report = AnnounceReport()
    error: dict[str, str] | None = None
    status = 3

    def show(text: str) -> None:
        click.echo("\n".join(map(one_line, text.split("\n"))), err=not stdout)

    def notify(line: str) -> None:
        if sys.stderr.isatty() and not quiet:
            click.echo(one_line(line), err=True)

    try:
        # a second signal does not interrupt the update of the journal
        with stopping():
            run(target, notify=notify, show=show, report=report, **given(options))
        status = report.exit_status
    except Error as found:
        error = {"code": found.code, "message": str(found)}
        raise
    except KeyboardInterrupt as found:
        status = found.status if isinstance(found, Stopped) else 130
        error = {
            "code": "announce.interrupted",
            "message": "interrupted; the same command continues where it stopped",
        }
        if not any(o.code and o.code.endswith(".interrupted") for o in report.outcomes):
            click.echo(f"urlset: error: {error['message']} [{error['code']}]", err=True)
    finally:
        if json_path is not None:
            write_report(json_path, _json(report, error), code=UNWRITABLE)
        _print(report, tables=stdout and not quiet)
    return status


def _print(report: AnnounceReport, *, tables: bool) -> None:
    """Prints the tables, and one line for each problem; every line is safe for a terminal."""
    if tables and report.statuses:
        _print_lines(report.status_table())
    elif tables and report.outcomes:
        _print_lines(report.table())
    for line in report.problems():
        click.echo(f"urlset: error: {one_line(line)}", err=True)
    for warning in report.warnings:
        click.echo(f"urlset: warning: {one_line(warning)}", err=True)


def _print_lines(table: str) -> None:
    for line in table.split("\n"):
        click.echo(one_line(line))


def _json(report: AnnounceReport, error: dict[str, str] | None) -> str:
    from .. import __version__

    value = {"version": __version__, "error": error, **report.to_dict()}
    value["ok"] = value["ok"] and error is None
    return as_json(value, indent=2)


announce = click.Command(
    "announce",
    callback=_run,
    params=[
        place("target"),
        *params_of(AnnounceOptions),
        click.Option(["--json", "json_path"], metavar="PATH|-", help="Write the report as JSON."),
        quiet_option("Print errors only."),
    ],
    help=_run.__doc__,
    epilog=EXAMPLES,
)
