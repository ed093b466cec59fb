"""The URL of a cell: a plain, slow model of the documented rules."""

from __future__ import annotations

import re
import string
from urllib.parse import quote

from conftest import SITE

#: RFC 3986, sections 2.2 and 2.3; square brackets belong to hosts only
KEPT = string.ascii_letters + string.digits + "-._~!$&'()*+,;=:@/?"


def without_dots(path: str) -> str:
    """RFC 3986, section 5.2.4, for an absolute path."""
    kept: list[str] = []
    *folders, last = path.split("/")[1:]
    for segment in folders:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if last == "..":
        del kept[-1:]
    return "/" + "/".join([*kept, "" if last in (".", "..") else last])


def model(raw: str) -> str:
    """A plain, slow model of the rules for a URL or a path of the site."""
    raw = raw.strip(" \t\r\n")
    if re.match(r"[^#?]*\\", raw):  # before the query a backslash means a slash
        before, mark, after = re.fullmatch(r"([^#?]*)([#?]?)(.*)", raw, re.DOTALL).groups()
        raw = before.replace("\\", "/") + mark + after
    if raw == "":
        return "loc.empty"
    if re.search(r"[\x00-\x1f\x7f]", raw):
        return "loc.control"
    before, mark, fragment = raw.partition("#")

    def encode(text: str) -> str:
        parts = re.split(r"(%[0-9A-Fa-f]{2})", text)
        return "".join(p if i % 2 else quote(p, safe=KEPT) for i, p in enumerate(parts))

    url = encode(before) + mark + encode(fragment)
    if url.startswith("/"):
        path, mark, rest = url.partition("?") if "?" in url.split("#")[0] else url.partition("#")
        url = SITE + without_dots(path) + mark + rest
    if len(url) < 12:
        return "loc.too_short"
    return "loc.too_long" if len(url) > 2047 else url
