"""Limits of open files, threads and address space; streams that are full or closed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from urlset.cli import cli, main

pytestmark = pytest.mark.long

SITE = "https://shop.example"
URLSET = [sys.executable, "-m", "urlset"]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits") / "rows.csv"
    with path.open("w") as file:
        file.write("url,group\n")
        file.writelines(f"{SITE}/p/{number},g{number % 90}\n" for number in range(60_000))
    return path


def limited(
    command: list[str], limit: int, value: int, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    def set_limit() -> None:
        resource.setrlimit(limit, (value, value))

    return subprocess.run(
        command, preexec_fn=set_limit, capture_output=True, text=True, timeout=120,
        env={**os.environ, **(env or {})},
    )  # fmt: skip


def is_one_line(result: subprocess.CompletedProcess[str], status: int) -> None:
    assert result.returncode == status, result.stderr
    lines = result.stderr.splitlines()
    # the messages of the memory allocator of pyarrow are not those of urlset
    lines = [line for line in lines if not line.startswith("<jemalloc>")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("urlset: error: ")


OPTIONS = [
    ["--max-urls", "300"],
    ["--max-urls", "300", "--split-by", "group"],
    ["--max-urls", "300", "--sort", "--layout", "stable"],
]


@pytest.mark.parametrize("files", [40, 70])
@pytest.mark.parametrize("options", OPTIONS)
def test_few_open_files(options: list[str], files: int, catalog: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build = [*URLSET, "build", str(catalog), "--site", SITE, "--out", str(out), *options]
    result = limited(build, resource.RLIMIT_NOFILE, files)
    if files < 70 and result.returncode:
        is_one_line(result, 3)
        assert "Too many open files; allow more open files (ulimit -n)" in result.stderr
        return
    assert result.returncode == 0, result.stderr
    for command in (["verify", str(out)], ["read", str(out), "-o", str(tmp_path / "r.parquet")]):
        result = limited([*URLSET, *command], resource.RLIMIT_NOFILE, files)
        assert result.returncode == 0, result.stdout + result.stderr


def test_many_inputs_and_few_open_files(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.csv").write_text(f"url\n{SITE}/{number}\n")
    out = tmp_path / "out"
    inputs = [str(tmp_path / f"{number}.csv") for number in range(300)]
    build = [*URLSET, "build", *inputs, "--site", SITE, "--out", str(out)]
    assert limited(build, resource.RLIMIT_NOFILE, 70).returncode == 0
    assert (out / "sitemap.xml").exists()


def strace(injection: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command some of whose system calls fail."""
    trace = ["strace", "-f", "-o", os.devnull, "-e", "trace=clone,clone3", "-e", injection]
    return subprocess.run([*trace, *command], capture_output=True, text=True, timeout=120)


def has_strace() -> bool:
    try:
        return strace("inject=clone3:error=EAGAIN", [sys.executable, "-c", ""]).returncode == 0
    except OSError:
        return False


needs_strace = pytest.mark.skipif(not has_strace(), reason="strace is missing, or may not trace")


@needs_strace
@pytest.mark.parametrize("when", [1, 2, 3, 4, 6])
def test_no_more_threads(when: int, catalog: Path, tmp_path: Path) -> None:
    """From the ``when``-th thread on the system starts none."""
    out = tmp_path / "out"
    build = [*URLSET, "build", str(catalog), "--site", SITE, "--out", str(out), "--threads", "4"]
    build += ["--max-urls", "2000", "--sort"]
    assert subprocess.run(build, capture_output=True).returncode == 0
    before = (out / "sitemap.xml").read_bytes()
    catalog_of_less = tmp_path / "less.csv"
    catalog_of_less.write_text(catalog.read_text()[:-100].rpartition("\n")[0] + "\n")
    build[build.index(str(catalog))] = str(catalog_of_less)
    injection = f"inject=clone,clone3:error=EAGAIN:when={when}+"
    result = strace(injection, build)
    if result.returncode == 0:  # with fewer threads
        assert when > 3
        assert (out / "sitemap.xml").read_bytes() != before
        return
    is_one_line(result, 3)
    assert result.stderr.rstrip().endswith("[system.threads]")
    assert (out / "sitemap.xml").read_bytes() == before
    assert subprocess.run(build, capture_output=True).returncode == 0


@needs_strace
@pytest.mark.parametrize("when", [1, 2, 3])
@pytest.mark.parametrize("command", ["verify", "read", "diff", "split"])
def test_no_more_threads_elsewhere(command: str, when: int, catalog: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build = [*URLSET, "build", str(catalog), "--site", SITE, "--out", str(out)]
    build += ["--max-urls", "9000", "--layout", "stable"]
    assert subprocess.run(build, capture_output=True).returncode == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "one.xml").write_text(
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        f"<url><loc>{SITE}/p/1</loc></url></urlset>"
    )
    commands = {
        "verify": ["verify", str(out)],
        "read": ["read", str(out), "-o", str(tmp_path / "rows.parquet")],
        "diff": ["diff", str(other), str(out), "-o", str(tmp_path / "changes.csv")],
        "split": [*build[3:], "--split-by", "group", "--max-shrink", "100%"],
    }
    run = [*URLSET, *commands[command]]
    usual = subprocess.run(run, capture_output=True, text=True)
    result = strace(f"inject=clone,clone3:error=EAGAIN:when={when}+", run)
    assert "Traceback" not in result.stderr
    assert "panick" not in result.stderr
    if result.returncode == usual.returncode:  # with fewer threads, if any
        return
    is_one_line(result, 3)
    assert "system.threads" in result.stderr


@pytest.mark.parametrize("mebibytes", [60, 120, 200, 300, 400, 600, 1000])
def test_little_address_space(mebibytes: int, catalog: Path, tmp_path: Path) -> None:
    """A lack of memory may end the process, but does not change the live set."""
    out = tmp_path / "out"
    build = [*URLSET, "build", str(catalog), "--site", SITE, "--out", str(out)]
    assert subprocess.run(build, capture_output=True).returncode == 0
    live = {path: path.read_bytes() for path in out.glob("*.xml*")}
    less = tmp_path / "less.csv"
    less.write_text("".join(catalog.read_text().splitlines(keepends=True)[:50_000]))
    build[build.index(str(catalog))] = str(less)
    result = limited(build, resource.RLIMIT_AS, mebibytes << 20)
    if result.returncode != 0:
        assert {path: path.read_bytes() for path in out.glob("*.xml*")} == live
        assert subprocess.run(build, capture_output=True).returncode == 0
    verified = subprocess.run([*URLSET, "verify", str(out), "--json", "-"], capture_output=True)
    assert verified.returncode == 0
    assert json.loads(verified.stdout)["urls"] == 49_999


STREAMS = ["2>/dev/full", "2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-", "<&-"]


@pytest.mark.parametrize("streams", STREAMS)
def test_streams_that_are_full_or_closed(streams: str, catalog: Path, tmp_path: Path) -> None:
    """The status is that of the work, and printed text goes to no file of the output."""
    out = tmp_path / "out"
    build = f"build {catalog} --site {SITE} --out {out}"
    wrong = f"build {tmp_path}/none.csv --site {SITE} --out {out}"
    rejected = f"build {catalog} --site https://other.example --out {out}"
    for command, status in (
        (build, 0), (wrong, 3), (rejected, 1), (f"{build} --unknown", 2), (f"verify {out}", 0),
    ):  # fmt: skip
        line = f"{sys.executable} -m urlset {command} {streams}"
        result = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        assert result.returncode == status, (command, result.stdout, result.stderr)
    plain = tmp_path / "plain"
    assert subprocess.run([*URLSET, *build.replace(str(out), str(plain)).split()]).returncode == 0
    for path in plain.glob("*.xml*"):
        assert (out / path.name).read_bytes() == path.read_bytes()


def test_a_subinterpreter_builds_or_says_why_not(catalog: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = f"""
import urlset
try:
    urlset.build({str(catalog)!r}, site={SITE!r}, out={str(out)!r})
    print("built", flush=True)
except urlset.Error as error:
    print(error.code, flush=True)
"""
    outer = f"""
code = {code!r}
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreters.run_string(interpreters.create(), code)
"""
    result = subprocess.run([sys.executable, "-c", outer], capture_output=True, text=True)
    assert result.stdout.strip() in ("built", "config.interpreter"), result.stderr
    assert (out / "sitemap.xml").exists() == (result.stdout.strip() == "built")


def test_a_small_manifest_takes_little_memory(catalog: Path, tmp_path: Path) -> None:
    """Reading a small manifest takes no memory for the largest one."""
    out = tmp_path / "out"
    build = [*URLSET, "build", str(catalog), "--site", SITE, "--out", str(out), "--threads", "1"]
    assert limited(build, resource.RLIMIT_AS, 8 << 30).returncode == 0
    code = (
        "import resource, pathlib; from urlset.destination.directory import Directory\n"
        "used = int(pathlib.Path('/proc/self/statm').read_text().split()[0])"
        " * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)\n"
        f"print(len(Directory.open(pathlib.Path({str(out / '.urlset')!r}))"
        ".read('manifest.json', (256 << 20) + 1).data))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == str((out / ".urlset" / "manifest.json").stat().st_size)


def test_too_little_memory_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhausted(**_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(cli, "main", exhausted)
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 3
    assert "[system.memory]" in capsys.readouterr().err
