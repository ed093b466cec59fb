"""SIGINT and SIGTERM: the first one starts the clean-up, then the process ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import click

from ..signals import together

#: seconds for the main thread to clean up before the process exits. A build has less: the next
#: build cleans up after it.
BUILD_GRACE = 0.3
GRACE = 0.7


class Stopped(KeyboardInterrupt):
    """The first signal; ``status`` is the exit status for it."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


@contextmanager
def stopping(
    leave: Callable[[int], NoReturn] | None = None, grace: float = GRACE
) -> Iterator[None]:
    """Raises :class:`Stopped` in the block at the first signal and ignores further signals.

    Python raises it in the main thread, between two bytecode instructions. The main thread may wait
    in C++ for minutes, so a second thread watches for signals, too.

    Args:
        leave: called by that thread with the exit status if the main thread has not ended the
            process after ``grace``; None if the main thread never waits.
        grace: in seconds.
    """

    def stop(number: int, _frame: object) -> NoReturn:
        for watched in before:
            signal.signal(watched, signal.SIG_IGN)  # do not interrupt the clean-up
        raise Stopped(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with _watched(leave, grace, set(before)):
        for number in before:
            signal.signal(number, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _watched(
    leave: Callable[[int], NoReturn] | None, grace: float, numbers: set[int]
) -> Iterator[None]:
    """A thread that receives signals even while the main thread waits."""
    if leave is None:
        yield
        return
    reader, writer = os.pipe()
    with suppress(AttributeError, OSError):  # Windows before Python 3.12
        os.set_blocking(writer, False)

    def watch() -> None:
        while number := os.read(reader, 1):  # the number of a signal; empty at the end
            if number[0] in numbers:
                with together:
                    pass  # waits for a block that must not be interrupted
                time.sleep(grace)
                with together:
                    leave(128 + number[0])
        os.close(reader)

    thread = threading.Thread(target=watch, name="watch for signals", daemon=True)
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    with suppress(RuntimeError):  # no thread can be started: the main thread handles signals
        thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        os.close(writer)  # ends the thread


def _say_stopped() -> None:
    click.echo("urlset: stopped by a signal", err=True)


@contextmanager
def stoppable(finish: Callable[[], None] = _say_stopped, grace: float = GRACE) -> Iterator[None]:
    """Ends the process with 130 or 143 after a signal, when the block has cleaned up.

    Args:
        finish: says on standard error, and in a report, that the command was stopped.
        grace: seconds for the clean-up.
    """
    leaving = threading.Lock()

    def leave(status: int) -> NoReturn:
        leaving.acquire()  # never released: the first of watcher and main thread reports
        try:
            finish()
            if sys.stdout is not None:  # as with >&-
                sys.stdout.flush()
        finally:
            # does not wait for threads that wait for the network, or for a source
            os._exit(status)

    with stopping(leave, grace):
        try:
            yield
        except Stopped as stopped:
            leave(stopped.status)
