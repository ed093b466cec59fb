"""The documentation site: it builds, all links lead somewhere, and messages lead to its codes."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT
from urlset.cli import DOCUMENTATION


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """scripts/site as a module."""
    loader = importlib.machinery.SourceFileLoader("site_script", str(ROOT / "scripts/site"))
    spec = importlib.util.spec_from_loader("site_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(site: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical", reason="builds the documentation")
    out = tmp_path_factory.mktemp("site") / "site"
    assert site.build(out) == 0
    return out


def config() -> str:
    return (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation() -> None:
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    missing = [page for page in pages if f": {page}\n" not in config()]
    assert not missing, "add them to nav in mkdocs.yml"


def test_the_address_in_messages_is_that_of_the_site() -> None:
    assert f"\nsite_url: {DOCUMENTATION}\n" in config()


def test_links_between_files_lead_to_files() -> None:
    written = {"reference", "guarantees.md", "contributing.md", "changelog.md"}  # by scripts/site
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)\s#]+)", path.read_text(encoding="utf-8")):
            if not link.startswith(("http:", "https:", "mailto:")):
                target = (path.parent / link).resolve()
                known = target.is_relative_to(ROOT / "docs") and written & {*target.parts}
                assert target.exists() or known, f"{path.name}: {link}"


@pytest.mark.long
def test_the_site_has_all_pages_and_codes(site: Any, built: Path) -> None:
    codes = (built / "reference/codes/index.html").read_text(encoding="utf-8")
    anchors = site.Page(codes).anchors
    assert {entry.code for entry in site.reference.codes.entries()} <= anchors
    for page in ("tutorial", "guarantees", "guides/migrate", "reference/python", "changelog"):
        assert (built / page / "index.html").exists()


@pytest.mark.long
def test_a_broken_link_is_found(site: Any, built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    shutil.copytree(built, copy)
    page = copy / "index.html"
    text = page.read_text(encoding="utf-8")
    page.write_text(
        text + '<a href="gone/">x</a><a href="tutorial/#gone">x</a><a href="#gone">x</a>'
    )
    assert site.broken_links(copy) == [
        "index.html: gone/",
        "index.html: tutorial/#gone",
        "index.html: #gone",
    ]


def error_of(*args: str, stderr: int) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "urlset", *args], stderr=stderr, timeout=60)


def test_an_error_on_a_terminal_names_the_page_of_its_code() -> None:
    ours, theirs = pty.openpty()
    try:
        assert error_of("verify", "/nowhere", stderr=theirs).returncode == 3
        os.close(theirs)
        text = os.read(ours, 4096).decode()
    finally:
        os.close(ours)
    lines = text.replace("\r", "").splitlines()
    assert lines[0] == "urlset: error: /nowhere: no such file or folder [target.missing]"
    assert f"see: {DOCUMENTATION}reference/codes/#target.missing" in lines[1]
    assert len(lines) == 2


def test_an_error_elsewhere_is_one_line() -> None:
    done = error_of("verify", "/nowhere", stderr=subprocess.PIPE)
    assert done.stderr.decode().splitlines() == [
        "urlset: error: /nowhere: no such file or folder [target.missing]"
    ]
