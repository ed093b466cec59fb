"""A host: how fast it is asked, how long it wants to be left alone, and its robots.txt."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable

from protego import Protego

from ..transport.retry import MAX_REDIRECTS, backoff, is_redirect, redirected, retry_after
from .client import Answer, Client
from .page import host_of

#: the name in robots.txt
AGENT = "urlset"
#: bytes of a robots.txt that crawlers read
MAX_ROBOTS = 512_000
#: requests for a robots.txt, or a page, that answers 429 or 5xx or whose connection breaks
ATTEMPTS = 3
#: seconds of the first wait after 429 or 503, doubled each time, and of the longest one
FIRST_WAIT, LONGEST_WAIT = 5.0, 300.0
#: seconds between two requests after the first 429 or 503, doubled each time, and at most
FIRST_INTERVAL, LONGEST_INTERVAL = 0.05, 10.0
#: seconds by which a request may follow the one before too early
MAX_LATE = 0.01
#: seconds of a crawl-delay
LONGEST_DELAY = 86_400.0
#: the name of a crawler: ``Googlebot`` of ``Googlebot/2.1``
_NAME = r"[\w-]+"
_AGENT_LINE = re.compile(rf"(?im)^([ \t]*user[ \t-]?agent[ \t]*:?[ \t]*)({_NAME})[^\n#]*")
#: behind each name, so that Protego does not take a name for another one that begins with it
_END = "|"


class Host:
    """The state of one scheme, host and port.

    Attributes:
        failure: the answer that prevents that pages are fetched; None if there is none.

    Args:
        origin: ``https://www.shop.example``.
        interval: seconds between two requests, at least.
        max_wait: seconds that the host may ask to wait in total.
    """

    def __init__(self, origin: str, interval: float, max_wait: float) -> None:
        self.failure: Answer | None = None
        self._origin = origin
        self._interval, self._allowance = interval, max_wait
        self._next = self._resume = 0.0
        self._waits, self._noted = 0, -math.inf
        self._rules: Protego | None = None
        self._names: set[str] = set()
        self._turn, self._load = asyncio.Lock(), asyncio.Lock()
        self._loaded = False

    async def turn(self) -> None:
        """Waits until the next request may be sent."""
        if not (self._interval or self._resume):
            return
        async with self._turn:
            while (left := max(self._next, self._resume) - time.monotonic()) > 0:
                if self.failure is not None:  # nothing will be sent
                    return
                await asyncio.sleep(min(left, 1.0))
            # a timer that came a little late does not delay the requests behind it
            late = min(self._interval, MAX_LATE)
            self._next = max(self._next, time.monotonic() - late) + self._interval

    @property
    def is_paused(self) -> bool:
        """Whether the host wants to be left alone now."""
        return self._resume > time.monotonic()

    def wait(self, answer: Answer, begun: float) -> None:
        """Notes an answer with 429 or 503; without allowance left the host is given up.

        Args:
            begun: when its request was sent. One that was under way when another one was refused is
                no new reason to be slower.
        """
        now, is_new = time.monotonic(), begun >= self._noted
        seconds = retry_after(answer.headers)
        if seconds is None:
            if not is_new:
                return
            seconds = backoff(self._waits, FIRST_WAIT, LONGEST_WAIT)
        more = now + seconds - max(now, self._resume)
        if more > self._allowance:
            detail = f"HTTP {answer.status}: the host asks to wait longer than --max-wait"
            self.failure = Answer(answer.status, failure="rate_limited", detail=detail)
            return
        if more > 0:
            self._allowance -= more
            self._resume = now + seconds
        if is_new:
            self._waits, self._noted = self._waits + 1, now
            self._interval = min(LONGEST_INTERVAL, max(self._interval * 2, FIRST_INTERVAL))

    async def ready(self, client: Client, is_allowed: Callable[[str], bool]) -> None:
        """Reads robots.txt, once."""
        if self._loaded:
            return
        async with self._load:
            if not self._loaded:
                await self._read(client, is_allowed)
                self._loaded = True

    async def _read(self, client: Client, is_allowed: Callable[[str], bool]) -> None:
        """RFC 9309: a missing robots.txt allows everything; one that fails allows nothing."""
        answer = Answer(None)
        for _ in range(ATTEMPTS):
            begun = time.monotonic()
            answer = await self._follow(client, is_allowed)
            if answer.status in (429, 503):
                self.wait(answer, begun)
                if self.failure is not None:
                    return
            elif not answer.again and (answer.status or 0) < 500:
                break
        if answer.failure in ("private", "unreachable", "malformed"):
            self.failure = answer
        elif answer.failure or answer.status is None or answer.status == 429 or answer.status > 499:
            why = answer.detail or f"HTTP {answer.status}"
            self.failure = Answer(None, failure="robots_failed", detail=f"robots.txt: {why}")
        elif answer.body:
            text = answer.body[:MAX_ROBOTS].decode("utf-8-sig", "replace").replace("\r", "\n")
            self._names = {match[2].lower() for match in _AGENT_LINE.finditer(text)}
            self._rules = Protego.parse(_AGENT_LINE.sub(rf"\1\2{_END}", text))
            delay = self._rules.crawl_delay(AGENT + _END) or 0.0
            if math.isfinite(delay):
                self._interval = max(self._interval, min(delay, LONGEST_DELAY))

    async def _follow(self, client: Client, is_allowed: Callable[[str], bool]) -> Answer:
        """The answer for robots.txt after redirects; one that leaves the site counts as missing."""
        url = f"{self._origin}/robots.txt"
        for _ in range(MAX_REDIRECTS + 1):
            await self.turn()
            answer = await client.get(url, any_type=True)
            if answer.status is None or not is_redirect(answer.status):
                return answer
            url = redirected(url, answer.headers.get("Location", "")) or ""
            if not is_allowed(host_of(url)):
                break
        return Answer(404)

    def allows(self, url: str, bot: str = AGENT) -> bool:
        """Whether robots.txt lets a crawler, by default this one, fetch a URL."""
        return self._rules is None or self._rules.can_fetch(url, self._group_of(bot) + _END)

    def has_rules_for(self, bot: str) -> bool:
        """Whether robots.txt may have other rules for a crawler than for this one."""
        return not self._names.isdisjoint((self._group_of(bot), AGENT))

    def _group_of(self, bot: str) -> str:
        """The name of a crawler, or that of its family: ``googlebot`` for ``googlebot-image``."""
        found = re.match(_NAME, bot)
        own = name = found[0].lower() if found else bot
        while name and name not in self._names:
            name = name.rpartition("-")[0]
        return name or own
