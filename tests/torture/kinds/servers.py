"""Hostile servers on the loopback interface for ``verify``, ``read`` and ``diff`` of a URL."""

from __future__ import annotations

import gzip
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..case import Case
from ..documents import INDEX, hostile, sitemap

WEIGHT = 2

#: maximum seconds of a slow server for one answer
SLOWEST = 4.0

HEADERS = (
    b"Location: http://[\r\n", b"Retry-After: \xb2\r\n", b"Content-Length: -5\r\n",
    b"Content-Length: 99999999999999999999\r\n", b"Content-Encoding: br\r\n",
    b"Content-Type: \xff\xfe\r\n", b"X: " + b"a" * 70_000 + b"\r\n", b"no colon here\r\n",
    b"Content-Encoding: gzip\r\n", b"Transfer-Encoding: chunked\r\n", b"\0: \0\r\n",
    b"Set-Cookie: a=b\r\n" * 300, b"Location: file:///etc/passwd\r\n", b"Retry-After: 1e999\r\n",
)  # fmt: skip
STATUSES = (
    b"200 OK", b"200 OK", b"200 OK", b"200 OK", b"301 Moved", b"302 Found", b"404 Not Found",
    b"500 Error", b"204 No Content", b"206 Partial", b"304 Not Modified", b"102 Processing",
    b"999 ?", b"abc", b"200",
)  # fmt: skip


def run(case: Case) -> None:
    with serving(case.rng) as port:
        url = f"http://127.0.0.1:{port}/sitemap.xml"
        match case.rng.randrange(4):
            case 0:
                case.urlset("read", url, "--allow-private", "-o", case.folder / "r.csv", limit=120)
            case _:
                case.urlset("verify", url, "--allow-private", "--quiet", limit=120)


@contextmanager
def serving(rng: random.Random) -> Iterator[int]:
    """A server with prepared answers, which do not depend on the order of the threads."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    answers = [_answer(rng, port) for _ in range(12)]
    stop = threading.Event()
    count = [0]

    def serve() -> None:
        listener.settimeout(0.1)
        while not stop.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            answer = answers[count[0] % len(answers)]
            count[0] += 1
            threading.Thread(target=_send, args=(client, *answer, stop), daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield port
    finally:
        stop.set()
        thread.join()
        listener.close()


def _answer(rng: random.Random, port: int) -> tuple[bytes, float]:
    """The bytes of an answer, and the seconds over which they are sent."""
    here = f"http://127.0.0.1:{port}"
    body = rng.choice((
        lambda: hostile(rng),
        lambda: sitemap(rng, "127.0.0.1"),
        lambda: gzip.compress(sitemap(rng))[: rng.randrange(400)],
        lambda: (INDEX + "".join(
            f"<sitemap><loc>{here}/{rng.choice(('sitemap', n))}.xml</loc></sitemap>"
            for n in range(rng.choice((1, 20)))
        ) + "</sitemapindex>").encode(),
    ))()  # fmt: skip
    head = b"HTTP/1.1 " + rng.choice(STATUSES) + b"\r\n"
    if rng.random() < 0.4:
        head += f"Location: {here}/{rng.choice(('sitemap.xml', 'b.xml', '/', 'é'))}\r\n".encode()
    for _ in range(rng.choice((0, 0, 1, 2))):
        head += rng.choice(HEADERS)
    if rng.random() < 0.5:
        head += f"Content-Length: {len(body) + rng.choice((0, 0, 0, 10, -1))}\r\n".encode()
    whole = head + b"Connection: close\r\n\r\n" + body
    if rng.random() < 0.1:
        whole = whole[: rng.randrange(len(whole))]
    return whole, rng.choice((0.0, 0.0, 0.0, SLOWEST * rng.random()))


def _send(client: socket.socket, data: bytes, seconds: float, stop: threading.Event) -> None:
    parts = 20 if seconds else 1
    size = len(data) // parts + 1
    with client:
        try:
            client.settimeout(SLOWEST)
            client.recv(65_536)
            for at in range(0, len(data), size):
                if stop.is_set():
                    return
                client.sendall(data[at : at + size])
                time.sleep(seconds / parts)
        except OSError:
            return  # the reader has closed the connection
