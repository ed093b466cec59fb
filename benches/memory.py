"""Peak memory of `urlset build` as the rows grow, CSV and Parquet.

python benches/memory.py --rows 200k,2M,20M --json benches/results/memory.json
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import check
import common
import report
from catalog import at_least_one, row_count
from common import SCRATCH, BenchError


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="200k,2M,20M", help="sizes (default %(default)s)")
    parser.add_argument("--repeat", type=at_least_one, default=1, help="the largest peak counts")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    sizes = sorted(row_count(size) for size in options.rows.split(","))
    urlset = common.urlset()
    out = SCRATCH / "memory"
    results = []
    for rows in sizes:
        for takes in ("csv", "parquet"):
            source = common.catalog(rows, takes)
            costs = []
            for _ in range(options.repeat):
                common.warm(source)
                costs.append(
                    common.measure(common.build(source, common.fresh(out), command=urlset))
                )
            urls = sum(check.count_urls(path) for path in check.shards(out))
            if urls != rows:
                raise BenchError(f"{urls} URLs written, {rows} expected")
            results.append({"takes": takes, "rows": rows, **common.summary(costs)})
    shutil.rmtree(out)
    print(
        report.memory_table(
            common.write_json(options.json, "memory", arguments, {"results": results})
        )
    )


if __name__ == "__main__":
    try:
        main()
    except (BenchError, ValueError) as problem:
        sys.exit(f"memory: {problem}")
