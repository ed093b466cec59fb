"""What a build did, for people and for ``--json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from .config import Options


@dataclass(frozen=True)
class Shard:
    """A sitemap file.

    Attributes:
        path: relative to the output folder.
        urls: entries in it.
        bytes: before compression.
        compressed_bytes: of the file.
        lastmod: the newest of its entries, as written.
        changed: it was written by this build; otherwise it was live already.
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
    """A sitemap index: its path in the output folder, how many sitemaps it names, its bytes, its
    address."""

    path: str
    sitemaps: int
    bytes: int
    url: str = ""


@dataclass(frozen=True)
class Warning:
    """Something worth a word: a stable code, how often it happened, and what to do."""

    code: str
    count: int
    message: str


@dataclass
class Report:
    """What a build did.

    Every row has one fate: ``rows + expanded == urls + rejected + filtered + duplicates``.

    Attributes:
        published: the output folder now holds this build.
        error: ``{"code", "message"}`` of the error that ended it.
        seconds: of the whole.
        peak_rss: bytes of memory that the process held at most, so far.
        rejects: ``{"by_code": {code: rows}, "path": file or None}``.
        url: the address of the first index.
        mapping: what each field was taken from.
        timings: seconds of ``build`` (read to staged) and ``publish``.
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

    def to_dict(self) -> dict[str, Any]:
        """The report as ``--json`` writes it."""
        return asdict(self)


#: what the core counts, and what to do about it
NOTES = {
    "publish.recovered": "build that was killed during its publication was completed first",
    "changes.delivered": "change feeds of former builds, which could not be delivered then, were"
    " delivered now; announce them, too",
    "changes.recovered": "change feed of a build that was killed was kept beside the manifest"
    " (changes-recovered.*); announce it, too",
    "changes.waiting": "change feeds of former builds wait beside the manifest; a build with"
    " --changes PATH delivers them",
    "publish.left": "old sitemaps are no files of urlset any more (a folder or a link has their"
    " place) and were left; remove them by hand",
    "manifest.config": "the options are others than those of the live build: all was built anew",
    "manifest.site": "what is live is of another site: all was built anew",
    "manifest.edited": "live sitemaps were changed or removed by hand and were written anew",
    "loc.over_1024": "URLs are longer than 1,024 characters, which Yandex refuses; shorten them if"
    " Yandex counts",
    "loc.outside_folder": "URLs are outside the folder of the sitemaps: fine if robots.txt or"
    " Search Console names the index, else serve the files higher up (--sitemap-url)",
    "loc.fragment": "URLs have a fragment (#...): crawlers take them for the page without it; leave"
    " it out",
    "loc.entity": "URLs hold a character reference of XML or HTML such as &amp;: their source is"
    " escaped twice, and crawlers would ask for &amp;; unescape it there (urlset escapes them)",
    "loc.backslash": "URLs have a backslash: it was written as the slash that browsers and crawlers"
    " take it for; correct the source",
    "loc.site_path": "URLs begin with /: they were joined to the host of --site, without its path"
    " (RFC 3986)",
    "loc.variant": "pages stand here with several URLs that differ only in case or in a slash at"
    " the end (exact up to 25,000 URLs, beyond that counted in a sample); list the canonical one",
    "lastmod.same": "URLs all have the same lastmod: search engines distrust one date on all; map"
    " the column that says when each page changed, or leave lastmod out",
    "lastmod.invalid": "values of lastmod make no sense and were left out (--on-bad-field reject"
    " rejects their rows; integers since 1970 need --lastmod-epoch)",
    "changefreq.invalid": "values of changefreq are none of the seven and were left out"
    " (--on-bad-field reject rejects their rows)",
    "priority.invalid": "values of priority are not from 0.0 to 1.0 and were left out"
    " (--on-bad-field reject rejects their rows)",
    "image.invalid": "images have no legal http(s) URL and were left out"
    " (--on-bad-field reject rejects their rows)",
    "image.over_1000": "images beyond the 1,000 that a URL may have were left out",
    "alternate.empty": "languages of a page have no URL and were left out"
    " (--on-bad-field reject rejects their rows)",
    "alternate.invalid": "alternates have no legal http(s) URL and were left out"
    " (--on-bad-field reject rejects their rows)",
    "alternate.code": "codes of languages are wrong (write de, de-CH or x-default) and their"
    " alternates were left out (--on-bad-field reject rejects their rows)",
    "alternate.duplicate": "second URLs of one language of a page were left out",
    "alternate.no_self": "pages are not in their own list of alternates: Google ignores links that"
    " are not returned; name the language of loc (--lang CODE)",
    "alternate.not_a_row": "alternates are not URLs that this set may hold (of another host, say)"
    " and got no entry of their own; allow their hosts with --hosts",
    "alternate.over_1000": "alternates beyond the 1,000 that a page may have were left out",
    "text.illegal": "texts had characters that XML does not allow; they were left out",
    "video.over_32_tags": "tags beyond the 32 that a video may have were left out",
    "video.invalid": "values are neither a video nor a list of videos and were left out",
    "news.invalid": "values are no news, or second ones of a page, and were left out",
    "news.old": "articles are older than two days: their URLs were written without news",
    "news.dropped": "articles are older than two days: their rows were left out",
}

#: a block without one of these is not written
REQUIRED = {"video.thumbnail_loc", "video.title", "video.description"}


def message_of(code: str) -> str:
    """What a code of the core says."""
    known = NOTES.get(code)
    if known is not None:
        return known
    block, _, tag = code.partition(".")
    if block == "news" or code in REQUIRED:
        whole = "news" if block == "news" else "videos"
        return f"values of {block}:{tag} are missing or wrong: their {whole} were left out"
    return f"values of {block}:{tag} are missing or wrong and were left out"


def warnings_of(notes: dict[str, int]) -> list[Warning]:
    """The counts of the core as warnings."""
    return [Warning(code, count, message_of(code)) for code, count in sorted(notes.items())]


def explain_site_path(report: Report, site: str) -> None:
    """Says in the warning ``loc.site_path`` what was done and how to ask for the other.

    Args:
        report: its mapping tells the column of the URLs, or their template.
        site: the option.
    """
    parts = urlsplit(site.rstrip("/"))
    loc = report.mapping.get("loc", "loc")
    path = loc if loc.startswith("/") else f"{{{loc}:raw}}"
    message = (
        f"{NOTES['loc.site_path']}: /p became {parts.scheme}://{parts.netloc}/p; if it is to be"
        f" {parts.geturl()}/p, give --loc-template '{parts.geturl()}{path}'"
    )
    report.warnings = [
        replace(one, message=message) if one.code == "loc.site_path" else one
        for one in report.warnings
    ]


#: names that a message lists at most
MOST_NAMES = 10


def skipped_warnings(names: list[str]) -> list[Warning]:
    """The files of a folder that are no data."""
    if not names:
        return []
    listed = ", ".join(names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    message = f"files in the folder of the input are no data and were skipped: {listed}{more}"
    return [Warning("input.skipped", len(names), message)]


#: indexes of one site that Google's Search Console takes (PROTOCOL section 2)
MAX_GOOGLE_INDEXES = 500


def engine_warnings(options: Options, report: Report) -> list[Warning]:
    """What an engine makes of the whole build."""
    found: list[Warning] = []
    if {"priority", "changefreq"} & report.mapping.keys() and (
        options.for_ is None or options.preset.ignores_priority
    ):
        found.append(
            Warning(
                "priority.ignored",
                report.urls,
                "URLs may have priority or changefreq, which Google and Bing ignore",
            )
        )
    if options.for_ == "google" and len(report.indexes) > MAX_GOOGLE_INDEXES:
        found.append(
            Warning(
                "google.indexes",
                len(report.indexes),
                f"indexes are more than the {MAX_GOOGLE_INDEXES} that Google takes of a site",
            )
        )
    if options.for_ == "bing":
        bare = sum(len(shard.lastmod or "") < len("2026-11-20T") for shard in report.shards)
        if bare:
            found.append(
                Warning(
                    "bing.lastmod",
                    bare,
                    "sitemaps have no newest lastmod with a time, and Bing wants date and time",
                )
            )
    return found
