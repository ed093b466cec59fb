"""Each part of the protocol by the command line: from a file to the entries, read by lxml."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SITE, urlset
from extended import SM, read_urls
from lxml import etree

Schema = Callable[[Path], None]


@pytest.fixture(params=["csv", "parquet"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    rows = [
        {
            "url": f"https://{'de' if n % 3 else 'fr'}.shop.example/{n}?a&b",
            "de": f"https://de.shop.example/{n}?a&b",
            "fr": f"https://fr.shop.example/{n}?a&b",
            "category": ["Shoes & more", "shoes", "../x"][n % 3],
            "headline": f"Nº {n} <b>",
            "published": "2026-01-02T03:04:05Z",
            "file": f"/v/{n}.mp4",
        }
        for n in range(60)
    ]
    path = tmp_path / f"c.{request.param}"
    if request.param == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    return path


def build(catalog: Path, out: Path, *args: str, schema: Schema | None = None) -> dict:
    site = ("--site", "https://de.shop.example", "--hosts", "any")
    ended = urlset("build", catalog, *site, "--out", out, "--json", "-", *args)
    assert (ended.status, ended.err) == (0, "")
    report = json.loads(ended.out)
    assert report["rows"] + report["expanded"] == report["urls"]
    if schema is not None:
        for path in [*out.rglob("*.xml"), *out.rglob("*.xml.gz")]:
            schema(path)
    return report


def numbers(path: Path) -> list[int]:
    return [int(url["loc"].rpartition("/")[2].partition("?")[0]) for url in read_urls(path)]


def listed(index: Path) -> list[str]:
    root = etree.parse(index).getroot()
    assert root.tag == f"{SM}sitemapindex"
    return [loc.text for loc in root.iter(f"{SM}loc")]


def test_split_by_a_column(catalog: Path, out: Path, schema: Schema) -> None:
    report = build(catalog, out, "--split-by", "category", "--max-urls", "15", schema=schema)
    names = [shard["path"] for shard in report["shards"]]
    home = "https://de.shop.example/"
    assert listed(out / "sitemap.xml") == [home + name for name in names]
    assert {path.name for path in out.iterdir()} == {".urlset", "sitemap.xml", *names}
    wanted = [list(range(n, 60, 3)) for n in range(3)]
    assert [numbers(out / name) for name in names] == [
        part for own in wanted for part in (own[:15], own[15:])
    ]


def test_split_by_host(catalog: Path, out: Path, schema: Schema) -> None:
    build(catalog, out, "--split-by", "@host", schema=schema)
    for host, wanted in (
        ("fr.shop.example", list(range(0, 60, 3))),
        ("de.shop.example", [n for n in range(60) if n % 3]),
    ):
        assert listed(out / host / "sitemap.xml") == [f"https://{host}/sitemap-00001.xml.gz"]
        path = out / host / "sitemap-00001.xml.gz"
        assert numbers(path) == wanted
        assert all(url["loc"].startswith(f"https://{host}/") for url in read_urls(path))


def test_every_language_a_row(catalog: Path, out: Path, schema: Schema) -> None:
    languages = ("--alternate", "de=de", "--alternate", "fr=fr", "--alternate-rows")
    report = build(catalog, out, *languages, schema=schema)
    assert report["expanded"] == 60
    urls = read_urls(out / "sitemap-00001.xml.gz")
    for n in range(60):
        pair = [(code, f"https://{code}.shop.example/{n}?a&b") for code in ("de", "fr")]
        first, second = urls[2 * n : 2 * n + 2]
        assert {first["loc"], second["loc"]} == {href for _, href in pair}
        assert first["alternates"] == second["alternates"] == pair


def test_video_and_news(catalog: Path, out: Path, schema: Schema) -> None:
    video = {"thumbnail_loc": "=/t.jpg", "title": "headline", "description": "category"}
    news = {"name": "=The Shop", "language": "=fr", "publication_date": "published"}
    args = [f"--video={tag}={of}" for tag, of in {**video, "content_loc": "file"}.items()]
    args += [f"--news={tag}={of}" for tag, of in {**news, "title": "headline"}.items()]
    build(catalog, out, *args, schema=schema)
    home = "https://de.shop.example"
    for n, url in enumerate(read_urls(out / "sitemap-00001.xml.gz")):
        title = f"Nº {n} <b>"
        assert url["news"] == ("The Shop", "fr", "2026-01-02T03:04:05Z", title)
        assert url["videos"] == [{
            "thumbnail_loc": f"{home}/t.jpg", "title": title, "content_loc": f"{home}/v/{n}.mp4",
            "description": ["Shoes & more", "shoes", "../x"][n % 3],
        }]  # fmt: skip


def test_baidu(catalog: Path, out: Path, schema: Schema) -> None:
    report = build(catalog, out, "--for", "baidu", schema=schema)
    assert report["indexes"] == [] and not (out / "sitemap.xml").exists()
    assert numbers(out / "sitemap-00001.xml.gz") == list(range(60))


def test_text(catalog: Path, out: Path) -> None:
    build(catalog, out, "--output", "text", "--no-gzip", "--max-urls", "50")
    names = ["sitemap-00001.txt", "sitemap-00002.txt"]
    assert listed(out / "sitemap.xml") == [f"https://de.shop.example/{name}" for name in names]
    lines = "".join((out / name).read_text() for name in names).splitlines()
    hosts = ("fr", "de", "de")
    assert lines == [f"https://{hosts[n % 3]}.shop.example/{n}?a&b" for n in range(60)]


def test_a_list_of_images_in_a_cell(tmp_path: Path, out: Path, schema: Schema) -> None:
    images = [[f"/i/{n}-{i}.jpg?a&b" for i in range(n % 4)] for n in range(40)]
    table = pa.table({"url": [f"{SITE}/{n}" for n in range(40)], "i": images})
    pq.write_table(table, tmp_path / "c.parquet")
    with (tmp_path / "c.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["url", "i"])
        writer.writerows((f"{SITE}/{n}", "|".join(own)) for n, own in enumerate(images))
    for name in ("c.parquet", "c.csv"):
        args = ("--image", "i", "--image-separator", "|")
        ended = urlset("build", tmp_path / name, "--site", SITE, "--out", out, *args)
        assert (ended.status, ended.err) == (0, "")
        found = [url.get("images", []) for url in read_urls(out / "sitemap-00001.xml.gz")]
        assert found == [[SITE + path for path in own] for own in images]
        schema(out / "sitemap-00001.xml.gz")
