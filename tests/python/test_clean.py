"""``urlset clean``: what nothing lists is removed, and nothing else."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urlset
from conftest import SITE
from conftest import urlset as command
from store_servers import BUCKET, Server, objects
from urlset import ConfigError, Job, PublishError

OPTIONS: Any = {"site": SITE, "max_urls": 100, "max_shrink": "100%", "layout": "stable"}
OLD = time.time() - 10 * 86_400
SHARD = "-0123456789abcdef-0123456789abcdef.xml.gz"
#: names that are not made by urlset, or belong to sets that the state does not know
FOREIGN = (
    "sitemap-00001.xml.gz", "page.html", "robots.txt", "sitemap-0123456789abcdef.xml.gz",
    f"sitemap{SHARD}.bak", f"deep/er/sitemap{SHARD}", f"other{SHARD}", f"sitemap-b{SHARD}",
    "sitemap-b.xml", f"SITEMAP{SHARD}", f"sitemap{SHARD.upper()}",
)  # fmt: skip
ORPHANS = (f"sitemap{SHARD}", f"sitemap-shoes{SHARD}", f"www.shop.example/sitemap{SHARD}")


def table(first: int, last: int) -> pa.Table:
    return pa.table({"loc": [f"{SITE}/p/{number}" for number in range(first, last)]})


def tree(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def age(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (OLD, OLD))


def test_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for first in (0, 500):
        urlset.build(table(first, first + 250), out=out, **OPTIONS)
    job = Job(out=out, **OPTIONS)
    job.write(table(0, 50))
    live = tree(out) - {path for path in tree(out) if "staging-" in path}
    for name in (*FOREIGN, *ORPHANS):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(b"old")
    (out / "link").symlink_to(tmp_path)
    (tmp_path / f"sitemap{SHARD}").write_bytes(b"elsewhere")
    age(out)
    new = f"sitemap{SHARD.replace('0', 'f')}"
    (out / new).write_bytes(b"of a build that runs")
    before = tree(out)
    ended = command("clean", out, "--dry-run")
    assert ended.status == 0 and tree(out) == before
    assert f"{out}/sitemap{SHARD}" in ended.out and "4 files would be removed" in ended.out
    ended = command("clean", out)
    assert ended.status == 0 and "4 files removed" in ended.out, ended
    assert tree(out) == {*live, *FOREIGN, new}
    assert (tmp_path / f"sitemap{SHARD}").exists()
    assert len(urlset.read(out / "sitemap.xml").read_all()) == 250
    assert [one.path for one in urlset.clean(out, older_than="0s")] == [f"{out}/{new}"]


def test_a_job_that_writes_at_the_same_time(tmp_path: Path) -> None:
    """Files appear, get other names and vanish while their folder is measured."""
    out = tmp_path / "out"
    urlset.build(pa.table({"loc": [f"{SITE}/1"]}), site=SITE, out=out)
    staging = out / ".urlset" / f"staging-{Job(site=SITE, out=out).id}"
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            for number in range(100):
                (staging / f"{number}").touch()
            for number in range(100):
                (staging / f"{number}").rename(staging / f"final-{number}")
            for number in range(100):
                (staging / f"final-{number}").unlink()

    task = threading.Thread(target=write)
    task.start()
    try:
        for _ in range(100):
            urlset.clean(out, older_than="1h")
    finally:
        over.set()
        task.join()
    assert staging.exists()


def test_a_store(s3: Server) -> None:
    out = f"s3://{BUCKET}/maps"
    for first in (0, 500):
        urlset.build(table(first, first + 250), out=out, **OPTIONS)
    urlset.build(table(0, 10), out=out, name="second", **OPTIONS)
    live = set(objects(s3.client))
    job = Job(out=out, **OPTIONS)
    job.write(table(900, 950))
    state = (f"manifest-{'0' * 32}.json", f"journal-{'0' * 32}.json", "changes-pending-7.csv",
             f"second/manifest-{'0' * 32}.json")  # fmt: skip
    kept = (*(f"maps/{name}" for name in FOREIGN), "maps/.urlset/notes.json",
            f"maps/.urlset/unknown/manifest-{'0' * 32}.json")  # fmt: skip
    gone = (*(f"maps/{name}" for name in ORPHANS), *(f"maps/.urlset/{name}" for name in state))
    for key in (*kept, *gone):
        s3.client.put_object(Bucket=BUCKET, Key=key, Body=b"old")
    before = set(objects(s3.client))
    orphan = before - live - {*kept, *gone}  # of the job
    assert len(orphan) == 2
    assert urlset.clean(out) == []
    found = {one.path for one in urlset.clean(out, older_than="0s", dry_run=True)}
    # what no set of this name ever was is not of the state of another one
    assert found == {f"s3://{BUCKET}/{key}" for key in (*gone, *orphan)}
    assert set(objects(s3.client)) == before
    ended = command("clean", out, "--older-than", "0s")
    assert ended.status == 0 and "9 files removed" in ended.out, ended
    assert set(objects(s3.client)) == {*live, *kept}


def test_without_a_manifest_nothing_is_removed(s3: Server, tmp_path: Path) -> None:
    s3.client.create_bucket(Bucket="elsewhere")
    out, state = f"s3://{BUCKET}/maps", "s3://elsewhere/state"
    urlset.build(table(0, 150), out=out, state=state, **OPTIONS)
    s3.client.put_object(Bucket=BUCKET, Key=f"maps/sitemap{SHARD}", Body=b"old")
    before = set(objects(s3.client))
    (tmp_path / f"sitemap{SHARD}").write_bytes(b"old")
    for place in (out, tmp_path):
        with pytest.raises(PublishError) as caught:
            urlset.clean(place, older_than="0s")
        assert caught.value.code == "clean.no_manifest"
    assert set(objects(s3.client)) == before and (tmp_path / f"sitemap{SHARD}").exists()
    assert len(urlset.clean(out, state=state, older_than="0s")) == 1
    with pytest.raises(ConfigError):
        urlset.clean(out, older_than="soon")
