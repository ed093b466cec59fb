"""The judgement of a page: headers and HTML of all sorts, and the shortcut for faultless pages."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("aiohttp")
pytest.importorskip("lxml")

from conftest import ROOT
from multidict import CIMultiDict
from urlset.audit.page import Rules, comparable, is_plain, judge
from urlset.audit.report import CODES
from urlset.errors import ConfigError

LOC = "https://www.shop.example/p/1"


def test_the_documentation_has_all_codes() -> None:
    text = (ROOT / "docs" / "audit.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|.*\| (yes|no) \|$", text, re.MULTILINE)
    assert rows == [
        (name, code.severity, "yes" if code.drop else "no") for name, code in CODES.items()
    ]


def facts(
    text: str | bytes | None, *headers: tuple[str, str], lastmod: str | None = None, **rules: Any
) -> list[tuple[str, str | None]]:
    """The codes and targets of a page."""
    html = text.encode() if isinstance(text, str) else text
    given = CIMultiDict([("Content-Type", "text/html"), *headers])
    found = judge(LOC, given, html, Rules(**rules), lastmod)
    return [(fact.code, fact.target) for fact in found]


def head(inner: str, body: str = "") -> str:
    return f"<!doctype html><html><head><title>x</title>{inner}</head><body>{body}</body></html>"


NOINDEX = [("noindex", None)]
NOINDEX_META = '<meta name="robots" content="noindex">'


@pytest.mark.parametrize(
    ("values", "blocked"),
    [
        (["noindex"], True),
        (["NoIndex , nofollow"], True),
        (["none"], True),
        (["nofollow", "max-snippet: 20, noindex"], True),
        (["googlebot: noindex"], True),
        (["Googlebot: nofollow, NOINDEX"], True),
        (["otherbot: noindex, nofollow"], False),
        (["otherbot: noindex", "googlebot: none"], True),
        (["otherbot: nofollow, googlebot: noindex"], True),
        (["unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"], True),
        (["unavailable_after: 25 Jun 2030 15:00:00 PST"], False),
        (["index, follow, all"], False),
        (["noindexing"], False),
        (["unavailable_after: Wed, 25 Jun 2099 15:00:00 GMT, noindex"], True),
        (["unavailable_after: Wed, 25 Jun 2099 15:00:00 GMT"], False),
        (["unavailable_after: Wed, 25 Jun 2014 15:00:00 GMT"], True),
        (["nofollow, Unavailable_After: 25 Jun 2014 15:00:00 PST"], True),
        (["googlebot: unavailable_after: Friday, 25-Jun-10 15:00:00 EST"], True),
        (["otherbot: unavailable_after: 2014-06-25T15:00:00Z"], False),
        (["unavailable_after: 2014-06-25T15:00:00Z"], True),
        (["unavailable_after: soon"], False),
        ([""], False),
        ([",,:,:"], False),
    ],
)
def test_the_header(values: list[str], blocked: bool) -> None:
    found = facts(head(""), *(("x-robots-tag", value) for value in values))
    assert found == (NOINDEX if blocked else [])


@pytest.mark.parametrize(
    ("inner", "blocked"),
    [
        ('<meta name="robots" content="noindex">', True),
        ("<META NAME=ROBOTS CONTENT='NOINDEX,NOFOLLOW'>", True),
        ('<meta content="none" name="robots">', True),
        ('<meta name="GoogleBot" content="follow; noindex">', True),
        ('<meta name="robots" content="no&#105;ndex">', True),
        ('<meta name="bingbot" content="noindex">', False),
        ('<meta name="robots" content="index">', False),
        ('<!-- <meta name="robots" content="noindex"> -->', False),
        ('<script>"<meta name=robots content=noindex>"</script>', False),
        ('<noscript><meta name="robots" content="noindex"></noscript>', True),
        ('<meta name="description" content="about noindex">', False),
        ('<meta name="robots" content="index"><meta name="robots" content="noindex">', True),
        ('<meta name="robots">', False),
        ('<meta name="robots" content="unavailable_after: 25-Aug-2014 15:00:00 EST">', True),
        ('<meta name="robots" content="follow, unavailable_after: 2014-08-25">', True),
        ('<meta name="robots" content="unavailable_after: 2099-08-25">', False),
        ('<template><meta name="robots" content="noindex"></template>', False),
        (
            '<template><p><template></template></p><meta name="robots" content="none"></template>',
            False,
        ),
        ('<textarea><meta name="robots" content="noindex"></textarea>', False),
        ('<style><meta name="robots" content="noindex"></style>', False),
    ],
)
def test_the_element(inner: str, blocked: bool) -> None:
    assert facts(head(inner)) == (NOINDEX if blocked else [])
    # search engines obey it in the body, too
    assert facts(head("", inner)) == (NOINDEX if blocked else [])


def test_another_crawler() -> None:
    page = head('<meta name="bingbot" content="noindex">')
    assert facts(page, bot="bingbot") == NOINDEX
    assert facts(head(""), ("X-Robots-Tag", "bingbot: noindex"), bot="bingbot") == NOINDEX


@pytest.mark.parametrize(
    ("href", "target"),
    [
        (LOC, None),
        ("/p/1", None),
        ("HTTPS://WWW.shop.example:443/p/%31#top", None),
        (" /p/1 ", None),
        ("", None),
        ("http://[", None),
        ("/p/2", "https://www.shop.example/p/2"),
        ("/p/1?a=1&amp;b=2", "https://www.shop.example/p/1?a=1&b=2"),
        ("http://www.shop.example/p/1", "http://www.shop.example/p/1"),
        ("//m.shop.example/p/1", "https://m.shop.example/p/1"),
        ("/P/1", "https://www.shop.example/P/1"),
        ("https://www.shop.example/a/../p/%2e/1", None),
        ("https://www.shop.example/p/1/.", "https://www.shop.example/p/1/."),
    ],
)
def test_canonical(href: str, target: str | None) -> None:
    expected = [] if target is None else [("canonical", target)]
    assert facts(head(f'<link rel="canonical" href="{href}">')) == expected
    assert facts(head(f"<LINK HREF='{href}' REL='alternate Canonical'/>")) == expected
    if href and "amp;" not in href:
        assert facts(head(""), ("Link", f'<{href}>; rel="canonical"')) == expected
        assert facts(head(""), ("Link", f"</x>; rel=next, <{href}>; REL=canonical")) == expected


def test_canonical_elsewhere_in_the_page() -> None:
    link = '<link rel="canonical" href="/other">'
    long = '<meta property="x" content="y">' * 5_000
    assert facts(head(long + link)) == [("canonical", "https://www.shop.example/other")]
    # ignored: in the body, in a comment, in a script; contradictions
    for page in (
        head("", link),
        head(f"<!-- {link} -->"),
        head(f"<script>{link}</script>"),
        head(f'{link}<link rel="canonical" href="{LOC}">'),
    ):
        assert facts(page) == []
    # what looks like the beginning of the body
    for other in ("<!-- <body> -->", "<script>'<body>'</script>", "<title><body></title>"):
        assert facts(head(other + link)) == [("canonical", "https://www.shop.example/other")]
        assert facts(head(other + '<meta name="robots" content="none">')) == NOINDEX
    # a head that begins late, and a base
    assert facts(f'<base href="/a/"><link rel=canonical href="b">{head("")}') == [
        ("canonical", "https://www.shop.example/a/b")
    ]


def test_canonical_that_is_none() -> None:
    link, own = '<link rel="canonical" href="/other">', f'<link rel="canonical" href="{LOC}">'
    assert facts(head(f"<template>{link}</template>")) == []
    # an element that is not of the head begins the body
    assert facts(head(f"<x-banner></x-banner>{link}")) == []
    assert facts(head(f'<base href=" /p/ ">{link}<x-banner>')) == [
        ("canonical", "https://www.shop.example/other")
    ]
    # behind the end tags a browser still adds to the head and to the body
    assert facts(f"<html><head></head>\n{link}<body>x</body></html>") == [
        ("canonical", "https://www.shop.example/other")
    ]
    assert facts(f"<html><head></head>text{link}<body>x</body></html>") == []
    assert facts(f"<body>x</BODY ></html>{NOINDEX_META}") == NOINDEX
    # the document contradicts the header, in the form that is not parsed without it, too
    for spelling in (own, "<link rel=canonical href=/p/1>"):
        assert facts(head(spelling), ("Link", "</other>; rel=canonical")) == []


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ('</x>; title="a, <b>; rel=canonical"; rel="next"', None),
        ('</x>; title="a \\"; rel=canonical; \\""; rel=next', None),
        ('</x>; rel=next; rel=canonical', None),
        ('</x>; rel=canonical; anchor="/other"', None),
        ('</x>; rel="next', None),
        ('</a>; rel=preload; as=style, </b>; title="<c>, d"; rel="x canonical"', "b"),
        ("</a,b>;rel=canonical", "a,b"),
        ('</a>; rel ; , </b> ; REL = "Canonical"', "b"),
    ],
)  # fmt: skip
def test_a_link_header(value: str, target: str | None) -> None:
    expected = [] if target is None else [("canonical", f"https://www.shop.example/{target}")]
    assert facts(head(""), ("Link", value)) == expected


@pytest.mark.parametrize(
    ("inner", "target"),
    [
        ('<meta http-equiv="refresh" content="0; url=/new">', "new"),
        ("<META HTTP-EQUIV=Refresh CONTENT=\"0;URL='/new' \">", "new"),
        ('<base href="/b/"><meta http-equiv=refresh content="0.5, new">', "b/new"),
        ('<meta http-equiv="re&#102;resh" content="00 /new?a=1&amp;b=2">', "new?a=1&b=2"),
        ('<meta http-equiv="refresh" content="5; url=/new">', None),
        ('<meta http-equiv="refresh" content="0">', None),
        ('<meta http-equiv="refresh" content="0; url=/p/%31#a">', None),
        ('<meta http-equiv="refresh" content="0; url=javascript:x">', None),
        ('<noscript><meta http-equiv="refresh" content="0; url=/no-js"></noscript>', None),
        ('<template><meta http-equiv="refresh" content="0; url=/x"></template>', None),
        ('<meta name="refresh" content="0; url=/new">', None),
    ],
)
def test_a_refresh_is_a_redirect(inner: str, target: str | None) -> None:
    expected = [] if target is None else [("redirect", f"https://www.shop.example/{target}")]
    assert facts(head(inner)) == expected


@pytest.mark.parametrize(
    ("encoding", "header", "meta"),
    [
        ("utf-8", "", ""),
        ("utf-8", "utf-8", "iso-8859-1"),
        ("utf-8", "iso-8859-1", ""),  # what is UTF-8 was meant so
        ("utf-8-sig", "", ""),
        ("cp1252", "", ""),
        ("iso-8859-15", "ISO-8859-15", ""),
        ("iso-8859-15", "", "ISO-8859-15"),
        ("mac-roman", "mac-roman", "utf-8"),
        ("utf-16", "", ""),
        ("utf-16-be", "utf-16be", ""),
        ("cp1252", "punycode", ""),
        ("cp1252", "utf-16nonsense", ""),
        ("cp1252", "hex", ""),
        ("cp1252", "windows-0", ""),
        ("ascii", "utf-16", ""),
    ],
)
def test_the_encoding_of_a_page(encoding: str, header: str, meta: str) -> None:
    text = "ascii" if encoding == "ascii" else "K\xe4se"
    charset = f'<meta charset="{meta}">' if meta else ""
    page = head(f'{charset}<link rel="canonical" href="/{text}">', f"{text} is sold out")
    kind = f"text/html; charset={header}" if header else "text/html"
    loc = "https://www.shop.example/" + quote(text)

    def found(loc: str) -> list[tuple[str, str | None]]:
        rules = Rules(soft_404=f"{text} IS")
        given = CIMultiDict([("Content-Type", kind)])
        return [
            (fact.code, fact.target) for fact in judge(loc, given, page.encode(encoding), rules)
        ]

    assert found(loc) == [("soft_404", None)]
    assert found(f"{loc}/2") == [("canonical", f"https://www.shop.example/{text}"),
                                 ("soft_404", None)]  # fmt: skip


def test_a_page_in_utf_16() -> None:
    page = head('<link rel="canonical" href="/other">')
    for encoding in ("utf-16", "utf-16-le"):
        html, kind = page.encode(encoding), ("Content-Type", f"text/html; charset={encoding}")
        given = CIMultiDict([kind])
        found = [fact.code for fact in judge(LOC, given, html, Rules())]
        assert found == ["canonical"], encoding


def test_other_types_and_error_pages() -> None:
    assert facts(None, ("X-Robots-Tag", "noindex")) == [*NOINDEX, ("content_type", None)]
    soft = {"soft_404": "no longer (available|sold)"}
    assert facts(head("", "It is No Longer SOLD."), **soft) == [("soft_404", None)]
    assert facts(head("", "It is no longer on sale."), **soft) == []
    # an expression that takes exponential time where there is backtracking
    assert facts("a" * 100_000, soft_404="(a*)*b") == []


@pytest.mark.parametrize("pattern", ["(", "a{99999}", r"(?=x)", "[z-a]"])
def test_an_expression_that_is_none(pattern: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Rules(soft_404=pattern).checked()
    assert caught.value.code == "config.soft_404"


@pytest.mark.parametrize(
    ("inner", "header", "differs"),
    [
        ('<meta property="article:modified_time" content="2026-01-05T10:00:00+01:00">', None, True),
        ('<meta property="article:modified_time" content="2026-03-02T23:00:00Z">', None, False),
        ('<script type="application/ld+json">{"dateModified": "2025-01-01"}</script>', None, True),
        ("", "Mon, 02 Mar 2026 08:00:00 GMT", False),
        ("", "Sun, 01 Feb 2026 08:00:00 GMT", True),
        ("", "nonsense", False),
        ('<meta property="article:modified_time" content="soon">', None, False),
        ("", None, False),
    ],
)
def test_lastmod(inner: str, header: str | None, differs: bool) -> None:
    headers = [("Last-Modified", header)] if header else []
    found = facts(head(inner), *headers, lastmod="2026-03-02", check_lastmod=True)
    assert found == ([("lastmod", None)] if differs else [])
    assert facts(head(inner), *headers, lastmod="2026-03-02") == []


def test_equivalent_urls() -> None:
    same = ["https://a.de/%7eb?x=%c3%a4", "HTTPS://A.de:443/~b?x=%C3%A4#c", "https://a.de/~b?x=ä"]
    assert len({comparable(url) for url in same}) == 1
    assert comparable("https://a.de") == comparable("https://a.de/")
    assert comparable("https://a.de/?") != comparable("https://a.de/a")
    assert comparable("mailto:a") is None
    assert comparable("https://a.de/\udcff") is None


class Tags(HTMLParser):
    """The start tags of a document and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(reversed(attrs))))


PARTS = [
    "<head>", "</head>", "<body>", "<BODY class=x>", "</body>", "<!--", "-->", "<script>",
    "</script>", "<title>", "</title>", "<meta ", "<META ", "name=robots ", "name='googlebot' ",
    "content=noindex ", 'content="NONE" ', "content=no&#105;ndex ", ">", "<", "/>", "<link ",
    "rel=canonical ", 'rel="canonical" ', f'href="{LOC}"', "href=/other ", "none", "noindex",
    "canonical", "http-equiv=refresh ", 'content="0;/x"',
    "<base href=/x/>", "<template>", "<svg>", "</svg>", "<p>", "text ", "\0", "&#99;",
    f'<link rel="canonical" href="{LOC}">', '<link rel="canonical" href="/other">',
    '<meta name="robots" content="noindex">', '<meta name="robots" content="index">',
]  # fmt: skip


@settings(deadline=None, max_examples=1_500)
@given(st.lists(st.sampled_from(PARTS), max_size=14))
@example(['<link rel="canonical" href="/other">', f'<link rel="canonical" href="{LOC}">'])
@example(["<body>", "<meta ", "name=robots ", "content=noindex ", ">"])
def test_a_page_that_is_not_parsed_has_no_finding(parts: list[str]) -> None:
    html = "".join(parts).encode()
    if not is_plain(html, LOC):
        return
    # another parser finds neither noindex nor another canonical
    oracle = Tags()
    oracle.feed(html.replace(b"\0", b"").decode())
    oracle.close()
    for tag, about in oracle.found:
        if tag == "meta" and (about.get("name") or "").lower() in ("robots", "googlebot"):
            words = re.split(r"[\s,]+", (about.get("content") or "").lower())
            assert not {"noindex", "none"} & set(words)
        assert not (tag == "meta" and about.get("http-equiv") == "refresh")
        if tag == "link" and "canonical" in (about.get("rel") or "").lower().split():
            assert about.get("href") in (LOC, None, "")


@settings(deadline=None, max_examples=500)
@given(st.binary(max_size=400) | st.lists(st.sampled_from(PARTS)).map("".join).map(str.encode))
def test_any_bytes_are_judged(html: bytes) -> None:
    for _ in judge(
        LOC, CIMultiDict(), html, Rules(soft_404="x+", check_lastmod=True), "2026-01-01"
    ):
        pass


@pytest.mark.parametrize(
    "part",
    ["<div>", "<b>", "<a>", "<p><b><i><a>", "<table>", "<template>", "<svg><desc>", "</p>", "<!--",
     "<b><p></b>", "&notin", "<meta name=robots content=x>", "<link rel=canonical href=/x>", "<",
     "<select><option>", "<p " + " ".join(f"a{n}" for n in range(10_000)), "<a\0", "<![CDATA["],
)  # fmt: skip
def test_html_that_takes_long(part: str) -> None:
    html = ("noindex" + part * ((1 << 20) // len(part))).encode()
    started = time.monotonic()
    facts(html, soft_404="x", check_lastmod=True, lastmod="2026-01-01")
    assert time.monotonic() - started < 10
