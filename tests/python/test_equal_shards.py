"""Repeated blocks of rows make equal shards: under ``stable`` one file, written once."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from pathlib import Path

import pytest
import urlset as package
from conftest import SITE, read_index, read_shard, urlset

pytestmark = pytest.mark.long

BLOCK_ROWS = 37_000
TIMES = 16


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("repeated") / "c.csv"
    pick = random.Random(3)
    block = "".join(
        f"{SITE}/{pick.getrandbits(1600):x}/{number:07d}\n" for number in range(BLOCK_ROWS)
    )
    with path.open("w") as file:
        file.write("url\n")
        for _ in range(TIMES):
            file.write(block)
    return path


def check(out: Path) -> None:
    """Every file can be decompressed, and has the size in the manifest."""
    manifest = json.loads((out / ".urlset/manifest.json").read_text())
    assert manifest["urls"] == BLOCK_ROWS * TIMES
    assert len(manifest["shards"]) < TIMES  # equal shards share a file
    for entry in manifest["shards"]:
        data = (out / entry["path"]).read_bytes()
        assert len(data) == entry["compressed_bytes"], entry["path"]
        text = gzip.decompress(data)
        assert (len(text), text.count(b"<loc>")) == (entry["bytes"], entry["urls"])


@pytest.mark.parametrize("level", ["default", "best"])
def test_a_block_of_rows_that_repeats(repeated: Path, tmp_path: Path, level: str) -> None:
    for run in range(12 if level == "default" else 2):
        out = tmp_path / str(run)
        package.build(repeated, site=SITE, out=out, layout="stable", threads=16, level=level)
        check(out)
        shutil.rmtree(out)


@pytest.mark.slow
def test_a_block_of_rows_that_repeats_many_times(repeated: Path, tmp_path: Path) -> None:
    for run in range(100):
        out = tmp_path / str(run)
        package.build(repeated, site=SITE, out=out, layout="stable", threads=16)
        check(out)
        shutil.rmtree(out)


def test_the_next_build_leaves_shared_shards_alone(repeated: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = {"layout": "stable", "threads": 16}
    package.build(repeated, site=SITE, out=out, **options)
    first = {path.name: path.stat().st_mtime_ns for path in out.glob("*.gz")}
    report = package.build(repeated, site=SITE, out=out, **options)
    assert not any(shard.changed for shard in report.shards)
    assert {path.name: path.stat().st_mtime_ns for path in out.glob("*.gz")} == first
    check(out)


@pytest.mark.parametrize("sets", [1, 2])
def test_verify_staged_accepts_kept_duplicates(tmp_path: Path, sets: int) -> None:
    """A shard that is listed twice by the rows is one file, and counts once when it is read."""
    rows = "".join(f"{SITE}/{number}\n" for number in range(20))
    for number in range(sets):
        (tmp_path / f"{number}.csv").write_text("url\n" + rows * 7)
    tables = "".join(f'[[set]]\nname = "s{n}"\ninput = "{n}.csv"\n' for n in range(sets))
    (tmp_path / "urlset.toml").write_text(
        f'site = "{SITE}"\nout = "out"\nlayout = "stable"\nmax-urls = 20\n{tables}'
    )
    ended = urlset("build", "--verify-staged", "--json", "-", cwd=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    report = json.loads(ended.out)
    assert report["urls"] == 140 * sets
    assert len({shard["path"] for shard in report["shards"]}) < len(report["shards"])
    # and again, when nothing is staged
    assert urlset("build", "--verify-staged", cwd=tmp_path).status == 0
    index = report["indexes"][0]["path"]
    listed = [
        entry["loc"].removeprefix(f"{SITE}/") for entry in read_index(tmp_path / "out" / index)
    ]
    assert len(listed) == len(set(listed))
    locs = {entry["loc"] for name in listed for entry in read_shard(tmp_path / "out" / name)}
    assert locs == {f"{SITE}/{number}" for number in range(20)}


def test_verify_staged_finds_a_file_that_lacks_rows(tmp_path: Path) -> None:
    """The count is still checked: a live shard with one row less, of the same size and time."""
    out = tmp_path / "out"
    source = tmp_path / "c.csv"
    source.write_text("url\n" + "".join(f"{SITE}/{number}\n" for number in range(20)))
    args = ("build", source, "--site", SITE, "--out", out, "--no-gzip", "--verify-staged")
    assert urlset(*args).status == 0
    shard = out / "sitemap-00001.xml"
    stat, text = shard.stat(), shard.read_text()
    line = f"<url><loc>{SITE}/19</loc></url>\n"
    assert line in text
    shard.write_text(text.replace(line, " " * (len(line) - 1) + "\n"))
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    ended = urlset(*args)
    assert ended.status == 3 and "[verify.staged]" in ended.err, ended
