"""A server on loopback that violates HTTP at the level of bytes, as no library would.

Each behaviour is a function of the connection, called after the request is read. It may do with
the socket whatever it likes; the connection is closed after it, and when the server stops.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import socket
import threading
import zlib
from collections.abc import Callable
from typing import Self

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"


class Connection:
    """One connection with its request, the argument of a behaviour."""

    def __init__(self, server: HostileServer, sock: socket.socket, path: str, head: bytes) -> None:
        self.server, self.sock, self.path, self.head = server, sock, path, head

    @property
    def over(self) -> bool:
        return self.server.stopped.is_set()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def answer(self, body: bytes, *headers: str, status: str = "200 OK") -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        self.send("\r\n".join(lines).encode("latin-1") + body)

    def drip(self, data: bytes, seconds: float = 0.05) -> None:
        """Sends one byte after the other."""
        for at in range(len(data)):
            if self.over:
                return
            self.send(data[at : at + 1])
            self.server.stopped.wait(seconds)

    def endless(self, data: bytes, seconds: float = 0.0) -> None:
        """Sends the same again and again until the other side leaves."""
        while not self.over:
            self.send(data)
            if seconds:
                self.server.stopped.wait(seconds)

    def silence(self) -> None:
        self.server.stopped.wait(120)


Behaviour = Callable[[Connection], None]


def urlset_of(base: str, count: int = 1) -> bytes:
    rows = "".join(f"<url><loc>{base}/page-{n}</loc></url>" for n in range(count))
    return f'<urlset xmlns="{NS}">{rows}</urlset>'.encode()


def index_of(*locs: str) -> bytes:
    rows = "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs)
    return f'<sitemapindex xmlns="{NS}">{rows}</sitemapindex>'.encode()


class HostileServer:
    """Serves ``pages``: bytes, which are sent correctly, or behaviours.

    Attributes:
        default: for all other paths; 404 where there is none.
        asked: the path of each request, in order.
        connections: how many were accepted, whether or not they sent a request.
    """

    def __init__(self) -> None:
        self.pages: dict[str, bytes | Behaviour] = {}
        self.default: bytes | Behaviour | None = None
        self.asked: list[str] = []
        self.connections = 0
        self.stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)

    def _accept(self) -> None:
        while not self.stopped.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        self._open.add(sock)
        try:
            with sock, contextlib.suppress(OSError):
                sock.settimeout(120)
                head = b""
                while b"\r\n\r\n" not in head:
                    data = sock.recv(65_536)
                    if not data:
                        return
                    head += data
                head, _, sent = head.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: *([0-9]+)", head)
                left = (int(length[1]) if length else 0) - len(sent)
                while left > 0 and (data := sock.recv(65_536)):
                    left -= len(data)
                line = head.split(b"\r\n", 1)[0].split(b" ")
                path = line[1].decode("latin-1")
                self.asked.append(path)
                connection = Connection(self, sock, path, head)
                page = self.pages.get(path.partition("?")[0], self.default)
                if page is None:
                    connection.answer(b"", "Connection: close", status="404 Not Found")
                elif isinstance(page, bytes):
                    connection.answer(page, "Connection: close")
                else:
                    page(connection)
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_WR)
        finally:
            self._open.discard(sock)


# --- the table

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def raw(data: bytes) -> Behaviour:
    return lambda c: c.send(data)


def redirect(location: bytes, status: bytes = b"302 Found") -> Behaviour:
    return raw(
        b"HTTP/1.1 " + status + b"\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    )


def status(line: str, *headers: str) -> Behaviour:
    return lambda c: c.answer(b"no", *headers, status=line)


def then_silence(data: bytes) -> Behaviour:
    def behave(c: Connection) -> None:
        c.send(data)
        c.silence()

    return behave


def start_then(data: bytes, rest: Callable[[Connection], None]) -> Behaviour:
    def behave(c: Connection) -> None:
        c.send(data)
        rest(c)

    return behave


def body(data: bytes, *headers: str) -> Behaviour:
    return lambda c: c.answer(data, *headers)


def _bomb(megabytes: int) -> bytes:
    zipper = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b" " * (1 << 20)
    return b"".join([*(zipper.compress(block) for _ in range(megabytes)), zipper.flush()])


PLAIN = urlset_of("http://www.shop.example")
ZIPPED = gzip.compress(PLAIN, mtime=0)
ENCODED = "Content-Encoding: gzip"

#: endless responses, by name
ENDLESS: dict[str, Behaviour] = {
    "drip-status": lambda c: c.drip(b"HTTP/1.1 200 OK" * 1000),
    "drip-header-name": start_then(HEAD + b"X-", lambda c: c.drip(b"a" * 10_000)),
    "drip-header-value": start_then(HEAD + b"X-A: ", lambda c: c.drip(b"a" * 10_000)),
    "drip-many-headers": start_then(HEAD, lambda c: c.endless(b"X-A: b\r\n", 0.05)),
    "drip-body": start_then(
        HEAD + b"Content-Length: 100000\r\n\r\n", lambda c: c.drip(b"a" * 9999)
    ),
    "drip-body-to-the-end": start_then(HEAD + b"\r\n", lambda c: c.drip(b"a" * 9999)),
    "drip-chunk-size": start_then(CHUNKED, lambda c: c.drip(b"0" * 10_000)),
    "drip-chunks": start_then(CHUNKED, lambda c: c.endless(b"1\r\na\r\n", 0.05)),
    "drip-chunk-extension": start_then(CHUNKED + b"1;", lambda c: c.drip(b"a" * 9999)),
    "drip-trailers": start_then(
        CHUNKED + b"1\r\na\r\n0\r\n", lambda c: c.endless(b"X-A: b\r\n", 0.05)
    ),
    "interim-slowly": lambda c: c.endless(b"HTTP/1.1 102 Processing\r\n\r\n", 0.05),
    "interim-hints-slowly": lambda c: c.endless(b"HTTP/1.1 103 Hints\r\nX: x\r\n\r\n", 0.05),
    "interim-continue-slowly": lambda c: c.endless(b"HTTP/1.1 100 Continue\r\n\r\n", 0.05),
    "silent": lambda c: c.silence(),
    "silent-after-status": then_silence(b"HTTP/1.1 200 OK\r\n"),
    "silent-after-headers": then_silence(HEAD + b"Content-Length: 10\r\n\r\n"),
    "silent-in-body": then_silence(HEAD + b"Content-Length: 1000\r\n\r\n<urlset"),
    "silent-in-chunk": then_silence(CHUNKED + b"ff\r\nabc"),
    "drip-redirect": start_then(
        b"HTTP/1.1 302 Found\r\nLocation: /", lambda c: c.drip(b"a" * 10_000)
    ),
}  # fmt: skip

#: responses that are fast and endless, or too large
FLOODS: dict[str, Behaviour] = {
    "interim-fast": lambda c: c.endless(b"HTTP/1.1 102 Processing\r\n\r\n" * 500),
    "header-huge": start_then(HEAD + b"X-A: ", lambda c: c.endless(b"a" * 65_536)),
    "header-many": start_then(HEAD, lambda c: c.endless(b"X-A: b\r\n" * 5_000)),
    "status-huge": lambda c: c.endless(b"H" * 65_536),
    "chunk-extension-endless": start_then(CHUNKED + b"1;", lambda c: c.endless(b"a" * 65_536)),
    "chunk-extensions-large": start_then(
        CHUNKED, lambda c: c.endless(b"1;" + b"a" * 60_000 + b"\r\nx\r\n")
    ),
    "trailers-endless": start_then(
        CHUNKED + b"0\r\n", lambda c: c.endless(b"X-A: b\r\n" * 5_000)
    ),
    "body-endless": start_then(HEAD + b"\r\n", lambda c: c.endless(b" " * 65_536)),
    "chunks-endless": start_then(CHUNKED, lambda c: c.endless(b"400\r\n" + b" " * 1024 + b"\r\n")),
    "bomb": body(_bomb(64), ENCODED),
    "empty-members": body(gzip.compress(b"", mtime=0) * 100_000, ENCODED),
}  # fmt: skip

#: immediate errors
WRONG: dict[str, Behaviour] = {
    "redirect-bracket": redirect(b"http://["),
    "redirect-bad-ipv6": redirect(b"http://[::g]/"),
    "redirect-bad-port": redirect(b"http://127.0.0.1:99999999/"),
    "redirect-nul": redirect(b"http://a\x00b/"),
    "redirect-latin": redirect(b"http://\xff\xfe.example.invalid/\xb2"),
    "redirect-long-label": redirect(b"http://" + b"a" * 64 + b".invalid/"),
    "redirect-huge": redirect(b"http://127.0.0.1/" + b"a" * 70_000),
    "redirect-file": redirect(b"file:///etc/passwd"),
    "redirect-ftp": redirect(b"ftp://127.0.0.1/a"),
    "redirect-javascript": redirect(b"javascript:alert(1)"),
    "redirect-empty": redirect(b""),
    "redirect-slashes": redirect(b"//"),
    "redirect-question": redirect(b"http://?"),
    "redirect-idna": redirect(b"http://xn--/a"),
    "redirect-loop": lambda c: redirect(c.path.encode("latin-1"))(c),
    "redirect-none": raw(b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n"),
    "redirect-304": raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "redirect-300": raw(b"HTTP/1.1 300 Multiple Choices\r\nContent-Length: 0\r\n\r\n"),
    "retry-after-superscript": raw(
        b"HTTP/1.1 503 No\r\nRetry-After: \xb2\r\nContent-Length: 0\r\n\r\n"
    ),
    "retry-after-utf8": raw(
        b"HTTP/1.1 429 No\r\nRetry-After: \xc2\xb2\r\nContent-Length: 0\r\n\r\n"
    ),
    "retry-after-huge": status("429 No", "Retry-After: " + "9" * 400),
    "retry-after-date": status("503 No", "Retry-After: Fri, 99 Foo 99999 99:99:99 +9999"),
    "retry-after-minus": status("503 No", "Retry-After: -1"),
    "length-minus": raw(HEAD + b"Content-Length: -1\r\n\r\nabc"),
    "length-text": raw(HEAD + b"Content-Length: many\r\n\r\nabc"),
    "length-superscript": raw(HEAD + b"Content-Length: \xb2\r\n\r\nabc"),
    "length-huge": raw(HEAD + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nabc"),
    "length-digits": raw(HEAD + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\nabc"),
    "length-two": raw(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nabc"),
    "length-short": raw(HEAD + b"Content-Length: 100\r\n\r\nabc"),
    "chunked-and-length": raw(
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: -\r\n\r\n0\r\n\r\n"
    ),
    "chunk-size-bad": raw(CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n"),
    "chunk-size-huge": raw(CHUNKED + b"f" * 30 + b"\r\nabc"),
    "chunk-size-minus": raw(CHUNKED + b"-1\r\nabc\r\n"),
    "chunk-short": raw(CHUNKED + b"ff\r\nabc"),
    "chunk-no-end": raw(CHUNKED + b"3\r\nabcXX"),
    "transfer-unknown": raw(HEAD + b"Transfer-Encoding: \xff, gzip\r\n\r\nabc"),
    "http-0.9": raw(b"<urlset/>"),
    "http-2": raw(b"HTTP/2.0 200 OK\r\n\r\nabc"),
    "http-9": raw(b"HTTP/9.9 999 \xff\r\n\r\nabc"),
    "status-text": raw(b"HTTP/1.1 abc OK\r\n\r\n"),
    "status-0": raw(b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n"),
    "status-999": raw(b"HTTP/1.1 999 \xff\xfe\r\nContent-Length: 0\r\n\r\n"),
    "status-101": raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nabc"),
    "status-204": raw(b"HTTP/1.1 204 None\r\n\r\n"),
    "status-206": status("206 Partial"),
    "status-401": status("401 No", "WWW-Authenticate: \xff"),
    "status-407": status("407 Proxy"),
    "status-418": status("418 Teapot"),
    "header-bytes": raw(HEAD + b"X\xff: \x01\x02\r\nContent-Length: 1\r\n\r\na"),
    "header-nul": raw(HEAD + b"X: a\x00b\r\nContent-Length: 1\r\n\r\na"),
    "header-no-colon": raw(HEAD + b"nonsense\r\n\r\na"),
    "header-bare-newlines": raw(b"HTTP/1.1 200 OK\nContent-Length: -5\n\nabc"),
    "header-folded": raw(HEAD + b" folded\r\n\r\nabc"),
    "random": raw(bytes(range(256)) * 40),
    "nothing": raw(b""),
    "newlines": raw(b"\r\n" * 1_000),
    "tls-alert": raw(b"\x15\x03\x01\x00\x02\x02\x28"),
    "encoding-br": body(PLAIN, "Content-Encoding: br"),
    "encoding-list": body(ZIPPED, "Content-Encoding: gzip, gzip"),
    "encoding-bytes": body(PLAIN, "Content-Encoding: \xff"),
    "encoding-long": body(PLAIN, "Content-Encoding: " + "x" * 50_000),
    "encoding-lie": body(PLAIN, ENCODED),
    "gzip-garbage": body(b"\x1f\x8b\x08\x00" + bytes(range(256)) * 10, ENCODED),
    "gzip-header-only": body(b"\x1f\x8b", ENCODED),
    "gzip-cut": body(ZIPPED[:-5], ENCODED),
    "gzip-second-cut": body(ZIPPED + ZIPPED[:12], ENCODED),
    "gzip-crc": body(ZIPPED[:-8] + b"\0" * 8, ENCODED),
    "empty-200": body(b""),
    "empty-gzip": body(b"", ENCODED),
    "html": body(b"<html><body>no", "Content-Type: text/html"),
    "type-junk": body(b"\xff\xfe<\x00", 'Content-Type: text/xml; charset="\xff'),
    "cookies": body(b"no", *(f"Set-Cookie: a{n}={'b' * 200}; Domain=\xff" for n in range(200))),
}  # fmt: skip
