"""The script that runs the unsafe code under the address sanitizer; it takes minutes."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow


def test_the_address_sanitizer_finds_nothing() -> None:
    if shutil.which("rustup") is None:
        pytest.skip("the nightly toolchain is not installed")
    if subprocess.run(
        ["rustup", "which", "--toolchain", "nightly", "rustc"], check=False
    ).returncode:
        pytest.skip("the nightly toolchain is not installed")
    done = subprocess.run(
        [ROOT / "scripts" / "sanitize"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [int(count) for count in re.findall(r"test result: ok\. (\d+) passed", done.stdout)]
    assert len(ran) == 2 and min(ran) > 5, done.stdout
