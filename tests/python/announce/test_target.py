"""Targets: manifests, index files of any producer, addresses; and the permitted endpoints."""

from __future__ import annotations

import gzip
import importlib
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urlset
from urlset.announce.address import endpoint, split
from urlset.announce.index import read_index
from urlset.announce.target import read_target

from .conftest import INDEXNOW_KEY, Reply, make_site, page, write_list

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
INDEX = (
    f'<?xml version="1.0" encoding="UTF-8"?><sitemapindex {NS}>'
    "<sitemap><loc>https://a.example/m/one&amp;two.xml.gz</loc></sitemap>"
    "<sitemap><loc> https://a.example/m/b.xml.gz\n</loc><lastmod>2026</lastmod></sitemap>"
    "</sitemapindex>"
)


def test_the_manifest(tmp_path):
    site = make_site(tmp_path / "o", indexes=("sitemap.xml", "sitemap-index-2.xml"), urls=7)
    found = read_target(site)
    assert found.site == "https://www.example.com/" and found.host == "www.example.com"
    assert found.indexes == (
        "https://www.example.com/sitemap.xml",
        "https://www.example.com/sitemap-index-2.xml",
    )
    assert found.urls == 7 and found.state == site / ".urlset" / "announce"


def test_one_index_of_the_manifest(tmp_path):
    site = make_site(tmp_path / "o", indexes=("a.xml", "b.xml"))
    (site / "b.xml").write_text(INDEX)
    found = read_target(site / "b.xml")
    assert found.indexes == ("https://www.example.com/b.xml",) and found.urls == 1_000_000


def test_a_state_folder_elsewhere(tmp_path):
    site = make_site(tmp_path / "o")
    (site / ".urlset").rename(tmp_path / "state")
    found = read_target(site, state=tmp_path / "state")
    assert found.urls == 1_000_000 and found.state == tmp_path / "state" / "announce"


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 200_000,
        b'{"manifest":2}',
        b'{"manifest":1}',
        b"\xff",
        b'{"manifest":1,"site":7,"sitemap_url":"","urls":1,"indexes":[]}',
        b'{"manifest":1,"site":"https://a.example","sitemap_url":"https://a.example/","urls":1,'
        b'"indexes":[]}',
        b'{"manifest":1,"site":"https://a.example","sitemap_url":"https://a.example/","urls":1,'
        b'"indexes":[7]}',
    ],
)
def test_a_damaged_manifest(site, manifest):
    (site / ".urlset" / "manifest.json").write_bytes(manifest)
    with pytest.raises(urlset.InputError) as caught:
        read_target(site)
    assert caught.value.code in ("announce.manifest", "announce.empty")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("site", "https://a.example\r\nX: y"),
        ("site", "ftp://a.example"),
        ("site", "a.example"),
        ("sitemap_url", "file:///etc/"),
        ("sitemap_url", "https://a.example/ b/"),
    ],
)
def test_a_hostile_manifest(site, key, value):
    path = site / ".urlset" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(urlset.ConfigError) as caught:
        read_target(site)
    assert caught.value.code == "announce.bad_url" and str(caught.value).isprintable()


def test_many_hosts(tmp_path, engine, monkeypatch):
    monkeypatch.setenv("URLSET_INDEXNOW_KEY", INDEXNOW_KEY)
    site = make_site(tmp_path / "o", sitemap_url="https://{host}/")
    with pytest.raises(urlset.ConfigError) as caught:
        urlset.announce(site, to="robots", check=True, endpoint=engine.url)
    assert caught.value.code == "announce.many_hosts"
    urls = write_list(tmp_path / "u.txt", [page(1, "a.example"), page(1, "b.example")])
    assert urlset.announce(site, to="indexnow", urls=urls, hosts="any", endpoint=engine.url).ok
    assert len(engine.asked) == 2


@pytest.mark.parametrize("packed", [False, True])
def test_an_index_of_anybody(tmp_path, packed):
    name = "map.xml.gz" if packed else "map.xml"
    data = INDEX.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if packed else data)
    found = read_target(tmp_path / name)
    assert found.indexes == (f"https://a.example/m/{name}",) and found.urls is None
    assert found.site == "https://a.example/"
    given = read_target(tmp_path / name, sitemap_url="https://b.example/x")
    assert given.indexes == (f"https://b.example/x/{name}",)


def test_an_index_does_not_choose_the_host_that_learns_the_key(tmp_path, engine, monkeypatch):
    monkeypatch.setenv("URLSET_INDEXNOW_KEY", INDEXNOW_KEY)
    (tmp_path / "a.xml").write_text(INDEX)
    urls = write_list(tmp_path / "u.txt", [page(1, "a.example")])
    tell = {"to": "indexnow", "urls": urls, "endpoint": engine.url}
    with pytest.raises(urlset.ConfigError) as caught:
        urlset.announce(tmp_path / "a.xml", **tell)
    assert caught.value.code == "indexnow.unknown_site" and engine.asked == []
    assert urlset.announce(tmp_path / "a.xml", sitemap_url="https://a.example/", **tell).ok
    assert len(engine.asked) == 1


def test_a_folder_of_anybody(tmp_path):
    (tmp_path / "a.xml").write_text(INDEX)
    (tmp_path / "b.xml").write_text(INDEX)
    (tmp_path / "c.xml").write_text(
        f"<urlset {NS}><url><loc>https://a.example/</loc></url></urlset>"
    )
    assert read_target(tmp_path).indexes == (
        "https://a.example/m/a.xml",
        "https://a.example/m/b.xml",
    )


def test_nothing_to_announce(tmp_path):
    for path in (tmp_path, tmp_path / "no"):
        with pytest.raises(urlset.InputError) as caught:
            read_target(path)
        assert caught.value.code == "announce.no_target"


def test_children_in_two_folders_do_not_tell_the_address(tmp_path):
    (tmp_path / "a.xml").write_text(INDEX.replace("/m/b", "/n/b"))
    with pytest.raises(urlset.ConfigError) as caught:
        read_target(tmp_path / "a.xml")
    assert caught.value.code == "announce.no_address"


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {b} "{("&" + a + ";") * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
) + f"]><sitemapindex {NS}>&i;</sitemapindex>"  # fmt: skip


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (BOMB.encode(), "index.doctype"),
        (b'<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x"><x/>', "index.doctype"),
        (b"", "index.damaged"),
        (b"<a", "index.damaged"),
        (b"\0\1\2", "index.damaged"),
        (b"<html/>", "index.not_a_sitemap"),
        (b"<x xmlns='a\x1b'/>", "index.damaged"),
        (f"<sitemapindex {NS}>".encode(), "index.damaged"),
        (f"<sitemapindex {NS}>".encode() + b"<a>" * 100, "index.damaged"),
        (INDEX.replace("b.xml", "b" * 4_000).encode(), "index.damaged"),
        (f"<sitemapindex {NS}>{'<sitemap/>' * 50_001}</sitemapindex>".encode(), "index.damaged"),
        (f"<sitemapindex {NS}>{' ' * 52_428_801}</sitemapindex>".encode(), "index.damaged"),
        (gzip.compress(f"<sitemapindex {NS}>{' ' * 60_000_000}".encode()), "index.damaged"),
        (gzip.compress(INDEX.encode())[:-9], "index.damaged"),
        (gzip.compress(INDEX.encode())[:-4] + b"\0\0\0\0", "index.damaged"),
        (b"\x1f\x8b", "index.damaged"),
        (b"\x1f\x8b\x08" + b"\0" * 40, "index.damaged"),
        (INDEX.replace("UTF-8", "no-such").encode(), "index.damaged"),
        (INDEX.encode()[:-40] + b"\xff" + INDEX.encode()[-40:], "index.damaged"),
    ],
)
def test_a_hostile_index(tmp_path, data, code):
    path = tmp_path / "a.xml"
    path.write_bytes(data)
    with pytest.raises(urlset.InputError) as caught:
        read_index(path)
    assert caught.value.code == code and len(str(caught.value)) < 400


def test_an_index_that_inflates_in_small_pieces(tmp_path):
    rows = "".join(
        f"<sitemap><loc>https://a.example/{i}.xml</loc></sitemap>" for i in range(50_000)
    )
    path = tmp_path / "a.xml.gz"
    path.write_bytes(gzip.compress(f"<sitemapindex {NS}>{rows}</sitemapindex>".encode()))
    found = read_index(path)
    assert found.entries == 50_000 and found.children[-1].loc == "https://a.example/49999.xml"


def test_an_address(tmp_path):
    found = read_target("https://www.example.com/maps/sitemap.xml")
    assert found.indexes == ("https://www.example.com/maps/sitemap.xml",)
    assert found.site == "https://www.example.com/" and found.urls is None
    assert found.state == tmp_path / "xdg" / "urlset" / "www.example.com" / "announce"


@pytest.mark.parametrize("host", ["..", "...", "a..b", "a_b", "[::1]", "a:81"])
def test_a_host_cannot_leave_the_state_folder(tmp_path, host):
    home = tmp_path / "xdg" / "urlset"
    try:
        state = read_target(f"https://{host}/s.xml").state
    except urlset.ConfigError:
        return
    assert state.resolve().is_relative_to(home) and state.parent.parent == home


# the permitted endpoints


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "https://api.example/v4"),
        ("https://proxy.example", "https://proxy.example/v4"),
        ("https://proxy.example/", "https://proxy.example/v4"),
        ("https://proxy.example/x/y/", "https://proxy.example/x/y"),
        ("http://127.0.0.1:81", "http://127.0.0.1:81/v4"),
        ("http://127.9.9.9", "http://127.9.9.9/v4"),
        ("http://localhost:81/", "http://localhost:81/v4"),
        ("http://[::1]:81", "http://[::1]:81/v4"),
    ],
)
def test_endpoints(given, expected):
    assert endpoint(given, "https://api.example/v4") == expected


@pytest.mark.parametrize(
    "given",
    [
        "http://api.example/",
        "http://localhost.evil.example/",
        "http://127.0.0.1.evil.example/",
        "http://127.0.0.1@evil.example/",
        "http://evil.example#@127.0.0.1/",
        "ftp://127.0.0.1/",
        "http://evil.example\\@127.0.0.1/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "//127.0.0.1/",
        "https://a.example/?key=1",
        "https://a.example/#x",
        "https://",
        "",
        "127.0.0.1:80",
        "http://2130706433.evil/",
        "http://127.0.0.1\t/",
        "http://[::2]/",
        "http://0x7f.1/",
        "http://localhost:99999/",
    ],
)
def test_endpoints_that_are_refused(site, tmp_path, monkeypatch, given):
    monkeypatch.setenv("URLSET_INDEXNOW_KEY", INDEXNOW_KEY)
    with pytest.raises(urlset.ConfigError) as caught:
        urlset.announce(
            site, to="indexnow", endpoint=given, urls=write_list(tmp_path / "u", [page(1)])
        )
    assert caught.value.code == "announce.endpoint"


def test_one_endpoint_for_several_engines_only_on_loopback(site):
    with pytest.raises(urlset.ConfigError) as caught:
        urlset.announce(site, to=["bing", "yandex"], endpoint="https://proxy.example")
    assert caught.value.code == "announce.options" and "ENGINE=URL" in str(caught.value)


def test_a_proxy_does_not_see_what_goes_to_this_machine(site, engine, other, tmp_path, monkeypatch):
    monkeypatch.setenv("URLSET_INDEXNOW_KEY", INDEXNOW_KEY)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other.url)
    urls = write_list(tmp_path / "u.txt", [page(1)])
    assert urlset.announce(site, to="indexnow", urls=urls, endpoint=engine.url).ok
    assert len(engine.asked) == 1 and other.asked == []


def test_a_proxy_is_used_for_what_leaves_the_machine(site, other, tmp_path, monkeypatch):
    """The proxy sees CONNECT and a host; nothing leaves this machine because it refuses."""
    monkeypatch.setenv("URLSET_INDEXNOW_KEY", INDEXNOW_KEY)
    monkeypatch.setenv("HTTPS_PROXY", other.url)
    other.says(Reply(403))
    urls = write_list(tmp_path / "u.txt", [page(1)])
    report = urlset.announce(site, to="indexnow", urls=urls, timeout=5, retries=0)
    assert report.outcomes[0].code == "indexnow.unanswered"
    assert "proxy" in report.outcomes[0].detail
    assert all(a.method == "CONNECT" for a in other.asked)


# URLs: the parts agree with another parser


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example",
        "https://a.example/",
        "https://a.example?x",
        "https://a.example/?/?",
        "HTTPS://A.Example:443/b",
        "http://a.example:80/",
        "http://a.example:443/",
        "https://[::1]/x",
        "https://a.example:/",
        "https://a.example//b//c",
        "https://a/[x]",
        "https://a.example./",
        "https://a@b/",
        "https:////",
        "https://?",
        "https://a.example:port/",
        "x",
        "",
    ],
)
def test_two_parsers_agree(url):
    found, parts = split(url), urlsplit(url)
    legal = re.fullmatch(r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:\d*)?([/?][^\[\]]*)?", url, re.I)
    assert (found is not None) == (legal is not None)
    if found is not None:
        assert (found.path, found.query or "") == (parts.path, parts.query)
        assert found.host.strip("[]") == parts.hostname
        default = {"http": 80, "https": 443}[parts.scheme]
        assert (found.port or default) == (parts.port or default)
        assert found.origin == f"{parts.scheme}://{found.authority}"


# options


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({}, "announce.options", "--to"),
        ({"to": "yahoo"}, "announce.engine", "--to bing"),
        ({"to": "ping"}, "announce.engine", "gone"),
        ({"to": "altavista"}, "announce.engine", "choose from robots"),
        ({"to": "indexnow"}, "announce.options", "--changes"),
        ({"to": "indexnow", "changes": "a", "urls": "b"}, "announce.options", "one of them"),
        ({"to": "bing", "status": True}, "announce.options", "google"),
        ({"to": "bing", "check": True}, "announce.options", "robots"),
        ({"to": "yandex", "timeout": 0}, "announce.options", "--timeout"),
        ({"to": "yandex", "timeout": float("nan")}, "announce.options", "--timeout"),
        ({"to": "yandex", "retries": -1}, "announce.options", "--retries"),
        ({"to": "yandex", "max_wait": float("inf")}, "announce.options", "--max-wait"),
        ({"to": "yandex", "endpoint": {"altavista": "x"}}, "announce.options", "--endpoint"),
        ({"to": ["bing", "yandex"], "key_file": "x"}, "announce.options", "--key-file ENGINE="),
        ({"to": ["bing", "yandex"], "property": "x"}, "announce.options", "--property ENGINE="),
    ],
)
def test_wrong_options(site, options, code, words):
    with pytest.raises(urlset.ConfigError) as caught:
        urlset.announce(site, **options)
    assert caught.value.code == code and words in str(caught.value)


def test_nothing_is_sent_when_one_engine_cannot_be_prepared(site, engine, tmp_path, monkeypatch):
    """robots.txt does not change if a key is missing for another engine."""
    path = tmp_path / "robots.txt"
    with pytest.raises(urlset.ConfigError):
        urlset.announce(site, to=["robots", "bing"], robots=path, endpoint=engine.url)
    assert not path.exists() and engine.asked == []


def test_the_public_names():
    assert callable(urlset.announce) and urlset.AnnounceReport().ok
    importlib.import_module("urlset.announce.client")
    # the package of the same name does not replace the function
    assert callable(urlset.announce)
    assert Path(urlset.announce.__code__.co_filename).name == "__init__.py"
