"""``urlset verify``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..wording import count
from . import one_line
from .numbers import Whole
from .signals import stoppable
from .sizes import SIZE

if TYPE_CHECKING:
    from ..inspect.verify import Problem, Report

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command(
    epilog="""\b
  urlset verify sitemaps/                        a folder, as a build leaves it
  urlset verify sitemaps/sitemap.xml --strict    an index and all it lists
  urlset verify https://www.shop.example/sitemap.xml
  urlset verify old.xml.gz --jsonl - | jq .code

Exit status: 0 right, 1 errors found, 2 wrong usage, 3 the target cannot be read.""",
)
@click.argument("target")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.option("--no-duplicates", is_flag=True, help="Do not look for URLs listed twice.")
@click.option("--reciprocity", is_flag=True, help="Look for hreflang links without a link back.")
@click.option("--memory", type=SIZE, default="256MiB", show_default=True,
              help="Memory for the hashes of all URLs; above that they go to disk.")  # fmt: skip
@click.option("--threads", type=Whole(1), help="Default: as many as there are cores.")
@click.option("--most", type=Whole(1), default=100, show_default=True,
              help="List so many findings of each code and file; all are counted.")  # fmt: skip
@click.option("--hosts", metavar="HOSTS",
              help="Which hosts URLs may have: same, any, or a list a,b. Default: what the manifest"
                   " of a build says, else same.")  # fmt: skip
@click.option("--allow-private", is_flag=True, help="Fetch from private addresses, too.")
@click.option("--json", "json_path", metavar="PATH", help="Write the report as JSON; - for stdout.")
@click.option("--jsonl", "jsonl_path", metavar="PATH",
              help="Write a finding a line as JSON; - for stdout.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but what --json - prints.")
def verify(
    target: str,
    no_duplicates: bool,
    json_path: str | None,
    jsonl_path: str | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Check sitemaps: a file, a folder, an index with all it lists, or a URL."""
    if json_path == "-" and jsonl_path == "-":
        raise click.UsageError("only one of --json and --jsonl can go to stdout")
    from ..errors import PublishError
    from ..inspect.verify import verify as check
    from ..outfile import check_writable, must_be_local

    for name, path in (("json", json_path), ("jsonl", jsonl_path)):
        if path is None or path == "-":
            continue
        must_be_local(name, path)
        try:  # before anything is read
            check_writable(Path(path), replaced=False)
        except OSError as error:
            message = f"{path}: {error.strerror}; nothing was checked"
            raise PublishError(message, code="report.unwritable") from None
    with stoppable():
        report = check(target, duplicates=not no_duplicates, **options)
    import json

    if json_path:
        _write(json_path, json.dumps(report.to_dict(), ensure_ascii=False, indent=1) + "\n")
    if jsonl_path:
        lines = (json.dumps(vars(problem), ensure_ascii=False) for problem in report.problems)
        _write(jsonl_path, "".join(f"{line}\n" for line in lines))
    if not quiet and "-" not in (json_path, jsonl_path):
        show(report, strict=options["strict"])
    return 0 if report.ok else 1


def show(report: Report, *, strict: bool = False) -> None:
    """Print the report for a person: grouped by code, with three examples each."""
    groups: dict[str, list[Problem]] = {}
    for problem in report.problems:
        groups.setdefault(problem.code, []).append(problem)
    for code, problems in groups.items():
        first = problems[0]
        total = report.counts[code]
        severity = click.style(f"{first.severity:8}", fg=_COLOURS[first.severity], bold=True)
        click.echo(f"{severity}{click.style(code, bold=True)}  x{total:,}  {first.help}")
        for problem in problems[:3]:
            where = f"{problem.file}:{problem.line}" if problem.line else problem.file
            url = f"  {problem.url}" if problem.url else ""
            click.echo(
                f"        {_short(where, 80)}: {_short(problem.message, 160)}{_short(url, 160)}"
            )
        if total > 3:
            click.echo(f"        ... and {total - 3:,} more")
    sitemaps = sum(file.kind in ("urlset", "text") for file in report.files)
    indexes = sum(file.kind == "index" for file in report.files)
    parts = [count(report.urls, "URL"), count(sitemaps, "sitemap")]
    if indexes:
        parts.append(count(indexes, "index", "indexes"))
    parts += [count(report.total(s), s) for s in _COLOURS]
    verdict = "right" if report.ok else "not right"
    if strict and not report.ok and not report.total("error"):
        verdict = "not right: --strict counts warnings"
    colour = "green" if report.ok else "red"
    click.echo(f"{', '.join(parts)}: {click.style(verdict, fg=colour, bold=True)}"
               f" ({report.seconds:.2f} s)")  # fmt: skip


def _short(text: str, most: int) -> str:
    text = one_line(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
        return
    from ..errors import PublishError

    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise PublishError(f"{path}: {error.strerror}", code="report.unwritable") from error
