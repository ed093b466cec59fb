"""Both limits of a shard and of an index, at their edges."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import urlset as package
from conftest import SITE, read_bytes, read_index, read_set, urlset
from urlset import ConfigError
from urlset.build.index import Sitemap, render_indexes

HEADER = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
)
FRAME = len(HEADER) + len("</urlset>\n")
AROUND = len("<url><loc></loc></url>\n")


def urls_of(total: int, count: int) -> list[str]:
    """``count`` URLs whose shard has ``total`` bytes."""
    room = total - FRAME - count * AROUND
    each, more = divmod(room, count)
    return [f"{SITE}/{i:05}/".ljust(each + (i < more), "x") for i in range(count)]


def build(urls: list[str], out: Path, **options: object) -> package.Report:
    path = out.parent / "c.csv"
    path.write_text("url\n" + "".join(f"{url}\n" for url in urls))
    return package.build(path, site=SITE, out=out, **options)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_50_mib_at_the_50_000th_entry(out: Path, more: int) -> None:
    urls = urls_of(52_428_800 + more, 50_000)
    report = build(urls, out)
    sizes = [len(read_bytes(out / shard.path)) for shard in report.shards]
    assert sizes == [shard.bytes for shard in report.shards]
    if more < 1:
        assert sizes == [52_428_800 + more]
    else:
        assert [shard.urls for shard in report.shards] == [49_999, 1]
        assert max(sizes) < 52_428_800
    assert [entry["loc"] for entry in read_set(out)] == urls


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("gzip", [True, False])
def test_small_limits_of_bytes(out: Path, more: int, gzip: bool, schema) -> None:
    urls = urls_of(5_000 + more, 30) + urls_of(5_000 + more, 30)
    report = build(urls, out, max_bytes=5_000, gzip=gzip)
    assert [shard.urls for shard in report.shards] == ([30, 30] if more < 1 else [29, 29, 2])
    for shard in report.shards:
        assert len(read_bytes(out / shard.path)) == shard.bytes <= 5_000
        schema(out / shard.path)


def test_text_sitemaps_have_no_frame(out: Path) -> None:
    urls = [f"{SITE}/{i}".ljust(99, "x") for i in range(83)]
    report = build(urls, out, max_bytes=4_100, output="text")
    assert [(shard.path, shard.urls, shard.bytes) for shard in report.shards] == [
        ("sitemap-00001.txt.gz", 41, 4_100), ("sitemap-00002.txt.gz", 41, 4_100),
        ("sitemap-00003.txt.gz", 1, 100),
    ]  # fmt: skip
    text = b"".join(read_bytes(out / shard.path) for shard in report.shards)
    assert text.decode().splitlines() == urls


def test_a_row_that_fits_no_shard(out: Path) -> None:
    long = f"{SITE}/?" + "&" * 1_500
    report = build([f"{SITE}/1", long, f"{SITE}/2"], out, max_bytes=4_096, max_rejects=1)
    assert report.rejects["by_code"] == {"url.too_large": 1}
    assert report.warnings == []
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        assert [row["row"] for row in csv.DictReader(file)] == ["2"]


@pytest.mark.parametrize(
    "options",
    [
        {"max_urls": 0}, {"max_urls": 50_001}, {"max_bytes": 4_095}, {"max_bytes": 52_428_801},
        {"max_sitemaps": 0}, {"max_sitemaps": 50_001}, {"max_cell": 0}, {"threads": 0},
        {"threads": 10_000}, {"max_urls": -1}, {"max_urls": 10**30}, {"max_cell": 1 << 40},
    ],
    ids=str,
)  # fmt: skip
def test_limits_that_are_refused(out: Path, options: dict[str, int]) -> None:
    with pytest.raises(ConfigError) as info:
        build([f"{SITE}/1"], out, **options)
    assert "\n" not in str(info.value)
    assert not list(out.glob("*.xml*"))


def test_several_indexes(out: Path, schema) -> None:
    urls = [f"{SITE}/{i}" for i in range(95)]
    report = build(urls, out, max_urls=10, max_sitemaps=4)
    assert [(index.path, index.sitemaps) for index in report.indexes] == [
        ("sitemap.xml", 4), ("sitemap-index-2.xml", 4), ("sitemap-index-3.xml", 2),
    ]  # fmt: skip
    found = []
    for index in report.indexes:
        assert (out / index.path).stat().st_size == index.bytes
        schema(out / index.path)
        found += read_set(out, index.path)
    assert [entry["loc"] for entry in found] == urls
    # a smaller build leaves no index that lists removed files
    build(urls[:80], out, max_urls=10, max_sitemaps=50)
    assert [path.name for path in out.glob("sitemap*.xml")] == ["sitemap.xml"]
    assert len(list(out.glob("*.xml.gz"))) == 8


def test_the_bytes_of_an_index() -> None:
    sitemaps = [Sitemap(f"{SITE}/s-{i:05}.xml.gz?a&b", "2024-01-01") for i in range(100)]
    (whole,) = render_indexes("s", sitemaps, max_sitemaps=50_000)
    size = len(whole[1].encode())
    for more, count in ((-1, 2), (0, 1), (1, 1)):
        parts = list(render_indexes("s", sitemaps, max_sitemaps=50_000, max_bytes=size + more))
        assert len(parts) == count
        for index, text in parts:
            assert len(text.encode()) == index.bytes <= size + more
        assert sum(index.sitemaps for index, _ in parts) == 100


@pytest.mark.slow
def test_more_than_50_000_shards_give_two_indexes(tmp_path: Path, out: Path, schema) -> None:
    catalog = tmp_path / "c.csv"
    catalog.write_text("url\n" + "".join(f"{SITE}/{i}\n" for i in range(50_001)))
    ended = urlset("build", catalog, "--site", SITE, "--out", out, "--max-urls", 1)
    assert (ended.status, ended.err) == (0, "")
    first, second = (read_index(out / name) for name in ("sitemap.xml", "sitemap-index-2.xml"))
    assert (len(first), len(second)) == (50_000, 1)
    for name in ("sitemap.xml", "sitemap-index-2.xml"):
        schema(out / name)
    assert [entry["loc"] for entry in read_set(out)] == [f"{SITE}/{i}" for i in range(50_000)]
    assert read_set(out, "sitemap-index-2.xml") == [{"loc": f"{SITE}/50000"}]
