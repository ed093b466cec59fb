"""What the tests of the engines share: rows, what is live, and kills that hit a live task."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urlset
from conftest import SITE, read_index, read_set

#: how long a test waits for what must happen
LIMIT = 120.0
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


def example(engine: str, folder: Path, out: Path) -> str:
    """The example of an engine in the documents, with its inputs in a folder."""
    text = (Path(__file__).parents[2] / "docs/engines.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    [code] = [block for block in blocks if f"import urlset.{engine}" in block]
    code = code.replace('"products"', f'"{folder}/products"')
    return code.replace("/mnt/shared/sitemaps", str(out))
