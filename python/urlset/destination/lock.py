"""Locks in the state folder: one for each name, and one for all names together."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import system
from ..errors import PublishError
from .directory import Directory
from .relative import calls
from .state import LOCK, LOCK_OF_NAMES

#: seconds to wait while sets of other names go live, which takes about one second
LOCK_TIMEOUT = 300.0
#: seconds between two attempts
POLL_INTERVAL = 0.02


def lock_state(folder: Directory, out: Path) -> int:
    """Locks the state of a name; ``system.unlock`` releases the lock.

    Raises:
        PublishError: ``output.locked``: another build has locked it; ``output.lock``;
            ``output.link``.
    """
    lock = _open(folder, LOCK)
    try:
        if not _try(lock, folder.path / LOCK):
            raise PublishError(
                f"{out}: another build is publishing here; wait for it, or choose another --out",
                code="output.locked",
            )
    except BaseException:
        system.unlock(lock)
        raise
    return lock


@contextmanager
def alone(root: Directory) -> Iterator[None]:
    """Locks the states of all names together, and waits for the lock.

    Raises:
        PublishError: ``output.locked``: it was not released in time; ``output.lock``.
    """
    lock = calls.lockable(root.folder)
    free = False
    try:
        if lock is not None:
            try:
                free = system.try_lock(lock)
            except OSError:  # NFS, for example, locks only files
                os.close(lock)
                lock = None
        if lock is None:
            lock = _open(root, LOCK_OF_NAMES)
        ends = time.monotonic() + LOCK_TIMEOUT
        while not (free or _try(lock, root.path)):
            if time.monotonic() > ends:
                raise PublishError(
                    f"{root.path}: a build of another name has locked it for {LOCK_TIMEOUT:.0f}"
                    " seconds; is it stopped?",
                    code="output.locked",
                )
            time.sleep(POLL_INTERVAL)
        yield
    finally:
        if lock is not None:
            system.unlock(lock)


def _open(folder: Directory, name: str) -> int:
    path = folder.path / name
    lock = folder.open_new(name, system.LOCK)
    if not stat.S_ISREG(os.fstat(lock).st_mode):
        os.close(lock)
        raise PublishError(f"{path}: is not a regular file; remove it", code="output.lock")
    return lock


def _try(lock: int, path: Path) -> bool:
    """Locks if the lock is free."""
    try:
        return system.try_lock(lock)
    except OSError as error:
        raise PublishError(
            f"{path}: {error.strerror}; file locks are needed", code="output.lock"
        ) from None
