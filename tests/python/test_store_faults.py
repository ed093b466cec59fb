"""Every request of a publication fails in every way, and builds are killed at every request.

After each fault boto3 looks at the store: what the index lists exists, and is the old set or the
new one; the next build succeeds. A proxy between urlset and versitygw injects the faults.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
import urlset
from conftest import SITE
from store_servers import BUCKET, FAULTS, Proxy, Request, Server, objects
from test_store_publish import crawled, urls
from urlset.destination import store_publication, uploads
from urlset.transport import store

pytestmark = pytest.mark.long

#: one fault, or one for each attempt from then on
ONCE, ALWAYS = "once", "always"
#: the requests of the builds below, and a few more that follow a fault
REQUESTS = range(1, 22)
KINDS = [(fault, how) for fault in FAULTS for how in (ONCE, ALWAYS)]
#: faults that a persistent loop of waits makes slow: once is enough
SLOW = {"timeout-before", "timeout-after"}


@dataclass
class Injector:
    """Injects a fault into one request of a build, or kills the build there."""

    number: int = 0
    fault: str | None = None
    how: str = ONCE
    kill: Callable[[], None] | None = None
    first: int = 0
    injected: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> str | None:
        number = request.number - self.first
        is_hit = number == self.number or (
            self.how == ALWAYS and self.injected and request.path == self.injected[0].path
            and request.method == self.injected[0].method
        )  # fmt: skip
        if not is_hit:
            return None
        self.injected.append(request)
        if self.kill is not None:
            self.kill()
            return "reset-before"
        return self.fault


class Shop:
    """A catalog, a bucket, and builds of the one to the other through a proxy."""

    def __init__(self, server: Server, folder: Path, proxy: Proxy) -> None:
        self.server, self.folder, self.proxy = server, folder, proxy
        self.env = server.environ(URLSET_STORE_TIMEOUT="1", **server.through(proxy.port))
        self.started = 0

    def start(self, first: int, last: int) -> subprocess.Popen[str]:
        self.started += 1
        catalog = self.folder / f"catalog-{self.started}.csv"
        catalog.write_text("loc\n" + "\n".join(urls(first, last)))
        command = [sys.executable, "-m", "urlset", "build", str(catalog), "--site", SITE]
        command += ["--out", f"s3://{BUCKET}/maps", "--max-urls", "100", "--max-shrink", "100%"]
        command += ["--max-sitemaps", "2"]
        return subprocess.Popen(
            command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def build(self, first: int, last: int) -> urlset.PublishError | None:
        """A build in this process, through the proxy; how it failed."""
        rows = pa.table({"loc": urls(first, last)})
        try:
            urlset.build(
                rows, site=SITE, out=f"s3://{BUCKET}/maps", max_urls=100, max_sitemaps=2,
                max_shrink="100%",
            )  # fmt: skip
        except urlset.PublishError as error:
            return error
        return None

    def check(self, *sets: tuple[int, int]) -> tuple[int, int]:
        """Which of the sets is live, by an independent client; all of it must be there."""
        found = objects(self.server.client)
        # the first index commits; the second one may still be that of the other set
        indexes = [key.removeprefix("maps/") for key in found if key.endswith(".xml")]
        if "sitemap.xml" not in indexes:
            assert (0, 0) in sets, "there is no index"
            return (0, 0)
        listed = {index: crawled(found, "maps/", index) for index in indexes}
        firsts = [each for each in sets if listed["sitemap.xml"] == urls(*each)[:200]]
        assert len(firsts) == 1, listed["sitemap.xml"][:1]
        for index, content in listed.items():
            parts = [urls(*each)[200:] for each in sets] if index != "sitemap.xml" else []
            assert index == "sitemap.xml" or content in parts, (index, content[:1])
        return firsts[0]


@pytest.fixture
def shop(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with Proxy(s3.port).running() as proxy:
        shop = Shop(s3, tmp_path, proxy)
        for name in ("URLSET_STORE_TIMEOUT", "AWS_ENDPOINT_URL"):
            monkeypatch.setenv(name, shop.env[name])
        monkeypatch.setattr(store, "MAX_RETRIES", 2)  # fewer and shorter waits
        for module in (uploads, store_publication):
            monkeypatch.setattr(module, "PAUSE", 0.02)
        yield shop


def attack(shop: Shop, injector: Injector, old: tuple[int, int], new: tuple[int, int]) -> bool:
    """A build with a fault, its outcome, and the next build; whether the fault was injected."""
    injector.first = len(shop.proxy.requests)
    shop.proxy.fault = injector
    if injector.kill is None:
        error = shop.build(*new)
    else:
        process = shop.start(*new)
        injector.kill = lambda: os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=300)
    shop.proxy.fault = lambda _: None
    live = shop.check(old, new)
    if injector.kill is None:
        text = str(error)
        if error is None:
            assert live == new, injector
        elif "previous set is still live" in text or "nothing was published" in text:
            assert live == old, text
        elif "the new set is live" in text:
            assert live == new, text
    assert shop.build(*new) is None, injector
    assert shop.check(new) == new
    return bool(injector.injected)


def run_faults(shop: Shop, plan: list[tuple[int, str | None, str]]) -> int:
    """Runs one build for each fault, each after the one before it; returns how many were hit."""
    old, injected = (0, 0), 0
    for step, (number, fault, how) in enumerate(plan):
        # every set has other URLs, every third one is the first build of an empty bucket
        if step % 5 == 4:
            for key in objects(shop.server.client):
                shop.server.client.delete_object(Bucket=BUCKET, Key=key)
            old = (0, 0)
        new = (1_000 * (step + 1), 1_000 * (step + 1) + 250 + 100 * (step % 2))
        kill = (lambda: None) if fault is None else None
        injected += attack(shop, Injector(number, fault, how, kill), old, new)
        old = new
    return injected


def test_a_sample_of_faults(shop: Shop) -> None:
    plan: list[tuple[int, str | None, str]] = []
    for position, (fault, how) in enumerate(KINDS):
        if fault not in SLOW or how == ONCE:
            plan.append((1 + position * 5 % 16, fault, how))
    plan += [(number, None, ONCE) for number in (1, 6, 8, 11, 12, 14)]
    assert run_faults(shop, plan) >= 20


@pytest.mark.parametrize("fault", ["409", "412"])
def test_a_read_without_a_condition_that_is_refused(shop: Shop, fault: str) -> None:
    """Codes of a condition that does not hold, for requests that have none."""
    job = urlset.Job(site=SITE, out=f"s3://{BUCKET}/maps", max_urls=100)
    shop.proxy.fault = lambda request: fault if request.method in ("GET", "HEAD") else None
    with pytest.raises(urlset.PublishError) as caught:
        job.write(pa.table({"loc": urls(0, 150)}))
    assert "try again" in str(caught.value) and caught.value.exit_status == 3
    shop.proxy.fault = lambda _: None
    job.commit([job.write(pa.table({"loc": urls(0, 150)}))])
    shop.check((0, 150))


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*FAULTS, None])
def test_every_request_and_every_fault(shop: Shop, fault: str | None) -> None:
    """Together more than 500 faults, with both sets, and the first build of an empty bucket."""
    hows = (ONCE,) if fault is None or fault in SLOW else (ONCE, ALWAYS)
    plan = [(number, fault, how) for _ in range(2) for number in REQUESTS for how in hows]
    hit = run_faults(shop, plan)
    print(f"{fault}: {hit} faults injected")
    assert hit >= 28 * len(hows)


class Meeting:
    """Two writes of the index wait for each other: both builds have read the old one."""

    def __init__(self) -> None:
        self._both, self._lock, self._arrived = threading.Barrier(2), threading.Lock(), 0

    def __call__(self, request: Request) -> str | None:
        if request.method == "PUT" and request.path.endswith("/sitemap.xml"):
            with self._lock:
                self._arrived += 1
                is_first = self._arrived <= 2
            if is_first:
                self._both.wait(timeout=120)
        return None


def race(shop: Shop, rounds: int) -> None:
    """Two builds, of different rows and of the same ones in turn: one wins, the other says so."""
    shop.env["URLSET_STORE_TIMEOUT"] = "120"  # a write waits for the other build
    assert shop.build(0, 150) is None
    for number in range(1, rounds + 1):
        shop.proxy.fault = Meeting()
        start = 1_000 * number
        sets = [(first, first + 150) for first in (start, start + 500 * (number % 2))]
        processes = [shop.start(*each) for each in sets]
        ends = [process.communicate(timeout=300)[1] for process in processes]
        statuses = [process.returncode for process in processes]
        assert sorted(statuses) == [0, 3], ends
        assert "[publish.conflict]" in ends[statuses.index(3)], ends
        assert crawled(objects(shop.server.client), "maps/") == urls(*sets[statuses.index(0)])


def test_two_builds_at_once(shop: Shop) -> None:
    race(shop, 4)


@pytest.mark.slow
def test_fifty_races(shop: Shop) -> None:
    race(shop, 50)
