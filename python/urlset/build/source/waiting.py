"""Calls that may wait for a network, which a signal and a limit of time can end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from ...threads import start

T = TypeVar("T")


class TooSlow(Exception):
    """The call has not returned in the time that it has."""


def waiting(call: Callable[[], T], seconds: float | None = None) -> T:
    """What ``call`` returns or raises.

    Python runs the handlers of signals in the main thread, and only between steps of its own code.
    So the call, which may wait in C++ for minutes, is made in a thread that is not waited for.

    Raises:
        TooSlow: after ``seconds``; the thread goes on, and what it gets is thrown away.
    """
    box: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            box.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            box.put((None, error))

    start(threading.Thread(target=work, name="open an input", daemon=True))
    try:
        value, error = box.get(timeout=seconds)
    except queue.Empty:
        raise TooSlow from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value] # of the call, where it raised nothing
