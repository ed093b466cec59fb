"""Every system call of a build fails once: the live set stays complete, one line has the reason.

Errors are injected by strace, so that the writer in Rust and the publication in Python meet them
alike. Skipped where strace is not installed or may not trace.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import SITE, read_index, read_shard, urlset

pytestmark = pytest.mark.long

LAYOUTS = ("stable", "packed")


@dataclass(frozen=True)
class Night:
    """A live set, its catalog, and the catalog of a next build that shifts every boundary."""

    layout: str
    live: Path
    before: list[str]
    source: Path
    after: list[str]
    #: the files that the next build stages
    staged: list[str]
    #: the files that it removes
    stale: list[str]

    def command(self, out: Path) -> list[str]:
        return [
            "build", str(self.source), "--site", SITE, "--out", str(out), "--max-urls", "100",
            "--layout", self.layout, "--quiet",
        ]  # fmt: skip


def write_catalog(path: Path, ids: Iterator[int] | range) -> list[str]:
    urls = [f"{SITE}/product/{number:06d}" for number in ids]
    path.write_text("url\n" + "".join(f"{url}\n" for url in urls))
    return urls


@pytest.fixture(scope="module", params=LAYOUTS)
def night(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Night:
    if not can_trace():
        pytest.skip("strace is not installed, or may not trace here")
    folder = tmp_path_factory.mktemp(request.param)
    old, new = folder / "old.csv", folder / "new.csv"
    before = write_catalog(old, range(3_300))
    after = write_catalog(new, (n for n in range(7, 3_200) if n % 50))
    live, next_one = folder / "live", folder / "next"
    common = ("--site", SITE, "--max-urls", "100", "--layout", request.param)
    assert urlset("build", old, "--out", live, *common).status == 0
    assert urlset("build", new, "--out", next_one, *common).status == 0
    names = [{p.name for p in out.glob("*.gz")} for out in (live, next_one)]
    # a stable shard of the previous generation is kept for one more build
    stale = sorted(names[0] - names[1]) if request.param == "packed" else []
    staged = [*sorted(names[1] - names[0] if not stale else names[1]), "sitemap.xml"]
    assert len(staged) > 30
    return Night(request.param, live, before, new, after, staged, stale)


def can_trace() -> bool:
    strace = shutil.which("strace")
    if strace is None:
        return False
    command = [strace, "-f", "-o", "/dev/null", "-e", "trace=fsync", "true"]
    return subprocess.run(command, capture_output=True).returncode == 0


def live_urls(out: Path) -> list[str]:
    """All URLs that a crawler finds; fails if a file that the index names is missing or broken."""
    urls = []
    for sitemap in read_index(out / "sitemap.xml"):
        path = out / sitemap["loc"].removeprefix(f"{SITE}/")
        urls += [entry["loc"] for entry in read_shard(path)]
    return urls


def injected(
    night: Night, out: Path, call: str, error: str, path: str
) -> subprocess.CompletedProcess[str]:
    """The next build, in which every such call on a path below the output fails."""
    log = out.parent / "strace.log"
    # calls with the descriptor of a folder contain the last part only; small files are written
    # beside their name and renamed
    names = [str(out / path)]
    if path != ".":
        names += [f"{out / path}.new", Path(path).name, f"{Path(path).name}.new"]
    paths = [part for name in names for part in ("-P", name)]
    if call in ("rename", "unlink", "mkdir"):
        call = f"{call},{call}at" if call != "rename" else "rename,renameat,renameat2"
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", log, *paths, "-e", f"trace={call}",
         "-e", f"inject={call}:error={error}", sys.executable, "-m", "urlset",
         *night.command(out)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "(INJECTED)" in log.read_text(), f"{call} of {path} did not happen"
    return done


def check(night: Night, out: Path, call: str, error: str, path: str) -> None:
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(night.live, out)
    done = injected(night, out, call, error, path)
    what = f"{call} of {path} fails with {error}: {done.stderr}"
    assert done.returncode == 3, what
    assert done.stderr.startswith("urlset: ") and done.stderr.count("\n") == 1, what
    said = {"ENOSPC": "No space left on device", "EIO": "Input/output error"}[error]
    assert said in done.stderr, what
    urls = live_urls(out)
    journal = (out / ".urlset/publish.json").exists()
    if night.layout == "stable":
        assert urls in (night.before, night.after), what
    elif not journal:
        # packed files are replaced one by one once the journal exists; each is complete
        assert urls == night.before, what
    ended = urlset(*night.command(out))
    assert ended.status == 0, what + ended.err
    assert live_urls(out) == night.after, what
    manifest = json.loads((out / ".urlset/manifest.json").read_text())
    listed = [e["path"] for kind in ("shards", "indexes") for e in manifest[kind]]
    names = {path.name for path in out.iterdir()} - {".urlset"}
    assert names == {*listed, *manifest["retired"]}, what
    state = {path.name for path in (out / ".urlset").iterdir()}
    assert state == {"lock", "manifest.json"}, what


STAGING = ".urlset/staging"
STATE = [".urlset/publish.json.new", ".urlset/manifest.json.new"]


def cases(night: Night, shards: list[str]) -> list[tuple[str, str, str]]:
    """Call, error and path."""
    files = [f"{STAGING}/{name}" for name in shards] + STATE
    calls = [
        (call, error, path)
        for path in files
        for call, error in (
            ("openat", "ENOSPC"), ("write", "ENOSPC"), ("write", "EIO"), ("fsync", "EIO"),
            ("rename", "EIO"), ("rename", "ENOSPC"),
        )
    ]  # fmt: skip
    calls += [("fsync", "EIO", path) for path in (STAGING, ".urlset", ".")]
    calls += [("mkdir", "ENOSPC", STAGING), ("openat", "ENOSPC", ".urlset/lock")]
    calls += [(call, "EIO", ".urlset/manifest.json") for call in ("openat", "read")]
    calls += [("unlink", "EIO", path) for path in [*night.stale, ".urlset/publish.json"]]
    return calls


def test_a_few_calls_that_fail(night: Night, tmp_path: Path) -> None:
    names = night.staged
    for case in cases(night, [names[17], names[-1]])[::3]:
        check(night, tmp_path / "out", *case)


@pytest.mark.slow
def test_every_call_that_may_fail(night: Night, tmp_path: Path) -> None:
    tried = cases(night, night.staged)
    for case in tried:
        check(night, tmp_path / "out", *case)
    assert len(tried) >= 180
