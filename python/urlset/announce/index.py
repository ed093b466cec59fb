"""An index file on this machine, read by the core; a damaged one is an error here."""

from __future__ import annotations

from pathlib import Path

from .._core import Listing
from .._core import read_index as read_listing
from ..errors import InputError
from .address import MAX_URL

#: sitemaps.org: entries of one file
MAX_ENTRIES = 50_000
#: findings of the core that mean a DOCTYPE, and those that mean damage, by their first word
_DOCTYPES = ("xml.doctype", "xml.plain_doctype")
_DAMAGE = ("xml", "gzip", "utf8", "file")


def read_index(path: Path) -> Listing:
    """Reads an index or a sitemap, plain or gzip.

    Raises:
        InputError: ``index.unreadable``, ``index.damaged``, ``index.doctype``,
            ``index.not_a_sitemap``.
    """

    def wrong(why: str, code: str) -> InputError:
        return InputError(f"{path}: {why}", code=f"index.{code}", input=str(path))

    try:
        listing = read_listing(path)
    except OSError as error:
        raise wrong(f"cannot be read: {error.strerror or error}", "unreadable") from None
    errors = [finding for finding in listing.findings if finding.severity == "error"]
    damage = [each for each in errors if each.code.partition(".")[0] in _DAMAGE]
    if any(finding.code in _DOCTYPES for finding in listing.findings):
        raise wrong("contains a DOCTYPE, which no sitemap needs", "doctype")
    if any(finding.code == "file.unreadable" for finding in damage):
        raise wrong(f"cannot be read: {damage[0].message}", "unreadable")
    foreign = listing.kind in ("other", "text", "feed")
    if foreign and all(finding.code == "file.not_sitemap" for finding in damage):
        why = damage[0].message if damage else f"it is a {listing.kind} file"
        raise wrong(f"is not a sitemap or index in XML: {why}", "not_a_sitemap")
    if damage:
        raise wrong(f"is damaged in line {damage[0].line}: {damage[0].message}", "damaged")
    if listing.entries > MAX_ENTRIES:
        raise wrong(f"more than {MAX_ENTRIES:,} entries", "damaged")
    if any(len(child.loc) > MAX_URL for child in listing.children):
        raise wrong(f"a loc of more than {MAX_URL:,} characters", "damaged")
    return listing
