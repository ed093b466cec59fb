"""What the tests of the engines share: rows, what is live, and kills that hit a live task."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import urlset
from conftest import SITE, read_index, read_set

#: how long a test waits for what must happen
LIMIT = 120.0


def locs(first: int, last: int) -> list[str]:
    return [f"{SITE}/p/{number}" for number in range(first, last)]


def live(out: Path) -> list[str]:
    """The URLs of the set, in the order of the index."""
    return [entry["loc"] for entry in read_set(out)]


def staged(out: Path) -> list[str]:
    return sorted(path.name for path in (out / ".urlset").glob("staging*"))


def must_be_whole(out: Path) -> None:
    """What is live is legal, nothing else is there, and nothing stays of the jobs."""
    assert urlset.verify(out).counts == {}
    assert staged(out) == []
    assert not (out / ".urlset/publish.json").exists()


def listed(out: Path) -> set[str]:
    return {entry["loc"].rpartition("/")[2] for entry in read_index(out / "sitemap.xml")}


def writers(out: Path) -> list[int]:
    """The processes that have the folder of an attempt open: they are writing a part."""
    found = []
    mark = f"{out}/.urlset/staging-"
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            places = [str(one.readlink()) for one in (process / "fd").iterdir()]
        except OSError:
            continue  # it has ended, or belongs to another user
        if any(place.startswith(mark) and "/part-" in place for place in places):
            found.append(int(process.name))
    return found


@contextmanager
def killing(
    find: Callable[[], list[int]], kills: int = 1, delay: float = 0.0
) -> Iterator[list[int]]:
    """Kills processes while the block runs: the list contains those that a SIGKILL ended.

    Args:
        find: the processes that may be killed now.
        delay: seconds between the first sight and the kill.
    """
    killed: list[int] = []
    stop = threading.Event()

    def run() -> None:
        while len(killed) < kills and not stop.wait(0.005):
            for process in find()[:1]:
                if process in killed:
                    continue
                stop.wait(delay)
                if process not in find():
                    continue  # it ended before: no hit
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.append(process)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
