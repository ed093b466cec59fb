"""A pool of threads, in a separate module: concurrent.futures takes 5 ms at start-up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from .errors import PublishError
from .threads import refusal


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
