"""Calls that may wait for a network, and that a signal or a timeout can end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from .threads import start

T = TypeVar("T")


class CallTimeout(Exception):
    """The call did not return within its timeout."""


def interruptible(call: Callable[[], T], seconds: float | None = None) -> T:
    """Returns or raises what ``call`` returns or raises.

    Python runs signal handlers only in the main thread, between two bytecode instructions. The
    call may wait in C++ for minutes, so it runs in a daemon thread.

    Raises:
        CallTimeout: after ``seconds``; the thread continues, and its result is dropped.
    """
    box: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            box.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised in the caller
            box.put((None, error))

    start(threading.Thread(target=work, name="wait for a server", daemon=True))
    try:
        value, error = box.get(timeout=seconds)
    except queue.Empty:
        raise CallTimeout from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value] # the result, if nothing was raised
