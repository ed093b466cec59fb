"""A panic inside the extension as a user sees it: one line, exit 3, and the live set is unchanged.

The tests of all threads are tests/rust/panics.rs; here the extension is built with the feature
``inject``, which takes a minute.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = "https://shop.example"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose extension panics at an armed point."""
    build = ["cargo", "build", "--quiet", "-p", "urlset-python", "--features", "inject"]
    target = ROOT / "target"
    env = {**os.environ, "PYO3_PYTHON": sys.executable}
    subprocess.run(build, cwd=ROOT, check=True, env=env)
    folder = tmp_path_factory.mktemp("inject")
    package = folder / "urlset"
    ignore = shutil.ignore_patterns("_core.*.so", "__pycache__")
    shutil.copytree(ROOT / "python" / "urlset", package, ignore=ignore)
    shutil.copy(target / "debug" / "lib_core.so", package / "_core.abi3.so")
    return folder


POINTS = ["build", "run", "reader.batch", "worker.write", "collector.finish", "syncer.file"]


@pytest.mark.parametrize("point", POINTS)
def test_a_build(point: str, package: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    out = tmp_path / "out"

    def build(count: int, panic: str) -> subprocess.CompletedProcess[str]:
        rows.write_text("url\n" + "".join(f"{SITE}/p/{number}\n" for number in range(count)))
        command = [sys.executable, "-m", "urlset", "build", str(rows), "--site", SITE]
        env = {**os.environ, "PYTHONPATH": str(package), "URLSET_PANIC": panic}
        return subprocess.run(
            [*command, "--out", str(out), "--max-urls", "500"],
            env=env, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    assert build(3_000, "").returncode == 0
    live = {path: path.read_bytes() for path in out.glob("*.xml*")}
    failed = build(2_900, point)
    assert failed.returncode == 3
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert failed.stderr.startswith("urlset: error: ")
    assert f"injected at {point}" in failed.stderr
    assert failed.stderr.rstrip().endswith("[internal.panic]")
    assert {path: path.read_bytes() for path in out.glob("*.xml*")} == live
    assert build(2_900, "").returncode == 0


def test_a_look(package: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(f"url\n{SITE}/p/1\n")
    env = {**os.environ, "PYTHONPATH": str(package), "URLSET_PANIC": "look"}
    failed = subprocess.run(
        [sys.executable, "-m", "urlset", "init", str(tmp_path / "rows.csv")],
        env=env, capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert failed.returncode == 3 and "[internal.panic]" in failed.stderr
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert not (tmp_path / "urlset.toml").exists()
