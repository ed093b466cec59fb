"""Times whole processes over the same rows: urlset, its peers, and the limits of the machine.

    python benches/run.py --install --rows 2M --repeat 5 --json benches/results/run.json
    python benches/run.py --rows 2M --only urlset-csv-gz,igzip
    python benches/run.py --rows 2M --repeat 15 --only urlset-csv-gz,urlset-parquet-gz \\
        --against OLD/bin/urlset

Every contestant runs once in each round, so that a busy minute of the machine hits all alike; the
table has medians. A first round is not timed; its output is read back and compared with the
catalog: who did less is out. Inputs are in the page cache, earlier writes are flushed.

With --against, urlset runs in turn with another urlset, in changing order, and the table has the
ratios: of the least CPU time, which a busy machine disturbs least, and the medians over the rounds.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import check
import common
import contestants
import report
from catalog import at_least_one, row_count
from common import SCRATCH, BenchError, Cost
from contestants import Contestant


@dataclasses.dataclass
class Entry:
    """A contestant with its input and its measurements."""

    who: Contestant
    rows: int
    source: Path
    want: check.Expected
    costs: list[Cost] = dataclasses.field(default_factory=list)
    output_bytes: int = 0
    failed: str | None = None

    def told(self) -> dict[str, Any]:
        """The entry of the JSON."""
        told: dict[str, Any] = {
            "key": self.who.key,
            "label": self.who.label,
            "group": self.who.group,
            "takes": self.who.takes,
            "gzip": self.who.gzip,
            "rows": self.rows,
            "failed": self.failed,
        }
        if self.failed is None:
            measured = common.summary(self.costs)
            told["version"] = self.who.version()
            told["rows_per_second"] = self.rows / measured["wall"]
            told["output_bytes"] = self.output_bytes
            told.update(measured)
        return told


def finished_shards(rows: int, seed: int) -> tuple[Path, str]:
    """The plain shards that the limits work on, and their writer: urlset if there is one."""
    folder = common.fresh(SCRATCH / "shards")
    source = common.catalog(rows, "csv", seed)
    scratch = common.fresh(SCRATCH / "shards-made")
    try:
        maker, command = "urlset", common.build(source, scratch, "--no-gzip")
    except BenchError:
        maker = "the standard library script"
        script = str(common.BENCHES / "peers" / "stdlib.py")
        command = [sys.executable, script, str(source), str(scratch), "--plain"]
    common.measure(command)
    for path in check.shards(scratch):
        path.rename(folder / path.name)
    shutil.rmtree(scratch)
    return folder, maker


def enter(who: Contestant, rows: int, seed: int, shards: Path | None) -> Entry:
    """Readies the input of a contestant; a missing tool is found here, before the first round."""
    own_rows = max(1, rows // who.part)
    table = common.catalog(own_rows, "csv", seed)
    want = check.expected(table)
    if who.takes in ("csv", "parquet"):
        source = common.catalog(own_rows, who.takes, seed)
    else:
        assert shards is not None
        source = shards
    entry = Entry(who, own_rows, source, want)
    try:
        who.command(source, SCRATCH / who.key)
    except BenchError as error:
        entry.failed = str(error)
    return entry


def run_once(entry: Entry, out: Path) -> Cost:
    """One run into an empty folder."""
    common.fresh(out)
    if entry.who.takes == "shards":  # compressors write beside their input
        for path in entry.source.iterdir():
            os.link(path, out / path.name)
    files = entry.source.iterdir() if entry.source.is_dir() else [entry.source]
    for path in files:
        common.warm(path)
    cost = common.measure(entry.who.command(entry.source, out), cwd=entry.who.cwd)
    if entry.who.takes == "shards":
        for path in entry.source.iterdir():
            (out / path.name).unlink()
    return cost


def rounds(entries: list[Entry], repeat: int) -> None:
    """Runs all in turn: one round that is checked, then `repeat` rounds that are timed.

    The first round also loads programs and libraries and makes the machine hand out its memory,
    which later runs get for nothing. A contestant that fails once is out.
    """
    for number in range(repeat + 1):
        # who runs second finds other caches
        for entry in entries if number % 2 else entries[::-1]:
            if entry.failed:
                continue
            out = SCRATCH / entry.who.key
            try:
                cost = run_once(entry, out)
                if number == 0:
                    entry.output_bytes = check.check(out, entry.want)
                else:
                    entry.costs.append(cost)
                rate = entry.rows / cost.wall / 1e6
                said = f"{cost.wall:.2f} s, {rate:.3f} M rows/s, {cost.peak_rss / 2**20:.0f} MiB"
            except BenchError as error:
                entry.failed = said = str(error)
            shutil.rmtree(out, ignore_errors=True)
            turn = f"{number}/{repeat}" if number else "untimed"
            print(f"[{turn}] {entry.who.key}: {said}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line; 1 if nothing could be measured."""
    options = _options().parse_args(arguments)
    chosen = contestants.all_contestants()
    if options.only:
        wanted = options.only.split(",")
        unknown = set(wanted) - {who.key for who in chosen}
        if unknown:
            known = ", ".join(who.key for who in chosen)
            raise BenchError(f"--only: no {', '.join(sorted(unknown))}; there are {known}")
        chosen = [who for who in chosen if who.key in wanted]
    if options.against:
        chosen = contestants.against(chosen, options.against)
        if not chosen:
            raise BenchError("--against: --only names nothing of urlset")
    if options.install:
        contestants.install()
    shards, maker = None, None
    if any(who.takes in ("shards", "copy") for who in chosen):
        shards, maker = finished_shards(options.rows, options.seed)
    entries = [enter(who, options.rows, options.seed, shards) for who in chosen]
    rounds(entries, options.repeat)
    told = {
        "rows": options.rows,
        "repeat": options.repeat,
        "seed": options.seed,
        "shards_by": maker,
        "results": [entry.told() for entry in entries],
    }
    whole = common.write_json(options.json, "run", arguments, told)
    if options.against:
        print(report.paired_table(whole, contestants.OTHER))
    else:
        print(report.throughput_table(whole))
        print()
        print(report.targets_table([whole]))
    if shards:
        shutil.rmtree(shards)
    return 0 if any(entry.costs for entry in entries) else 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=2_000_000, help="200k, 2M (default), 10M")
    parser.add_argument("--repeat", type=at_least_one, default=3, help="timed rounds (default 3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="KEY,KEY", help="these contestants alone")
    parser.add_argument("--against", metavar="URLSET", help="the command of another urlset")
    parser.add_argument("--install", action="store_true", help="install the peers first")
    parser.add_argument("--json", type=Path, metavar="OUT")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as problem:
        sys.exit(f"run: {problem}")
