"""Shared by the benches: the work folder, catalogs, measured commands, the machine's description.

Nothing here imports numpy or pyarrow: catalogs are made by a process of their own.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BENCHES = Path(__file__).resolve().parent
WORK = BENCHES / "work"
#: of this process alone, so that two benches (or a test) do not share it; removed at its end
SCRATCH = WORK / f"scratch-{os.getpid()}"
SITE = "https://www.shop.example"
TOUCHED_MEMORY = 3 << 29

# A package that was installed has its bytecode; one that runs from its sources keeps it only where
# this is not set; otherwise it compiles them at each start: 27 ms.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)


class BenchError(Exception):
    """The reason why something could not be measured, in one line."""


@dataclass(frozen=True)
class Cost:
    """One run: seconds of wall clock and of CPU, bytes of memory at the peak."""

    wall: float
    cpu: float
    peak_rss: int


def measure(command: Sequence[str | Path], cwd: Path | None = None) -> Cost:
    """Runs a command to its end and returns its cost.

    Earlier writes are flushed first, so that no run pays for another's, and free memory is touched.
    Raises BenchError with the last line of its output where it fails.
    """
    WORK.mkdir(exist_ok=True)
    log = WORK / f"last-run-{os.getpid()}.log"
    os.sync()
    touch_memory()
    launcher = [sys.executable, "-I", "-S", str(BENCHES / "measure.py"), str(log)]
    done = subprocess.run(
        [*launcher, *map(str, command)], cwd=cwd, capture_output=True, text=True, check=False
    )
    output = log.read_text(errors="replace").strip() if log.exists() else ""
    log.unlink(missing_ok=True)
    if done.returncode:
        raise BenchError(f"cannot run {command[0]}: {done.stderr.strip().splitlines()[-1]}")
    told = json.loads(done.stdout)
    if told["status"]:
        last = output.splitlines()[-1] if output else "no output"
        raise BenchError(f"exit status {told['status']}: {last}")
    return Cost(told["wall"], told["cpu"], told["peak_rss"])


def touch_memory() -> None:
    """Makes a virtual machine's host back the memory that the next run will use.

    A page that the guest has not used lately costs a fault in the host, some 2 us: `cp` of 366 MB
    took 0.84 s after a pause and 0.11 s right after another `cp`. Without this a run is billed for
    the place it has in the round.
    """
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    size = min(TOUCHED_MEMORY, free // 2)
    code = f"b = bytearray({size}); b[::4096] = bytes(len(range(0, {size}, 4096)))"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False)


def summary(costs: Sequence[Cost]) -> dict[str, Any]:
    """Medians of wall and CPU, the largest peak, and every run."""
    return {
        "wall": statistics.median(cost.wall for cost in costs),
        "cpu": statistics.median(cost.cpu for cost in costs),
        "peak_rss": max(cost.peak_rss for cost in costs),
        "runs": [asdict(cost) for cost in costs],
    }


def catalog(rows: int, suffix: str, seed: int = 1, *more: str) -> Path:
    """A generated catalog (`suffix` is csv or parquet), made when it is not there yet."""
    folder = WORK / "catalogs"
    folder.mkdir(parents=True, exist_ok=True)
    marks = "".join(more).replace("--", "-")
    path = folder / f"{rows}-seed{seed}{marks}.{suffix}"
    if not path.exists():
        print(f"making {path.name}", file=sys.stderr)
        script = [sys.executable, str(BENCHES / "catalog.py")]
        options = ["--rows", str(rows), "--seed", str(seed), "--out", str(path), *more]
        done = subprocess.run([*script, *options], stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise BenchError(f"the catalog of {rows} rows could not be made")
    return path


def warm(path: Path) -> None:
    """Reads a file once, so that every run finds it in the page cache."""
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 22):
            pass


def fresh(folder: Path) -> Path:
    """The same folder, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def urlset() -> str:
    """The urlset beside this Python, else on PATH; BenchError where it cannot build."""
    beside = Path(sys.executable).parent / "urlset"
    found = str(beside) if beside.exists() else shutil.which("urlset")
    if found is None:
        raise BenchError("urlset is not installed in this environment (pip install .)")
    tried = subprocess.run([found, "build", "--help"], capture_output=True, check=False)
    if tried.returncode:
        raise BenchError("this urlset has no command `build`")
    return found


def build(
    source: Path | str, out: Path | str, *options: str, command: str | None = None
) -> list[str]:
    """The command line of a build with every check on."""
    start = [command or urlset(), "build", str(source), "--site", SITE, "--out", str(out)]
    return [*start, "--quiet", *options]


def command_line(script: str, options: Sequence[str]) -> str:
    """The command that repeats a bench; in its JSON, without the name of that file."""
    kept = list(options)
    if "--json" in kept:
        at = kept.index("--json")
        del kept[at : at + 2]
    return " ".join(["python", f"benches/{script}", *kept])


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine() -> dict[str, Any]:
    """Cores, CPU model, memory and kernel; no name of the host, no path."""
    return {
        "cores": cores(),
        "cpu": _cpu_model(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def tool_version(*command: str) -> str:
    """The first line of the version of a tool; BenchError if it is not installed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BenchError(f"{command[0]} is not installed") from None
    return (done.stdout or done.stderr).strip().splitlines()[0]


def write_json(
    path: Path | None, bench: str, options: Sequence[str] | None, told: dict[str, Any]
) -> dict[str, Any]:
    """Adds the machine and the command that repeats it to the results of a bench; returns all.

    `options` are those of the command line, of this process without them. It is written to `path`
    where there is one.
    """
    options = sys.argv[1:] if options is None else options
    head = {
        "bench": bench,
        "command": command_line(f"{bench}.py", options),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine(),
    }
    whole = {**head, **told}
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    return whole
