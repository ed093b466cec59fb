"""The script of random attacks: it ends, repeats a case, and reports what fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from conftest import ROOT

SCRIPT = ROOT / "scripts" / "torture"


def torture(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *args], capture_output=True, text=True, timeout=300,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_a_few_cases_of_what_must_hold() -> None:
    done = torture("--cases", "6", "--kinds", "model,sets", "--seed", "5", "--jobs", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "go on with: scripts/torture --seed 5 --start 6" in done.stdout
    table = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()[-3:]}
    assert table == {"model": ["5", "0", "0"], "sets": ["1", "0", "0"], "all": ["6", "0", "0"]}


def test_what_fails_is_reported_and_can_be_repeated(tmp_path: Path) -> None:
    """Against a urlset that ends with a traceback."""
    package = tmp_path / "urlset"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("raise SystemExit(1 / 0)")
    for args in (("--cases", "2", "--kinds", "documents"), ("--case", "documents:1-1")):
        done = torture(*args, PYTHONPATH=str(tmp_path))
        assert done.returncode == 1
        assert "FAILED documents:1-1: urlset " in done.stdout and "ZeroDivision" in done.stdout
        assert "again: scripts/torture --case documents:1-1" in done.stdout


def test_wrong_usage() -> None:
    done = torture("--kinds", "nothing")
    assert done.returncode == 2 and "no such kind: nothing" in done.stderr
