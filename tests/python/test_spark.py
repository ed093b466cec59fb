"""Spark: real sessions, real worker processes, one commit for all tasks."""

from __future__ import annotations

import csv
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import engine_cases
import pyarrow as pa
import pytest
import urlset
from conftest import SITE, read_set
from engine_cases import (
    DATES,
    EXAMPLES,
    Store,
    catalog,
    example,
    killing,
    listed,
    live,
    locs,
    must_be_whole,
    paused,
    run,
    running_store,
    writers,
)

pyspark = pytest.importorskip("pyspark", reason="the tests of Spark need pyspark")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("the tests of Spark need Java 17", allow_module_level=True)

import urlset.spark
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

pytestmark = pytest.mark.long

# their functions run in processes that cannot import them
for module in (sys.modules[__name__], engine_cases):
    cloudpickle.register_pickle_by_value(module)
URL = f"concat('{SITE}/p/', id)"
SCHEMA = StructType().add("loc", "string")
#: small, quiet, loopback only; in local mode the second number is how often a task may fail
SETTINGS = {
    "spark.master": "local[2,3]",
    "spark.driver.memory": "512m",
    # the sessions are short: optimised code does not pay
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with running_store(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory, store: Store) -> Iterator[SparkSession]:
    before = {key: os.environ.get(key) for key in ("PYSPARK_PYTHON", "SPARK_LOCAL_DIRS")}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_DIRS"] = str(tmp_path_factory.mktemp("spark"))
    builder = SparkSession.builder.appName("test_spark")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    urlset.spark.register(session)
    try:
        yield session
    finally:
        session.stop()
        gateway = pyspark.SparkContext._gateway
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends with it
        gateway.proc.wait(60)
        pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None
        for key, text in before.items():
            os.environ.pop(key) if text is None else os.environ.update({key: text})


def frame(spark: SparkSession, first: int, last: int, partitions: int = 4) -> DataFrame:
    return spark.range(first, last, numPartitions=partitions).selectExpr(f"{URL} as loc")


def save(df: DataFrame, out: Path | str, mode: str = "overwrite", **options: Any) -> None:
    given = {"site": SITE, "out": str(out), "max_urls": "100", "max_shrink": "100%"} | options
    df.write.format("urlset").mode(mode).options(**given).save()


def fails(df: DataFrame, out: Path, mode: str = "overwrite", **options: Any) -> str:
    """The message of the driver; it begins with what urlset reports, not with a Java stack."""
    with pytest.raises(PySparkException) as caught:
        save(df, out, mode, **options)
    text = str(caught.value)
    assert "org.apache.spark" not in text and "\tat " not in text, text
    line = next(line for line in text.splitlines() if line.startswith("urlset.errors."))
    return line.partition(": ")[2]


def test_partitions_are_written_and_committed_together(spark: SparkSession, out: Path) -> None:
    save(frame(spark, 0, 1_000), out)
    assert live(out) == locs(0, 1_000)  # in the order of the partitions
    assert len(listed(out)) == 4 * 3 and {path.name for path in out.glob("*.gz")} == listed(out)
    must_be_whole(out)
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir() if path.is_file()}
    save(frame(spark, 0, 1_000), out)  # the same rows change nothing
    assert {p.name: p.stat().st_mtime_ns for p in out.iterdir() if p.is_file()} == before
    save(frame(spark, 500, 1_500, 7), out, layout="stable")
    assert sorted(live(out)) == sorted(locs(500, 1_500))
    must_be_whole(out)


def test_empty_partitions(spark: SparkSession, out: Path) -> None:
    save(frame(spark, 0, 1_000, 8).where("loc like '%/p/77_'"), out)
    assert live(out) == locs(770, 780)
    assert "there are no rows" in fails(frame(spark, 0, 100).where("loc is null"), out)
    assert live(out) == locs(770, 780)
    must_be_whole(out)


def test_options_are_those_of_the_table(spark: SparkSession, out: Path) -> None:
    df = spark.range(0, 300, numPartitions=2).selectExpr(
        "id", "'a b' as word", f"array({URL}, 'x') as images", "id % 2 as odd"
    )
    df = df.selectExpr("*", f"concat('{SITE}/i/', id, '.png') as image_1")
    save(
        df, out, loc_template=f"{SITE}/{{word}}/{{id}}", image='["image_1"]', where='["odd=1"]',
        gzip="false", max_urls="75", name="things",
    )  # fmt: skip
    shards = sorted(out.glob("things-*.xml"))
    assert len(shards) == 2
    text = shards[0].read_text() + shards[1].read_text()
    assert text.count("<url>") == text.count("<image:image>") == 150
    assert f"<loc>{SITE}/a%20b/1</loc>" in text


def test_columns_of_every_type(spark: SparkSession, out: Path) -> None:
    """Spark has types that no other test uses; only some can be a lastmod."""
    df = frame(spark, 0, 10, 1).selectExpr(
        "loc", "timestamp'2026-01-02 03:04:05Z' as lastmod", "timestamp_ntz'2026-01-02' as ntz",
        "date'2026-01-02' as day", "1.5BD as dec", "map('a', 1) as m", "struct(1 as a) as s",
        "X'00' as bytes", "interval '1' day as span", "parse_json('{}') as v", "null as n",
    )  # fmt: skip
    save(df, out)
    assert live(out) == locs(0, 10)
    assert {entry["lastmod"] for entry in read_set(out)} == {"2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_ulrs": "3"}, "unknown option 'max_ulrs'; did you mean max_urls?"),
        ({"format": "csv"}, "format: is for files, and the engine has read them; omit it"),
        ({"path": "/x"}, 'save() takes no path: name the folder with .option("out", ...)'),
        ({"where": "a=1"}, "where: 'a=1' is not a JSON list of texts; write for example"
                           ' ["a=1"]'),
        ({"image": "[1]"}, "image: '[1]' is not a JSON list of texts"),
        ({"gzip": "maybe"}, "gzip: 'maybe' is not true or false"),
        ({"max_urls": "many"}, "max_urls: 'many' is not a whole number"),
        ({"layout": "x"}, "layout: 'x' is not one of packed, stable"),
        ({"site": ""}, "no site is given"),
        ({"duplicates": "drop"}, "duplicates: not in a job with several parts"),
        ({"config": "/no/such.toml"}, "/no/such.toml: no such file"),
        ({"out": "/proc/no"}, "/proc/no"),
    ],
)  # fmt: skip
def test_wrong_options(
    spark: SparkSession, out: Path, options: dict[str, str], message: str
) -> None:
    place = Path(options.pop("out", out))
    assert message in fails(frame(spark, 0, 10, 1), place, **options)
    assert not out.exists()


def test_types_that_python_cannot_get(spark: SparkSession, out: Path) -> None:
    """The driver reports them before any task runs."""
    df = frame(spark, 0, 10, 1)
    for value in ("interval '1' month", "interval '1' year"):
        message = fails(df.selectExpr("loc", f"{value} as span"), out)
        assert message.startswith("column 'span': Spark cannot pass the type 'interval ")
    for value in ("X'00'", "interval '1' day", "parse_json('{}')", "time'03:04:05'"):
        rows = df.selectExpr("loc", f"{value} as day")
        message = fails(rows, out, lastmod="day")
        assert message.startswith('the rows: --lastmod: column "day" contains neither text'), value
        save(rows, out)
        assert live(out) == locs(0, 10)
    must_be_whole(out)


def test_streams_and_reading_are_refused(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    rows = spark.readStream.format("rate").load().selectExpr(f"concat('{SITE}/', value) as loc")
    stream = rows.writeStream.format("urlset").options(site=SITE, out=str(out))
    with pytest.raises(PySparkException, match=r"urlset\.errors\.ConfigError: writeStream: a set"):
        stream.option("checkpointLocation", str(tmp_path / "state")).start().awaitTermination(60)
    with pytest.raises(PySparkException, match=r"read a set with urlset\.read"):
        spark.read.format("urlset").load()
    assert not out.exists()


def test_options_of_a_file(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    config = tmp_path / "urlset.toml"
    config.write_text(f'site = "{SITE}"\nout = "out"\nmax_urls = 10\n')
    frame(spark, 0, 40, 2).write.format("urlset").mode("overwrite").option(
        "config", str(config)
    ).save()
    assert len(listed(out)) == 4 and live(out) == locs(0, 40)


def test_other_modes(spark: SparkSession, out: Path) -> None:
    assert "append: a set is replaced as a whole" in fails(frame(spark, 0, 10), out, "append")
    with pytest.raises(PySparkException, match="ErrorIfExists"):
        save(frame(spark, 0, 10), out, "error")
    assert not out.exists()


def test_wrong_rows(spark: SparkSession, out: Path) -> None:
    save(frame(spark, 0, 100), out)
    df = frame(spark, 0, 1_000)
    # before any task runs, and without a word from the JVM
    message = fails(df.withColumnRenamed("loc", "address"), out)
    assert message.startswith("the rows: no column is named loc") and '"address"' in message
    message = fails(df.selectExpr("array(loc) as loc"), out)
    assert message.startswith('the rows: --loc: column "loc" contains lists or structs; choose')
    wrong = df.selectExpr("case when loc like '%/p/600' then 'x:' else loc end as loc")
    message = fails(wrong, out, on_invalid="fail")
    assert message.startswith("partition 2: row 101: ") and "https" in message
    for value in ("'x:'", "null", "cast(null as string)"):
        message = fails(df.selectExpr(f"{value} as loc"), out)
        assert "1,000 of 1,000 rows rejected" in message and "partition" not in message
    assert live(out) == locs(0, 100)
    must_be_whole(out)


def test_rejects_of_all_partitions(spark: SparkSession, out: Path) -> None:
    """The whole of partition 2 is rejected, and one row of each other one."""
    df = frame(spark, 0, 1_000).selectExpr(
        "case when spark_partition_id() = 2 or loc like '%/p/_00' then 'x:' else loc end as loc"
    )
    wrong = 250 + sum(1 for n in range(100, 1_000, 100) if not 500 <= n < 750)
    for limit in ("25%", wrong - 1):
        message = fails(df, out, max_rejects=str(limit))
        assert f"{wrong} of 1,000 rows rejected" in message and "rejects.csv" in message
        assert message.endswith("of partition 2, all 250 rows")
        assert not list(out.glob("*.xml"))
    rows = read_rejects(out)
    assert len(rows) == wrong
    save(df, out, max_rejects=str(wrong))
    assert len(live(out)) == 1_000 - wrong
    rows = read_rejects(out)
    by_partition = [sum(row["input"] == f"partition {n}" for row in rows) for n in range(4)]
    assert by_partition == [2, 2, 250, 2] and {row["code"] for row in rows} == {"loc.scheme"}
    must_be_whole(out)


def read_rejects(out: Path) -> list[dict[str, str]]:
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_guards_hold_over_all_partitions(spark: SparkSession, out: Path) -> None:
    save(frame(spark, 0, 1_000), out)
    assert "instead of the 1,000" in fails(frame(spark, 0, 700), out, max_shrink="20%")
    assert live(out) == locs(0, 1_000)
    must_be_whole(out)


def failing_once(marks: Path, how: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Fails in the middle of each partition, at the first attempt."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            mark = marks / str(context.partitionId())
            if number == 1 and not mark.exists():
                mark.touch()
                if how == "exit":
                    os._exit(1)
                raise ValueError("not now")
            yield batch

    return run


@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_failed_task_starts_from_the_beginning(
    spark: SparkSession, tmp_path: Path, out: Path, how: str
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    df = frame(spark, 0, 2_000).mapInArrow(failing_once(marks, how), "loc string")
    save(df, out)
    assert len(list(marks.iterdir())) == 4  # each of them failed once
    assert live(out) == locs(0, 2_000)
    must_be_whole(out)


def always(batches: Iterator[Any]) -> Iterator[Any]:
    yield next(batches)
    raise ValueError("broken for good")


def test_a_job_that_fails_is_aborted(spark: SparkSession, out: Path) -> None:
    save(frame(spark, 0, 500), out)
    with pytest.raises(PySparkException, match="broken for good"):
        save(frame(spark, 0, 2_000).mapInArrow(always, "loc string"), out)
    assert live(out) == locs(0, 500)
    must_be_whole(out)
    save(frame(spark, 100, 800), out)
    assert live(out) == locs(100, 800)


def paused_frame(df: DataFrame, at: int, mark: Path) -> DataFrame:
    """Rows that arrive a batch at a time, since a batch is larger than the buffers on its way."""
    return df.selectExpr("loc", "repeat('x', 4000) as pad").mapInArrow(
        lambda batches: paused(batches, at, mark), "loc string, pad string"
    )


def test_a_killed_worker_process(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    """SIGKILL hits a process that is writing a part; Spark runs the task again."""
    mark = tmp_path / "mark"
    with killing(lambda: writers(out), mark) as killed:
        save(paused_frame(frame(spark, 0, 3_000, 2), 5, mark), out)
    assert len(killed) == 1
    assert live(out) == locs(0, 3_000)
    must_be_whole(out)


def test_a_destination_that_the_tasks_cannot_reach(spark: SparkSession, out: Path) -> None:
    save(frame(spark, 0, 100), out)
    text = str(out)

    def hiding(batches: Iterator[Any]) -> Iterator[Any]:
        for staging in Path(text, ".urlset").glob("staging-*"):
            shutil.rmtree(staging, ignore_errors=True)
        yield from batches

    # the staging is opened after the first batch
    message = fails(frame(spark, 0, 500).mapInArrow(hiding, "loc string"), out)
    assert message.startswith("partition ") and "a folder that all machines share" in message
    assert live(out) == locs(0, 100)
    must_be_whole(out)


def test_an_object_store(spark: SparkSession, store: Store) -> None:
    place = store.folder("spark")
    save(frame(spark, 0, 1_000), place.out)
    assert place.live() == locs(0, 1_000)
    save(frame(spark, 500, 1_500, 7), place.out, layout="stable")
    assert sorted(place.live()) == sorted(locs(500, 1_500))
    before = store.objects("spark")
    with pytest.raises(PySparkException, match="broken for good"):
        save(frame(spark, 0, 2_000).mapInArrow(always, "loc string"), place.out)
    assert sorted(place.live()) == sorted(locs(500, 1_500))
    after = store.objects("spark")
    assert {key: after[key] for key in before} == before
    # shards of the failed job are content-named, and nothing lists them
    assert all(key.endswith(".xml.gz") for key in after.keys() - before.keys())


def test_of_two_jobs_the_first_commit_wins(spark: SparkSession, out: Path) -> None:
    text = str(out)

    def meanwhile(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        yield from batches
        urlset.build(pa.table({"loc": [f"{SITE}/other"]}), site=SITE, out=text)

    message = fails(frame(spark, 0, 500, 1).mapInArrow(meanwhile, "loc string"), out)
    assert "another build published since this job was planned" in message
    assert live(out) == [f"{SITE}/other"]
    must_be_whole(out)


def test_a_message_is_small_and_the_writer_can_be_pickled(out: Path) -> None:
    writer = urlset.spark.SitemapSource({"site": SITE, "out": str(out)}).writer(SCHEMA, True)
    pickled = pickle.dumps(writer)
    batches = pa.table({"loc": locs(0, 1_000)}).to_batches()
    message = pickle.loads(pickled).write(iter(batches))
    assert len(pickle.dumps(message)) < 1_000
    with pytest.raises(urlset.PublishError, match="partition 1: the engine delivered no result"):
        pickle.loads(pickled).commit([message, None])
    pickle.loads(pickled).commit([message])
    pickle.loads(pickled).abort([message, None])
    assert live(out) == locs(0, 1_000)
    must_be_whole(out)


def test_the_example_of_the_documents(
    spark: SparkSession, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"product_url": locs(0, 100), "updated_at": DATES,
            "in_stock": [True, False] * 50}  # fmt: skip
    spark.createDataFrame(pa.table(rows)).write.parquet(str(tmp_path / "products"))
    monkeypatch.chdir(tmp_path)
    exec(example("spark", tmp_path, out), {})
    assert sorted(live(out)) == sorted(locs(0, 100)[::2])
    must_be_whole(out)


def test_the_example_in_its_folder(tmp_path: Path, out: Path) -> None:
    run(
        [sys.executable, EXAMPLES / "spark_job.py", catalog(tmp_path), SITE, out], tmp_path,
        PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1",
        PYSPARK_SUBMIT_ARGS="--master local[2] --conf spark.ui.enabled=false pyspark-shell",
    )  # fmt: skip
    assert sorted(live(out)) == sorted(locs(0, 100)[::2])
    must_be_whole(out)


def test_without_spark_the_error_is_the_command() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import urlset\n"
        "assert not {'ray', 'urlset.spark', 'urlset.ray'} & set(sys.modules)\n"
        "import urlset.spark\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("pip install 'urlset[spark]'"), done.stderr
