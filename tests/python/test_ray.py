"""Ray Data: a real cluster of worker processes, one commit for all tasks."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engine_cases
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import urlset
from conftest import SITE
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
    staged,
    writers,
)

ray = pytest.importorskip("ray", reason="the tests of Ray need Ray Data")

import urlset.ray
from ray import cloudpickle
from ray import data as ray_data
from ray.data._internal.execution.interfaces import TaskContext

pytestmark = pytest.mark.long

# their functions run in processes that cannot import them
for module in (sys.modules[__name__], engine_cases):
    cloudpickle.register_pickle_by_value(module)
#: the smallest object store that Ray accepts is 75 MiB
STORE = 100 << 20


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with running_store(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def cluster(store: Store) -> Iterator[None]:
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, object_store_memory=STORE,
        log_to_driver=False, logging_level="ERROR", configure_logging=False,
        runtime_env={"env_vars": {"PYTHONWARNINGS": "ignore", **store.env}},
    )  # fmt: skip
    context = ray_data.DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = 64 << 10  # a task that writes reads several blocks
    try:
        yield
    finally:
        ray.shutdown()


def dataset(first: int, last: int, blocks: int = 4, **columns: Any) -> ray_data.Dataset:
    """Rows in a fixed number of blocks, in their order."""
    numbers = range(first, last)
    table = pa.table(
        {"loc": locs(first, last)} | {k: [v] * len(numbers) for k, v in columns.items()}
    )
    size = -(-len(numbers) // blocks)
    return ray_data.from_arrow([table.slice(at, size) for at in range(0, len(numbers), size)])


def write(data: ray_data.Dataset, out: Path | str, **options: Any) -> urlset.Report:
    return urlset.ray.write(
        data, site=SITE, out=out, **{"max_urls": 100, "max_shrink": "100%"} | options
    )


def test_tasks_write_and_one_commit_publishes(out: Path) -> None:
    report = write(dataset(0, 1_000), out)
    assert (report.rows, report.urls, report.published) == (1_000, 1_000, True)
    assert sorted(live(out)) == sorted(locs(0, 1_000))
    assert {path.name for path in out.glob("*.gz")} == listed(out)
    must_be_whole(out)
    again = write(dataset(0, 1_000), out)
    assert not any(shard.changed for shard in again.shards)
    write(dataset(500, 1_500, 7), out, layout="stable")
    assert sorted(live(out)) == sorted(locs(500, 1_500))
    must_be_whole(out)


def test_blocks_of_pandas_and_empty_blocks(out: Path) -> None:
    def some(frame: Any) -> Any:
        return frame[frame["loc"].str.contains("/p/77")]

    write(dataset(0, 1_000, 8).map_batches(some, batch_format="pandas"), out)
    assert sorted(live(out)) == sorted([f"{SITE}/p/77", *locs(770, 780)])
    for empty in (dataset(0, 100).filter(lambda row: False), ray_data.from_items([])):
        with pytest.raises(urlset.DataError, match="there are no rows"):
            write(empty, out)
    assert len(live(out)) == 11
    must_be_whole(out)


def test_texts_of_pandas_among_nan(out: Path) -> None:
    """Ray pickles such a column, as it does a column of other objects."""
    column = pd.Series([*locs(0, 50), float("nan"), None, pd.NA], dtype=object)
    frame = pd.DataFrame({"loc": column, "other": [object()] * 53})
    report = write(ray_data.from_pandas(frame), out, max_rejects=3)
    assert (report.urls, report.rejected) == (50, 3)
    assert live(out) == locs(0, 50)


def test_batches_of_different_schemas(out: Path) -> None:
    """Only if the order of the columns or the kind of their text differs, it does not matter."""
    sink = urlset.ray.SitemapSink(site=SITE, out=out)
    first, second = locs(0, 10), locs(10, 20)
    table = pa.table({"loc": first, "lastmod": DATES[:10]})
    nulls = pa.nulls(10)
    for other in (
        {"lastmod": DATES[10:20], "loc": second},
        {"loc": pa.array(second, pa.large_string()), "lastmod": nulls},
    ):
        _, text = sink.write([table, pa.table(other)], TaskContext(task_idx=3, op_name="Write"))
        assert urlset.Part.from_json(text).urls == 20
    wrong: dict[str, Any]
    for wrong in (
        {"loc": second},
        {"loc": second, "lastmod": [1] * 10},
        {"loc": second, "x": nulls},
    ):
        with pytest.raises(urlset.InputError) as caught:
            sink.write([table, pa.table(wrong)], TaskContext(task_idx=3, op_name="Write"))
        message = str(caught.value)
        assert message.startswith("partition 3: batch 2: ") and "first" in message
        assert message.endswith("bring all rows to one schema in the engine")
    sink.job.abort()


def test_wrong_options(out: Path) -> None:
    for options, message in (
        ({"max_ulrs": 3}, "unknown option 'max_ulrs'; did you mean max_urls?"),
        ({"format": "csv"}, "format: is for files"),
        ({"duplicates": "drop"}, "duplicates: not in a job with several parts"),
        ({"layout": "x"}, "layout: 'x' is not one of packed, stable"),
    ):
        with pytest.raises(urlset.ConfigError) as caught:
            write(dataset(0, 10), out, **options)
        assert message in str(caught.value)
    for function in (urlset.ray.write, urlset.ray.prepare):
        with pytest.raises(urlset.ConfigError, match="Table is not a dataset of Ray"):
            function(pa.table({"loc": locs(0, 10)}), site=SITE, out=out)
    context = ray_data.DataContext.get_current()
    context.max_errored_blocks = 1  # Ray would leave out rows
    try:
        with pytest.raises(urlset.ConfigError) as caught:
            write(dataset(0, 10), out)
    finally:
        context.max_errored_blocks = 0
    assert caught.value.code == "ray.errored_blocks"
    assert not out.exists()


def test_wrong_rows(out: Path) -> None:
    write(dataset(0, 100), out)
    # before any task runs, if the columns are known
    unknown = dataset(0, 1_000).map_batches(
        lambda batch: batch.rename_columns(["address"]), batch_format="pyarrow"
    )
    known = ray_data.from_arrow(pa.table({"address": locs(0, 1_000)}))
    for data, where in ((unknown, "partition"), (known, "the rows:")):
        with pytest.raises(urlset.ConfigError, match=f'^{where} .*there are: "address"') as caught:
            write(data, out)
        assert caught.value.code == "column.missing" and "\n" not in str(caught.value)
    # other columns in a later block
    tables = [pa.table({name: locs(0, 100)}) for name in ("loc", "address")]
    with pytest.raises(urlset.ConfigError, match=r'^partition 1: .*there are: "address"'):
        write(ray_data.from_arrow(tables), out)

    def spoil(batch: pa.Table) -> pa.Table:
        column = [loc if not loc.endswith("/p/600") else "x:" for loc in batch["loc"].to_pylist()]
        return pa.table({"loc": column})

    wrong = dataset(0, 1_000).map_batches(spoil, batch_format="pyarrow")
    with pytest.raises(urlset.DataError, match=r"^partition .: row 101: .*https"):
        write(wrong, out, on_invalid="fail")
    # Ray compares the blocks that it joins; a task may get several
    tables = [pa.table({"loc": one}) for one in (locs(0, 100), list(range(100)))]
    sink = urlset.ray.SitemapSink(site=SITE, out=out)
    context = TaskContext(task_idx=3, op_name="Write")
    with pytest.raises(urlset.Error, match=r"^partition 3: .*column 'loc' is int64") as damaged:
        sink.write(tables, context)
    sink.on_write_failed(damaged.value)
    assert "\n" not in str(damaged.value)
    assert live(out) == locs(0, 100)
    must_be_whole(out)


def test_rejects_of_all_tasks(out: Path) -> None:
    """One block is rejected as a whole."""
    tables = [pa.table({"loc": locs(0, 300)}), pa.table({"loc": ["x:"] * 50})]
    for limit in ("10%", 49):
        with pytest.raises(urlset.RejectLimitError, match=r"50 of 350 .*partition 1, all 50 rows"):
            write(ray_data.from_arrow(tables), out, max_rejects=limit)
        assert len(read_rejects(out)) == 50 and not list(out.glob("*.xml"))
    report = write(ray_data.from_arrow(tables), out, max_rejects=50)
    assert (report.rows, report.urls, report.rejected) == (350, 300, 50)
    rows = read_rejects(out)
    assert {row["code"] for row in rows} == {"loc.scheme"} and len(rows) == 50
    assert {row["input"] for row in rows} == {"partition 1"}
    must_be_whole(out)


def read_rejects(out: Path) -> list[dict[str, str]]:
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_an_error_of_the_user_stays_what_it_is(out: Path) -> None:
    write(dataset(0, 100), out)

    def broken(batch: pa.Table) -> Any:
        yield batch
        raise ZeroDivisionError("of the user")

    with pytest.raises(ZeroDivisionError, match="of the user"):
        write(dataset(0, 1_000).map_batches(broken, batch_format="pyarrow"), out)
    assert live(out) == locs(0, 100)
    must_be_whole(out)


def paused_dataset(data: ray_data.Dataset, at: int, mark: Path) -> ray_data.Dataset:
    """Rows that arrive in blocks of 100, in the process that writes them."""

    def pause(batch: pa.Table) -> Any:
        batch = batch.append_column("pad", [["x" * 1_000] * batch.num_rows])
        yield from paused((batch.slice(n, 100) for n in range(0, len(batch), 100)), at, mark)

    return data.map_batches(pause, batch_format="pyarrow", batch_size=None)


def test_a_killed_worker_process(tmp_path: Path, out: Path) -> None:
    """SIGKILL hits a process that is writing a part; Ray runs the task again from its start."""
    mark = tmp_path / "mark"
    with killing(lambda: writers(out), mark) as killed:
        report = write(paused_dataset(dataset(0, 4_000, 2), 5, mark), out)
    assert len(killed) == 1
    assert report.rows == 4_000 and sorted(live(out)) == sorted(locs(0, 4_000))
    must_be_whole(out)


def exits_once(data: ray_data.Dataset, marks: Path) -> ray_data.Dataset:
    """The process of each block ends in the middle of it, at the first attempt."""

    def run(batch: pa.Table) -> Any:
        yield batch.slice(0, 100)
        mark = marks / batch["loc"][0].as_py().rpartition("/")[2]
        if not mark.exists():
            mark.touch()
            os._exit(1)
        yield batch.slice(100)

    return data.map_batches(run, batch_format="pyarrow", batch_size=None)


def test_a_failed_attempt_starts_from_the_beginning(tmp_path: Path, out: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    write(exits_once(dataset(0, 2_000), marks), out)
    assert len(list(marks.iterdir())) == 4
    assert sorted(live(out)) == sorted(locs(0, 2_000))
    must_be_whole(out)


def test_a_retry_inside_the_process_starts_from_the_beginning(tmp_path: Path, out: Path) -> None:
    mark = tmp_path / "mark"

    def raises_once(batch: pa.Table) -> Any:
        yield batch.slice(0, 100)
        if not mark.exists():
            mark.touch()
            raise ValueError("not now")
        yield batch.slice(100)

    context = ray_data.DataContext.get_current()
    context.retried_map_errors, context.max_map_retries = True, 2
    try:
        data = dataset(0, 1_000, 1, pad="x" * 1_000)
        write(data.map_batches(raises_once, batch_format="pyarrow", batch_size=None), out)
    finally:
        context.retried_map_errors, context.max_map_retries = False, 0
    assert mark.exists() and sorted(live(out)) == sorted(locs(0, 1_000))
    must_be_whole(out)


def test_a_destination_that_the_tasks_cannot_reach(out: Path) -> None:
    write(dataset(0, 100), out)

    def hiding(batch: pa.Table) -> pa.Table:
        import shutil

        for staging in (out / ".urlset").glob("staging-*"):
            shutil.rmtree(staging, ignore_errors=True)
        return batch

    with pytest.raises(urlset.PublishError, match=r"^partition .*all machines share") as caught:
        write(dataset(0, 500).map_batches(hiding, batch_format="pyarrow"), out)
    assert caught.value.code == "job.closed"
    assert live(out) == locs(0, 100)
    must_be_whole(out)


def test_an_object_store(store: Store) -> None:
    place = store.folder("ray")
    report = write(dataset(0, 1_000), place.out)
    assert report.urls == 1_000 and sorted(place.live()) == sorted(locs(0, 1_000))
    write(dataset(500, 1_500, 7), place.out, layout="stable")
    assert sorted(place.live()) == sorted(locs(500, 1_500))
    before = store.objects("ray")
    with pytest.raises(ray.exceptions.RayTaskError, match="division"):
        write(dataset(0, 100).map_batches(divide, batch_format="pyarrow"), place.out)
    assert store.objects("ray") == before


def divide(batch: pa.Table) -> Any:
    return batch.num_rows // 0


def test_of_two_jobs_the_first_commit_wins(out: Path) -> None:
    def meanwhile(batch: pa.Table) -> pa.Table:
        urlset.build(pa.table({"loc": [f"{SITE}/other"]}), site=SITE, out=out)
        return batch

    with pytest.raises(urlset.ConflictError):
        write(dataset(0, 500, 1).map_batches(meanwhile, batch_format="pyarrow"), out)
    assert live(out) == [f"{SITE}/other"]
    must_be_whole(out)


def test_the_sink_of_a_user(out: Path) -> None:
    sink = urlset.ray.SitemapSink(site=SITE, out=out)
    dataset(0, 100).write_datasink(sink)
    assert sink.report.urls == 100 and live(out) == locs(0, 100)
    unused = urlset.ray.SitemapSink(site=SITE, out=out)
    assert staged(out) == [f"staging-{unused.job.id}"]
    unused.job.abort()
    must_be_whole(out)


def test_the_example_of_the_documents(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "products").mkdir()
    rows = pa.table({"product_url": locs(0, 100), "updated_at": DATES})
    parquet.write_table(rows, tmp_path / "products/1.parquet")
    exec(example("ray", tmp_path, out), {})
    assert capsys.readouterr().out.endswith("100\n")
    assert sorted(live(out)) == sorted(locs(0, 100))
    must_be_whole(out)


def test_the_example_in_its_folder(tmp_path: Path, out: Path) -> None:
    job = [sys.executable, EXAMPLES / "ray_job.py", catalog(tmp_path), SITE, out]
    assert "100 URLs in " in run(job, tmp_path)
    assert sorted(live(out)) == sorted(locs(0, 100))
    must_be_whole(out)


def test_without_ray_the_error_is_the_command() -> None:
    code = "import sys; sys.modules['ray'] = None\nimport urlset\nimport urlset.ray\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("pip install 'urlset[ray]'"), done.stderr
