"""Python threads: a system that starts no more of them is reported as an error of urlset."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from .errors import PublishError

#: the message of the error
REFUSED = (
    "no thread could be started; allow more processes (ulimit -u, or the limit of the container)"
)


def is_refused(error: BaseException) -> bool:
    """Whether the system refused to start a thread."""
    return isinstance(error, RuntimeError) and "can't start new thread" in str(error)


@contextmanager
def refusal() -> Iterator[None]:
    """Converts the refusal to start a thread into an error of urlset.

    Raises:
        PublishError: ``system.threads``.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_refused(error):
            raise
        raise PublishError(REFUSED, code="system.threads") from None


def start(thread: threading.Thread) -> None:
    """Starts a thread.

    Raises:
        PublishError: the system starts no more threads.
    """
    with refusal():
        thread.start()


class Pool(ThreadPoolExecutor):
    """A pool that works with fewer threads if the system starts no more of them.

    Raises:
        PublishError: on the first task, if the system starts none at all.
    """

    def _adjust_thread_count(self) -> None:
        try:
            with refusal():
                super()._adjust_thread_count()
        except PublishError:
            if not self._threads:
                raise
