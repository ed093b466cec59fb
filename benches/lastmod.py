"""What `--lastmod-from` costs: time, memory and state; a first build and nights with changes.

    python benches/lastmod.py --rows 10M --repeat 3 --json benches/results/lastmod.json

Five columns of the catalog decide. Builds with and without the option take turns, each in a folder
of its own: a first build, a night in which 1 % of the rows changed (a third each inserted, deleted
and changed at random places), and, with --shuffled, the same rows in another order. The counts of
the report are compared with the edits.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import common
from catalog import at_least_one, row_count
from common import SCRATCH, BenchError, Cost
from edits import Edits

COLUMNS = "id,title,price,updated_at,priority"
KINDS: dict[str, tuple[str, ...]] = {"without": (), "with": ("--lastmod-from", COLUMNS)}

MIB = 1 << 20


def shuffle(source: Path, target: Path) -> None:
    """The same rows in another order; none contains a line break."""
    with source.open("rb") as old, target.open("wb") as new:
        new.write(old.readline())
        lines = old.readlines()
        random.Random(1).shuffle(lines)
        new.writelines(lines)


def check(found: dict[str, int], night: str, changes: dict[str, int], rows: int) -> None:
    """BenchError unless the build found exactly what happened."""
    wanted = {"changed": 0, "added": 0, "gone": 0}
    if night == "first":
        wanted["added"] = rows
    elif night == "edited":
        wanted = changes
    if {key: found[key] for key in wanted} != wanted:
        raise BenchError(f"{night}: {found} instead of {wanted}")


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=10_000_000, help="default 10M")
    parser.add_argument("--repeat", type=at_least_one, default=3)
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv")
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    command = common.urlset()
    base = common.catalog(options.rows, "csv")
    folder = common.fresh(SCRATCH / "lastmod")
    edits = Edits.scattered(options.rows // 100, options.rows, 1)
    kinds = [change for change, *_ in edits.apply(base, folder / "edited.csv")]
    changes = {
        "changed": kinds.count("changed"), "added": kinds.count("added"),
        "gone": kinds.count("removed"),
    }  # fmt: skip
    sources = {"first": base, "edited": folder / "edited.csv"}
    if options.shuffled:
        sources["shuffled"] = folder / "shuffled.csv"
        shuffle(folder / "edited.csv", sources["shuffled"])
    if options.format == "parquet":
        sources = {night: to_parquet(path, folder / night) for night, path in sources.items()}
    costs: dict[str, list[Cost]] = {f"{n} {k}": [] for n in sources for k in KINDS}
    facts, size = folder / "facts.json", 0
    for turn in range(options.repeat):
        order = list(KINDS) if turn % 2 == 0 else list(KINDS)[::-1]
        outs = {kind: common.fresh(folder / kind) for kind in KINDS}
        for night, source in sources.items():
            for kind in order:
                common.warm(source)
                run = common.build(source, outs[kind], *KINDS[kind], "--json", str(facts),
                                   command=command)  # fmt: skip
                costs[f"{night} {kind}"].append(common.measure(run))
                if kind == "with":
                    report: dict[str, Any] = json.loads(facts.read_text())
                    gone = changes["gone"] if night == "shuffled" else 0
                    found = report["lastmod"]
                    check({**found, "gone": found["gone"] - gone}, night, changes, report["urls"])
                    size = max(size, found["bytes"])
                    stamps = report["urls"] + found["gone"]
    measured = {name: common.summary(runs) for name, runs in costs.items()}
    result: dict[str, Any] = {"rows": options.rows, "state_bytes_per_url": size / stamps}
    says = [
        f"{options.rows:,} rows, {options.format}, 5 columns; {size / stamps:.2f} bytes per URL"
    ]
    for night in sources:
        own, other = (measured[f"{night} {kind}"] for kind in ("with", "without"))
        pairs = zip(costs[f"{night} with"], costs[f"{night} without"], strict=True)
        ratio = sorted(a.wall / b.wall for a, b in pairs)[options.repeat // 2]
        more = own["peak_rss"] - other["peak_rss"]
        result[night] = {"ratio": ratio, "cpu_ratio": own["cpu"] / other["cpu"], "memory": more}
        says.append(
            f"{night}: {own['wall']:.2f} s instead of {other['wall']:.2f} s, {ratio:.3f} times;"
            f" CPU {own['cpu'] / other['cpu']:.3f} times; {more / MIB:+,.0f} MiB"
        )
    shutil.rmtree(folder)
    text = "; ".join(says)
    common.write_json(
        options.json, "lastmod", sys.argv[1:] if arguments is None else arguments,
        {**result, **measured, "says": text},
    )  # fmt: skip
    print("\n".join(says))


def to_parquet(source: Path, target: Path) -> Path:
    """The same rows, typed."""
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    target = target.with_suffix(".parquet")
    read = pa_csv.ReadOptions(block_size=64 << 20)
    with (
        pa_csv.open_csv(source, read_options=read) as reader,
        pq.ParquetWriter(target, reader.schema) as writer,
    ):
        for batch in reader:
            writer.write_batch(batch)
    return target


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"lastmod: {problem}")
