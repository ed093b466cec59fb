"""What differs between operating systems: flags of files, locks, names on the disk, peak memory.

No other module imports one that is absent on Windows. The calls for Windows follow its
documentation; they have never been run there.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from functools import reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: the errors of a lock that another process has; msvcrt reports EACCES
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)


def _flags(*names: str) -> int:
    """Flags of ``os.open``; one that the system does not have is 0."""
    # BINARY: without it, Windows writes two bytes for a newline; NOINHERIT: its CLOEXEC
    always = ("CLOEXEC", "BINARY", "NOINHERIT")
    return reduce(or_, (getattr(os, f"O_{name}", 0) for name in (*names, *always)))


FOLDER = _flags("RDONLY", "DIRECTORY")
#: the same, but not through a link
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
#: O_NONBLOCK: opening a FIFO does not wait for its other end; it is refused afterwards
READ = _flags("RDONLY", "NOFOLLOW", "NONBLOCK")
NEW = _flags("WRONLY", "CREAT", "EXCL", "NOFOLLOW")
LOCK = _flags("RDWR", "CREAT", "NOFOLLOW", "NONBLOCK")


def try_lock(descriptor: int) -> bool:
    """Locks an open file until :func:`unlock`, or until the process ends.

    Returns:
        False if another process has locked it.

    Raises:
        OSError: its filesystem has no locks.
    """
    try:
        if fcntl is None:
            # one byte, which may not exist; the lock belongs to this descriptor
            os.lseek(descriptor, 0, os.SEEK_SET)
            _msvcrt().locking(descriptor, _msvcrt().LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise
    return True


def unlock(descriptor: int) -> None:
    """Closes a file, which releases its lock."""
    if fcntl is None:  # Windows: a lock that is not released first is released at any later time
        with suppress(OSError):  # not locked
            os.lseek(descriptor, 0, os.SEEK_SET)
            _msvcrt().locking(descriptor, _msvcrt().LK_UNLCK, 1)
    os.close(descriptor)


def native(descriptor: int) -> int:
    """What the core takes for an open file: on Windows the handle behind the descriptor."""
    return int(_msvcrt().get_osfhandle(descriptor)) if fcntl is None else descriptor


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on the disk.

    Windows has no such call: NTFS logs the changes of names itself.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_read_only(path: Path) -> bool:
    """Whether a filesystem is mounted for reading only; False where the system cannot say."""
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def peak_memory() -> int:
    """The peak memory of this process in bytes; 0 if the system does not report it.

    ``ru_maxrss`` survives exec: it may be the peak of the process that started this one. Linux has
    the peak of this process alone in ``/proc``.
    """
    with suppress(OSError), Path("/proc/self/status").open("rb") as status:
        for line in status:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024  # kilobytes
    try:
        import resource
    except ImportError:
        return _peak_working_set()
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage if sys.platform == "darwin" else usage * 1024  # kilobytes, but not on macOS


def _peak_working_set() -> int:
    """PeakWorkingSetSize of K32GetProcessMemoryInfo."""
    import ctypes

    class Counters(ctypes.Structure):
        """PROCESS_MEMORY_COUNTERS."""

        _fields_ = (
            ("cb", ctypes.c_uint32),
            ("PageFaultCount", ctypes.c_uint32),
            ("PeakWorkingSetSize", ctypes.c_size_t),
            ("others", ctypes.c_size_t * 7),
        )

    counters = Counters(cb=ctypes.sizeof(Counters))
    try:
        kernel32: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
        kernel32.GetCurrentProcess.restype = ctypes.c_void_p
        kernel32.K32GetProcessMemoryInfo.argtypes = (
            ctypes.c_void_p, ctypes.POINTER(Counters), ctypes.c_uint32,
        )  # fmt: skip
        process = kernel32.GetCurrentProcess()
        done = kernel32.K32GetProcessMemoryInfo(process, ctypes.byref(counters), counters.cb)
    except (AttributeError, OSError):
        return 0
    return int(counters.PeakWorkingSetSize) if done else 0


def _msvcrt() -> Any:
    return import_module("msvcrt")
