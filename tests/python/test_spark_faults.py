"""Spark under faults: each one hits a live job; after it, the old or the new set is live.

Tasks are killed at random points, tasks and destinations fail, commits and drivers are killed, and
tasks run twice. ``URLSET_FAULTS`` is the number of kills of tasks; the other tests follow it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pyarrow as pa
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
from store_servers import free_port
from test_spark import (
    SETTINGS,
    always,
    failing_once,
    frame,
    paused_frame,
    save,
    spark,  # noqa: F401  also skips this file without Spark
    store,  # noqa: F401
)

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

cloudpickle.register_pickle_by_value(sys.modules[__name__])
#: what Spark raises where a process ends without a word
ERRORS = (PySparkException, Py4JJavaError)


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    with within(60 + 60 * FAULTS):
        yield


def the_next_job_succeeds(spark: SparkSession, out: Path) -> None:
    save(frame(spark, 0, 1_000), out)
    assert live(out) == locs(0, 1_000)
    assert urlset.verify(out).counts == {}


def test_killed_tasks(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    """Spark runs each of them again."""
    generations = Generations.of(out, seed=1)
    for run in range(FAULTS):
        new = generations.next()
        mark = tmp_path / f"mark-{run}"
        rows = paused_frame(frame(spark, *new, 2), generations.random.randrange(1, 16), mark)
        with killing(lambda: writers(out), mark) as killed:
            save(rows, out)
        assert len(killed) == 1
        generations.check(new, published=True)
        must_be_whole(out)
    the_next_job_succeeds(spark, out)


def test_tasks_and_destinations_that_fail(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    generations = Generations.of(out, seed=2)
    for run in range(FAULTS // 2):
        new = generations.next()
        df = frame(spark, *new, generations.random.randrange(1, 6))
        kind = ("raise", "exit", "fail", "full")[run % 4]
        if kind == "fail":
            with pytest.raises(PySparkException, match="broken for good"):
                save(df.mapInArrow(always, "loc string"), out)
        elif kind == "full":
            with full(out), pytest.raises(PySparkException, match=r"urlset\.errors"):
                save(df, out)
        else:
            marks = tmp_path / f"marks-{run}"
            marks.mkdir()
            save(df.coalesce(2).mapInArrow(failing_once(marks, kind), "loc string"), out)
            assert list(marks.iterdir())
        generations.check(new, published=kind in ("raise", "exit"))
    the_next_job_succeeds(spark, out)


def test_a_full_disk(spark: SparkSession, tmp_path: Path) -> None:
    """The disk of the destination is full somewhere in a task, or at the commit."""
    with small_disk(tmp_path / "disk", "4m") as disk:
        out = disk / "out"
        generations = Generations.of(out, seed=3)
        for run in range(max(4, FAULTS // 10)):
            is_large = run % 2 == 1  # 2,000 files of a page of 4 KiB
            new = generations.next(30_000 if is_large else 3_000)
            with (
                pytest.raises(PySparkException, match="No space left")
                if is_large
                else nullcontext()
            ):
                save(frame(spark, *new, 4), out, max_urls="5" if is_large else "1000")
            generations.check(new, published=not is_large)
        the_next_job_succeeds(spark, out)


def test_killed_commits(spark: SparkSession, out: Path) -> None:
    generations = Generations.of(out, seed=4)
    for _ in range(FAULTS // 4):
        new = generations.next()
        with killing(lambda: committers(out)) as killed:
            try:
                save(frame(spark, *new, 4), out, max_urls="5")
            except ERRORS:
                assert killed
        generations.hits += len(killed)
        generations.check(new, published=None if killed else True)
    assert generations.hits >= FAULTS // 8
    the_next_job_succeeds(spark, out)


def test_a_store_that_fails(spark: SparkSession, store: Store) -> None:
    """Requests of the job fail, from a random one on, in one of many ways."""
    place = store.folder("faults")
    generations = place.generations(seed=5)
    for _ in range(FAULTS // 4):
        new = generations.next()
        with random_fault(store.proxy, generations.random) as injected:
            try:
                save(frame(spark, *new, 4), place.out)
            except PySparkException as error:
                assert injected and "urlset.errors" in str(error), error
        generations.hits += bool(injected)
        generations.check(new, published=None)
    assert generations.hits >= FAULTS // 8
    save(frame(spark, 0, 1_000), place.out)
    assert place.live() == locs(0, 1_000)


STANDALONE = """
import os, sys, time
from pyspark import TaskContext, cloudpickle
from pyspark.sql import SparkSession
import urlset.spark
master, out, marks = sys.argv[1:]
spark = (
    SparkSession.builder.master(master)
    .config("spark.driver.memory", "512m").config("spark.executor.memory", "512m")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false").config("spark.executor.cores", "1")
    .config("spark.speculation", "true").config("spark.speculation.interval", "200ms")
    .config("spark.speculation.quantile", "0.5").config("spark.speculation.multiplier", "1.1")
    .config("spark.speculation.minTaskRuntime", "500ms")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    .getOrCreate()
)
urlset.spark.register(spark)

def slow_once(folder):
    def run(batches):
        context = TaskContext.get()
        with open(f"{folder}/{context.partitionId()}-{context.attemptNumber()}", "w"):
            pass
        for number, batch in enumerate(batches):
            if number == 2 and context.partitionId() == 3 and context.attemptNumber() == 0:
                time.sleep(60)
            yield batch
    return run

for first in range(5):
    os.mkdir(f"{marks}/{first}")
    df = spark.range(first, 4000 + first, numPartitions=4).selectExpr(
        "concat('https://www.shop.example/p/', id) as loc", "repeat('x', 4000) as pad"
    ).mapInArrow(slow_once(f"{marks}/{first}"), "loc string, pad string")
    (df.write.format("urlset").mode("overwrite").option("site", "https://www.shop.example")
       .option("out", out).option("max_urls", "100").save())
"""


def test_speculation(tmp_path: Path, out: Path) -> None:
    """A task runs twice at once, in each of five jobs; one of its messages is committed."""
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(home),
        "SPARK_WORKER_DIR": str(tmp_path / "work"), "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
    }  # fmt: skip
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    spark_class = [home / "bin/spark-class"]
    marks = tmp_path / "marks"
    marks.mkdir()
    # a second attempt runs only on another host
    hosts = ["127.0.0.1", "127.0.0.2"]
    commands = [
        [*spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
         "--port", str(port), "--webui-port", "0"],
        *([*spark_class, "org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g",
           "--host", host, "--webui-port", "0", master] for host in hosts),
    ]  # fmt: skip
    with ExitStack() as running:
        for command in commands:
            log = running.enter_context((tmp_path / "log").open("ab"))
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            running.callback(process.wait)
            running.callback(process.terminate)  # a worker ends its executors
        driver = [sys.executable, "-c", STANDALONE, master, str(out), str(marks)]
        done = subprocess.run(
            driver, env=environment, capture_output=True, text=True, check=False, timeout=1_200
        )
    assert done.returncode == 0, done.stderr[-3_000:]
    for job in range(5):
        attempts = {path.name for path in (marks / str(job)).iterdir()}
        assert {"3-0", "3-1"} <= attempts  # it ran twice
    assert live(out) == locs(4, 4_004)
    must_be_whole(out)


def prepared(df: DataFrame, out: Path, **options: str) -> DataFrame:
    """The rows twice, prepared."""
    given = {"site": SITE, "out": str(out), "max_shrink": "100%"} | options
    return urlset.spark.prepare(df.union(df), partitions=3, **given)


def of_prepared(feeds: Path, run: int) -> dict[str, str]:
    """The options of prepared rows; the feed of each run is another file."""
    feeds.mkdir(exist_ok=True)
    changes = str(feeds / f"{run}.csv")
    return {"layout": "stable", "duplicates": "drop", "max_urls": "5", "changes": changes}


def test_killed_tasks_and_commits_of_prepared_rows(
    spark: SparkSession, tmp_path: Path, out: Path
) -> None:
    """A task is killed while it writes a range, or the process that commits; no change is lost."""
    generations = Generations.of(out, seed=7)
    feeds = tmp_path / "feeds"
    hits = dict.fromkeys(("task", "commit"), 0)
    for run in range(FAULTS // 2):
        new = generations.next()
        options = of_prepared(feeds, run)
        rows = prepared(frame(spark, *new, 3), out, **options)
        kind = ("task", "commit")[run % 2]
        find = shard_writers if kind == "task" else committers
        done = True
        with killing(lambda: find(out)) as killed:  # noqa: B023
            try:
                save(rows, out, **options)
            except ERRORS:
                done = False
                assert killed and kind == "commit"
        hits[kind] += len(killed)
        generations.check(new, published=True if done else None)
        if done:
            must_be_whole(out)
    assert min(hits.values()) >= FAULTS // 16
    for run in (FAULTS, FAULTS + 1):
        options = of_prepared(feeds, run)
        save(prepared(frame(spark, run, 1_000), out, **options), out, **options)
    assert live(out) == sorted(locs(FAULTS + 1, 1_000)) == follower(feeds)
    must_be_whole(out)


DRIVER = """
import sys
from pyspark.sql import SparkSession
import urlset.spark
out, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
builder = SparkSession.builder
for key, value in {settings!r}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
urlset.spark.register(spark)
df = spark.range(first, last, numPartitions=3).selectExpr(
    "concat('https://www.shop.example/p/', id) as loc")
options = {"site": "https://www.shop.example", "out": out, "max_urls": "5", "max_shrink": "100%"}
if len(sys.argv) > 4:
    options |= {"layout": "stable", "duplicates": "drop", "changes": sys.argv[4]}
    df = urlset.spark.prepare(df.union(df), partitions=3, **options)
df.write.format("urlset").mode("overwrite").options(**options).save()
"""


def test_killed_drivers(tmp_path: Path, out: Path) -> None:
    """The driver is killed while tasks write, while the job commits, and after it has published.

    The JVM ends with the driver: its standard input is closed.
    """
    generations = Generations.of(out, seed=6)
    code = DRIVER.replace("{settings!r}", repr(SETTINGS))
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    for run in range(max(3, FAULTS // 8)):
        new = generations.next()
        command = [sys.executable, "-c", code, str(out), *map(str, new)]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as driver:
            hit = killed_driver(driver, out, PHASES[run % len(PHASES)])
        generations.hits += hit
        generations.check(new, published=None if hit else True)
    assert generations.hits >= max(3, FAULTS // 8) // 2
    job = urlset.build(pa.table({"loc": locs(0, 50)}), site=SITE, out=out, max_shrink="100%")
    assert job.published and live(out) == locs(0, 50)
    # what was staged stays until `urlset clean`
    assert len(list((out / ".urlset").glob("staging-*"))) <= generations.hits
    assert not (out / ".urlset/publish.json").exists()


def test_killed_drivers_of_prepared_rows(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    """At random times, most of them within the commit; then `urlset clean` leaves nothing."""
    generations = Generations.of(out, seed=8)
    feeds = tmp_path / "feeds"
    code = DRIVER.replace("{settings!r}", repr(SETTINGS))
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    runs = max(3, FAULTS * 2 // 5)
    for run in range(runs):
        new = generations.next()
        changes = of_prepared(feeds, run)["changes"]
        command = [sys.executable, "-c", code, str(out), *map(str, new), changes]
        phase = ("commit", "commit", "commit", "tasks", "published")[run % 5]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as driver:
            hit = killed_driver(driver, out, phase, generations.random.uniform(0, 0.3))
        generations.hits += hit
        generations.check(new, published=None if hit else True)
    assert generations.hits >= runs // 2
    options = of_prepared(feeds, runs)
    save(prepared(frame(spark, 0, 1_000), out, **options), out, **options)
    assert live(out) == sorted(locs(0, 1_000)) == follower(feeds)
    clean(out)
