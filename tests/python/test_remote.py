"""Inputs by URI from real servers, correct, wrong and silent ones; a signal ends the wait."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urlset as package
from conftest import SITE, read_set, urlset, wait_until_idle
from urlset import ConfigError, InputError
from urlset.build.source import remote

pytestmark = pytest.mark.long

URLS = [f"{SITE}/p/{i}" for i in range(3_000)]
TABLE = pa.table({"url": URLS, "n": range(3_000)})


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink)
    return sink.getvalue()


def _arrow() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


def _ipc() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


CSV = ("url\n" + "\n".join(URLS) + "\n").encode()
FILES = {
    "/c.csv": CSV,
    "/c.csv.gz": gzip.compress(CSV),
    "/c.parquet": _parquet(),
    "/export": _parquet(),
    "/c.arrows": _arrow(),
    "/c.arrow": _ipc(),
    "/c.jsonl": "".join(json.dumps({"url": url}) + "\n" for url in URLS).encode(),
    "/c.txt": "\n".join(URLS).encode(),
    "/list": "\r\n".join(URLS).encode(),
    "/page": b"<!DOCTYPE html><title>Please log in</title>",
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization", ""))
        path = self.path.partition("?")[0]
        if path == "/moved":
            self.answer(302, b"", Location="/c.parquet")
        elif path == "/loop":
            self.answer(302, b"", Location="/loop")
        elif path.startswith("/status/"):
            self.answer(int(path.rpartition("/")[2]), b"no")
        elif path.startswith("/cut/"):
            whole = FILES[path.removeprefix("/cut")]
            self.send_response(200)
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole[: len(whole) // 2])
            self.close_connection = True
        elif path.startswith("/packed/"):
            body = gzip.compress(FILES[path.removeprefix("/packed")])
            self.answer(200, body, **{"Content-Encoding": "gzip"})
        elif path in FILES:
            self.answer(200, FILES[path])
        else:
            self.answer(404, b"no")

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def black_hole() -> Iterator[str]:
    """The address of a server that neither accepts nor refuses connections: its queue is full."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = []
        for _ in range(3):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(listening.getsockname())
            waiting.append(client)
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        for client in waiting:
            client.close()


@pytest.mark.parametrize(
    "path",
    [
        "/c.csv", "/c.csv.gz", "/c.parquet", "/export", "/c.arrows", "/c.arrow", "/c.jsonl",
        "/c.txt", "/list", "/moved", "/packed/c.csv", "/packed/c.jsonl", "/c.csv?v=1.parquet",
    ],
)  # fmt: skip
def test_every_format_over_http(server: str, out: Path, path: str) -> None:
    report = package.build(f"{server}{path}", site=SITE, out=out)
    assert (report.rows, report.urls) == (3_000, 3_000)
    assert [entry["loc"] for entry in read_set(out)] == URLS


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [
        ("/none.csv", "input.missing", "HTTP 404"),
        ("/none.parquet", "input.missing", "HTTP 404"),
        ("/status/410", "input.missing", "HTTP 410"),
        ("/status/403", "input.unreachable", "HTTP 403"),
        ("/status/500", "input.unreachable", "HTTP 500"),
        ("/status/503", "input.unreachable", "HTTP 503"),
        ("/loop", "input.unreachable", "redirect"),
        ("/page", "input.format", "HTML page"),
        ("/cut/c.csv", "input.damaged", "ended before all data was received"),
        ("/cut/c.csv.gz", "input.damaged", "ended before all data was received"),
        ("/cut/c.parquet", "input.damaged", "ended before all data was received"),
        ("/cut/c.jsonl", "input.damaged", "ended before all data was received"),
        ("/cut/c.arrows", "input.damaged", "ended before all data was received"),
        ("/cut/c.txt", "input.damaged", "ended before all data was received"),
    ],
)
def test_what_a_server_refuses(server: str, out: Path, path: str, code: str, says: str) -> None:
    ended = urlset("build", f"{server}{path}", "--site", SITE, "--out", out)
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert f"[{code}]" in ended.err and says in ended.err
    assert not list(out.glob("*.xml*"))


def test_no_server(out: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for uri in (
        f"http://127.0.0.1:{port}/c.csv",
        f"http://127.0.0.1:{port}/c.parquet",
        f"s3://key:secret@bucket/c.parquet?region=x&scheme=http&endpoint_override=127.0.0.1:{port}",
    ):
        ended = urlset("build", uri, "--site", SITE, "--out", out)
        assert (ended.status, ended.err.count("\n")) == (3, 1), ended
        assert "[input.unreachable]" in ended.err and "127.0.0.1" in ended.err


@pytest.mark.parametrize("kind", ["http", "s3", "gs"])
def test_a_server_that_never_answers_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch, silent: str, out: Path, kind: str
) -> None:
    for limit in ("OPEN_SECONDS", "READ_SECONDS"):
        monkeypatch.setattr(remote, limit, 1.0)
    uri = {
        "http": f"http://{silent}/c.csv",
        "s3": f"s3://k:secret@b/c.csv?region=x&scheme=http&endpoint_override={silent}",
        "gs": f"gs://anonymous@b/c.csv?scheme=http&endpoint_override={silent}",
    }[kind]
    started = time.monotonic()
    with pytest.raises(InputError) as caught:
        package.build(uri, site=SITE, out=out)
    assert caught.value.code == "input.unreachable"
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["build", "init"])
@pytest.mark.parametrize("kind", ["http", "http-parquet", "s3", "s3-parquet", "gs", "hole"])
def test_a_signal_while_a_remote_input_opens(
    silent: str, black_hole: str, tmp_path: Path, kind: str, command: str, number: int
) -> None:
    s3 = f"region=x&scheme=http&endpoint_override={silent}"
    uri = {
        "http": f"http://{silent}/c.csv",
        "http-parquet": f"http://{silent}/c.parquet",
        "s3": f"s3://k:secret@b/c.csv?{s3}",
        "s3-parquet": f"s3://k:secret@b/c.parquet?{s3}",
        "gs": f"gs://anonymous@b/c.csv?scheme=http&endpoint_override={silent}",
        "hole": f"http://{black_hole}/c.csv",
    }[kind]
    args = {
        "build": ["build", uri, "--site", SITE, "--out", tmp_path / "out"],
        "init": ["init", uri, "--site", SITE, "-o", tmp_path / "urlset.toml"],
    }[command]
    check_stopped(args, number)
    assert not (tmp_path / "urlset.toml").exists()


def check_stopped(args: list[object], number: int, stdin: object = subprocess.DEVNULL) -> None:
    """Starts a command that waits, sends a signal, and checks that it ends at once."""
    child = subprocess.Popen(
        [sys.executable, "-m", "urlset", *map(str, args)],
        stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_until_idle(child)
        started = time.monotonic()
        child.send_signal(number)
        said = child.communicate(timeout=20)[1]
        seconds = time.monotonic() - started
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, said.count("\n")) == (128 + number, 1), said
    assert said.startswith("urlset: stopped")
    assert seconds < 10, seconds


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["build", "init"])
@pytest.mark.parametrize("name", ["slow.csv", "slow.txt", "slow", "slow.jsonl", "slow.arrow", "-"])
def test_a_signal_while_a_pipe_waits(tmp_path: Path, name: str, command: str, number: int) -> None:
    """A pipe without a writer: opening it waits."""
    args: list[object] = [command, "-" if name == "-" else tmp_path / name, "--site", SITE]
    args += ["--out", tmp_path / "out"]
    if command == "init":
        args += ["-o", tmp_path / "urlset.toml"]
    if name == "-":
        reader, writer = os.pipe()
        try:
            check_stopped(args, number, reader)
        finally:
            os.close(reader)
            os.close(writer)
    else:
        os.mkfifo(tmp_path / name)
        check_stopped(args, number)


@pytest.mark.parametrize("what", ["opens", "waits"])
def test_a_keyboard_interrupt_while_an_input(silent: str, out: Path, what: str) -> None:
    """In Python it is raised at once, although the source does not return."""
    release = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"url": URLS[:10]})
        release.wait(30)

    source = f"http://{silent}/c.csv" if what == "opens" else batches()
    timer = threading.Timer(0.7, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            package.build(source, site=SITE, out=out)
        assert time.monotonic() - started < 20
    finally:
        release.set()
        timer.join()
    assert not list(out.glob("*.xml*"))


def test_secrets_of_a_uri_are_not_shown(server: str, tmp_path: Path) -> None:
    Handler.seen.clear()
    host = server.removeprefix("http://")
    secret = "X-Amz-Signature=abcdef0123456789&token=s3cr3t%2Fvalue"
    for path in ("/c.csv", "/status/403", "/none.csv", "/cut/c.csv", "/loop", "/page", "/bad.csv"):
        FILES["/bad.csv"] = b"url\nftp://x.example/1\nhttps://www.shop.example/1\n"
        out = tmp_path / "out"
        uri = f"http://anna:pass%40word@{host}{path}?{secret}"
        ended = urlset(
            "build", uri, "--site", SITE, "--out", out, "--json", tmp_path / "r.json",
            "--max-rejects", "90%", "--max-shrink", "100%",
        )  # fmt: skip
        text = ended.out + ended.err + (tmp_path / "r.json").read_text()
        rejects = out / ".urlset" / "rejects.csv"
        text += rejects.read_text() if rejects.exists() else ""
        for part in ("anna", "pass%40word", "pass@word", "abcdef0123", "s3cr3t"):
            assert part not in text, (path, text)
    assert f"http://***@{host}/bad.csv?***" in rejects.read_text()
    # and the server got them
    assert any(seen.startswith("Basic ") for seen in Handler.seen)


def test_a_scheme_that_needs_a_package(out: Path) -> None:
    for uri, says in (
        ("hf://datasets/a/b.parquet", "huggingface_hub"),
        ("hf://datasets/a/b.csv", "huggingface_hub"),
        ("zz://a/b.csv", "zz"),
        ("sftp://u:secret@127.0.0.1/b.csv", "paramiko"),
        ("://x", "://x"),
        ("https://u:secret@[::1/x.csv", "not a URI"),
    ):
        ended = urlset("build", uri, "--site", SITE, "--out", out)
        assert (ended.status, ended.err.count("\n")) == (2, 1), ended
        assert "[config.uri]" in ended.err and says in ended.err and "secret" not in ended.err


def test_an_object_store_with_fsspec(out: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for path, content in FILES.items():
        memory.pipe(f"/store{path}", content)
    for path in ("/c.csv", "/c.csv.gz", "/c.parquet", "/export", "/c.arrows", "/c.jsonl", "/list"):
        report = package.build(f"memory://store{path}", site=SITE, out=out)
        assert report.urls == 3_000, path
    with pytest.raises(InputError) as caught:
        package.build("memory://store/none.csv", site=SITE, out=out)
    assert caught.value.code == "input.missing"


def test_what_was_opened_is_closed_when_another_input_is_missing(
    server: str, tmp_path: Path, out: Path
) -> None:
    def threads() -> set[str]:
        return {thread.name for thread in threading.enumerate() if "read http" in thread.name}

    with pytest.raises(InputError):
        package.build([f"{server}/c.csv", tmp_path / "none.csv"], site=SITE, out=out)
    until = time.monotonic() + 5
    while threads() and time.monotonic() < until:
        time.sleep(0.05)
    assert not threads()


def test_strings_in_a_list_are_inputs(server: str, out: Path) -> None:
    with pytest.raises(ConfigError, match=r"pyarrow\.table\(\{'loc': urls\}\)") as caught:
        package.build(URLS[:3], site=SITE, out=out)
    assert caught.value.code == "config.input"
    assert package.build([f"{server}/c.csv"], site=SITE, out=out).urls == 3_000
    assert package.build([f"{server}/list"], site=SITE, out=out, format="lines").urls == 3_000
    assert package.build(f"{server}/list", site=SITE, out=out).urls == 3_000
