"""A set of many hosts: each of them is announced by its folder."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
import urlset

from .conftest import INDEXNOW_KEY, Reply, page, run_cli, sent, write_list
from .test_google import google

pytestmark = pytest.mark.usefixtures("keyed", "quick")
HOSTS = ["a.example", "b.example", "c.example:8443"]


@pytest.fixture
def built(tmp_path) -> Path:
    import pyarrow as pa

    out = tmp_path / "out"
    rows = [page(number, host) for number in range(100) for host in HOSTS[: 2 + number % 2]]
    options = {"site": "https://a.example", "hosts": "any", "split_by": "@host", "max_urls": 40}
    urlset.build(pa.table({"loc": rows}), out=out, sitemap_url="https://{host}/s/", **options)
    return out


def folder_of(built: Path, host: str) -> Path:
    manifest = json.loads((built / ".urlset/manifest.json").read_text())
    (path,) = {s["path"].partition("/")[0] for s in manifest["shards"] if s["host"] == host}
    return built / path


@pytest.mark.parametrize("host", HOSTS)
def test_robots_and_the_consoles(built, engine, tmp_path, host, account):
    folder = folder_of(built, host)
    index = f"https://{host}/s/sitemap.xml"
    robots = tmp_path / "robots.txt"
    assert urlset.announce(folder, to="robots", robots=robots).ok
    assert f"Sitemap: {index}\n" in robots.read_text()
    engine.says(Reply(200, robots.read_bytes()))
    tell = {"endpoint": engine.url, "timeout": 5, "retries": 1}
    assert urlset.announce(folder, to="robots", check=True, **tell).ok
    engine.says(Reply(200, b'{"d":null}'))
    assert urlset.announce(folder, to="bing", **tell).ok
    assert engine.asked[-1].json() == {"siteUrl": f"https://{host}", "feedUrl": index}
    engine.says(Reply(201, b'{"sitemap_id":"x"}'))
    assert urlset.announce(folder, to="yandex", yandex_user="7", **tell).ok
    assert engine.asked[-1].json() == {"url": index}
    name, _, port = host.partition(":")
    assert f"/hosts/https:{name}:{port or 443}/" in unquote(engine.asked[-1].path)
    google(engine, Reply(200))
    assert urlset.announce(folder, to="google", key_file={"google": account}, **tell).ok
    site = quote(f"https://{host}/", safe="")
    assert engine.asked[-1].path == f"/webmasters/v3/sites/{site}/sitemaps/{quote(index, safe='')}"
    # the served files are not by urlset
    assert {path.suffix for path in folder.iterdir()} == {".xml", ".gz"}


def test_changed_urls_of_one_host(built, engine, tmp_path):
    urls = write_list(tmp_path / "u.txt", [page(n, host) for n in range(9) for host in HOSTS])
    tell = {"to": "indexnow", "urls": urls, "endpoint": engine.url, "timeout": 5}
    report = urlset.announce(folder_of(built, "b.example"), **tell)
    assert sorted(sent(engine)) == [page(n, "b.example") for n in range(9)]
    assert report.outcomes and engine.asked[0].json()["key"] == INDEXNOW_KEY
    # more than half of this host's 100 URLs: the whole set is not for IndexNow
    write_list(urls, [page(n, "a.example") for n in range(60)])
    report = urlset.announce(folder_of(built, "a.example"), **tell)
    assert not report.ok and len(engine.asked) == 1


@pytest.mark.parametrize("name", ["robots", "google", "bing", "yandex"])
def test_all_at_once_says_what_to_do(built, name):
    ended = run_cli(built, "--to", name, *(["--check"] if name == "robots" else []))
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "[announce.many_hosts]" in ended.stderr and f"{built}/a.example" in ended.stderr


def test_an_index_file_and_a_state_elsewhere(built, tmp_path, monkeypatch):
    from urlset.announce.target import read_target

    folder = folder_of(built, "a.example")
    whole = read_target(folder)
    assert read_target(folder / "sitemap.xml") == whole
    assert (whole.site, whole.urls, whole.derived) == ("https://a.example/", 100, False)
    assert whole.state == built.resolve() / ".urlset/announce/a.example"
    (built / ".urlset").rename(tmp_path / "state")
    moved = read_target(folder, state=tmp_path / "state")
    assert (moved.indexes, moved.state) == (whole.indexes, tmp_path / "state/announce/a.example")
    monkeypatch.chdir(folder)
    assert read_target(Path(), state=tmp_path / "state").indexes == whole.indexes


def test_a_folder_of_anybody_beside_the_hosts(built):
    from urlset.announce.target import read_target

    other = built / "other"
    other.mkdir()
    index = (built / "a.example/sitemap.xml").read_text().replace("a.example", "x.example")
    (other / "map.xml").write_text(index)
    found = read_target(other)
    assert found.indexes == ("https://x.example/s/map.xml",) and found.derived
    assert found.state == other / ".urlset/announce"


@pytest.mark.parametrize("url", [None, 7, "ftp://x/", "https://a.example/\r\nX: y"])
def test_a_hostile_manifest(built, url):
    from urlset.announce.target import read_target

    path = built / ".urlset/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["indexes"][0]["url"] = url
    path.write_text(json.dumps(manifest))
    wanted = "announce.bad_url" if isinstance(url, str) else "announce.manifest"
    with pytest.raises((urlset.ConfigError, urlset.InputError)) as caught:
        read_target(built / "a.example")
    assert caught.value.code == wanted and str(caught.value).isprintable()
