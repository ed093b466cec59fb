"""The keywords of the public functions; scripts/stub writes this file from the option tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from obstore.store import ObjectStore
else:
    ObjectStore = object  # an extra, for typing.get_type_hints


class BuildKeywords(TypedDict, total=False):
    """The keywords of :func:`urlset.build`."""

    name: str
    """The first part of the file names."""
    sitemap_url: str | None
    """The URL of the folder under which the files will be served [the root of --site]."""
    state: str | os.PathLike[str] | ObjectStore | None
    """The folder or prefix for manifest and staging [OUT/.urlset]."""
    header: Sequence[str]
    """A header of the objects in a store; begins with shards: or index: for only these
    (repeatable).
    """
    cache_control: str | None
    """Cache-Control of the objects in a store [a year for shards, five minutes for indexes]."""
    content_encoding: str | None
    """Content-Encoding of the shards in a store [none]."""
    conditional: bool
    """Publish to a store without conditional writes: only one build may run at a time."""
    loc: str | None
    """Column of the URL [loc, url, link, product_url, canonical_url]."""
    loc_template: str | None
    """Or a template: 'https://www.shop.example/{category:raw}/{slug}-{id}'."""
    lastmod: str | None
    """Column of the last change [lastmod, last_modified, updated_at, modified_at]."""
    lastmod_epoch: str | None
    """lastmod contains integers: seconds or milliseconds since 1970."""
    lastmod_from: Sequence[str]
    """Columns whose content decides lastmod, such as title,price: lastmod is the time of the
    build that first saw this content; '*' for all columns (docs/lastmod.md).
    """
    lastmod_ignore: Sequence[str]
    """Columns that '*' does not include, such as stock,updated_at."""
    forget: str
    """For how many days --lastmod-from remembers a URL that is gone."""
    now: str | None
    """The time that counts as now for --lastmod-from and for the age of articles, such as
    2026-11-22T03:00:00Z [the start of the build].
    """
    lastmod_restart: bool
    """Begin --lastmod-from again as in a first build, without the times of earlier builds."""
    changefreq: str | None
    """Column, or a constant: =daily."""
    priority: str | None
    """Column, or a constant: =0.5."""
    image: Sequence[str]
    """Column of images: a URL, a JSON list, or a list column (repeatable)."""
    image_separator: str | None
    """The separator of the images in a cell [none: a cell is one URL or a JSON list]."""
    alternate: Sequence[str] | Mapping[str, str]
    """Another language of the page: 'de=COL'; without a language a column of maps or lists of
    structs (repeatable).
    """
    lang: str | None
    """Language of loc: puts it into its own list of alternates."""
    x_default: str | None
    """Language whose pages also serve all other languages."""
    alternate_rows: bool
    """Also write each alternate as a separate URL."""
    alternate_group: str | None
    """Column whose value the languages of one page share; their rows must be adjacent."""
    lang_column: str | None
    """Column of each row's language, for --alternate-group."""
    video: Sequence[str] | Mapping[str, str]
    """Video: 'TAG=COL' or 'TAG==constant' for each tag, or a column of structs (repeatable)."""
    news: Sequence[str] | Mapping[str, str]
    """News: name, language, publication_date, title, each as TAG=COL, or a column of structs
    (repeatable).
    """
    news_old: str
    """What to do with articles older than two days: keep them, omit the news, or drop the row."""
    timezone: str | None
    """Time zone of times without one [UTC]."""
    for_: str | None
    """Limits and checks of one engine, or of the protocol of 2006; baidu accepts no index."""
    max_urls: int
    """Maximum number of URLs in a shard."""
    max_bytes: int
    """Maximum size of a shard in uncompressed bytes."""
    max_sitemaps: int
    """Maximum number of shards in an index."""
    split_by: str | None
    """A set of shards for each value of a column; @host for each host, in OUT/HOST/ with an
    index each. Uses temporary disk space, at most the size of the plain XML.
    """
    split_index: str
    """One index over all values of --split-by, or one for each."""
    max_groups: int
    """Maximum number of values of --split-by."""
    layout: str
    """Full shards, or stable shard boundaries, so that an edit changes one shard."""
    sort: bool
    """Sort the rows by loc, for catalogs without a stable order. Rows that do not fit into
    memory use temporary disk space: the plain XML and 29 bytes per row.
    """
    index_lastmod: str
    """lastmod in the index: the newest entry, or when the file changed."""
    output: str
    """XML, or one URL per line."""
    gzip: bool
    """Compress the shards."""
    level: str
    """Compression level."""
    add_sitemap: Sequence[str]
    """Add a sitemap made elsewhere to the index (repeatable)."""
    where: Sequence[str]
    """Keep rows: 'COL=VALUE' or 'COL!=VALUE' (repeatable)."""
    exclude: str | os.PathLike[str] | None
    """File with URLs to leave out, in the column loc: the drop list of urlset audit, for
    example. In any format of an input.
    """
    hosts: str
    """Which hosts URLs may have: same, any, or a list a,b."""
    strict_urls: bool
    """Reject a % without two hexadecimal digits."""
    relative_urls: bool
    """Join relative URLs (a/b, ../c, ?d, //host/e) to --site; without it a URL begins with
    http(s):// or with one /.
    """
    on_invalid: str
    """What to do with a row without a valid URL."""
    on_bad_field: str
    """What to do with an invalid lastmod, priority, image and so on."""
    max_rejects: str | int
    """Publish nothing if more rows than this are rejected."""
    rejects: str | os.PathLike[str] | None
    """File for rejected rows, .csv or .parquet [OUT/.urlset/rejects.csv]."""
    duplicates: str
    """What to do with a URL that occurred before, in any set; drop and fail use at most 40 bytes
    of memory per URL (200 M URLs in 8 GB).
    """
    max_shrink: str
    """Publish nothing if the set shrank by more than this."""
    format: str | None
    """Format of the input; lines is one URL per line [by name and content]."""
    query: str | None
    """Query of a database, whose rows are the catalog."""
    delimiter: str | None
    """Delimiter of CSV, or 'tab' [detected]."""
    encoding: str | None
    """Encoding of CSV and lines: utf-8, latin-1, utf-16, shift_jis and others [by the byte order
    mark, else utf-8].
    """
    max_cell: int
    """Maximum size of a CSV cell in bytes."""
    threads: int | None
    """Threads that render and compress [cores]."""
    changes: str | os.PathLike[str] | None
    """Write which URLs were added, changed, removed, .csv, .jsonl or .parquet (needs
    --duplicates drop or fail).
    """
    report: str | os.PathLike[str] | None
    """Write a page with charts about this build and the last ones, .html."""
    verify_staged: bool
    """Read and check the whole set before it goes live."""
    dry_run: bool
    """Do everything except publishing."""


class VerifyKeywords(TypedDict, total=False):
    """The keywords of :func:`urlset.verify`."""

    strict: bool
    """Warnings count as errors."""
    duplicates: bool
    """Do not look for URLs listed twice."""
    reciprocity: bool
    """Look for hreflang links without a link back."""
    memory: int
    """Memory for the hashes of all URLs; above that they go to disk."""
    threads: int | None
    """Default: one for each core."""
    most: int
    """Maximum number of findings listed for each code and file; all are counted."""
    hosts: str | Sequence[str] | None
    """Which hosts URLs may have: same, any, or a list a,b. Default: the hosts in the manifest of
    a build, else same.
    """
    report: str | os.PathLike[str] | None
    """Write a page with charts of the findings and the files, .html."""
    allow_private: bool
    """Fetch from private addresses, too."""


class ReadKeywords(TypedDict, total=False):
    """The keywords of :func:`urlset.read`."""

    lenient: bool
    """Omit what cannot be read."""
    threads: int | None
    """Default: one for each core."""
    allow_private: bool
    """Fetch from private addresses, too."""


class DiffKeywords(TypedDict, total=False):
    """The keywords of :func:`urlset.diff`."""

    lenient: bool
    """Omit what cannot be read."""
    memory: int
    """Memory for entries; above that they go to disk."""
    threads: int | None
    """Default: one for each core."""
    report: str | os.PathLike[str] | None
    """Write a page with charts of the changes, .html."""
    allow_private: bool
    """Fetch from private addresses, too."""


class AuditKeywords(TypedDict, total=False):
    """The keywords of :func:`urlset.audit`."""

    sample: str | int
    """Number of URLs to fetch, or all."""
    by: str | None
    """Strata with a sample and an estimate each: shard, path (the first part of the path), host,
    none, or a column. Default: shard; none for a table.
    """
    loc: str
    """Column of the URL, if TARGET is a table."""
    seed: int
    """Another seed selects another sample."""
    lenient: bool
    """Omit what cannot be read of the sitemaps."""
    rate: float
    """Maximum number of requests per second and host; 0 for no limit."""
    concurrency: int
    """Maximum number of requests at the same time."""
    timeout: float
    """For one page with its redirects."""
    max_wait: float
    """Maximum total wait for a host that answers 429 or 503."""
    hosts: str | Sequence[str] | None
    """Hosts that may be fetched from: any, or a list a,b. Default: those of the set."""
    allow_private: bool
    """Fetch from private addresses, too."""
    resume: str | os.PathLike[str] | None
    """Keep what was judged in this file; if it exists, continue with it."""
    bot: str
    """Crawler whose rules apply in robots.txt, X-Robots-Tag and meta elements."""
    soft_404: str | None
    """Pages whose HTML contains this regular expression (RE2, any case) are error pages."""
    check_lastmod: bool
    """Compare lastmod with the date of the page: article:modified_time, dateModified, else
    Last-Modified.
    """
    output: str | os.PathLike[str] | None
    """Write a row for each finding, .parquet, .csv, .jsonl or .arrow."""
    drop_list: str | os.PathLike[str] | None
    """Write the URLs that redirect, are missing (404, 410), or have noindex or another canonical
    as CSV, for build --exclude.
    """
    report: str | os.PathLike[str] | None
    """Write a page with charts of the estimates and the findings, .html."""
    max_bad: str | None
    """Exit status 1 if a larger share of the URLs is bad or could not be judged."""


class AnnounceKeywords(TypedDict, total=False):
    """The keywords of :func:`urlset.announce`."""

    to: str | Iterable[str]
    """Engine to announce to: robots, indexnow, google, bing (also feeds Yahoo) or yandex.
    Repeatable.
    """
    robots: str | os.PathLike[str] | None
    """The robots.txt in which the block of Sitemap lines is updated."""
    check: bool
    """robots: check whether the live robots.txt lists all indexes."""
    changes: str | os.PathLike[str] | None
    """indexnow, bing: the change feed of a build (.csv, .jsonl, .parquet)."""
    urls: str | os.PathLike[str] | None
    """indexnow, bing: a list of URLs, one per line, or in a format by its extension as above."""
    all: bool
    """indexnow: allow a full set: more than half of the live URLs. Only after a move."""
    hosts: str | Iterable[str]
    """indexnow: hosts for which the key may be used. Each host in the change feed learns the
    key.
    """
    init_key: bool
    """indexnow: create a key and the file that proves it to the site; send nothing."""
    key_file: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None
    """Read a key from a file; without ENGINE the key of IndexNow. Repeatable."""
    key_location: str | None
    """indexnow: address of the key file, if not https://HOST/KEY.txt."""
    property: str | Mapping[str, str] | None
    """google: sc-domain:HOST or a URL prefix; bing: the site as Bing lists it; yandex:
    https:HOST:443. By default the root of the site.
    """
    status: bool
    """google: show errors, warnings and last download of each sitemap; submit nothing."""
    yandex_user: str | None
    """yandex: the user; requested from Yandex by default."""
    sitemap_url: str | None
    """Address of the folder, if there is no manifest with it."""
    state: str | os.PathLike[str] | None
    """Folder for manifest, journal and key instead of TARGET/.urlset."""
    endpoint: str | Mapping[str, str] | None
    """Another address of an engine: https, or http to this machine."""
    timeout: float
    """For one request and its response."""
    retries: int
    """How often a failed request is sent again."""
    max_wait: float
    """Maximum total wait when an engine asks to retry later."""
    dry_run: bool
    """Print the exact requests with masked keys; send none."""


class CleanKeywords(TypedDict, total=False):
    """The keywords of :func:`urlset.clean`."""

    state: str | os.PathLike[str] | ObjectStore | None
    """The --state of the builds [DESTINATION/.urlset]."""
    older_than: str
    """Leave files that were written within this time, as by a build that still runs: 7d, 12h,
    30m.
    """
    dry_run: bool
    """List what would be removed, and remove nothing."""
