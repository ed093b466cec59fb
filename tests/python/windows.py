"""A process without what Windows does not have: modules, functions and flags of POSIX.

Run as ``python windows.py SCRIPT [ARGUMENT ...]``. It removes all of it before the script runs, and
provides the two functions of ``msvcrt`` that urlset calls. It cannot show that Windows behaves as
documented; it shows that nothing else is needed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import runpy
import select
import signal
import subprocess  # noqa: F401 - it recognises Windows by msvcrt
import sys
import types

MODULES = ("fcntl", "resource", "termios", "pwd", "grp", "tty", "pty", "syslog", "readline")
FUNCTIONS = (
    "chown", "chroot", "fchdir", "fchmod", "fchown", "fdatasync", "fork", "fstatvfs", "geteuid",
    "getuid", "lchown", "mkfifo", "nice", "pread", "pwrite", "sched_getaffinity", "sendfile",
    "setsid", "statvfs", "sync", "uname", "wait3", "wait4",
)  # fmt: skip
FLAGS = (
    "O_ASYNC", "O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOATIME", "O_NOCTTY", "O_NOFOLLOW",
    "O_NONBLOCK", "O_PATH", "O_SYNC", "O_TMPFILE", "ST_RDONLY",
)  # fmt: skip
SIGNALS = (
    "SIGHUP", "SIGKILL", "SIGQUIT", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGCHLD",
    "SIGSTOP", "pthread_sigmask", "pthread_kill", "sigwait", "setitimer", "alarm", "pause",
)  # fmt: skip


def locking(descriptor: int, mode: int, size: int, _lockf=fcntl.lockf) -> None:
    """``msvcrt.locking`` by a record lock, from the position of the file."""
    kind = fcntl.LOCK_UN if mode == 0 else fcntl.LOCK_EX | fcntl.LOCK_NB
    try:
        _lockf(descriptor, kind, size, 0, os.SEEK_CUR)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


def without(function):
    """A function of Windows: it takes no ``dir_fd``, and a folder only as a path."""

    def wrapped(*arguments, **named):
        beginning = arguments[:1] if function.__name__ in ("listdir", "scandir", "stat") else ()
        if {"dir_fd", "src_dir_fd", "dst_dir_fd"} & {k for k, v in named.items() if v is not None}:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if beginning and isinstance(beginning[0], int) and function.__name__ != "stat":
            raise TypeError("path should be string, bytes or os.PathLike, not int")
        return function(*arguments, **named)

    wrapped.__name__ = function.__name__
    return wrapped


def main() -> None:
    msvcrt = types.ModuleType("msvcrt")
    msvcrt.LK_UNLCK, msvcrt.LK_NBLCK = 0, 2
    msvcrt.locking = locking
    msvcrt.get_osfhandle = lambda descriptor: descriptor
    sys.modules["msvcrt"] = msvcrt
    os.supports_dir_fd.clear()
    for name in ("open", "stat", "replace", "rename", "unlink", "rmdir", "mkdir", "listdir"):
        setattr(os, name, without(getattr(os, name)))
    for name in MODULES:
        sys.modules[name] = None
    for module, names in (
        (os, (*FUNCTIONS, *FLAGS)),
        (signal, SIGNALS),
        (select, ("poll", "epoll")),
    ):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
