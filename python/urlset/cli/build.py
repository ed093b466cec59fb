"""``urlset build``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import PublishError
from ..options import Options
from ..report import Report
from ..transport.target import target_of
from .output import as_json, quiet_option, write_report
from .params import Sectioned, given, params_of, place
from .signals import BUILD_GRACE, stoppable
from .summary import show

if TYPE_CHECKING:
    from ..build.job import OnProgress

EXAMPLES = """\b
Examples:
  urlset build products.csv --site https://www.shop.example --out sitemaps
  urlset build 'exports/*.parquet' --site https://www.shop.example --out sitemaps \\
      --loc product_url --lastmod updated_at --where in_stock=true
  zcat feed.csv.gz | urlset build - --site https://www.shop.example --out sitemaps \\
      --loc-template 'https://www.shop.example/p/{slug}-{id}'
  urlset build --config urlset.toml --duplicates drop --json report.json

Without INPUT the inputs and all other options come from urlset.toml (urlset init writes one).
Row numbers start at 1, without the header.

\b
Exit status: 0 published; 1 a data check failed, nothing was published; 2 wrong options;
3 input damaged or output not writable; 130, 143 stopped by a signal.
"""


class _Build(Sectioned):
    """Writes a JSON report also of a wrong command line."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        before = list(args)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            report = Report(version=_version())
            report.error = {"code": "config.usage", "message": error.format_message()}
            with suppress(PublishError):
                _write_json(report, _json_path(before))
            raise


def _json_path(args: list[str]) -> str | None:
    """The value of ``--json`` in a command line that is wrong elsewhere."""
    path = None
    for arg, following in zip(args, [*args[1:], None], strict=True):
        if arg == "--json":
            path = following
        elif arg.startswith("--json="):
            path = arg.removeprefix("--json=")
    return path


def _run(
    inputs: tuple[str, ...], config: Path | None, json_path: str | None, quiet: bool, **options: Any
) -> None:
    """Turn a catalog into sitemaps and their index, and publish them to a folder.

    INPUT is CSV, Parquet, Arrow IPC, JSON Lines, or lines, a list of URLs, one per line: files,
    globs, folders, URIs, or - for standard input; compressed by gzip, zstd, bzip2 or xz. Columns
    are found by name where no option names them. The live set changes only if everything succeeds.
    """
    from ..build.job import Build  # --help does without it, and takes 20 ms less

    if config is None and not inputs and Path("urlset.toml").is_file():
        config = Path("urlset.toml")
    written = {"json": target_of(json_path)} if json_path and json_path != "-" else {}
    run = Build(Report(version=_version()), written)

    def finish() -> None:
        if run.report.error is None:
            run.report.error = {"code": "interrupted", "message": "stopped by a signal"}
        click.echo(f"urlset: {run.report.error['message']}", err=True)
        with suppress(PublishError):
            _write_json(run.report, json_path)

    try:
        # a signal ends the command within half a second, even while a stage waits
        with stoppable(finish, BUILD_GRACE), _progress(quiet) as on_progress:
            run.run(inputs, given(options), config, on_progress)
    except BaseException:
        # the first error is the one to report
        if (run.report.error or {}).get("code") not in ("config.json", "output.json"):
            with suppress(PublishError):
                _write_json(run.report, json_path)
        raise
    with _after(run.report):
        _write_json(run.report, json_path)
        if not quiet and json_path != "-":
            show(run.report, dry_run=bool(options["dry_run"]))


@contextmanager
def _after(report: Report) -> Iterator[None]:
    """Adds to an error after the publication that the new set is live."""
    live = "; the new set is live" if report.published else ""
    try:
        yield
    except PublishError as error:
        raise PublishError(f"{error}{live}", code=error.code) from None
    except BrokenPipeError:  # the reader of the summary is gone
        raise
    except OSError as error:
        with suppress(OSError, ValueError):  # Python must not write the buffer again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise PublishError(
            f"standard output: {error.strerror or error}{live}", code="output.stdout"
        ) from None


build = _Build(
    "build",
    table=Options,
    rest="Run",
    callback=_run,
    params=[
        place("inputs", nargs=-1, metavar="[INPUT]..."),
        *params_of(Options),
        click.Option(
            ["--config"], type=click.Path(path_type=Path), metavar="FILE",
            help="Options from a urlset.toml [./urlset.toml without INPUT].",
        ),
        click.Option(
            ["--json", "json_path"], metavar="PATH|-", help="Write the report as JSON; - is stdout."
        ),
        quiet_option("Print errors only."),
    ],
    short_help="turn a catalog into sitemaps and publish them",
    help=_run.__doc__,
    epilog=EXAMPLES,
)  # fmt: skip


def _version() -> str:
    from .. import __version__

    return __version__


def _write_json(report: Report, path: str | None) -> None:
    if path is not None:
        write_report(path, as_json(report.to_dict()), code="output.json")


@contextmanager
def _progress(quiet: bool) -> Iterator[OnProgress | None]:
    """A line on a terminal, nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from .progress import Line

    with Line() as line:
        yield line.update
