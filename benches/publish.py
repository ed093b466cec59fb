"""The share of the publication in a build: journal, fsyncs and renames of 1,000 shards.

    python benches/publish.py --rows 10M --shards 1000 --json benches/results/publish.json

Taken from the timings in urlset's own --json where it has them. Otherwise (or with --strace) the
time within fsync, fdatasync and rename is summed by strace: those calls run on several threads
and beside the build, and being traced costs, so that sum is an upper bound.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

import check
import common
from catalog import at_least_one, row_count
from common import SCRATCH, BenchError, Cost

CALLS = "fsync,fdatasync,rename,renameat,renameat2"
_TIMED = re.compile(r"\b(\w+)(?:\(.*| resumed>.*)<(\d+\.\d+)>$")


def share_by_timings(told: dict[str, Any]) -> float | None:
    """Percent of the whole, from the timings of a build; None without timings."""
    timings = told.get("timings")
    if not timings:
        return None
    whole = timings["build"] + timings["publish"]
    return float(100.0 * timings["publish"] / whole)


def seconds_in_calls(trace: str) -> dict[str, float]:
    """Seconds by system call, from the lines of `strace -f -T`."""
    spent: dict[str, float] = {}
    for line in trace.splitlines():
        if found := _TIMED.search(line):
            name = "rename" if found[1].startswith("rename") else found[1]
            spent[name] = spent.get(name, 0.0) + float(found[2])
    return spent


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=10_000_000, help="default 10M")
    parser.add_argument("--shards", type=at_least_one, default=1_000)
    parser.add_argument("--repeat", type=at_least_one, default=3)
    parser.add_argument("--strace", action="store_true", help="count the system calls' time")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    urlset = common.urlset()
    source = common.catalog(options.rows, "csv")
    out = SCRATCH / "publish"
    facts = SCRATCH / "publish.json"
    trace = SCRATCH / "publish.strace"
    each = -(-options.rows // options.shards)
    costs: list[Cost] = []
    shares: list[float] = []
    detail: dict[str, float] = {}
    by = "its own timings"
    for _ in range(options.repeat):
        common.warm(source)
        command = common.build(
            source, common.fresh(out), "--max-urls", str(each), "--json", str(facts), command=urlset
        )
        if options.strace:
            command = _traced(command, trace)
        cost = common.measure(command)
        share = None if options.strace else share_by_timings(json.loads(facts.read_text()))
        if share is None:
            by = "strace, an upper bound"
            if not options.strace:
                traced = _traced(command, trace)
                common.fresh(out)
                cost = common.measure(traced)
            detail = seconds_in_calls(trace.read_text())
            share = 100.0 * sum(detail.values()) / cost.wall
        costs.append(cost)
        shares.append(share)
    written = len(check.shards(out))
    if written != -(-options.rows // each):
        raise BenchError(f"{written} shards written")
    for path in (facts, trace):
        path.unlink(missing_ok=True)
    shutil.rmtree(out)
    percent = statistics.median(shares)
    measured = common.summary(costs)
    says = (
        f"{options.rows:,} rows to {written:,} shards in {measured['wall']:.2f} s, of which "
        f"publication takes {percent:.1f} % (by {by})."
    )
    if detail:
        says += " Seconds: " + ", ".join(f"{name} {spent:.2f}" for name, spent in detail.items())
    told = {"rows": options.rows, "share_percent": percent, "by": by, "says": says, **measured}
    common.write_json(options.json, "publish", arguments, told)
    print(says)


def _traced(command: list[str], trace: Path) -> list[str]:
    if shutil.which("strace") is None:
        raise BenchError("strace is not installed (apt-get install strace)")
    return ["strace", "-f", "-T", "-e", f"trace={CALLS}", "-o", str(trace), *command]


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"publish: {problem}")
