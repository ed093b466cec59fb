"""Documents that are expensive to read: a head, a block many times, a tail."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
PAGE = "https://www.shop.example/a"
HEAD = f'<urlset xmlns="{NS}">'
EXTENDED = (
    f'<urlset xmlns="{NS}" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    ' xmlns:video="http://www.google.com/schemas/sitemap-video/1.1"'
    ' xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
    ' xmlns:xhtml="http://www.w3.org/1999/xhtml">'
)
INDEX = f'<sitemapindex xmlns="{NS}">'
LINK = '<xhtml:link rel="alternate" hreflang="{}" href="https://www.shop.example/a"/>'
#: 1,000 different codes of languages, of which all are legal
LANGS = [f"{a}{b}-{c}{d}" for a in "abcdefgh" for b in "abcde" for c in "ABCDE" for d in "ABCDE"]
#: 400 kB: tags, texts and namespaces of this length are accepted
LONG = 400_000


@dataclass(frozen=True)
class Flood:
    """``head``, then ``block`` repeated up to the size."""

    head: str
    block: str
    tail: str = ""
    suffix: str = ".xml.gz"
    #: repeated inside one file as separate gzip members
    members: bool = False

    def write(self, path: Path, size: int) -> None:
        """A gzip file that inflates to about ``size`` bytes."""
        block = self.block.encode(errors="surrogateescape")
        if self.members:  # as many as a usual bomb of the same size has
            one = packed(block)
            path.write_bytes(packed(self.head.encode()) + one * (size // 1000 // len(one)))
            return
        times = max(1, size // len(block))
        zipper = zlib.compressobj(9, zlib.DEFLATED, 31)
        many = max(1, (1 << 20) // len(block))
        with path.open("wb") as file:
            file.write(zipper.compress(self.head.encode(errors="surrogateescape")))
            for _ in range(times // many):
                file.write(zipper.compress(block * many))
            file.write(zipper.compress(block * (times % many)))
            file.write(zipper.compress(self.tail.encode()) + zipper.flush())


def packed(data: bytes) -> bytes:
    zipper = zlib.compressobj(9, zlib.DEFLATED, 31)
    return zipper.compress(data) + zipper.flush()


@dataclass(frozen=True)
class Ended:
    """The result of a command: exit status, seconds of CPU, peak in MiB, output."""

    status: int
    seconds: float
    memory: int
    out: str


def urlset(*arguments: str | Path, folder: Path) -> Ended:
    """Runs the command in a separate process."""
    code = "from urlset.cli import main; main()"
    return run([sys.executable, "-c", code, *arguments], folder=folder)


def run(command: Sequence[str | Path], *, folder: Path) -> Ended:
    """Runs a process and waits for it; its output goes to a file in ``folder`` first."""
    with (folder / "said").open("w+b") as said:
        child = subprocess.Popen(command, stdout=said, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        out = said.read().decode(errors="replace")
    return Ended(child.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10, out)


def entry(inside: str) -> str:
    return f"<url><loc>{PAGE}</loc>{inside}</url>"


FLOODS = {
    # not well-formed
    "bare ampersands": Flood(HEAD, "&"),
    "bare ampersands in loc": Flood(HEAD + "<url><loc>", "&" * 900_000 + "</loc><loc>"),
    "ampersands before the root": Flood("", "&"),
    "ampersands in entries": Flood(HEAD, f"<url><loc>{PAGE}?a=1&b=2&c&d&e</loc></url>"),
    "less-than signs": Flood(HEAD, "<"),
    "greater-than signs": Flood(HEAD, ">"),
    "tags that close nothing": Flood(HEAD, "</a>"),
    "closing tags without a root": Flood("<a/>", "</a>"),
    "wrong closing tags": Flood(HEAD, "<url></a>"),
    "wrong closing tags, spelt out": Flood(HEAD, "<url><loc></url><sitemap ><a></b>"),
    "unclosed entries": Flood(HEAD, "<url>"),
    "unclosed locs": Flood(HEAD, "<url><loc>"),
    "names that are none": Flood(HEAD, "<url><1/>"),
    "bytes that are no UTF-8": Flood(HEAD, "<url>\udcff"),
    "surrogates in UTF-8": Flood(HEAD, "<url>\udced\udca0\udc80</url>"),
    "control characters": Flood(HEAD, "\x01"),
    "control characters in loc": Flood(HEAD, "<url><loc>\x01</loc></url>"),
    "nulls": Flood("", "\0"),
    "attributes that stand twice": Flood(HEAD, '<url a="" a="">'),
    "attributes without value": Flood(HEAD, "<url a/>"),
    "attributes without end": Flood(HEAD, '<url a="'),
    "60 attributes": Flood(
        HEAD, "<a " + " ".join(f'a{n}=""' for n in range(60)) + "/>", "</urlset>"
    ),
    "70 attributes": Flood(HEAD, "<url " + " ".join(f'a{n}=""' for n in range(70)) + "/>"),
    "ampersands in an attribute": Flood(HEAD, '<url a="' + "&" * LONG + '"/>'),
    "ampersands in attributes": Flood(HEAD, '<url a="&"/>'),
    "roots": Flood("", HEAD + "</urlset>"),
    "text behind the root": Flood(HEAD + "</urlset>", "x<a/>"),
    "references behind the root": Flood(HEAD + "</urlset>", "&lt;"),
    "CDATA outside the root": Flood("<a/>", "<![CDATA[]]>"),
    "CDATA ends": Flood(HEAD, "]]>"),
    "markup that is none": Flood(HEAD, "<url><!>"),
    "comments that are none": Flood(HEAD, "<url><!-- -- -->"),
    "declarations": Flood(HEAD, "<?xml?>"),
    "DOCTYPEs": Flood("", "<!DOCTYPE a>"),
    "undefined entities": Flood(HEAD + "<url><loc>", "&x;"),
    "undefined entities in entries": Flood(HEAD, "<url><loc>&x;&y;</loc></url>"),
    "numbers without a character": Flood(HEAD, "<url><loc>&#0;</loc></url>"),
    "nesting": Flood(HEAD, "<a>"),
    # well-formed, and no sitemap
    "white space": Flood(HEAD, " ", "</urlset>"),
    "newlines before the root": Flood("", "\n", HEAD + "</urlset>"),
    "comments": Flood(HEAD, "<!---->", "</urlset>"),
    "comments before the root": Flood("", "<!---->", HEAD + "</urlset>"),
    "instructions": Flood(HEAD, "<?a?>", "</urlset>"),
    "style sheets": Flood(HEAD, "<?xml-stylesheet?>", "</urlset>"),
    "empty entries": Flood(HEAD, "<url/>", "</urlset>"),
    "entries of nothing": Flood(HEAD, "<url></url>", "</urlset>"),
    "unknown elements": Flood(HEAD, "<a/>", "</urlset>"),
    "unknown elements in an unknown one": Flood(HEAD + "<a>", "<b/>", "</a></urlset>"),
    "another document": Flood("<a>", "<b/>", "</a>"),
    "text in an unknown element": Flood("<a>", "x<b/>", "</a>"),
    "references in an unknown element": Flood("<a>", "&lt;", "</a>"),
    "CDATA": Flood(HEAD + "<url><loc>", "<![CDATA[]]>", "</loc></url></urlset>"),
    "references": Flood(HEAD, "<url><loc>" + "&#97;" * 99 + "</loc></url>", "</urlset>"),
    "locs in one entry": Flood(HEAD + "<url>", "<loc/>", "</url></urlset>"),
    "entries of one byte": Flood(HEAD, "<url><loc>x</loc></url>", "</urlset>"),
    "entries with every fault": Flood(
        EXTENDED,
        entry(
            "<lastmod> x </lastmod><changefreq>x</changefreq><priority>x</priority>"
            "<image:image/><video:video/><news:news/><xhtml:link/>"
        ),
        "</urlset>",
    ),
    "empty videos": Flood(EXTENDED + f"<url><loc>{PAGE}</loc>", "<video:video/>",
        "</url></urlset>"),
    "empty images": Flood(EXTENDED, entry("<image:image/>" * 900), "</urlset>"),
    "links of one entry": Flood(
        EXTENDED + f"<url><loc>{PAGE}</loc>", LINK.format("de"), "</url></urlset>"
    ),
    "a thousand languages": Flood(EXTENDED, entry("".join(map(LINK.format, LANGS))), "</urlset>"),
    "a thousand languages in brackets": Flood(
        EXTENDED,
        entry("".join(map(LINK.format, LANGS)).replace("/>", "></xhtml:link>")),
        "</urlset>",
    ),
    "foreign namespaces": Flood(HEAD, '<a xmlns="urn:x"/>', "</urlset>"),
    "a long namespace": Flood(
        f'<urlset xmlns="{NS}" xmlns:a="{"x" * LONG}">', "<url><a:b/></url>", "</urlset>"
    ),
    "long namespaces": Flood(
        f'<urlset xmlns="{NS}">', f'<url><a:b xmlns:a="{"x" * LONG}"/></url>', "</urlset>"
    ),
    "60 long namespaces": Flood(
        f'<urlset xmlns="{NS}" '
        + " ".join(f'xmlns:a{n:02}="{"x" * 15_000}{n}"' for n in range(60)) + ">",
        "<url><a59:b/><a58:b/></url>", "</urlset>",
    ),
    "60 long prefixes": Flood(
        f'<urlset xmlns="{NS}" '
        + " ".join(f'xmlns:{"a" * 15_000}{n:02}="u"' for n in range(60)) + ">",
        f"<url><{'a' * 15_000}00:b/></url>", "</urlset>",
    ),
    "60 short prefixes": Flood(
        f'<urlset xmlns="{NS}" ' + " ".join(f'xmlns:a{n:02}="u"' for n in range(60)) + ">",
        "<a00:b/>", "</urlset>",
    ),
    "undeclared prefixes": Flood(HEAD, "<a:b/>", "</urlset>"),
    "long names": Flood(HEAD, f"<{'a' * LONG}/>", "</urlset>"),
    "long tags of spaces": Flood(HEAD, f"<url {' ' * LONG}/>", "</urlset>"),
    "long texts": Flood(HEAD, f"<url><loc>{'x' * LONG}</loc></url>", "</urlset>"),
    "long texts of spaces": Flood(HEAD, f"<url><loc>{' ' * LONG}</loc></url>", "</urlset>"),
    "carriage returns": Flood(HEAD, "<url><loc>" + "\r" * 99 + "</loc></url>", "</urlset>"),
    "one entry": Flood(HEAD, entry(""), "</urlset>"),
    "one entry, not as usual": Flood(HEAD, entry("<!---->"), "</urlset>"),
    "one entry in another encoding": Flood(
        '<?xml version="1.0" encoding="iso-8859-1"?>' + HEAD, entry(""), "</urlset>"
    ),
    "two hosts": Flood(
        HEAD, entry("") + entry("").replace("www.shop", "a.shop"), "</urlset>"
    ),
    "three hosts": Flood(
        HEAD, "".join(entry("").replace("www", host) for host in "abc"), "</urlset>"
    ),
    "a thousand hosts": Flood(
        HEAD, "".join(entry("").replace("www", f"a{n}") for n in range(1_000)), "</urlset>"
    ),
    "empty sitemaps of an index": Flood(INDEX, "<sitemap/>", "</sitemapindex>"),
    "sitemaps of an index": Flood(
        INDEX, f"<sitemap><loc>{PAGE}.xml</loc></sitemap>", "</sitemapindex>"
    ),
    "an index of ampersands": Flood(INDEX, "&"),
    "news": Flood(EXTENDED, entry("<news:news><news:title>x</news:title></news:news>"),
        "</urlset>"),
    # lists of URLs
    "lines of one character": Flood(f"{PAGE}\n", "x\n", suffix=".txt.gz"),
    "empty lines": Flood(f"{PAGE}\n", "\n", suffix=".txt.gz"),
    "carriage returns alone": Flood(f"{PAGE}\r", "\r", suffix=".txt.gz"),
    "lines of a null": Flood(f"{PAGE}\n", "\0\n", suffix=".txt.gz"),
    "a long line": Flood(f"{PAGE}\n", "x", suffix=".txt.gz"),
    "long lines": Flood(f"{PAGE}\n", "x" * LONG + "\n", suffix=".txt.gz"),
    "one line": Flood("", f"{PAGE}\n", suffix=".txt.gz"),
    "short lines": Flood("", "http://a.b\n", suffix=".txt.gz"),
    "lines that are no UTF-8": Flood(f"{PAGE}\n", "\udcff\n", suffix=".txt.gz"),
    "lines in UTF-16": Flood("\udcff\udcfe", "h\0t\0t\0p\0:\0/\0/\0a\0.\0b\0\n\0",
        suffix=".txt.gz"),
    # gzip
    "empty members": Flood(HEAD, "", members=True),
    "members of one byte": Flood(HEAD, " ", members=True),
}  # fmt: skip
