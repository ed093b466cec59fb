"""The limits of one fetch: time, bytes and a minimum rate."""

from __future__ import annotations

import math
import threading
import time

from . import BudgetError

#: a server must send MIN_RATE_BYTES in each window of RATE_WINDOW seconds
MIN_RATE_BYTES, RATE_WINDOW = 64 << 10, 60.0
#: bytes on the wire before the headers of the answer are complete: TLS handshake, interim answers
#: (1xx) and headers; h11 refuses a single header block of more than 100 KiB
MAX_HEADER_BYTES = 1 << 20
#: seconds added to the timeout of a socket: when it ends, the clock must be past the limit
CLOCK_MARGIN = 0.01


class Budget:
    """The limits of everything that the current thread does inside the ``with`` block.

    That is name resolution, connecting, TLS, headers, interim answers, body, redirects, retries.

    Args:
        seconds: for the whole block.
        max_bytes: of one answer, as received.
        min_rate: whether each answer must keep the minimum rate.
    """

    def __init__(self, seconds: float, max_bytes: int, *, min_rate: bool = False) -> None:
        self._seconds, self._max_bytes, self._min_rate = seconds, max_bytes, min_rate
        self._deadline = time.monotonic() + seconds
        self.begin()

    def __enter__(self) -> Budget:
        _active.budget = self
        return self

    def __exit__(self, *_: object) -> None:
        del _active.budget

    def begin(self) -> None:
        """Resets the limits of one answer: a new exchange starts."""
        self._in_headers, self._bytes = True, 0
        self._start_window()

    def headers_complete(self) -> None:
        self._in_headers = False

    def left(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self._deadline - time.monotonic())

    def timeout(self, seconds: float | None) -> float:
        """The timeout of the next operation on a socket, in seconds, more than 0.

        Raises:
            BudgetError: the deadline is over, or the last window has too few bytes.
        """
        now = time.monotonic()
        if now >= self._deadline:
            raise BudgetError(f"no complete answer within {self._seconds:g} s", retry=True)
        if now >= self._window_end:
            if self._window_bytes < MIN_RATE_BYTES:
                raise BudgetError(f"slower than {MIN_RATE_BYTES:,} bytes in {RATE_WINDOW:g} s")
            self._start_window()
        left = min(self._deadline, self._window_end) - now + CLOCK_MARGIN
        return left if seconds is None else min(max(seconds, 0.001), left)

    def count(self, size: int) -> None:
        """Counts received bytes.

        Raises:
            BudgetError: there are too many.
        """
        self._bytes += size
        self._window_bytes += size
        if self._in_headers and self._bytes > MAX_HEADER_BYTES:
            raise BudgetError(f"more than {MAX_HEADER_BYTES:,} bytes of headers")
        if self._bytes > self._max_bytes:
            raise BudgetError(f"more than {self._max_bytes:,} bytes in one file")

    def _start_window(self) -> None:
        seconds = RATE_WINDOW if self._min_rate else math.inf
        self._window_end, self._window_bytes = time.monotonic() + seconds, 0


class _Active(threading.local):
    budget: Budget


#: httpcore does all I/O of a request in the thread that sends it
_active = _Active()


def current() -> Budget:
    """The budget of the calling thread."""
    return _active.budget
