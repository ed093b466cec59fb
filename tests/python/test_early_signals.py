"""SIGINT and SIGTERM at any time: the status reports it, and there is never a traceback."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
#: as the console script does it; before that is the start of Python itself
COMMAND = """
import os
from urlset.__main__ import handle_early_signals, main
handle_early_signals()
os.write(1, b".")
main()
"""
SEED = 20261121


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("early") / "rows.csv"
    with path.open("w") as file:
        file.write("url\n")
        file.writelines(f"https://shop.example/p/{number}\n" for number in range(400_000))
    return path


def commands(catalog: Path, out: Path) -> list[list[str]]:
    return [
        ["build", str(catalog), "--site", "https://shop.example", "--out", str(out)],
        ["verify", str(out)],
        ["read", str(out), "-o", str(out.parent / "rows.parquet")],
        ["--help"],
    ]


def ended(args: list[str], number: signal.Signals, after: float) -> tuple[int, str]:
    """The status, and all that was printed, of a command that receives a signal after a delay."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 1) == b"."
    time.sleep(after)
    process.send_signal(number)
    try:
        text, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, text.decode()


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("number", STATUS)
def test_random_times(number: signal.Signals, which: int, catalog: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    usual = subprocess.run(
        [sys.executable, "-m", "urlset", *commands(catalog, out)[0]], capture_output=True
    )
    assert usual.returncode == 0
    args = commands(catalog, out)[which]
    rng = random.Random(f"{SEED} {number} {which}")
    times = [0.0, 0.002, 0.005, *(rng.uniform(0, 0.3) for _ in range(7))]
    seen = set()
    for after in times:
        status, text = ended(args, number, after)
        assert status in (0, STATUS[number]), (after, status, text)
        assert "Traceback" not in text, (after, text)
        assert "Exception" not in text, (after, text)
        if status:
            assert text.count("\n") <= 1 or which == 3, (after, text)
        seen.add(status)
    assert STATUS[number] in seen
    assert subprocess.run([sys.executable, "-m", "urlset", "verify", str(out)]).returncode == 0


def test_a_signal_that_is_ignored_stays_so(catalog: Path, tmp_path: Path) -> None:
    code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{COMMAND}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 1) == b"."
    process.send_signal(signal.SIGINT)
    text, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")
    assert b"Usage" in text


def test_the_command_and_the_module_are_the_same() -> None:
    runs = [[sys.executable, "-m", "urlset"], [str(Path(sys.executable).with_name("urlset"))]]
    texts = [subprocess.run([*run, "--version"], capture_output=True, text=True) for run in runs]
    assert [text.returncode for text in texts] == [0, 0]
    assert texts[0].stdout == texts[1].stdout
    script = Path(sys.executable).with_name("urlset").read_text()
    assert "urlset.__main__" in script
