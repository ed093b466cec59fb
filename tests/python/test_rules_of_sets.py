"""Sets of different names in one folder: each file is checked with the options of its own set."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import urlset as package
from conftest import SITE, urlset

ELSEWHERE = f"{SITE}/elsewhere.xml"


def build(tmp_path: Path, name: str, locs: list[str], *options: str) -> None:
    source = tmp_path / f"{name}.csv"
    source.write_text("loc\n" + "".join(f"{loc}\n" for loc in locs))
    ended = urlset(
        "build", source, "--site", SITE, "--out", tmp_path / "out", "--name", name, *options
    )
    assert ended.status == 0, ended.err


def edit(path: Path, old: str, new: str) -> None:
    text = gzip.decompress(path.read_bytes()).decode()
    assert old in text
    path.write_bytes(gzip.compress(text.replace(old, new).encode()))


@pytest.mark.parametrize("free", ["a", "z"])
def test_each_set_has_its_own_rules(free: str, tmp_path: Path) -> None:
    """For any order of the names in the folder."""
    out = tmp_path / "out"
    foreign = [f"{SITE}/1", f"{SITE}/1", "https://other.example/2"]
    build(tmp_path, free, foreign, "--hosts", "any", "--duplicates", "keep")
    build(tmp_path, "m", [f"{SITE}/3", f"{SITE}/4", f"{SITE}/5"],
          "--duplicates", "drop", "--add-sitemap", ELSEWHERE)  # fmt: skip
    report = package.verify(out)
    assert report.ok
    assert report.counts == {"loc.kept_duplicate": 1}

    edit(out / "m-00001.xml.gz", f"{SITE}/4", f"{SITE}/3")
    edit(out / "m-00001.xml.gz", f"{SITE}/5", "https://other.example/5")
    report = package.verify(out)
    wrong = {(problem.code, problem.file) for problem in report.problems}
    assert ("loc.other_host", "m-00001.xml.gz") in wrong
    assert ("loc.duplicate", "m-00001.xml.gz") in wrong
    assert ("loc.kept_duplicate", f"{free}-00001.xml.gz") in wrong
    assert {file for _, file in wrong} == {"m-00001.xml.gz", f"{free}-00001.xml.gz"}
    # the options of the caller apply to all
    assert "loc.other_host" not in package.verify(out, hosts="any").counts


def test_an_added_sitemap_is_that_of_one_set(tmp_path: Path) -> None:
    build(tmp_path, "a", [f"{SITE}/1"], "--add-sitemap", ELSEWHERE)
    build(tmp_path, "b", [f"{SITE}/2"])
    index = tmp_path / "out" / "b.xml"
    entry = f"<sitemap><loc>{ELSEWHERE}</loc></sitemap></sitemapindex>"
    index.write_text(index.read_text().replace("</sitemapindex>", entry))
    report = package.verify(tmp_path / "out")
    assert [(p.code, p.file) for p in report.problems] == [("index.missing_file", "b.xml")]


def test_a_file_of_no_set_is_judged_strictly(tmp_path: Path) -> None:
    build(tmp_path, "a", [f"{SITE}/1", "https://other.example/2"], "--hosts", "any")
    (tmp_path / "out" / "sitemap-mine.txt").write_text(f"{SITE}/9\nhttps://other.example/9\n")
    report = package.verify(tmp_path / "out")
    wrong = {p.code for p in report.problems if p.file == "sitemap-mine.txt"}
    assert wrong & {"loc.other_host", "loc.cross_host"}
