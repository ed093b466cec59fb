"""The client of one search engine: retries, and no key in any message.

The exchange itself and its limits are those of :mod:`urlset.transport`. The retries are implemented
here and not by tenacity or stamina: the response determines the wait (``Retry-After``), all threads
of an engine wait together, and an interrupt ends the wait at once. An exception of httpx contains
the URL, and so a key: none is in the chain of a raised exception (test_errors_have_no_chain).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import AnnounceError, ConfigError
from ..threads import completed
from ..transport import BudgetError, ExchangeError
from ..transport.keyring import Keyring
from ..transport.retry import backoff, http_date, is_transient, retry_after
from ..wording import count, one_line
from .address import is_loopback

if TYPE_CHECKING:
    from ..transport.client import Client

#: seconds before the first retry, and the maximum, unless the server asks for more
BACKOFF, BACKOFF_CAP = 1.0, 60.0
#: seconds to wait after 429 without Retry-After (IndexNow: at least ten minutes)
THROTTLED = 600.0
#: seconds that current requests get after an interrupt, so that the journal is correct
GRACE = 5.0
#: bytes of the body that are read; the rest is ignored
MAX_BODY = 4 << 20
#: bytes of an answer with all that surrounds it: TLS, headers, chunk sizes
MAX_WIRE = 4 * MAX_BODY
#: bytes of a body, and characters of it, that a message quotes
MAX_QUOTED_BODY, MAX_QUOTE = 1 << 16, 200
#: characters of the reason why an exchange failed
MAX_REASON = 160
#: characters of a redirect's URL that are parsed, and of its host that a message quotes
MAX_LOCATION, MAX_HOST = 2_048, 100
#: seconds from which on a wait is reported
LONG_WAIT = 2.0
#: seconds that an exchange may overrun its budget before the caller stops waiting for it
OVERRUN = 1.0

JSON = "application/json; charset=utf-8"

# no compression, so that the limit of the body applies to the received bytes
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it will be sent. Its ``repr`` shows no field that can contain a key."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)

    def text(self) -> str:
        """The exact request for a dry run; keys are in it, and the caller masks them."""
        lines = [f"{self.method} {self.url}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += ["", self.body.decode("utf-8")] if self.body is not None else []
        return "\n".join(lines) + "\n"


def json_request(method: str, url: str, value: object, headers: Mapping[str, str]) -> Request:
    """A request with a JSON body."""
    body = json.dumps(value, separators=(",", ":")).encode("ascii")
    return Request(method, url, {**headers, "Content-Type": JSON}, body)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a server.

    Attributes:
        headers: by name in lower case.
        body: its first :data:`MAX_BODY` bytes.
        cut: the body is longer, or was not complete in time.
        clock: seconds by which the server's ``Date`` is ahead of this machine, if it sent one.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    cut: bool
    clock: float | None

    def json(self) -> Mapping[str, Any]:
        """The JSON object in the body; empty if there is none."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Retry:
    """The decision to send a request again.

    Attributes:
        why: for a person.
        asked: seconds that the server asks for; ``None``: the backoff. Only retries without it
            are counted: ``max_wait`` limits the others.
    """

    why: str
    asked: float | None = None


class Cancelled(Exception):
    """The run was interrupted while this request waited."""


#: accepts an answer (``None``), asks for a retry, or raises AnnounceError
Judge = Callable[[Answer], Retry | None]


class EngineClient:
    """The client of one endpoint of one engine; safe to use from several threads.

    Args:
        engine: its name, for messages and codes.
        base: a URL; a request to any other scheme, host or port is refused.
        stop: set when the run is interrupted.
        timeout: seconds for one exchange, from connecting to the last byte.
        retries: of a failed request, where the server does not ask for a wait.
        max_wait: seconds that one request may wait in all.
        notify: receives one line for each long wait.
        redirects: whether redirects are returned, for a caller that sends no key; else an error.
        allow_private: also connect to private addresses: for hosts that the user names.
    """

    def __init__(
        self,
        engine: str,
        base: str,
        keyring: Keyring,
        stop: threading.Event,
        *,
        timeout: float = 30.0,
        retries: int = 4,
        max_wait: float = 900.0,
        notify: Callable[[str], None] | None = None,
        redirects: bool = False,
        allow_private: bool = True,
    ) -> None:
        self.engine, self.base, self.keyring, self.stop = engine, base, keyring, stop
        self.timeout, self.retries, self.max_wait = timeout, retries, max_wait
        self.notify = notify or (lambda _line: None)
        self.requests = 0
        self._redirects, self._allow_private = redirects, allow_private
        self._origin = urlsplit(base)[:2]
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._client: Client | None = None

    def __enter__(self) -> EngineClient:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def call(self, request: Request, judge: Judge) -> Answer:
        """Sends ``request`` until ``judge`` accepts an answer.

        Raises:
            AnnounceError: what ``judge`` raises; ``ENGINE.redirect``; ``ENGINE.throttled`` and
                ``ENGINE.unanswered`` when no retry is left.
            Cancelled: after an interrupt.
        """
        counted, waited, attempt = 0, 0.0, 0
        while True:
            self._wait_for_turn()
            result = self._exchange(request)
            throttled = False
            if isinstance(result, Answer):
                again = self._retry_of(result) or judge(result)
                if again is None:
                    return result
                throttled = result.status == 429
            else:
                again = Retry(self._reason(request, result))
                if not result.retry:
                    raise AnnounceError(again.why, code=f"{self.engine}.unanswered")
            wait = max(again.asked or 0.0, backoff(attempt, BACKOFF, BACKOFF_CAP))
            attempt += 1
            counted += again.asked is None
            code = f"{self.engine}.{'throttled' if throttled else 'unanswered'}"
            if counted > self.retries:
                raise AnnounceError(f"{again.why} (tried {count(attempt, 'time')})", code=code)
            if waited + wait > self.max_wait:
                raise AnnounceError(
                    f"{again.why}: the next attempt is due in {wait:,.0f} s, more than the"
                    f" {self.max_wait:,.0f} s of --max-wait; run the same command again later",
                    code=code,
                )
            waited += wait
            if wait >= LONG_WAIT:
                self.notify(f"{self.engine}: {again.why}; trying again in {wait:,.0f} s")
            if throttled:
                with self._lock:
                    self._not_before = max(self._not_before, time.monotonic() + wait)
            elif self.stop.wait(wait):
                raise Cancelled

    def excerpt(self, answer: Answer) -> str:
        """The text of an answer for a message: one short line without keys."""
        text = self.keyring.hide(answer.body[:MAX_QUOTED_BODY].decode("utf-8", "replace"))
        text = self.keyring.hide(one_line(" ".join(text.split())))
        return text[:MAX_QUOTE] + "..." if len(text) > MAX_QUOTE else text

    def refusal(self, answer: Answer, why: str, code: str) -> AnnounceError:
        """The error for an answer that refuses a request."""
        text = self.excerpt(answer)
        return AnnounceError(
            f"{why} (HTTP {answer.status}{': ' + text if text else ''})",
            code=f"{self.engine}.{code}",
        )

    def _retry_of(self, answer: Answer) -> Retry | None:
        """The decision by the status alone."""
        if 300 <= answer.status < 400 and not self._redirects:
            host = one_line(self.keyring.hide(_host(answer.headers.get("location", ""))))
            raise AnnounceError(
                f"answered with a redirect to {host or 'no host'} (HTTP {answer.status}): not"
                " followed, because the key would be sent there",
                code=f"{self.engine}.redirect",
            )
        if not is_transient(answer.status):
            return None
        if answer.status == 429:
            return Retry("too many requests (HTTP 429)", retry_after(answer.headers, THROTTLED))
        text = self.excerpt(answer)
        return Retry(
            f"HTTP {answer.status}{': ' + text if text else ''}", retry_after(answer.headers)
        )

    def _reason(self, request: Request, error: ExchangeError) -> str:
        text = self.keyring.hide(str(error))[:MAX_REASON]
        return f"{urlsplit(request.url).netloc}: {text}"

    def _wait_for_turn(self) -> None:
        """Waits while the endpoint is throttled, because of any thread."""
        while True:
            with self._lock:
                left = self._not_before - time.monotonic()
            if self.stop.wait(max(0.0, left)):
                raise Cancelled
            if left <= 0:
                return

    def _exchange(self, request: Request) -> Answer | ExchangeError:
        if urlsplit(request.url)[:2] != self._origin:
            raise AssertionError(f"{self.engine}: a URL outside of the endpoint")
        client = self._open()
        with self._lock:
            self.requests += 1
        deadline = time.monotonic() + self.timeout + OVERRUN
        stopped = False

        def left() -> float:
            nonlocal deadline, stopped
            if self.stop.is_set() and not stopped:
                stopped, deadline = True, min(deadline, time.monotonic() + GRACE)
            return deadline - time.monotonic()

        try:
            # the exchange ends by itself; the thread is for an interrupt
            for _, answer in completed(lambda one: self._send(client, one), [request], left):
                return answer
        except ExchangeError as error:
            return error
        except ConfigError as error:  # a proxy that cannot be used
            return ExchangeError(str(error))
        except Exception as error:  # noqa: BLE001 - its message can contain the URL
            return ExchangeError(type(error).__name__)
        if self.stop.is_set():
            raise Cancelled
        return ExchangeError(f"no complete answer within {self.timeout:g} s", retry=True)

    def _open(self) -> Client:
        with self._lock:
            if self._client is None:
                from ..transport.client import Client  # httpx takes 60 ms

                self._client = Client(
                    _HEADERS,
                    timeout=None,
                    allow_private=self._allow_private,
                    # a proxy must not see requests to this machine
                    proxies=not is_loopback(self.base),
                )
            return self._client

    def _send(self, client: Client, request: Request) -> Answer:
        from ..transport.budget import Budget

        with (
            Budget(self.timeout, MAX_WIRE),
            client.exchange(
                request.method, request.url, headers=request.headers, content=request.body
            ) as response,
        ):
            headers = {name.lower(): value for name, value in response.headers.items()}
            clock = _clock(headers.get("date"))
            body, cut = bytearray(), False
            try:
                for chunk in response.iter_raw():
                    body += chunk
                    if cut := len(body) > MAX_BODY:
                        break
            except BudgetError:  # some engines answer by the status alone
                cut = True
            return Answer(response.status_code, headers, bytes(body[:MAX_BODY]), cut, clock)


def _host(location: str) -> str:
    try:
        return urlsplit(location[:MAX_LOCATION]).netloc.rpartition("@")[2][:MAX_HOST]
    except ValueError:
        return ""


def _clock(date: str | None) -> float | None:
    moment = http_date(date)
    return None if moment is None else (moment - datetime.now(UTC)).total_seconds()
