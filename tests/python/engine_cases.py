"""What the tests of the engines share: rows, what is live, and kills that hit a live task."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import urlset
from conftest import SITE, read_index, read_set

#: how long a test waits for what must happen
LIMIT = 120.0
#: runs of the slow tests
FAULTS = int(os.environ.get("URLSET_FAULTS", "100"))
#: of 100 rows; the same date in all rows would be a finding
DATES = [f"2026-01-{1 + number % 28:02}" for number in range(100)]


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
    left = [str(path) for path in (out / ".urlset").glob("staging-*/**/*")]
    assert staged(out) == [], left
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


def committers(out: Path) -> list[int]:
    """The processes that hold the lock of the folder after the tasks: they commit."""
    found = []
    parts = list((out / ".urlset").glob("staging-*/*.gz"))
    for process in Path("/proc").iterdir() if parts else ():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            places = [str(one.readlink()) for one in (process / "fd").iterdir()]
        except OSError:
            continue
        if f"{out}/.urlset/lock" in places:
            found.append(int(process.name))
    return found


@contextmanager
def full(out: Path) -> Iterator[None]:
    """The staging of a job is a folder that nobody can write to, as on a full or broken disk."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(0.005):
            for staging in (out / ".urlset").glob("staging-*"):
                if staging.is_dir():  # a file in its place: root may write to any folder
                    with suppress(OSError):
                        staging.rename(staging.with_name("gone"))
                        staging.write_text("")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        shutil.rmtree(out / ".urlset/gone", ignore_errors=True)
        for staging in (out / ".urlset").glob("staging-*"):
            if staging.is_file():  # written after the job was aborted
                staging.unlink()


@contextmanager
def killing(
    out: Path, mark: Path, find: Callable[[Path], list[int]] = writers
) -> Iterator[list[int]]:
    """Kills a process that writes a part, while the block runs.

    Args:
        find: the processes that may be killed now.
        mark: created after the kill; until then the rows wait, see :func:`paused`.

    Returns:
        The process that a SIGKILL ended.
    """
    killed: list[int] = []
    stop = threading.Event()

    def run() -> None:
        while not killed and not stop.wait(0.01):
            for process in find(out)[:1]:
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


def example(engine: str, folder: Path, out: Path) -> str:
    """The example of an engine in the documents, with its inputs in a folder."""
    text = (Path(__file__).parents[2] / "docs/engines.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    [code] = [block for block in blocks if f"import urlset.{engine}" in block]
    code = code.replace('"products"', f'"{folder}/products"')
    return code.replace("/mnt/shared/sitemaps", str(out))


class Generations:
    """A set that is replaced again and again; after each fault it is one of two, URL for URL."""

    def __init__(self, out: Path, seed: int) -> None:
        self.out = out
        self.random = random.Random(seed)
        self.current: list[str] = []
        self.hits = 0

    def next(self) -> tuple[int, int]:
        """The rows of the next job; they overlap with those before."""
        first = self.random.randrange(10_000)
        return first, first + self.random.randrange(1_000, 3_000)

    def check(self, new: tuple[int, int], *, published: bool | None) -> None:
        """What is live after a job.

        Args:
            published: whether the job has published; None if that is not known.
        """
        wanted = sorted(locs(*new))
        possible = [self.current, wanted]
        if published is None:
            assert self._live() in possible
            # the next job completes what was begun
            urlset.Job(site=SITE, out=self.out).abort()
        else:
            possible = [wanted if published else self.current]
        found = self._live()
        assert found in possible
        if found:
            assert urlset.verify(self.out).counts == {}
        self.current = found

    def _live(self) -> list[str]:
        return sorted(live(self.out)) if (self.out / "sitemap.xml").exists() else []
