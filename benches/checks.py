"""The cost of all checks, compared with a build of urlset without the checks.

python benches/checks.py --rows 2M --repeat 9 --json benches/results/checks.json

Compiled out (the Cargo feature `unchecked`) are UTF-8 and NUL bytes, the count of cells, every rule
of URLs, the grammar of lastmod and priority, the CRC of what was compressed. Escaping stays, since
without it the rows would be others. Both are built here, in benches/work; it needs cargo.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import common
from catalog import at_least_one, row_count
from common import BENCHES, SCRATCH, WORK, BenchError, Cost

PROJECT = BENCHES.parent
FEATURES = {"checked": [], "unchecked": ["--features", "unchecked"]}


def package(name: str) -> Path:
    """A folder with the package `urlset` on the extension as it was built with those features."""
    folder = WORK / "builds" / name
    command = ["cargo", "build", "--release", "--quiet", "-p", "urlset-python", *FEATURES[name]]
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(WORK / "builds" / "target"),
        "PYO3_PYTHON": sys.executable,
    }
    print(f"building {name}", file=sys.stderr)
    if subprocess.run(command, cwd=PROJECT, env=environment, check=False).returncode:
        raise BenchError(f"urlset ({name}) could not be built")
    shutil.rmtree(folder, ignore_errors=True)
    left_out = shutil.ignore_patterns("__pycache__", "_core.*.so", "_core.*.pyd")
    shutil.copytree(PROJECT / "python" / "urlset", folder / "urlset", ignore=left_out)
    library = "lib_core.dylib" if sys.platform == "darwin" else "lib_core.so"
    shutil.copy(
        WORK / "builds" / "target" / "release" / library, folder / "urlset" / "_core.abi3.so"
    )
    return folder


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=row_count, default=2_000_000, help="default 2M")
    parser.add_argument("--repeat", type=at_least_one, default=9)
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    folders = {name: package(name) for name in FEATURES}
    source = common.catalog(options.rows, "csv")
    costs: dict[str, list[Cost]] = {name: [] for name in FEATURES}
    out = SCRATCH / "checks"
    versions = {}
    for _ in range(options.repeat):
        for name, folder in folders.items():
            common.warm(source)
            os.environ["PYTHONPATH"] = str(folder)
            python = [sys.executable, "-m", "urlset"]
            versions[name] = common.tool_version(*python, "--version")
            _, *rest = common.build(source, common.fresh(out), command=python[0])
            costs[name].append(common.measure([*python, *rest]))
    shutil.rmtree(out)
    if "unchecked" not in versions["unchecked"] or "unchecked" in versions["checked"]:
        raise BenchError(f"not the two builds that were meant: {versions}")
    with_checks, without = (common.summary(costs[name]) for name in FEATURES)
    wall = 100 * (with_checks["wall"] / without["wall"] - 1)
    cpu = 100 * (with_checks["cpu"] / without["cpu"] - 1)
    says = (
        f"{options.rows:,} rows: {with_checks['wall']:.3f} s ({with_checks['cpu']:.3f} s of CPU) "
        f"with all checks, {without['wall']:.3f} s ({without['cpu']:.3f} s) without: "
        f"{wall:.1f} % more time, {cpu:.1f} % more CPU."
    )
    told = {
        "rows": options.rows, "cost_percent": wall, "cpu_percent": cpu,
        "checked": with_checks, "unchecked": without, "says": says,
    }  # fmt: skip
    common.write_json(options.json, "checks", arguments, told)
    print(says)


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"checks: {problem}")
