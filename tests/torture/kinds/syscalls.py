"""System calls that fail: a full disk, a broken one, no descriptors, a limit of the size of files.

By strace where it is installed and may trace; by RLIMIT_FSIZE everywhere.
"""

from __future__ import annotations

import functools
import shutil
import subprocess

from ..case import Case, Skipped
from ..live import Night

CALLS = {
    "openat": ("ENOSPC", "EIO", "EMFILE", "EACCES"),
    "write": ("ENOSPC", "EIO"),
    "writev": ("ENOSPC",),
    "read": ("EIO",),
    "fsync": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC"),
    "unlink": ("EIO",),
    "mkdir": ("ENOSPC", "EACCES"),
    "newfstatat": ("EIO",),
}


@functools.cache
def can_trace() -> bool:
    strace = shutil.which("strace")
    if strace is None:
        return False
    command = [strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "true"]
    return subprocess.run(command, capture_output=True, timeout=20).returncode == 0


def run(case: Case) -> None:
    rng = case.rng
    if rng.random() < 0.3:
        night = Night(case)
        size = rng.choice((0, 1, 100, 1_000, 4_096, 20_000))
        command = night.command(night.source)
        # the report on stderr is limited, too, so that no line can be asked for at 0 bytes
        case.urlset(*command, statuses=(0, 3), file_bytes=max(size, 600))
        night.check(f"files of at most {size} bytes")
        return
    if not can_trace():
        raise Skipped
    night = Night(case)
    state, out = night.out / ".urlset", night.out
    shard = f"sitemap-{rng.randint(1, 30):05}.xml.gz"
    paths = [
        out, state, state / "lock", state / "manifest.json", state / "manifest.json.new",
        state / "publish.json", state / "publish.json.new", state / "staging",
        state / "staging/sitemap.xml", state / "staging" / shard, out / "sitemap.xml",
        out / shard, night.source,
    ]  # fmt: skip
    path = rng.choice(paths)
    call = rng.choice(list(CALLS))
    error = rng.choice(CALLS[call])
    when = rng.choice(("", "", ":when=1", ":when=2+", ":when=3"))
    wrap = [
        "strace", "-f", "-qq", "-o", "/dev/null", "-P", str(path), "-e", f"trace={call}",
        "-e", f"inject={call}:error={error}{when}",
    ]  # fmt: skip
    case.urlset(*night.command(night.source), statuses=(0, 3), wrap=wrap)
    night.check(f"{call} of {path.name} fails with {error}{when}")
