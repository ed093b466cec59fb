"""A job with several parts: real processes write, one commit makes the whole set live."""

from __future__ import annotations

import contextlib
import gzip
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import urlset
from conftest import SITE, files, read_index, read_set
from store_servers import Server
from urlset import Job, Part

SPAWN = multiprocessing.get_context("spawn")


def table(first: int, last: int, **columns: Any) -> pa.Table:
    locs = [f"{SITE}/p/{number}" for number in range(first, last)]
    return pa.table({"loc": locs} | {name: [value] * len(locs) for name, value in columns.items()})


def locs(first: int, last: int) -> list[str]:
    return [f"{SITE}/p/{number}" for number in range(first, last)]


def plan(out: Path, **options: Any) -> Job:
    return Job(site=SITE, out=out, **{"max_urls": 100, "max_shrink": "100%"} | options)


def staged(out: Path) -> list[str]:
    return sorted(path.name for path in (out / ".urlset").glob("staging*"))


def write_part(pickled: bytes, first: int, last: int) -> str:
    """A task: receives the job as a pickle, returns the part as JSON."""
    os.chdir("/")
    part: Part = pickle.loads(pickled).write(table(first, last))
    return part.to_json()


def commit_parts(pickled: bytes, parts: list[str]) -> dict[str, Any]:
    report = pickle.loads(pickled).commit(Part.from_json(text) for text in parts)
    return dict(report.to_dict())


@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_processes_write_and_another_one_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    monkeypatch.chdir(
        tmp_path
    )  # the tasks run in another folder, so a relative path must become absolute
    out = tmp_path / "out"
    pickled = pickle.dumps(plan(Path("out"), layout=layout))
    ranges = [(0, 1_000), (1_000, 1_250), (1_250, 1_250), (1_250, 3_000)]
    with SPAWN.Pool(3) as pool:
        parts = pool.starmap(write_part, [(pickled, *each) for each in ranges])
        assert not list(out.glob("*.xml*"))  # nothing is live before the commit
        report = pool.apply(commit_parts, (pickled, parts))
    assert [entry["loc"] for entry in read_set(out)] == locs(0, 3_000)
    assert (report["rows"], report["urls"], report["published"]) == (3_000, 3_000, True)
    for path in out.glob("*.gz"):
        # sitemap-<16 digits>-<16 digits>.xml.gz
        first, second = path.name.removesuffix(".xml.gz").split("-")[1:]
        assert len(bytes.fromhex(first)) == len(bytes.fromhex(second)) == 8
    assert urlset.verify(out).counts == {}
    assert sorted(p.name for p in (out / ".urlset").iterdir()) == ["lock", "manifest.json"]
    # a second job with the same rows changes nothing
    before = files(out)
    job = plan(out, layout=layout)
    again = job.commit([job.write(table(*each)) for each in ranges])
    assert not any(shard.changed for shard in again.shards) and files(out) == before
    assert staged(out) == []


def test_relative_paths_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path
) -> None:
    """A job may be committed in a process with another working directory."""
    (tmp_path / "driver").mkdir()
    monkeypatch.chdir(tmp_path / "driver")
    job = plan(
        out, ordered=True, duplicates="drop", changes="changes.csv", rejects="rejects.csv",
        report=Path("page.html"), max_rejects=1,
    )  # fmt: skip
    parts = [job.write(pa.table({"loc": [SITE, "x:"]})).to_json()]
    monkeypatch.chdir(tmp_path)
    commit_parts(pickle.dumps(job), parts)
    written = {"changes.csv", "rejects.csv", "page.html"}
    assert {path.name for path in (tmp_path / "driver").iterdir()} == written
    assert {path.name for path in tmp_path.iterdir()} == {"driver", "out"}


def test_the_same_urls_as_one_build(tmp_path: Path) -> None:
    job = plan(tmp_path / "parts")
    report = job.commit([job.write(table(0, 250)), job.write(table(250, 777))])
    whole = urlset.build(table(0, 777), site=SITE, out=tmp_path / "one", max_urls=100)
    assert read_set(tmp_path / "parts") == read_set(tmp_path / "one")
    assert (report.rows, report.urls) == (whole.rows, whole.urls) == (777, 777)


def test_a_job_over_the_set_of_one_build(out: Path) -> None:
    """The first shard of a part has the number, and here the bytes, of a live one."""
    urlset.build(table(0, 250), site=SITE, out=out, max_urls=100)
    job = plan(out)
    report = job.commit([job.write(table(0, 150)), job.write(table(150, 250))])
    assert report.published and [entry["loc"] for entry in read_set(out)] == locs(0, 250)
    assert not list(out.glob("sitemap-0000*")) and urlset.verify(out).counts == {}


@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_a_job_is_small_with_a_large_live_set(out: Path, layout: str) -> None:
    shards = 1_000
    first = plan(out, layout=layout, max_urls=1)
    assert len(first.commit([first.write(table(0, shards))]).shards) == shards
    job = plan(out, layout=layout, max_urls=1)
    assert len(pickle.dumps(job)) < len(pickle.dumps(first)) + 35 * shards
    report = job.commit([pickle.loads(pickle.dumps(job)).write(table(1, shards + 1))])
    assert sum(shard.changed for shard in report.shards) == 1
    assert [entry["loc"] for entry in read_set(out)] == locs(1, shards + 1)


def test_the_order_of_the_index_is_that_of_the_parts(out: Path) -> None:
    job = plan(out)
    late, early = job.write(table(500, 600)), job.write(table(0, 100))
    job.commit([early, late])
    assert [entry["loc"] for entry in read_set(out)] == locs(0, 100) + locs(500, 600)


def test_a_part_is_small_and_json(out: Path) -> None:
    job = plan(out)
    part = job.write(table(0, 1_000))
    text = part.to_json()
    assert Part.from_json(text) == part == pickle.loads(pickle.dumps(part))
    assert len(text) < 10 * 400 and str(out) not in text
    content = json.loads(text)
    assert content["job"] == job.id and (part.rows, part.urls) == (1_000, 1_000)
    for wrong in ("", "[]", "{}", "null", text.replace('"outcomes":[{', '"outcomes":[{"x":1,')):
        with pytest.raises(urlset.ConfigError) as caught:
            Part.from_json(wrong)
        assert caught.value.code == "job.part"


def test_empty_parts(out: Path) -> None:
    def nothing() -> Iterator[pa.RecordBatch]:
        yield from ()

    job = plan(out)
    parts = [job.write(nothing()), job.write(table(0, 0)), job.write(table(0, 5)), job.write([])]
    assert [part.urls for part in parts] == [0, 0, 5, 0]
    assert job.commit(parts).urls == 5 and len(read_set(out)) == 5
    job = plan(out)
    with pytest.raises(urlset.DataError) as caught:
        job.commit([job.write(nothing())])
    assert caught.value.code == "rows.none"
    assert len(read_set(out)) == 5
    job.abort()
    assert staged(out) == []


def test_parts_that_are_refused(tmp_path: Path, out: Path) -> None:
    job, other = plan(out), plan(out)
    part, foreign = job.write(table(0, 10)), other.write(table(10, 20))
    for parts, why in (([part, part], "twice"), ([part, foreign], "another job")):
        with pytest.raises(urlset.ConfigError, match=why) as caught:
            job.commit(parts)
        assert caught.value.code == "job.part" and caught.value.exit_status == 2
    assert not list(out.glob("*.xml"))
    job.commit([part])
    with pytest.raises(urlset.PublishError) as closed:
        job.commit([part])
    assert closed.value.code == "job.closed"
    with pytest.raises(urlset.PublishError) as closed:
        job.write(table(0, 10))
    assert closed.value.code == "job.closed"
    job.abort([part, None])
    assert len(read_set(out)) == 10


def test_a_task_that_ran_twice(out: Path) -> None:
    """A retry or a speculative run: one of its parts is committed, and the other is not listed."""
    job = plan(out)
    first, second = job.write(table(0, 250)), job.write(table(0, 250))
    lost = job.write(table(250, 400))
    assert lost.urls == 150
    job.commit([second])
    assert first.id != second.id
    assert [entry["loc"] for entry in read_set(out)] == locs(0, 250)
    listed = {entry["loc"].rpartition("/")[2] for entry in read_index(out / "sitemap.xml")}
    assert {path.name for path in out.glob("*.gz")} == listed
    assert staged(out) == []


def test_a_lost_attempt_that_goes_on_after_the_commit_leaves_nothing(out: Path) -> None:
    """A speculative run: Spark ends it some time after the job."""
    job = plan(out)
    part = job.write(table(0, 2_000))

    def rows() -> Iterator[pa.RecordBatch]:
        yield from table(0, 1_000).to_batches()
        job.commit([part])
        yield from table(1_000, 2_000).to_batches()

    with pytest.raises(urlset.PublishError):
        job.write(rows())
    assert staged(out) == []
    assert [entry["loc"] for entry in read_set(out)] == locs(0, 2_000)


def test_equal_shards_of_different_parts_share_a_file(out: Path) -> None:
    job = plan(out)
    report = job.commit([job.write(table(0, 100)), job.write(table(0, 100))])
    assert report.urls == 200 and len(list(out.glob("*.gz"))) == 1


def fail(pickled: bytes) -> None:
    pickle.loads(pickled).write(pa.table({"x": [1]}), name="task 3")


def test_an_error_of_a_task_reaches_the_driver(out: Path) -> None:
    job = plan(out, loc="no_such_column")
    with SPAWN.Pool(1) as pool, pytest.raises(urlset.ConfigError, match="task 3") as caught:
        pool.apply(fail, (pickle.dumps(job),))
    assert caught.value.code == "column.missing" and caught.value.exit_status == 2
    assert caught.value.input == "task 3"
    for kind in (urlset.Error, urlset.ConflictError):
        error = kind("at row 3", code="x.y", row=3, column="c")
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.__dict__) == (kind, "at row 3", error.__dict__)


def test_a_function_of_a_user_may_use_the_package() -> None:
    assert pickle.loads(pickle.dumps(urlset)) is urlset


def test_abort(out: Path) -> None:
    job = plan(out)
    job.commit([job.write(table(0, 250))])
    before = files(out)
    job = plan(out)
    part = job.write(table(250, 500))
    assert staged(out) == [f"staging-{job.id}"]
    pickle.loads(pickle.dumps(job)).abort([part])
    assert files(out) == before and staged(out) == []
    with pytest.raises(urlset.PublishError) as caught:
        job.commit([part])
    assert caught.value.code == "job.closed"
    job.abort()  # again


def test_an_abort_while_a_task_still_writes(out: Path) -> None:
    """Files appear in the staging until it is gone."""
    for _ in range(20):
        job = plan(out)
        job.write(table(0, 2_000))
        staging = out / ".urlset" / f"staging-{job.id}"
        written: list[int] = []

        def write(staging: Path = staging, written: list[int] = written) -> None:
            number = 0
            with contextlib.suppress(FileNotFoundError):
                while True:
                    (staging / f"late-{number}").touch()
                    number += 1
                    written.append(number)
                    time.sleep(0.0005)

        task = threading.Thread(target=write)
        task.start()
        while not written:
            time.sleep(0.0005)
        job.abort()
        task.join()
        assert staged(out) == []


def test_another_build_in_between_wins(out: Path) -> None:
    job = plan(out)
    part = job.write(table(0, 100))
    assert urlset.build(table(500, 800), site=SITE, out=out, max_urls=100).published
    with pytest.raises(urlset.ConflictError) as caught:
        job.commit([part])
    assert (caught.value.code, caught.value.exit_status) == ("publish.conflict", 3)
    assert isinstance(caught.value, urlset.PublishError)
    assert [entry["loc"] for entry in read_set(out)] == locs(500, 800)
    # and the second of two jobs
    one, two = plan(out), plan(out)
    parts = one.write(table(0, 100)), two.write(table(100, 200))
    one.commit([parts[0]])
    with pytest.raises(urlset.ConflictError):
        two.commit([parts[1]])
    assert [entry["loc"] for entry in read_set(out)] == locs(0, 100)
    two.abort()


def test_other_builds_leave_the_staging_of_a_job(out: Path) -> None:
    job = plan(out, name="a")
    part = job.write(table(0, 100))
    urlset.build(table(0, 10), site=SITE, out=out, name="b")
    urlset.build(table(0, 10), site=SITE, out=out)
    job.commit([part])
    assert len(read_set(out, "a.xml")) == 100 and len(read_set(out, "b.xml")) == 10
    with pytest.raises(urlset.ConfigError):
        urlset.build(table(0, 1), site=SITE, out=out, name=f"staging-{job.id}")


def test_the_lock_is_held_during_commit_only(out: Path) -> None:
    job = plan(out)
    part = job.write(table(0, 100))
    holder = (
        "import sys, time, pyarrow as pa, urlset\n"
        "def rows():\n"
        "    yield pa.record_batch({'loc': [sys.argv[1] + '/1']})\n"
        "    print(flush=True)\n"
        "    time.sleep(60)\n"
        "urlset.build(rows(), site=sys.argv[1], out=sys.argv[2])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, SITE, str(out)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert job.write(table(100, 200)).urls == 100
        with pytest.raises(urlset.PublishError) as caught:
            job.commit([part])
        assert caught.value.code == "output.locked"
        process.kill()
    assert job.commit([part]).published


def rejecting(first: int, last: int, wrong: int) -> pa.Table:
    return pa.table({"loc": locs(first, last) + ["x:"] * wrong})


@pytest.mark.parametrize("limit", ["10%", 19])
def test_rejects_count_over_all_parts(out: Path, limit: str | int) -> None:
    """One part may have many, and the limit is that of the whole job."""
    job = plan(out, max_rejects=limit)
    parts = [job.write(rejecting(0, 10, 10)), job.write(rejecting(10, 200, 0))]
    report = job.commit(parts)
    assert (report.rows, report.urls, report.rejected) == (210, 200, 10)
    lines = (out / ".urlset/rejects.csv").read_text().splitlines()
    assert len(lines) == 11 and report.rejects["path"] == str(out / ".urlset/rejects.csv")
    job = plan(out, max_rejects=limit)
    parts = [job.write(rejecting(0, 10, 10)), job.write(rejecting(10, 20, 10))]
    for _ in range(2):  # the commit can be repeated
        with pytest.raises(urlset.RejectLimitError) as caught:
            job.commit(parts)
        assert caught.value.code == "rejects.limit" and "rejects.csv" in str(caught.value)
        assert len((out / ".urlset/rejects.csv").read_text().splitlines()) == 21
    assert len(read_set(out)) == 200
    job.abort()
    assert staged(out) == []


def test_a_staged_file_that_is_gone_or_short(out: Path) -> None:
    for damage, code in ((Path.unlink, "publish.vanished"), (_cut, "output.damaged")):
        job = plan(out)
        part = job.write(table(0, 250))
        damage(next((out / ".urlset" / f"staging-{job.id}").glob("*.gz")))
        with pytest.raises(urlset.PublishError) as caught:
            job.commit([part])
        assert caught.value.code == code
        job.abort()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_a_part_whose_numbers_do_not_add_up(out: Path) -> None:
    job = plan(out)
    text = job.write(table(0, 250)).to_json()
    text = text.replace('"urls":250', '"urls":251').replace('"rows":250', '"rows":251')
    wrong = Part.from_json(text)
    with pytest.raises(urlset.PublishError) as caught:
        job.commit([wrong])
    assert caught.value.code == "internal.fates"


def test_the_guards_hold_over_all_parts(out: Path) -> None:
    job = plan(out)
    job.commit([job.write(table(0, 500)), job.write(table(500, 1_000))])
    job = plan(out, max_shrink="20%")
    with pytest.raises(urlset.DataError) as caught:
        job.commit([job.write(table(0, 400)), job.write(table(500, 800))])
    assert caught.value.code == "publish.shrank" and len(read_set(out)) == 1_000


@pytest.mark.parametrize(
    "options",
    [{"duplicates": "drop"}, {"duplicates": "fail"}, {"sort": True},
     {"alternate_group": "g", "lang_column": "l"}],
)  # fmt: skip
def test_options_that_need_all_rows_in_one_place(out: Path, options: dict[str, Any]) -> None:
    with pytest.raises(urlset.ConfigError) as caught:
        plan(out, **options)
    assert caught.value.code == "job.option" and next(iter(options)) in str(caught.value)
    assert not out.exists()


def test_a_file_with_sets_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "urlset.toml"
    config.write_text(f'site = "{SITE}"\nout = "out"\n[[set]]\nname = "a"\ninput = "a.csv"\n')
    with pytest.raises(urlset.ConfigError) as caught:
        Job(config=config)
    assert caught.value.code == "job.option"


@pytest.mark.parametrize("split_index", ["one", "each"])
def test_values_of_a_split_are_joined(out: Path, split_index: str) -> None:
    job = plan(out, split_by="kind", split_index=split_index)
    parts = [
        job.write(pa.concat_tables([table(0, 150, kind="a"), table(150, 200, kind="b")])),
        job.write(pa.concat_tables([table(200, 250, kind="b"), table(250, 300, kind="a")])),
    ]
    report = job.commit(parts)
    if split_index == "one":
        assert len(read_set(out)) == 300
    else:
        assert [index.path for index in report.indexes] == ["sitemap-a.xml", "sitemap-b.xml"]
        wanted = locs(0, 150) + locs(250, 300)
        assert [entry["loc"] for entry in read_set(out, "sitemap-a.xml")] == wanted
        assert len(read_set(out, "sitemap-b.xml")) == 100
    job = plan(out, split_by="kind", max_groups=2, split_index=split_index)
    with pytest.raises(urlset.DataError) as caught:
        job.commit([job.write(table(0, 9, kind="a")), job.write(table(9, 18, kind="b")),
                    job.write(table(18, 27, kind="c"))])  # fmt: skip
    assert caught.value.code == "split.too_many"


def test_the_staged_set_is_verified_and_a_dry_run_publishes_nothing(out: Path) -> None:
    job = plan(out, verify_staged=True, dry_run=True)
    report = job.commit([job.write(table(0, 250))])
    assert not report.published and report.urls == 250
    assert not list(out.glob("*.xml*")) and staged(out) == []
    job = plan(out, verify_staged=True)
    assert job.commit([job.write(table(0, 250)), job.write(table(250, 300))]).published


def test_shards_of_the_previous_job_stay_for_one_more(out: Path) -> None:
    generations = []
    for start in (0, 1_000, 2_000):
        job = plan(out)
        job.commit([job.write(table(start, start + 150))])
        generations.append({path.name for path in out.glob("*.gz")})
    assert len(generations[0]) == 2
    assert generations[0] < generations[1] and not generations[0] & generations[2]
    # a build in one process numbers its shards, and replaces those of the job
    urlset.build(table(0, 150), site=SITE, out=out, max_urls=100, max_shrink="100%")
    names = ["sitemap-00001.xml.gz", "sitemap-00002.xml.gz"]
    assert sorted(path.name for path in out.glob("*.gz")) == names


SLOW_TASK = """
import pickle, sys, time, pyarrow as pa
def rows():
    for number in range(10_000):
        yield pa.record_batch({"loc": [f"https://www.shop.example/p/{number}"] * 100})
        if number == 50:
            print(flush=True)
            time.sleep(60)
pickle.loads(bytes.fromhex(sys.argv[1])).write(rows())
"""


def test_a_killed_task_leaves_nothing_that_is_listed(out: Path) -> None:
    job = plan(out)
    command = [sys.executable, "-c", SLOW_TASK, pickle.dumps(job).hex()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as task:
        assert task.stdout is not None
        task.stdout.readline()
        time.sleep(0.2)
        task.send_signal(signal.SIGKILL)
    folder = out / ".urlset" / f"staging-{job.id}"
    assert list(folder.glob("part-*"))  # it was running
    job.commit([job.write(table(0, 250))])
    assert [entry["loc"] for entry in read_set(out)] == locs(0, 250)
    assert staged(out) == []


DYING_COMMIT = """
import os, pickle, sys
from urlset import Part
left = [int(sys.argv[2])]
def dying(call):
    def counted(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            os._exit(9)
        return call(*args, **kwargs)
    return counted
job = pickle.loads(bytes.fromhex(sys.argv[1]))
parts = [Part.from_json(text) for text in sys.argv[3:]]
for name in ('replace', 'unlink', 'rmdir'):
    setattr(os, name, dying(getattr(os, name)))
job.commit(parts)
"""


def killed_commit(out: Path, step: int) -> tuple[Job, list[Part]]:
    """A job over a live set whose commit was killed at one of its renames and removals."""
    job = plan(out)
    job.commit([job.write(table(0, 250))])
    job = plan(out)
    parts = [job.write(table(1_000, 1_150)), job.write(table(1_150, 1_300))]
    texts = [part.to_json() for part in parts]
    command = [sys.executable, "-c", DYING_COMMIT, pickle.dumps(job).hex(), str(step), *texts]
    assert subprocess.run(command, check=False).returncode in (0, 9)
    return job, parts


@pytest.mark.parametrize("step", range(14))
def test_a_commit_that_is_killed_is_completed(tmp_path: Path, step: int) -> None:
    """Killed at any step: the old set is live, or the next build completes the new one."""
    out = tmp_path / "out"
    job, parts = killed_commit(out, step)
    was_begun = (out / ".urlset/publish.json").exists()
    try:
        job.commit(parts)
    except urlset.PublishError as error:
        assert error.code in ("publish.conflict", "job.closed") and (was_begun or step > 8)
    assert [entry["loc"] for entry in read_set(out)] == locs(1_000, 1_300)
    job.abort()
    assert urlset.verify(out).counts == {} and staged(out) == []
    assert not (out / ".urlset/publish.json").exists()


@pytest.mark.parametrize("step", range(14))
def test_an_abort_after_a_killed_commit(tmp_path: Path, step: int) -> None:
    """Engines abort after a commit that failed: what the journal needs stays."""
    out = tmp_path / "out"
    job, _ = killed_commit(out, step)
    job.abort()
    new = plan(out)  # completes what was begun
    live = [entry["loc"] for entry in read_set(out)]
    assert live in (locs(0, 250), locs(1_000, 1_300))
    assert urlset.verify(out).counts == {} and staged(out) == [f"staging-{new.id}"]
    assert new.commit([new.write(table(5_000, 5_100))]).published


@pytest.mark.parametrize("step", range(14))
def test_clean_after_a_killed_commit(tmp_path: Path, step: int) -> None:
    """It removes the staging of a dead job, but not what the journal needs."""
    out = tmp_path / "out"
    killed_commit(out, step)
    was_begun = (out / ".urlset/publish.json").exists()
    urlset.clean(out, older_than="0s")
    assert was_begun or staged(out) == []
    new = plan(out)  # completes what was begun
    live = [entry["loc"] for entry in read_set(out)]
    assert live == (locs(1_000, 1_300) if was_begun or step > 8 else locs(0, 250))
    assert new.commit([new.write(table(5_000, 5_100))]).published
    urlset.clean(out, older_than="0s")
    assert staged(out) == []


def write_error(job: Job) -> str:
    try:
        job.write(table(0, 10))
    except urlset.ConfigError as error:
        return f"{error.code}: {error}"
    return ""


def test_a_fork_of_a_process_that_has_used_a_store(s3: Server) -> None:
    """It would wait for ever for threads that it does not have."""
    job = Job(site=SITE, out=f"{s3.url}/forked")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        message = pool.apply_async(write_error, [job]).get(60)
    assert message.startswith("store.forked: s3://") and "get_context('spawn')" in message
    with SPAWN.Pool(1) as pool:
        assert pool.apply_async(write_error, [job]).get(60) == ""
    job.abort()


def test_compressed_bytes_are_those_of_the_files(out: Path) -> None:
    job = plan(out)
    report = job.commit([job.write(table(0, 250))])
    for shard in report.shards:
        data = (out / shard.path).read_bytes()
        assert (shard.compressed_bytes, shard.bytes) == (len(data), len(gzip.decompress(data)))


def test_the_example_of_the_documents(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/jobs.md").read_text()
    code = text.split("```python\n")[1].split("```")[0].replace("/srv/sitemaps", "out")
    (tmp_path / "example.py").write_text(code)
    for number in (1, 2):
        rows = table(number * 100, number * 100 + 50).rename_columns(["product_url"])
        parquet.write_table(rows, tmp_path / f"products-{number}.parquet")
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr
    assert [entry["loc"] for entry in read_set(tmp_path / "out")] == locs(100, 150) + locs(200, 250)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a JSON document has values."""
    yield at
    keys = value if isinstance(value, dict) else range(len(value) if type(value) is list else 0)
    for key in keys:
        yield from places(value[key], (*at, key))


#: what a part that somebody has edited may contain; MISSING removes the value
MISSING = object()
WRONG = [
    MISSING, None, True, 0, -1, 10**30, 1.5, float("nan"), "", "../../x", "/etc/passwd", "\ud800",
    "\0", "</loc>", [], [[]], ["x"], {}, {"a": 1},
]  # fmt: skip


@pytest.mark.parametrize("ordered", [False, True])
def test_a_part_that_was_edited(out: Path, ordered: bool) -> None:
    """It is refused, or what is live is right; the next job always reads the manifest."""
    options: dict[str, Any] = {
        "ordered": ordered, "split_by": "brand", "max_urls": 4, "max_rejects": "50%",
    }  # fmt: skip
    rows = pa.table({"loc": [*locs(100, 111), "x:"], "brand": ["a", "b"] * 6})
    before = rows.slice(0, 1)

    def written() -> tuple[Job, Any, Part]:
        job = plan(out, **options)
        first = json.loads(job.write(rows).to_json())
        return job, first, job.write(pa.table({"loc": locs(200, 203), "brand": ["a"] * 3}))

    first_job = plan(out, **options)
    first_job.commit([first_job.write(before)])
    job, content, other = written()
    refused = 0
    for place in [*places(content)][1:]:
        for wrong in WRONG:
            edited = json.loads(json.dumps(content))
            holder = edited
            for key in place[:-1]:
                holder = holder[key]
            if wrong is MISSING:
                del holder[place[-1]]
            else:
                holder[place[-1]] = wrong
            try:
                job.commit([Part.from_json(json.dumps(edited)), other])
            except urlset.errors.Error as error:
                refused += 1
                assert "\n" not in str(error)
                continue
            assert sorted(e["loc"] for e in read_set(out)) == [*locs(100, 111), *locs(200, 203)]
            job, content, other = written()
    assert refused > 700
    assert job.commit([Part.from_json(json.dumps(content)), other]).urls == 14
    for text in ("[" * 100_000, "null", "3", "{}", "\udc80"):
        with pytest.raises(urlset.ConfigError, match="not a part"):
            Part.from_json(text)
    with pytest.raises(urlset.ConfigError, match=r"not str: pass urlset\.Part\.from_json"):
        plan(out).commit([other.to_json()])  # type: ignore[list-item]
