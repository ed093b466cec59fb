"""``urlset announce``: tell the search engines."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import Error
from . import one_line
from .numbers import Number, Whole
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
  what would be sent, to the letter
    urlset announce sitemaps --to indexnow --changes changes.csv --dry-run
\b
Keys are read from URLSET_INDEXNOW_KEY, URLSET_BING_KEY, URLSET_YANDEX_TOKEN, from the file that
URLSET_GOOGLE_KEY_FILE or GOOGLE_APPLICATION_CREDENTIALS names, or from --key-file; never from the
command line, which others can see.
\b
Exit status: 0 accepted by all, 1 refused by one, 2 wrong options or keys, 3 files that cannot be
read or written, 130 and 143 interrupted: the same command continues where it stopped.
"""


def _per_engine(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """``ENGINE=VALUE`` and ``VALUE``, the latter under an empty name."""
    from ..announce.options import ENGINES

    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        name, rest = (name, rest) if equals and name in ENGINES else ("", value)
        if name in found:
            raise click.BadParameter(f"given twice for {name or 'the same engine'}")
        found[name] = rest
    return found


@click.command(epilog=EXAMPLES)
@click.argument("target")
@click.option(
    "--to",
    multiple=True,
    metavar="ENGINE",
    help="Whom to tell: robots, indexnow, google, bing (feeds Yahoo) or yandex. Repeatable.",
)
@click.option(
    "--robots",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="The robots.txt whose block of Sitemap lines is brought up to date.",
)
@click.option("--check", is_flag=True, help="robots: does the live robots.txt list all indexes?")
@click.option(
    "--changes",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="indexnow, bing: the change feed of a build (.csv, .jsonl, .parquet).",
)
@click.option(
    "--urls",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="indexnow, bing: a list of URLs, one a line, or by its extension as above.",
)
@click.option(
    "--all",
    "all_",
    is_flag=True,
    help="indexnow: send a full set too: more than half of the live URLs. After a move only.",
)
@click.option(
    "--hosts",
    default="same",
    show_default=True,
    metavar="same|any|LIST",
    help="indexnow: for which hosts the key may be used. A host in the feed would learn it.",
)
@click.option(
    "--init-key",
    is_flag=True,
    help="indexnow: make a key and the file that proves it to the site, and send nothing.",
)
@click.option(
    "--key-file",
    multiple=True,
    callback=_per_engine,
    metavar="[ENGINE=]PATH",
    help="Read a key from a file; without ENGINE it is IndexNow's. Repeatable.",
)
@click.option(
    "--key-location",
    metavar="URL",
    help="indexnow: where the key's file is, if not at https://HOST/KEY.txt.",
)
@click.option(
    "--property",
    "property_",
    multiple=True,
    callback=_per_engine,
    metavar="[ENGINE=]NAME",
    help="google: sc-domain:HOST or a URL prefix; bing: the site as Bing lists it;"
    " yandex: https:HOST:443. By default the site's root.",
)
@click.option(
    "--status",
    is_flag=True,
    help="google: errors, warnings and last download of each sitemap; submits nothing.",
)
@click.option("--yandex-user", metavar="NUMBER", help="yandex: asked for when not given.")
@click.option(
    "--sitemap-url",
    metavar="URL",
    help="Address of the folder, where there is no manifest to tell it.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="In place of TARGET/.urlset: manifest, journal, key.",
)
@click.option(
    "--endpoint",
    multiple=True,
    callback=_per_engine,
    metavar="[ENGINE=]URL",
    help="Another address of an engine: https, or http to this machine.",
)
@click.option(
    "--timeout",
    type=Number(),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="For one request and its answer.",
)
@click.option(
    "--retries",
    type=Whole(),
    default=4,
    show_default=True,
    metavar="N",
    help="How often a request that failed is sent again.",
)
@click.option(
    "--max-wait",
    type=Number(),
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait, in all, where an engine asks for patience.",
)
@click.option("--dry-run", is_flag=True, help="Print the exact requests, keys masked; send none.")
@click.option("--json", "json_", metavar="PATH|-", help="Write the report as JSON.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
def announce(
    target: str,
    json_: str | None,
    quiet: bool,
    all_: bool,
    property_: Mapping[str, str],
    key_file: Mapping[str, str],
    endpoint: Mapping[str, str],
    **options: Any,
) -> int:
    """Tell the search engines of the sitemaps of TARGET: a folder, an index, or its address."""
    from ..announce import AnnounceReport
    from ..announce import announce as run
    from ..outfile import check_writable, must_be_local

    stdout = json_ != "-"
    if json_ is not None and stdout:
        must_be_local("json", json_)
        try:  # before anything is sent
            check_writable(Path(json_), replaced=False)
        except OSError as wrong:
            raise click.FileError(json_, hint=f"{wrong.strerror}; nothing was sent") from None
    report = AnnounceReport()
    error: dict[str, str] | None = None
    status = 3

    def show(text: str) -> None:
        click.echo("\n".join(map(one_line, text.split("\n"))), err=not stdout)

    def notify(line: str) -> None:
        if sys.stderr.isatty() and not quiet:
            click.echo(one_line(line), err=True)

    try:
        # a second signal does not cut short what makes the journal true
        with stopping():
            run(
                target,
                all=all_,
                property=property_,
                key_file=key_file,
                endpoint=endpoint,
                notify=notify,
                show=show,
                report=report,
                **options,
            )
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
        if json_ is not None:
            _write_json(json_, report, error)
        _print(report, tables=stdout and not quiet)
    return status


def _print(report: AnnounceReport, *, tables: bool) -> None:
    """The tables, and each problem in a line of its own; every line safe for a terminal."""
    if tables and report.statuses:
        _lines(report.status_table())
    elif tables and report.outcomes:
        _lines(report.table())
    for line in report.problems():
        click.echo(f"urlset: error: {one_line(line)}", err=True)
    for warning in report.warnings:
        click.echo(f"urlset: warning: {one_line(warning)}", err=True)


def _lines(table: str) -> None:
    for line in table.split("\n"):
        click.echo(one_line(line))


def _write_json(path: str, report: AnnounceReport, error: dict[str, str] | None) -> None:
    from .. import __version__

    value = {"version": __version__, "error": error, **report.to_dict()}
    value["ok"] = value["ok"] and error is None
    text = json.dumps(value, indent=2) + "\n"
    if path == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as found:
        raise click.FileError(path, hint=found.strerror) from None
