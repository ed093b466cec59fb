"""Reading from object stores: the result is that of a folder with the same files, or one line."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import store_servers
import urlset as package
from conftest import SITE, read_set, urlset
from store_servers import BUCKET, Proxy, Request, Server
from urlset import InputError
from urlset.build.source import store
from urlset.transport import store_reader

pytestmark = pytest.mark.long

ROWS = 3_000
URLS = [f"{SITE}/p/{i}" for i in range(ROWS)]
CSV = ("url,n\n" + "".join(f"{url},{i}\n" for i, url in enumerate(URLS))).encode()


def inputs(folder: Path) -> None:
    """The same rows in every format."""
    table = pa.table({"n": range(ROWS), "junk": ["x" * 200] * ROWS, "url": URLS})
    folder.mkdir()
    (folder / "c.csv").write_bytes(CSV)
    (folder / "c.csv.gz").write_bytes(gzip.compress(CSV))
    (folder / "list.txt").write_text("\n".join(URLS))
    (folder / "c.jsonl").write_text("".join(json.dumps({"url": url}) + "\n" for url in URLS))
    pq.write_table(table, folder / "c.parquet", row_group_size=700, data_page_size=4_096)
    pq.write_table(table, folder / "export", row_group_size=700)
    with pa.ipc.new_file(str(folder / "c.arrow"), table.schema) as file:
        file.write_table(table)
    with pa.ipc.new_stream(str(folder / "c.arrows"), table.schema) as file:
        file.write_table(table)


def built(source: str, out: Path, **options: Any) -> list[str]:
    """The URLs of a build."""
    package.build(source, site=SITE, out=str(out), max_shrink="100%", **options)
    return [entry["loc"] for entry in read_set(out)]


NAMES = ["c.csv", "c.csv.gz", "list.txt", "c.jsonl", "c.parquet", "export", "c.arrow", "c.arrows"]


def test_every_format(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_reader, "BLOCK", 10_000)
    monkeypatch.setattr(store_reader, "COLUMN_BLOCK", 3_000)
    monkeypatch.setattr(store_reader, "TAIL", 50)
    inputs(tmp_path / "in")
    store_servers.upload(s3.client, tmp_path / "in", prefix="in/")
    for name in NAMES:
        assert built(f"s3://{BUCKET}/in/{name}", tmp_path / f"out-{name}") == URLS, name


@pytest.mark.parametrize("name", ["c.csv.gz", "c.parquet"])
def test_every_provider(any_store: Server, tmp_path: Path, name: str) -> None:
    from urlset.transport.store import open_store

    inputs(tmp_path / "in")
    place = open_store(f"{any_store.url}/in")
    place.put(name, (tmp_path / "in" / name).read_bytes())
    place.put("sitemap.xml.gz", _sitemap(URLS[:9]))
    assert built(f"{any_store.url}/in/{name}", tmp_path / "out") == URLS
    assert package.read(f"{any_store.url}/in").read_all()["loc"].to_pylist() == URLS[:9]


def _sitemap(urls: list[str]) -> bytes:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    xmlns = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return gzip.compress(f'<urlset xmlns="{xmlns}">{entries}</urlset>'.encode())


def test_parquet_is_read_by_column(s3: Server, tmp_path: Path) -> None:
    """Of a column that is not needed nothing is requested."""
    noise = random.Random(1)
    rows = 20_000
    table = pa.table(
        {
            "junk": [noise.randbytes(500) for _ in range(rows)],
            "url": [f"{SITE}/{i}" for i in range(rows)],
            "more": [noise.randbytes(500) for _ in range(rows)],
        }
    )
    path = tmp_path / "c.parquet"
    pq.write_table(table, path, row_group_size=5_000)
    s3.client.put_object(Bucket=BUCKET, Key="c.parquet", Body=path.read_bytes())
    received = []

    def after(request: Request) -> None:
        first, _, last = (
            request.headers.get("range", "bytes=0-0").removeprefix("bytes=").partition("-")
        )
        received.append(int(last) - int(first) + 1)

    with Proxy(s3.port, after=after).running() as proxy:
        env = s3.environ(**s3.through(proxy.port))
        command = [sys.executable, "-m", "urlset", "build", f"s3://{BUCKET}/c.parquet"]
        command += ["--site", SITE, "--out", str(tmp_path / "out")]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert len(read_set(tmp_path / "out")) == rows
    assert sum(received) < path.stat().st_size / 5


def test_where_with_row_groups(s3: Server, tmp_path: Path) -> None:
    inputs(tmp_path / "in")
    store_servers.upload(s3.client, tmp_path / "in")
    urls = built(f"s3://{BUCKET}/c.parquet", tmp_path / "out", where=("n=2999",))
    assert urls == URLS[2_999:]


def test_globs_and_prefixes(s3: Server, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for name in ("a-1.csv", "a-2.csv", "b-1.csv", "d/a-3.csv", "d/e/a-4.csv", ".h/a-5.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"url\n{SITE}/{name}\n")
    store_servers.upload(s3.client, folder, prefix="in/")
    for pattern in ("a-*.csv", "*.csv", "**/*.csv", "d/**/a-*.csv", "[ab]-1.csv", "*/a-3.csv"):
        expected = built(str(folder / pattern), tmp_path / "local")
        assert built(f"s3://{BUCKET}/in/{pattern}", tmp_path / "out") == expected, pattern
    for prefix in ("in/d", "in/d/", "in"):
        expected = built(str(tmp_path / prefix), tmp_path / "local")
        assert built(f"s3://{BUCKET}/{prefix}", tmp_path / "out") == expected, prefix
    for missing in ("x-*.csv", "none", "none/"):
        with pytest.raises(InputError) as raised:
            built(f"s3://{BUCKET}/in/{missing}", tmp_path / "out")
        assert raised.value.code == "input.missing"


def test_many_objects_of_a_glob_need_no_descriptors(s3: Server, tmp_path: Path) -> None:
    """Each object is requested when its turn comes."""
    import resource

    for number in range(150):
        s3.client.put_object(
            Bucket=BUCKET, Key=f"n/{number:03}.csv", Body=f"url\n{SITE}/{number}\n".encode()
        )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 128), hard))
    try:
        urls = built(f"s3://{BUCKET}/n/*.csv", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert urls == [f"{SITE}/{number}" for number in range(150)]


def test_a_set_in_a_store_is_that_of_its_folder(s3: Server, tmp_path: Path) -> None:
    """verify, read and diff: the same report, rows and changes as for the folder."""
    folder = tmp_path / "set"
    rows = "".join(f"{SITE}/{i},2026-01-0{i % 9 + 1}\n" for i in range(400))
    (tmp_path / "c.csv").write_text("url,lastmod\n" + rows)
    package.build(str(tmp_path / "c.csv"), site=SITE, out=str(folder), max_urls=100)
    for damage in (None, "missing", "truncated", "foreign", "self"):
        if damage == "missing":
            (folder / "sitemap-00002.xml.gz").unlink()
        elif damage == "truncated":
            path = folder / "sitemap-00003.xml.gz"
            path.write_bytes(path.read_bytes()[:-20])
        elif damage == "foreign":
            (folder / "other.xml").write_bytes(gzip.decompress(_sitemap(URLS[:3])))
            (folder / "sitemap-00002.xml").write_text("the other ending")
            (folder / "readme.txt").write_text("not a sitemap")
        elif damage == "self":
            path = folder / "sitemap.xml"
            entry = f"<sitemap><loc>{SITE}/sitemap.xml</loc></sitemap></sitemapindex>"
            path.write_text(path.read_text().replace("</sitemapindex>", entry))
        for key in store_servers.objects(s3.client):
            s3.client.delete_object(Bucket=BUCKET, Key=key)
        store_servers.upload(s3.client, folder, prefix="a/set/")
        for end in ("", "/sitemap.xml", "/sitemap-00001.xml.gz"):
            local, there = str(folder) + end, f"s3://{BUCKET}/a/set{end}"
            assert _report(there) == _report(local), (damage, end)
            lenient = damage is not None
            first = package.read(local, lenient=lenient).read_all()
            assert package.read(there, lenient=lenient).read_all() == first, (damage, end)
            changes = package.diff(local, there, lenient=True).read_all()
            assert changes.num_rows == 0
    s3.client.delete_object(Bucket=BUCKET, Key="a/set/sitemap-00004.xml.gz")
    changes = package.diff(str(folder), f"s3://{BUCKET}/a/set", lenient=True).read_all()
    assert changes["change"].to_pylist() == ["removed"] * 100


@pytest.mark.parametrize("seed", range(12))
def test_random_files_are_read_as_in_a_folder(s3: Server, tmp_path: Path, seed: int) -> None:
    """Indexes and sitemaps at any depth, listed by any URL, some missing, some under two names."""
    choice = random.Random(seed)
    folder = tmp_path / "set"
    names = []
    for _ in range(choice.randint(1, 12)):
        depth = choice.choice([0, 0, 1, 2, 3])
        parts = [choice.choice(["a", "b", "c d", "a.xml", "ü", ".h"]) for _ in range(depth)]
        end = choice.choice([".xml", ".xml.gz", ".txt", ".XML", ".html"])
        name = "/".join([*parts, choice.choice(["s", "t-1", "robots", "é"]) + end])
        path = folder / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        sitemap = _sitemap([f"{SITE}/{choice.randint(0, 50)}" for _ in range(choice.randint(0, 9))])
        data = sitemap if end.endswith(".gz") else gzip.decompress(sitemap)
        path.write_bytes(data[: choice.choice([len(data)] * 4 + [len(data) // 2])])
        names.append(name)
    bases = ["", "a/", "x/y/", "a/b/", "../"]
    for index in choice.sample(["index.xml", "sitemap.xml", "a/index.xml"], 2):
        if any(parent.is_file() for parent in (folder / index).parents):
            continue
        listed = [choice.choice([*names, "none.xml", "a/none.xml.gz", index]) for _ in range(6)]
        locs = "".join(
            f"<sitemap><loc>{SITE}/{choice.choice(bases)}{quote(name)}</loc></sitemap>"
            for name in listed
        )
        (folder / index).parent.mkdir(parents=True, exist_ok=True)
        xmlns = "http://www.sitemaps.org/schemas/sitemap/0.9"
        (folder / index).write_text(f'<sitemapindex xmlns="{xmlns}">{locs}</sitemapindex>')
    store_servers.upload(s3.client, folder, prefix="set/")
    for name in ("", *(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())):
        local, there = str(folder / name), f"s3://{BUCKET}/set/{name}"
        assert _report(there) == _report(local), name


def _report(target: str) -> dict[str, Any]:
    report = package.verify(target).to_dict()
    report.pop("seconds")
    return report


def test_the_command_reads_a_store(s3: Server, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_bytes(CSV)
    package.build(str(tmp_path / "c.csv"), site=SITE, out=str(tmp_path / "set"))
    store_servers.upload(s3.client, tmp_path / "set")
    ended = urlset("verify", f"s3://{BUCKET}/sitemap.xml", "--json", "-")
    assert (ended.status, json.loads(ended.out)["urls"]) == (0, ROWS)
    ended = urlset("read", f"s3://{BUCKET}/sitemap.xml", "-o", "-")
    assert (ended.status, ended.out.count("\n")) == (0, ROWS + 1)
    ended = urlset("verify", f"s3://{BUCKET}/none.xml")
    assert (ended.status, ended.err.count("\n")) == (3, 1)
    assert "[target.missing]" in ended.err


def test_an_index_in_a_bucket_with_a_whole_site(s3: Server, tmp_path: Path) -> None:
    """The number of requests follows from the index, not from the bucket."""
    (tmp_path / "c.csv").write_bytes(CSV)
    package.build(str(tmp_path / "c.csv"), site=SITE, out=str(tmp_path / "set"), max_urls=500)
    store_servers.upload(s3.client, tmp_path / "set")
    for number in range(60):
        s3.client.put_object(Bucket=BUCKET, Key=f"pages/{number}.xml", Body=b"<page/>")
    with Proxy(s3.port).running() as proxy:
        for name, value in s3.through(proxy.port).items():
            os.environ[name] = value  # the fixture s3 restores them
        assert package.verify(f"s3://{BUCKET}/sitemap.xml").urls == ROWS
        assert len(proxy.requests) == 7


def test_a_store_object_is_read(tmp_path: Path) -> None:
    from obstore.store import MemoryStore

    memory: Any = MemoryStore()
    memory.put("sitemap.xml.gz", _sitemap(URLS))
    assert package.read(memory).read_all()["loc"].to_pylist() == URLS
    assert package.verify(memory).urls == ROWS


HOSTILE = [
    "../../x.xml", "a/../../x.xml", "a//b.xml", "/etc/x.xml", "new\nline.xml", "a/./b.xml",
    "x" * 300 + ".xml", "a.xml/b.xml", "tab\t.xml", "%2e%2e/x.xml", "\\..\\x.xml", "\u202egpj.xml",
]  # fmt: skip


@pytest.mark.parametrize("key", HOSTILE)
def test_a_listing_with_a_hostile_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Nothing is written outside of the copies; a key is read, or it is one line."""
    from xml.sax.saxutils import escape

    class Handler(store_servers._Quiet):
        def do_GET(self) -> None:
            if "list-type" in self.path:
                entries = "".join(
                    f"<Contents><Key>{escape(one)}</Key><Size>10</Size><ETag>x</ETag>"
                    "<LastModified>2026-11-21T00:00:00.000Z</LastModified></Contents>"
                    for one in ("p/a.xml", f"p/{key}")
                )
                body = f"<?xml version='1.0'?><ListBucketResult>{entries}</ListBucketResult>"
                return self.answer(200, body.encode(), Content_Type="application/xml")
            data = gzip.decompress(_sitemap(URLS[:2]))
            moment = "Sat, 21 Nov 2026 00:00:00 GMT"
            return self.answer(200, data, ETag='"x"', Last_Modified=moment)

        def do_HEAD(self) -> None:
            self.answer(404)

    work = tmp_path / "tmp"
    work.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(work))
    with store_servers.serving(Handler) as server:
        port = server.server_port
        store_servers.use(Server("s3", port, store_servers.s3_env(port)), monkeypatch)
        try:
            report = package.verify("s3://bkt/p")
        except InputError as error:
            assert "\n" not in str(error)
            assert error.code.startswith("store.")
        else:
            assert report.urls >= 2
            assert all("\n" not in problem.message for problem in report.problems)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["tmp"]


def test_a_huge_object_is_a_finding(s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urlset.inspect.store.MAX_BYTES", 1_000)
    s3.client.put_object(Bucket=BUCKET, Key="s/a.xml.gz", Body=_sitemap(URLS[:9]))
    s3.client.put_object(Bucket=BUCKET, Key="s/big.xml", Body=b"x" * 1_001)
    report = package.verify(f"s3://{BUCKET}/s")
    [problem] = [one for one in report.problems if one.code == "fetch.failed"]
    assert (problem.file, problem.message) == ("big.xml", "1,001 bytes, more than 1,000")
    with pytest.raises(InputError, match="1,001 bytes"):
        package.read(f"s3://{BUCKET}/s/big.xml")


@pytest.mark.parametrize("name", ["c.csv", "c.parquet"])
def test_an_object_that_changes_while_it_is_read(
    s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Two versions are never mixed: the build fails, and nothing is published."""
    monkeypatch.setattr(store_reader, "BLOCK", 10_000)
    monkeypatch.setattr(store_reader, "COLUMN_BLOCK", 3_000)
    monkeypatch.setattr(store_reader, "TAIL", 50)
    monkeypatch.setattr(store, "HEAD", 5_000)
    inputs(tmp_path / "in")
    body = (tmp_path / "in" / name).read_bytes()
    s3.client.put_object(Bucket=BUCKET, Key=name, Body=body)

    def after(request: Request) -> None:
        if request.number == 4:
            s3.client.put_object(Bucket=BUCKET, Key=name, Body=body.replace(b"/p/", b"/q/"))

    with Proxy(s3.port, after=after).running() as proxy:
        for variable, value in s3.through(proxy.port).items():
            monkeypatch.setenv(variable, value)
        with pytest.raises(InputError, match="changed while it was read") as raised:
            built(f"s3://{BUCKET}/{name}", tmp_path / "out")
        assert raised.value.code == "input.damaged"
    assert not (tmp_path / "out" / "sitemap.xml").exists()


FAULTS = ["reset-before", "reset-after", "truncated", "500", "503", "429"]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_while_reading(
    s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A fault of any single request is overcome; a lasting one is one line."""
    monkeypatch.setattr(store_reader, "COLUMN_BLOCK", 3_000)
    monkeypatch.setattr("urlset.transport.store.MAX_RETRIES", 2)
    inputs(tmp_path / "in")
    store_servers.upload(s3.client, tmp_path / "in")
    for name in ("c.parquet", "c.csv.gz"):
        with Proxy(s3.port).running() as proxy:
            for variable, value in s3.through(proxy.port).items():
                monkeypatch.setenv(variable, value)
            built(f"s3://{BUCKET}/{name}", tmp_path / "out")
            count = len(proxy.requests)
            for number in range(1, count + 1, max(1, count // 4)):
                proxy.requests.clear()
                proxy.fault = lambda r, n=number: fault if r.number == n else None
                assert built(f"s3://{BUCKET}/{name}", tmp_path / "out") == URLS
            proxy.requests.clear()
            proxy.fault = lambda r: fault if r.number >= 2 else None
            with pytest.raises(InputError) as raised:
                built(f"s3://{BUCKET}/{name}", tmp_path / "other")
            assert raised.value.code in ("input.unreachable", "input.damaged")
            assert "\n" not in str(raised.value)
            assert not (tmp_path / "other" / "sitemap.xml").exists()


@pytest.mark.parametrize("command", ["build", "verify"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_wait_for_a_store(
    s3: Server, tmp_path: Path, command: str, number: int
) -> None:
    s3.client.put_object(Bucket=BUCKET, Key="c.csv", Body=CSV * 10)
    s3.client.put_object(Bucket=BUCKET, Key="c.xml.gz", Body=_sitemap(URLS))
    seen = threading.Event()

    def fault(request: Request) -> str | None:
        if request.method == "HEAD" or (request.number < 3 and command == "build"):
            return None
        seen.set()
        return "timeout-before"

    name = "c.csv" if command == "build" else "c.xml.gz"
    arguments = ["--site", SITE, "--out", str(tmp_path / "out")] if command == "build" else []
    with Proxy(s3.port, fault).running() as proxy:
        process = subprocess.Popen(
            [sys.executable, "-m", "urlset", command, f"s3://{BUCKET}/{name}", *arguments],
            env=s3.environ(**s3.through(proxy.port)), stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert seen.wait(60)
        start = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=100)
        assert process.returncode == 128 + number, err
        assert time.monotonic() - start < 30
        assert "Traceback" not in err


def test_wrong_input_addresses(s3: Server, tmp_path: Path) -> None:
    for source, status, part in [
        ("s3://nobucket/c.csv", 3, "there is no bucket 'nobucket'"),
        ("s3:///c.csv", 2, "has no bucket"),
        ("s3://site/none.csv", 3, "there is no such object"),
        ("s3://site/a/../c.csv", 2, "no . or .."),
    ]:
        ended = urlset("build", source, "--site", SITE, "--out", tmp_path / "out")
        assert (ended.status, ended.err.count("\n")) == (status, 1), (source, ended)
        assert part in ended.err


def test_announce_reads_a_store(
    s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requests are those for the folder, with and without the manifest."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    (tmp_path / "c.csv").write_bytes(CSV)
    package.build(str(tmp_path / "c.csv"), site=SITE, out=str(tmp_path / "set"), max_urls=1_000)
    store_servers.upload(s3.client, tmp_path / "set", prefix="set/")

    def requests(target: object) -> tuple[int, str]:
        robots = ["--to", "robots", "--robots", tmp_path / "robots.txt"]
        ended = urlset("announce", target, *robots, "--dry-run")
        return ended.status, ended.out

    first = requests(tmp_path / "set")
    assert first[0] == 0, first
    assert "sitemap.xml" in first[1]
    for end in ("", "/", "/sitemap.xml"):
        assert requests(f"s3://{BUCKET}/set{end}") == first
    s3.client.delete_object(Bucket=BUCKET, Key="set/.urlset/manifest.json")
    assert requests(f"s3://{BUCKET}/set/sitemap.xml") == first
    ended = urlset("announce", f"s3://{BUCKET}/none", "--to", "robots", "--robots", "r.txt")
    assert (ended.status, "[announce.no_target]" in ended.err) == (3, True), ended
    package.build(str(tmp_path / "c.csv"), site=SITE, out=f"s3://{BUCKET}/published")
    assert requests(f"s3://{BUCKET}/published")[0] == 0
    assert package.verify(f"s3://{BUCKET}/published").ok
    assert package.read(f"s3://{BUCKET}/published/sitemap.xml").read_all().num_rows == ROWS
