"""Search engines on loopback: real HTTP servers that record their requests."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

INDEXNOW_KEY = "5ec2e7aa0b1c4d5e8f90123456789abc"
BING_KEY = "b1n9b1n9b1n9b1n9b1n9b1n9b1n9b1n9"
YANDEX_TOKEN = "y0_yandexyandexyandexyandex"
ALL_KEYS = (INDEXNOW_KEY, BING_KEY, YANDEX_TOKEN)


@dataclass
class Asked:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    def json(self):
        return json.loads(self.body)


@dataclass
class Reply:
    """The behaviour of a server.

    Attributes:
        delay: seconds before the status line.
        cut: close the connection: "before" any byte, "header" in the middle of the header,
            "body" in the middle of the body.
        drip: seconds between two bytes of the body.
        huge: bytes of body to send without end in sight.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: str = ""
    drip: float = 0.0
    huge: int = 0


class Engine:
    """A server; ``answer`` returns its response."""

    def __init__(self) -> None:
        self.answer: Callable[[Asked], Reply] = lambda _asked: Reply()
        self.asked: list[Asked] = []
        self.sent = 0
        self._closing = threading.Event()
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                asked = Asked(
                    self.command,
                    self.path,
                    {name.lower(): value for name, value in self.headers.items()},
                    self.rfile.read(length),
                    time.monotonic(),
                )
                engine.asked.append(asked)
                reply = engine.answer(asked)
                engine._closing.wait(reply.delay)
                with contextlib.suppress(OSError):
                    self.reply(reply)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

            def reply(self, reply: Reply) -> None:
                if reply.cut:
                    self.close_connection = True
                    if reply.cut != "before":
                        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
                    if reply.cut == "body":
                        self.wfile.write(b"ngth: 1000\r\n\r\nhalf")
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response_only(reply.status)
                names = {name.lower() for name in reply.headers}
                if "date" not in names:
                    self.send_header("Date", self.date_time_string())
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(reply.huge or len(reply.body)))
                self.end_headers()
                if reply.huge:
                    for _ in range(reply.huge // 65_536):
                        self.wfile.write(b"x" * 65_536)
                        engine.sent += 65_536
                    return
                if reply.drip:
                    for byte in reply.body:
                        self.wfile.write(bytes([byte]))
                        self.wfile.flush()
                        engine._closing.wait(reply.drip)
                    return
                self.wfile.write(reply.body)

            def log_message(self, *_arguments: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_arguments: object) -> None:
                pass  # some tests end the client early

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def says(self, *replies: Reply) -> None:
        """Answer with ``replies`` one after the other, and the last one from then on."""
        left = list(replies)
        self.answer = lambda _asked: left.pop(0) if len(left) > 1 else left[0]

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    server = Engine()
    yield server
    server.close()


@pytest.fixture
def other() -> Iterator[Engine]:
    """A second server, which must never receive a request."""
    server = Engine()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Excludes keys, proxies and state of the machine."""
    for name in list(os.environ):
        if name.startswith(("URLSET_", "GOOGLE_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without the usual waiting."""
    from urlset.announce import client

    monkeypatch.setattr(client, "BACKOFF", 0.01)


def make_site(
    folder: Path,
    *,
    urls: int = 1_000_000,
    site: str = "https://www.example.com",
    sitemap_url: str | None = None,
    indexes: tuple[str, ...] = ("sitemap.xml",),
) -> Path:
    """The folder of a build, with a manifest in the form of ``urlset build``."""
    (folder / ".urlset").mkdir(parents=True)
    manifest = {
        "manifest": 1,
        "urlset": "0.1.0",
        "site": site,
        "sitemap_url": sitemap_url or site + "/",
        "config": "00",
        "layout": "packed",
        "folder": "..",
        "urls": urls,
        "shards": [
            {
                "path": "sitemap-00001.xml.gz",
                "urls": urls,
                "bytes": 1,
                "compressed_bytes": 1,
                "digest": "0" * 32,
                "lastmod": None,
                "changed_at": "2026-11-21T00:00:00Z",
                "mtime_ns": 0,
            }
        ],
        "indexes": [{"path": path, "sitemaps": 1, "bytes": 1} for path in indexes],
        "retired": [],
    }
    (folder / ".urlset" / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return make_site(tmp_path / "out")


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URLSET_INDEXNOW_KEY", INDEXNOW_KEY)
    monkeypatch.setenv("URLSET_BING_KEY", BING_KEY)
    monkeypatch.setenv("URLSET_YANDEX_TOKEN", YANDEX_TOKEN)


def page(number: int, host: str = "www.example.com") -> str:
    return f"https://{host}/p/{number:07d}"


def write_list(path: Path, urls: list[str]) -> Path:
    path.write_text("".join(url + "\n" for url in urls))
    return path


def run_cli(*arguments: object, timeout: float = 60, **environment: str):
    """The command in a separate process."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from urlset.cli import main; main()",
            "announce",
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
    )


def start_cli(*arguments: object) -> subprocess.Popen[str]:
    """The command in a process that continues to run."""
    command = [sys.executable, "-c", "from urlset.cli import main; main()", "announce"]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture(scope="session")
def rsa_key():
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def account(tmp_path, engine, rsa_key):
    """The key file of a service account."""
    from cryptography.hazmat.primitives import serialization

    pem = rsa_key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    path = tmp_path / "account.json"
    info = {
        "type": "service_account",
        "client_email": "robot@example.iam.gserviceaccount.com",
        "private_key": pem,
        "private_key_id": "1",
        "token_uri": engine.url + "/token",
    }
    path.write_text(json.dumps(info))
    return path


def assert_no_key(text: str, *more: str) -> None:
    for key in (*ALL_KEYS, *more):
        assert key not in text


def tell_indexnow(site, engine, urls, **options):
    import urlset

    options = {"timeout": 5, "retries": 2, **options}
    return urlset.announce(site, to="indexnow", urls=urls, endpoint=engine.url, **options)


def sent(engine) -> list[str]:
    # a request whose sender was killed may have arrived without its body
    return [url for asked in engine.asked if asked.body for url in asked.json()["urlList"]]


def changes_file(path: Path, rows: list[tuple[str, str]]) -> Path:
    import csv

    columns = ["change", "loc", "lastmod", "old_lastmod"]
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([columns, *([change, url, "", ""] for change, url in rows)])
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"change": c, "loc": u}) + "\n" for c, u in rows))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(
            pa.table({"change": [c for c, _ in rows], "loc": [u for _, u in rows]}), path
        )
    return path
