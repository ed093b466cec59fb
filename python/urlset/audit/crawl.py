"""Fetching and judging the pages of a sample, in an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from .. import _core
from ..errors import Error
from ..threads import start
from ..transport.retry import MAX_REDIRECTS, is_redirect, redirected
from .client import Answer, Client
from .host import ATTEMPTS, Host
from .page import MAX_QUOTE, Fact, Rules, host_of, judge, legible

#: seconds between two looks at the crawl, so that a signal ends the wait
POLL_INTERVAL = 0.1
#: characters of a content type
MAX_TYPE = 100
#: seconds that requests under way get when the crawl is stopped
STOP_SECONDS = 0.5


@dataclass(frozen=True)
class Page:
    """A page that was judged.

    Attributes:
        loc: the URL as listed.
        status: of the URL itself, before redirects; None without an answer.
        facts: the findings.
        content_type: without parameters; None without an answer.
        seconds: of all its requests, without waits between them; None without a request.
    """

    loc: str
    status: int | None = None
    facts: tuple[Fact, ...] = ()
    content_type: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Limits:
    """How pages are fetched.

    Attributes:
        rate: requests per second and host; 0 for no limit.
        connections: requests at the same time.
        seconds: for one page.
        max_wait: seconds that a host may ask to wait in total.
        hosts: those that may be fetched from; empty for any.
        allow_private: also fetch from private addresses.
    """

    rate: float
    connections: int
    seconds: float
    max_wait: float
    hosts: frozenset[str]
    allow_private: bool


@dataclass
class Crawl:
    """Fetches pages.

    Attributes:
        pages: URLs in the order in which they are fetched, and the lastmod of each.
        record: called with each page, in the thread of the event loop.
        requests: sent so far.
    """

    pages: Mapping[str, str | None]
    limits: Limits
    rules: Rules
    record: Callable[[Page], None]
    requests: int = 0
    _error: BaseException | None = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def run(self) -> None:
        """Returns when all pages were recorded.

        Raises:
            KeyboardInterrupt: a signal; the pages recorded so far are valid.
        """
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._run, args=(loop,), name="audit", daemon=True)
        start(thread)
        try:
            while thread.is_alive():
                thread.join(POLL_INTERVAL)
        except BaseException:
            with suppress(RuntimeError):  # it has just ended
                for task in self._tasks:
                    loop.call_soon_threadsafe(task.cancel)
            thread.join(STOP_SECONDS)
            raise
        if self._error is not None:
            raise self._error

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            self._tasks.append(loop.create_task(self._all()))
            loop.run_until_complete(self._tasks[0])
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            while isinstance(error, BaseExceptionGroup):  # of the task group
                error = error.exceptions[0]
            self._error = error
        finally:
            loop.close()  # does not wait for a resolver that does not answer

    async def _all(self) -> None:
        limits = self.limits
        client = Client(limits.connections, limits.seconds, limits.allow_private)
        # by origin the URLs as listed, and as they are requested
        queues: dict[str, deque[tuple[str, str]]] = {}
        for loc in self.pages:
            url = _address(loc)
            parts = _core.split_url(url)
            origin = parts.origin if parts is not None else ""
            queues.setdefault(origin, deque()).append((loc, loc if url == loc else url))
        fetcher = Fetcher(client, limits)
        try:
            async with asyncio.TaskGroup() as group:
                for origin, queue in queues.items():
                    # as many as can be under way, fewer where many hosts share them
                    workers = max(1, 2 * limits.connections // len(queues))
                    for _ in range(min(workers, limits.connections, len(queue))):
                        group.create_task(self._work(fetcher, origin, queue))
        finally:
            self.requests = client.requests
            await client.close()

    async def _work(self, fetcher: Fetcher, origin: str, queue: deque[tuple[str, str]]) -> None:
        if not fetcher.is_allowed(host_of(origin)):
            code = "off_site" if origin else "malformed"
            while queue:
                self.record(Page(queue.popleft()[0], facts=(Fact(code),)))
            return
        host = fetcher.host(origin)
        await host.ready(fetcher.client, fetcher.is_allowed)
        while queue:
            self.record(await self._page(fetcher, host, *queue.popleft()))

    async def _page(self, fetcher: Fetcher, host: Host, loc: str, url: str) -> Page:
        bot, facts = self.rules.bot, []
        allowed = host.allows(url)
        if not (host.allows(url, bot) if host.has_rules_for(bot) else allowed):
            facts.append(Fact("disallowed", None, f"for {bot}"))
        if not allowed:  # not fetched; search engines are perhaps allowed to
            return Page(loc, facts=tuple(facts) or (Fact("robots_refused"),))
        answer, seconds = await fetcher.get(host, url)
        status, kind = answer.status, None
        if answer.failure is not None:
            facts.append(Fact(answer.failure, None, answer.detail))
        elif status is None:
            facts.append(Fact("unreachable"))
        elif 200 <= status < 300:
            kind = legible(answer.headers.get("Content-Type", ""))
            kind = kind.partition(";")[0].strip().lower()
            facts += judge(url, answer.headers, answer.body, self.rules, self.pages[loc])
        elif _moved(answer):
            fact, more = await fetcher.follow(url, answer, seconds)
            facts.append(fact)
            seconds += more
        else:  # 1xx is not final; 304 answers no request without a condition
            code = _code_of(status) if status >= 400 else "unreadable"
            facts.append(Fact(code, None, f"HTTP {status}"))
        facts = [Fact(code, *(text and legible(text) for text in texts)) for code, *texts in facts]
        return Page(loc, status, tuple(facts), kind and kind[:MAX_TYPE], round(seconds, 4))


def _moved(answer: Answer) -> bool:
    """Whether an answer is a redirect. 300 can be one; 304 cannot."""
    status = answer.status or 0
    return is_redirect(status) or (status in (300, 305, 306) and "Location" in answer.headers)


def _location(answer: Answer) -> str:
    """The header Location; bytes that are not UTF-8 are percent-encoded, as in browsers."""
    text = answer.headers.get("Location", "")
    if text.isascii():
        return str(text)
    data = text.encode("utf-8", "surrogateescape")
    try:
        return str(data.decode())
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 128 else f"%{byte:02X}" for byte in data)


def _code_of(status: int) -> str:
    """The finding for a status of 400 or more."""
    known = {404: "not_found", 410: "gone", 429: "rate_limited"}
    return known.get(status) or ("server_error" if status >= 500 else "client_error")


class Fetcher:
    """Sends requests to hosts, each at its rate."""

    def __init__(self, client: Client, limits: Limits) -> None:
        self.client = client
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.connections)
        self._hosts: dict[str, Host] = {}

    def host(self, origin: str) -> Host:
        """The state of a host."""
        if origin not in self._hosts:
            rate = self._limits.rate
            self._hosts[origin] = Host(origin, 1 / rate if rate else 0.0, self._limits.max_wait)
        return self._hosts[origin]

    def is_allowed(self, host: str) -> bool:
        """Whether a host, in the form of the option, may be fetched from."""
        allowed = self._limits.hosts
        # without a port both schemes are allowed; :443 and :80 are the same as none
        return bool(host) and (
            not allowed or any(name in allowed for name in (host, f"{host}:443", f"{host}:80"))
        )

    async def get(self, host: Host, url: str, seconds: float | None = None) -> tuple[Answer, float]:
        """The answer for a URL after a few attempts, and the seconds of its exchanges."""
        spent, attempts = 0.0, 0
        while host.failure is None:
            await host.turn()
            async with self._slots:
                if host.failure is not None or host.is_paused:  # since the turn
                    continue
                begun = time.monotonic()
                answer = await self.client.get(url, seconds=seconds)
                spent += time.monotonic() - begun
            attempts += 1
            if answer.status in (429, 503):
                host.wait(answer, begun)
                if attempts < ATTEMPTS:
                    continue
            elif answer.again and attempts < 2:
                continue
            return answer, spent
        return host.failure, spent

    async def follow(self, url: str, answer: Answer, spent: float) -> tuple[Fact, float]:
        """The finding of a redirect: its last target, and what happens there.

        Args:
            spent: seconds of the page so far.
        """
        statuses, seen, more = [str(answer.status)], {url}, 0.0

        def ended(why: str) -> tuple[Fact, float]:
            target = url if len(seen) > 1 or url not in seen else None
            detail = f"{', '.join(statuses)}: {why}"
            return Fact("redirect", target and target[:MAX_QUOTE], detail), more

        while True:
            location = redirected(url, _location(answer)) or ""
            if "Location" not in answer.headers:
                return ended("no Location")
            parts = _core.split_url(_address(location))
            if parts is None:
                return ended("Location is not a URL")
            url = _address(location)
            if url in seen:
                return ended("in a circle")
            if len(statuses) > MAX_REDIRECTS:
                return ended(f"more than {MAX_REDIRECTS}")
            if not self.is_allowed(parts.authority):
                return ended("to another host; not followed (--hosts)")
            left = self._limits.seconds - spent - more
            if left <= 0:
                return ended(f"not at the end after {self._limits.seconds:g} s")
            host = self.host(parts.origin)
            await host.ready(self.client, self.is_allowed)
            if not host.allows(url):
                return ended("the target is disallowed by robots.txt")
            seen.add(url)
            answer, seconds = await self.get(host, url, left)
            more += seconds
            if answer.status is None:
                return ended(answer.detail or answer.failure or "failed")
            statuses.append(str(answer.status))
            if not _moved(answer):
                return ended("end")


def _address(url: str) -> str:
    """A URL as it is requested; the text itself if it is not a URL."""
    try:
        return _core.address(url.partition("#")[0])
    except (Error, UnicodeError):
        return url
