"""Unusual but readable encodings, ends of lines, DOCTYPEs and addresses."""

from __future__ import annotations

from pathlib import Path

import pytest
import urlset
from lxml import etree

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
HOST = "https://www.shop.example"


def document(loc: str, head: str) -> str:
    return f'{head}<urlset xmlns="{NS}"><url><loc>{loc}</loc></url></urlset>'


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("iso-8859-1", "".join(map(chr, range(0xA0, 0x100)))),
        ("iso-8859-1", "\x81\x9f"),
        ("windows-1252", "€äŒ™"),
        ("iso-8859-15", "€ä"),
        ("shift_jis", "漢字"),
        ("koi8-r", "привет"),
        ("us-ascii", "a"),
        ("utf-16", "漢ä𝄞"),
    ],
)
def test_a_declared_encoding_is_read(encoding: str, text: str, tmp_path: Path) -> None:
    loc = f"{HOST}/{text}/" + "x" * 300_000 + text
    data = document(loc, f'<?xml version="1.0" encoding="{encoding}"?>').encode(encoding)
    path = tmp_path / "sitemap.xml"
    path.write_bytes(data)
    assert etree.fromstring(data)[0][0].text == loc
    assert urlset.read(path).read_all()["loc"].to_pylist() == [loc]
    counts = urlset.verify(path).counts
    assert ("xml.encoding" in counts) == (encoding != "us-ascii")
    assert "utf8.invalid" not in counts or encoding == "utf-16"


def test_what_is_not_in_the_declared_encoding_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    head = '<?xml version="1.0" encoding="shift_jis"?>'
    path.write_bytes(document(f"{HOST}/@", head).encode().replace(b"@", b"\x81\x20"))
    assert "utf8.invalid" in urlset.verify(path).counts
    with pytest.raises(urlset.InputError):
        urlset.read(path).read_all()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\r", "\r\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines_of_a_text_sitemap(end: str, encoding: str, tmp_path: Path) -> None:
    locs = [f"{HOST}/{n}" for n in range(20_000)]
    path, other = tmp_path / "sitemap.txt", tmp_path / "other.txt"
    path.write_bytes((end.join(locs) + end).encode(encoding))
    other.write_text("\n".join(locs[1:]))
    assert urlset.read(path).read_all()["loc"].to_pylist() == locs
    report = urlset.verify(path)
    assert report.urls == 20_000 and not report.total("warning")
    changes = urlset.diff(other, path)
    assert changes.read_all()["loc"].to_pylist() == locs[:1]


def test_lines_are_counted_whatever_ends_them(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.txt"
    path.write_bytes(f"{HOST}/1\r{HOST}/2\r\n\n/relative\r".encode())
    assert [p.line for p in urlset.verify(path).problems if p.code == "loc.relative"] == [4]


@pytest.mark.parametrize(
    ("doctype", "code", "ok"),
    [
        ("<!DOCTYPE urlset>", "xml.plain_doctype", True),
        ("<!DOCTYPE  urlset >", "xml.plain_doctype", True),
        ("<!DOCTYPE urlset []>", "xml.doctype", False),
        ('<!DOCTYPE urlset [<!ENTITY a "b">]>', "xml.doctype", False),
        ('<!DOCTYPE urlset SYSTEM "file:///etc/passwd">', "xml.doctype", False),
        ("<!DOCTYPE urlset><!DOCTYPE urlset>", "xml.doctype", False),
    ],
)
def test_doctypes(doctype: str, code: str, ok: bool, tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    path.write_text(document(f"{HOST}/page", doctype))
    report = urlset.verify(path)
    assert report.counts[code] == 1 and report.ok is ok
    if ok:
        assert not urlset.verify(path, strict=True).ok
        assert urlset.read(path).read_all().num_rows == 1


def test_addresses(tmp_path: Path) -> None:
    (tmp_path / "sitemap.xml").write_text(
        f'<sitemapindex xmlns="{NS}"><sitemap><loc>{HOST}/a.xml</loc></sitemap></sitemapindex>'
    )
    entries = "".join(
        f"<url><loc>{loc}</loc></url>" for loc in (f"{HOST}?a=1", f"{HOST}", "mailto:x@a.example")
    )
    (tmp_path / "a.xml").write_text(f'<urlset xmlns="{NS}">{entries}</urlset>')
    assert urlset.verify(tmp_path).counts == {"loc.scheme": 1}


OTHERS = ["one.example", "two.example:81"]


def test_other_hosts_are_told_once(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.txt"
    locs = [f"{HOST}/{n}" for n in range(9)]
    locs += [f"https://{host}/page-{n}" for n in range(5) for host in OTHERS]
    path.write_text("\n".join(locs))
    problems = urlset.verify(path).problems
    assert [p.code for p in problems] == ["loc.other_host"] * 2
    assert [p.message.split(";")[0] for p in problems] == [
        "5 URLs on https://one.example", "5 URLs on https://two.example:81",
    ]  # fmt: skip
    all_of_them = ["www.shop.example", *OTHERS]
    for hosts in ("any", ",".join(all_of_them), all_of_them):
        assert urlset.verify(path, hosts=hosts).counts == {}
    assert urlset.verify(path, hosts="www.shop.example,one.example").counts == {"loc.other_host": 1}
    with pytest.raises(urlset.ConfigError):
        urlset.verify(path, hosts="a b")
