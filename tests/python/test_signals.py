"""verify, read and diff end after a signal during any wait, and leave no files."""

from __future__ import annotations

import gzip
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def start(tmp: Path, *args: object) -> subprocess.Popen[str]:
    tmp.mkdir(exist_ok=True)
    code = "from urlset.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp)},
    )  # fmt: skip


class Dripping(BaseHTTPRequestHandler):
    """An index, and endless sitemaps that are sent one byte at a time."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        host, port = self.server.server_address[:2]
        if self.path == "/sitemap.xml":
            loc = f"http://{host}:{port}"
            rows = "".join(f"<sitemap><loc>{loc}/{n}.xml</loc></sitemap>" for n in range(20))
            self.wfile.write(f'<sitemapindex xmlns="{NS}">{rows}</sitemapindex>'.encode())
            return
        try:
            while True:
                self.wfile.write(b" ")
                self.server.reached.set()
                time.sleep(0.1)
        except OSError:
            return  # the client has gone

    def log_message(self, *_: object) -> None:
        return


class Server(ThreadingHTTPServer):
    """Each has its own event: a thread of the previous one may still send."""

    reached: threading.Event

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def dripping() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Dripping)
    server.reached = threading.Event()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("number", STATUS)
@pytest.mark.parametrize("page", ["/sitemap.xml", "/alone.xml"])
@pytest.mark.parametrize("command", ["verify", "read", "diff"])
def test_while_a_server_drips(
    dripping: Server, command: str, page: str, number: signal.Signals, tmp_path: Path
) -> None:
    more = {
        "verify": [],
        "read": ["-o", tmp_path / "rows.csv"],
        "diff": [dripping.address + page],
    }[command]
    child = start(tmp_path / "tmp", command, dripping.address + page, "--allow-private", *more)
    try:
        assert dripping.reached.wait(60)
        child.send_signal(number)
        _, said = child.communicate(timeout=60)  # the download itself would take 300 s
    finally:
        child.kill()
    assert (child.returncode, said) == (STATUS[number], "urlset: stopped by a signal\n")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "rows.csv").exists()


def large(root: Path, side: str) -> Path:
    """Forty sitemaps of 50,000 URLs; no two sides have an equal file."""
    root.mkdir()
    for shard in range(40):
        rows = "".join(
            f"<url><loc>https://www.shop.example/{shard}/{n}</loc></url>" for n in range(50_000)
        )
        data = f'<urlset xmlns="{NS}"><!-- {side} -->{rows}</urlset>'.encode()
        (root / f"{shard}.xml.gz").write_bytes(gzip.compress(data, 1))
    return root


@pytest.mark.slow
@pytest.mark.parametrize("command", ["verify", "read", "diff"])
def test_at_any_moment(command: str, tmp_path: Path) -> None:
    """A signal at moments over the whole of a run; the signal, or the end, whichever is first."""
    a, b = large(tmp_path / "a", "old"), large(tmp_path / "b", "new")
    out = tmp_path / "out"
    out.mkdir()
    options = {
        "verify": [a, "--memory", "1M"],
        "read": [a, "-o", out / "rows.parquet"],
        "diff": [a, b, "-o", out / "changes.csv", "--memory", "1M"],
    }[command]
    began = time.monotonic()
    whole = start(tmp_path / "tmp", command, *options)
    whole.communicate(timeout=600)
    assert whole.returncode == 0
    seconds = time.monotonic() - began
    rng = random.Random(1)
    stopped = 0
    for _ in range(12):
        for path in out.iterdir():
            path.unlink()
        child = start(tmp_path / "tmp", command, *options)
        time.sleep(rng.random() * seconds)
        number = rng.choice(list(STATUS))
        child.send_signal(number)
        _, said = child.communicate(timeout=60)
        # negative: it was received before Python had started, and ended Python itself
        assert child.returncode in (0, STATUS[number], -number), said
        if child.returncode > 0:
            stopped += "stopped by a signal" in said
            assert "Traceback" not in said
        if child.returncode:
            assert list(out.iterdir()) == []
        assert list((tmp_path / "tmp").iterdir()) == []
    assert stopped
