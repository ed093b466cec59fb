"""The interface of destinations: the objects of a folder, and a store without folders."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
import pytest
import urlset
from conftest import SITE
from urlset import Job, PublishError
from urlset.build import plan as plans
from urlset.destination.directory import Directory
from urlset.destination.interface import Destination, Publication, Staging, Stored
from urlset.destination.manifest import Feed, Manifest, ShardRecord, parse_manifest, to_json
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


class BucketStaging:
    """A part goes to the bucket at once, under content names."""

    def __init__(self, bucket: Bucket, scratch: Path) -> None:
        self.bucket, self._scratch = bucket, scratch
        (scratch / "sink").mkdir()

    @property
    def scratch(self) -> Path:
        return self._scratch

    def sink(self) -> Path:
        return self._scratch / "sink"

    def complete(self, names: Mapping[str, str], rejects: Sequence[Path]) -> list[str]:
        for path, name in names.items():
            if self.bucket.read(name, 1) is None:
                data = (self.sink() / path).read_bytes()
                self.bucket.write(name, data, only_if=ABSENT)
        assert not rejects
        return []


class BucketPublication(BucketStaging):
    """The index is the commit record, and the name of the manifest follows from it."""

    def __init__(self, bucket: Bucket, scratch: Path, name: str) -> None:
        super().__init__(bucket, scratch)
        self.index = f"{name}.xml"
        self.staged: dict[str, bytes] = {}
        self.published = False
        self.notes: Mapping[str, int] = {}
        self.left, self.folder = 0, "bucket"
        self.feeds: Sequence[Feed] = ()
        self.waited: Collection[str] = ()
        self._live = bucket.read(self.index, 1 << 30)

    @property
    def version(self) -> str:
        return ABSENT if self._live is None else self._live.version

    def manifest(self) -> Manifest | None:
        if self._live is None:
            return None
        found = self.bucket.read(manifest_name(self._live.data), 1 << 30)
        assert found is not None
        return parse_manifest(found.data, Path("bucket"))

    def begin_parts(self, job: str) -> None:
        pass

    def is_untouched(self, record: ShardRecord) -> bool:
        return self.stored(record.path, staged=False) == Stored(record.compressed_bytes, 0)

    def owns(self, target: Path, files: Iterable[str]) -> bool:
        return False

    def is_live(self, path: str, text: str) -> bool:
        found = self.bucket.read(path, 1 << 30)
        return found is not None and found.data == text.encode()

    def stored(self, path: str, *, staged: bool) -> Stored | None:
        found = self.bucket.read(path, 1 << 30)
        return found and Stored(len(found.data), 0)

    def local(self, path: str, *, staged: bool) -> Path | None:
        found = self.bucket.read(path, 1 << 30)
        data = self.staged.get(path) or (found.data if found is not None else None)
        if data is None:
            return None
        file = self.scratch / path
        file.write_bytes(data)
        return file

    def stage(self, files: Mapping[str, str]) -> None:
        self.staged = {path: text.encode() for path, text in files.items()}

    def publish(
        self, moves: Sequence[str], manifest: Manifest, feeds: Sequence[Feed] | None = None
    ) -> None:
        data = self.staged.get(self.index)
        if data is None:
            self.published = True
            return
        self.bucket.write(manifest_name(data), to_json(manifest).encode())
        self.bucket.write(self.index, data, only_if=self.version)
        self.published = True

    def is_pending(self) -> bool:
        return False

    def writing(self, place: Path) -> AbstractContextManager[None]:
        return nullcontext()

    def reject_file(self, name: str) -> Path | None:
        raise NotImplementedError

    def put_rejects(self, file: Path) -> str:
        raise NotImplementedError

    def remove_rejects(self) -> None:
        pass

    def put_feed(self, pending: str, file: Path) -> None:
        raise NotImplementedError

    def open_feed(self, pending: str) -> IO[bytes] | None:
        raise NotImplementedError

    def drop_feed(self, pending: str) -> None:
        raise NotImplementedError

    def keep_feeds(self, feeds: Sequence[Feed]) -> None:
        raise NotImplementedError

    def feed_place(self, pending: str) -> str:
        raise NotImplementedError


def manifest_name(index: bytes) -> str:
    return f"state/manifest-{hashlib.sha256(index).hexdigest()}.json"


class BucketDestination:
    """A destination without a folder, a lock or a rename."""

    content_named = True

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket

    def absolute(self) -> Destination:
        return self

    @contextmanager
    def publication(
        self, name: str, sets: Sequence[str] = (), *, job: str | None = None
    ) -> Iterator[Publication]:
        with tempfile.TemporaryDirectory() as scratch:
            yield cast(Publication, BucketPublication(self.bucket, Path(scratch), name))

    @contextmanager
    def staging(self, name: str, job: str) -> Iterator[Staging]:
        with tempfile.TemporaryDirectory() as scratch:
            yield BucketStaging(self.bucket, Path(scratch))

    def abort(self, name: str, job: str) -> None:
        pass

    def local_folders(self) -> tuple[Path, ...]:
        return ()

    def reserves(self, target: Path) -> bool:
        return False


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    store = Bucket()
    monkeypatch.setattr(plans, "open_destination", lambda *_: BucketDestination(store))
    return store


OPTIONS = {"site": SITE, "out": "the bucket", "max_urls": 100, "max_shrink": "100%"}


def table(first: int, last: int) -> pa.Table:
    return pa.table({"loc": [f"{SITE}/p/{number}" for number in range(first, last)]})


def read_bucket(bucket: Bucket, tmp_path: Path) -> list[str]:
    """The URLs that a crawler finds: every listed file must be there."""
    for path, each in bucket.objects.items():
        file = tmp_path / "copy" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.data)
    return list(urlset.read(tmp_path / "copy/sitemap.xml").read_all()["loc"].to_pylist())


def test_a_build_publishes_to_a_store(bucket: Bucket, tmp_path: Path) -> None:
    report = urlset.build(table(0, 250), verify_staged=True, **OPTIONS)
    assert report.published and not (Path.cwd() / "the bucket").exists()
    assert read_bucket(bucket, tmp_path) == table(0, 250)["loc"].to_pylist()
    # shards, then the manifest, the index last
    assert [path.split("/")[0] for path in bucket.log[3:]] == ["state", "sitemap.xml"]
    assert not any(path[:14] == "sitemap-00001" for path in bucket.objects)
    manifest = json.loads(bucket.objects[bucket.log[3]].data)
    assert {shard["path"] for shard in manifest["shards"]} == set(bucket.log[:3])
    written = len(bucket.log)
    again = urlset.build(table(0, 250), **OPTIONS)
    assert not any(shard.changed for shard in again.shards) and len(bucket.log) == written
    # one more URL: the last shard, a manifest, the index
    urlset.build(table(0, 251), **OPTIONS)
    assert len(bucket.log) == written + 3
    assert read_bucket(bucket, tmp_path) == table(0, 251)["loc"].to_pylist()


def test_a_job_publishes_to_a_store(bucket: Bucket, tmp_path: Path) -> None:
    job = Job(**OPTIONS)
    parts = [job.write(table(0, 150)), job.write(table(150, 300))]
    assert "sitemap.xml" not in bucket.objects
    job.commit(parts)
    assert read_bucket(bucket, tmp_path) == table(0, 300)["loc"].to_pylist()


def test_the_second_of_two_builds_loses(bucket: Bucket, tmp_path: Path) -> None:
    """There is no lock: the condition on the index decides."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield from table(0, 50).to_batches()
        urlset.build(table(500, 600), **OPTIONS)  # during the outer build
        yield from table(50, 100).to_batches()

    with pytest.raises(PublishError) as caught:
        urlset.build(rows(), **OPTIONS)
    assert caught.value.code == "publish.conflict"
    assert read_bucket(bucket, tmp_path) == table(500, 600)["loc"].to_pylist()
