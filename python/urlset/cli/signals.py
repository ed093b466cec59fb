"""SIGINT and SIGTERM: what a command does first, and once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import click


class Stopped(KeyboardInterrupt):
    """The first signal has come; ``status`` is the exit status that it asks for."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


@contextmanager
def stopping(first: Callable[[int], object] = lambda _status: None) -> Iterator[None]:
    """Raises :class:`Stopped` in the block at the first signal, and ignores those after it.

    Args:
        first: called with the exit status before that.
    """

    def stop(number: int, _frame: object) -> NoReturn:
        for held in before:
            signal.signal(held, signal.SIG_IGN)  # the cleaning up is not to be cut short
        first(128 + number)
        raise Stopped(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stoppable() -> Iterator[None]:
    """Ends the process with 130 or 143 when a signal comes, after the block has cleaned up."""
    with stopping():
        try:
            yield
        except Stopped as stopped:
            try:
                click.echo("urlset: stopped by a signal", err=True)
                if sys.stdout is not None:  # as under >&-
                    sys.stdout.flush()
            finally:
                os._exit(stopped.status)  # threads that wait for the network are not waited for
