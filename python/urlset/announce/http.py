"""One engine asked over HTTP: bounded in time and size, retried with patience, keys kept in.

The connection, TLS and proxies are httpx's. The retries are ours (no tenacity, no stamina): how
long to wait is what the answer says (``Retry-After``, on the server's clock), all workers of an
engine wait together, waiting ends at once on Ctrl-C, and no exception of httpx, which would carry
the address and with it a key, is ever in the chain of what is raised.
"""

from __future__ import annotations

import queue
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from ..errors import AnnounceError, ConfigError
from ..wording import count
from .address import is_loopback
from .secrets import Keyring

if TYPE_CHECKING:
    import httpx

#: seconds before the first retry; doubled each time, up to the cap, times 0.5 to 1 (jitter)
BACKOFF, BACKOFF_CAP = 1.0, 60.0
#: seconds to wait after 429 without Retry-After (PROTOCOL section 4: at least ten minutes)
THROTTLED = 600.0
#: seconds that requests in flight are given after Ctrl-C, so that the journal stays true
GRACE = 5.0
#: bytes of an answer that are read; the rest is left
ANSWER_LIMIT = 4 * 1024 * 1024
#: bytes of an answer with all that is around them: TLS, headers, chunk sizes
WIRE_LIMIT = 4 * ANSWER_LIMIT

JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it will be sent. Its ``repr`` shows nothing, for it may hold keys."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)

    def text(self) -> str:
        """The exact request for a dry run; keys still in it: to be hidden by the caller."""
        lines = [f"{self.method} {self.url}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += ["", self.body.decode("utf-8")] if self.body is not None else []
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        body: its first :data:`ANSWER_LIMIT` bytes.
        cut: whether there were more.
        clock: seconds by which the server's ``Date`` is ahead of this machine, if it sent one.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    cut: bool
    clock: float | None


@dataclass(frozen=True, slots=True)
class Again:
    """The verdict that a request should be sent once more.

    Attributes:
        why: for a person.
        asked: seconds the server asked for; ``None`` leaves it to the backoff, and only those
            retries are counted: where the server asks for patience, ``max_wait`` is the limit.
    """

    why: str
    asked: float | None = None


@dataclass(frozen=True, slots=True)
class _Failure:
    why: str
    final: bool = False


class Stopped(Exception):
    """The run was interrupted while this request waited."""


#: says that an answer is good (``None``), should be asked for again, or raises AnnounceError
Judge = Callable[[Answer], "Again | None"]

_T = TypeVar("_T")


def within(seconds: float, work: Callable[[], _T], stop: threading.Event) -> _T | None:
    """What ``work`` returns, or ``None`` where it takes longer, or after a stop and its grace.

    The work is done by a daemon thread: neither a server that feeds one byte at a time nor one
    that never answers can hold the run, or the end of the process.
    """
    box: queue.SimpleQueue[_T] = queue.SimpleQueue()
    try:
        threading.Thread(target=lambda: box.put(work()), daemon=True).start()
    except RuntimeError:  # no thread to be had: the work has limits of its own
        return work()
    deadline = time.monotonic() + seconds
    stopped = False
    while (left := deadline - time.monotonic()) > 0:
        if stop.is_set() and not stopped:
            stopped, deadline = True, min(deadline, time.monotonic() + GRACE)
            continue
        try:
            return box.get(timeout=min(left, 0.25))
        except queue.Empty:
            pass
    return None


class Http:
    """The client for one endpoint of one engine; safe to be used by several threads.

    Args:
        engine: its name, for messages and codes.
        base: where all requests go: any other scheme, host or port is refused.
        timeout: seconds for one whole exchange, from connecting to the last byte.
        retries: how often a failed request is sent again where the server does not ask for
            patience.
        max_wait: seconds that one request may wait in all.
        notify: is told each wait in one line.
        follows: redirects are returned, for a caller that sends no key and follows by itself.
        allow_private: connect to addresses that are not public, too: to what the user names.
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
        follows: bool = False,
        allow_private: bool = True,
    ) -> None:
        self.engine, self.base, self.keyring, self.stop = engine, base, keyring, stop
        self.timeout, self.retries, self.max_wait = timeout, retries, max_wait
        self.notify = notify or (lambda _line: None)
        self.requests = 0
        self._follows, self._allow_private = follows, allow_private
        self._origin = urlsplit(base)[:2]
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._client: httpx.Client | None = None

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def call(self, request: Request, judge: Judge) -> Answer:
        """Send ``request`` until ``judge`` accepts an answer.

        Statuses 408, 429, 500, 502, 503, 504 and answers that do not come are tried again; a
        redirect is never followed.

        Raises:
            AnnounceError: what ``judge`` raises; ``ENGINE.redirect``; ``ENGINE.throttled`` and
                ``ENGINE.unanswered`` when patience is at its end.
            Stopped: after an interrupt.
        """
        counted, waited, attempt = 0, 0.0, 0
        while True:
            self._pause()
            result = self._exchange(request)
            if isinstance(result, Answer):
                again = self._transient(result) or judge(result)
                if again is None:
                    return result
                throttled = result.status == 429
            else:
                if result.final:
                    raise AnnounceError(f"{result.why}", code=f"{self.engine}.unanswered")
                again, throttled = Again(result.why), False
            backoff = min(BACKOFF_CAP, BACKOFF * 2**attempt)
            backoff *= random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
            wait = max(again.asked or 0.0, backoff)
            attempt += 1
            counted += again.asked is None
            code = f"{self.engine}.{'throttled' if throttled else 'unanswered'}"
            if counted > self.retries:
                raise AnnounceError(f"{again.why} (tried {count(attempt, 'time')})", code=code)
            if waited + wait > self.max_wait:
                raise AnnounceError(
                    f"{again.why}: it asks to wait {wait:,.0f} s, which is beyond the"
                    f" {self.max_wait:,.0f} s of --max-wait; run the same command again later",
                    code=code,
                )
            waited += wait
            if wait >= 2:
                self.notify(f"{self.engine}: {again.why}; trying again in {wait:,.0f} s")
            if throttled:
                with self._lock:
                    self._not_before = max(self._not_before, time.monotonic() + wait)
            elif self.stop.wait(wait):
                raise Stopped

    def say(self, answer: Answer) -> str:
        """The text of an answer for a message: one line, short, no key in it."""
        text = self.keyring.hide(answer.body[:65_536].decode("utf-8", "replace"))
        text = "".join(c if c.isprintable() else " " for c in text)
        text = self.keyring.hide(" ".join(text.split()))
        return text[:200] + "..." if len(text) > 200 else text

    def refuse(self, answer: Answer, why: str, code: str) -> AnnounceError:
        """The error for an answer that says no, with the answer's own words behind ours."""
        said = self.say(answer)
        return AnnounceError(
            f"{why} (HTTP {answer.status}{': ' + said if said else ''})",
            code=f"{self.engine}.{code}",
        )

    def _transient(self, answer: Answer) -> Again | None:
        if 300 <= answer.status < 400 and not self._follows:
            host = _host(answer.headers.get("location", "")) or "nowhere"
            host = "".join(c if c.isprintable() else "?" for c in self.keyring.hide(host))
            raise AnnounceError(
                f"answered with a redirect to {host} (HTTP {answer.status}): never followed,"
                " because a key would go with it",
                code=f"{self.engine}.redirect",
            )
        if answer.status not in (408, 429, 500, 502, 503, 504):
            return None
        asked = retry_after(answer)
        if answer.status == 429:
            return Again("too many requests (HTTP 429)", THROTTLED if asked is None else asked)
        said = self.say(answer)
        return Again(f"HTTP {answer.status}{': ' + said if said else ''}", asked)

    def _pause(self) -> None:
        """Wait until the endpoint, which one worker was told to spare, may be asked again."""
        while True:
            with self._lock:
                left = self._not_before - time.monotonic()
            if self.stop.wait(max(0.0, left)):
                raise Stopped
            if left <= 0:
                return

    def _exchange(self, request: Request) -> Answer | _Failure:
        parts = urlsplit(request.url)
        if parts[:2] != self._origin:
            raise AssertionError(f"{self.engine}: an address outside of the endpoint")
        self._open()
        with self._lock:
            self.requests += 1
        # the exchange ends by itself; this is for an interrupt, and for a resolver that hangs
        result = within(self.timeout + 1.0, lambda: self._once(request), self.stop)
        if result is not None:
            return result
        if self.stop.is_set():
            raise Stopped
        return _Failure(f"{parts.netloc} did not answer within {self.timeout:g} s")

    def _open(self) -> None:
        with self._lock:
            if self._client is None:
                import httpx

                from .._core import __version__
                from ..transport import Transport

                self._client = httpx.Client(
                    follow_redirects=False,
                    timeout=self.timeout,
                    transport=Transport(
                        allow_private=self._allow_private,
                        # a proxy must not see what is sent to this machine in the clear
                        proxies=not is_loopback(urlsplit(self.base)),
                    ),
                    # no compression: what is read is what came, so its size is bounded
                    headers={
                        "User-Agent": f"urlset/{__version__}",
                        "Accept": "*/*",
                        "Accept-Encoding": "identity",
                    },
                )

    def _once(self, request: Request) -> Answer | _Failure:
        """One exchange. Never raises: an exception of httpx holds the address, keys and all."""
        import httpx

        from ..transport import Budget, ExceededError, PrivateError

        assert self._client is not None  # noqa: S101 - opened by _exchange
        host = urlsplit(request.url).netloc
        late = _Failure(f"{host} did not answer within {self.timeout:g} s")
        budget = Budget(self.timeout, WIRE_LIMIT)
        try:
            with (
                budget,
                self._client.stream(
                    request.method, request.url, headers=request.headers, content=request.body
                ) as response,
            ):
                headers = {name.lower(): value for name, value in response.headers.items()}
                clock = _clock(headers.get("date"))
                body, cut = bytearray(), False
                try:
                    for chunk in response.iter_raw():
                        body += chunk
                        if cut := len(body) > ANSWER_LIMIT:
                            break
                except ExceededError:  # the status has come, and it may be all that is asked for
                    cut = True
                return Answer(response.status_code, headers, bytes(body[:ANSWER_LIMIT]), cut, clock)
        except ExceededError as error:
            return late if not budget.left() else _Failure(f"{host} sent {error}")
        except PrivateError:
            return _Failure(f"{host} has a private address", final=True)
        except ConfigError as error:
            return _Failure(str(error), final=True)
        except httpx.ConnectTimeout:
            return _Failure(f"no connection to {host} within {self.timeout:g} s")
        except httpx.TimeoutException:
            return late
        except httpx.ProxyError as error:
            return _Failure(f"the proxy refused to reach {host}: {self._short(error)}", final=True)
        except httpx.ConnectError as error:
            text = self._short(error)
            bad_tls = "CERTIFICATE_VERIFY_FAILED" in text
            why = "its certificate cannot be trusted" if bad_tls else "cannot connect"
            return _Failure(f"{host}: {why}: {text}", final=bad_tls)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
            return _Failure(f"{host} broke off or garbled its answer: {self._short(error)}")
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError, ValueError) as error:
            return _Failure(f"{host}: {type(error).__name__}: {self._short(error)}", final=True)
        except Exception as error:  # noqa: BLE001 - a thread's traceback would show the address
            return _Failure(f"{host}: {type(error).__name__}", final=True)

    def _short(self, error: Exception) -> str:
        text = self.keyring.hide(str(error))
        return "".join(c if c.isprintable() else " " for c in text)[:160] or type(error).__name__


def _host(location: str) -> str:
    try:
        return urlsplit(location[:2048]).netloc.rpartition("@")[2][:100]
    except ValueError:
        return ""


def _clock(date: str | None) -> float | None:
    moment = _http_date(date)
    return None if moment is None else (moment - datetime.now(UTC)).total_seconds()


def _http_date(text: str | None) -> datetime | None:
    if not text or len(text) > 100:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def retry_after(answer: Answer) -> float | None:
    """Seconds that ``Retry-After`` asks for (RFC 9110, 10.2.3): a number, or a date.

    A date is measured against the ``Date`` of the same answer: a clock of ours that is far off
    neither shortens nor stretches the wait. ``None`` where there is none, or not a legal one.
    """
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    moment = _http_date(text)
    if moment is None:
        return None
    now = _http_date(answer.headers.get("date")) or datetime.now(UTC)
    return max(0.0, (moment - now).total_seconds())
