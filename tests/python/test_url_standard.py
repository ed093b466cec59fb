"""A build writes the URL that the WHATWG URL standard reads in the cell.

Ada, the parser of Node.js, reads the cell and the loc that was written for it. The two may differ
in nothing but the percent-encoding that RFC 3986 asks for and browsers do not.
"""

from __future__ import annotations

import csv
import random
import re
import unicodedata
from collections import Counter
from pathlib import Path

import ada_url
import pytest
import urlset as package
from conftest import read_set

SITE = "https://www.shop.example"

#: RFC 3986 allows none of them outside the host; browsers do not change some of them
ENCODED = re.compile(r"""%(?![0-9A-Fa-f]{2})|[][{}|^`"<>\\]""")


def standard(url: str, base: str | None = None) -> str:
    """The URL that a browser reads, percent-encoded as RFC 3986 requires."""
    href = ada_url.URL(url, base=base).href if base else ada_url.URL(url).href
    start = re.match(r"https?://[^/]*", href)
    assert start, href
    rest = ENCODED.sub(lambda m: f"%{ord(m[0]):02X}", href[start.end() :])
    before, mark, fragment = rest.partition("#")
    return start[0] + before + mark + fragment.replace("#", "%23")


SCHEMES = [
    "https://", "http://", "HTTPS://", "hTTp://", "https:/", "https:", "https:\\\\", "http:\\/",
    "https:///", "ftp://", "//", "/", "\\", "\\\\", "", "https//", "http://https://",
]  # fmt: skip
HOSTS = [
    "a.example", "A.Example", "www.shop.example", "WWW.SHOP.example", "bücher.example",
    "BÜCHER.example", "faß.example", "xn--bcher-kva.example", "XN--Bcher-KVA.example", "xn--a",
    "xn--.example", "xn--abc-.example", "xn--fa-hia.example", "例え.テスト", "مثال.إختبار",
    "a。example", "a．example｡", "ａ.example", "a\u00adb.example", "a\u200db.example",
    "नी\u200dम.example", "a\u200cb.example", "a_b.example", "_dmarc.example", "-a.example",
    "a-.example", "a..example", ".example", "a.example.", "a.example..", "a--b.example",
    "127.0.0.1", "127.1", "0x7f.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "256.256.256.256",
    "1.2.3.4.5", "1.2.3.4.", "1.2.3", "a.1", "a.0x1", "a.0x", "09.1.1.1", "１.2.3.4", "1.2.3.４",
    "[::1]", "[::]", "[2001:DB8:0:0::1]", "[2001:db8::0:0:1]", "[::ffff:1.2.3.4]", "[1::2::3]",
    "[1:2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7::]", "[::1.2.3]", "[::1.2.3.04]", "[::1%eth0]",
    "[::1%25eth0]", "[v1.a]", "[::1", "::1]", "ex%61mple.com", "ex%C3%BCmple.com", "%31.2.3.4",
    "a b.example", "a!b.example", "a'b.example", "a*b.example", "a~b.example", "a,b", "a<b",
    "a|b", "a^b", "a`b", "a{b}", "localhost", "", "💩.example", "☃.example", "ß", "ΒΌΛΟΣ.gr",
    "βόλος.gr", "a" * 63 + ".example", "a" * 64 + ".example", "ab." * 84 + "c", "ab." * 85 + "c",
    "İ.example", "ǆ.example", "⅓.example", "a⁄b.example", "a／b.example", "a？b.example",
    "a＃b.example", "a＠b.example", "a：80.example", "a％41.example", "\u0660.example",
    "א1.example", "1א.example", "\u0301a.example", "a.\u0301", "㋿.example", "Ⓐ.example",
]  # fmt: skip
PORTS = [
    ":", ":80", ":443", ":0443", ":8080", ":0", ":65535", ":65536", ":99999999999", ":+80", ":8a",
    ":-1", ": 80", ":８０", "::80", ":80:80", ":00000000000000443",
]  # fmt: skip
USERS = ["user@", "user:pass@", "@", ":@", "a%40b@", "a@b@", "%20@"]
PIECES = [
    "/", "//", "\\", "/.", "/..", "/./", "/../", "/%2e", "/%2E%2e/", "/.%2e", "/%2e./", "/...",
    "/%2e%2e%2e", ".", "..", "a", "B", "product-1", "é", "中", "🛒", "%", "%4", "%41", "%zz",
    "%C3%BC", "%c3%bc", "%%32e", "%25", "%2F", "%5C", " ", "  ", "+", "?", "??", "#", "##", "&",
    "&amp;", "&#38;", "=", ";", ",", "'", '"', "<", ">", "[", "]", "{", "}", "|", "^", "`", "~",
    "!", "$", "(", ")", "*", ":", "@", "\t", "\n", "\r", "\0", "\x01", "\x1f", "\x7f", "\x80",
    "\x85", "\u00a0", "\u2028", "\u200b", "\u202e", "\ufeff", "\ufffd", "\ufffe", "\uffff",
    "\U0001fffe", "\U0010ffff", "?a=1&b=2", "#top", "/a/b/c", "https://b.example/",
]  # fmt: skip
ENDS = ["", "", "", "", " ", "\t", "\r\n", "\x0b", "\u3000", "\x1f", "\u00a0"]


def cells(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        kind = rng.random()
        tail = "".join(rng.choices(PIECES, k=rng.randrange(7)))
        if kind < 0.25:  # a valid host and an unusual path
            cell = (
                rng.choice(["https://", "http://"])
                + "www.shop.example"
                + rng.choice("/\\?#")
                + tail
            )
        elif kind < 0.5:  # a path
            cell = "/" + tail
        elif kind < 0.8:  # an unusual host
            user = rng.choice(USERS) if rng.random() < 0.05 else ""
            port = rng.choice(PORTS) if rng.random() < 0.3 else ""
            host = rng.choice(HOSTS)
            if rng.random() < 0.3:
                host = rng.choice(HOSTS) + rng.choice([".", "-", "", "。"]) + host
            start = rng.choice(SCHEMES[:2] if rng.random() < 0.8 else SCHEMES)
            cell = start + user + host + port + rng.choice(["", "/", "?", "#", "\\", "/x"]) + tail
        elif kind < 0.9:
            cell = rng.choice(SCHEMES) + tail
        else:  # any characters, of a Unicode that all know: Ada and ICU4X differ in its version
            upto = (0x80, 0x3000, 0x110000)
            points = [rng.randrange(rng.choice(upto)) for _ in range(rng.randrange(1, 12))]
            text = "".join(
                c for c in map(chr, points) if unicodedata.category(c) not in ("Cn", "Cs")
            )
            cell = rng.choice(["https://a.example/", "https://", "/", "https://a", ""]) + text
        made.append(rng.choice(ENDS) + cell + rng.choice(ENDS))
    return made


@pytest.mark.parametrize("relative", [False, True])
def test_cells_and_locs_are_the_same_urls_to_a_browser(tmp_path: Path, relative: bool) -> None:
    count = 120_000 if not relative else 30_000
    given = cells(count, seed=len(str(relative)))
    source, out = tmp_path / "in.csv", tmp_path / "out"
    with source.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["url"])
        writer.writerows([cell] for cell in given)
    base = SITE + ("/base/page" if relative else "")
    report = package.build(
        source, site=base, out=out, hosts="any", max_rejects="100%", relative_urls=relative
    )
    assert report.rows == count
    with (out / ".urlset/rejects.csv").open(newline="", encoding="utf-8") as file:
        rejects = {int(row["row"]): row["code"] for row in csv.DictReader(file)}
    written = iter(read_set(out))
    wrong = []
    checked = 0
    for row, cell in enumerate(given, 1):
        if row in rejects:
            continue
        checked += 1
        loc = next(written)["loc"]
        try:
            wanted = standard(cell, base)
        except ValueError as error:
            wanted = str(error)
        if standard(loc) != wanted:
            wrong.append((cell, loc, wanted))
        assert re.fullmatch(r"[Hh][Tt][Tt][Pp][Ss]?://[!-~]+", loc), loc
    assert next(written, None) is None
    assert not wrong, (len(wrong), wrong[:20])
    # some unusual URLs are rejected, and some are accepted
    codes = Counter(rejects.values())
    assert checked > count // 5, codes
    for code in ("control", "host", "no_host", "scheme", "userinfo", "empty"):
        assert codes[f"loc.{code}"] > 10, codes
    assert relative or codes["loc.relative"] > 1_000, codes
