"""Completion in real shells: installed as docs/install.md says, then Tab is pressed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pexpect
import pytest
from conftest import ROOT

pytestmark = pytest.mark.long

URLSET = Path(sysconfig.get_path("scripts"), "urlset")
#: what a shell writes when its line editor is ready: it turns bracketed paste on
PROMPT = "\x1b[?2004h"
#: how each shell starts: bash reads the file of the guide as bash-completion does
START = {
    "bash": (["--norc", "--noprofile"], "source ~/.local/share/bash-completion/completions/urlset"),
    "zsh": (["-d"], "true"),  # reads ~/.zshrc
    "fish": ([], "true"),
}


def guide() -> list[str]:
    """The blocks of the guide on completion."""
    text = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    section = text.partition("\n## Completion\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with the completion scripts; ``urlset`` prints its arguments."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "urlset").write_text(
        "#!/bin/sh\n"
        f'[ -n "$_URLSET_COMPLETE" ] && exec {URLSET} "$@"\n'
        "printf 'called with <%s>\\n' \"$*\"\n"
    )
    (tools / "urlset").chmod(0o755)
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    env = {**kept, "HOME": str(tmp_path), "PATH": f"{tools}:{os.environ['PATH']}", "TERM": "xterm"}
    install, zshrc = guide()
    subprocess.run(["bash", "-euc", install], env=env, check=True, timeout=60)
    (tmp_path / ".zshrc").write_text(zshrc.replace("&& compinit", "&& compinit -u"))
    return env


@pytest.mark.parametrize("shell", START)
def test_tab_completes_commands_options_and_files(shell: str, home: dict[str, str]) -> None:
    path = shutil.which(shell)
    if path is None:
        why = f"{shell} is not installed: scripts/test-tools"
        (pytest.fail if os.environ.get("URLSET_REQUIRE_TOOLS") else pytest.skip)(why)
    arguments, ready = START[shell]
    Path(home["HOME"], "catalog.csv").touch()
    child = pexpect.spawn(
        path, [*arguments, "-i"], env=home, cwd=home["HOME"], encoding="utf-8", timeout=120
    )
    try:
        child.sendline(f"{ready}; echo 'rea''dy'")
        child.expect("ready")
        for typed, called in (
            ("urlset bui\t", "build"),
            ("urlset build --lastm\t", "build --lastmod"),  # what all of them begin with
            ("urlset build --layout st\t", "build --layout stable"),
            ("urlset verify cat\t", "verify catalog.csv"),
        ):
            child.expect_exact(PROMPT)
            child.send(f"{typed}\r")
            child.expect_exact(f"called with <{called}>")
    finally:
        child.close(force=True)
