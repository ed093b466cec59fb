"""SIGINT and SIGTERM, held back where two steps belong together."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

#: held while two steps are made that belong together: no other thread ends the process then
together = threading.RLock()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Holds back SIGINT and SIGTERM for the milliseconds that the block takes."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python's handlers run in the main thread only
        return
    # a mask of this thread would not do: another thread takes the signal, this one the exception
    came: list[int] = []
    try:
        # all are restored, even where one that is has its signal come at once
        with contextlib.ExitStack() as restored:
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if handler is not None:
                    try:
                        signal.signal(number, lambda number, _: came.append(number))
                    except ValueError:
                        break  # in a subinterpreter, which no signal reaches
                    restored.callback(signal.signal, number, handler)
            with together:
                yield
    finally:
        for late in came[:1]:
            signal.raise_signal(late)
