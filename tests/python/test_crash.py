"""A killed build leaves the live set complete, and the next one completes or cleans up."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import SITE, read_index, read_shard, urlset

pytestmark = pytest.mark.long

#: runs a build in a process that kills itself at the N-th rename or unlink, or fails the N-th
#: write, fsync or rename with a full disk
DRIVER = """
import errno, os, pathlib, signal, sys

what, at = sys.argv[1], int(sys.argv[2])
count = 0

def before(call):
    def wrapped(*args, **kwargs):
        global count
        count += 1
        if count == at:
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, "No space left on device", str(args[0]))
        return call(*args, **kwargs)
    return wrapped

if what == "kill":
    for name in ("replace", "rename", "unlink", "remove", "rmdir"):
        setattr(os, name, before(getattr(os, name)))
else:
    os.fsync = before(os.fsync)
    os.open = before(os.open)
    pathlib.Path.replace = before(pathlib.Path.replace)
from urlset.cli import main
try:
    main(sys.argv[3:])
finally:
    if count < at:
        print(f"calls {count}")
"""

STABLE = ("--layout", "stable")
PACKED = ("--layout", "packed")


def write_catalog(path: Path, ids: Iterable[int]) -> list[str]:
    urls = [f"{SITE}/product/{number:06d}" for number in ids]
    path.write_text("url\n" + "".join(f"{url}\n" for url in urls))
    return urls


def live_urls(out: Path) -> list[str]:
    """All URLs that a crawler finds; fails if a file that the index names is missing or broken."""
    urls = []
    for sitemap in read_index(out / "sitemap.xml"):
        urls += [
            entry["loc"] for entry in read_shard(out / sitemap["loc"].removeprefix(f"{SITE}/"))
        ]
    return urls


def arguments(catalog: Path, out: Path, layout: tuple[str, ...]) -> list[str]:
    return ["build", str(catalog), "--site", SITE, "--out", str(out), "--max-urls", "100", *layout]


def drive(what: str, at: int, args: list[str]) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", DRIVER, what, str(at), *args]
    return subprocess.run(command, capture_output=True, timeout=60)


def no_leftovers(out: Path) -> None:
    """Only the files of the manifest, and no leftovers in the state folder."""
    assert sorted(path.name for path in (out / ".urlset").iterdir()) == ["lock", "manifest.json"]


@pytest.fixture
def catalogs(tmp_path: Path) -> tuple[Path, list[str], Path, list[str]]:
    """A catalog of over 30 shards, and one in which all boundaries are shifted."""
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    before = write_catalog(old, range(3_300))
    after = write_catalog(new, (n for n in range(7, 3_500) if n % 50))
    return old, before, new, after


def kill_at_calls(tmp_path: Path, catalogs, layout: tuple[str, ...], step: int) -> int:
    """Kills a publication at every ``step``-th rename and removal; returns the number of kills."""
    old, before, new, after = catalogs
    out = tmp_path / "out"
    first = tmp_path / "first"
    assert urlset(*arguments(old, first, layout)).status == 0
    for moments in range(1_000):
        at = 1 + moments * step
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(first, out)
        done = drive("kill", at, arguments(new, out, layout))
        if done.returncode == 0:
            assert int(done.stdout.decode().split("calls ")[1]) < at
            return moments
        assert done.returncode == -signal.SIGKILL
        urls = live_urls(out)  # every file exists and is complete
        if layout is STABLE:
            assert urls in (before, after)
        else:
            assert set(urls) <= set(before) | set(after)
        assert urlset(*arguments(new, out, layout)).status == 0
        assert live_urls(out) == after
        no_leftovers(out)
    pytest.fail("the calls do not end")


@pytest.mark.parametrize("layout", [STABLE, PACKED], ids=["stable", "packed"])
def test_killed_at_some_renames_and_removals(tmp_path: Path, catalogs, layout) -> None:
    assert kill_at_calls(tmp_path, catalogs, layout, 6) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("layout", [STABLE, PACKED], ids=["stable", "packed"])
def test_killed_at_every_rename_and_removal(tmp_path: Path, catalogs, layout) -> None:
    # the shards, the index, the manifest, the journal, the stale ones, the staging folder
    assert kill_at_calls(tmp_path, catalogs, layout, 1) >= 35


@pytest.mark.parametrize("layout", [STABLE, PACKED], ids=["stable", "packed"])
def test_a_disk_that_fails_at_any_call(tmp_path: Path, catalogs, layout) -> None:
    old, before, new, after = catalogs
    out = tmp_path / "out"
    assert urlset(*arguments(old, out, layout)).status == 0
    live = before
    for at in range(1, 200, 3):
        done = drive("fail", at, arguments(new, out, layout))
        if done.returncode == 0:
            break
        error = done.stderr.decode()
        assert done.returncode == 3, error
        assert "No space left" in error and error.count("\n") == 1, error
        urls = live_urls(out)
        assert layout is PACKED or urls in (live, after)
        live = urls
    else:
        pytest.fail("the calls do not end")
    assert urlset(*arguments(new, out, layout)).status == 0
    assert live_urls(out) == after
    no_leftovers(out)


def kill_at_random(tmp_path: Path, catalogs, layout: tuple[str, ...], times: int) -> None:
    """This many builds are killed; those that ended before the kill do not count."""
    old, before, new, after = catalogs
    out = tmp_path / "out"
    started = time.monotonic()
    assert urlset(*arguments(old, out, layout)).status == 0
    whole = time.monotonic() - started
    source, wanted, live = new, after, before
    killed = tried = mixed = 0
    pick = random.Random(1)
    while killed < times:
        tried += 1
        assert tried < 20 * times, "builds are too quick to be killed"
        process = subprocess.Popen(
            [sys.executable, "-m", "urlset", *arguments(source, out, layout), "--quiet"],
            stderr=subprocess.DEVNULL,
        )
        time.sleep(pick.uniform(0.2, 0.9) * whole)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        urls = live_urls(out)
        if layout is STABLE:
            assert urls in (live, wanted), f"kill {tried}"
        mixed += urls not in (live, wanted)
        assert urlset(*arguments(source, out, layout)).status == 0
        assert live_urls(out) == wanted
        no_leftovers(out)
        live = wanted
        source, wanted = (old, before) if source is new else (new, after)
    print(f"{layout[1]}: {killed} killed of {tried}, {mixed} between two builds")


def test_killed_at_a_few_random_moments(tmp_path: Path, catalogs) -> None:
    kill_at_random(tmp_path, catalogs, STABLE, 3)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [STABLE, PACKED], ids=["stable", "packed"])
def test_killed_at_random_moments(tmp_path: Path, catalogs, layout) -> None:
    kill_at_random(tmp_path, catalogs, layout, 200)


def test_a_full_disk(tmp_path: Path) -> None:
    """On a separate small filesystem, if the tests may mount one."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", small], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("no filesystem can be mounted here")
    try:
        out = small / "out"
        few, many = tmp_path / "few.csv", tmp_path / "many.csv"
        urls = write_catalog(few, range(200))
        write_catalog(many, range(20_000))
        assert urlset(*arguments(few, out, PACKED)).status == 0
        ended = urlset(*arguments(many, out, PACKED), "--no-gzip")
        assert ended.status == 3
        assert "disk_full" in ended.err and ended.err.count("\n") == 1
        assert live_urls(out) == urls
        assert not (out / ".urlset/staging").exists()
    finally:
        subprocess.run(["umount", small], check=True)


def test_nothing_is_written_where_nothing_changed(tmp_path: Path, catalogs) -> None:
    old, *_ = catalogs
    for layout in (STABLE, PACKED):
        out = tmp_path / layout[1]
        assert urlset(*arguments(old, out, layout)).status == 0

        def state(out: Path = out) -> dict[str, tuple[int, int]]:
            files = (path for path in out.rglob("*") if path.is_file())
            return {str(p): (p.stat().st_ino, p.stat().st_mtime_ns) for p in files}

        first = state()
        assert urlset(*arguments(old, out, layout)).status == 0
        assert state() == first


def test_a_build_waits_for_no_other(tmp_path: Path, catalogs) -> None:
    import fcntl

    old, *_ = catalogs
    out = tmp_path / "out"
    assert urlset(*arguments(old, out, PACKED)).status == 0
    lock = os.open(out / ".urlset/lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        ended = urlset(*arguments(old, out, PACKED))
    finally:
        os.close(lock)
    assert ended.status == 3
    assert "another build" in ended.err and ended.err.count("\n") == 1
