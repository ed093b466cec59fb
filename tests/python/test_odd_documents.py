"""Unusual documents compared with lxml: what it refuses is an error, what it reads is read."""

from __future__ import annotations

from pathlib import Path

import pytest
import urlset
from lxml import etree

SM = "http://www.sitemaps.org/schemas/sitemap/0.9"
IMAGE = "http://www.google.com/schemas/sitemap-image/1.1"
XHTML = "http://www.w3.org/1999/xhtml"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
PAGE = "https://www.shop.example/a"
URL = f"<url><loc>{PAGE}</loc></url>"


def whole(inner: str = URL, attributes: str = "") -> str:
    return f'{DECLARATION}<urlset xmlns="{SM}" {attributes}>{inner}</urlset>'


def loc(text: str) -> str:
    return whole(f"<url><loc>{text}</loc></url>")


def as_(encoding: str, declared: str) -> bytes:
    return f'<?xml version="1.0" encoding="{declared}"?><urlset xmlns="{SM}">{URL}</urlset>'.encode(
        encoding
    )


ENTITIES = [
    "&#0;", "&#x0;", "&#xD800;", "&#x110000;", "&#99999999999999999999;", "&#-1;", "&#;", "&;",
    "&#x;", "&amp", "&lt", "&nbsp;", "&#38;#38;", "&#x26;amp;", "&amp;amp;", "&#xFFFE;", "&AMP;",
    "&#65;", "&#x1F6D2;", "&apos;", "<![CDATA[?a=1&b=2]]>", "<![CDATA[]]>", "]]>", "<!-- c -->",
    "<?p i?>", "<!-- a -- b -->", "\0", "\ufffe", "a\rb", "&#10;",
]  # fmt: skip
LINK = f'<xhtml:link rel="alternate" hreflang="de" href="{PAGE}"/>'
TWICE = LINK.replace("rel=", 'rel="x" rel=')
DOCUMENTS = {
    **{f"entity {text!r}": loc(PAGE + text) for text in ENTITIES},
    "prefix": f'<s:urlset xmlns:s="{SM}"><s:url><s:loc>{PAGE}</s:loc></s:url></s:urlset>',
    "two names": (
        f'<s:urlset xmlns:s="{SM}" xmlns="{SM}"><s:url><loc>{PAGE}</loc></s:url></s:urlset>'
    ),
    "default swapped": (
        f'<s:urlset xmlns:s="{SM}" xmlns="{IMAGE}"><s:url><s:loc>{PAGE}</s:loc>'
        f"<image><loc>{PAGE}/i</loc></image></s:url></s:urlset>"
    ),
    "swapped inside": whole(
        f'<url><loc>{PAGE}</loc><image xmlns="{IMAGE}"><loc>{PAGE}/i</loc></image></url>'
    ),
    "prefixes that lie": whole(
        f"<url><loc>{PAGE}</loc><xhtml:image><xhtml:loc>{PAGE}/i</xhtml:loc></xhtml:image></url>",
        f'xmlns:xhtml="{IMAGE}" xmlns:image="{XHTML}"',
    ),
    "prefix bound again": whole(
        f'<url xmlns:image="urn:x"><loc>{PAGE}</loc>'
        f"<image:image><image:loc>{PAGE}/i</image:loc></image:image></url>",
        f'xmlns:image="{IMAGE}"',
    ),
    "namespace taken away": whole(f'<url xmlns=""><loc>{PAGE}</loc></url>'),
    "prefix taken away": whole(attributes='xmlns:p=""'),
    "xmlns bound": whole(attributes='xmlns:xmlns="urn:x"'),
    "xml bound": whole(attributes='xmlns:xml="urn:x"'),
    "attribute twice": whole(attributes='a="1" a="2"'),
    "attribute twice by namespace": whole(
        attributes='xmlns:a="urn:x" xmlns:b="urn:x" a:q="1" b:q="2"'
    ),
    "link with one twice": whole(
        f"<url><loc>{PAGE}</loc>{TWICE}</url>",
        f'xmlns:xhtml="{XHTML}"',
    ),
    "schema location": whole(
        attributes=f'xmlns:xsi="{XSI}" xsi:schemaLocation="{SM} {SM}/sitemap.xsd"'
    ),
    "byte order mark": "\ufeff" + whole(),
    "two of them": "\ufeff\ufeff" + whole(),
    "mixed newlines": whole(f"\r\n{URL}\r{URL}\n\r"),
    "nulls behind": whole() + "\0" * 9,
    "late declaration": "\n" + whole(),
    "declaration inside": whole(DECLARATION + URL),
    "quotes": whole(attributes="a='\"' b=\"'\""),
    "attribute without quotes": whole(attributes="a=x"),
    "attribute without value": whole(attributes="a"),
    "utf-16": as_("utf-16", "utf-16"),
    "utf-16 undeclared": whole().encode("utf-16"),
    "utf-16 without mark": as_("utf-16-le", "utf-16-le"),
    "declared latin-1": as_("latin-1", "iso-8859-1"),
    "declared utf-16": as_("utf-8", "utf-16"),
    "ebcdic": as_("cp037", "cp037"),
    "lone surrogate": loc(PAGE + "\ud800").encode("utf-8", "surrogatepass"),
}

#: faults of namespaces only: an error, but the file is read
READ_ALL_THE_SAME = {
    "prefix taken away", "xmlns bound", "xml bound", "attribute twice by namespace",
}  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
def test_as_lxml_sees_it(name: str, tmp_path: Path) -> None:
    document = DOCUMENTS[name]
    data = document.encode() if isinstance(document, str) else document
    path = tmp_path / "sitemap.xml"
    path.write_bytes(data)
    report = urlset.verify(path, duplicates=False)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        assert report.total("error"), report.counts
        if name not in READ_ALL_THE_SAME:
            with pytest.raises(urlset.InputError):
                urlset.read(path).read_all()
        urlset.read(path, lenient=True).read_all()
        return
    encoding = (root.getroottree().docinfo.encoding or "utf-8").lower()
    if encoding != "utf-8":
        # legal XML, but the protocol requires UTF-8
        assert set(report.counts) & {"xml.encoding", "utf8.invalid", "file.not_sitemap"}
        return
    assert not any(code.startswith(("xml.", "utf8.invalid")) for code in report.counts)
    entries = [entry for entry in root if entry.tag == f"{{{SM}}}url"]
    wanted = ["".join(entry.find(f"{{{SM}}}loc").itertext(tag=etree.Element)).strip(" \t\r\n")
              for entry in entries if entry.find(f"{{{SM}}}loc") is not None]  # fmt: skip
    images = [[image.text for image in entry.iter(f"{{{IMAGE}}}loc")] or None for entry in entries]
    table = urlset.read(path).read_all()
    assert table["loc"].to_pylist() == wanted
    assert table["images"].to_pylist() == images
