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
#: the directive with the date after which a page is dropped; its weekday may have a comma
_EXPIRY = re.compile(r"(unavailable_after\s*:\s*)(?:[a-z]+\s*,)?", re.IGNORECASE)
#: a crawler before a colon; the hour of a date is none
_CRAWLER = re.compile(r"\*|[a-z][a-z0-9_.*-]*")
#: a link and its parameters; a comma in quotes does not end them
_LINK = re.compile(r'<([^<>]*)>((?:[^<>",]|"(?:[^"\\]|\\.)*")*)')
_PARAMETER = re.compile(r';\s*([\w*-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?')
#: tags after which browsers still add to the head or the body, and libxml2 does not
_ENDS = re.compile(rb"</(?:head|body|html)\s*>", re.IGNORECASE)
#: elements of the head; any other one begins the body
_IN_HEAD = frozenset(
    ("base", "basefont", "bgsound", "link", "meta", "noframes", "noscript", "script", "style",
     "title")
)  # fmt: skip
#: the time of a refresh that is a redirect
_AT_ONCE = re.compile(r"0+(?:\.[\d.]*)?(?=[\s;,])")
_REFRESH_URL = re.compile(r"url\s*=\s*", re.IGNORECASE)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: encodings that contain ASCII, and that Python decodes in linear time
_LEGACY = re.compile(
    r"(?:iso-?8859|latin|windows|cp|koi8|euc|gb|big5|shift_jis|sjis|tis|mac)[a-z0-9_-]{0,12}"
)
_META_NONE = re.compile(rb"<meta[^<]*none")
_CUT = b'<meta name="urlset-cut">'
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([A-Za-z0-9_.-]{1,40})", re.I)
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
    if html is not None:
        html = as_utf8(html, headers.get("Content-Type", ""))
    # the document may contradict a canonical of the header
    if html is not None and (canonicals or not is_plain(html, loc)):
        document = parsed_head(html)
        meta = blocking_meta(document, rules.bot)
        if meta and not blocked:
            yield Fact("noindex", None, meta[:MAX_QUOTE])
        target = refresh_target(document, loc)
        if target is not None:
            yield Fact("redirect", target[:MAX_QUOTE], '<meta http-equiv="refresh">')
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

    Before the body there is neither ``noindex`` nor a meta element with ``none``, no expiry and no
    refresh, nor a character reference that could spell them, and no canonical other than its own
    URL; in the body, or what looks like it, there is no meta element and no canonical. Measured on
    a page of 22 kB: 40 µs instead of 500 µs (benches/audit.py).
    """
    text = html.lower()
    end = text.find(b"<body")
    if end >= 0:
        if text.find(b"<meta", end) >= 0 or text.find(b"canonical", end) >= 0:
            return False
        text = text[:end]
    if any(part in text for part in (b"&#", b"\0", b"noindex", b"unavailable_after", b"refresh")):
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

    The encoding is that of the header, else of a meta element, else windows-1252, as in browsers;
    what is valid UTF-8 is never decoded as something else.
    """
    found = _CHARSET.search(content_type)
    name = found[1].lower() if found else ""
    if html.startswith((b"\xff\xfe", b"\xfe\xff")):
        name = "utf-16"
    if re.fullmatch("utf-?16(?:-?[bl]e)?", name) and b"\0" in html:
        return html.decode(name, "replace").encode()
    if b"\0" in html:
        html = html.replace(b"\0", b"\xef\xbf\xbd")
    if name in ("utf-8", "utf8") or _is_utf8(html):
        return html
    if not name and (meta := _META_CHARSET.search(html[:1024])):
        name = meta[1].decode().lower()
    try:
        return html.decode(name if _LEGACY.fullmatch(name) else "cp1252", "replace").encode()
    except LookupError:
        return html.decode("cp1252", "replace").encode()


def _is_utf8(html: bytes) -> bool:
    """Whether all bytes are UTF-8; a character at the end may be cut."""
    try:
        return html.isascii() or bool(html.decode())
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"


def blocking_tag(values: Iterable[str], bot: str) -> str | None:
    """The value of X-Robots-Tag that keeps a page out of the index of ``bot``; None without one.

    A name before a colon restricts what follows in the same header to one crawler:
    ``otherbot: noindex, nofollow``.
    """
    for value in values:
        scope = ""
        for part in _EXPIRY.sub(r"\1", value).split(","):
            text = part.strip().lower()
            name, colon, rest = text.partition(":")
            name = name.strip()
            if colon and name not in _WITH_VALUE and _CRAWLER.fullmatch(name):
                scope, text = name, rest.strip()
            if _is_blocking(text) and scope in ("", "*", bot, "robots"):
                return value.strip()
    return None


def _is_blocking(directive: str) -> bool:
    """Whether a directive in lower case keeps a page out of the index now."""
    name, _, text = directive.partition(":")
    if name.strip() != "unavailable_after":
        return directive in _BLOCKING
    expiry = http_date(text) or parse_date(text.upper())
    return expiry is not None and expiry < datetime.now(UTC)


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
    """The elements of a document in UTF-8 that are not nested too deeply, without templates.

    libxml2 takes linear time for every document. lexbor, which is faster for usual ones, took
    minutes for a MiB of ``<div>`` (test_html_that_takes_long).
    """
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    html = _ENDS.sub(b"", html)
    try:
        document = etree.fromstring(html, parser)
    except etree.XMLSyntaxError:  # no element
        document = None
    if document is None:
        return etree.Element("html")
    etree.strip_elements(document, "template", with_tail=False)
    return document


def blocking_meta(document: Any, bot: str) -> str | None:
    """The meta element that keeps a page out of the index, as HTML; None without one."""
    for node in document.iter("meta"):
        name, content = node.get("name", ""), node.get("content", "")
        if name.strip().lower() not in ("robots", bot):
            continue
        parts = _EXPIRY.sub(r"\1", content.lower()).split(",")
        if not _BLOCKING.isdisjoint(re.split(r"[\s,;]+", content.lower())) or any(
            _is_blocking(part.strip()) for part in parts
        ):
            return f'<meta name="{name}" content="{content}">'
    return None


def refresh_target(document: Any, loc: str) -> str | None:
    """Where a meta element redirects to at once, absolute; None without one, or to itself.

    One in a noscript element is for browsers without scripts.
    """
    for node in document.iter("meta"):
        text = node.get("content", "").strip()
        begin = _AT_ONCE.match(text)
        if begin is None or node.get("http-equiv", "").strip().lower() != "refresh":
            continue
        if next(node.iterancestors("noscript"), None) is not None:
            continue
        url = text[begin.end() :].lstrip(" \t\r\n\f;,")
        named = _REFRESH_URL.match(url)
        url = url[named.end() :] if named else url
        if url[:1] in ("'", '"'):
            url = url[1:].partition(url[0])[0]
        target = urljoin_safe(base_of(document, loc), url.strip())
        if comparable(target) not in (None, comparable(loc)):
            return target
    return None


def base_of(document: Any, loc: str) -> str:
    """The URL that references in a document are relative to."""
    base = next((node.get("href") for node in document.iter("base") if node.get("href")), "")
    return urljoin_safe(loc, base.strip())


def canonical_elements(document: Any, loc: str) -> list[str]:
    """The canonical URLs in the head, absolute. Search engines ignore those in the body."""
    head = next(document.iter("head"), None)
    if head is None:
        return []
    base, found = base_of(document, loc), []
    for node in head.iter():
        if node.getparent() is head and node.tag not in _IN_HEAD:
            break  # the parser of a browser is in the body now
        href = node.get("href", "").strip() if node.tag == "link" else ""
        if href and "canonical" in node.get("rel", "").lower().split():
            found.append(urljoin_safe(base, href))
    return found


def canonical_links(values: Iterable[str]) -> list[str]:
    """The canonical URLs in Link headers (RFC 8288).

    Those with the parameter ``anchor`` are about another page.
    """
    found = []
    for value in values:
        for href, parameters in _LINK.findall(value):
            given: dict[str, str] = {}
            for name, quoted, token in _PARAMETER.findall(parameters):
                given.setdefault(name.lower(), quoted or token)  # the first one counts
            if "canonical" in given.get("rel", "").lower().split() and "anchor" not in given:
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

    Scheme, host and port, percent-encoding, dot segments, an empty path and fragments are
    normalised (RFC 3986, section 6.2.2).
    """
    try:
        parts = _core.split_url(_core.address(url))
    except (Error, UnicodeError):
        return None
    if parts is None:
        return None
    query = "" if parts.query is None else f"?{_ESCAPE.sub(_unescaped, parts.query)}"
    return f"{parts.origin}{_without_dots(_ESCAPE.sub(_unescaped, parts.path or '/'))}{query}"


def _without_dots(path: str) -> str:
    """A path without the segments ``.`` and ``..`` (RFC 3986, section 5.2.4)."""
    if "/." not in path:
        return path
    parts: list[str] = []
    for part in path.split("/")[1:]:
        if part == "..":
            del parts[-1:]
        elif part != ".":
            parts.append(part)
    end = "/" if parts and path.endswith(("/.", "/..")) else ""
    return f"/{'/'.join(parts)}{end}"


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
        kind = node.get("type", "").partition(";")[0]
        if kind.strip().lower() == "application/ld+json":
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
