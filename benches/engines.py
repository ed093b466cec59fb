"""Measures the writers for Spark and Ray against writers that discard what they get.

    python benches/engines.py spark ray commit --rows 5M --runs 5 --json results/engines.json

`spark` and `ray`: rows of one Parquet catalog, on all cores and on one, and the ratio of the
medians. The runs of a round follow each other, so that the machine is the same. `commit`: the
commit of synthetic parts, whose shards are links to a few files. Needs the extra `engines`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import pickle
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import common

#: the columns that a job would select
COLUMNS = ["url", "updated_at", "priority"]
#: names of one file; ext4 allows 65,000
LINKS = 10_000
OPTIONS = {"site": common.SITE, "max_shrink": "100%"}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="+", choices=["spark", "ray", "commit"])
    parser.add_argument("--rows", type=rows, default=rows("5M"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--parts", type=int, default=10_000)
    parser.add_argument("--shards", type=int, default=200_000)
    parser.add_argument("--cores", type=int, default=common.cores())
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    if given.child is not None:
        print(json.dumps(CHILDREN[given.what[0]](json.loads(given.child))))
        return 0
    told: dict[str, Any] = {"rows": given.rows}
    for what in given.what:
        if what == "commit":
            told[what] = child(what, {"parts": given.parts, "shards": given.shards})
        else:
            told[what] = engine(what, given.rows, given.runs, given.cores)
        print(what, json.dumps(told[what], indent=2))
    common.write_json(given.json, "engines", argv, told)
    return 0


def rows(text: str) -> int:
    """``5M`` as a number."""
    units = {"k": 10**3, "M": 10**6}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text.replace("_", ""))


def child(what: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The figures of a process of its own: an engine cannot change its number of cores."""
    command = [sys.executable, __file__, what, "--child", json.dumps(settings)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise common.BenchError(f"{what}: exit status {done.returncode}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def engine(what: str, count: int, runs: int, cores: int) -> dict[str, Any]:
    """Medians in seconds on all cores and on one, and what follows from them."""
    catalog = common.catalog(count, "parquet")
    common.warm(catalog)
    told: dict[str, Any] = {"cores": cores}
    for name, number in (("all", cores), ("one", 1)):
        times = child(what, {"catalog": str(catalog), "runs": runs, "cores": number})
        medians = {key: round(statistics.median(values), 3) for key, values in times.items()}
        told[name] = {"median": medians, "runs": times}
        told[name]["ratio"] = round(medians["urlset"] / medians["discard"], 3)
    speedup = {
        key: told["one"]["median"][key] / told["all"]["median"][key]
        for key in ("urlset", "discard")
    }
    told["scaling"] = round(speedup["urlset"] / speedup["discard"], 3)
    return told


def rounds(runs: int, writers: dict[str, Callable[[Path], None]]) -> dict[str, list[float]]:
    """The seconds of each writer; a first round warms up and does not count.

    Args:
        writers: get the folder to publish to, which does not exist.
    """
    times: dict[str, list[float]] = {name: [] for name in writers}
    for number in range(runs + 1):
        for name, write in writers.items():
            out = common.fresh(common.SCRATCH / "out")
            started = time.perf_counter()
            write(out)
            if number:
                times[name].append(round(time.perf_counter() - started, 3))
    return times


def spark(settings: dict[str, Any]) -> dict[str, list[float]]:
    """The runs in a session of Spark."""
    from dataclasses import dataclass

    import urlset.spark
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(f"local[{settings['cores']}]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(common.SCRATCH))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")

    @dataclass
    class Rows(WriterCommitMessage):
        rows: int

    class DiscardWriter(DataSourceArrowWriter):
        def write(self, iterator: Iterator[Any]) -> Rows:
            return Rows(sum(batch.num_rows for batch in iterator))

    class Discard(DataSource):
        @classmethod
        def name(cls) -> str:
            return "discard"

        def writer(self, schema: Any, overwrite: bool) -> DiscardWriter:
            return DiscardWriter()

    urlset.spark.register(session)
    session.dataSource.register(Discard)
    # as many partitions as cores
    size = Path(settings["catalog"]).stat().st_size // settings["cores"] + 1
    session.conf.set("spark.sql.files.maxPartitionBytes", str(size))
    frame = session.read.parquet(settings["catalog"]).select(*COLUMNS)

    def discard(_: Path) -> None:
        frame.write.format("discard").mode("overwrite").save()

    def publish(out: Path) -> None:
        options = OPTIONS | {"out": str(out)}
        frame.write.format("urlset").mode("overwrite").options(**options).save()

    try:
        return rounds(settings["runs"], {"discard": discard, "urlset": publish})
    finally:
        session.stop()


def ray(settings: dict[str, Any]) -> dict[str, list[float]]:
    """The runs on a local cluster of Ray."""
    import ray
    import urlset.ray
    from ray import cloudpickle
    from ray.data import Datasink
    from ray.data.block import BlockAccessor

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.init(
        address="local", num_cpus=settings["cores"], include_dashboard=False, log_to_driver=False,
        logging_level="ERROR", object_store_memory=1 << 30,
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False

    class Discard(Datasink):
        def write(self, blocks: Iterable[Any], ctx: Any) -> int:
            return sum(BlockAccessor.for_block(block).to_arrow().num_rows for block in blocks)

    def data() -> Any:
        return ray.data.read_parquet(settings["catalog"], columns=COLUMNS)

    def discard(_: Path) -> None:
        data().write_datasink(Discard())

    def publish(out: Path) -> None:
        urlset.ray.write(data(), out=out, **OPTIONS)

    try:
        return rounds(settings["runs"], {"discard": discard, "urlset": publish})
    finally:
        ray.shutdown()


def commit(settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds and memory of the commit of synthetic parts, whose shards are links."""
    from urlset import Job, Part

    out = common.fresh(common.SCRATCH / "out")
    job = Job(site=common.SITE, out=out)
    import pyarrow as pa

    real = json.loads(job.write(pa.table({"loc": [f"{common.SITE}/1"]})).to_json())
    [shard] = real["outcomes"][0]["shards"]
    staging = out / ".urlset" / f"staging-{job.id}"
    source = staging / shard["path"]
    per_part = settings["shards"] // settings["parts"]
    texts = []
    for number in range(settings["parts"]):
        shards = []
        for each in range(per_part):
            digest = hashlib.blake2b(f"{number}/{each}".encode(), digest_size=16).hexdigest()
            path = f"sitemap-{digest[:16]}-{digest[16:]}.xml.gz"
            if (number * per_part + each) % LINKS:
                os.link(source, staging / path)
            else:
                source = Path(shutil.copyfile(source, staging / path))
            shards.append(shard | {"path": path, "digest": digest})
        outcome = real["outcomes"][0] | {"shards": shards, "rows": per_part, "urls": per_part}
        texts.append(json.dumps(real | {"id": f"{number:032x}", "outcomes": [outcome]}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, cpu = time.perf_counter(), time.process_time()
    parts = [Part.from_json(text) for text in texts]
    read = time.perf_counter() - started
    report = job.commit(parts)
    seconds = time.perf_counter() - started
    spent = time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert report.urls == per_part * settings["parts"]
    assert len(gzip.decompress((out / report.shards[-1].path).read_bytes())) == shard["bytes"]
    return settings | {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(spent, 2),
        "of_reading_parts": round(read, 2),
        "message_bytes": sum(map(len, texts)),
        "next_job_bytes": len(pickle.dumps(Job(site=common.SITE, out=out))),
        "peak_rss": peak * 1024,
        "rss_before": before * 1024,
        "timings": report.timings,
    }


CHILDREN: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "spark": spark, "ray": ray, "commit": commit,
}  # fmt: skip

if __name__ == "__main__":
    try:
        sys.exit(main())
    except common.BenchError as error:
        sys.exit(f"engines: {error}")
