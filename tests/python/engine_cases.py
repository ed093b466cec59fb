"""What the tests of the engines share: rows, what is live, and kills that hit a live task."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import urlset
from conftest import SITE, read_index, read_set
from store_servers import FAULTS as STORE_FAULTS
from store_servers import Proxy, Request, Server, objects, program, use, versitygw
from test_store_publish import crawled

EXAMPLES = Path(__file__).parents[2] / "examples"
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


def clean(out: Path) -> None:
    """Removes what killed jobs have left; what is live stays, and nothing else."""
    before = live(out)
    urlset.clean(out, older_than="0s")
    must_be_whole(out)
    assert live(out) == before
    retired = json.loads((out / ".urlset/manifest.json").read_text())["retired"]
    assert {path.name for path in out.glob("*.gz")} == listed(out).union(retired)
    assert {path.name for path in (out / ".urlset").iterdir()} <= {"lock", "manifest.json"}


def listed(out: Path) -> set[str]:
    return {entry["loc"].rpartition("/")[2] for entry in read_index(out / "sitemap.xml")}


def _holding(is_held: Callable[[str], bool]) -> list[int]:
    """The other processes that have such a file open. (pathlib takes five times as long.)"""
    found = []
    for process in os.listdir("/proc"):  # noqa: PTH208
        if process.isdecimal() and int(process) != os.getpid():
            folder = f"/proc/{process}/fd"
            with suppress(OSError):  # it has ended, or belongs to another user
                for one in os.listdir(folder):  # noqa: PTH208
                    with suppress(FileNotFoundError):  # closed meanwhile
                        if is_held(os.readlink(f"{folder}/{one}")):  # noqa: PTH115
                            found.append(int(process))
                            break
    return found


def writers(out: Path) -> list[int]:
    """The processes that have the folder of an attempt open: they are writing a part."""
    mark = f"{out}/.urlset/staging-"
    return _holding(lambda place: place.startswith(mark) and "/part-" in place)


def shard_writers(out: Path) -> list[int]:
    """Those that have written a shard: not the driver, which checks the columns in this way."""
    return writers(out) if any((out / ".urlset").glob("staging-*/part-*/*.gz")) else []


def committers(out: Path) -> list[int]:
    """The processes that hold the lock of the folder after the tasks: they commit."""
    lock = f"{out}/.urlset/lock"
    if not any((out / ".urlset").glob("staging-*/*.gz")):
        return []
    return _holding(lambda place: place == lock)


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
def killing(find: Callable[[], list[int]], mark: Path | None = None) -> Iterator[list[int]]:
    """Kills one of the processes that are found, while the block runs.

    Args:
        find: the processes that may be killed now.
        mark: of :func:`paused`: the kill waits until rows wait, and then they continue.

    Returns:
        The process that a SIGKILL ended.
    """
    killed: list[int] = []
    stop = threading.Event()

    def run() -> None:
        while not killed and not stop.wait(0.002):
            found = find() if mark is None or reached(mark).exists() else []
            if found:
                killed.append(random.choice(found))
                os.kill(killed[0], signal.SIGKILL)
        if mark is not None:
            mark.touch()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def reached(mark: Path) -> Path:
    """The file that says that rows wait for ``mark``."""
    return mark.with_name(f"{mark.name}-reached")


def paused(batches: Iterator[Any], at: int, mark: Path) -> Iterator[Any]:
    """The batches; before batch ``at``, or before their end, they wait until the mark is there."""

    def wait() -> None:
        end = time.monotonic() + LIMIT
        while not mark.exists() and time.monotonic() < end:
            reached(mark).touch()
            time.sleep(0.01)

    for number, batch in enumerate(batches):
        if number == at:
            wait()
        yield batch
    wait()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A filesystem of its own, if the tests may mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no filesystem can be mounted here")
    try:
        yield folder
    finally:
        # lazily: a process of the engine may still have a file open
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fails if the block takes longer, whatever it waits for."""

    def late(*_: object) -> None:
        raise TimeoutError(f"it takes longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def follower(folder: Path) -> list[str]:
    """The URLs of somebody who has applied all change feeds, ``RUN.csv``, in their order."""
    known: set[str] = set()
    for path in sorted(folder.glob("*.csv"), key=lambda path: int(path.stem)):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                assert (row["loc"] in known) == (row["change"] != "added"), (path.name, row)
                if row["change"] == "removed":
                    known.remove(row["loc"])
                else:
                    known.add(row["loc"])
    return sorted(known)


#: when a driver is killed
PHASES = ("tasks", "commit", "published")


def killed_driver(driver: subprocess.Popen[bytes], out: Path, phase: str, delay: float = 0) -> bool:
    """Kills a driver in a phase of its job; whether it was still alive.

    What it has started ends with it, or has ended when this returns.

    Args:
        delay: the seconds from the begin of the phase to the kill.
    """
    manifest = out / ".urlset/manifest.json"

    def version() -> int | None:
        return manifest.stat().st_ino if manifest.exists() else None

    before = version()
    is_now: dict[str, Callable[[], object]] = {
        "tasks": lambda: writers(out),
        "commit": lambda: committers(out),
        "published": lambda: version() != before,
    }
    while driver.poll() is None and not is_now[phase]():
        time.sleep(0.001)
    time.sleep(delay)
    driver.kill()
    hit = driver.wait() == -signal.SIGKILL
    end = time.monotonic() + LIMIT
    while writers(out) or committers(out):
        assert time.monotonic() < end, "a process of a killed driver still works"
        time.sleep(0.05)
    return hit


def catalog(folder: Path) -> Path:
    """100 products in two Parquet files; every second one is in stock."""
    made = folder / "catalog"
    made.mkdir()
    for file in range(2):
        numbers = range(50 * file, 50 * (file + 1))
        rows = {
            "url": locs(numbers.start, numbers.stop),
            "updated_at": DATES[numbers.start : numbers.stop],
            "in_stock": [n % 2 == 0 for n in numbers],
        }
        parquet.write_table(pa.table(rows), made / f"{file}.parquet")
    return made


def run(command: list[str | Path], folder: Path, **environment: str) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    return done.stdout


def example(engine: str, folder: Path, out: Path) -> str:
    """The example of an engine in the documents, with its inputs in a folder."""
    text = (Path(__file__).parents[2] / "docs/engines.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    [code] = [block for block in blocks if f"import urlset.{engine}" in block]
    code = code.replace('"products"', f'"{folder}/products"')
    return code.replace("/mnt/shared/sitemaps", str(out))


class Place:
    """A prefix in a store; boto3 reads it, not through the proxy."""

    def __init__(self, server: Server, prefix: str) -> None:
        self.out = f"{server.url}/{prefix}"
        self._server, self._prefix = server, prefix

    def live(self) -> list[str]:
        """The URLs of the set; every sitemap that the index lists must be there."""
        found = objects(self._server.client, prefix=f"{self._prefix}/")
        return crawled(found, f"{self._prefix}/") if f"{self._prefix}/sitemap.xml" in found else []

    def generations(self, seed: int) -> Generations:
        return Generations(
            seed, self.live, lambda: urlset.Job(site=SITE, out=self.out).abort(), lambda: None
        )


class Store:
    """A real S3 server behind a proxy, in the environment of this process and of its children."""

    def __init__(self, server: Server | None, proxy: Proxy | None) -> None:
        self._server, self._proxy = server, proxy
        self.env: dict[str, str] = {}
        if server is not None and proxy is not None:
            self.env = server.through(proxy.port) | {"URLSET_STORE_TIMEOUT": "1"}

    @property
    def proxy(self) -> Proxy:
        assert self._proxy is not None
        return self._proxy

    def objects(self, name: str) -> dict[str, bytes]:
        """What a prefix contains."""
        assert self._server is not None
        return objects(self._server.client, prefix=f"{name}/")

    def folder(self, name: str) -> Place:
        """A prefix; without a server, the test is skipped."""
        if self._server is None:
            program("versitygw")
        assert self._server is not None
        return Place(self._server, name)


@contextmanager
def running_store(folder: Path) -> Iterator[Store]:
    """The store, if the server is installed: engines get their environment when they start."""
    with ExitStack() as opened, pytest.MonkeyPatch.context() as monkeypatch:
        try:
            program("versitygw")
        except pytest.skip.Exception:
            yield Store(None, None)
            return
        server = opened.enter_context(versitygw(folder))
        store = Store(server, opened.enter_context(Proxy(server.port).running()))
        use(server, monkeypatch)
        for name, value in store.env.items():
            monkeypatch.setenv(name, value)
        yield store


@contextmanager
def random_fault(proxy: Proxy, chance: random.Random) -> Iterator[list[Request]]:
    """One request fails, or all from one on; returns those that did."""
    faults = [fault for fault in STORE_FAULTS if not fault.startswith("timeout")]
    fault, at = chance.choice(faults), len(proxy.requests) + chance.randrange(1, 30)
    for_good = chance.random() < 0.5
    injected: list[Request] = []

    def choose(request: Request) -> str | None:
        if request.number != at and not (for_good and request.number > at):
            return None
        injected.append(request)
        return fault

    proxy.fault = choose
    try:
        yield injected
    finally:
        proxy.fault = lambda _: None


class Generations:
    """A set that is replaced again and again; after each fault it is one of two, URL for URL.

    Args:
        read: the URLs of the set, by other means than urlset.
        recover: completes what a killed job has begun, as the next job does.
        verify: fails if the set is not legal.
    """

    def __init__(
        self,
        seed: int,
        read: Callable[[], list[str]],
        recover: Callable[[], object],
        verify: Callable[[], object],
    ) -> None:
        self.random = random.Random(seed)
        self.current: list[str] = []
        self.hits = 0
        self._read, self._recover, self._verify = read, recover, verify

    @classmethod
    def of(cls, out: Path, seed: int) -> Generations:
        """Those in a folder."""

        def read() -> list[str]:
            return live(out) if (out / "sitemap.xml").exists() else []

        def verify() -> None:
            assert urlset.verify(out).counts == {}

        return cls(seed, read, lambda: urlset.Job(site=SITE, out=out).abort(), verify)

    def next(self, most: int = 3_000) -> tuple[int, int]:
        """The rows of the next job; they overlap with those before."""
        first = self.random.randrange(10_000)
        return first, first + self.random.randrange(most // 3, most)

    def check(self, new: tuple[int, int], *, published: bool | None) -> None:
        """What is live after a job.

        Args:
            published: whether the job has published; None if that is not known.
        """
        wanted = sorted(locs(*new))
        possible = [self.current, wanted]
        if published is None:
            assert sorted(self._read()) in possible
            self._recover()
        else:
            possible = [wanted if published else self.current]
        found = sorted(self._read())
        assert found in possible
        if found:
            self._verify()
        self.current = found
