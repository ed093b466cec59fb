"""Ray under faults: each one hits a live job; after it, the old or the new set is live.

Tasks are killed at random points, tasks and destinations fail, commits and drivers are killed.
``URLSET_FAULTS`` is the number of kills of tasks; the other tests follow it.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import urlset
from conftest import SITE
from engine_cases import (
    FAULTS,
    PHASES,
    Generations,
    Store,
    clean,
    committers,
    follower,
    full,
    killed_driver,
    killing,
    live,
    locs,
    must_be_whole,
    random_fault,
    shard_writers,
    small_disk,
    within,
    writers,
)
from test_ray import (
    cluster,  # noqa: F401  also skips this file without Ray
    dataset,
    divide,
    exits_once,
    paused_dataset,
    store,  # noqa: F401
    write,
)

import ray
import urlset.ray
from ray import cloudpickle
from ray.data._internal.execution.interfaces import TaskContext

pytestmark = pytest.mark.slow

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    with within(60 + 60 * FAULTS):
        yield


def the_next_job_succeeds(out: Path) -> None:
    write(dataset(0, 1_000), out)
    assert sorted(live(out)) == sorted(locs(0, 1_000))
    assert urlset.verify(out).counts == {}


def test_killed_tasks(tmp_path: Path, out: Path) -> None:
    """Ray runs each of them again."""
    generations = Generations.of(out, seed=1)
    for run in range(FAULTS):
        new = generations.next()
        mark = tmp_path / f"mark-{run}"
        data = paused_dataset(dataset(*new, 2), generations.random.randrange(1, 16), mark)
        with killing(lambda: writers(out), mark) as killed:
            write(data, out)
        assert len(killed) == 1
        generations.check(new, published=True)
        must_be_whole(out)
    the_next_job_succeeds(out)


def test_tasks_and_destinations_that_fail(tmp_path: Path, out: Path) -> None:
    generations = Generations.of(out, seed=2)
    for run in range(FAULTS // 2):
        new = generations.next()
        data = dataset(*new, generations.random.randrange(1, 6))
        kind = ("exit", "fail", "full")[run % 3]
        if kind == "fail":
            with pytest.raises(ray.exceptions.RayTaskError, match="division"):
                write(data.map_batches(divide, batch_format="pyarrow"), out)
        elif kind == "full":
            with full(out), pytest.raises(urlset.PublishError):
                write(data, out)
        else:
            marks = tmp_path / f"marks-{run}"
            marks.mkdir()
            write(exits_once(data, marks), out)
            assert list(marks.iterdir())
        generations.check(new, published=kind == "exit")
    the_next_job_succeeds(out)


def test_a_full_disk(tmp_path: Path) -> None:
    """The disk of the destination is full somewhere in a task, or at the commit."""
    with small_disk(tmp_path / "disk", "4m") as disk:
        out = disk / "out"
        generations = Generations.of(out, seed=3)
        for run in range(max(4, FAULTS // 10)):
            is_large = run % 2 == 1  # 2,000 files of a page of 4 KiB
            new = generations.next(30_000 if is_large else 3_000)
            with (
                pytest.raises(urlset.PublishError, match="No space left")
                if is_large
                else nullcontext()
            ):
                write(dataset(*new), out, max_urls=5 if is_large else 1_000)
            generations.check(new, published=not is_large)
        the_next_job_succeeds(out)


COMMIT = """
import pickle, sys
job, part = pickle.load(sys.stdin.buffer)
from urlset.engine import commit
commit(job, [part])
"""


def test_killed_commits(out: Path) -> None:
    """Those of the driver, which runs the tests: so they run in a process of their own."""
    generations = Generations.of(out, seed=4)
    for _ in range(FAULTS // 4):
        new = generations.next()
        sink = urlset.ray.SitemapSink(site=SITE, out=out, max_urls=5, max_shrink="100%")
        [block] = ray.get(dataset(*new, 1).to_arrow_refs())
        _, part = sink.write([block], TaskContext(task_idx=0, op_name="Write"))
        with killing(lambda: committers(out)) as killed:
            done = subprocess.run(
                [sys.executable, "-c", COMMIT], input=pickle.dumps((sink.job, part)), check=False
            )
        assert (done.returncode == 0) == (not killed)
        sink.job.abort()
        generations.hits += len(killed)
        generations.check(new, published=None if killed else True)
    assert generations.hits >= FAULTS // 8
    the_next_job_succeeds(out)


def test_a_store_that_fails(store: Store) -> None:
    """Requests of the job fail, from a random one on, in one of many ways."""
    place = store.folder("faults")
    generations = place.generations(seed=5)
    for _ in range(FAULTS // 4):
        new = generations.next()
        with random_fault(store.proxy, generations.random) as injected:
            try:
                write(dataset(*new), place.out)
            except urlset.PublishError:
                assert injected
        generations.hits += bool(injected)
        generations.check(new, published=None)
    assert generations.hits >= FAULTS // 8
    write(dataset(0, 1_000), place.out)
    assert sorted(place.live()) == sorted(locs(0, 1_000))


DRIVER = """
import sys
import pyarrow as pa, ray, urlset.ray
out, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20,
         log_to_driver=False, logging_level="ERROR")
locs = [f"https://www.shop.example/p/{n}" for n in range(first, last)]
size = -(-len(locs) // 3)
data = ray.data.from_arrow([pa.table({"loc": locs[n:n + size]}) for n in range(0, len(locs), size)])
options = dict(site="https://www.shop.example", out=out, max_urls=5, max_shrink="100%")
if len(sys.argv) > 4:
    ray.data.DataContext.get_current().shuffle_strategy = "sort_shuffle_pull_based"
    options |= {"layout": "stable", "duplicates": "drop", "changes": sys.argv[4]}
    data = urlset.ray.prepare(data.union(data), partitions=3, **options)
urlset.ray.write(data, **options)
"""


def test_killed_drivers(out: Path) -> None:
    """The driver is killed while tasks write, while it commits, and after it has published.

    Its cluster ends with it.
    """
    generations = Generations.of(out, seed=6)
    runs = max(3, FAULTS // 8)
    for run in range(runs):
        new = generations.next()
        command = [sys.executable, "-c", DRIVER, str(out), *map(str, new)]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as driver:
            hit = killed_driver(driver, out, PHASES[run % len(PHASES)])
        generations.hits += hit
        generations.check(new, published=None if hit else True)
    assert generations.hits >= runs // 2
    the_next_job_succeeds(out)


def publish_prepared(new: tuple[int, int], out: Path, changes: Path) -> urlset.Report:
    """The rows twice, prepared."""
    options: dict[str, Any] = {
        "site": SITE, "out": out, "max_urls": 5, "max_shrink": "100%",
        "layout": "stable", "duplicates": "drop", "changes": changes,
    }  # fmt: skip
    data = dataset(*new, 3)
    prepared = urlset.ray.prepare(data.union(data), partitions=3, **options)
    return urlset.ray.write(prepared, **options)


def test_killed_tasks_of_prepared_rows(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task is killed while it writes a range; Ray runs it again, and no change is lost."""
    context = ray.data.DataContext.get_current()
    monkeypatch.setattr(context, "shuffle_strategy", "sort_shuffle_pull_based")
    generations = Generations.of(out, seed=7)
    feeds = tmp_path / "feeds"
    for run in range(FAULTS // 2):
        new = generations.next()
        with killing(lambda: shard_writers(out)) as killed:
            report = publish_prepared(new, out, feeds / f"{run}.csv")
        generations.hits += len(killed)
        assert report.duplicates == report.urls == new[1] - new[0]
        generations.check(new, published=True)
        must_be_whole(out)
        assert follower(feeds) == sorted(locs(*new))
    assert generations.hits >= FAULTS // 8


def test_killed_drivers_of_prepared_rows(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At random times, most of them within the commit; then `urlset clean` leaves nothing."""
    context = ray.data.DataContext.get_current()
    monkeypatch.setattr(context, "shuffle_strategy", "sort_shuffle_pull_based")
    generations = Generations.of(out, seed=8)
    feeds = tmp_path / "feeds"
    feeds.mkdir()
    runs = max(3, FAULTS * 2 // 5)
    for run in range(runs):
        new = generations.next()
        changes = str(feeds / f"{run}.csv")
        command = [sys.executable, "-c", DRIVER, str(out), *map(str, new), changes]
        phase = ("commit", "commit", "commit", "tasks", "published")[run % 5]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as driver:
            hit = killed_driver(driver, out, phase, generations.random.uniform(0, 0.3))
        generations.hits += hit
        generations.check(new, published=None if hit else True)
    assert generations.hits >= runs // 2
    publish_prepared((0, 1_000), out, feeds / f"{runs}.csv")
    assert live(out) == sorted(locs(0, 1_000)) == follower(feeds)
    clean(out)
