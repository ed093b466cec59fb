"""Shared by the tests: reads sitemaps by other means than urlset."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import store_servers
from store_servers import Server

# a shell starts background processes with SIGINT ignored, and children inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[2]
NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
SITE = "https://www.shop.example"


def read_bytes(path: Path) -> bytes:
    """The bytes of a sitemap, inflated by Python."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def read_shard(path: Path) -> list[dict[str, str]]:
    """The entries of a shard by Python's own XML parser (expat)."""
    root = ElementTree.fromstring(read_bytes(path))
    assert root.tag == f"{NS}urlset"
    return [{child.tag.removeprefix(NS): child.text or "" for child in url} for url in root]


def read_index(path: Path) -> list[dict[str, str]]:
    """The entries of an index."""
    root = ElementTree.fromstring(path.read_bytes())
    assert root.tag == f"{NS}sitemapindex"
    return [{child.tag.removeprefix(NS): child.text or "" for child in entry} for entry in root]


def read_set(out: Path, index: str = "sitemap.xml") -> list[dict[str, str]]:
    """All entries of a published set, in their order, as a crawler finds them from the index."""
    entries = []
    for sitemap in read_index(out / index):
        entries += read_shard(out / sitemap["loc"].removeprefix(f"{SITE}/"))
    return entries


def files(out: Path) -> dict[str, bytes]:
    """Every published file and its uncompressed bytes."""
    return {path.name: read_bytes(path) for path in sorted(out.glob("*.xml*"))}


@dataclass(frozen=True)
class Ended:
    """The result of a command."""

    status: int
    out: str
    err: str


def urlset(*args: object, input: bytes | None = None, cwd: Path | None = None) -> Ended:
    """Runs the command line in a separate process."""
    command = [sys.executable, "-m", "urlset", *map(str, args)]
    done = subprocess.run(command, input=input, capture_output=True, cwd=cwd, timeout=300)
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def wait_until_idle(process: subprocess.Popen[Any]) -> None:
    """Waits until a command catches SIGTERM and has used almost no CPU for a second.

    A fixed time is too short on a loaded machine: the signal would reach Python's own start.
    Threads that poll use some CPU all the time.
    """
    proc, deadline = Path("/proc", str(process.pid)), time.monotonic() + 60
    if not proc.exists():  # not Linux
        time.sleep(3)
        return
    catches, used, ticks = False, 0, 0
    while not catches or ticks - used > 5:  # of 10 ms
        assert process.poll() is None, f"it ended with {process.returncode}"
        assert time.monotonic() < deadline, "it never waits"
        used = ticks
        time.sleep(1)
        caught = re.search(r"^SigCgt:\s*(\w+)$", (proc / "status").read_text(), re.MULTILINE)
        assert caught is not None
        catches = bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An output folder that does not exist yet."""
    return tmp_path / "out"


@pytest.fixture
def schema() -> Callable[[Path], None]:
    """Validates a document against the schemas in tests/data/schemas."""
    from lxml import etree
    from schemas import SITEMAP

    def validate(path: Path) -> None:
        SITEMAP.assertValid(etree.fromstring(read_bytes(path)))

    return validate


def manifest_text(**parts: Any) -> str:
    """A manifest with all its keys; ``shards`` may omit what a test does not need."""
    shard = {
        "urls": 1, "bytes": 1, "compressed_bytes": 1, "digest": "0" * 32, "lastmod": None,
        "changed_at": "2026-11-21T00:00:00Z", "mtime_ns": 0,
    }  # fmt: skip
    shards = [shard | each for each in parts.pop("shards", [])]
    whole = {
        "manifest": 1, "urlset": "0.1.0", "site": SITE, "sitemap_url": f"{SITE}/", "config": "00",
        "layout": "packed", "folder": "..", "urls": 1, "indexes": [], "retired": [],
    }  # fmt: skip
    return json.dumps(whole | parts | {"shards": shards})


def _emptied(server: Server) -> Server:
    for key in store_servers.objects(server.client):
        server.client.delete_object(Bucket=server.bucket, Key=key)
    return server


@pytest.fixture(scope="session")
def versitygw_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with store_servers.versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture(scope="session")
def moto_server() -> Iterator[Server]:
    with store_servers.moto() as server:
        yield server


@pytest.fixture
def s3(versitygw_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """versitygw with an empty bucket, in the environment of this process."""
    return store_servers.use(_emptied(versitygw_server), monkeypatch)


@pytest.fixture
def moto(moto_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """moto with an empty bucket, in the environment of this process."""
    return store_servers.use(_emptied(moto_server), monkeypatch)


@pytest.fixture(params=["versitygw", "moto", "fake-gcs-server", "strict-gcs", "azurite"])
def any_store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """Each kind of server with an empty bucket, in the environment of this process."""
    if request.param in ("versitygw", "moto"):
        server = request.getfixturevalue(f"{request.param}_server")
        yield store_servers.use(_emptied(server), monkeypatch)
    elif request.param == "strict-gcs":
        with store_servers.strict_gcs() as (server, _):
            yield store_servers.use(server, monkeypatch)
    else:
        start = {"fake-gcs-server": store_servers.fake_gcs, "azurite": store_servers.azurite}
        folder = tmp_path / "server"
        folder.mkdir()
        with start[request.param](folder) as server:
            yield store_servers.use(server, monkeypatch)
