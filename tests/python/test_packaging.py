"""What is around the package: shell completion, workflows, the image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from urlset.cli import DOCUMENTATION

ROOT = Path(__file__).resolve().parents[2]
URLSET = Path(sysconfig.get_path("scripts"), "urlset")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def completion(shell: str) -> str:
    environment = {**os.environ, "_URLSET_COMPLETE": f"{shell}_source"}
    return subprocess.run(
        [URLSET], env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_written(shell: str) -> None:
    script = completion(shell)
    assert f"_URLSET_COMPLETE={shell}_complete" in script
    if shutil.which(shell):  # reads it without running it
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_bash_completes_commands_options_values_and_files(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(completion("bash"), encoding="utf-8")
    (tmp_path / "catalog.csv").touch()

    def complete(*words: str) -> list[str]:
        # what bash does when Tab is pressed after the last word
        code = f"""
            source {script}
            COMP_WORDS=({" ".join(f"'{word}'" for word in words)}) COMP_CWORD={len(words) - 1}
            compopt() {{ printf 'with %s\\n' "$*"; }}
            _urlset_completion '{URLSET}'
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(
            ["bash", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return done.stdout.split("\n")[:-1]

    assert {"build", "verify", "announce"} <= set(complete("urlset", ""))
    assert complete("urlset", "ve") == ["verify"]
    assert "--duplicates" in complete("urlset", "build", "--dup")
    assert complete("urlset", "build", "--layout", "") == ["packed", "stable"]
    assert any("default" in line or "file" in line for line in complete("urlset", "build", "cat"))


def test_workflows_call_scripts_and_pin_what_they_use() -> None:
    assert len(WORKFLOWS) == 5
    scripts = set()
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        for action in re.findall(r"uses: (\S+)", text):
            assert action.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert "\npermissions: {}\n" in text, path  # each job names what it needs
        for command in re.findall(
            r"^ +(?:- )?run: (?!\|)(.+)$|^ +run: \|\n((?:^ {10}.+\n)+)", text, re.M
        ):
            line = " ".join(command).replace("\n", " ")
            called = re.search(r"(?:^|\s)(?:scripts|\.ci)/[a-z-]+|-m pytest -m slow$", line.strip())
            assert called, f"{path.name}: {line}: make it a script"
        scripts |= set(re.findall(r"(?:scripts|\.ci)/[a-z-]+", text))
    assert len(scripts) >= 8
    for script in scripts:
        assert os.access(ROOT / script, os.X_OK) or script in ("scripts/check", ".ci/run"), script


@pytest.mark.parametrize(
    ("tag", "fault"),
    [
        ("v0.1", "is not vX.Y.Z"),
        ("v9.8.7", "Cargo.toml has version"),
        ("v9.8.7", "rust/python/Cargo.toml has version"),
        ("v9.8.7", "CHANGELOG.md has no section '## [9.8.7] - YYYY-MM-DD'"),
    ],
)
def test_a_tag_without_its_version_is_not_released(tag: str, fault: str) -> None:
    check = [sys.executable, ROOT / "scripts/check-release", tag]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 1 and fault in done.stderr


def test_a_tag_with_version_and_changelog_is_released(tmp_path: Path) -> None:
    for name in ("Cargo.toml", "rust/python/Cargo.toml", "CHANGELOG.md", "scripts/check-release"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        text = re.sub(r'^version = ".*"$', 'version = "2.3.4"', text, flags=re.MULTILINE)
        (tmp_path / name).write_text(text.replace("[Unreleased]", "[2.3.4] - 2026-11-22"))
    subprocess.run([sys.executable, tmp_path / "scripts/check-release", "v2.3.4"], check=True)


def test_the_guide_for_contributors_names_every_script() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"scripts/([a-z.-]+[a-z])", text))
    scripts = {path.name for path in (ROOT / "scripts").iterdir() if os.access(path, os.X_OK)}
    scripts = {name for name in scripts if (ROOT / "scripts" / name).is_file()}
    assert named <= {path.name for path in (ROOT / "scripts").iterdir()}
    internal = {"smoke", "pypi-readme"}  # of scripts/wheels
    assert scripts | {"check"} <= named | internal
    for path in WORKFLOWS:
        assert f"`{path.name}`" in text


def test_the_links_of_the_readme_work_on_pypi() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = project["urls"]
    assert urls.keys() == {"Documentation", "Source", "Changelog", "Issues"}
    assert urls["Documentation"] == DOCUMENTATION
    assert urls["Changelog"] == f"{DOCUMENTATION}changelog/"
    assert urls["Issues"] == f"{urls['Source']}/issues"
    templates = (ROOT / ".github/ISSUE_TEMPLATE/config.yml").read_text(encoding="utf-8")
    linked = re.findall(r"url: (\S+)", templates)
    assert linked == [f"{urls['Source']}/security/advisories/new", DOCUMENTATION]
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/pypi-readme", ROOT / project["readme"]],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    links = re.findall(r"\]\(([^)]+)\)", done.stdout)
    pages = files = 0
    for link in links:
        if link.startswith(DOCUMENTATION):
            path = link.removeprefix(DOCUMENTATION).partition("#")[0].rstrip("/")
            assert (ROOT / f"docs/{path}.md").is_file(), link
            pages += 1
        elif link.startswith(urls["Source"]):
            kind, branch, path = link.removeprefix(urls["Source"] + "/").split("/", 2)
            assert kind in ("blob", "raw") and branch == "main" and (ROOT / path).exists(), link
            files += 1
        else:
            assert link.startswith("https://"), link
    assert pages > 20 and files > 3
    # the same text otherwise
    source = (ROOT / project["readme"]).read_text(encoding="utf-8")
    assert len(links) == len(re.findall(r"\]\(([^)]+)\)", source))
    plain = re.compile(r"\]\([^)]+\)")
    assert plain.sub("]()", done.stdout) == plain.sub("]()", source)


def test_the_image_gets_what_its_build_needs() -> None:
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ignored[0] == "*"
    assert {line.removeprefix("!") for line in ignored[1:]} == names
    assert all((ROOT / name).exists() for name in names)
