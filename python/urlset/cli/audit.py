"""``urlset audit``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..audit.options import AuditOptions
from ..audit.report import BAD, CODES, UNJUDGED
from ..wording import count, one_line
from .output import as_json, check_target, quiet_option, write_report
from .params import Sectioned, given, params_of, place
from .signals import Stopped, stopping

if TYPE_CHECKING:
    from ..audit.report import AuditReport, Estimate, Stratum
    from ..audit.run import OnProgress

EXAMPLES = """\b
Examples:
  1,000 URLs of a set, in proportion from each shard; about a minute
    urlset audit https://www.shop.example/sitemap.xml
  which categories are bad? at least 30 URLs of each
    urlset audit sitemaps/ --by path --sample 5000
    urlset audit catalog.parquet --loc product_url --by category
\b
  every URL, as fast as my own server allows; continues after Ctrl-C
    urlset audit sitemaps/ --sample all --rate 0 --concurrency 64 --resume audit.jsonl
\b
  in CI: fail if more than 2 % are bad
    urlset audit sitemaps/ --max-bad 2% --json audit.json
\b
  leave out what was found in the next build
    urlset audit sitemaps/ --sample all -o findings.parquet --drop-list drop.csv
    urlset build products.csv --exclude drop.csv ...
\b
Bad: redirects, 4xx, 5xx, noindex, another canonical, disallowed by robots.txt, --soft-404, no
answer. The share of the set has a 95 % interval: 2.1 % ± 0.6 %.

\b
Exit status: 0 done, also if pages are bad; 1 --max-bad is exceeded; 2 wrong usage; 3 the target
cannot be read; 130, 143 stopped by a signal: the result rests on the pages fetched by then.
"""

UNWRITABLE = "report.unwritable"
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
#: findings of each code, and strata, that are shown
MAX_EXAMPLES, MAX_STRATA = 3, 20
#: characters of a URL or a detail
MAX_TEXT = 160


def _run(target: str, json_path: str | None, quiet: bool, **options: Any) -> int:
    """Fetch a sample of the pages that sitemaps list, and estimate how many are bad.

    TARGET is a sitemap, an index, a folder, a URL, a prefix in an object store, or a table with a
    column of URLs (.csv, .parquet, .jsonl, .arrow). The sample is random, but the same for the same
    URLs and --seed. robots.txt and its crawl-delay are obeyed.
    """
    check_target("json", json_path, code=UNWRITABLE, undone="nothing was fetched")
    from ..audit.run import audit as run

    if json_path == "-" and options["output"] == "-":
        raise click.UsageError("only one of --json and --output can go to stdout")
    stops: list[KeyboardInterrupt] = []
    try:
        # the first signal ends the audit; further ones do not interrupt the report
        with stopping(), _progress(quiet) as on_progress:
            report = run(target, on_progress=on_progress, on_stop=stops.append, **given(options))
    except Stopped as stop:  # while the sitemaps are read
        click.echo("urlset: stopped by a signal; nothing was fetched", err=True)
        return stop.status
    if json_path:
        write_report(json_path, as_json(report.to_dict(), ascii=False), code=UNWRITABLE)
    if not quiet and json_path != "-":
        show(report, err=options["output"] == "-")
    if stops:
        again = f"; --resume {options['resume']} continues" if options["resume"] else ""
        click.echo(
            f"urlset: stopped by a signal after {count(report.judged, 'page')}{again}", err=True
        )
        return stops[0].status if isinstance(stops[0], Stopped) else 130
    return 0 if report.ok else 1


def show(report: AuditReport, *, err: bool = False) -> None:
    """Prints the estimates with some examples, the strata, and the totals."""
    of = f"of {short(report.covered)} URLs"
    for one in report.estimates:
        if one.code in (BAD, UNJUDGED):
            continue
        code = CODES[one.code]
        name = click.style(f"{one.code:13}", fg=_COLOURS[code.severity], bold=True)
        click.echo(f"{name} {share(one)} {of} {code.verb}: {code.help}", err=err)
        _show_samples(report, one.code, err)
    for name, number in report.counts.items():
        if CODES[name].severity == "unjudged":
            found = f"{count(number, 'page')} of the sample {CODES[name].verb}: {CODES[name].help}"
            click.echo(f"{click.style(f'{name:13}', bold=True)} {found}", err=err)
            _show_samples(report, name, err)
    if len(report.strata) > 1:
        _show_strata(report, err)
    total = report.estimate(BAD)
    if report.covered < report.urls:
        missing = f"{report.urls - report.covered:,} URLs are in strata without a judged page"
        click.echo(f"{missing}: no estimate for them", err=err)
    if not report.complete:
        click.echo("the audit is not complete: fewer pages, wider intervals", err=err)
    parts = f"{count(report.judged, 'page')} judged of {count(report.urls, 'URL')}"
    times = ", median {median:.3g} s".format(**report.page_seconds) if report.page_seconds else ""
    verdict = "no page could be judged" if total is None else f"{share(total)} {of} are bad"
    limit = "" if report.ok else f", more than --max-bad {percent(report.max_bad or 0.0)}"
    colour = "green" if report.ok and total is not None and not total.count else "red"
    verdict = click.style(f"{verdict}{limit}", fg=colour, bold=True)
    click.echo(f"{parts}{times}: {verdict} ({report.seconds:.1f} s)", err=err)


def _show_samples(report: AuditReport, code: str, err: bool) -> None:
    for one in [one for one in report.samples if one.code == code][:MAX_EXAMPLES]:
        target = f" -> {one.target}" if one.target else ""
        detail = f"  ({one.detail})" if one.detail else ""
        text = f"{_short(one.loc)}{_short(target)}{_short(detail)}"
        click.echo(f"              {text}", err=err)


def _show_strata(report: AuditReport, err: bool) -> None:
    """The strata, the worst first."""

    def bad(one: Stratum) -> float:
        return one.estimates[0].share if one.estimates else 0.0

    strata = sorted(report.strata, key=lambda one: (-bad(one), one.name))
    width = min(40, max(len(one_line(one.name)) for one in strata[:MAX_STRATA]))
    click.echo(f"by {report.by}:", err=err)
    for one in strata[:MAX_STRATA]:
        name = one_line(one.name)
        name = name if len(name) <= width else f"{name[: width - 1]}…"
        text = f"{share(one.estimates[0])} bad" if one.estimates else "no page was judged"
        click.echo(f"  {name:{width}}  {one.judged:>6,} of {one.urls:>11,}  {text}", err=err)
    if len(strata) > MAX_STRATA:
        click.echo(f"  ... and {len(strata) - MAX_STRATA:,} more", err=err)


def share(one: Estimate) -> str:
    """``2.1 % ± 0.6 %`` with the longer side of the interval; both ends if that is misleading."""
    half = max(one.share - one.low, one.high - one.share)
    if half == 0:
        return f"{percent(one.share)} (all taken)"
    if one.share == 0:
        return f"0 % (at most {percent(one.high)})"
    if one.share == 1:
        return f"100 % (at least {percent(one.low)})"
    if half > min(one.share, 1 - one.share):
        return f"{percent(one.share)} ({percent(one.low)} to {percent(one.high)})"
    return f"{percent(one.share)} ± {percent(half)}"


def percent(value: float) -> str:
    """``2.1 %``; two digits where there is less than one percent."""
    return f"{value * 100:.{1 if value >= 0.01 else 2}f} %"


def short(number: int) -> str:
    """``4.2 M``, from a million."""
    return f"{number / 1e6:.1f} M" if number >= 1_000_000 else f"{number:,}"


def _short(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


@contextmanager
def _progress(quiet: bool) -> Iterator[OnProgress | None]:
    """A line on a terminal, nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), "pages", TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("audit", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _params() -> list[click.Parameter]:
    params = params_of(AuditOptions)
    for param in params:
        if param.name == "output":
            param.opts.append("-o")
    return params


audit = Sectioned(
    "audit",
    table=AuditOptions,
    rest="Result",
    callback=_run,
    params=[
        place("target"),
        *_params(),
        click.Option(
            ["--json", "json_path"], metavar="PATH", help="Write the report as JSON; - for stdout."
        ),
        quiet_option("Print nothing except for --json - and -o -.", "-q"),
    ],
    help=_run.__doc__,
    epilog=EXAMPLES,
)  # fmt: skip
