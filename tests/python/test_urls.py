"""URLs: encoding, rejection, and the limits."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest
import urlset as package
from conftest import SITE, read_bytes, read_index, read_set
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from url_model import model
from urlset import ConfigError, Report


def build(values: list[str | None], out: Path, **options: object) -> Report:
    options = {"site": SITE, "max_rejects": "100%", "max_shrink": "100%"} | options
    table = pa.table({"url": pa.array([*values, f"{options['site']}/the-last"], pa.string())})
    return package.build(table, out=out, **options)


def fate(value: str | None, out: Path, **options: object) -> str:
    """The URL as lxml reads it, or the code of its reject."""
    report = build([value], out, **options)
    if report.rejected:
        with (out / ".urlset/rejects.csv").open(newline="") as file:
            (reject,) = csv.DictReader(file)
        assert reject["code"] in report.rejects["by_code"]
        assert reject["row"] == "1" and reject["column"] in ("url", "")
        return reject["code"]
    document = etree.fromstring(read_bytes(out / "sitemap-00001.xml.gz"))
    return str(document[0][0].text)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, "loc.empty"), ("", "loc.empty"), ("  \t ", "loc.empty"),
        ("https:///path/to", "loc.no_host"), ("https:path", "loc.no_host"),
        ("ftp://www.shop.example/a", "loc.scheme"), ("javascript:alert(1)", "loc.scheme"),
        ("mailto:a@b.example", "loc.scheme"), ("a:b", "loc.scheme"), ("://x/y", "loc.scheme"),
        ("https://shop.example/a", "loc.other_host"),
        ("https://www.shop.example.evil.example/a", "loc.other_host"),
        ("http://www.shop.example/a", "loc.other_scheme"),
        ("https://www.shop.example:8443/a", "loc.other_port"),
        ("https://www.shop.example:443/a", "https://www.shop.example:443/a"),
        ("https://user@www.shop.example/a", "loc.userinfo"),
        ("https://user:pass@www.shop.example/a", "loc.userinfo"),
        ("https://www.shop.example:port/a", "loc.host"),
        ("https://www.shop.example:99999/a", "loc.host"),
        ("https://www..example/a", "loc.host"), ("https://a b/c", "loc.host"),
        ("/a?b#c", f"{SITE}/a?b#c"), ("/a/../b", f"{SITE}/b"), ("/?q=1", f"{SITE}/?q=1"),
        (" https://www.shop.example/a\r\n", f"{SITE}/a"),
        ("HTTPS://WWW.Shop.Example/A", "HTTPS://WWW.Shop.Example/A"),
        (f"{SITE}/100%", f"{SITE}/100%25"), (f"{SITE}/%zz%4", f"{SITE}/%25zz%254"),
        (f"{SITE}/%C3%BC%2f%2F", f"{SITE}/%C3%BC%2f%2F"), (f"{SITE}/%2541", f"{SITE}/%2541"),
        (f"{SITE}/é ü", f"{SITE}/%C3%A9%20%C3%BC"), (f"{SITE}/🛒", f"{SITE}/%F0%9F%9B%92"),
        (f"{SITE}/\u202eevil\u2028\u200b", f"{SITE}/%E2%80%AEevil%E2%80%A8%E2%80%8B"),
        (f"{SITE}/\ufffe\uffff\U0001fffe", f"{SITE}/%EF%BF%BE%EF%BF%BF%F0%9F%BF%BE"),
        (f"{SITE}/<a href='x'>&amp;\"</a>]]>",
         f"{SITE}/%3Ca%20href='x'%3E&amp;%22%3C/a%3E%5D%5D%3E"),
        (f"{SITE}/a^`{{|}}", f"{SITE}/a%5E%60%7B%7C%7D"),
        (f"{SITE}\\a\\b?c\\d#e\\f", f"{SITE}/a/b?c%5Cd#e%5Cf"), ("/a\\b", f"{SITE}/a/b"),
        (f"{SITE}:/a", f"{SITE}/a"),
        (f"{SITE}/a#b#c", f"{SITE}/a#b%23c"),
    ],
)  # fmt: skip
def test_the_fate_of(value: str | None, wanted: str, out: Path) -> None:
    assert fate(value, out) == wanted


def test_every_control_character(out: Path) -> None:
    codes = [*range(0x20), 0x7F]
    report = build([f"{SITE}/a{chr(code)}b" for code in codes], out)
    assert report.rejects["by_code"] == {"loc.control": len(codes)}
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            assert not set(row["value"]) & {chr(c) for c in codes if c not in (9, 10)}
    report = build([f"{SITE}/a{chr(code)}b" for code in range(0x80, 0xA0)], out)
    assert report.rejected == 0


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("bücher.example", "xn--bcher-kva.example"), ("BÜCHER.example", "xn--bcher-kva.example"),
        ("münchen.bücher.example", "xn--mnchen-3ya.xn--bcher-kva.example"),
        ("faß.example", "xn--fa-hia.example"), ("例え.example", "xn--r8jz45g.example"),
        ("مثال.example", "xn--mgbh0fb.example"), ("דוגמה.example", "xn--6dbbec0c.example"),
        ("\uff45xample.example", "example.example"), ("xn--bcher-kva.example", None),
        ("192.0.2.1", None), ("[2001:db8::1]", None), ("[::ffff:192.0.2.1]", None),
        ("xn--a.example", "loc.host"), ("a\u202eb.example", "loc.host"),
        ("1.2.3.999", "loc.host"), ("[::g]", "loc.host"), ("-.example", "loc.host"),
        ("a_b.example", None), ("_dmarc.example_", None), ("localhost", None), ("a.example.", None),
        ("x" * 63 + ".example", None), ("x" * 64 + ".example", "loc.host"),
    ],
)  # fmt: skip
def test_hosts(host: str, wanted: str | None, out: Path) -> None:
    found = fate(f"https://{host}/path", out, hosts="any")
    wanted = host if wanted is None else wanted
    assert found == (wanted if wanted.startswith("loc.") else f"https://{wanted}/path")


def test_a_list_of_hosts(out: Path) -> None:
    hosts = "m.shop.example, BÜCHER.example,alt.example:8080"
    for value, wanted in (
        ("https://m.shop.example/a", None), ("http://M.shop.example/a", None),
        ("https://www.shop.example/a", None), ("https://alt.example:8080/a", None),
        ("https://alt.example/a", "loc.other_port"), ("https://x.example/a", "loc.other_host"),
        ("https://bücher.example/a", "https://xn--bcher-kva.example/a"),
    ):  # fmt: skip
        assert fate(value, out, hosts=hosts) == (wanted or value)
    for wrong in ("", ",", "a b", "https://x.example", "x.example/a", "u@x.example"):
        with pytest.raises(ConfigError):
            build(["/a"], out, hosts=wrong)


def test_the_edges_of_the_length(out: Path) -> None:
    base = f"{SITE}/"
    longest = base + "x" * (2047 - len(base))
    assert fate(longest, out) == longest
    assert fate(longest + "x", out) == "loc.too_long"
    # percent-encoding counts, XML escaping does not
    room = longest[:-12]
    assert fate(room + "üü", out) == room + "%C3%BC%C3%BC"
    assert fate(room + "xüü", out) == "loc.too_long"
    ampersands = base + "&" * (2047 - len(base))
    assert fate(ampersands, out) == ampersands
    assert fate(ampersands + "&", out) == "loc.too_long"
    short = {"site": "http://a.b", "hosts": "any"}
    assert fate("http://a.b/", out, **short) == "loc.too_short"
    assert fate("http://a.b/c", out, **short) == "http://a.b/c"
    assert fate("http://a.bc", out, **short) == "loc.too_short"


def test_warnings_that_are_counted(out: Path) -> None:
    edge = f"{SITE}/" + "x" * (1024 - len(SITE) - 1)
    report = build([edge, edge + "x", edge + "xx"], out)
    assert [(w.code, w.count) for w in report.warnings] == [("loc.over_1024", 2)]
    report = build(["/shop/a", "/shop/", "/shop", "/shopping"], out, sitemap_url=f"{SITE}/shop")
    found = [(w.code, w.count) for w in report.warnings]
    assert found == [
        ("loc.outside_folder", 3), ("loc.variant", 1), ("manifest.config", 1)
    ]  # fmt: skip


def test_strict(out: Path) -> None:
    assert fate(f"{SITE}/100%", out, strict_urls=True) == "loc.percent"
    assert fate(f"{SITE}/a?100%4g", out, strict_urls=True) == "loc.percent"
    assert fate(f"{SITE}/%C3%bc", out, strict_urls=True) == f"{SITE}/%C3%bc"


def test_templates(out: Path) -> None:
    table = pa.table(
        {
            "slug": ["a b/c", "ü&?#%", "..", None],
            "path": ["x/y", "/ü/", "a", "b"],
            "id": [1, 2, 3, 4],
        }
    )
    options = {"site": SITE, "out": out, "max_rejects": "50%"}
    package.build(table, loc_template=SITE + "/{path:raw}/{slug}-{id}", **options)
    assert [e["loc"] for e in read_set(out)] == [
        f"{SITE}/x/y/a%20b%2Fc-1", f"{SITE}//%C3%BC//%C3%BC%26%3F%23%25-2", f"{SITE}/a/..-3",
    ]  # fmt: skip
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        assert [(r["row"], r["column"], r["code"]) for r in csv.DictReader(file)] == [
            ("4", "slug", "loc.empty")
        ]
    for wrong in ("{", "{}", "{slug", "{slug:what}", "{none}"):
        with pytest.raises(ConfigError) as info:
            package.build(table, loc_template=f"{SITE}/{wrong}", **options)
        assert "\n" not in str(info.value)


def test_the_addresses_in_the_index_are_encoded(out: Path, schema) -> None:
    site = "https://bücher.example"
    added = ["https://alt.example/ü b.xml", "https://müller.example/?a=1&b='2'"]
    report = build(["/a"], out, site=site, sitemap_url=f"{site}/kü che", add_sitemap=added)
    base = "https://xn--bcher-kva.example/k%C3%BC%20che/"
    assert report.url == f"{base}sitemap.xml"
    assert [entry["loc"] for entry in read_index(out / "sitemap.xml")] == [
        f"{base}sitemap-00001.xml.gz", "https://alt.example/%C3%BC%20b.xml",
        "https://xn--mller-kva.example/?a=1&b='2'",
    ]  # fmt: skip
    schema(out / "sitemap.xml")


@pytest.mark.parametrize(
    "wrong", ["", "not a url", "/x.xml", "ftp://a.example/x", "https://a.example/\x1b[2J\nx"]
)
def test_a_sitemap_to_add_that_is_no_address(wrong: str, out: Path) -> None:
    with pytest.raises(ConfigError) as info:
        build(["/a"], out, add_sitemap=[wrong])
    assert info.value.code == "config.url" and "\x1b" not in str(info.value)


@pytest.mark.parametrize(
    "wrong",
    [
        "www.shop.example", "/", "https://", "https:///a", "ftp://a.example", "https://a b.example",
        "https://u:p@a.example", "https://a.example/?q", "https://a.example:x", "https://[::g]",
        "https://[", "https://a.example\n/x", "//a.example", "https://a.example/#x", "https://a%.b",
    ],
)  # fmt: skip
def test_a_site_that_is_none(wrong: str, out: Path) -> None:
    for option in ("site", "sitemap_url"):
        with pytest.raises(ConfigError) as info:
            build(["/a"], out, **{option: wrong})
        assert info.value.code in ("config.site", "config.sitemap_url", "config.url")
        assert "\n" not in str(info.value)
    assert not out.exists() or not list(out.glob("*.xml*"))


PATHS = st.text(
    st.one_of(st.sampled_from("/a.%4cF?#&'\"<> \t"), st.characters(codec="utf-8")), max_size=40
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.one_of(
            PATHS.map(lambda path: f"{SITE}/{path}"),
            PATHS.map(lambda path: "/x" + path),
            st.integers(1990, 2100).map(lambda n: f"{SITE}/" + "é" * ((n - 25) // 6)),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_a_plain_model_of_the_rules(tmp_path: Path, values: list[str]) -> None:
    out = tmp_path / "out"
    build(list(values), out)
    rejects = {}
    if (out / ".urlset/rejects.csv").exists():
        with (out / ".urlset/rejects.csv").open(newline="") as file:
            rejects = {int(r["row"]): r["code"] for r in csv.DictReader(file)}
    written = iter(read_set(out))
    for row, value in enumerate(values, 1):
        found = rejects[row] if row in rejects else next(written)["loc"]
        assert found == model(value), value
