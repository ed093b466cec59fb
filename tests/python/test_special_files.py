"""FIFOs, sockets, devices, closed folders and files that change: findings, and never a wait."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
HOST = "https://www.shop.example"
COMMAND = [sys.executable, "-c", "from urlset.cli import main; main()"]
NOBODY = 65534


def urlset_of(*locs: str) -> bytes:
    entries = "".join(f"<url><loc>{loc}</loc></url>" for loc in locs)
    return f'<urlset xmlns="{NS}">{entries}</urlset>'.encode()


def index_of(*locs: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs)
    return f'<sitemapindex xmlns="{NS}">{entries}</sitemapindex>'.encode()


def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=20, **options
    )  # type: ignore[call-overload] # options of any kind
    assert "Traceback" not in done.stderr and "panic" not in done.stderr, done.stderr
    assert isinstance(done, subprocess.CompletedProcess)
    return done


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket has 107 bytes at most
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


SPECIAL: dict[str, Callable[[Path], None]] = {
    "FIFO": os.mkfifo,
    "socket": a_socket,
    "link to zeros": lambda path: path.symlink_to("/dev/zero"),
    "link to null": lambda path: path.symlink_to("/dev/null"),
    "link to the terminal": lambda path: path.symlink_to("/dev/tty"),
    "link to a FIFO": lambda path: (
        os.mkfifo(path.with_suffix(".fifo")), path.symlink_to(path.with_suffix(".fifo"))
    )[1],
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    root.mkdir()
    (root / "a.xml").write_bytes(urlset_of(f"{HOST}/sound-one"))
    return root


@pytest.mark.parametrize("name", ["x.xml", "x.xml.gz", "x.txt", "x.txt.gz"])
@pytest.mark.parametrize("kind", SPECIAL)
def test_special_files_in_a_folder_are_one_finding(folder: Path, kind: str, name: str) -> None:
    SPECIAL[kind](folder / name)
    done = run("verify", folder, "--jsonl", "-")
    assert done.returncode == 1
    assert done.stdout.count("\n") == 1 and "file.unreadable" in done.stdout
    assert name in done.stdout
    done = run("read", folder, "-o", "-")
    assert done.returncode == 3 and "file.unreadable" in done.stderr
    done = run("read", folder, "--lenient", "-o", "-")
    assert done.returncode == 0 and "sound-one" in done.stdout
    sound = folder.parent / "sound.xml"
    sound.write_bytes(urlset_of(f"{HOST}/other"))
    for sides in ((folder, sound), (sound, folder)):
        done = run("diff", *sides)
        assert done.returncode == 3 and "file.unreadable" in done.stderr


@pytest.mark.parametrize("kind", SPECIAL)
def test_special_files_that_an_index_lists(folder: Path, kind: str) -> None:
    (folder / "sitemap.xml").write_bytes(index_of(f"{HOST}/a.xml", f"{HOST}/x.xml"))
    SPECIAL[kind](folder / "x.xml")
    for target in (folder, folder / "sitemap.xml"):
        done = run("verify", target, "--jsonl", "-")
        assert done.returncode == 1 and "index.missing_file" in done.stdout


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_special_manifest_is_none(folder: Path, kind: str) -> None:
    (folder / ".urlset").mkdir()
    SPECIAL[kind](folder / ".urlset" / "manifest.json")
    assert run("verify", folder).returncode == 0
    assert run("diff", folder, folder).returncode == 0


def test_what_is_named_may_be_special(tmp_path: Path) -> None:
    """Rows come from a FIFO, and go to one; a sitemap is read twice, so a pipe is refused."""
    fifo = tmp_path / "rows.csv"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_text, args=("url\n/a\n/b\n",))
    writer.start()
    done = run("build", fifo, "--format", "csv", "--site", HOST, "--out", tmp_path / "out")
    writer.join()
    assert done.returncode == 0, done.stderr
    # a copy of /dev/stdout in a folder of the test, in case the build replaces it
    stdout = tmp_path / "stdout"
    stdout.symlink_to("/proc/self/fd/1")
    done = run("read", tmp_path / "out", "-o", stdout, "--format", "csv")
    assert stdout.is_symlink()
    assert done.returncode == 0 and f"{HOST}/b" in done.stdout
    done = run("verify", "/dev/stdin", stdin=subprocess.DEVNULL)
    assert done.returncode == 3 and "target.kind" in done.stderr
    with (tmp_path / "out" / "sitemap.xml").open() as file:
        assert run("verify", "/dev/stdin", stdin=file).returncode in (0, 1)


def test_a_file_that_changes_while_it_is_read(folder: Path) -> None:
    path = folder / "big.xml.gz"
    path.write_bytes(gzip.compress(urlset_of(*(f"{HOST}/{n}" for n in range(300_000))), 1))
    stop = threading.Event()

    def touch() -> None:
        while not stop.is_set():
            os.utime(path)
            time.sleep(0.001)

    toucher = threading.Thread(target=touch)
    toucher.start()
    try:
        done = run("verify", path, "--no-duplicates", "--jsonl", "-")
        read = run("read", path, "-o", folder.parent / "rows.csv")
    finally:
        stop.set()
        toucher.join()
    assert done.returncode == 1 and done.stdout.count("file.changed") == 1
    assert read.returncode == 3 and "file.changed" in read.stderr


def test_a_file_that_vanishes_before_it_is_read(folder: Path) -> None:
    from urlset.inspect.lookup import find
    from urlset.inspect.verify import verify_found

    (folder / "b.xml").write_bytes(urlset_of(f"{HOST}/sound-two"))
    with find(folder) as found:
        (folder / "b.xml").unlink()
        report = verify_found(found)
    assert report.counts == {"file.unreadable": 1} and report.urls == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed for what root may read")
def test_what_may_not_be_read_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.name.startswith(("pytest-", "popen-")):
            parent.chmod(0o755)
    root = tmp_path / "site"
    (root / "closed").mkdir(parents=True)
    (root / "closed" / "b.xml").write_bytes(urlset_of(f"{HOST}/b"))
    (root / "a.xml").write_bytes(urlset_of(f"{HOST}/sound-one"))
    (root / "c.txt").write_text(f"{HOST}/secret\n")
    (root / "c.txt").chmod(0)
    (root / "closed").chmod(0)

    def as_nobody(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        # other users may not be able to read the interpreter: a first run imports all modules
        code = (
            "import difflib, os, sys; from urlset.cli import cli, main\n"
            "for command in ('verify', 'read'):\n"
            "    rows = ['-o', sys.argv[2], '--quiet'] if command == 'read' else ['--quiet']\n"
            "    cli.main(args=[command, sys.argv[1], *rows], standalone_mode=False)\n"
            f"os.chdir('/'); os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
            "main(sys.argv[3:])"
        )
        first = [root / "a.xml", tmp_path / "first.csv"]
        arguments = (*first, *arguments)
        command = [sys.executable, "-c", code, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    done = as_nobody("verify", root, "--jsonl", "-")
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("file.unreadable") == 2
    assert '"closed/"' in done.stdout and '"c.txt"' in done.stdout
    assert as_nobody("read", root, "-o", "-").returncode == 3
    lenient = as_nobody("read", root, "--lenient", "-o", "-")
    assert lenient.returncode == 0 and "sound-one" in lenient.stdout
    for target in (root / "closed" / "b.xml", root / "closed"):
        done = as_nobody("verify", target)
        assert done.returncode == 3 and "target.unreadable" in done.stderr, done.stderr


def is_open(descriptors: Path, path: Path) -> bool:
    """Whether one of a process's descriptors is of ``path``."""
    for link in descriptors.iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if link.readlink() == path:
                return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["verify", "read", "diff"])
def test_signals_end_what_takes_long(tmp_path: Path, number: signal.Signals, command: str) -> None:
    """A plain file of 900 MB of comments: a second of reading, at least, without an entry."""
    path = tmp_path / "sitemap.xml"
    block = b"<!---->" * 150_000
    with path.open("wb") as file:
        file.write(f'<urlset xmlns="{NS}">'.encode())
        for _ in range(900):
            file.write(block)
    sound = tmp_path / "sound.xml"
    sound.write_bytes(urlset_of(f"{HOST}/other"))
    arguments = {
        "verify": ["verify", path],
        "read": ["read", path, "-o", tmp_path / "rows.csv"],
        "diff": ["diff", sound, path],
    }[command]
    child = subprocess.Popen([*COMMAND, *map(str, arguments)], stderr=subprocess.PIPE, text=True)
    opened = Path("/proc", str(child.pid), "fd")
    deadline = time.monotonic() + 60
    while not is_open(opened, path):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    assert child.poll() is None, "it was done before the signal"
    start = time.monotonic()
    child.send_signal(number)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 128 + number and "stopped by a signal" in said
    # a second, plus the load of the machine; reading to the end would take 20 s
    assert time.monotonic() - start < 15
