"""The sitemap index of a build, or several indexes if one is full.

The limits of an index are 50,000 sitemaps and 52,428,800 bytes (docs/protocol.md). ``lastmod`` is
that of the newest entry of the shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._core import MAX_BYTES

if TYPE_CHECKING:
    from ..report import IndexFile

HEADER = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
)
FOOTER = "</sitemapindex>\n"
#: the protocol requires all five (xml.sax.saxutils imports urllib.request: 20 ms at start-up)
ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&apos;"), ('"', "&quot;"))


@dataclass(frozen=True)
class Sitemap:
    """One entry of an index: the URL of a sitemap, and when it last changed."""

    loc: str
    lastmod: str | None = None

    def render(self) -> str:
        lastmod = f"<lastmod>{escape(self.lastmod)}</lastmod>" if self.lastmod else ""
        return f"<sitemap><loc>{escape(self.loc)}</loc>{lastmod}</sitemap>\n"


def escape(text: str) -> str:
    """The text for XML."""
    for character, entity in ENTITIES:
        text = text.replace(character, entity)
    return text


def index_name(name: str, number: int) -> str:
    """``NAME.xml``, then ``NAME-index-2.xml`` and on."""
    return f"{name}.xml" if number == 1 else f"{name}-index-{number}.xml"


def render_indexes(
    name: str, sitemaps: Iterable[Sitemap], *, max_sitemaps: int, max_bytes: int = MAX_BYTES
) -> Iterator[tuple[IndexFile, str]]:
    """The index files that list these sitemaps, in their order."""
    from ..report import IndexFile

    rows: list[str] = []
    size = room = len(HEADER) + len(FOOTER)
    number = 1

    def close() -> tuple[IndexFile, str]:
        text = HEADER + "".join(rows) + FOOTER
        return IndexFile(index_name(name, number), len(rows), len(text.encode())), text

    for sitemap in sitemaps:
        row = sitemap.render()
        length = len(row.encode())
        if rows and (len(rows) == max_sitemaps or size + length > max_bytes):
            yield close()
            rows, size, number = [], room, number + 1
        rows.append(row)
        size += length
    if rows:
        yield close()
