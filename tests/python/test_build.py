"""From a file to the entries that a crawler reads."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import marketplace
import pytest
from conftest import ROOT, SITE, files, read_index, read_set, read_shard, urlset

EXAMPLE = ROOT / "examples/catalog.csv"


def test_the_example_of_the_readme(out: Path, schema) -> None:
    ended = urlset("build", EXAMPLE, "--site", SITE, "--out", out)
    assert (ended.status, ended.err) == (0, "")
    entries = read_set(out)
    with EXAMPLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(entries) == 499
    kept = [row for row in rows if not row["url"].startswith("ftp:")]
    for entry, row in zip(entries, kept, strict=True):
        if row["url"].isascii() and " " not in row["url"]:
            assert entry["loc"] == row["url"]
        assert entry["lastmod"] == row["updated_at"].replace(" ", "T") + "Z"
        assert entry["priority"] == row["priority"]
    assert entries[76]["loc"] == f"{SITE}/k%C3%BCche/sch%C3%BCssel%20aus%20%C3%B6l-1077"
    newest = max(row["updated_at"] for row in kept).replace(" ", "T") + "Z"
    assert read_index(out / "sitemap.xml") == [
        {"loc": f"{SITE}/sitemap-00001.xml.gz", "lastmod": newest}
    ]
    for path in out.glob("*.xml*"):
        schema(path)
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        assert [(r["row"], r["column"], r["code"]) for r in csv.DictReader(file)] == [
            ("123", "url", "loc.scheme")
        ]


def test_the_catalog_of_a_marketplace(tmp_path: Path, out: Path, schema) -> None:
    catalog = tmp_path / "products.csv"
    marketplace.write(catalog)
    site = "https://www.market.example"
    args = ("--site", site, "--hosts", "any", "--out", out, "--json", "-")
    ended = urlset("build", catalog, *args)
    report = json.loads(ended.out)
    assert (ended.status, report["rows"], report["urls"], report["rejected"]) == (0, 1000, 1000, 0)
    with catalog.open(newline="", encoding="utf-8") as file:
        wanted = [row["url"] for row in csv.DictReader(file)]
    for path in out.glob("*.xml*"):
        schema(path)
    assert [entry["loc"] for entry in read_shard(out / "sitemap-00001.xml.gz")] == wanted


@pytest.mark.parametrize("rows", [49_999, 50_000, 50_001])
def test_the_limit_of_urls(tmp_path: Path, out: Path, rows: int) -> None:
    catalog = tmp_path / "c.csv"
    catalog.write_text("url\n" + "".join(f"{SITE}/{i}\n" for i in range(rows)))
    assert urlset("build", catalog, "--site", SITE, "--out", out).status == 0
    assert [entry["loc"] for entry in read_set(out)] == [f"{SITE}/{i}" for i in range(rows)]
    assert len(read_index(out / "sitemap.xml")) == (1 if rows <= 50_000 else 2)


def test_same_bytes_on_any_number_of_threads(tmp_path: Path) -> None:
    results = []
    for threads in (1, 2, 7):
        out = tmp_path / str(threads)
        args = ("--site", SITE, "--out", out, "--threads", threads, "--max-urls", 40)
        assert urlset("build", EXAMPLE, *args).status == 0
        results.append(files(out))
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 14


def test_a_failed_build_leaves_the_former_one(tmp_path: Path, out: Path) -> None:
    assert urlset("build", EXAMPLE, "--site", SITE, "--out", out).status == 0
    before = {path: path.stat().st_mtime_ns for path in out.iterdir() if path.is_file()}
    broken = tmp_path / "broken.csv"
    broken.write_text(f'url\n{SITE}/1\n"{SITE}/2\n')
    ended = urlset("build", broken, "--site", SITE, "--out", out)
    assert ended.status == 3
    assert "row 2" in ended.err and "csv.unclosed_quote" in ended.err
    assert {path: path.stat().st_mtime_ns for path in out.iterdir() if path.is_file()} == before
