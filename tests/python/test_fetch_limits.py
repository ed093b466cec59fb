"""Limits of a fetch in time, bytes and numbers, each reached by a real server."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import urlset
from hostile_server import (
    ENCODED,
    ENDLESS,
    Connection,
    HostileServer,
    body,
    index_of,
    redirect,
    status,
    urlset_of,
)
from urlset.inspect import download, fetch, inflate
from urlset.transport import budget

pytestmark = pytest.mark.long


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


def failure(url: str) -> tuple[str, float]:
    """The error for a target that cannot be fetched, and the seconds until then."""
    start = time.monotonic()
    with pytest.raises(urlset.InputError) as error:
        urlset.verify(url, allow_private=True)
    assert error.value.code == "fetch.failed", error.value
    return str(error.value), time.monotonic() - start


# --- time


def test_the_deadline_is_for_all_redirects_and_tries(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each hop and each try take less than their timeouts; all together take longer."""
    monkeypatch.setattr(download, "DEADLINE", 2.0)

    def slowly(c: Connection) -> None:
        server.stopped.wait(0.7)
        redirect(f"/{len(server.asked)}.xml".encode())(c)

    for number in range(20):
        server.pages[f"/{number}.xml"] = slowly
    message, seconds = failure(f"{server.base}/0.xml")
    assert "no complete answer within 2 s" in message and 1.5 < seconds < 20
    server.asked.clear()
    server.pages["/busy.xml"] = status("503 No", "Retry-After: 5")
    start = time.monotonic()
    with pytest.raises(urlset.InputError) as error:
        urlset.verify(f"{server.base}/busy.xml", allow_private=True)
    assert error.value.code == "fetch.status" and time.monotonic() - start < 20
    assert len(server.asked) == 1  # the second try would be too late


def test_the_minimum_rate(server: HostileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast start does not allow a slow rest; a slow answer that ends in time is accepted."""
    monkeypatch.setattr(budget, "RATE_WINDOW", 1.0)

    def fast_then_slow(c: Connection) -> None:
        c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + b" " * 2_000_000)
        c.drip(b" " * 9_999)

    def slow_but_done(c: Connection) -> None:
        data = urlset_of(server.base)
        c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
        c.drip(data, 0.003)

    server.pages["/slow.xml"] = fast_then_slow
    server.pages["/done.xml"] = slow_but_done
    message, seconds = failure(f"{server.base}/slow.xml")
    assert "slower than 65,536 bytes in 1 s" in message and seconds < 20
    assert len(server.asked) == 1  # not tried again
    monkeypatch.setattr(budget, "RATE_WINDOW", 30.0)
    assert urlset.verify(f"{server.base}/done.xml", allow_private=True).urls == 1


@pytest.mark.parametrize("hello", [b"", b"\x16\x03\x03\x40\x00", b"\x16\x03\x03\x00\x05"])
def test_a_server_that_never_ends_the_handshake(
    monkeypatch: pytest.MonkeyPatch, hello: bytes
) -> None:
    import socket

    monkeypatch.setattr(download, "DEADLINE", 2.0)
    monkeypatch.setattr(download, "TIMEOUT", 1.0)
    stopped = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while not stopped.is_set():
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                try:
                    peer.sendall(hello)
                    while not stopped.wait(0.05):
                        if hello:
                            peer.sendall(b"\0")
                except OSError:
                    continue

    threading.Thread(target=answer, daemon=True).start()
    with listener:
        message, seconds = failure(f"https://127.0.0.1:{listener.getsockname()[1]}/sitemap.xml")
        stopped.set()
    assert seconds < 20, message


def test_a_resolver_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    stopped = threading.Event()
    monkeypatch.setattr(download, "TIMEOUT", 0.3)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [stopped.wait(60)])
    message, seconds = failure("http://shop.test/sitemap.xml")
    stopped.set()
    assert "not resolved" in message and seconds < 20


def test_the_deadline_of_a_target(server: HostileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fetched files are read, each of the others is a finding."""
    monkeypatch.setattr(download, "TARGET_DEADLINE", 3.0)
    monkeypatch.setattr(fetch, "GRACE", 1.0)
    monkeypatch.setattr(budget, "RATE_WINDOW", 1.5)
    good = [f"/good-{n}.xml" for n in range(4)]
    bad = [f"/bad-{n}.xml" for n in range(100)]
    for name in good:
        server.pages[name] = urlset_of(server.base)
    for name in bad:
        server.pages[name] = ENDLESS["drip-body"]
    server.pages["/sitemap.xml"] = index_of(*(server.base + name for name in good + bad))
    start = time.monotonic()
    report = urlset.verify(f"{server.base}/sitemap.xml", allow_private=True, most=1000)
    assert time.monotonic() - start < 30
    assert report.urls == 4 and report.counts["fetch.failed"] == 100
    assert len(server.asked) < 60


def test_threads_that_hang_do_not_hold_the_run(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calling thread keeps the deadline even if a worker does not."""
    monkeypatch.setattr(download, "TARGET_DEADLINE", 1.0)
    monkeypatch.setattr(fetch, "GRACE", 0.5)
    stopped = threading.Event()
    server.pages["/good.xml"] = urlset_of(server.base)
    server.pages["/sitemap.xml"] = index_of(f"{server.base}/good.xml", f"{server.base}/hang.xml")
    real = download.Downloader.get

    def hang(self: download.Downloader, url: str) -> download.Download:
        if url.endswith("hang.xml"):
            stopped.wait(60)
        return real(self, url)

    monkeypatch.setattr(download.Downloader, "get", hang)
    start = time.monotonic()
    report = urlset.verify(f"{server.base}/sitemap.xml", allow_private=True)
    assert time.monotonic() - start < 20 and report.urls == 1
    assert report.counts == {"fetch.failed": 1}
    stopped.set()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drip-body", "drip-header-value", "interim-slowly"])
def test_the_limits_as_they_are(server: HostileServer, name: str) -> None:
    server.pages["/sitemap.xml"] = ENDLESS[name]
    _, seconds = failure(f"{server.base}/sitemap.xml")
    assert seconds < budget.RATE_WINDOW + 10


# --- bytes


def members(count: int) -> bytes:
    return gzip.compress(b"", mtime=0) * count


@pytest.mark.parametrize(
    ("data", "size"),
    [(members(400_000), 0), (gzip.compress(b"a", mtime=0) * 200_000, 200_000),
     (gzip.compress(b" " * (100 << 20)), 100 << 20),
     (members(100_000) + gzip.compress(b"x" * 1000) + b"\0" * 1000, 1000)],
    ids=["empty", "one byte each", "one member", "trailing bytes"],
)  # fmt: skip
def test_inflating_takes_linear_time(data: bytes, size: int) -> None:
    """5.6, 28 and 116 s were needed for 100,000, 200,000 and 400,000 empty members."""
    start = time.monotonic()
    assert sum(map(len, inflate.gunzip(io.BytesIO(data)))) == size
    assert time.monotonic() - start < 10


def test_inflating_agrees_with_gzip() -> None:
    """At every cut, and with every kind of bytes after it."""
    text = os.urandom(3_000) + b"a" * 20_000
    whole = gzip.compress(text[:7_000]) + gzip.compress(b"") + gzip.compress(text[7_000:])
    assert b"".join(inflate.gunzip(io.BytesIO(whole))) == text
    for rest in (b"\0", b"\0" * 5_000, b"x", b"\x1f", b"plain text"):
        assert b"".join(inflate.gunzip(io.BytesIO(whole + rest))) == text
    for cut in [*range(60), *range(60, len(whole) - 30, 97), *range(len(whole) - 30, len(whole))]:
        try:
            expected: bytes | None = gzip.decompress(whole[:cut])
        except (EOFError, gzip.BadGzipFile, zlib.error):
            expected = None
        try:
            got: bytes | None = b"".join(inflate.gunzip(io.BytesIO(whole[:cut])))
        except zlib.error:
            got = None
        if cut:
            assert got == expected, cut


def folder_size() -> int:
    """The size of all fetched files.

    Raises:
        OSError: a file was removed meanwhile: its bytes may be counted in another one, too.
    """
    root = Path(tempfile.gettempdir())
    files = [file for folder in root.glob("urlset-*") for file in folder.glob("*")]
    size = sum(file.stat().st_size for file in files)
    for file in files:
        file.stat()
    return size


def test_inflated_bytes_count(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Twenty answers of 40 kB, 40 MB each decompressed: the limits apply to bytes on disk."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(download, "MAX_TOTAL", 100 << 20)
    bomb = gzip.compress(urlset_of(server.base) + b" " * (40 << 20))
    names = [f"/{n}.xml" for n in range(20)]
    for name in names:
        server.pages[name] = body(bomb, ENCODED)
    server.pages["/sitemap.xml"] = index_of(*(server.base + name for name in names))
    peak = 0
    over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.01):
            try:
                peak = max(peak, folder_size())
            except OSError:
                continue

    thread = threading.Thread(target=watch)
    thread.start()
    report = urlset.verify(f"{server.base}/sitemap.xml", allow_private=True)
    over.set()
    thread.join()
    assert 40 << 20 < peak <= 100 << 20
    # eight at a time: possibly none of them fits
    assert report.counts["fetch.failed"] >= 18 and report.urls <= 2
    messages = {p.message for p in report.problems if p.code == "fetch.failed"}
    assert messages == {"more than 104,857,600 bytes in all files"}
    assert list(tmp_path.iterdir()) == []


def test_one_file_inflates_to_the_limit_and_no_more(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "MAX_BYTES", 1 << 20)
    exact = urlset_of(server.base)
    exact += b" " * ((1 << 20) - len(exact))
    server.pages["/exact.xml"] = body(gzip.compress(exact), ENCODED)
    server.pages["/more.xml"] = body(gzip.compress(exact + b" "), ENCODED)
    report = urlset.verify(f"{server.base}/exact.xml", allow_private=True)
    assert report.urls == 1 and report.bytes == 1 << 20
    assert "more than 1,048,576 bytes in one file" in failure(f"{server.base}/more.xml")[0]


def test_a_full_disk_is_said_in_one_line(server: HostileServer, tmp_path: Path) -> None:
    """Files of this process may have 1 MB: the disk is as good as full."""
    server.pages["/a.xml"] = urlset_of(server.base) + b" " * (3 << 20)
    server.pages["/b.xml"] = body(gzip.compress(b" " * (30 << 20)), ENCODED)
    server.pages["/sitemap.xml"] = index_of(f"{server.base}/b.xml")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20));"
        "from urlset.cli import main; main()"
    )
    for name in ("a.xml", "sitemap.xml"):
        done = subprocess.run(
            [sys.executable, "-c", code, "verify", f"{server.base}/{name}", "--allow-private"],
            capture_output=True, text=True, timeout=60, env={**os.environ, "TMPDIR": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 3
        (line,) = done.stderr.splitlines()
        assert str(tmp_path) in line and "TMPDIR" in line and "[fetch.disk]" in line
        assert list(tmp_path.iterdir()) == []


# --- numbers


def test_the_number_of_files(server: HostileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "MAX_FILES", 3)
    names = [f"/{n}.xml" for n in range(5)]
    for name in names:
        server.pages[name] = urlset_of(server.base + name)
    server.pages["/sitemap.xml"] = index_of(*(server.base + name for name in names))
    report = urlset.verify(f"{server.base}/sitemap.xml", allow_private=True)
    assert report.urls == 3 and report.counts == {"fetch.failed": 1}
    assert sorted(server.asked) == ["/0.xml", "/1.xml", "/2.xml", "/sitemap.xml"]
    with pytest.raises(urlset.InputError, match="only the first 3 are fetched"):
        urlset.read(f"{server.base}/sitemap.xml", allow_private=True)


def test_the_number_of_requests(server: HostileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download.time, "sleep", lambda _seconds: None)
    server.pages["/loop.xml"] = redirect(b"/loop.xml")
    assert "more than 5 redirects" in failure(f"{server.base}/loop.xml")[0]
    assert len(server.asked) == 6
    server.asked.clear()
    server.pages["/cut.xml"] = lambda c: c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
    failure(f"{server.base}/cut.xml")
    assert len(server.asked) == 3


def test_connections_are_used_again(server: HostileServer) -> None:
    """The bytes of one answer do not count for the next."""
    stop = threading.Event()

    def serve_many(c: Connection) -> None:
        path = c.path
        while not stop.is_set():
            data = many[path]
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
            head = b""
            while b"\r\n\r\n" not in head:
                got = c.sock.recv(65_536)
                if not got:
                    return
                head += got
            path = head.split(b" ")[1].decode()
            server.asked.append(path)

    many = {f"/{n}.xml": urlset_of(server.base, 300) for n in range(60)}
    many["/sitemap.xml"] = index_of(*(server.base + name for name in many))
    for name in many:
        server.pages[name] = serve_many
    report = urlset.verify(f"{server.base}/sitemap.xml", allow_private=True, duplicates=False)
    assert report.urls == 60 * 300 and report.ok
    assert len(server.asked) == 61 and server.connections <= 8
    stop.set()


def test_cookies_are_not_kept(server: HostileServer) -> None:
    heads: list[bytes] = []

    def with_cookie(c: Connection) -> None:
        heads.append(c.head)
        c.answer(urlset_of(server.base), "Set-Cookie: a=b; Path=/", "Connection: close")

    server.pages["/a.xml"] = with_cookie
    server.pages["/sitemap.xml"] = lambda c: c.answer(
        index_of(f"{server.base}/a.xml"), "Set-Cookie: a=b; Path=/", "Connection: close"
    )
    urlset.verify(f"{server.base}/sitemap.xml", allow_private=True)
    assert len(heads) == 1 and b"cookie" not in heads[0].lower()
