"""Publication in object stores, by real servers; boto3 reads what crawlers would see."""

from __future__ import annotations

import csv
import gzip
import json
import multiprocessing
import pickle
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
import store_servers
import urlset
from conftest import SITE
from conftest import urlset as command
from obstore.store import MemoryStore
from report_pages import parse
from store_servers import BUCKET, FAULTS, Proxy, Request, Server, fake_gcs, objects
from urlset import ConfigError, ConflictError, Job, PublishError, _core
from urlset.destination import store_publication, uploads

pytestmark = pytest.mark.long

SHARD = re.compile(r"sitemap-[0-9a-f]{16}-[0-9a-f]{16}\.xml\.gz")
OPTIONS: Any = {"site": SITE, "max_urls": 100, "max_shrink": "100%"}


def table(first: int, last: int) -> pa.Table:
    return pa.table({"loc": [f"{SITE}/p/{number}" for number in range(first, last)]})


def locs(data: bytes) -> list[str]:
    """The addresses in a sitemap or an index."""
    xml = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return [one.text or "" for one in ElementTree.fromstring(xml).iter() if one.tag[-3:] == "loc"]


def crawled(found: dict[str, bytes], prefix: str = "", index: str = "sitemap.xml") -> list[str]:
    """The URLs of the set that an index lists; every listed sitemap must be there."""
    names = [loc.removeprefix(f"{SITE}/") for loc in locs(found[prefix + index])]
    return [url for name in names for url in locs(found[prefix + name])]


def urls(first: int, last: int) -> list[str]:
    return [f"{SITE}/p/{number}" for number in range(first, last)]


def headers(server: Server, key: str) -> dict[str, str]:
    found = server.client.head_object(Bucket=BUCKET, Key=key)["ResponseMetadata"]["HTTPHeaders"]
    return dict(found)


@pytest.fixture
def proxy(s3: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before versitygw, in the environment of this process."""
    with Proxy(s3.port).running() as running:
        for name, value in s3.through(running.port).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("URLSET_STORE_TIMEOUT", "5")
        yield running


def test_the_command(s3: Server, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("loc\n" + "\n".join(urls(0, 250)))
    (tmp_path / "urlset.toml").write_text(
        f'input = "a.csv"\nsite = "{SITE}"\nout = "s3://{BUCKET}/maps"\nmax_urls = 100\n'
    )
    ended = command("build", "--json", "report.json", cwd=tmp_path)
    assert ended.status == 0, ended
    found = objects(s3.client)
    assert crawled(found, "maps/") == urls(0, 250)
    report = json.loads((tmp_path / "report.json").read_text())
    for shard in report["shards"]:
        assert SHARD.fullmatch(shard["path"])
        assert len(found[f"maps/{shard['path']}"]) == shard["compressed_bytes"]
    assert len(found["maps/sitemap.xml"]) == report["indexes"][0]["bytes"]
    # one request for the index leads to its manifest
    digest = re.search(rb"<!-- urlset ([0-9a-f]{32}) -->", found["maps/sitemap.xml"])
    assert digest
    manifest = json.loads(found[f"maps/.urlset/manifest-{digest[1].decode()}.json"])
    assert manifest["urls"] == 250 and manifest["folder"] == ".."
    secrets = [value for name, value in s3.env.items() if "KEY" in name]
    for text in (ended.out, ended.err, json.dumps(manifest), json.dumps(report)):
        assert not any(secret in text for secret in secrets)


def test_a_page_and_its_history(s3: Server, tmp_path: Path) -> None:
    """The page is an object, and the manifest of the store remembers the builds."""
    url = f"{s3.url}/reports/page.html"
    for last in (150, 250, 250):
        ended = urlset.build(table(0, last), out=f"{s3.url}/set", report=url, **OPTIONS)
    assert ended.published
    body = s3.client.get_object(Bucket=BUCKET, Key="reports/page.html")
    assert body["ContentType"] == "text/html; charset=utf-8"
    path = tmp_path / "page.html"
    path.write_bytes(body["Body"].read())
    page = parse(path)
    assert page.one("strong").text.startswith("Nothing changed")
    assert [row[1:3] for row in page.table("URLs by build")] == [["250", "+100"], ["150", "0"]]
    assert [row[1:3] for row in page.table("Sitemaps written by build")] == [["2", "3"], ["2", "2"]]


def test_headers(s3: Server) -> None:
    out = f"s3://{BUCKET}/maps"
    urlset.build(table(0, 50), out=out, **OPTIONS)
    (first,) = [key for key in objects(s3.client) if SHARD.search(key)]
    shard, index = headers(s3, first), headers(s3, "maps/sitemap.xml")
    assert shard["content-type"] == "application/gzip" and "content-encoding" not in shard
    assert shard["cache-control"] == "public, max-age=31536000, immutable"
    assert index["content-type"] == "application/xml"
    assert index["cache-control"] == "public, max-age=300"
    changed: Any = {
        "cache_control": "max-age=5", "content_encoding": "gzip",
        "header": ["index:Content-Language=de", "x-amz-meta-team=seo", "Content-Type=a/b"],
    }  # fmt: skip
    urlset.build(table(0, 50), out=out, **OPTIONS, **changed)
    # other headers, another name: the live object was not changed
    assert headers(s3, first)["content-type"] == "application/gzip"
    (second,) = [key for key in objects(s3.client) if SHARD.search(key) and key != first]
    shard, index = headers(s3, second), headers(s3, "maps/sitemap.xml")
    assert shard["content-encoding"] == "gzip" and "content-encoding" not in index
    for found in (shard, index):
        assert found["cache-control"] == "max-age=5" and found["x-amz-meta-team"] == "seo"
        assert found["content-type"] == "a/b"
    assert index["content-language"] == "de" and "content-language" not in shard
    # a rewrite sends them again, although only the index is written
    urlset.build(table(0, 60), out=out, **OPTIONS, **changed)
    assert headers(s3, "maps/sitemap.xml")["x-amz-meta-team"] == "seo"
    # other headers of the index alone are published, too
    report = urlset.build(table(0, 60), out=out, **OPTIONS, header=["index:Cache-Control=no-cache"],
                          cache_control="max-age=5", content_encoding="gzip")  # fmt: skip
    assert headers(s3, "maps/sitemap.xml")["cache-control"] == "no-cache"
    assert report.published


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("header", ["X-Thing=1"]), ("header", ["Content-Type"]),
        ("header", ["Content-Type=a\r\nX-Evil: 1"]), ("header", ["Content-Type=a\nb"]),
        ("cache_control", "a\r\nX: 1"), ("content_encoding", "gzip\n"), ("header", ["a b=c"]),
    ],
)  # fmt: skip
def test_wrong_headers(option: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        urlset.build(table(0, 1), site=SITE, out=MemoryStore(), **{option: value})
    assert caught.value.code == "config.header"


def test_headers_of_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        urlset.build(table(0, 1), site=SITE, out=tmp_path, cache_control="no-store")
    assert caught.value.code == "config.header"


@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_requests(s3: Server, proxy: Proxy, layout: str) -> None:
    out = f"s3://{BUCKET}/maps"
    urlset.build(table(0, 1_000), out=out, layout=layout, **OPTIONS)
    before, first = objects(s3.client), len(proxy.requests)
    report = urlset.build(table(0, 1_000), out=out, layout=layout, **OPTIONS)
    sent = [(one.method, one.status) for one in proxy.requests[first:]]
    assert sent == [("GET", 200)] * 3, proxy.requests[first:]
    assert report.published and not any(shard.changed for shard in report.shards)
    assert objects(s3.client) == before


def test_another_thousand_objects_do_not_cost_requests(s3: Server, proxy: Proxy) -> None:
    s3.client.create_bucket(Bucket="crowd")
    with ThreadPoolExecutor(8) as threads:
        keys = [f"maps/a{number:04}" for number in range(2_100)]
        list(threads.map(lambda k: s3.client.put_object(Bucket="crowd", Key=k, Body=b"1"), keys))
    urlset.build(table(0, 300), out="s3://crowd/maps", **OPTIONS)
    first = len(proxy.requests)
    report = urlset.build(table(0, 300), out="s3://crowd/maps", **OPTIONS)
    assert not any(shard.changed for shard in report.shards)
    assert len(proxy.requests) - first <= 5, proxy.requests[first:]
    listed = s3.client.get_paginator("list_objects_v2").paginate(Bucket="crowd", Prefix="maps/a")
    assert sorted(one["Key"] for page in listed for one in page["Contents"]) == keys


def test_generations(s3: Server) -> None:
    """Shards of the previous set stay for one more build; the manifest before it does not."""
    out, sets = f"s3://{BUCKET}/maps", []
    for number in range(4):
        urlset.build(table(number * 1000, number * 1000 + 150), out=out, **OPTIONS)
        found = objects(s3.client)
        assert crawled(found, "maps/") == urls(number * 1000, number * 1000 + 150)
        sets.append({loc.rpartition("/")[2] for loc in locs(found["maps/sitemap.xml"])})
        shards = {key.removeprefix("maps/") for key in found if SHARD.search(key)}
        assert shards == set().union(*sets[-2:])
        assert len([key for key in found if "manifest-" in key]) == 1


def test_an_object_that_exists(s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same content from another encoder stays; a damaged object does not."""
    out = f"s3://{BUCKET}/maps"
    urlset.build(table(0, 300), out=out, **OPTIONS)
    one, two, three = [key for key in objects(s3.client) if SHARD.search(key)]
    found = objects(s3.client)
    other = gzip.compress(gzip.decompress(found[one]), 1, mtime=0) + gzip.compress(b"", mtime=0)
    assert len(other) != len(found[one])
    for key in (*found,):
        if not SHARD.search(key):
            s3.client.delete_object(Bucket=BUCKET, Key=key)
    put = s3.client.put_object
    put(Bucket=BUCKET, Key=one, Body=other)
    put(Bucket=BUCKET, Key=two, Body=found[two][:-20])
    report = urlset.build(table(0, 300), out=out, **OPTIONS)
    now = objects(s3.client)
    assert crawled(now, "maps/") == urls(0, 300)
    assert now[one] == other and now[two] == found[two] and now[three] == found[three]
    sizes = {f"maps/{shard.path}": shard.compressed_bytes for shard in report.shards}
    assert sizes == {key: len(now[key]) for key in (one, two, three)}
    again = urlset.build(table(0, 300), out=out, **OPTIONS)
    assert not any(shard.changed for shard in again.shards) and not again.warnings


def test_a_shard_that_was_changed_by_hand(s3: Server) -> None:
    out = f"s3://{BUCKET}/maps"
    urlset.build(table(0, 300), out=out, **OPTIONS)
    one, two, _ = [key for key in objects(s3.client) if SHARD.search(key)]
    s3.client.put_object(Bucket=BUCKET, Key=one, Body=b"edited")
    s3.client.delete_object(Bucket=BUCKET, Key=two)
    report = urlset.build(table(0, 300), out=out, **OPTIONS)
    assert {warning.code: warning.count for warning in report.warnings} == {"manifest.edited": 2}
    assert crawled(objects(s3.client), "maps/") == urls(0, 300)


def test_several_indexes(s3: Server, proxy: Proxy) -> None:
    """The first one commits; the others follow, also after a kill, and never list what is gone."""
    out, options = f"s3://{BUCKET}/maps", {**OPTIONS, "max_sitemaps": 2}

    def indexes(found: dict[str, bytes]) -> list[list[str]]:
        names = sorted((key for key in found if key.endswith(".xml")), key=len)
        return [crawled(found, "maps/", key.removeprefix("maps/")) for key in names]

    urlset.build(table(0, 500), out=out, **options)
    assert indexes(objects(s3.client)) == [urls(0, 200), urls(200, 400), urls(400, 500)]

    def fault(request: Request) -> str | None:
        is_second = request.method == "PUT" and "sitemap-index-2" in request.path
        return "reset-before" if is_second else None

    proxy.fault = fault
    with pytest.raises(PublishError) as caught:
        urlset.build(table(1000, 1390), out=out, **options)
    assert "the new set is live" in str(caught.value)
    proxy.fault = lambda _: None
    found = objects(s3.client)
    assert crawled(found, "maps/") == urls(1000, 1200)
    assert indexes(found)[1:] == [urls(200, 400), urls(400, 500)]  # all of it is still there
    report = urlset.build(table(1000, 1390), out=out, **options)
    assert "publish.recovered" in {warning.code for warning in report.warnings}
    assert indexes(objects(s3.client)) == [urls(1000, 1200), urls(1200, 1390)]
    assert not any("journal" in key for key in objects(s3.client))
    # a change of the second index alone is a new set, too
    urlset.build(table(1000, 1395), out=out, **options)
    assert indexes(objects(s3.client)) == [urls(1000, 1200), urls(1200, 1395)]
    urlset.build(table(1000, 1100), out=out, **options)
    assert indexes(objects(s3.client)) == [urls(1000, 1100)]


def test_a_build_that_is_late_does_not_replace_other_indexes(s3: Server, proxy: Proxy) -> None:
    """It waits before its second index; another build publishes; then the first one goes on."""
    out, options = f"s3://{BUCKET}/maps", {**OPTIONS, "max_sitemaps": 2}
    urlset.build(table(0, 350), out=out, **options)
    held, released = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        if request.method == "PUT" and "sitemap-index-2" in request.path and not held.is_set():
            held.set()
            assert released.wait(120)

    proxy.fault = hold
    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(urlset.build, table(1000, 1350), out=out, **options)
        try:
            assert held.wait(120)
            report = urlset.build(table(2000, 2350), out=out, **options)
        finally:
            released.set()
        assert late.result(120).published
    assert "publish.recovered" in {warning.code for warning in report.warnings}
    found = objects(s3.client)
    assert crawled(found, "maps/") == urls(2000, 2200)
    assert crawled(found, "maps/", "sitemap-index-2.xml") == urls(2200, 2350)
    assert not any("journal" in key for key in found)


@pytest.mark.parametrize("split", [True, False])
def test_a_set_without_a_first_index(s3: Server, split: bool) -> None:
    """The manifest under its fixed name is then the commit record."""
    out = f"s3://{BUCKET}/maps"
    rows = pa.table({"loc": urls(0, 300), "kind": [f"k{n % 2}" for n in range(300)]})
    extra: Any = {"split_by": "kind", "split_index": "each"} if split else {"for_": "baidu"}
    urlset.build(rows, out=out, **OPTIONS, **extra)
    first = objects(s3.client)
    assert ("maps/sitemap-k1.xml" in first) == split and "maps/sitemap.xml" not in first
    report = urlset.build(rows, out=out, **OPTIONS, **extra)
    assert not any(shard.changed for shard in report.shards) and objects(s3.client) == first
    # to one index and back
    urlset.build(rows, out=out, **OPTIONS)
    found = objects(s3.client)
    assert crawled(found, "maps/") == urls(0, 300) and "maps/sitemap-k1.xml" not in found
    urlset.build(rows, out=out, **OPTIONS, **extra)
    assert "maps/sitemap.xml" not in objects(s3.client)
    urlset.build(rows.slice(0, 200), out=out, **OPTIONS, **extra)
    manifest = json.loads(objects(s3.client)["maps/.urlset/manifest.json"])
    assert manifest["urls"] == 200
    if split:
        assert crawled(objects(s3.client), "maps/", "sitemap-k1.xml") == urls(0, 200)[1::2]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_commit(s3: Server, proxy: Proxy, fault: str) -> None:
    """The index is read back, so the outcome is known, or its next attempt succeeds."""
    urlset.build(table(0, 150), out=f"s3://{BUCKET}/maps", **OPTIONS)
    faults = [fault]

    def once(request: Request) -> str | None:
        is_index = request.method == "PUT" and request.path.endswith("/sitemap.xml")
        return faults.pop() if is_index and faults else None

    proxy.fault = once
    report = urlset.build(table(500, 650), out=f"s3://{BUCKET}/maps", **OPTIONS)
    assert not faults and report.published
    assert crawled(objects(s3.client), "maps/") == urls(500, 650)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_an_upload(s3: Server, proxy: Proxy, fault: str) -> None:
    """One lost response does not end a build of an hour."""
    faults = [fault]

    def once(request: Request) -> str | None:
        return faults.pop() if ".xml.gz" in request.path and faults else None

    proxy.fault = once
    urlset.build(table(0, 250), out=f"s3://{BUCKET}/maps", **OPTIONS)
    assert not faults
    assert crawled(objects(s3.client), "maps/") == urls(0, 250)


def test_the_outcome_is_not_known(
    s3: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_publication, "PAUSE", 0.01)
    urlset.build(table(0, 150), out=f"s3://{BUCKET}/maps", **OPTIONS)
    lost = []

    def fault(request: Request) -> str | None:
        if request.method == "PUT" and request.path.endswith("/sitemap.xml"):
            lost.append(request)
        return "reset-after" if lost else None

    proxy.fault = fault
    with pytest.raises(PublishError) as caught:
        urlset.build(table(500, 650), out=f"s3://{BUCKET}/maps", **OPTIONS)
    assert caught.value.code == "publish.unknown"
    proxy.fault = lambda _: None
    assert crawled(objects(s3.client), "maps/") in (urls(500, 650), urls(0, 150))
    urlset.build(table(700, 850), out=f"s3://{BUCKET}/maps", **OPTIONS)
    assert crawled(objects(s3.client), "maps/") == urls(700, 850)


def test_files_of_others(s3: Server) -> None:
    put = s3.client.put_object
    foreign = {
        "maps/page.html": b"<html>", "maps/robots.txt": b"", "maps/sitemap-00001.xml.gz": b"1",
        "maps/.urlset/notes.txt": b"n", "maps/other.xml": b"<a/>",
    }  # fmt: skip
    for key, data in foreign.items():
        put(Bucket=BUCKET, Key=key, Body=data)
    for first in (0, 500, 1_000):
        urlset.build(table(first, first + 150), out=f"s3://{BUCKET}/maps", **OPTIONS)
    found = objects(s3.client)
    assert {key: found[key] for key in foreign} == foreign
    with pytest.raises(PublishError) as caught:
        urlset.build(table(0, 10), out=f"s3://{BUCKET}/maps", **OPTIONS, name="other")
    assert caught.value.code == "publish.foreign"
    assert objects(s3.client) == found


def test_a_state_of_its_own(s3: Server) -> None:
    s3.client.create_bucket(Bucket="private")
    out, state = f"s3://{BUCKET}/maps", "s3://private/state"
    rows = pa.table({"loc": [*urls(0, 150), "no url"]})
    options = {**OPTIONS, "max_rejects": "100%"}
    report = urlset.build(rows, out=out, state=state, **options)
    private = objects(s3.client, "private")
    assert report.rejects["path"] == f"{state}/rejects.csv"
    assert b"no url" in private["state/rejects.csv"]
    assert all(key == "maps/sitemap.xml" or SHARD.search(key) for key in objects(s3.client))
    again = urlset.build(rows, out=out, state=state, **options)
    assert not any(shard.changed for shard in again.shards)
    urlset.build(table(0, 150), out=out, state=state, **options)
    assert "state/rejects.csv" not in objects(s3.client, "private")
    # without it the live set is that of a stranger
    for other in (None, "s3://private/other"):
        with pytest.raises(PublishError) as caught:
            urlset.build(rows, out=out, state=other, **options)
        assert caught.value.code == "state.missing"
    with pytest.raises(ConfigError) as wrong:
        urlset.build(rows, out=f"s3://{BUCKET}/copy", state="folder", **options)
    assert wrong.value.code == "config.state"


def test_a_job_in_several_processes(s3: Server) -> None:
    job = Job(out=f"s3://{BUCKET}/maps", **OPTIONS)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        tables = [table(0, 150), table(150, 300)]
        parts = pool.starmap(write_part, [(job, each) for each in tables])
    report = pickle.loads(pickle.dumps(job)).commit(parts)
    assert report.urls == 300 and report.rejected == 2
    found = objects(s3.client)
    assert crawled(found, "maps/") == urls(0, 300)
    assert b"no url" in found["maps/.urlset/rejects.csv"]
    assert not any("staging" in key for key in found)
    other = Job(out=f"s3://{BUCKET}/maps", **OPTIONS)
    urlset.build(table(0, 100), out=f"s3://{BUCKET}/maps", **OPTIONS)
    with pytest.raises(ConflictError):
        other.commit([other.write(table(5, 10))])
    other.abort()
    assert crawled(objects(s3.client), "maps/") == urls(0, 100)


def write_part(job: Job, rows: pa.Table) -> Any:
    more = pa.table({"loc": ["no url"]})
    return job.write(pa.concat_tables([rows, more]))


def test_changes(s3: Server, tmp_path: Path) -> None:
    """A feed that cannot be delivered waits in the state."""
    target, out = tmp_path / "changes.csv", f"s3://{BUCKET}/maps"
    options = {**OPTIONS, "duplicates": "drop", "changes": target}

    def changed() -> list[tuple[str, str]]:
        with target.open(newline="") as file:
            return sorted((row["change"], row["loc"][-1]) for row in csv.DictReader(file))

    urlset.build(table(0, 3), out=out, **options)
    assert changed() == [("added", "0"), ("added", "1"), ("added", "2")]

    def rows() -> Iterator[pa.RecordBatch]:
        target.unlink()
        target.mkdir()
        yield from table(1, 4).to_batches()

    with pytest.raises(PublishError) as caught:
        urlset.build(rows(), out=out, **options)
    assert caught.value.code == "output.changes" and "the new set is live" in str(caught.value)
    waiting = [key for key in objects(s3.client) if "changes-pending" in key]
    assert len(waiting) == 1
    target.rmdir()
    report = urlset.build(table(1, 4), out=out, **options)
    assert changed() == [("added", "3"), ("removed", "0")]
    assert "changes.delivered" in {warning.code for warning in report.warnings}
    assert not [key for key in objects(s3.client) if "changes-pending" in key]


def test_verify_staged_and_dry_run(s3: Server) -> None:
    out = f"s3://{BUCKET}/maps"
    urlset.build(table(0, 250), out=out, verify_staged=True, **OPTIONS)
    before = objects(s3.client)
    report = urlset.build(table(500, 750), out=out, dry_run=True, **OPTIONS)
    assert not report.published
    assert objects(s3.client)["maps/sitemap.xml"] == before["maps/sitemap.xml"]


def test_uploads_are_bounded(s3: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The core waits for the uploads; a failed one ends the build."""
    monkeypatch.setattr(uploads, "MAX_WAITING", 1_000)
    urlset.build(table(0, 2_000), out=f"s3://{BUCKET}/maps", **OPTIONS)
    assert crawled(objects(s3.client), "maps/") == urls(0, 2_000)
    s3.client.create_bucket(Bucket="closed")
    index = objects(s3.client)["maps/sitemap.xml"]

    def fault(request: Request) -> str | None:
        return "500" if request.method == "PUT" and ".xml.gz" in request.path else None

    proxy.fault = fault
    with pytest.raises(PublishError) as caught:
        urlset.build(table(5_000, 7_000), out=f"s3://{BUCKET}/maps", **OPTIONS)
    assert caught.value.code == "store.failed", caught.value
    assert objects(s3.client)["maps/sitemap.xml"] == index


def test_a_store_without_conditional_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_gcs(tmp_path) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(PublishError) as caught:
            urlset.build(table(0, 150), out=f"gs://{BUCKET}/maps", **OPTIONS)
        assert caught.value.code == "store.unconditional" and "--no-conditional" in str(
            caught.value
        )
        assert not (tmp_path / "gcs" / BUCKET / "maps" / "sitemap.xml").exists()
        for first in (0, 500):
            urlset.build(
                table(first, first + 150), out=f"gs://{BUCKET}/maps", conditional=False, **OPTIONS
            )
            folder = tmp_path / "gcs" / BUCKET
            found = {
                path.relative_to(folder).as_posix(): path.read_bytes()
                for path in folder.rglob("*") if path.is_file()
            }  # fmt: skip
            assert crawled(found, "maps/") == urls(first, first + 150)


def published(*args: str, cwd: Path) -> tuple[int, str]:
    """The status of a build by the command line, and its only line on stderr."""
    (cwd / "a.csv").write_text("loc\n" + "\n".join(urls(0, 250)))
    ended = command("build", "a.csv", "--site", SITE, "--max-urls", 100, *args, cwd=cwd)
    assert ended.err.count("\n") <= 1 and "internal" not in ended.err, ended
    return ended.status, ended.err


@pytest.mark.parametrize(
    ("env", "out", "parts"),
    [
        ({}, "s3://missing/maps", ("no bucket 'missing'", "create it", "[store.bucket]")),
        ({"AWS_REGION": "eu-west-1"}, "s3://site/maps", ("AWS_REGION", "[store.region]")),
        ({"AWS_SECRET_ACCESS_KEY": "hidden"}, "s3://site/maps", ("[store.credentials]",)),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "s3://site/maps", ("127.0.0.1:9",)),
        ({}, "s3://", ("has no bucket", "[config.store]")),
        ({}, "s3://key:hidden@site/maps", ("[config.store]",)),
        ({}, "ftp://site/maps", ("ftp://site/maps", "[config.out]")),
    ],
)
def test_wrong_destinations(
    s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], out: str,
    parts: tuple[str, ...],
) -> None:  # fmt: skip
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    status, err = published("--out", out, cwd=tmp_path)
    assert status == (2 if "[config." in err else 3)
    assert all(part in err for part in parts) and "hidden" not in err, err
    assert objects(s3.client) == {}


def test_an_endpoint_that_is_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Site(store_servers._Quiet):
        def do_any(self) -> None:
            self.body()
            self.answer(200, b"<!DOCTYPE html><p>Welcome</p>", Content_Type="text/html")

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = do_any

    with store_servers.serving(Site) as server:
        for name, value in store_servers.s3_env(server.server_port).items():
            monkeypatch.setenv(name, value)
        status, err = published("--out", "s3://site/maps", cwd=tmp_path)
    assert status == 3 and "AWS_ENDPOINT_URL" in err and "[store.endpoint]" in err


@pytest.mark.parametrize("key", [".xml.gz", "manifest-", "sitemap.xml", "delete", "GET"])
def test_no_permission(s3: Server, proxy: Proxy, tmp_path: Path, key: str) -> None:
    """For some keys only: the live set stays, or is complete."""
    out = f"s3://{BUCKET}/maps"
    urlset.build(table(900, 1_000), out=out, **OPTIONS)
    urlset.build(table(500, 600), out=out, **OPTIONS)

    def fault(request: Request) -> str | None:
        if key == "GET":
            return "403" if request.method == "GET" else None
        return "403" if request.method != "GET" and key in request.path else None

    proxy.fault = fault
    status, err = published("--out", out, "--max-shrink", "100%", cwd=tmp_path)
    proxy.fault = lambda _: None
    live = crawled(objects(s3.client), "maps/")
    if key == "delete":
        assert status == 0 and live == urls(0, 250)
    else:
        assert status == 3 and "[store.permission]" in err, err
        assert ("s3:GetObject" if key == "GET" else "s3:PutObject") in err
        assert live == urls(500, 600)


def test_every_kind_of_store(any_store: Server) -> None:
    out, options = f"{any_store.url}/maps", dict(OPTIONS)
    for first in (0, 500):
        try:
            urlset.build(table(first, first + 150), out=out, **options)
        except PublishError as error:
            assert error.code == "store.unconditional"
            options["conditional"] = False
            urlset.build(table(first, first + 150), out=out, **options)
    report = urlset.build(table(500, 650), out=out, **options)
    assert not any(shard.changed for shard in report.shards) and not report.warnings


def test_the_digest_of_bytes() -> None:
    assert _core.digest("ü") == _core.digest("ü".encode())
