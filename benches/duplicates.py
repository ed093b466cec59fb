"""The cost of `--duplicates drop` compared with `keep`, with 1 % repeated URLs.

python benches/duplicates.py --rows 10M --repeat 3 --json benches/results/duplicates.json
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import check
import common
from catalog import at_least_one, row_count
from common import SCRATCH, BenchError, Cost

PER_100_000 = 1_000


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=10_000_000, help="default 10M")
    parser.add_argument("--repeat", type=at_least_one, default=3)
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    urlset = common.urlset()
    source = common.catalog(options.rows, "csv", 1, "--duplicates", str(PER_100_000))
    distinct = check.distinct_urls(source)
    expected = {"keep": options.rows, "drop": distinct}
    costs: dict[str, list[Cost]] = {policy: [] for policy in expected}
    out = SCRATCH / "duplicates"
    for number in range(options.repeat):
        for policy, urls in expected.items():
            common.warm(source)
            command = common.build(
                source, common.fresh(out), "--duplicates", policy, command=urlset
            )
            costs[policy].append(common.measure(command))
            if number:
                continue
            written = sum(map(check.count_urls, check.shards(out)))
            if written != urls:
                raise BenchError(f"{policy}: {written} URLs written, {urls} expected")
    shutil.rmtree(out)
    keep, drop = common.summary(costs["keep"]), common.summary(costs["drop"])
    ratio = drop["wall"] / keep["wall"]
    says = (
        f"{options.rows:,} rows, {options.rows - distinct:,} of them duplicates: `keep` "
        f"{keep['wall']:.2f} s and {keep['peak_rss'] / 2**20:,.0f} MiB, `drop` "
        f"{drop['wall']:.2f} s and {drop['peak_rss'] / 2**20:,.0f} MiB, "
        f"{ratio:.2f} times the time."
    )
    told = {"rows": options.rows, "ratio": ratio, "keep": keep, "drop": drop, "says": says}
    common.write_json(
        options.json, "duplicates", sys.argv[1:] if arguments is None else arguments, told
    )
    print(says)


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"duplicates: {problem}")
