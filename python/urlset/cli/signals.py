"""SIGINT and SIGTERM for the commands that only read: out at once, and nothing left behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click


class _Stopped(BaseException):
    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


@contextmanager
def stoppable() -> Iterator[None]:
    """Ends the process with 130 or 143 when a signal comes, after the block has cleaned up."""

    def stop(number: int, _frame: object) -> NoReturn:
        for held in before:
            signal.signal(held, signal.SIG_IGN)  # the cleaning up is not to be cut short
        raise _Stopped(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    except _Stopped as stopped:
        click.echo("urlset: stopped by a signal", err=True)
        sys.stdout.flush()
        os._exit(stopped.status)  # threads that wait for the network are not waited for
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
