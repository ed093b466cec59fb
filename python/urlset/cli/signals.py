"""SIGINT and SIGTERM: what a command does first, and once."""

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

#: seconds that the main thread has to clean up, before the process ends all the same: the next
#: build cleans up after one that had to leave, and nothing does after another command
BUILD_GRACE = 0.3
GRACE = 0.7


class Stopped(KeyboardInterrupt):
    """The first signal has come; ``status`` is the exit status that it asks for."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


@contextmanager
def stopping(
    leave: Callable[[int], NoReturn] | None = None, grace: float = GRACE
) -> Iterator[None]:
    """Raises :class:`Stopped` in the block at the first signal, and ignores those after it.

    Python raises it between two steps of its own code in the main thread, which may wait in C++ for
    minutes. So a thread learns of the signal, too.

    Args:
        leave: called by that thread with the exit status, where the main thread has not ended the
            process soon; None where it always can.
        grace: how soon, in seconds.
    """

    def stop(number: int, _frame: object) -> NoReturn:
        for held in before:
            signal.signal(held, signal.SIG_IGN)  # the cleaning up is not to be cut short
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
    """Tells a thread of signals as soon as they come, whatever the main thread waits for."""
    if leave is None:
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def watch() -> None:
        while number := os.read(reader, 1):  # the number of the signal; nothing at the end
            if number[0] in numbers:
                with together:
                    pass  # the signal is raised again after what belongs together
                time.sleep(grace)
                with together:
                    leave(128 + number[0])
        os.close(reader)

    thread = threading.Thread(target=watch, name="watch for signals", daemon=True)
    former = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    with suppress(RuntimeError):  # no thread is left: the main one must do
        thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(former)
        os.close(writer)  # which ends the thread, where no signal has come


@contextmanager
def stoppable() -> Iterator[None]:
    """Ends the process with 130 or 143 when a signal comes, after the block has cleaned up."""
    leaving = threading.Lock()

    def leave(status: int) -> NoReturn:
        leaving.acquire()  # for good: of the watcher and the main thread, the first one speaks
        try:
            click.echo("urlset: stopped by a signal", err=True)
            if sys.stdout is not None:  # as under >&-
                sys.stdout.flush()
        finally:
            os._exit(status)  # threads that wait for the network are not waited for

    with stopping(leave):
        try:
            yield
        except Stopped as stopped:
            leave(stopped.status)
