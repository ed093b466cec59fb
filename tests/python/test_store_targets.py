"""What a command writes besides the set may be an object in a store."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import store_servers
import urlset as package
from conftest import SITE, urlset
from store_servers import BUCKET, Proxy, Server

ROWS = "url\n" + "".join(f"{SITE}/{i}\n" for i in range(50))
BAD = ROWS + "ftp://x\nnot a url\n"


def get(server: Server, key: str) -> bytes:
    body: bytes = server.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    return body


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "c.csv"
    path.write_text(BAD)
    return path


def test_every_target_of_a_build(s3: Server, source: Path, tmp_path: Path) -> None:
    """The objects are what the files are."""
    (tmp_path / "side").mkdir()
    for place in (str(tmp_path / "side"), f"s3://{BUCKET}/side"):
        for number, text in enumerate((BAD, BAD.replace(f"{SITE}/7\n", ""))):
            source.write_text(text)
            ended = urlset(
                "build", source, "--site", SITE, "--out", tmp_path / f"out-{place[:2]}",
                "--max-rejects", "50%", "--duplicates", "drop", "--rejects",
                f"{place}/rejects.csv", "--changes", f"{place}/changes-{number}.csv",
                "--json", f"{place}/report.json",
            )  # fmt: skip
            assert ended.status == 0, ended.err
    names = ["rejects.csv", "changes-0.csv", "changes-1.csv"]
    for name in names:
        assert get(s3, f"side/{name}") == (tmp_path / "side" / name).read_bytes(), name
    [change] = csv.DictReader(io.StringIO(get(s3, "side/changes-1.csv").decode()))
    assert (change["change"], change["loc"]) == ("removed", f"{SITE}/7")
    report = json.loads(get(s3, "side/report.json"))
    assert report["rejects"]["path"] == f"s3://{BUCKET}/side/rejects.csv"
    assert set(store_servers.objects(s3.client)) == {f"side/{n}" for n in [*names, "report.json"]}
    head = s3.client.head_object(Bucket=BUCKET, Key="side/rejects.csv")
    assert head["ContentType"] == "text/csv; charset=utf-8"


def test_rejects_as_parquet_from_python(s3: Server, source: Path, tmp_path: Path) -> None:
    package.build(
        source, site=SITE, out=tmp_path / "out", max_rejects="50%",
        rejects=f"s3://{BUCKET}/r.parquet",
    )  # fmt: skip
    assert pq.read_table(io.BytesIO(get(s3, "r.parquet"))).num_rows == 2


def test_rejects_of_a_build_that_fails(s3: Server, source: Path, tmp_path: Path) -> None:
    ended = urlset(
        "build", source, "--site", SITE, "--out", tmp_path / "out", "--max-rejects", "1",
        "--rejects", f"s3://{BUCKET}/r.csv", "--json", f"s3://{BUCKET}/r.json",
    )  # fmt: skip
    assert ended.status == 1
    assert f"s3://{BUCKET}/r.csv" in ended.err
    assert get(s3, "r.csv").count(b"\n") >= 2
    assert json.loads(get(s3, "r.json"))["error"]["code"] == "rejects.limit"


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet", "arrow"])
def test_rows(s3: Server, tmp_path: Path, format: str) -> None:
    (tmp_path / "c.csv").write_text(ROWS)
    package.build(str(tmp_path / "c.csv"), site=SITE, out=str(tmp_path / "set"))
    ended = urlset("read", tmp_path / "set", "-o", f"s3://{BUCKET}/rows.{format}")
    assert ended.status == 0, ended.err
    ended = urlset("read", tmp_path / "set", "-o", tmp_path / f"rows.{format}")
    assert get(s3, f"rows.{format}") == (tmp_path / f"rows.{format}").read_bytes()


def test_reports_of_verify(s3: Server, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(ROWS)
    package.build(str(tmp_path / "c.csv"), site=SITE, out=str(tmp_path / "set"))
    ended = urlset("verify", tmp_path / "set", "--json", f"s3://{BUCKET}/v.json", "--jsonl",
                   f"s3://{BUCKET}/v.jsonl")  # fmt: skip
    assert ended.status == 0, ended.err
    assert json.loads(get(s3, "v.json"))["urls"] == 50


@pytest.mark.parametrize("option", ["rejects", "changes", "json"])
def test_a_bucket_that_does_not_exist_is_found_first(
    s3: Server, source: Path, tmp_path: Path, option: str
) -> None:
    ended = urlset("build", source, "--site", SITE, "--out", tmp_path / "out", "--duplicates",
                   "drop", f"--{option}", "s3://nobucket/x.csv")  # fmt: skip
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert f"[output.{option}]" in ended.err
    assert "there is no bucket 'nobucket'" in ended.err
    assert "the previous set is still live" in ended.err
    assert not (tmp_path / "out").exists()


def test_a_target_must_not_replace_an_input_or_the_set(s3: Server, tmp_path: Path) -> None:
    s3.client.put_object(Bucket=BUCKET, Key="in/c.csv", Body=ROWS.encode())
    base = ["--site", SITE, "--out", f"s3://{BUCKET}/set", "--duplicates", "drop"]
    for given, option, value in [
        ("in/c.csv", "rejects", "in/c.csv"),
        ("in/*.csv", "changes", "in/c.csv"),
        ("in", "rejects", "in/x.csv"),
        ("in/c.csv", "json", "set/sitemap.xml"),
        ("in/c.csv", "json", "set/.urlset/manifest.json"),
        ("in/c.csv", "changes", "set/.urlset/x.csv"),
    ]:
        ended = urlset(
            "build", f"s3://{BUCKET}/{given}", *base, f"--{option}", f"s3://{BUCKET}/{value}"
        )
        assert (ended.status, f"[config.{option}]" in ended.err) == (2, True), (value, ended)
    assert set(store_servers.objects(s3.client)) == {"in/c.csv"}


def test_a_feed_waits_until_the_store_responds(
    s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The set is live, the error says where the feed waits, and the next build delivers it."""
    source = tmp_path / "c.csv"
    options = {"site": SITE, "out": str(tmp_path / "out"), "changes": f"s3://{BUCKET}/f/c.csv",
               "duplicates": "drop"}  # fmt: skip
    source.write_text(ROWS)
    package.build(str(source), **options)  # type: ignore[arg-type]
    monkeypatch.setattr("urlset.transport.store.MAX_RETRIES", 0)
    with Proxy(s3.port, lambda r: "503" if r.is_write else None).running() as proxy:
        for name, value in s3.through(proxy.port).items():
            monkeypatch.setenv(name, value)
        source.write_text(ROWS + f"{SITE}/new-1\n")
        with pytest.raises(package.PublishError, match="the new set is live") as raised:
            package.build(str(source), **options)  # type: ignore[arg-type]
        assert raised.value.code == "output.changes"
        assert "the store is busy" in str(raised.value)
    store_servers.use(s3, monkeypatch)
    source.write_text(ROWS + f"{SITE}/new-1\n{SITE}/new-2\n")
    package.build(str(source), **options)  # type: ignore[arg-type]
    objects = store_servers.objects(s3.client, prefix="f/")
    found = b"".join(objects.values())
    assert b"new-1" in found and b"new-2" in found
    assert len(objects) == 2
