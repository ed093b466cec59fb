"""What the tests of the engines share: rows, what is live, and kills that hit a live task."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
def killing(out: Path, mark: Path) -> Iterator[list[int]]:
    """Kills a process that writes a part, while the block runs.

    Args:
        mark: created after the kill; until then the rows wait, see :func:`paused`.

    Returns:
        The process that a SIGKILL ended.
    """
    killed: list[int] = []
    stop = threading.Event()

    def run() -> None:
        while not killed and not stop.wait(0.01):
            for process in writers(out)[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                mark.touch()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def paused(batches: Iterator[Any], at: int, mark: Path) -> Iterator[Any]:
    """The batches; before batch ``at`` they wait until the mark is there."""
    for number, batch in enumerate(batches):
        if number == at:
            end = time.monotonic() + LIMIT
            while not mark.exists() and time.monotonic() < end:
                time.sleep(0.01)
        yield batch


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
