"""The interface of destinations: the objects of a folder, and a store without folders."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urlset
from conftest import SITE
from obstore.store import MemoryStore
from urlset import Job, PublishError
from urlset.destination.directory import Directory
from urlset.destination.objects import ABSENT, Object, Objects
from urlset.errors import ConflictError


class Bucket:
    """Objects in memory, with conditional writes as S3 has them."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.log: list[str] = []

    def read(self, path: str, limit: int) -> Object | None:
        found = self.objects.get(path)
        return found and Object(found.data[:limit], found.version)

    def write(self, path: str, data: bytes, *, only_if: str | None = None) -> None:
        found = self.objects.get(path)
        if only_if is not None and (ABSENT if found is None else found.version) != only_if:
            raise ConflictError(f"{path}: changed", code="publish.conflict")
        self.log.append(path)
        self.objects[path] = Object(data, str(len(self.log)))

    def list(self, prefix: str = "") -> Iterator[str]:
        return iter(sorted(path for path in self.objects if path.startswith(prefix)))

    def delete(self, path: str) -> None:
        self.objects.pop(path, None)


@pytest.fixture(params=["folder", "bucket"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Objects]:
    if request.param == "bucket":
        yield Bucket()
    else:
        with Directory.open(tmp_path) as folder:
            yield folder


def test_objects(objects: Objects) -> None:
    assert objects.read("a", 10) is None
    objects.write("a", b"first", only_if=ABSENT)
    first = objects.read("a", 10)
    assert first is not None and first.data == b"first"
    with pytest.raises(ConflictError) as caught:
        objects.write("a", b"other", only_if=ABSENT)
    assert caught.value.code == "publish.conflict" and caught.value.exit_status == 3
    objects.write("a", b"second", only_if=first.version)
    second = objects.read("a", 3)
    assert second is not None and second.data == b"sec" and second.version != first.version
    with pytest.raises(ConflictError):
        objects.write("a", b"third", only_if=first.version)
    objects.write("b", b"1")
    objects.write("b", b"2")
    assert list(objects.list()) == ["a", "b"] and list(objects.list("b")) == ["b"]
    objects.delete("a")
    objects.delete("a")
    assert list(objects.list()) == ["b"]


OPTIONS: Any = {"site": SITE, "max_urls": 100, "max_shrink": "100%"}


@pytest.fixture
def bucket() -> MemoryStore:
    return MemoryStore()


def table(first: int, last: int) -> pa.Table:
    return pa.table({"loc": [f"{SITE}/p/{number}" for number in range(first, last)]})


def keys(bucket: MemoryStore) -> set[str]:
    return {one["path"] for page in bucket.list() for one in page}


def read_bucket(bucket: MemoryStore, tmp_path: Path) -> list[str]:
    """The URLs that a crawler finds: every listed file must be there."""
    for path in keys(bucket):
        file = tmp_path / "copy" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(bucket.get(path).bytes()))
    return list(urlset.read(tmp_path / "copy/sitemap.xml").read_all()["loc"].to_pylist())


def test_a_build_publishes_to_a_store(bucket: MemoryStore, tmp_path: Path) -> None:
    report = urlset.build(table(0, 250), out=bucket, verify_staged=True, **OPTIONS)
    assert report.published
    assert read_bucket(bucket, tmp_path) == table(0, 250)["loc"].to_pylist()
    (manifest,) = [path for path in keys(bucket) if path.startswith(".urlset/manifest-")]
    shards = json.loads(bytes(bucket.get(manifest).bytes()))["shards"]
    first = {shard["path"] for shard in shards}
    assert keys(bucket) == {*first, manifest, "sitemap.xml", ".urlset/probe.json"}
    assert not any(path.startswith("sitemap-00001") for path in first)
    index = bucket.head("sitemap.xml")
    again = urlset.build(table(0, 250), out=bucket, **OPTIONS)
    assert not any(shard.changed for shard in again.shards)
    assert bucket.head("sitemap.xml") == index
    # one more URL: the last shard, a manifest, the index
    before = keys(bucket)
    urlset.build(table(0, 251), out=bucket, **OPTIONS)
    new = keys(bucket) - before
    assert len(new) == 2 and len(before - keys(bucket)) == 1
    assert read_bucket(bucket, tmp_path) == table(0, 251)["loc"].to_pylist()


def test_a_job_publishes_to_a_store(bucket: MemoryStore, tmp_path: Path) -> None:
    job = Job(out=bucket, **OPTIONS)
    parts = [job.write(table(0, 150)), job.write(table(150, 300))]
    assert "sitemap.xml" not in keys(bucket)
    job.commit(parts)
    assert read_bucket(bucket, tmp_path) == table(0, 300)["loc"].to_pylist()
    with pytest.raises(PublishError) as caught:
        job.commit(parts)
    assert caught.value.code == "job.closed"


def test_the_second_of_two_builds_loses(bucket: MemoryStore, tmp_path: Path) -> None:
    """There is no lock: the condition on the index decides."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield from table(0, 50).to_batches()
        urlset.build(table(500, 600), out=bucket, **OPTIONS)  # during the outer build
        yield from table(50, 100).to_batches()

    with pytest.raises(PublishError) as caught:
        urlset.build(rows(), out=bucket, **OPTIONS)
    assert caught.value.code == "publish.conflict"
    assert read_bucket(bucket, tmp_path) == table(500, 600)["loc"].to_pylist()


def test_a_folder_that_two_remove_at_once_is_gone(tmp_path: Path) -> None:
    """As the staging of a job: the commit removes all of it while a lost task removes its part."""
    for number in range(20):
        staging = tmp_path / f"staging-{number}"
        for part in range(50):
            (staging / f"part-{part}/en").mkdir(parents=True)
            for place in ("sitemap-1.xml.gz", "en/sitemap-2.xml.gz"):
                (staging / f"part-{part}" / place).touch()
        barrier = threading.Barrier(2)

        def remove(what: list[str], folder: Path, barrier: threading.Barrier = barrier) -> None:
            with Directory.open(folder) as opened:
                barrier.wait()
                for name in what:
                    opened.clear(name)

        parts = [f"part-{part}" for part in reversed(range(50))]
        with ThreadPoolExecutor(2) as threads:
            tasks = [([staging.name], tmp_path), (parts, staging)]
            for done in [threads.submit(remove, *task) for task in tasks]:
                done.result()
        assert not staging.exists()
