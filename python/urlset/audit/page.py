"""The judgement of one page: its headers and its HTML to findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urljoin

from lxml import etree

from .. import _core
from ..errors import ConfigError, Error
from ..transport.retry import http_date

HTML = ("text/html", "application/xhtml+xml")
#: characters of a URL, a header or a value that a finding quotes
MAX_QUOTE = 500
#: directives of X-Robots-Tag with a value; any other name before a colon is that of a crawler
_WITH_VALUE = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)
_BLOCKING = frozenset({"noindex", "none"})
_LINK = re.compile(r"<([^<>]{0,4096})>([^<>]{0,4096})")
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_META_NONE = re.compile(rb"<meta[^<]*none")
_CUT = b'<meta name="urlset-cut">'
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
#: dates of JSON-LD and of meta elements
_JSON_DATE = re.compile(r'"dateModified"\s*:\s*"([^"]{4,40})"')
#: lastmod may differ from the date of the page by the time zone of a date without a time
TOLERANCE = timedelta(days=1)


class Fact(NamedTuple):
    """A finding without its page.

    Attributes:
        code: a key of :data:`.report.CODES`.
        target: a URL, where the code has one.
        detail: one line.
    """

    code: str
    target: str | None = None
    detail: str | None = None


class Rules(NamedTuple):
    """What pages are judged by.

    Attributes:
        bot: the crawler, in lower case.
        soft_404: a regular expression of RE2.
        check_lastmod: dates are compared.
    """

    bot: str = "googlebot"
    soft_404: str | None = None
    check_lastmod: bool = False

    def checked(self) -> Rules:
        """The same rules.

        Raises:
            ConfigError: ``config.soft_404``: not a regular expression of RE2.
        """
        if self.soft_404 is not None:
            import pyarrow as pa

            try:
                contains(b"", self.soft_404)
            except pa.ArrowException as error:
                what = str(error).partition(": ")[2] or str(error)
                raise ConfigError(f"soft_404: {what}", code="config.soft_404") from None
        return self


def judge(
    loc: str, headers: Any, html: bytes | None, rules: Rules, lastmod: str | None = None
) -> Iterator[Fact]:
    """The findings of a page that answered with 2xx.

    Args:
        loc: its URL.
        headers: of the answer: a mapping with ``get`` and ``getall``, in any case.
        html: the beginning of the document; None if it is not HTML.
        lastmod: of the sitemap.
    """
    tags = headers.getall("X-Robots-Tag", ())
    blocked = tags and blocking_tag(tags, rules.bot)
    if blocked:
        yield Fact("noindex", None, f"X-Robots-Tag: {blocked}"[:MAX_QUOTE])
    links = headers.getall("Link", ())
    canonicals = [urljoin_safe(loc, href) for href in canonical_links(links)] if links else []
    if html is None or "Content-Type" not in headers:
        yield Fact("content_type", None, headers.get("Content-Type", "none")[:MAX_QUOTE])
    if html is not None and not is_plain(html, loc):
        document = parsed_head(as_utf8(html, headers.get("Content-Type", "")))
        meta = blocking_meta(document, rules.bot)
        if meta and not blocked:
            yield Fact("noindex", None, meta[:MAX_QUOTE])
        canonicals += canonical_elements(document, loc)
    foreign = foreign_canonical(loc, canonicals)
    if foreign is not None:
        yield Fact("canonical", foreign[:MAX_QUOTE])
    if html is not None and rules.soft_404 is not None and contains(html, rules.soft_404):
        yield Fact("soft_404", None, "the text matches")
    if rules.check_lastmod and lastmod:
        yield from compare_dates(lastmod, headers, html)


def is_plain(html: bytes, loc: str) -> bool:
    """Whether a document certainly has no finding, so that parsing it is not necessary.

    Before the body there is neither ``noindex`` nor a meta element with ``none``, nor a character
    reference that could spell them, and no canonical other than its own URL; in the body, or what
    looks like it, there is no meta element and no canonical. Measured on a page of 22 kB: 40 µs
    instead of 500 µs (benches/audit.py).
    """
    text = html.lower()
    end = text.find(b"<body")
    if end >= 0:
        if text.find(b"<meta", end) >= 0 or text.find(b"canonical", end) >= 0:
            return False
        text = text[:end]
    if b"&#" in text or b"\0" in text or b"noindex" in text:
        return False
    if b"none" in text and _META_NONE.search(text):
        return False
    count = text.count(b"canonical")
    if count == 0:
        return True
    own = b'rel="canonical" href="%b"' % loc.encode("ascii", "replace")
    return count == 1 and b"&" not in own and own in html


def as_utf8(html: bytes, content_type: str) -> bytes:
    """A document in UTF-8.

    Only UTF-16 differs in the letters of markup; all other encodings in use contain ASCII.
    """
    found = _CHARSET.search(content_type)
    name = found[1].lower() if found else ""
    if html.startswith((b"\xff\xfe", b"\xfe\xff")):
        name = "utf-16"
    if name.startswith("utf-16"):
        return html.decode(name, "replace").encode()
    return html.replace(b"\0", b"\xef\xbf\xbd") if b"\0" in html else html


def blocking_tag(values: Iterable[str], bot: str) -> str | None:
    """The value of X-Robots-Tag that keeps a page out of the index of ``bot``; None without one.

    A name before a colon restricts what follows in the same header to one crawler:
    ``otherbot: noindex, nofollow``.
    """
    for value in values:
        scope = ""
        for part in value.split(","):
            name, colon, rest = part.partition(":")
            name = name.strip().lower()
            if colon and name not in _WITH_VALUE:
                scope, name = name, rest.strip().lower()
            if name in _BLOCKING and scope in ("", "*", bot, "robots"):
                return value.strip()
    return None


def parsed_head(html: bytes) -> Any:
    """The elements of the head; those of the whole document if there is a meta element elsewhere.

    The document is cut where the body begins. An element that is added there shows whether that was
    in a comment or a script. Measured on a page of 22 kB: 60 µs instead of 500 µs.
    """
    text = html.lower()
    end = text.find(b"<body")
    if end >= 0 and text.find(b"<meta", end) < 0:
        document = parsed(html[:end] + _CUT)
        if any(node.get("name") == "urlset-cut" for node in document.iter("meta")):
            return document
    return parsed(html)


def parsed(html: bytes) -> Any:
    """The elements of a document in UTF-8 that are not nested too deeply.

    libxml2 takes linear time for every document. lexbor, which is faster for usual ones, took
    minutes for a MiB of ``<div>`` (test_html_that_takes_long).
    """
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        document = etree.fromstring(html, parser)
    except etree.XMLSyntaxError:  # no element
        document = None
    return etree.Element("html") if document is None else document


def blocking_meta(document: Any, bot: str) -> str | None:
    """The meta element that keeps a page out of the index, as HTML; None without one."""
    for node in document.iter("meta"):
        name, content = node.get("name", ""), node.get("content", "")
        words = re.split(r"[\s,;]+", content.lower())
        if name.strip().lower() in ("robots", bot) and not _BLOCKING.isdisjoint(words):
            return f'<meta name="{name}" content="{content}">'
    return None


def canonical_elements(document: Any, loc: str) -> list[str]:
    """The canonical URLs in the head, absolute. Search engines ignore those in the body."""
    head = next(document.iter("head"), None)
    if head is None:
        return []
    base = next((node.get("href") for node in head.iter("base") if node.get("href")), "")
    base = urljoin_safe(loc, base)
    links = (node for node in head.iter("link") if (node.get("href") or "").strip())
    return [
        urljoin_safe(base, node.get("href").strip())
        for node in links
        if "canonical" in node.get("rel", "").lower().split()
    ]


def canonical_links(values: Iterable[str]) -> list[str]:
    """The canonical URLs in Link headers (RFC 8288)."""
    found = []
    for value in values:
        for href, parameters in _LINK.findall(value):
            rel = _REL.search(parameters)
            if rel and "canonical" in (rel[1] or rel[2] or "").lower().split():
                found.append(href.strip())
    return found


def foreign_canonical(loc: str, canonicals: Iterable[str]) -> str | None:
    """The first canonical URL, if all of them are other URLs than ``loc``.

    Search engines ignore canonicals that are no URL, and those that contradict each other.
    """
    own, first = None, None
    for url in canonicals:
        if url == loc:
            return None
        own = own or comparable(loc)
        other = comparable(url)
        if other == own:
            return None
        if other is not None and first is None:
            first = url
    return first


def legible(text: str) -> str:
    """The text of a header without the surrogates that stand for bytes that are not UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def urljoin_safe(base: str, href: str) -> str:
    """``href`` relative to ``base``; ``href`` itself if it is not a reference."""
    try:
        return urljoin(base, href)
    except ValueError:
        return href


@lru_cache(maxsize=1024)
def comparable(url: str) -> str | None:
    """A URL in a form that is the same for equivalent spellings; None if it is not a URL.

    Scheme, host and port, percent-encoding, an empty path and fragments are normalised (RFC 3986,
    section 6.2.2).
    """
    try:
        parts = _core.split_url(_core.address(url))
    except (Error, UnicodeError):
        return None
    if parts is None:
        return None
    query = "" if parts.query is None else f"?{parts.query}"
    return _ESCAPE.sub(_unescaped, f"{parts.origin}{parts.path or '/'}{query}")


def _unescaped(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if char in _UNRESERVED else match[0].upper()


def host_of(url: str) -> str:
    """The host of a URL in the form of the option ``hosts``, with a port that is not the default.

    Empty if it is not a URL.
    """
    try:
        parts = _core.split_url(_core.address(url))
    except (Error, UnicodeError):
        return ""
    return parts.authority if parts is not None else ""


def contains(html: bytes, pattern: str) -> bool:
    """Whether a document contains a match. RE2 takes linear time for every pattern and text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.array([html.decode("utf-8", "replace")])
    found = pc.match_substring_regex(text, pattern=pattern, ignore_case=True)
    return bool(found[0].as_py())


def compare_dates(lastmod: str, headers: Any, html: bytes | None) -> Iterator[Fact]:
    """The finding for a lastmod that is not the date of the page."""
    listed, source, own = parse_date(lastmod), "Last-Modified", None
    if html is not None:
        source, own = page_date(html) or (source, None)
    own = own or http_date(headers.get("Last-Modified"))
    if listed is not None and own is not None and abs(listed - own) > TOLERANCE:
        detail = f"lastmod {lastmod}, {source} {own.isoformat()}"
        yield Fact("lastmod", None, detail[:MAX_QUOTE])


def page_date(html: bytes) -> tuple[str, datetime] | None:
    """The date of the last change that a page states, and where."""
    document = parsed(html)
    stated: list[tuple[str, str]] = []
    for node in document.iter("meta"):
        if node.get("property", "").lower() in ("article:modified_time", "og:updated_time"):
            stated.append(("article:modified_time", node.get("content", "")))
    for node in document.iter("script"):
        if node.get("type", "").lower() == "application/ld+json":
            stated += [("dateModified", text) for text in _JSON_DATE.findall(node.text or "")]
    found = [(where, date) for where, text in stated if (date := parse_date(text)) is not None]
    return max(found, key=lambda pair: pair[1], default=None)


def parse_date(text: str) -> datetime | None:
    """An ISO 8601 date with or without a time; UTC if it has no zone."""
    try:
        date = datetime.fromisoformat(text.strip())
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
