"""robots.txt: the block of Sitemap lines, and the check of the live file."""

from __future__ import annotations

import os
import stat
import urllib.robotparser
from pathlib import Path

import pytest
import urlset

from .conftest import Reply, make_site

ONE = "https://www.example.com/sitemap.xml"
BLOCK = b"# urlset begin\nSitemap: https://www.example.com/sitemap.xml\n# urlset end\n"


def put(site: Path, path: Path, **options):
    return urlset.announce(site, to="robots", robots=path, **options)


def test_a_new_file(site, tmp_path):
    path = tmp_path / "robots.txt"
    report = put(site, path)
    assert report.ok and report.outcomes[0].detail == "made"
    assert path.read_bytes() == BLOCK
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", BLOCK),
        (b"User-agent: *\nDisallow: /x\n", b"User-agent: *\nDisallow: /x\n\n" + BLOCK),
        (b"User-agent: *", b"User-agent: *\n\n" + BLOCK),
        (
            b"User-agent: *\r\nDisallow:\r\n",
            b"User-agent: *\r\nDisallow:\r\n\r\n" + BLOCK.replace(b"\n", b"\r\n"),
        ),
        (b"a\rb\r", b"a\rb\r\n" + BLOCK),
        (b"\xef\xbb\xbfUser-agent: *\n", b"\xef\xbb\xbfUser-agent: *\n\n" + BLOCK),
        (b"# caf\xe9 in Latin-1\n", b"# caf\xe9 in Latin-1\n\n" + BLOCK),
        # an older block is replaced in its place
        (
            b"a: b\n# urlset begin\nSitemap: https://old/\nmine?\n# urlset end\nc: d",
            b"a: b\n" + BLOCK + b"c: d",
        ),
        (b"# urlset begin\n# urlset end", BLOCK[:-1]),
        (b"  # urlset begin \t\n\n# urlset end\n\n", BLOCK + b"\n"),
        # an existing line is not repeated
        (b"sItEmAp :  https://www.example.com/sitemap.xml # mine\n", None),
        (b"Sitemap:https://www.example.com/sitemap.xml", None),
        (b"\xef\xbb\xbfSitemap: https://www.example.com/sitemap.xml\n", None),
        (
            b"# urlset begin\nSitemap: https://www.example.com/sitemap.xml\n# urlset end\n"
            b"Sitemap: https://www.example.com/sitemap.xml\n",
            b"Sitemap: https://www.example.com/sitemap.xml\n",
        ),
        # the value is compared unchanged, without its comment
        (
            b"Sitemap: https://www.example.com/SITEMAP.xml\n",
            b"Sitemap: https://www.example.com/SITEMAP.xml\n\n" + BLOCK,
        ),
        (
            b"#Sitemap: https://www.example.com/sitemap.xml\n",
            b"#Sitemap: https://www.example.com/sitemap.xml\n\n" + BLOCK,
        ),
    ],
)
def test_what_is_written(site, tmp_path, before, after):
    path = tmp_path / "robots.txt"
    path.write_bytes(before)
    path.chmod(0o640)
    assert put(site, path).ok
    after = before if after is None else after
    assert path.read_bytes() == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    # a second run writes nothing
    node = path.stat()
    again = put(site, path)
    assert again.outcomes[0].detail == "unchanged"
    assert path.read_bytes() == after
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (node.st_ino, node.st_mtime_ns)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".robots")] == []
    if b"\r" not in after.replace(b"\r\n", b""):
        parser = urllib.robotparser.RobotFileParser()
        parser.parse(after.decode("utf-8-sig", "replace").splitlines())
        assert ONE in (parser.site_maps() or [])


def test_several_indexes_below_a_folder(tmp_path):
    site = make_site(
        tmp_path / "o",
        sitemap_url="https://cdn.example.net/maps/",
        indexes=("shop map.xml", "shop-index-2.xml"),
    )
    path = tmp_path / "robots.txt"
    path.write_text("Sitemap: https://cdn.example.net/maps/shop-index-2.xml\n")
    put(site, path)
    assert path.read_text() == (
        "Sitemap: https://cdn.example.net/maps/shop-index-2.xml\n\n# urlset begin\n"
        "Sitemap: https://cdn.example.net/maps/shop%20map.xml\n# urlset end\n"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"# urlset begin\n", "robots.block"),
        (b"# urlset end\n", "robots.block"),
        (b"# urlset end\n# urlset begin\n", "robots.block"),
        (b"# urlset begin\n# urlset begin\n# urlset end\n# urlset end\n", "robots.block"),
        ("User-agent: *\n".encode("utf-16"), "robots.encoding"),
        (b"#" + b"x" * 512_000 + b"\n", "robots.too_large"),
        (b"#" * (17 << 20), "robots.too_large"),
    ],
)
def test_what_is_left_alone(site, tmp_path, text, code):
    path = tmp_path / "robots.txt"
    path.write_bytes(text)
    report = put(site, path)
    assert report.outcomes[0].code == code and report.exit_status == 3
    assert path.read_bytes() == text


def test_a_link_stays_a_link(site, tmp_path):
    real = tmp_path / "real" / "robots.txt"
    real.parent.mkdir()
    real.write_text("User-agent: *\n")
    link = tmp_path / "robots.txt"
    link.symlink_to(real)
    assert put(site, link).ok
    assert link.is_symlink() and real.read_bytes().endswith(BLOCK)


def test_a_folder_that_is_not_there(site, tmp_path):
    report = put(site, tmp_path / "no" / "robots.txt")
    assert report.outcomes[0].code == "robots.unwritable" and report.exit_status == 3


def test_a_dry_run_writes_nothing(site, tmp_path):
    shown: list[str] = []
    report = put(site, tmp_path / "robots.txt", dry_run=True, show=shown.append)
    assert report.ok and BLOCK.decode() in shown[0] and not (tmp_path / "robots.txt").exists()


def check(site, engine, **options):
    return urlset.announce(
        site, to="robots", check=True, endpoint=engine.url, timeout=5, retries=1, **options
    )


@pytest.mark.parametrize(
    ("body", "listed"),
    [
        (BLOCK, True),
        (BLOCK.replace(b"\n", b"\r"), True),
        (b"", False),
        (b"Sitemap: /sitemap.xml", False),
        (b"Disallow: " + ONE.encode(), False),
        (b"#" * 511_000 + b"\n" + BLOCK, True),
        (b"#" * 512_000 + b"\n" + BLOCK, False),
    ],
)
def test_check(site, engine, body, listed):
    engine.says(Reply(200, body))
    report = check(site, engine)
    assert report.ok == listed
    assert [(a.method, a.path) for a in engine.asked] == [("GET", "/robots.txt")]
    if not listed:
        assert report.exit_status == 1
        assert report.outcomes[0].code == "robots.not_listed"
        assert ONE in report.outcomes[0].detail


@pytest.mark.parametrize("status", [204, 401, 403, 404, 410])
def test_check_without_a_file(site, engine, status):
    engine.says(Reply(status, b"" if status == 204 else BLOCK))
    report = check(site, engine)
    assert not report.ok and f"HTTP {status}" in report.outcomes[0].detail


def test_check_follows_redirects_as_crawlers_do(site, engine, other, quick):
    other.says(Reply(200, BLOCK))
    engine.says(
        Reply(503),
        Reply(301, headers={"Location": "/elsewhere"}),
        Reply(302, headers={"Location": other.url + "/robots.txt"}),
    )
    assert check(site, engine).ok
    assert [a.path for a in engine.asked] == ["/robots.txt", "/robots.txt", "/elsewhere"]


@pytest.mark.parametrize("where", ["/robots.txt", "file:///etc/passwd", "//", "ftp://a/", ""])
def test_check_ends_with_redirects(site, engine, where):
    engine.says(Reply(301, headers={"Location": where}))
    report = check(site, engine)
    assert report.outcomes[0].code == "robots.redirect" and len(engine.asked) <= 6


def test_neither_path_nor_check(site):
    with pytest.raises(urlset.ConfigError) as caught:
        urlset.announce(site, to="robots")
    assert caught.value.code == "robots.no_path"
