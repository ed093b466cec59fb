"""The tables and the chart, generated from the JSON files of the benches only.

    python benches/report.py benches/results/*.json --into docs/benchmarks.md \\
        --svg benches/results/throughput.svg --targets README.md

--into replaces what stands between the two comments `<!-- benches: begin -->` and
`<!-- benches: end -->` of a Markdown file with all tables, --targets with the targets alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import chart

Told = dict[str, Any]
BEGIN, END = "<!-- benches: begin -->", "<!-- benches: end -->"
MIB = 1 << 20
#: benches whose section is their own summary
SAYING = (
    ("duplicates", "Duplicates"),
    ("publish", "Publication"),
    ("checks", "Checks"),
    ("extensions", "Extensions"),
    ("nightly", "The nightly rebuild"),
    ("edits", "Shards that stay as they are"),
)


def throughput_table(run: Told) -> str:
    """All contestants of a run, the fastest first; failed ones at the end, with the reason."""
    lines = [
        "| what | rows | wall s, median | rows/s | CPU s | peak MiB "
        "| time, urlset = 1 | time, igzip = 1 |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for result in ranked(run):
        own = rate(run, "urlset-csv-gz" if result["gzip"] else "urlset-csv-plain")
        limit = rate(run, "igzip")
        speed = result["rows_per_second"]
        label = f"**{result['label']}**" if result["group"] == "urlset" else result["label"]
        cells = [
            label,
            _rows(result["rows"]),
            f"{result['wall']:.2f}",
            _significant(speed),
            f"{result['cpu']:.2f}",
            f"{result['peak_rss'] / MIB:,.0f}",
            _ratio(own, speed),
            _ratio(limit, speed),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    for result in run["results"]:
        if result["failed"]:
            lines.append(f"| {result['label']} | | not measured: {result['failed']} | | | | | |")
    return "\n".join(lines)


def paired_table(run: Told, suffix: str) -> str:
    """What urlset takes beside another urlset, whose keys end in the suffix; 1.03 is 3 % more."""
    lines = [
        "| what | CPU s, least | of the other | ratio | ratio of CPU, median | of time, median "
        "| peak MiB | of the other |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    results = {result["key"]: result for result in run["results"]}
    for key, own in results.items():
        other = results.get(key + suffix)
        if other is None:
            continue
        failed = own["failed"] or other["failed"]
        if failed:
            lines.append(f"| {own['label']} | not measured: {failed} | | | | | | |")
            continue
        least, least_other = (min(one["cpu"] for one in who["runs"]) for who in (own, other))
        rounds = list(zip(own["runs"], other["runs"], strict=True))
        cpu, wall = (median(one[of] / two[of] for one, two in rounds) for of in ("cpu", "wall"))
        cells = [
            own["label"], f"{least:.3f}", f"{least_other:.3f}", f"{least / least_other:.3f}",
            f"{cpu:.3f}", f"{wall:.3f}", *(f"{who['peak_rss'] / MIB:.0f}" for who in (own, other)),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ranked(run: Told) -> list[Told]:
    """The measured contestants, the fastest first."""
    measured = [result for result in run["results"] if not result["failed"]]
    return sorted(measured, key=lambda result: -result["rows_per_second"])


def rate(run: Told, key: str) -> float | None:
    """Rows per second of a contestant; None if it was not measured."""
    for result in run["results"]:
        if result["key"] == key and not result["failed"]:
            return float(result["rows_per_second"])
    return None


def targets_table(told: list[Told]) -> str:
    """Each target with its measurement and verdict; once for each number of rows of `run`."""
    lines = ["| target | measured | target | moonshot | | by |", "|---|--:|--:|--:|---|---|"]
    runs = _runs(told)
    for target in _targets():
        of_runs = target[1][0] == "run" and len(runs) > 1
        for run in runs if of_runs else [None]:
            lines += _target_lines(target, told, run)
    return "\n".join(lines)


def _target_lines(target: Target, told: list[Told], run: Told | None) -> list[str]:
    """The line of a target, by one of several runs; none if that did not measure it."""
    label, (bench, measure), limit, moonshot, unit, at_least = target
    value = measure({one["bench"]: one for one in [*told, *filter(None, [run])]})
    if run is not None:
        if value is None:
            return []
        label += f", {_rows(run['rows'])} rows"
    sign = "≥ " if at_least else "≤ "
    if value is None:
        verdict, shown = "not measured", ""
    else:
        shown = f"{value:,.2f}{unit}" if value < 10 else f"{value:,.0f}{unit}"
        if at_least:
            verdict = _verdict(value >= limit, bool(moonshot) and value >= moonshot)
        else:
            verdict = _verdict(value <= limit, bool(moonshot) and value <= moonshot)
    goals = f"{sign}{limit:g}{unit} | {f'{sign}{moonshot:g}{unit}' if moonshot else ''}"
    return [f"| {label} | {shown} | {goals} | {verdict} | {bench} |"]


def _runs(told: list[Told]) -> list[Told]:
    """The runs of contestants, the smallest first."""
    return sorted(
        (one for one in told if one["bench"] == "run"), key=lambda run: run.get("rows", 0)
    )


def commands(told: list[Told]) -> str:
    """The command that repeats each bench, by its name in the table of targets."""
    return "\n".join(f"- {one['bench']}: `{one['command']}`" for one in told)


def _verdict(met: bool, moonshot: bool) -> str:
    if moonshot:
        return "**moonshot met**"
    return "met" if met else "**not met**"


#: the bench that measures something, and how to find it in its JSON
Measure = tuple[str, Callable[[dict[str, Told]], float | None]]
#: a moonshot of 0 means none
Target = tuple[str, Measure, float, float, str, bool]


def _targets() -> list[Target]:
    """Label, how it is measured, target, moonshot, unit, whether more is better."""
    return [
        ("CSV to gzip, time / `igzip -1`", _times("igzip", "urlset-csv-gz"), 1.5, 1.0, "", False),
        (
            "Parquet to gzip, time / `igzip -1`",
            _times("igzip", "urlset-parquet-gz"), 1.5, 1.0, "", False,
        ),
        (
            "CSV to gzip against Polars + igzip",
            _times("urlset-csv-gz", "polars-gz"), 4, 7, " x", True,
        ),
        (
            "CSV to gzip against xml-sitemap-writer",
            _times("urlset-csv-gz", "xml-sitemap-writer"), 25, 40, " x", True,
        ),
        (
            "CSV to gzip against sitemap.js with gzip",
            _times("urlset-csv-gz", "sitemapjs-gz"), 300, 700, " x", True,
        ),
        ("CSV to plain, time / `cp`", _times("cp", "urlset-csv-plain"), 2.0, 1.2, "", False),
        (
            "CSV to plain, time / `cp` and fsync (urlset fsyncs too)",
            _times("cp-sync", "urlset-csv-plain"), 2.0, 1.2, "", False,
        ),
        ("peak memory, CSV, maximum over all sizes", _peak("csv"), 256, 128, " MiB", False),
        (
            "peak memory, Parquet, maximum over all sizes",
            _peak("parquet"), 384, 256, " MiB", False,
        ),
        ("`--duplicates drop`, time / `keep`", _field("duplicates", "ratio"), 1.3, 1.1, "", False),
        (
            "publication of 1,000 shards, share of the whole",
            _field("publish", "share_percent"), 10, 3, " %", False,
        ),
        (
            "bytes of XML per second, 3 images and 8 alternates per row, share of plain rows",
            _field("extensions", "share_percent"), 75, 100, " %", True,
        ),
        (
            "`verify` against ultimate-sitemap-parser",
            _rate_of("verify", "usp"), 20, 0, " x", True,
        ),
        ("`verify`, time / `gzip -t` on all cores", _rate_of("gzip", "verify"), 1.0, 0, "", False),
        ("`read` to Parquet against advertools", _rate_of("read", "advertools"), 10, 0, " x", True),
        ("cost of all checks", _field("checks", "cost_percent"), 15, 5, " %", False),
        (
            "nightly, nothing changed: time / full build",
            _field("nightly", "unchanged_share"), 0.6, 0.4, "", False,
        ),
        (
            "nightly, shards rewritten / shards that contain an edit",
            _field("nightly", "rewritten_per_held"), 1.25, 1.1, "", False,
        ),
        ("change feed, more time", _field("nightly", "feed_percent"), 15, 5, " %", False),
    ]  # fmt: skip


def _times(faster: str, slower: str) -> Measure:
    """The ratio of the times of `slower` and `faster` for the same rows."""

    def measured(by_bench: dict[str, Told]) -> float | None:
        run = by_bench.get("run", {"results": []})
        first, second = rate(run, faster), rate(run, slower)
        return first / second if first and second else None

    return "run", measured


def _rate_of(faster: str, slower: str) -> Measure:
    """The ratio of the URLs per second of `faster` and `slower`."""

    def measured(by_bench: dict[str, Told]) -> float | None:
        results = by_bench.get("reading", {"results": []})["results"]
        rates = {one["key"]: one["urls_per_second"] for one in results if not one["failed"]}
        both = faster in rates and slower in rates
        return float(rates[faster] / rates[slower]) if both else None

    return "reading", measured


def _peak(source: str) -> Measure:
    """The maximum of a format over the sizes that `memory` measured."""

    def measured(by_bench: dict[str, Told]) -> float | None:
        results = by_bench.get("memory", {"results": []})["results"]
        peaks = [one["peak_rss"] for one in results if one["takes"] == source]
        return max(peaks) / MIB if peaks else None

    return "memory", measured


def _field(bench: str, name: str) -> Measure:
    return bench, lambda by_bench: by_bench[bench][name] if bench in by_bench else None


def reading_table(reading: Told) -> str:
    """Every reader of the same sitemaps, in the order of its JSON."""
    lines = [
        "| what | URLs | wall s, median | URLs/s | CPU s | peak MiB |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for one in reading["results"]:
        if one["failed"]:
            lines.append(f"| {one['label']} | | not measured: {one['failed']} | | | |")
            continue
        cells = [
            one["label"],
            _rows(one["urls"]),
            f"{one['wall']:.2f}",
            _significant(one["urls_per_second"]),
            f"{one['cpu']:.2f}",
            f"{one['peak_rss'] / MIB:,.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def memory_table(memory: Told) -> str:
    """Peak memory and time by rows, one line per input format."""
    sizes = sorted({one["rows"] for one in memory["results"]})
    lines = [
        "| peak MiB (wall s) at rows | " + " | ".join(_rows(size) for size in sizes) + " |",
        "|---|" + "--:|" * len(sizes),
    ]
    for takes, name in (("csv", "CSV"), ("parquet", "Parquet")):
        cells = []
        for size in sizes:
            found = [
                one for one in memory["results"] if (one["takes"], one["rows"]) == (takes, size)
            ]
            peaks = (f"{one['peak_rss'] / MIB:,.0f} ({one['wall']:.1f})" for one in found)
            cells.append(next(peaks, ""))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def document(told: list[Told]) -> str:
    """All tables, each with its machine and the command that repeats it."""
    by_bench = {one["bench"]: one for one in told}
    parts = ["### Targets", targets_table(told)]
    for run in _runs(told):
        parts += [f"### Throughput, {_rows(run['rows'])} rows", _origin(run), throughput_table(run)]
        versions = {one["version"]: None for one in ranked(run)}
        maker = (
            f" The finished shards were written by {run['shards_by']}." if run["shards_by"] else ""
        )
        parts.append("Versions: " + "; ".join(versions) + "." + maker)
    if "memory" in by_bench:
        parts += ["### Memory", _origin(by_bench["memory"]), memory_table(by_bench["memory"])]
    if "reading" in by_bench:
        reading = by_bench["reading"]
        parts += [f"### Reading back, {_rows(reading['rows'])} rows", _origin(reading)]
        parts.append(reading_table(reading))
        versions = {one["version"]: None for one in reading["results"] if not one["failed"]}
        parts.append("Versions: " + "; ".join(versions) + ".")
    for bench, title in SAYING:
        if bench in by_bench:
            parts += [f"### {title}", _origin(by_bench[bench]), by_bench[bench]["says"]]
    return "\n\n".join(parts)


def _origin(told: Told) -> str:
    machine = told["machine"]
    return (
        f"`{told['command']}` on {told['date']}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, {machine['system']} {machine['kernel']}."
    )


def _rows(count: int) -> str:
    if count % 1_000_000 == 0:
        return f"{count // 1_000_000} M"
    return f"{count // 1_000} k" if count % 1_000 == 0 else f"{count:,}"


def _significant(number: float) -> str:
    """Three significant digits: a fourth would be noise."""
    digits = len(str(int(number)))
    return f"{round(number, 3 - digits):,.0f}"


def _ratio(reference: float | None, own: float) -> str:
    if reference is None:
        return ""
    ratio = reference / own
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def insert(page: str, tables: str) -> str:
    """The page with the tables between its two comments; ValueError without these comments."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page needs one {BEGIN} and one {END}")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{tables}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=Path, nargs="+", metavar="RESULT.json")
    parser.add_argument("--into", type=Path, metavar="PAGE.md")
    parser.add_argument("--targets", type=Path, metavar="PAGE.md")
    parser.add_argument("--svg", type=Path, metavar="CHART.svg")
    options = parser.parse_args()
    try:
        told = [json.loads(path.read_text(encoding="utf-8")) for path in options.results]
    except (OSError, ValueError) as error:
        sys.exit(f"report: {error}")
    benches = [(one["bench"], one["rows"] if one["bench"] == "run" else 0) for one in told]
    if len(set(benches)) < len(benches):
        sys.exit("report: two files of the same bench (those of run.py may differ in their rows)")
    tables = document(told)
    short = f"{targets_table(told)}\n\n{commands(told)}"
    for page, text in ((options.targets, short), (options.into, tables)):
        if page is None:
            continue
        try:
            page.write_text(insert(page.read_text(encoding="utf-8"), text), encoding="utf-8")
        except (OSError, ValueError) as error:
            sys.exit(f"report: {page}: {error}")
    if options.into is None and options.targets is None:
        print(tables)
    if options.svg:
        runs = _runs(told)
        if not runs:
            sys.exit("report: --svg needs the JSON of run.py")
        options.svg.write_text(chart.svg(ranked(runs[0]), runs[0]["machine"]), encoding="utf-8")


if __name__ == "__main__":
    main()
