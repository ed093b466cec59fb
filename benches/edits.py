"""The share of shards that do not change after a number of edits at random places.

    python benches/edits.py --rows 10M --json benches/results/edits.json

Each count of edits (a third each inserted, deleted and changed) is applied to the catalog by
itself and built, without publishing, against the former set; for packed shards, and for stable
ones of 50,000 URLs at most and of 5,000. The last line is one contiguous region.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import itertools
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
from catalog import row_count
from common import SCRATCH, SITE, BenchError

#: newer than every row of the catalog
NOW = "2026-11-20T00:00:00Z"
COUNTS = (1, 10, 100, 1_000, 10_000)
LAYOUTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("packed, 50,000", ()),
    ("stable, 50,000", ("--layout", "stable")),
    ("stable, 5,000", ("--layout", "stable", "--max-urls", "5000")),
)

#: change, loc, lastmod, old_lastmod
Change = tuple[str, str, str, str]


@dataclass(frozen=True)
class Edits:
    """The edits by row, counted from 0; an insertion comes before its row."""

    what: dict[int, str]

    @classmethod
    def scattered(cls, count: int, rows: int, seed: int) -> Edits:
        """At random places, a third of each kind."""
        places = random.Random(seed).sample(range(rows), count)
        kinds = itertools.cycle(("insert", "delete", "change"))
        return cls(dict(zip(places, kinds, strict=False)))

    @classmethod
    def region(cls, changed: int, inserted: int, deleted: int, rows: int, seed: int) -> Edits:
        """A contiguous region is changed; rows are inserted and deleted anywhere else."""
        pick = random.Random(seed)
        start = pick.randrange(rows - changed + 1)
        what = dict.fromkeys(range(start, start + changed), "change")
        for kind, count in (("insert", inserted), ("delete", deleted)):
            while count:
                place = pick.randrange(rows)
                if what.setdefault(place, kind) == kind:
                    count -= 1
        return cls(what)

    def apply(self, source: Path, target: Path) -> set[Change]:
        """Writes the edited catalog; returns the exact content of the expected change feed."""
        changes: set[Change] = set()
        with (
            source.open(newline="", encoding="utf-8") as old,
            target.open("w", newline="", encoding="utf-8", buffering=1 << 20) as new,
        ):
            new.write(old.readline())
            writer = csv.writer(new, lineterminator="\n")
            at = 0
            for place in sorted(self.what):
                new.writelines(itertools.islice(old, place - at))
                line = old.readline()
                at = place + 1
                row = next(csv.reader([line]))
                url, lastmod = row[2], row[4]
                kind = self.what[place]
                if kind == "change":
                    row[4] = NOW
                    changes.add(("changed", url, NOW, lastmod))
                    writer.writerow(row)
                elif kind == "delete":
                    changes.add(("removed", url, "", lastmod))
                else:
                    row[0], row[2], row[4] = str(place), f"{SITE}/new/{place}.html", NOW
                    changes.add(("added", row[2], NOW, ""))
                    writer.writerow(row)
                    new.write(line)
            shutil.copyfileobj(old, new, 1 << 20)
        return changes

    def held(self, shards: Sequence[dict[str, Any]]) -> int:
        """The number of previous shards that contain an edit; each row must be in one."""
        ends = list(itertools.accumulate(int(shard["urls"]) for shard in shards))
        return len({bisect.bisect_right(ends, place) for place in self.what})


def told(command: Sequence[str], facts: Path) -> dict[str, Any]:
    """Runs a build and returns its report."""
    done = subprocess.run([*command, "--json", str(facts)], capture_output=True, text=True)
    if done.returncode:
        raise BenchError(done.stderr.strip().splitlines()[-1])
    report: dict[str, Any] = json.loads(facts.read_text())
    return report


def share_unchanged(report: dict[str, Any]) -> float:
    """Of the shards of a build, between 0 and 1."""
    same = [not shard["changed"] for shard in report["shards"]]
    return sum(same) / len(same)


def table(measured: list[dict[str, Any]]) -> str:
    """One line per number of edits, one column per layout."""
    heads = [f"{one['layout']} ({one['shards']:,} shards)" for one in measured]
    lines = ["| edits | " + " | ".join(heads) + " |", "|---|" + "--:|" * len(heads)]
    for label in measured[0]["unchanged"]:
        cells = (f"{100 * one['unchanged'][label]:.1f} %" for one in measured)
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=10_000_000, help="default 10M")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    urlset = common.urlset()
    source = common.catalog(options.rows, "csv")
    folder = common.fresh(SCRATCH / "edits")
    edited, facts = folder / "edited.csv", folder / "facts.json"
    measured: list[dict[str, Any]] = []
    for number, (layout, more) in enumerate(LAYOUTS):
        command = common.build(source, folder / f"out{number}", *more, command=urlset)
        former = told(command, facts)
        measured.append({"layout": layout, "shards": len(former["shards"]), "unchanged": {}})
    scripts = {
        f"{count:,}": Edits.scattered(count, options.rows, count)
        for count in COUNTS
        if count <= options.rows
    }
    region = min(10_000, options.rows)
    scripts[f"{region:,} in one region"] = Edits.region(region, 0, 0, options.rows, 1)
    for label, edits in scripts.items():
        edits.apply(source, edited)
        for number, (_, more) in enumerate(LAYOUTS):
            out = folder / f"out{number}"
            command = common.build(edited, out, *more, "--dry-run", command=urlset)
            measured[number]["unchanged"][label] = share_unchanged(told(command, facts))
    shutil.rmtree(folder)
    says = table(measured)
    told_all = {"rows": options.rows, "layouts": measured, "says": says}
    common.write_json(options.json, "edits", arguments, told_all)
    print(says)


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"edits: {problem}")
