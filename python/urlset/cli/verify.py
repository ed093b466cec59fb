"""``urlset verify``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..inspect.options import VerifyOptions
from ..wording import count, one_line
from .output import as_json, check_target, quiet_option, write_report
from .params import given, params_of, place
from .signals import stoppable

if TYPE_CHECKING:
    from ..inspect.verify import Problem, VerifyReport

EXAMPLES = """\b
  urlset verify sitemaps/                        a folder of a build
  urlset verify sitemaps/sitemap.xml --strict    an index and its sitemaps
  urlset verify https://www.shop.example/sitemap.xml
  urlset verify old.xml.gz --jsonl - | jq .code

Exit status: 0 valid, 1 errors found, 2 wrong usage, 3 the target cannot be read."""

UNWRITABLE = "report.unwritable"
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
#: findings of each code that are shown
MAX_EXAMPLES = 3
#: characters of a file name, and of a message or a URL
MAX_PLACE, MAX_TEXT = 80, 160


def _run(
    target: str, json_path: str | None, jsonl_path: str | None, quiet: bool, **options: Any
) -> int:
    """Check sitemaps: a file, a folder, an index with its sitemaps, or a URL."""
    if json_path == "-" and jsonl_path == "-":
        raise click.UsageError("only one of --json and --jsonl can go to stdout")
    for name, path in (("json", json_path), ("jsonl", jsonl_path)):
        check_target(name, path, code=UNWRITABLE, undone="nothing was checked")
    from ..inspect.verify import verify as check

    with stoppable():
        report = check(target, **given(options))
    if json_path:
        write_report(json_path, as_json(report.to_dict(), ascii=False), code=UNWRITABLE)
    if jsonl_path:
        lines = (json.dumps(vars(problem), ensure_ascii=False) for problem in report.problems)
        write_report(jsonl_path, "".join(f"{line}\n" for line in lines), code=UNWRITABLE)
    if not quiet and "-" not in (json_path, jsonl_path):
        show(report, strict=bool(options["strict"]))
    return 0 if report.ok else 1


def show(report: VerifyReport, *, strict: bool = False) -> None:
    """Prints the report: the findings by code with some examples, and the totals."""
    groups: dict[str, list[Problem]] = {}
    for problem in report.problems:
        groups.setdefault(problem.code, []).append(problem)
    for code, problems in groups.items():
        first = problems[0]
        total = report.counts[code]
        severity = click.style(f"{first.severity:8}", fg=_COLOURS[first.severity], bold=True)
        click.echo(f"{severity}{click.style(code, bold=True)}  x{total:,}  {first.help}")
        for problem in problems[:MAX_EXAMPLES]:
            where = f"{problem.file}:{problem.line}" if problem.line else problem.file
            url = f"  {problem.url}" if problem.url else ""
            click.echo(
                f"        {_short(where, MAX_PLACE)}: {_short(problem.message, MAX_TEXT)}"
                f"{_short(url, MAX_TEXT)}"
            )
        if total > MAX_EXAMPLES:
            click.echo(f"        ... and {total - MAX_EXAMPLES:,} more")
    sitemaps = sum(file.kind in ("urlset", "text") for file in report.files)
    indexes = sum(file.kind == "index" for file in report.files)
    parts = [count(report.urls, "URL"), count(sitemaps, "sitemap")]
    if indexes:
        parts.append(count(indexes, "index", "indexes"))
    parts += [count(report.total(severity), severity) for severity in _COLOURS]
    verdict = "valid" if report.ok else "not valid"
    if strict and not report.ok and not report.total("error"):
        verdict = "not valid: --strict counts warnings"
    shown = click.style(verdict, fg="green" if report.ok else "red", bold=True)
    click.echo(f"{', '.join(parts)}: {shown} ({report.seconds:.2f} s)")


def _short(text: str, limit: int) -> str:
    text = one_line(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


verify = click.Command(
    "verify",
    callback=_run,
    params=[
        place("target"),
        *params_of(VerifyOptions),
        click.Option(
            ["--json", "json_path"], metavar="PATH", help="Write the report as JSON; - for stdout."
        ),
        click.Option(
            ["--jsonl", "jsonl_path"], metavar="PATH",
            help="Write one finding per line as JSON; - for stdout.",
        ),
        quiet_option("Print nothing except for --json - and --jsonl -.", "-q"),
    ],
    help=_run.__doc__,
    epilog=EXAMPLES,
)  # fmt: skip
