"""Cells without a URL, hosts that cannot exist, and the warnings about the URLs of a build."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urlset as package
from conftest import SITE, read_set
from urlset import ConfigError, DataError, Report

PLACEHOLDERS = [
    "N/A", "n/a", "#N/A", "NULL", "null", "(null)", "None", "nan", "NaN", "nil", "undefined", "-",
    "--", "—", "?", "\\N", "TBD", "[object Object]", "#REF!", "#DIV/0!", "<NA>", "{{url}}",
    "{{ product:url }}", "${url}", "<%= url %>", "{url}", "%s", "  N/A  ",
]  # fmt: skip
#: no URL, but a valid value of a template
VALUES = ["0", "na", "true", "unknown"]


def build(cells: dict[str, list[Any]], out: Path, **options: Any) -> Report:
    given = {"site": SITE, "max_rejects": "100%", "max_shrink": "100%"} | options
    return package.build(pa.table(cells), out=out, **given)


def rejects(out: Path) -> list[dict[str, str]]:
    with (out / ".urlset/rejects.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def notes(report: Report) -> dict[str, int]:
    return {warning.code: warning.count for warning in report.warnings}


def locs(out: Path) -> list[str]:
    return [entry["loc"] for entry in read_set(out)]


@pytest.mark.parametrize("relative", [False, True])
def test_placeholders_are_no_urls(out: Path, relative: bool) -> None:
    cells = [*PLACEHOLDERS, *VALUES]
    build({"url": [*cells, "/a"]}, out, relative_urls=relative)
    assert locs(out) == [f"{SITE}/a"]
    found = rejects(out)
    assert [row["value"].strip() for row in found] == [cell.strip() for cell in cells]
    assert {row["code"] for row in found} == {"loc.relative"}
    assert {row["column"] for row in found} == {"url"}
    assert all("placeholder" in row["message"] for row in found)


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("www.shop.example/p/1", "add https://"), ("shop.example/p", "add https://"),
        ("bücher.example", "add https://"), ("https//www.shop.example/p", "misspelt"),
        ("http;//www.shop.example/p", "misspelt"), ("//www.shop.example/p", "add https:"),
        ("///p", "add https:"), ("/\\www.shop.example/p", "add https:"),
        ("\\\\www.shop.example\\p", "add https:"), ("\\p", "--relative-urls"),
        ("p", "--relative-urls"), ("p/1", "--relative-urls"), ("p.html", "--relative-urls"),
        ("../p", "--relative-urls"), ("?p", "--relative-urls"), ("#p", "--relative-urls"),
        ("12345", "--relative-urls"), ("a b", "--relative-urls"),
    ],
)  # fmt: skip
def test_what_is_neither_url_nor_path(cell: str, hint: str, out: Path) -> None:
    build({"url": [cell, "/a"]}, out)
    (row,) = rejects(out)
    assert (row["code"], row["value"]) == ("loc.relative", cell)
    assert hint in row["message"]


def test_numbers_are_no_urls(out: Path) -> None:
    with pytest.raises(DataError) as info:
        build({"url": pa.array([0, 17])}, out, max_rejects="50%")
    assert "loc.relative 2" in str(info.value)


def test_relative_urls_are_joined_where_that_is_asked_for(out: Path, tmp_path: Path) -> None:
    cells = [
        "a/b",
        "../../a",
        "?q=1",
        "//www.shop.example/c",
        "#d",
        "/e",
        "https:",
        "www.x.example",
    ]
    base = f"{SITE}/x/y/z"
    report = build({"url": cells}, out, site=base, relative_urls=True)
    assert locs(out) == [
        f"{SITE}/x/y/a/b", f"{SITE}/a", f"{SITE}/x/y/z?q=1", f"{SITE}/c", f"{SITE}/x/y/z#d",
        f"{SITE}/e", f"{SITE}/x/y/www.x.example",
    ]  # fmt: skip
    assert report.rejects["by_code"] == {"loc.no_host": 1}
    # the command line and urlset.toml have the option too, for each set
    (tmp_path / "in.csv").write_text("url\na/b\n")
    toml = tmp_path / "urlset.toml"
    toml.write_text(
        f'site = "{SITE}"\nout = "{tmp_path}/o1"\n[[set]]\nname = "s"\ninput = "in.csv"\n'
        "relative_urls = true\n"
    )
    package.build(config=toml)
    command = [sys.executable, "-m", "urlset", "build", str(tmp_path / "in.csv"), "--site", SITE]
    both = [[*command, "--out", str(tmp_path / "o2")], ["--relative-urls"]]
    assert subprocess.run(both[0], capture_output=True).returncode == 1
    assert subprocess.run(both[0] + both[1], capture_output=True).returncode == 0
    assert locs(tmp_path / "o2") == [f"{SITE}/a/b"]


def test_placeholders_in_the_columns_of_a_template(out: Path) -> None:
    slugs = [*PLACEHOLDERS, *VALUES, "nano", "null-modem", "{3F2504E0-4F89-11D3-9A0C-0305E82C3301}"]
    ids = list(range(len(slugs)))
    for template in ("/p/{id}/{slug}", SITE + "/p/{id}/{slug:raw}"):
        build({"id": ids, "slug": slugs}, out, loc_template=template)
        found = rejects(out)
        assert [row["value"].strip() for row in found] == [cell.strip() for cell in PLACEHOLDERS]
        assert {(row["code"], row["column"]) for row in found} == {("loc.relative", "slug")}
        assert len(locs(out)) == len(slugs) - len(PLACEHOLDERS)
    # a gap is reported with its column, blank or not
    build({"id": [1, 2, 3], "slug": ["", " ", "a"]}, out, loc_template="/p/{id}/{slug}")
    assert [(row["code"], row["column"]) for row in rejects(out)] == [("loc.empty", "slug")] * 2
    build({"id": [0.5, float("nan")]}, out, loc_template="/p/{id}")
    assert [row["code"] for row in rejects(out)] == ["loc.relative"]


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "image": ({"image": "x"}, "image.invalid"),
    "alternate": ({"alternate": "de=x"}, "alternate.invalid"),
    "thumbnail": ({"video": ["thumbnail_loc=x", "content_loc==https://v.example/v.mp4",
                             "title==t", "description==d"]}, "video.thumbnail_loc"),
    "content": ({"video": ["thumbnail_loc==/t.png", "content_loc=x", "player_loc==/player",
                           "title==t", "description==d"]}, "video.content_loc"),
    "player": ({"video": ["thumbnail_loc==/t.png", "player_loc=x", "content_loc==/v.mp4",
                          "title==t", "description==d"]}, "video.player_loc"),
    "uploader": ({"video": ["thumbnail_loc==/t.png", "content_loc==/v.mp4", "title==t",
                            "description==d", "uploader==u", "uploader_info=x"]},
                 "video.uploader_info"),
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    "cell", ["N/A", "null", "www.shop.example/i.jpg", "//b.example/i", "i.jpg"]
)
def test_the_other_addresses_of_a_row_follow_the_same_rule(
    field: str, cell: str, out: Path
) -> None:
    options, code = FIELDS[field]
    table = {"url": ["/a", "/b"], "x": [cell, "/i.jpg"]}
    report = build(table, out, **options)
    assert (report.urls, notes(report)[code]) == (2, 1)
    report = build(table, out, on_bad_field="reject", **options)
    assert [(row["code"], row["row"]) for row in rejects(out)] == [(code, "1")]
    report = build(table, out, relative_urls=True, **options)
    joined = cell not in ("N/A", "null") and not (field == "uploader" and cell.startswith("//"))
    assert notes(report).get(code, 0) == (0 if joined else 1)


@pytest.mark.parametrize("tag", ["thumbnail_loc", "content_loc", "player_loc", "uploader_info"])
@pytest.mark.parametrize("value", ["N/A", "i.jpg", "//b.example/i", "ftp://b.example/i"])
def test_constants_are_checked_at_the_start(tag: str, value: str, out: Path) -> None:
    with pytest.raises(ConfigError) as info:
        build({"url": ["/a"]}, out, video=[f"{tag}=={value}", "title==t", "description==d"])
    assert info.value.code == "config.constant" and f"video:{tag}" in str(info.value)
    assert not (out / "sitemap.xml").exists()


NO_HOSTS = [
    "-example.com", "example-.com", "a.-b.example", "256.256.256.256", "1.2.3.4.5", "1.2.3",
    "127.1", "0x7f.1", "1.2.3.0x4", "2130706433", "0177.0.0.1", "a.1", "xn--a", "xn--a.example",
    "a..example", ".a.example", "a.example..", "a" * 64 + ".example", "abcdefg." * 31 + "abcdef",
    "a b.example", "a%62.example", "[::g]", "[1.2.3.4]", "a!b.example",
]  # fmt: skip
NAMED = [
    "a_b.example", "_dmarc.example", "a_.example", "localhost", "a--b.example", "3com.example",
    "a.example.", "192.0.2.1", "[::1]", "[::]", "xn--bcher-kva.example", "a" * 63 + ".example",
    "abcdefg." * 31 + "abcde",
]  # fmt: skip


def verified(folder: Path, url: str) -> set[str]:
    folder.mkdir(exist_ok=True)
    (folder / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"<url><loc>{url}</loc></url></urlset>\n"
    )
    return set(package.verify(folder).counts)


def test_hosts_that_cannot_exist(out: Path, tmp_path: Path) -> None:
    build({"url": [f"https://{host}/path" for host in NO_HOSTS] + ["/a"]}, out, hosts="any")
    assert locs(out) == [f"{SITE}/a"]
    assert {row["code"] for row in rejects(out)} == {"loc.host"}
    for host in NO_HOSTS:
        assert "loc.host" in verified(tmp_path / "v", f"https://{host}/path"), host
        for option in (
            {"site": f"https://{host}"},
            {"sitemap_url": f"https://{host}/s/"},
            {"add_sitemap": f"https://{host}/s.xml"},
            {"hosts": f"b.example,{host}"},
        ):
            with pytest.raises(ConfigError):
                build({"url": ["/a"]}, out, **option)


def test_hosts_that_can(out: Path, tmp_path: Path) -> None:
    urls = [f"https://{host}/path" for host in NAMED]
    build({"url": urls}, out, hosts="any")
    assert locs(out) == urls
    for url in urls:
        assert "loc.host" not in verified(tmp_path / "v", url), url
        build({"url": [url]}, out, site=url)
        build({"url": [url]}, out, hosts="b.example," + url.split("/")[2])


def test_an_empty_port_says_nothing(out: Path, tmp_path: Path) -> None:
    build(
        {"url": ["https://www.shop.example:/a", "/b"]},
        out,
        site="https://www.shop.example:/",
        sitemap_url="https://www.shop.example:",
        add_sitemap=["https://b.example:/s.xml"],
    )
    assert "<loc>https://b.example/s.xml</loc>" in (out / "sitemap.xml").read_text()
    assert "loc.host" not in verified(tmp_path / "v", "https://a.example:/path")


def test_what_is_counted_of_urls(out: Path) -> None:
    cells = [
        "/1", "/2?a=1&b=2", "/3?a=1&amp;b=2", "/4?a=1&#38;b", "/5?a&lt;b", "/6#top",
        "/7\\8", "/9?\\", f"{SITE}\\10", "https://www.shop.example/ü?a=1&amp;b",
    ]  # fmt: skip
    report = build({"url": cells}, out)
    assert notes(report) == {"loc.entity": 4, "loc.fragment": 2, "loc.backslash": 2}
    assert all(len(warning.message) > 20 for warning in report.warnings)
    # a placeholder inside of a URL is written percent-encoded, and counted
    cells = [f"{SITE}/{{{{slug}}}}", "/p/${id}?a=1", f"{SITE}/%7B%7Bslug%7D%7D", "/{id}", "/$9"]
    report = build({"url": cells, "i": ["/{{i}}.jpg", *cells[2:], None]}, out, image="i")
    assert notes(report)["loc.placeholder"] == 3
    assert [row["loc"].partition(SITE)[2] for row in read_set(out)] == [
        "/%7B%7Bslug%7D%7D", "/p/$%7Bid%7D?a=1", "/%7B%7Bslug%7D%7D", "/%7Bid%7D", "/$9",
    ]  # fmt: skip
    # rows that are not written are not counted
    report = build({"url": ["/1", "https://x.example/a#b", "/2#a"], "c": ["1", "1", "2"]}, out,
                   where=["c=1"])  # fmt: skip
    assert "loc.fragment" not in notes(report)
    report = build({"url": ["/1"], "i": ["/a\\b.jpg"]}, out, image="i")
    assert notes(report)["loc.backslash"] == 1
    assert read_set(out)[0]["loc"] == f"{SITE}/1"


@pytest.mark.parametrize(
    ("cells", "count"),
    [
        (["/a", "/b", "/a"], 0), (["/a", "/A"], 1), (["/a", "/a/"], 1), (["", "/"], 1),
        (["/a", "/A", "/a/", "/A/"], 1), (["/a", "/b/", "/A", "/B"], 2), (["/a?b", "/a?B"], 1),
        (["/ab", "/a/b"], 0), (["/%c3%bc", "/%C3%BC", "/ü"], 1), (["/a?", "/a"], 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "options", [{}, {"output": "text"}, {"duplicates": "drop"}, {"sort": True}]
)
def test_urls_that_are_nearly_the_same(
    cells: list[str], count: int, options: dict[str, Any], out: Path
) -> None:
    report = build({"url": [SITE + cell for cell in cells]}, out, **options)
    assert notes(report).get("loc.variant", 0) == count


def test_of_many_urls_a_sample_is_looked_at(out: Path, tmp_path: Path) -> None:
    pages = 260_000
    urls = [f"{SITE}/products/item-{i}" for i in range(pages)]
    urls += [f"{SITE}/products/Item-{i}/" for i in range(0, pages, 5)]
    counts = {
        notes(build({"url": order}, out, **options))["loc.variant"]
        for order in (urls, urls[::-1])
        for options in ({"threads": 1}, {"threads": 4, "max_urls": 1_000})
    }
    (count,) = counts
    # 52,000 pages have two URLs, and one of 8, 16 or 32 is in the sample
    assert any(abs(count * rate / 52_000 - 1) < 0.1 for rate in (8, 16, 32)), count


@pytest.mark.parametrize(
    ("dates", "told"),
    [
        (["2026-11-20"] * 30, True), (["2026-11-20"] * 29 + ["2026-11-21"], False),
        (["2026-11-20"] * 29 + [None], False), ([None] * 30, False),
        (["2026-11-20"] * 10, True), (["2026-11-20"] * 9, False),
        (["2026-11-20T10:00:00Z", "2026-11-20T11:00:00+01:00"] * 15, True),
        (["2026-11-20", "2026-11-20T00:00:00Z"] * 15, False),
    ],
)  # fmt: skip
def test_one_lastmod_on_all(dates: list[str | None], told: bool, out: Path) -> None:
    table = {"url": [f"/{i}" for i in range(len(dates))], "lastmod": dates}
    for options in ({}, {"duplicates": "drop"}, {"layout": "stable"}):
        report = build(table, out, **options)
        assert notes(report).get("lastmod.same", 0) == (len(dates) if told else 0)


def test_a_site_with_a_path(out: Path) -> None:
    site = "https://e.example/shop"
    table = {"my path": ["/p", "/q/../r", f"{site}/s"]}
    report = build(table, out, site=site, loc="my path")
    (warning,) = (one for one in report.warnings if one.code == "loc.site_path")
    assert warning.count == 2
    assert "/p became https://e.example/p" in warning.message
    match = re.search(r"--loc-template '(.*)'", warning.message)
    assert match
    report = build({"my path": ["/p"]}, out, site=site, loc_template=match[1])
    assert "loc.site_path" not in notes(report)
    assert "<loc>https://e.example/shop/p</loc>" in _shard(out)
    # of a template too
    report = build({"slug": ["p"]}, out, site=f"{site}/", loc_template="/x/{slug}")
    (warning,) = (one for one in report.warnings if one.code == "loc.site_path")
    match = re.search(r"--loc-template '(.*)'", warning.message)
    assert match
    report = build({"slug": ["p"]}, out, site=site, loc_template=match[1])
    assert "<loc>https://e.example/shop/x/p</loc>" in _shard(out)
    for plain in ("https://e.example", "https://e.example/"):
        assert "loc.site_path" not in notes(build({"url": ["/p"]}, out, site=plain))


def _shard(out: Path) -> str:
    import gzip

    return gzip.decompress((out / "sitemap-00001.xml.gz").read_bytes()).decode()


def test_the_documented_lists_are_those_of_the_code() -> None:
    root = Path(__file__).parents[2]
    source = (root / "rust/core/sitemap/placeholder.rs").read_text()
    text = (root / "docs/urls.md").read_text()
    for name in ("ALWAYS", "NOT_A_URL"):
        body = re.search(rf"const {name}: &\[&str\] = &\[(.*?)\];", source, re.DOTALL)
        assert body
        listed = {one.replace("\\\\", "\\") for one in re.findall(r'"((?:[^"\\]|\\.)*)"', body[1])}
        (line,) = re.findall(rf"<!-- {name} -->\n(.*?)\n\n", text + "\n\n", re.DOTALL)
        assert set(re.findall(r"`([^`]+)`", line)) == listed, name
