"""Python threads: if the system cannot start one, that is an error of urlset."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TypeVar

from .errors import PublishError

#: the message of the error
REFUSED = (
    "no thread could be started; allow more processes (ulimit -u, or the limit of the container)"
)
#: seconds between two looks at the time that is left
POLL_INTERVAL = 0.25

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def available_cores() -> int:
    """The number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


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


def completed(
    work: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    left: Callable[[], float],
    *,
    threads: int = 1,
) -> Iterator[tuple[int, _Result]]:
    """Yields (position of the job, result) as jobs end, until no time is left.

    The caller only waits, so a signal ends it at once. Neither a server nor a resolver that never
    answers can delay the caller or the end of the process: nothing joins a daemon thread, whereas
    the threads of an executor are joined.

    Args:
        left: seconds left; may become less at any time.

    Raises:
        what ``work`` raises: the other jobs are abandoned.
    """
    todo: SimpleQueue[tuple[int, _Job]] = SimpleQueue()
    done: SimpleQueue[tuple[int, _Result | None, BaseException | None]] = SimpleQueue()
    stopped = threading.Event()
    for numbered in enumerate(jobs):
        todo.put(numbered)

    def run() -> None:
        while not stopped.is_set():
            try:
                number, job = todo.get_nowait()
            except Empty:
                return
            try:
                done.put((number, work(job), None))
            except BaseException as error:  # noqa: BLE001 - raised in the caller
                done.put((number, None, error))

    for count in range(min(threads, len(jobs))):
        try:
            threading.Thread(target=run, daemon=True).start()
        except RuntimeError:  # the system starts no more threads
            if count == 0:
                run()
            break
    try:
        missing = len(jobs)
        while missing:
            seconds = left()
            try:
                number, result, error = done.get(seconds > 0, min(seconds, POLL_INTERVAL))
            except Empty:
                if seconds <= 0:
                    return
                continue
            if error is not None:
                raise error
            missing -= 1
            yield number, result  # type: ignore[misc]  # set without an error
    finally:
        stopped.set()
