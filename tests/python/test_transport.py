"""Shared by announce and remote targets: limits, retries, redirects, threads."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from urlset.threads import completed
from urlset.transport import BudgetError, ExchangeError, PrivateAddressError, client
from urlset.transport.budget import Budget
from urlset.transport.retry import backoff, is_transient, redirected, retry_after

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def date(seconds: float) -> str:
    return format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)


# --- retries


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0), ("7", 7), (" 120 ", 120), ("9" * 400, 999_999_999_999), (date(90), 90),
        (date(-90), 0), ("-1", None), ("1.5", None), ("\u00b2", None), ("\u0661", None), ("", None),
        ("soon", None), ("x" * 10_000, None), (date(5) + " " * 100 + "x", None),
        ("Mon, 99 Nov 2026 12:00:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value, "date": date(0)}) == seconds


def test_retry_after_without_a_date_of_the_server() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    found = retry_after({"retry-after": later, "date": "nonsense"})
    assert found is not None and 55 < found <= 60
    assert retry_after({}) is None


def test_the_backoff_doubles_up_to_its_limit() -> None:
    for attempt, limit in ((0, 1.0), (1, 2.0), (5, 32.0), (6, 60.0), (10**9, 60.0)):
        waits = [backoff(attempt, 1.0, 60.0) for _ in range(200)]
        assert limit / 2 <= min(waits) < max(waits) <= limit


def test_which_statuses_are_tried_again() -> None:
    again = {status for status in range(100, 1_000) if is_transient(status)}
    assert again == {408, 429, *range(500, 600)} - {501, 505}


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/a", "https://shop.test/a"), ("b", "https://shop.test/x/b"), ("//c/d", "https://c/d"),
        ("http://e/", "http://e/"), ("", "https://shop.test/x/y"), ("http://[::1", None),
    ],
)  # fmt: skip
def test_redirects(location: str, url: str | None) -> None:
    assert redirected("https://shop.test/x/y", location) == url


# --- the client, over a transport without a network


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Response | Exception]:
    """The successive responses of the transport."""
    queue: list[httpx.Response | Exception] = []

    def answer(_request: httpx.Request) -> httpx.Response:
        found = queue.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(client, "Transport", lambda *_: httpx.MockTransport(answer))
    return queue


def get(
    url: str, *, seconds: float = 5.0, limit: int = 1 << 20, allow_private: bool = True
) -> bytes:
    opened = client.Client({}, timeout=None, allow_private=allow_private, proxies=False)
    with opened, Budget(seconds, limit), opened.exchange("GET", url) as response:
        return b"".join(response.iter_raw())


def test_redirects_and_cookies_are_left_to_the_caller(
    answers: list[httpx.Response | Exception],
) -> None:
    moved = {"Location": "https://inside.test/", "Set-Cookie": "a=b"}
    answers += [httpx.Response(302, headers=moved), httpx.Response(200, content=b"x")]
    opened = client.Client({}, timeout=None, allow_private=True)
    with opened:
        with opened.exchange("GET", "https://shop.test/") as response:
            assert response.status_code == 302
        with opened.exchange("GET", "https://shop.test/") as response:
            assert "cookie" not in response.request.headers
            assert response.request.headers["User-Agent"].startswith("urlset/")


@pytest.mark.parametrize("url", ["http://[::1", "http://" + "a" * 70_000, "http://\udc80/", "x:y"])
def test_a_url_that_no_request_can_be_made_of(url: str) -> None:
    with pytest.raises(ExchangeError) as error:
        get(url)
    assert not error.value.retry and str(error.value).isprintable()


def test_an_error_is_one_line_without_control_characters(
    answers: list[httpx.Response | Exception],
) -> None:
    answers.append(httpx.ReadError("a\r\n\x1b[31mb"))
    with pytest.raises(ExchangeError) as error:
        get("https://shop.test/")
    assert str(error.value) == "a\\r\\n\\x1b[31mb"


def test_an_error_of_the_caller_is_not_changed(answers: list[httpx.Response | Exception]) -> None:
    answers.append(httpx.Response(200))
    opened = client.Client({}, timeout=None, allow_private=True)
    with pytest.raises(ValueError, match="mine"), opened.exchange("GET", "https://shop.test/"):
        raise ValueError("mine")


# --- over sockets


def test_which_failures_are_tried_again() -> None:
    """Each failure by its cause, at a port whose server does the minimum that causes it."""

    def failure(reply: bytes | None, *, allow_private: bool = True, limit: int = 1 << 20) -> object:
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def serve() -> None:
                peer, _ = listener.accept()
                with peer:
                    peer.recv(65_536)
                    if reply is None:
                        time.sleep(1.0)
                    else:
                        peer.sendall(reply)

            threading.Thread(target=serve, daemon=True).start()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            with pytest.raises(ExchangeError) as error:
                get(url, seconds=0.5, limit=limit, allow_private=allow_private)
            return type(error.value), error.value.retry

    assert failure(None) == (BudgetError, True)
    assert failure(b"") == failure(b"SSH-2.0\r\n\r\n") == (ExchangeError, True)
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
    assert failure(half) == (ExchangeError, True)
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5_000
    assert failure(whole, limit=4_000) == (BudgetError, False)
    assert failure(b"", allow_private=False) == (PrivateAddressError, False)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ExchangeError, match="cannot connect") as error:
        get(f"http://127.0.0.1:{port}/")
    assert error.value.retry


# --- threads


def test_results_come_with_the_position_of_their_job() -> None:
    def work(number: int) -> int:
        time.sleep(0.05 * (3 - number))
        return number * number

    found = list(completed(work, [0, 1, 2, 3], lambda: 5.0, threads=4))
    assert sorted(found) == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert list(completed(work, [], lambda: 5.0)) == []


def test_no_more_threads_than_allowed() -> None:
    running, peak, lock = 0, 0, threading.Lock()

    def work(_number: int) -> None:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        time.sleep(0.02)
        with lock:
            running -= 1

    assert len(list(completed(work, range(20), lambda: 5.0, threads=3))) == 20
    assert peak == 3


def test_an_error_ends_the_other_jobs() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number == 1:
            raise KeyError("no")
        time.sleep(0.05)
        done.append(number)

    with pytest.raises(KeyError):
        list(completed(work, range(1_000), lambda: 30.0, threads=2))
    time.sleep(0.3)
    assert len(done) < 20


def test_nobody_waits_for_a_thread_that_hangs() -> None:
    """Neither the caller nor the end of the process."""
    code = (
        "import time\n"
        "from urlset.threads import completed\n"
        "end = time.monotonic() + 0.5\n"
        "jobs = [0, 60]\n"
        "print(list(completed(time.sleep, jobs, lambda: end - time.monotonic(), threads=2)))"
    )
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.stdout.strip() == "[(0, None)]", done.stderr
    assert time.monotonic() - start < 20


def test_without_threads_the_caller_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert list(completed(str, [1, 2], lambda: 5.0, threads=4)) == [(0, "1"), (1, "2")]
    assert list(completed(str, [1, 2], lambda: 0.0)) == [(0, "1"), (1, "2")]
