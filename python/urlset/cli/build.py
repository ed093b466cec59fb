"""``urlset build``."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NoReturn

import click

from ..build.job import Build, OnProgress
from ..errors import PublishError
from ..options import Options
from ..report import Report
from ..wording import count
from . import one_line
from .numbers import Whole
from .signals import BUILD_GRACE, Stopped, stopping

EXAMPLES = """\b
Examples:
  urlset build products.csv --site https://www.shop.example --out sitemaps
  urlset build 'exports/*.parquet' --site https://www.shop.example --out sitemaps \\
      --loc product_url --lastmod updated_at --where in_stock=true
  zcat feed.csv.gz | urlset build - --site https://www.shop.example --out sitemaps \\
      --loc-template 'https://www.shop.example/p/{slug}-{id}'
  urlset build --config urlset.toml --duplicates drop --json report.json

Without INPUT the input, and all else, comes from urlset.toml (urlset init writes one).
Rows count from 1, the header not included.

\b
Exit status: 0 published; 1 the data says no, nothing was published; 2 wrong options;
3 input damaged or output not writable; 130, 143 stopped by a signal.
"""


#: indexes that the summary lists
MOST_INDEXES = 20


class _Sections(click.Command):
    """Options under the headings of the table in :mod:`urlset.options`."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        given = list(args)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            report = Report(version=_version())
            report.error = {"code": "config.usage", "message": error.format_message()}
            with suppress(PublishError):
                _write_json(report, _json_path(given))
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        names = {spec.name.rstrip("_"): spec.metadata["section"] for spec in fields(Options)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                sections.setdefault(names.get(param.name or "", "Run"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _json_path(args: list[str]) -> str | None:
    """What ``--json`` says in a command line that is wrong elsewhere."""
    path = None
    for arg, following in zip(args, [*args[1:], None], strict=True):
        if arg == "--json":
            path = following
        elif arg.startswith("--json="):
            path = arg.removeprefix("--json=")
    return path


def _options() -> list[click.Parameter]:
    """One option a field of :class:`Options`."""
    params: list[click.Parameter] = []
    for spec in fields(Options):
        about = spec.metadata
        default = spec.default if spec.default is not MISSING else None
        name = spec.name.rstrip("_").replace("_", "-")
        shown = about["help"]
        kind: Any = click.Choice(about["choices"]) if about["choices"] else str
        if spec.type in ("int", "int | None"):
            kind = Whole()
        if isinstance(default, bool):
            flag = f"--{name}/--no-{name}" if default else f"--{name}"
            params.append(click.Option([flag], is_flag=True, default=None, help=shown))
            continue
        if isinstance(default, (int, str)) and default != "" and "[" not in shown:
            shown = f"{shown.removesuffix('.')} [{default}]."
        params.append(
            click.Option(
                [f"--{name}"],
                type=kind,
                default=None,
                multiple=str(spec.type).startswith("tuple"),
                metavar=about["metavar"],
                help=shown,
            )
        )
    return params


def _run(
    inputs: tuple[str, ...], config: Path | None, json_path: str | None, quiet: bool, **given: Any
) -> None:
    if config is None and not inputs and Path("urlset.toml").is_file():
        config = Path("urlset.toml")
    given = {key: value for key, value in given.items() if value not in (None, ())}
    written = {"json": Path(json_path)} if json_path and json_path != "-" else {}
    run = Build(Report(version=_version()), written)
    try:
        with _signals(run, json_path), _progress(quiet) as on_progress:
            run.run(inputs, given, config, on_progress)
    except BaseException:
        # the error that came first is the one to tell
        if (run.report.error or {}).get("code") not in ("config.json", "output.json"):
            with suppress(PublishError):
                _write_json(run.report, json_path)
        raise
    with _after(run.report):
        _write_json(run.report, json_path)
        if not quiet and json_path != "-":
            _summary(run.report, dry_run=bool(given.get("dry_run")))


@contextmanager
def _after(report: Report) -> Iterator[None]:
    """Says of what fails after the publication that the new set is live."""
    live = "; the new set is live" if report.published else ""
    try:
        yield
    except PublishError as error:
        raise PublishError(f"{error}{live}", code=error.code) from None
    except BrokenPipeError:  # whoever read the summary has left
        raise
    except OSError as error:
        with suppress(OSError, ValueError):  # what is buffered still is not tried again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise PublishError(
            f"standard output: {error.strerror or error}{live}", code="output.stdout"
        ) from None


build = _Sections(
    "build",
    callback=_run,
    params=[
        click.Argument(["inputs"], nargs=-1, metavar="[INPUT]..."),
        *_options(),
        click.Option(
            ["--config"], type=click.Path(path_type=Path), metavar="FILE",
            help="Options from a urlset.toml [./urlset.toml where no INPUT is given].",
        ),
        click.Option(
            ["--json", "json_path"], metavar="PATH|-", help="Write the report as JSON; - is stdout."
        ),
        click.Option(["--quiet"], is_flag=True, help="Print errors only."),
    ],
    short_help="turn a catalog into sitemaps and publish them",
    help="Turn a catalog into sitemaps and their index, and publish them to a folder.\n\n"
    "INPUT is CSV, Parquet, Arrow IPC, JSON Lines, or lines, a list of URLs, one a line: files,"
    " globs, folders, URIs, or - for standard input; packed by gzip, zstd, bzip2 or xz."
    " Columns are found by name where no option names them. Nothing of what is"
    " live changes unless all goes well.",
    epilog=EXAMPLES,
)  # fmt: skip


def _version() -> str:
    from .. import __version__

    return __version__


@contextmanager
def _signals(run: Build, json_path: str | None) -> Iterator[None]:
    """SIGINT and SIGTERM end the command within half a second, whatever a stage waits for."""

    leaving = threading.Lock()

    def leave(status: int) -> NoReturn:
        leaving.acquire()  # for good: of the watcher and the main thread, the first one speaks
        try:
            if run.report.error is None:
                run.report.error = {"code": "interrupted", "message": "stopped by a signal"}
            click.echo(f"urlset: {run.report.error['message']}", err=True)
            with suppress(PublishError):
                _write_json(run.report, json_path)
            if sys.stdout is not None:  # as under >&-
                sys.stdout.flush()
        finally:
            # a source that does not return cannot be waited for; the next build cleans up
            os._exit(status)

    with stopping(leave, BUILD_GRACE):
        try:
            yield
        except Stopped as stopped:
            leave(stopped.status)


def _write_json(report: Report, path: str | None) -> None:
    if path is None:
        return
    text = json.dumps(report.to_dict(), indent=1)
    if path == "-":
        click.echo(text)
        return
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise PublishError(f"{path}: {error.strerror}", code="output.json") from None


@contextmanager
def _progress(quiet: bool) -> Iterator[OnProgress | None]:
    """A line on a terminal, nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from .progress import Line

    with Line() as line:
        yield line.update


def _summary(report: Report, *, dry_run: bool) -> None:
    rate = report.rows / report.seconds if report.seconds else 0
    say = click.echo
    for chosen, column in report.mapping.items():
        say(f"{chosen:>10}  from {one_line(column)}")
    fates = [count(report.urls, "URL")]
    for number, what in (
        (report.rejected, "rejected"),
        (report.filtered, "filtered"),
        (report.duplicates, "duplicates dropped"),
    ):
        if number:
            fates.append(f"{number:,} {what}")
    if report.expanded:
        fates.append(f"{report.expanded:,} expanded")
    rows = count(report.rows, "row")
    say(f"{rows}: {', '.join(fates)}; {report.seconds:.1f} s, {rate:,.0f} rows/s")
    for code, number in sorted(report.rejects["by_code"].items(), key=lambda item: -item[1]):
        say(f"  rejected {number:,}: {code}")
    if report.rejects["path"]:
        say(f"  see {one_line(report.rejects['path'])}")
    for warning in report.warnings:
        say(f"  {warning.count:,} {warning.message} [{warning.code}]")
    size = sum(shard.compressed_bytes for shard in report.shards)
    written = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
    kept = sum(not shard.changed for shard in report.shards)
    unchanged = f", {kept:,} of them unchanged" if kept else ""
    indexes = len(report.indexes)
    several = f" in {indexes} indexes" if indexes > 1 else ""
    say(f"{count(len(report.shards), 'sitemap')}{unchanged}, {written}{several}")
    for index in report.indexes[1:MOST_INDEXES]:
        say(f"  {one_line(index.url)}")
    if indexes > MOST_INDEXES:
        say(f"  and {indexes - MOST_INDEXES:,} more (--json lists all)")
    done = "dry run: nothing was published; the index would be" if dry_run else "live:"
    say(f"{done} {one_line(report.url or '')}")
