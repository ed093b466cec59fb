"""Presets of engines, and text sitemaps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
import urlset as us
from conftest import SITE, files, read_index, read_set, urlset

TABLE = pa.table({"loc": [f"/{n}-{'x' * 900}" for n in range(30_000)]})


def codes(report: us.Report) -> set[str]:
    return {warning.code for warning in report.warnings}


@pytest.mark.parametrize("preset", ["baidu", "2006"])
def test_ten_megabytes(out: Path, preset: str) -> None:
    report = us.build(TABLE, site=SITE, out=out, for_=preset)
    sizes = [len(data) for name, data in files(out).items() if "-" in name]
    assert [shard.bytes for shard in report.shards] == sizes
    assert all(shard.bytes <= 10_485_760 for shard in report.shards) and len(report.shards) == 3
    assert (out / "sitemap.xml").exists() == (preset == "2006")


def test_baidu_has_no_index(tmp_path: Path, out: Path) -> None:
    assert us.build(TABLE, site=SITE, out=out).indexes
    (tmp_path / "c.csv").write_text("loc\n" + "".join(f"/{n}\n" for n in range(30_000)))
    args = ("--site", SITE, "--out", out, "--for", "baidu", "--json", tmp_path / "j")
    ended = urlset("build", tmp_path / "c.csv", *args)
    assert (ended.status, ended.err) == (0, "")
    report = json.loads((tmp_path / "j").read_text())
    assert (report["indexes"], report["url"]) == ([], f"{SITE}/sitemap-00001.xml.gz")
    assert f"live: {SITE}/sitemap-00001.xml.gz" in ended.out
    # the index of the previous build would list removed files
    assert sorted(path.name for path in out.iterdir()) == [".urlset", "sitemap-00001.xml.gz"]
    manifest = json.loads((out / ".urlset/manifest.json").read_text())
    assert (manifest["indexes"], len(manifest["shards"])) == ([], 1)
    ended = urlset("build", tmp_path / "c.csv", *args, "--add-sitemap", f"{SITE}/other.xml")
    assert (ended.status, "accepts no index" in ended.err) == (2, True)


def test_yandex_takes_shorter_urls(out: Path) -> None:
    lengths = [1_023, 1_024, 1_025]
    table = pa.table({"loc": ["/" + "x" * (length - len(SITE) - 1) for length in lengths]})
    report = us.build(table, site=SITE, out=out, for_="yandex", max_rejects="50%")
    assert [len(entry["loc"]) for entry in read_set(out)] == lengths[:2]
    assert report.rejects["by_code"] == {"loc.too_long": 1}


def test_the_index_of_2006(out: Path) -> None:
    table = pa.table({"loc": [f"/{n}" for n in range(1_001)]})
    us.build(table, site=SITE, out=out, for_="2006", max_urls=1)
    assert len(read_index(out / "sitemap.xml")) == 1_000
    assert len(read_index(out / "sitemap-index-2.xml")) == 1


@pytest.mark.parametrize(
    ("preset", "noted"),
    [(None, True), ("google", True), ("bing", True), ("yandex", False), ("baidu", False)],
)
def test_who_ignores_priority(out: Path, preset: str | None, noted: bool) -> None:
    table = pa.table({"loc": ["/a"], "priority": [0.5]})
    report = us.build(table, site=SITE, out=out, for_=preset)
    assert ("priority.ignored" in codes(report)) == noted
    assert not codes(us.build(table.select(["loc"]), site=SITE, out=out)) & {"priority.ignored"}


@pytest.mark.parametrize(
    ("lastmod", "noted"), [(None, True), ("2026-01-02", True), ("2026-01-02T03:04Z", False)]
)
def test_bing_wants_times(out: Path, lastmod: str | None, noted: bool) -> None:
    report = us.build(
        pa.table({"loc": ["/a"], "lastmod": [lastmod]}), site=SITE, out=out, for_="bing"
    )
    assert ("bing.lastmod" in codes(report)) == noted


def test_the_name_in_toml_and_smaller_limits(tmp_path: Path, out: Path) -> None:
    (tmp_path / "c.csv").write_text("loc\n" + "".join(f"/{n}\n" for n in range(300)))
    config = tmp_path / "urlset.toml"
    config.write_text(f'input="c.csv"\nsite="{SITE}"\nout="out"\nfor="baidu"\nmax_bytes=4096\n')
    assert urlset("build", "--config", config).status == 0
    sizes = [len(data) for data in files(out).values()]
    assert len(sizes) > 3 and all(3_900 < size <= 4_096 for size in sizes[:-1])
    ended = urlset("build", "--config", config, "--for", "altavista")
    assert (ended.status, "altavista" in ended.err) == (2, True)


@pytest.mark.parametrize("packed", [True, False])
def test_text_sitemaps(out: Path, packed: bool) -> None:
    paths = [f"/{n}-ä b&c'<>" for n in range(250)]
    table = pa.table({"loc": paths, "lastmod": ["2026-01-02"] * 250})
    us.build(table, site=SITE, out=out, output="text", gzip=packed, max_urls=100)
    ending = ".txt.gz" if packed else ".txt"
    names = [f"sitemap-{n:05}{ending}" for n in (1, 2, 3)]
    assert [entry["loc"] for entry in read_index(out / "sitemap.xml")] == [
        f"{SITE}/{name}" for name in names
    ]
    lines: list[str] = []
    for name in names:
        data = (out / name).read_bytes()
        text = (gzip.decompress(data) if packed else data).decode("utf-8")
        assert text.endswith("\n") and "\r" not in text
        lines += text.splitlines()
    assert lines == [f"{SITE}/{n}-%C3%A4%20b&c'%3C%3E" for n in range(250)]


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_bytes_of_text_are_exact(out: Path, over: int) -> None:
    line = f"{SITE}/{'x' * 100}\n"
    rest = 8_192 - 50 * len(line) - len(f"{SITE}/\n") + over
    table = pa.table({"loc": [line.strip()] * 50 + [f"/{'y' * rest}"]})
    report = us.build(table, site=SITE, out=out, output="text", gzip=False, max_bytes=8_192)
    assert [(out / shard.path).stat().st_size for shard in report.shards] == (
        [8_192 + over] if over <= 0 else [50 * len(line), 8_193 - 50 * len(line)]
    )
