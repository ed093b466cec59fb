"""Random attacks on urlset, for as long as you like.

    scripts/torture --minutes 20 --seed 1      all kinds in turn
    scripts/torture --kinds inputs,state       some of them
    scripts/torture --start 1200 --seed 1      goes on where a run ended
    scripts/torture --case inputs:1-37         one case again, as a failure names it

Cases are numbered; the number and the seed make all that is random in a case, but for the moments
at which signals meet a process. A failure is printed when it happens. At the end a table lists the
cases of each kind. Exit status: 0 nothing failed, 1 something did, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import kinds
from .case import Case, Failed, Skipped

#: failures that are printed in full; all are counted
SHOWN = 200


def find_kinds() -> dict[str, tuple[Callable[[Case], None], int]]:
    """The function and the weight of each kind, by its name."""
    found = {}
    for module in pkgutil.iter_modules(kinds.__path__):
        loaded = importlib.import_module(f"{kinds.__name__}.{module.name}")
        found[module.name] = (loaded.run, getattr(loaded, "WEIGHT", 1))
    return found


class Runner:
    """Runs cases and counts their outcomes."""

    def __init__(self, scratch: Path, keep: bool) -> None:
        self.scratch = scratch
        self.keep = keep
        self.cases: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self._lock = threading.Lock()

    def run(self, kind: str, seed: str, attack: Callable[[Case], None]) -> None:
        """Runs one case; any exception is a failure, also a defect of the case itself."""
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=self.scratch))
        why = ""
        skipped = False
        try:
            attack(Case(kind, seed, folder))
        except Skipped:
            skipped = True
        except Failed as error:
            why = str(error)
        except Exception:  # noqa: BLE001 # reported with its traceback; the other cases continue
            why = "the case itself failed:\n" + traceback.format_exc()
        with self._lock:
            self.cases[kind] += 1
            self.skipped[kind] += skipped
            self.failed[kind] += bool(why)
            if why and self.failed.total() <= SHOWN:
                print(f"FAILED {kind}:{seed}: {why}", flush=True)
                print(f"  again: scripts/torture --case {kind}:{seed}", flush=True)
                if self.keep:
                    print(f"  its files: {folder}", flush=True)
        if not (why and self.keep):
            shutil.rmtree(folder, ignore_errors=True)

    def table(self) -> str:
        """Cases of each kind."""
        lines = [f"{'kind':12} {'cases':>7} {'skipped':>8} {'failed':>7}"]
        for kind in sorted(self.cases):
            counts = (self.cases[kind], self.skipped[kind], self.failed[kind])
            lines.append(f"{kind:12} {counts[0]:7} {counts[1]:8} {counts[2]:7}")
        totals = (self.cases.total(), self.skipped.total(), self.failed.total())
        return "\n".join([*lines, f"{'all':12} {totals[0]:7} {totals[1]:8} {totals[2]:7}"])


def main() -> int:
    """The command line."""
    known = find_kinds()
    parser = argparse.ArgumentParser(
        prog="scripts/torture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=2, help="start no case after that [2]")
    parser.add_argument("--cases", type=int, help="start no more than so many")
    parser.add_argument("--seed", default="1", help="of all that is random [1]")
    parser.add_argument("--start", type=int, default=0, metavar="CASE", help="the first case [0]")
    parser.add_argument("--kinds", default=",".join(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="at once")
    parser.add_argument("--case", metavar="KIND:SEED", help="this case alone")
    parser.add_argument("--keep", action="store_true", help="keep the files of what failed")
    options = parser.parse_args()
    if options.case:
        kind, _, seed = options.case.partition(":")
        plan = [kind]
    else:
        plan = options.kinds.split(",")
    unknown = sorted(set(plan) - known.keys())
    if unknown or options.jobs < 1 or options.start < 0:
        parser.error(f"no such kind: {', '.join(unknown)}" if unknown else "a number is too small")
    scratch = Path(tempfile.mkdtemp(prefix="urlset-torture-"))
    runner = Runner(scratch, options.keep)
    try:
        if options.case:
            runner.run(kind, seed, known[kind][0])
        else:
            _run_all(runner, [(k, known[k][0]) for k in plan for _ in range(known[k][1])], options)
    finally:
        if not (options.keep and runner.failed):
            shutil.rmtree(scratch, ignore_errors=True)
    print(runner.table())
    return 1 if runner.failed.total() else 0


def _run_all(
    runner: Runner,
    plan: list[tuple[str, Callable[[Case], None]]],
    options: argparse.Namespace,
) -> None:
    """Starts cases in the order of their numbers until the time is over."""
    deadline = time.monotonic() + 60 * options.minutes
    room = threading.Semaphore(options.jobs)
    last = None if options.cases is None else options.start + options.cases
    number = options.start

    def one(number: int) -> None:
        kind, attack = plan[number % len(plan)]
        try:
            runner.run(kind, f"{options.seed}-{number}", attack)
        finally:
            room.release()

    with ThreadPoolExecutor(options.jobs) as threads:
        try:
            while time.monotonic() < deadline and number != last:
                room.acquire()
                threads.submit(one, number)
                number += 1
        except KeyboardInterrupt:
            print("stopping: the cases at hand end first", flush=True)
    print(f"go on with: scripts/torture --seed {options.seed} --start {number}")


if __name__ == "__main__":
    sys.exit(main())
