"""The report page of a large build: its size, the time to its first paint, and what it costs.

    python benches/page.py --rows 10M --shards 3000 --json benches/results/page.json

The set has a history of 60 builds, rejected rows and 3,000 sitemaps. Needs Chromium and playwright
(scripts/test-tools). The time of the paint is that of PerformancePaintTiming, from the start of
the navigation, in a new profile each time; the page is a file.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import check
import common
from catalog import at_least_one, row_count
from common import SCRATCH, SITE, BenchError, Cost

HISTORY = 60
#: not wait_for_function, which needs eval: the policy of the page forbids it
PAINT = """() => new Promise(done => {
    const look = () => {
        const found = performance.getEntriesByName('first-contentful-paint');
        found.length ? done(found[0].startTime) : requestAnimationFrame(look);
    };
    look();
})"""


def small_builds(out: Path, urlset: str) -> None:
    """Fills the history: each build has another number of rows."""
    source = SCRATCH / "small.csv"
    for number in range(HISTORY):
        rows = [f"{SITE}/{row}" for row in range(1_000 + number % 7)]
        source.write_text("\n".join(["url", *rows, ""]))
        command = common.build(source, out, "--max-shrink", "100%", command=urlset)
        subprocess.run(command, check=True)


def paints(page: Path, loads: int) -> list[float]:
    """Milliseconds to the first paint with content, one for each load."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise BenchError("playwright is not installed (scripts/test-tools)") from None
    program = shutil.which("chromium")
    if program is None:
        raise BenchError("chromium is not installed (scripts/test-tools)")
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(loads):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            tab = context.new_page()
            tab.goto(page.resolve().as_uri())
            found.append(tab.evaluate(PAINT))
            context.close()
        browser.close()
    return found


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=10_000_000, help="default 10M")
    parser.add_argument("--shards", type=at_least_one, default=3_000)
    parser.add_argument("--repeat", type=at_least_one, default=3)
    parser.add_argument("--loads", type=at_least_one, default=9)
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    urlset = common.urlset()
    source = common.catalog(options.rows, "parquet")
    common.fresh(SCRATCH)
    out, page = SCRATCH / "out", SCRATCH / "report.html"
    small_builds(out, urlset)
    in_each = -(-options.rows // options.shards)
    limits = ("--max-urls", str(in_each), "--max-shrink", "100%")
    costs: dict[str, list[Cost]] = {"without": [], "with": []}
    for _ in range(options.repeat):
        for name, more in (("without", ()), ("with", ("--report", str(page)))):
            folder = SCRATCH / "copy"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(out, folder)
            common.warm(source)
            command = common.build(source, folder, *limits, *more, command=urlset)
            costs[name].append(common.measure(command))
    written = check.shards(SCRATCH / "copy")
    if len(written) != -(-options.rows // in_each):
        raise BenchError(f"{len(written)} sitemaps instead of {options.shards}")
    times = paints(page, options.loads)
    size = page.stat().st_size
    without, cost = common.summary(costs["without"]), common.summary(costs["with"])
    told: dict[str, Any] = {
        "rows": options.rows,
        "shards": len(written),
        "bytes": size,
        "first_paint_ms": {"median": statistics.median(times), "largest": max(times)},
        "without": without,
        "with": cost,
    }
    told["says"] = (
        f"page of {options.rows:,} URLs in {len(written):,} sitemaps and {HISTORY} builds:"
        f" {size / 1e3:.0f} kB, first paint {statistics.median(times):.0f} ms (largest"
        f" {max(times):.0f}); CPU of the build {without['cpu']:.2f} s without, {cost['cpu']:.2f} s"
        " with the page"
    )
    common.write_json(options.json, "page", arguments, told)
    print(told["says"])


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"page: {problem}")
