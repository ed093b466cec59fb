"""One case: its random choices, its folder, and the processes that it starts."""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: seconds after which a command counts as hung
LIMIT = 60.0
#: resident bytes that a command may have: urlset promises a few hundred megabytes
MEMORY = 2 << 30
POLL = 0.005
#: the exit statuses of any command
STATUSES = (0, 1, 2, 3)
SITE = "https://www.shop.example"
#: a frame of a traceback in urlset, except in the files that are loaded before it handles signals
LOADED = r"/urlset/(?!__init__\.py|__main__\.py)"


class Failed(Exception):
    """A guarantee was violated."""


class Skipped(Exception):
    """The machine lacks a requirement of the case."""


@dataclass(frozen=True)
class Ended:
    """How a command ended; a negative status is the signal that ended it."""

    command: str
    status: int
    out: str
    err: str
    seconds: float


class Case:
    """A case that can be repeated from its kind and its seed."""

    def __init__(self, kind: str, seed: str, folder: Path, python: str = sys.executable) -> None:
        self.rng = random.Random(f"{kind}:{seed}")
        self.folder = folder
        self.python = python
        self._started = 0

    def check(self, held: object, what: object) -> None:
        """Fails the case unless a condition is true."""
        if not held:
            raise Failed(str(what))

    def urlset(
        self,
        *args: object,
        statuses: Collection[int] = STATUSES,
        limit: float = LIMIT,
        wrap: Sequence[str] = (),
        input: Path | None = None,
        file_bytes: int | None = None,
        disturb: Callable[[subprocess.Popen[bytes]], None] | None = None,
    ) -> Ended:
        """Runs urlset to its end and checks what applies to every run.

        Args:
            statuses: the exit statuses that are right.
            limit: seconds after which it counts as hung.
            wrap: a command before it, such as strace with its options.
            input: a file as standard input.
            file_bytes: the size that its files may have (RLIMIT_FSIZE).
            disturb: called with the process right after its start.
        """
        with self.start(*args, wrap=wrap, input=input, file_bytes=file_bytes) as process:
            command = "urlset " + " ".join(map(str, args))
            started = time.monotonic()
            if disturb is not None:
                disturb(process)
            why = _wait(process, started + limit)
            ended = Ended(
                command,
                process.returncode,
                self._path("out").read_text(errors="replace"),
                self._path("err").read_text(errors="replace"),
                time.monotonic() - started,
            )
        if why:
            raise Failed(f"{command}: {why}")
        self._check_end(ended, statuses)
        return ended

    @contextlib.contextmanager
    def start(
        self,
        *args: object,
        wrap: Sequence[str] = (),
        input: Path | None = None,
        file_bytes: int | None = None,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Starts urlset in a separate session, and ends it and its children at the end."""
        self._started += 1
        with (
            self._path("out").open("wb") as out,
            self._path("err").open("wb") as err,
            (input or Path(os.devnull)).open("rb") as source,
        ):
            process = subprocess.Popen(
                [*wrap, self.python, "-m", "urlset", *map(str, args)],
                stdin=source,
                stdout=out,
                stderr=err,
                cwd=self.folder,
                start_new_session=True,
                env={**os.environ, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"},
                preexec_fn=None if file_bytes is None else lambda: _limit_files(file_bytes),
            )
        try:
            yield process
        finally:
            # the session was created here, so the group contains no other process
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _path(self, stream: str) -> Path:
        return self.folder / f"{self._started}.{stream}"

    def _check_end(self, ended: Ended, statuses: Collection[int]) -> None:
        interrupted = -signal.SIGINT in statuses and "KeyboardInterrupt" in ended.err
        if interrupted and not re.search(LOADED, ended.err):
            return  # Python was still starting: urlset handled no signals yet
        where = f"{ended.command}: status {ended.status}: {ended.err.strip()[-1_500:]!r}"
        self.check(ended.status in statuses, where)
        for sign in ("Traceback", "internal error", "[internal", "panicked at"):
            self.check(sign not in ended.err, where)
        if ended.status in (2, 3):
            errors = [line for line in ended.err.splitlines() if line.startswith("urlset: error")]
            self.check(len(errors) == 1, f"not one line that says why: {where}")


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _wait(process: subprocess.Popen[bytes], until: float) -> str:
    """Waits for a process and kills its session if it hangs or grows; returns which."""
    while process.poll() is None:
        why = ""
        if time.monotonic() > until:
            why = "hung"
        elif _resident(process.pid) > MEMORY:
            why = f"took more than {MEMORY >> 20} MiB"
        if why:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return why
        time.sleep(POLL)
    return ""


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):  # it has ended, or there is no /proc
        return 0
