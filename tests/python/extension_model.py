"""The expected result of a row with every extension: a plain, slow model of the documents.

Nothing here comes from urlset. Each function takes what a catalog says and returns what a crawler
must read; what is left out is counted in ``notes``, by its code.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from url_model import model

BLANKS = " \t\r\n"
#: an invalid value
BAD = "BAD"

Entry = dict[str, Any]
Notes = Counter[str]

DATES = {
    None: None, "2026-01-02": "2026-01-02", "2026-01-02T03:04Z": "2026-01-02T03:04:00Z",
    "2026-01-02T03:04:05.9+01:00": "2026-01-02T02:04:05Z", "2026": BAD, "yesterday <&>": BAD,
}  # fmt: skip
CHANGEFREQ = {None: None, "Daily": "daily", " never ": "never", "often": BAD}
PRIORITY = {None: None, "0.5": "0.5", "1": "1.0", "0.25": "0.3", "0": "0.0", "1.1": BAD, "x": BAD}
ANSWERS = {None: None, "NO": "no", "yes": "yes", "maybe": BAD}
#: tags of a video with few values, and the expected values
SIMPLE: dict[str, dict[Any, str | None]] = {
    "duration": {None: None, 1: "1", 28_800: "28800", 0: BAD, 28_801: BAD},
    "expiration_date": DATES,
    "rating": {None: None, 0.0: "0", 4.25: "4.25", 5.5: BAD},
    "view_count": {None: None, 0: "0", 12_345: "12345", -1: BAD},
    "publication_date": DATES,
    "family_friendly": {None: None, True: "yes", False: "no"},
    "requires_subscription": ANSWERS,
    "live": ANSWERS,
}
#: (value, relationship) and the expected values
RELATED: dict[str, dict[tuple[str | None, str | None], str | None]] = {
    "restriction": {
        (None, None): None, (None, "deny"): None, ("de, at", "Allow"): "DE AT",
        ("DE", "deny"): "DE", ("XX", "allow"): BAD, ("DE", None): BAD, ("DE", "<&>"): BAD,
    },
    "platform": {
        (None, None): None, ("WEB tv", "deny"): "web tv", ("radio", "deny"): BAD, ("tv", ""): BAD,
    },
}  # fmt: skip
INFO = {
    None: None, "https://shop.example/ann?a&b": "https://shop.example/ann?a&b",
    "/ann 'x'": "https://www.shop.example/ann%20'x'", "https://evil.example/ann": BAD,
}  # fmt: skip
LANGUAGES = {"EN": "en", "zh-CN": "zh-cn", "en-US": BAD, None: None, "": None}


def is_empty(value: str | None) -> bool:
    return value is None or value.strip(BLANKS) == ""


def url_of(raw: str) -> str:
    """The URL as it is written, or a code that begins with ``loc.``."""
    start = raw.strip(BLANKS)
    absolute = ("https://www.shop.example/", "https://shop.example/", "https://cdn.example/")
    if start.startswith(absolute) or (start.startswith("/") and not start.startswith("//")):
        return model(raw)
    return "loc.other"


def is_url(url: str) -> bool:
    return not url.startswith("loc.")


def legal(char: str) -> bool:
    """The production ``Char`` of XML 1.0."""
    code = ord(char)
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or code >= 0x10000
    )


def text(value: str, most: float, notes: Notes) -> str:
    """The text, or ``BAD``."""
    trimmed = value.strip(BLANKS)
    kept = "".join(filter(legal, trimmed))
    if kept != trimmed:
        notes["text.illegal"] += 1
        kept = kept.strip(BLANKS)
    return kept if 0 < len(kept) <= most else BAD


def image_items(cell: Any, separator: str, notes: Notes) -> Iterable[Any]:
    """The content of a cell of images."""
    if cell is None:
        return []
    if isinstance(cell, list):
        return cell
    if cell.strip(BLANKS)[:1] in ("[", "{"):
        try:
            value = json.loads(cell)
        except ValueError:
            value = None
        if isinstance(value, list):
            return value
        notes["image.invalid"] += 1
        return []
    return [part for part in cell.split(separator) if not is_empty(part)]


def images(cells: Iterable[Any], separator: str, notes: Notes) -> list[str]:
    found: dict[str, None] = {}
    for cell in cells:
        for item in image_items(cell, separator, notes):
            url = url_of(item) if isinstance(item, str) else "loc.none"
            if is_url(url):
                found[url] = None
            else:
                notes["image.invalid"] += 1
    return list(found)


def alternates(
    loc: str, columns: dict[str, str | None], lang: str, default: str, notes: Notes
) -> list[tuple[str, str]]:
    """The list of a row with one column per language."""
    links: dict[str, str] = {}
    for code, value in columns.items():
        url = "" if is_empty(value) else url_of(value or "")
        if url and is_url(url):
            links[code] = url
        else:
            notes["alternate.invalid" if url else "alternate.empty"] += 1
    if not links:
        return []
    if loc not in links.values():
        if lang in links:
            notes["alternate.no_self"] += 1
        else:
            links = {lang: loc, **links}
    if default in links:
        links["x-default"] = links[default]
    return list(links.items())


def video(row_loc: str, given: dict[str, Any], notes: Notes) -> Entry | None:
    tags: Entry = {}

    def put(tag: str, value: str | None) -> bool:
        if value is BAD:
            notes[f"video.{tag}"] += 1
        elif value is not None:
            tags[tag] = value
        return value is not BAD and value is not None

    for tag, most in (("thumbnail_loc", 0), ("title", 100), ("description", 2_048)):
        value = given[tag]
        if is_empty(value):
            put(tag, BAD)
            return None
        if tag == "thumbnail_loc":
            written = url_of(value) if is_url(url_of(value)) else BAD
        else:
            written = text(value, most, notes)
        if not put(tag, written):
            return None
    sources = [tag for tag in ("content_loc", "player_loc") if not is_empty(given[tag])]
    if not sources:
        put("content_loc", BAD)
        return None
    urls = {tag: url_of(given[tag]) for tag in sources}
    good = [put(tag, url if is_url(url) and url != row_loc else BAD) for tag, url in urls.items()]
    if not any(good):
        return None
    for tag, known in SIMPLE.items():
        put(tag, known[given[tag]])
    words = [text(tag, float("inf"), notes) for tag in given["tag"] or () if not is_empty(tag)]
    notes["video.tag"] += words.count(BAD)
    if kept := [word for word in words if word is not BAD]:
        tags["tag"] = kept
    for tag, pairs in RELATED.items():
        relationship = given[f"{tag}_relationship"]
        if put(tag, pairs[given[tag], relationship]):
            tags[f"{tag}_relationship"] = relationship.lower()
    if not is_empty(given["uploader"]):
        info = INFO[given["uploader_info"]]
        notes["video.uploader_info"] += info is BAD
        if put("uploader", text(given["uploader"], 255, notes)) and info not in (None, BAD):
            tags["uploader_info"] = info
    return tags


def news(given: dict[str, Any] | None, notes: Notes) -> tuple[str, ...] | None:
    if given is None:
        return None
    written: dict[str, str | None] = {}
    for tag in ("name", "language", "publication_date", "title"):
        value = given[tag]
        if is_empty(value):
            written[tag] = None
        elif tag == "language":
            written[tag] = LANGUAGES[value]
        elif tag == "publication_date":
            written[tag] = DATES[value]
        else:
            written[tag] = text(value, float("inf"), notes)
        notes[f"news.{tag}"] += written[tag] is BAD
    for tag, value in written.items():
        if value is None:
            notes[f"news.{tag}"] += 1
            return None
    return None if BAD in written.values() else tuple(map(str, written.values()))


def entry(row: dict[str, Any], separator: str, notes: Notes) -> Entry | None:
    """All but the alternates; ``None`` for a row without a legal URL."""
    loc = url_of(row["loc"])
    if not is_url(loc):
        return None
    made: Entry = {"loc": loc}
    for field, known in (
        ("lastmod", DATES), ("changefreq", CHANGEFREQ), ("priority", PRIORITY),
    ):  # fmt: skip
        value = known[row[field]]
        if value is BAD:
            notes[f"{field}.invalid"] += 1
        elif value is not None:
            made[field] = value
    if found := images((row["one"], row["json"], row["list"]), separator, notes):
        made["images"] = found
    blocks = [video(loc, given, notes) for given in row["videos"] or () if given is not None]
    if written := [block for block in blocks if block is not None]:
        made["videos"] = written
    if (article := news(row["news"], notes)) is not None:
        made["news"] = article
    return made
