"""Delays SIGINT and SIGTERM between two steps that must not be separated."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

#: locked during two such steps, so that no other thread ends the process between them
together = threading.RLock()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Delays SIGINT and SIGTERM for the milliseconds that the block takes."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python's handlers run in the main thread only
        return
    # A signal mask of this thread does not suffice: another thread receives the signal, and Python
    # raises the exception in this one.
    came: list[int] = []
    try:
        # restores all handlers, even if a signal arrives as soon as the first one is restored
        with contextlib.ExitStack() as restored:
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if handler is not None:
                    try:
                        signal.signal(number, lambda number, _: came.append(number))
                    except ValueError:
                        break  # in a subinterpreter, which receives no signals
                    restored.callback(signal.signal, number, handler)
            with together:
                yield
    finally:
        for late in came[:1]:
            signal.raise_signal(late)
