"""Several sets: one index, one publication."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import SITE, Ended, read_index, read_set, urlset

TOML = """
site = "https://www.shop.example"
out = "out"
max-urls = 10
{more}

[[set]]
name = "products"
input = "products.csv"
where = ["stock=1"]

[[set]]
name = "pages"
input = ["pages-1.csv", "pages-2.csv"]
loc-template = "https://www.shop.example/page/{{slug}}"
changefreq = "=weekly"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    rows = "".join(f"{SITE}/{i},{i % 2}\n" for i in range(50))
    (tmp_path / "products.csv").write_text(f"url,stock\n{rows}")
    (tmp_path / "pages-1.csv").write_text("slug\nabout us\n")
    (tmp_path / "pages-2.csv").write_text("n,slug\n1,jobs\n2,\n")
    return tmp_path


def build(shop: Path, *args: object, toml: str = TOML, more: str = "max_rejects = 5") -> Ended:
    (shop / "urlset.toml").write_text(toml.format(more=more) if toml is TOML else toml)
    return urlset("build", "--json", "-", *args, cwd=shop)


def test_sets_in_one_index(shop: Path, schema) -> None:
    ended = build(shop)
    report = json.loads(ended.out)
    assert (ended.status, ended.err) == (0, "")
    fates = [report[key] for key in ("rows", "urls", "rejected", "filtered")]
    assert fates == [53, 27, 1, 25]
    out = shop / "out"
    assert [entry["loc"].rsplit("/", 1)[1] for entry in read_index(out / "sitemap.xml")] == [
        *(f"products-0000{i}.xml.gz" for i in (1, 2, 3)), "pages-00001.xml.gz",
    ]  # fmt: skip
    entries = read_set(out)
    assert [e["loc"] for e in entries[:25]] == [f"{SITE}/{i}" for i in range(1, 50, 2)]
    assert entries[25:] == [
        {"loc": f"{SITE}/page/about%20us", "changefreq": "weekly"},
        {"loc": f"{SITE}/page/jobs", "changefreq": "weekly"},
    ]
    for path in out.glob("*.xml*"):
        schema(path)
    rejects = (out / ".urlset/rejects.csv").read_text().splitlines()
    assert len(rejects) == 2 and "pages-2.csv" in rejects[1] and ",2," in rejects[1]


def test_a_set_that_goes_takes_its_files_along(shop: Path) -> None:
    assert build(shop).status == 0
    one = TOML[: TOML.index('[[set]]\nname = "pages"')].format(more="max_shrink = '90%'")
    assert build(shop, toml=one).status == 0
    assert not list((shop / "out").glob("pages*"))
    assert len(read_set(shop / "out", "products.xml")) == 25
    assert not (shop / "out/sitemap.xml").exists()


def test_a_set_that_fails_publishes_nothing_of_the_others(shop: Path) -> None:
    assert build(shop).status == 0
    before = {path: path.read_bytes() for path in (shop / "out").glob("*.xml*")}
    (shop / "products.csv").write_text(f"url,stock\n{SITE}/new,1\n")
    (shop / "pages-2.csv").write_text('slug\n"open\n')
    ended = build(shop, more='max_shrink = "100%"')
    assert ended.status == 3 and "pages-2.csv: row 1" in ended.err
    assert {path: path.read_bytes() for path in (shop / "out").glob("*.xml*")} == before


def test_max_rejects_counts_over_all_sets(shop: Path) -> None:
    with (shop / "products.csv").open("a") as file:
        file.write("x:,1\ny:,1\n")
    assert build(shop, more="max_rejects = 3").status == 0
    ended = build(shop, more="max_rejects = 2")  # 2 of one set, 1 of the other
    assert ended.status == 1 and "[rejects.limit]" in ended.err
    assert ended.err.count("\n") == 1 and "3 of 55" in ended.err


def test_a_set_without_a_row_is_no_error_while_others_have_some(shop: Path) -> None:
    (shop / "pages-1.csv").write_text("slug\n")
    (shop / "pages-2.csv").write_text("slug\n")
    assert build(shop).status == 0
    assert len(read_set(shop / "out")) == 25


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "pages"', 'name = "Products"', "two sets have the same name"),
        ('name = "pages"\n', "", "name is missing"),
        ('name = "pages"', 'name = "../x"', "contains other characters"),
        ('input = "products.csv"', "", "input is missing"),
        ('input = "products.csv"', "input = 5", "input is a path"),
        ('input = "products.csv"', 'input = "none.csv"', "No such file"),
        ("changefreq", "changfreq", "did you mean changefreq"),
        ("changefreq", "max-urls", "option of the whole build"),
        ("changefreq", "site", "option of the whole build"),
        ("changefreq", "for", "option of the whole build"),
    ],
)
def test_sets_that_are_wrong(shop: Path, old: str, new: str, said: str) -> None:
    text = TOML.format(more="")
    assert old in text
    ended = build(shop, toml=text.replace(old, new, 1))
    assert (ended.status in (2, 3), ended.err.count("\n")) == (True, 1), ended
    assert said in ended.err
    assert not (shop / "out").exists()


def test_a_set_called_sitemap_does_not_collide_with_the_index(shop: Path) -> None:
    text = TOML.format(more="max_rejects = 5").replace('"pages"', '"sitemap"')
    assert build(shop, toml=text, more="").status == 0
    assert len(read_set(shop / "out", "sitemap-all.xml")) == 27
