"""Pages per second of an audit, against a bare aiohttp loop, and the coverage of its intervals.

    python benches/audit.py --pages 20000 --rounds 5 --json benches/results/audit.json

nginx serves pages of 22 kB with known faults on loopback. The two take turns. The loop sends the
same requests and reads the bodies; the audit also reads the sitemaps, judges each page, keeps a
journal and computes the report. On a machine with other work the ratio of CPU time is the more
reliable one. `--coverage` simulates sites and counts how often the 95 %
intervals contain the true share (tests/python/test_audit_interval.py does it with fewer sites).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import common
from common import SCRATCH, BenchError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "python"))

CONNECTIONS = 32
#: of a page, in parts of 2.2 kB
FILLERS = 10


async def _loop(urls: list[str]) -> None:
    import aiohttp

    left = deque(urls)

    async def work(session: aiohttp.ClientSession) -> None:
        while left:
            async with session.get(left.popleft(), allow_redirects=False) as response:
                await response.read()

    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(work(session) for _ in range(CONNECTIONS)))


@dataclass(frozen=True)
class Speed:
    """Pages per second of wall clock, and of the CPU time of this process."""

    wall: float
    cpu: float


def speed_of(pages: int, work: Callable[[], None]) -> Speed:
    """The speed of one run."""
    started, used = time.perf_counter(), time.process_time()
    work()
    return Speed(pages / (time.perf_counter() - started), pages / (time.process_time() - used))


def bare(urls: list[str]) -> None:
    """The loop."""
    asyncio.run(_loop(urls))


def audited(folder: Path, pages: int) -> None:
    """An audit of all pages."""
    import urlset

    report = urlset.audit(folder, sample="all", rate=0, concurrency=CONNECTIONS, allow_private=True)
    if report.judged != pages:
        raise BenchError(f"{report.judged} pages were judged, not {pages}")


def speed(pages: int, rounds: int) -> dict[str, Any]:
    """Both, in turn."""
    from audit_site import nginx

    common.fresh(SCRATCH)
    loops, audits = [], []
    with nginx(SCRATCH, fillers=FILLERS, log=False) as site:
        folder = site.sitemaps(SCRATCH / "set", pages)
        urls = [site.loc(number) for number in range(pages)]
        # both once before, for their imports
        bare(urls[: pages // 10])
        audited(site.sitemaps(SCRATCH / "few", pages // 10), pages // 10)
        for _ in range(rounds):
            loops.append(speed_of(pages, lambda: bare(urls)))
            audits.append(speed_of(pages, lambda: audited(folder, pages)))
    pairs = list(zip(audits, loops, strict=True))
    return {
        "pages": pages,
        "connections": CONNECTIONS,
        "loop": [asdict(one) for one in loops],
        "audit": [asdict(one) for one in audits],
        "ratio": statistics.median(one.wall / other.wall for one, other in pairs),
        "cpu_ratio": statistics.median(one.cpu / other.cpu for one, other in pairs),
    }


def coverage(sites: int) -> list[dict[str, Any]]:
    """How often the intervals contain the true share, by rate, size of the sample and strata."""
    from audit_sites import simulate

    found = []
    for rate in (0.005, 0.02, 0.05, 0.2):
        for size in (400, 1_000):
            for strata in (1, 4, 12):
                rng = random.Random(f"{rate} {size} {strata}")
                whole, parts = simulate(rng, sites, rate, size, strata)
                found.append({"rate": rate, "sample": size, "strata": strata, "sites": sites,
                              "set": whole, "stratum": parts})  # fmt: skip
    return found


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--coverage", type=int, metavar="SITES", default=0)
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    told: dict[str, Any] = {}
    if options.rounds:
        told["speed"] = speed(options.pages, options.rounds)
        found = told["speed"]
        loop, audit = (statistics.median(one["wall"] for one in found[key])
                       for key in ("loop", "audit"))  # fmt: skip
        print(f"loop {loop:,.0f} pages/s, audit {audit:,.0f} pages/s: {found['ratio']:.2f}"
              f" (pages per second of CPU: {found['cpu_ratio']:.2f})")  # fmt: skip
    if options.coverage:
        told["coverage"] = coverage(options.coverage)
        for key in ("set", "stratum"):
            least = min(told["coverage"], key=lambda one: one[key])
            where = f"rate {least['rate']:.1%}, sample {least['sample']}, {least['strata']} strata"
            print(f"coverage of the interval of a {key}: at least {least[key]:.1%} ({where})")
    common.write_json(options.json, "audit", arguments, told)


if __name__ == "__main__":
    try:
        main()
    except BenchError as problem:
        sys.exit(f"audit: {problem}")
