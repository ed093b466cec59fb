"""Files that the user names: checked before any input is read, written completely or not."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import urlset as package
from conftest import ROOT, SITE, Ended, read_set, urlset

pytestmark = pytest.mark.long


def catalog(path: Path, rows: int, bad: int = 0) -> Path:
    path.write_text("url\n" + "".join(f"{SITE}/{n}\n" for n in range(rows)) + "x:\n" * bad)
    return path


def build(source: object, out: Path, *args: object) -> Ended:
    common = ("--site", SITE, "--out", out, "--max-urls", 100, "--duplicates", "drop",
              "--max-shrink", "100%", "--max-rejects", "9")  # fmt: skip
    return urlset("build", source, *common, *args)


@pytest.fixture
def read_only(tmp_path: Path) -> Path:
    folder = tmp_path / "read-only"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no filesystem can be mounted here")
    (folder / "old.csv").write_text("old")
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def refused(ended: Ended, option: str, out: Path) -> None:
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert f"[output.{option.removeprefix('--')}]" in ended.err
    assert "nothing was read" in ended.err and not out.exists()


@pytest.mark.parametrize("option", ["--json", "--changes", "--rejects"])
def test_targets_that_cannot_be_written(tmp_path: Path, out: Path, option: str) -> None:
    """The input is a pipe without a writer: the command does not wait for it."""
    os.mkfifo(tmp_path / "never.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("x")
    targets = [tmp_path / "folder.csv", tmp_path / "file/x.csv", tmp_path / "file/deeper/x.csv",
               Path("/proc/none.csv"), Path("/proc/none/x.csv")]  # fmt: skip
    for target in targets:
        refused(build(tmp_path / "never.csv", out, option, target), option, out)
    assert {p.name for p in tmp_path.iterdir()} == {"never.csv", "folder.csv", "file"}


@pytest.mark.parametrize("option", ["--json", "--changes", "--rejects"])
def test_targets_on_a_filesystem_that_is_read_only(
    tmp_path: Path, out: Path, read_only: Path, option: str
) -> None:
    source = catalog(tmp_path / "c.csv", 9)
    for name in ("old.csv", "new.csv"):
        ended = build(source, out, option, read_only / name)
        refused(ended, option, out)
        assert "Read-only file system" in ended.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("option", ["--json", "--changes", "--rejects"])
def test_targets_without_permission(option: str) -> None:
    with tempfile.TemporaryDirectory() as shared:  # other users cannot read pytest's folders
        without_permission(Path(shared), option)


def without_permission(folder: Path, option: str) -> None:
    source, out = catalog(folder / "c.csv", 9), folder / "out"
    closed = folder / "closed"
    closed.mkdir(mode=0o755)
    (folder / "mine.csv").write_text("mine")
    (folder / "mine.csv").chmod(0o444)
    folder.chmod(0o777)
    for path in folder.parents:
        if path.stat().st_mode & 0o005 != 0o005:
            pytest.skip(f"{path} is closed to others")
    code = (
        "import gettext, locale, os, sys, urlset, urlset.cli.build; from urlset.cli import main;"
        "source, first = sys.argv[1:3]; target = first + '.csv';"
        # all modules are loaded: other users may not be able to read this Python
        f"urlset.build(source, site={SITE!r}, out=first, duplicates='drop', changes=target);"
        "os.setgid(65534); os.setuid(65534); main(sys.argv[3:])"
    )
    for target in (closed / "x.csv", closed / "deeper/x.csv", folder / "mine.csv"):
        args = ["build", source, "--site", SITE, "--out", out, "--duplicates", "drop", option,
                target]  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", code, source, folder / "first", *map(str, args)],
            capture_output=True,
            text=True,
        )
        refused(Ended(done.returncode, done.stdout, done.stderr), option, out)
    assert (folder / "mine.csv").read_text() == "mine"


@pytest.mark.parametrize("option", ["--json", "--changes", "--rejects"])
def test_targets_stay_as_they_are_until_the_end(tmp_path: Path, out: Path, option: str) -> None:
    target = tmp_path / "target.csv"
    target.write_text("of last night")
    before = target.stat()
    (tmp_path / "c.csv").write_text('url\n"open\n')
    ended = build(tmp_path / "c.csv", out, option, target)
    assert ended.status == 3
    if option != "--json":  # which also reports failures
        assert (target.stat().st_mtime_ns, target.stat().st_ino) == (
            before.st_mtime_ns, before.st_ino,
        )  # fmt: skip
    assert {p.name for p in tmp_path.iterdir()} == {"c.csv", "target.csv", "out"}


def test_targets_in_folders_that_the_build_makes(tmp_path: Path, out: Path) -> None:
    source = catalog(tmp_path / "c.csv", 9, bad=1)
    ended = build(source, out, "--json", out / "report.json", "--changes", tmp_path / "a/b/c.csv",
                  "--rejects", tmp_path / "r/s.parquet")  # fmt: skip
    assert ended.status == 0, ended.err
    assert json.loads((out / "report.json").read_text())["published"] is True
    assert (tmp_path / "a/b/c.csv").exists() and (tmp_path / "r/s.parquet").exists()


def test_a_report_that_fails_after_the_publication(tmp_path: Path, out: Path) -> None:
    source = catalog(tmp_path / "c.csv", 9)
    (tmp_path / "report.json").symlink_to("/dev/full")
    ended = build(source, out, "--json", tmp_path / "report.json")
    assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    assert "the new set is live [output.json]" in ended.err and len(read_set(out)) == 9
    for more in ((), ("--json", "-")):
        command = [sys.executable, "-m", "urlset", "build", source, "--site", SITE, "--out", out,
                   *more]  # fmt: skip
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (3, 1), done
        assert "standard output: No space left on device; the new set is live" in done.stderr


ADDRESSES = ["ftp://bucket/x.csv", "https://a.example/x.csv", "file:///x.csv", "S3+zip://x/y.csv"]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("option", ["out", "state", "rejects", "changes", "json"])
def test_a_destination_that_is_an_address(tmp_path: Path, address: str, option: str) -> None:
    source = catalog(tmp_path / "c.csv", 9)
    given = {"site": SITE, "out": "out", "duplicates": "drop", option: address}
    args = [part for key, value in given.items() for part in (f"--{key}", value)]
    ended = urlset("build", source, *args, cwd=tmp_path)
    assert (ended.status, ended.err.count("\n")) == (2, 1), ended
    assert f"[config.{option}]" in ended.err
    if option != "json":
        del given["site"]
        toml = "".join(f'{key} = "{value}"\n' for key, value in given.items())
        (tmp_path / "urlset.toml").write_text(f'site = "{SITE}"\ninput = "c.csv"\n{toml}')
        ended = urlset("build", cwd=tmp_path)
        assert (ended.status, f"[config.{option}]" in ended.err) == (2, True), ended
        (tmp_path / "urlset.toml").unlink()
        for value in (address, Path(address)):
            with pytest.raises(package.ConfigError) as told:
                package.build(source, **{**given, "site": SITE, option: value})
            assert told.value.code == f"config.{option}"
    assert [path.name for path in tmp_path.iterdir()] == ["c.csv"]


def test_a_path_with_a_colon_is_a_path(tmp_path: Path) -> None:
    source = catalog(tmp_path / "c.csv", 9)
    for name in ("a:b", "2026-11-21T10:00", "s3:"):
        ended = urlset("build", source, "--site", SITE, "--out", name, cwd=tmp_path)
        assert ended.status == 0 and (tmp_path / name / "sitemap.xml").exists(), ended


@pytest.mark.parametrize("command", ["read", "diff"])
def test_rows_to_an_address(tmp_path: Path, out: Path, command: str) -> None:
    assert build(catalog(tmp_path / "c.csv", 9), out).status == 0
    targets = [out] * (2 if command == "diff" else 1)
    ended = urlset(command, *targets, "-o", "https://bucket/x.csv", cwd=tmp_path)
    assert (ended.status, "[config.output]" in ended.err) == (2, True), ended


def test_rows_to_a_device(tmp_path: Path, out: Path) -> None:
    """The build writes to it and does not replace it."""
    assert build(catalog(tmp_path / "c.csv", 9), out).status == 0
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert urlset("read", out, "-o", pipe).status == 0
        assert len(reader.communicate(timeout=20)[0].splitlines()) == 10
    assert pipe.is_fifo()


FULL = """
import errno, os, sys
at = int(sys.argv[1])
count = 0
def counted(call):
    def wrapped(*args, **kwargs):
        global count
        count += 1
        if count >= at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), args[0])
        return call(*args, **kwargs)
    return wrapped
from urlset.cli import main
for name in ("replace", "fsync", "unlink", "mkdir"):
    setattr(os, name, counted(getattr(os, name)))
main(sys.argv[2:])
"""


@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_a_full_disk_is_told_truly_at_every_step(tmp_path: Path, out: Path, layout: str) -> None:
    """From one call on all fail; the message agrees with the state of the live set."""
    large, small = catalog(tmp_path / "a.csv", 700), tmp_path / "b.csv"
    rows = "".join(f"{SITE}/new/{n}\n" for n in range(300))
    small.write_text(f"url\n{rows}")
    new = rows.split()
    template = tmp_path / "template"
    for source in (small, large):
        assert build(source, template, "--layout", layout).status == 0
    old = [entry["loc"] for entry in read_set(template)]
    states = ("the previous set is still live", "the new set goes live", "the new set is live")
    told = dict.fromkeys(states, 0)
    for at in range(1, 200):
        subprocess.run(["rm", "-rf", out], check=True)
        subprocess.run(["cp", "-a", template, out], check=True)
        args = ["build", str(small), "--site", SITE, "--out", str(out), "--max-urls", "100",
                "--max-shrink", "100%", "--layout", layout, "--duplicates", "drop"]  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", FULL, str(at), *args], capture_output=True, text=True
        )
        if done.returncode == 0:
            break
        assert (done.returncode, done.stderr.count("\n")) == (3, 1), done
        found = [text for text in told if text in done.stderr]
        assert len(found) == 1, (at, done.stderr)
        said = found[0]
        told[said] += 1
        live = [entry["loc"] for entry in read_set(out)]
        if said == "the previous set is still live":
            assert live == old, (at, done.stderr)
            assert not (out / ".urlset/publish.json").exists()
        elif said == "the new set is live":
            assert live == new, (at, done.stderr)
        else:
            assert (out / ".urlset/publish.json").exists()
        (tmp_path / "broken.csv").write_text('url\n"open\n')
        assert build(tmp_path / "broken.csv", out, "--layout", layout).status == 3
        live = [entry["loc"] for entry in read_set(out)]
        assert live == (old if said == "the previous set is still live" else new), (at, done.stderr)
    assert all(told.values()), told


def test_the_umask_is_never_changed(tmp_path: Path, out: Path) -> None:
    """All files that another thread creates meanwhile have the mode of the umask."""
    assert build(catalog(tmp_path / "c.csv", 9), out).status == 0
    before = os.umask(0o027)
    stop = threading.Event()
    modes: set[int] = set()

    def make() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            path = tmp_path / f"f{number % 50}"
            path.unlink(missing_ok=True)
            path.touch()
            modes.add(path.stat().st_mode & 0o777)

    threads = [threading.Thread(target=make) for _ in range(1)]
    for thread in threads:
        thread.start()
    try:
        for number in range(60):
            with package.read(out) as rows:
                from urlset.rows import write

                write(rows, str(tmp_path / "rows.csv"))
            robots = tmp_path / f"robots{number}.txt"
            package.announce(out, to="robots", robots=robots)
            assert robots.stat().st_mode & 0o777 == 0o640
            assert (tmp_path / "rows.csv").stat().st_mode & 0o777 == 0o640
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        os.umask(before)
    assert modes == {0o640}


def test_nothing_of_the_process_is_changed() -> None:
    """No module changes state that all threads share."""
    forbidden = {"umask", "chdir", "fchdir", "putenv", "unsetenv", "setlocale", "setuid"}
    modules = list((ROOT / "python/urlset").rglob("*.py"))
    assert len(modules) > 40
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call):
                called = node.func
                name = getattr(called, "attr", getattr(called, "id", ""))
                assert name not in forbidden, f"{module}:{node.lineno}"
