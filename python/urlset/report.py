"""The report of a build, for people and for ``--json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from . import _core

if TYPE_CHECKING:
    from .options import Options


@dataclass(frozen=True)
class Shard:
    """A sitemap file.

    Attributes:
        path: relative to the output folder.
        urls: entries in it.
        bytes: before compression.
        compressed_bytes: the size of the file.
        lastmod: the newest of its entries, as written.
        changed: this build wrote it; otherwise it was live already.
        digest: 128 bits of BLAKE3 of the bytes before compression, hexadecimal.
    """

    path: str
    urls: int
    bytes: int
    compressed_bytes: int
    lastmod: str | None
    changed: bool
    digest: str


@dataclass(frozen=True)
class IndexFile:
    """A sitemap index.

    Attributes:
        path: relative to the output folder.
        sitemaps: the number of entries.
        bytes: the size of the file.
        url: where it is served.
    """

    path: str
    sitemaps: int
    bytes: int
    url: str = ""


@dataclass(frozen=True)
class Warning:
    """A warning of a build.

    Attributes:
        code: stable, such as ``loc.fragment``.
        count: the number of occurrences.
        message: what happened and what to do.
    """

    code: str
    count: int
    message: str


@dataclass
class Report:
    """The report of a build.

    Every row has one outcome: ``rows + expanded == urls + rejected + filtered + duplicates``.

    Attributes:
        version: that of urlset.
        published: this build is live.
        error: ``{"code", "message"}`` of the error that ended it.
        rows: the rows that were read.
        urls: the URLs that were written.
        rejected: rows without a legal URL.
        filtered: rows that ``where`` left out.
        duplicates: rows that ``duplicates="drop"`` left out.
        expanded: URLs that ``alternate_rows`` added.
        seconds: the duration of the whole build.
        peak_rss: the peak memory of the process so far, in bytes.
        rejects: ``{"by_code": {code: rows}, "path": file or None}``.
        shards: the sitemaps.
        indexes: the indexes.
        warnings: what was written, and is probably not intended.
        url: the URL of the first index.
        mapping: the column of each field.
        timings: seconds of ``build`` (read to staged) and ``publish``.
        lastmod: with ``lastmod_from`` the number of URLs by what happened to their content
            (docs/lastmod.md); else None.
    """

    version: str
    published: bool = False
    error: dict[str, Any] | None = None
    rows: int = 0
    urls: int = 0
    rejected: int = 0
    filtered: int = 0
    duplicates: int = 0
    expanded: int = 0
    seconds: float = 0.0
    peak_rss: int = 0
    rejects: dict[str, Any] = field(default_factory=lambda: {"by_code": {}, "path": None})
    shards: list[Shard] = field(default_factory=list)
    indexes: list[IndexFile] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    url: str | None = None
    mapping: dict[str, str] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    lastmod: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The report as ``--json`` writes it; ``lastmod`` only with ``--lastmod-from``."""
        content = asdict(self)
        if self.lastmod is None:
            del content["lastmod"]
        return content


#: the texts of warnings by code, each after a count: what happened and what to do
NOTES = {
    "publish.recovered": "build that was killed during its publication was completed first",
    "changes.delivered": "delivered of the change feeds that previous builds could not deliver;"
    " announce these changes, too",
    "changes.recovered": "change feed of a build that was killed was kept beside the manifest"
    " (changes-recovered.*); announce it, too",
    "changes.waiting": "waiting beside the manifest of the change feeds of previous builds; a"
    " build with --changes PATH delivers all",
    "publish.left": "of the old sitemaps not removed, since a folder or a link is in their place;"
    " remove it by hand",
    "store.left": "old file not deleted, since the store refused or failed; urlset clean deletes it"
    " (the credentials need the permission to delete)",
    "manifest.config": "set built from scratch: its options differ from those of the live build",
    "manifest.edited": "of the live sitemaps written again: changed or removed by hand",
    "loc.excluded": "left out: in the file of --exclude",
    "loc.over_1024": "over 1,024 characters, which Yandex refuses; shorten such URLs for Yandex",
    "loc.outside_folder": "outside the folder of the sitemaps: valid only if robots.txt or"
    " Search Console lists the index; otherwise serve the files from a higher folder"
    " (--sitemap-url)",
    "loc.fragment": "with a fragment (#...): crawlers ignore it; remove it",
    "loc.entity": "with a character reference of XML or HTML such as &amp;: the source is escaped"
    " twice, and crawlers would request &amp;; unescape it there (urlset escapes URLs itself)",
    "loc.backslash": "with a backslash: written as a slash, as browsers and crawlers read it;"
    " correct the source",
    "loc.placeholder": "with a placeholder that was not replaced, such as {{slug}}: the page does"
    " not exist; correct the source, or omit such rows (--where)",
    "loc.site_path": "beginning with /: joined to the host of --site, without its path (RFC 3986)",
    "loc.variant": "that differ from another URL only in case or in a slash at the end"
    "  (exact up to 10,000 URLs, beyond that counted in a sample); list the canonical one",
    "lastmod.same": "with the same lastmod: search engines distrust one date on all pages; map"
    " the column with the last change of each page, or omit lastmod",
    "lastmod.clock": "with a lastmod later than the time of this build, which stayed though the"
    " content changed: lastmod never decreases; check the clock of this machine, or --now",
    "lastmod.columns": "not compared with the last build, since the columns of --lastmod-from are"
    " others: each kept its lastmod, and is compared again from the next build on",
    "lastmod.invalid": "lastmod left out, not a date (--on-bad-field reject rejects the row;"
    " integers since 1970 need --lastmod-epoch)",
    "changefreq.invalid": "changefreq left out, none of the seven words"
    " (--on-bad-field reject rejects the row)",
    "priority.invalid": "priority left out, not from 0.0 to 1.0"
    " (--on-bad-field reject rejects the row)",
    "text.illegal": "text with characters that XML does not allow: these were omitted",
    **{code: text for extension in _core.extensions() for code, text in extension.warnings},
}


def message_of(code: str) -> str:
    """The text of a warning."""
    return NOTES.get(code, code)


def warnings_of(notes: dict[str, int]) -> list[Warning]:
    """Counts by code as warnings."""
    return [Warning(code, count, message_of(code)) for code, count in sorted(notes.items())]


def explain_site_path(report: Report, site: str) -> None:
    """Completes the warning ``loc.site_path`` with the result and the alternative.

    Args:
        report: its mapping contains the column of the URLs, or their template.
        site: the option.
    """
    parts = urlsplit(site.rstrip("/"))
    loc = report.mapping.get("loc", "loc")
    path = loc if loc.startswith("/") else f"{{{loc}:raw}}"
    message = (
        f"{NOTES['loc.site_path']}: /p became {parts.scheme}://{parts.netloc}/p; for"
        f" {parts.geturl()}/p write --loc-template '{parts.geturl()}{path}'"
    )
    report.warnings = [
        replace(one, message=message) if one.code == "loc.site_path" else one
        for one in report.warnings
    ]


#: the number of names that a message lists
MAX_NAMES = 10


def skipped_warnings(names: list[str]) -> list[Warning]:
    """The warning for files of a folder that are not data."""
    if not names:
        return []
    listed = ", ".join(names[:MAX_NAMES])
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    message = f"skipped in the folder of the input, not data: {listed}{more}"
    return [Warning("input.skipped", len(names), message)]


#: the number of indexes of one site that Google's Search Console accepts (docs/protocol.md)
MAX_GOOGLE_INDEXES = 500


def engine_warnings(options: Options, report: Report) -> list[Warning]:
    """Warnings about entries that a search engine ignores or refuses."""
    found: list[Warning] = []
    if {"priority", "changefreq"} & report.mapping.keys() and (
        options.for_ is None or options.preset.ignores_priority
    ):
        message = "with a column for priority or changefreq, which Google and Bing ignore"
        found.append(Warning("priority.ignored", report.urls, message))
    indexes = len(report.indexes)
    if options.for_ == "google" and indexes > MAX_GOOGLE_INDEXES:
        message = f"indexes, more than the {MAX_GOOGLE_INDEXES} that Google accepts for a site"
        found.append(Warning("google.indexes", indexes, message))
    bare = sum(len(shard.lastmod or "") < len("2026-11-20T") for shard in report.shards)
    if options.for_ == "bing" and bare:
        message = "without a newest lastmod that has a time: Bing expects date and time"
        found.append(Warning("bing.lastmod", bare, message))
    return found
