"""The cost of the nightly rebuild: no change, edits, change feed, --verify-staged, --sort.

    python benches/nightly.py --rows 10M --repeat 3 --json benches/results/nightly.json

All under the stable layout. The edits are 10,000 rows changed in one contiguous region, 10 inserted
and 10 deleted at random places. The change feed is compared with what was edited, row by row, in
both directions: from the catalog to the edited one and back. The catalog's rows are in the order of
their ids, which in the order of their URLs is next to none.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
from pathlib import Path
from typing import Any

import common
from catalog import at_least_one, row_count
from common import SCRATCH, BenchError, Cost
from edits import Change, Edits, told

STABLE = ("--layout", "stable")
DROP = ("--duplicates", "drop")
REGION, ANYWHERE = 10_000, 10


def state(folder: Path) -> dict[Path, tuple[int, int]]:
    """Inode and time of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def backwards(changes: set[Change]) -> set[Change]:
    """The feed of the way back."""
    kinds = {"added": "removed", "removed": "added", "changed": "changed"}
    return {(kinds[kind], loc, old, new) for kind, loc, new, old in changes}


def check_feed(path: Path, want: set[Change]) -> None:
    """BenchError unless the feed contains exactly the edits."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            (row["change"], row["loc"], row["lastmod"], row["old_lastmod"])
            for row in csv.DictReader(file)
        ]
    wrong = len(set(rows) ^ want)
    if wrong or len(rows) != len(want):
        raise BenchError(f"the change feed has {len(rows)} rows, {wrong} of them wrong or missing")


class Nightly:
    """The measured builds over one catalog."""

    def __init__(self, rows: int, repeat: int) -> None:
        self._urlset = common.urlset()
        self._source = common.catalog(rows, "csv")
        self._repeat = repeat
        self._folder = common.fresh(SCRATCH / "nightly")
        self._facts = self._folder / "facts.json"
        self._edited = self._folder / "edited.csv"
        few = min(REGION, rows // 4)
        self._edits = Edits.region(few, ANYWHERE, ANYWHERE, rows, 1)
        self._changes = self._edits.apply(self._source, self._edited)

    def _command(self, source: Path, out: Path, *options: str) -> list[str]:
        return common.build(source, out, *STABLE, *options, command=self._urlset)

    def _timed(self, source: Path, out: Path, *options: str) -> Cost:
        common.warm(source)
        return common.measure(self._command(source, out, *options))

    def rebuilds(self) -> dict[str, Any]:
        """A full build, one of the same again, full ones with --verify-staged and with --sort."""
        out = self._folder / "out"
        kinds = ("full", "unchanged", "verified", "sorted")
        costs: dict[str, list[Cost]] = {kind: [] for kind in kinds}
        for _ in range(self._repeat):
            common.fresh(out)
            costs["full"].append(self._timed(self._source, out))
            before = state(out)
            costs["unchanged"].append(self._timed(self._source, out))
            if state(out) != before:
                raise BenchError("a build of the same rows wrote a file")
            common.fresh(out)
            costs["verified"].append(self._timed(self._source, out, "--verify-staged"))
            common.fresh(out)
            costs["sorted"].append(self._timed(self._source, out, "--sort"))
        return {name: common.summary(runs) for name, runs in costs.items()}

    def rewritten(self) -> tuple[int, int, int]:
        """The numbers of shards, of shards that contain an edit, of rewritten shards."""
        out = common.fresh(self._folder / "out")
        former = told(self._command(self._source, out), self._facts)
        new = told(self._command(self._edited, out), self._facts)
        written = sum(shard["changed"] for shard in new["shards"])
        return len(new["shards"]), self._edits.held(former["shards"]), written

    def feeds(self) -> dict[str, Any]:
        """A build with the edits, without and with a change feed, there and back."""
        out, feed = common.fresh(self._folder / "out"), self._folder / "changes.csv"
        told(self._command(self._source, out, *DROP), self._facts)
        costs: dict[str, list[Cost]] = {"without": [], "with": []}
        back = backwards(self._changes)
        for _ in range(self._repeat):
            for there, home in (("without", "with"), ("with", "without")):
                for way, source, want in (
                    (there, self._edited, self._changes), (home, self._source, back),
                ):  # fmt: skip
                    more = ("--changes", str(feed)) if way == "with" else ()
                    costs[way].append(self._timed(source, out, *DROP, *more))
                    if more:
                        check_feed(feed, want)
                        feed.unlink()
        return {name: common.summary(runs) for name, runs in costs.items()}

    def close(self) -> None:
        """Removes what was built."""
        shutil.rmtree(self._folder)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=10_000_000, help="default 10M")
    parser.add_argument("--repeat", type=at_least_one, default=3)
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    nightly = Nightly(options.rows, options.repeat)
    rebuilds = nightly.rebuilds()
    shards, held, written = nightly.rewritten()
    feeds = nightly.feeds()
    nightly.close()
    kinds = ("full", "unchanged", "verified", "sorted")
    full, again, verified, ordered = (rebuilds[kind]["wall"] for kind in kinds)
    measured = {
        "unchanged_share": again / full,
        "rewritten_per_held": written / held,
        "feed_percent": 100 * (feeds["with"]["wall"] / feeds["without"]["wall"] - 1),
        "verify_percent": 100 * (verified / full - 1),
        "sort_ratio": ordered / full,
    }
    says = (
        f"{options.rows:,} rows in {shards:,} stable shards, a full build {full:.2f} s. The same "
        f"again: {again:.2f} s, {measured['unchanged_share']:.2f} of it, and no file written. "
        f"{min(REGION, options.rows // 4):,} rows changed in one region, {ANYWHERE} inserted and "
        f"{ANYWHERE} deleted anywhere: {written} shards rewritten, {held} contain an edit. "
        f"`--changes` of those edits: exact, {feeds['with']['wall']:.2f} s instead of "
        f"{feeds['without']['wall']:.2f} s, {measured['feed_percent']:+.0f} %. `--verify-staged`: "
        f"{verified:.2f} s, {measured['verify_percent']:+.0f} % of a full build. `--sort`: "
        f"{ordered:.2f} s and {rebuilds['sorted']['peak_rss'] / 2**20:,.0f} MiB instead of "
        f"{rebuilds['full']['peak_rss'] / 2**20:,.0f} MiB, {measured['sort_ratio']:.2f} times the "
        "time of a full build."
    )
    everything = {
        "rows": options.rows, "shards": shards, "held": held, "rewritten": written, **measured,
        **rebuilds, "feed": feeds, "says": says,
    }  # fmt: skip
    common.write_json(
        options.json, "nightly", sys.argv[1:] if arguments is None else arguments, everything
    )
    print(says)


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"nightly: {problem}")
