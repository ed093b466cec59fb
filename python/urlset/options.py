"""The options of a build.

Each field of :class:`Options` is an option of the command line (``max_urls`` is ``--max-urls``), a
key of ``urlset.toml``, a keyword of :func:`urlset.build` and, unless ``core=False``, a name in the
configuration of the core. Whole-number limits and the names of guessed columns come from the core.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from . import _core
from .errors import ConfigError
from .option_table import check_values, option, options_of
from .outfile import check_page, is_store, must_be_local

LIMITS = _core.limits()
#: the columns that the core finds by name, by field
COLUMN_NAMES = _core.column_names()
#: sitemaps in one index
MAX_SITEMAPS = 50_000
#: the largest number of rows that the core counts to
MAX_COUNT = (1 << 63) - 1
#: a time of RFC 3339 in upper case; the years that a sitemap can have
RFC_3339 = r"(?a)(?!0000)\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.]\d+)?(Z|[+-]\d\d:\d\d)"

Table = TypeVar("Table")


@dataclass(frozen=True)
class Preset:
    """What one engine accepts; smaller limits of the user stay (docs/protocol.md)."""

    max_bytes: int = _core.MAX_BYTES
    max_sitemaps: int = MAX_SITEMAPS
    max_loc: int = LIMITS["max_loc"][1]
    index: bool = True
    ignores_priority: bool = False


PRESETS = {
    "google": Preset(ignores_priority=True),
    "bing": Preset(ignores_priority=True),
    "yandex": Preset(max_loc=1_024),
    "baidu": Preset(max_bytes=10_485_760, index=False),
    "2006": Preset(max_bytes=10_485_760, max_sitemaps=1_000),
}


#: the type and the default of an option of an extension, by its kind
_KINDS: dict[str, tuple[str, Any]] = {
    "columns": ("tuple[str, ...]", ()),
    "pairs": ("tuple[str, ...]", ()),
    "column": ("str | None", None),
    "text": ("str | None", None),
    "flag": ("bool", False),
    "age": ("str", "keep"),
}
#: the options of all extensions, as their descriptors in the core list them
EXTENSION_OPTIONS = [spec for extension in _core.extensions() for spec in extension.options]


def _with_extensions(table: type[Table]) -> type[Table]:
    """Adds the options of the extensions to a table, behind ``priority``."""
    annotations: dict[str, str] = {}
    for name, annotation in table.__annotations__.items():
        annotations[name] = annotation
        if name != "priority":
            continue
        for spec in EXTENSION_OPTIONS:
            annotations[spec.name], default = _KINDS[spec.kind]
            added = option(
                default, "Extensions", spec.help, metavar=spec.metavar,
                choices=("keep", "omit", "drop") if spec.kind == "age" else None,
                per_set=True, pairs=spec.kind == "pairs",
            )  # fmt: skip
            setattr(table, spec.name, added)
    table.__annotations__ = annotations
    return table


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)  # half the time at start-up
@_with_extensions
class Options:
    """The options of a build, as a user writes them; :meth:`checked` checks them."""

    site: str = option("", "Where", "The site that all URLs belong to.", metavar="URL")
    out: str | os.PathLike[str] = option(
        "", "Where", "The folder to publish to, or a prefix in an object store: s3://, gs:// or"
        " az://BUCKET/PREFIX.", metavar="DIR|URL", core=False,
        keyword="str | os.PathLike[str] | ObjectStore",
    )  # fmt: skip
    name: str = option(
        "sitemap", "Where", "The first part of the file names.", metavar="NAME", per_set=True
    )
    sitemap_url: str | None = option(
        None, "Where", "The URL of the folder under which the files will be served [the root of"
        " --site].", metavar="URL",
    )  # fmt: skip
    state: str | os.PathLike[str] | None = option(
        None, "Where", "The folder or prefix for manifest and staging [OUT/.urlset].",
        metavar="DIR|URL", core=False, keyword="str | os.PathLike[str] | ObjectStore | None",
    )  # fmt: skip
    header: tuple[str, ...] = option(
        (), "Where", "A header of the objects in a store; begins with shards: or index: for only"
        " these (repeatable).", metavar="NAME=VALUE", core=False,
    )  # fmt: skip
    cache_control: str | None = option(
        None, "Where", "Cache-Control of the objects in a store [a year for shards, five minutes"
        " for indexes].", metavar="VALUE", core=False,
    )  # fmt: skip
    content_encoding: str | None = option(
        None, "Where", "Content-Encoding of the shards in a store [none].", metavar="VALUE",
        core=False,
    )  # fmt: skip
    conditional: bool = option(
        True, "Where", "Publish to a store without conditional writes: only one build may run at a"
        " time.", flag="--no-conditional", core=False,
    )  # fmt: skip

    loc: str | None = option(
        None, "Mapping", f"Column of the URL [{', '.join(COLUMN_NAMES['loc'])}].", metavar="COL",
        per_set=True,
    )  # fmt: skip
    loc_template: str | None = option(
        None, "Mapping", "Or a template: 'https://www.shop.example/{category:raw}/{slug}-{id}'.",
        metavar="TEXT", per_set=True,
    )  # fmt: skip
    lastmod: str | None = option(
        None, "Mapping", f"Column of the last change [{', '.join(COLUMN_NAMES['lastmod'])}].",
        metavar="COL", per_set=True,
    )  # fmt: skip
    lastmod_epoch: str | None = option(
        None, "Mapping", "lastmod contains integers: seconds or milliseconds since 1970.",
        choices=("seconds", "milliseconds"), per_set=True,
    )  # fmt: skip
    lastmod_from: tuple[str, ...] = option(
        (), "Mapping", "Columns whose content decides lastmod, such as title,price: lastmod is the"
        " time of the build that first saw this content; '*' for all columns (docs/lastmod.md).",
        metavar="COL,COL",
    )  # fmt: skip
    lastmod_ignore: tuple[str, ...] = option(
        (), "Mapping", "Columns that '*' does not include, such as stock,updated_at.",
        metavar="COL,COL",
    )  # fmt: skip
    forget: str = option(
        "90d", "Mapping", "For how many days --lastmod-from remembers a URL that is gone.",
        metavar="Nd",
    )  # fmt: skip
    now: str | None = option(
        None, "Mapping", "The time that counts as now for --lastmod-from and for the age of"
        " articles, such as 2026-11-22T03:00:00Z [the start of the build].", metavar="TIME",
    )  # fmt: skip
    lastmod_restart: bool = option(
        False, "Mapping", "Begin --lastmod-from again as in a first build, without the times of"
        " earlier builds.", core=False,
    )  # fmt: skip
    changefreq: str | None = option(
        None, "Mapping", "Column, or a constant: =daily.", metavar="COL", per_set=True
    )
    priority: str | None = option(
        None, "Mapping", "Column, or a constant: =0.5.", metavar="COL", per_set=True
    )
    timezone: str | None = option(
        None, "Mapping", "Time zone of times without one [UTC].", metavar="ZONE", per_set=True
    )

    for_: str | None = option(
        None, "Layout", "Limits and checks of one engine, or of the protocol of 2006; baidu accepts"
        " no index.", choices=tuple(PRESETS), core=False,
    )  # fmt: skip
    max_urls: int = option(
        _core.MAX_URLS, "Layout", "Maximum number of URLs in a shard.", metavar="N",
        limits=LIMITS["max_urls"],
    )  # fmt: skip
    max_bytes: int = option(
        _core.MAX_BYTES, "Layout", "Maximum size of a shard in uncompressed bytes.", metavar="N",
        limits=LIMITS["max_bytes"],
    )  # fmt: skip
    max_sitemaps: int = option(
        MAX_SITEMAPS, "Layout", "Maximum number of shards in an index.", metavar="N",
        limits=(1, MAX_SITEMAPS), core=False,
    )  # fmt: skip
    split_by: str | None = option(
        None, "Layout", "A set of shards for each value of a column; @host for each host, in"
        " OUT/HOST/ with an index each. Uses temporary disk space, at most the size of the plain"
        " XML.", metavar="COL|@host", per_set=True,
    )  # fmt: skip
    split_index: str = option(
        "one", "Layout", "One index over all values of --split-by, or one for each.",
        choices=("one", "each"), core=False,
    )  # fmt: skip
    max_groups: int = option(
        10_000, "Layout", "Maximum number of values of --split-by.", metavar="N",
        limits=LIMITS["max_groups"], per_set=True,
    )  # fmt: skip
    layout: str = option(
        "packed", "Layout", "Full shards, or stable shard boundaries, so that an edit changes one"
        " shard.", choices=("packed", "stable"),
    )  # fmt: skip
    sort: bool = option(
        False, "Layout", "Sort the rows by loc, for catalogs without a stable order. Rows that do"
        " not fit into memory use temporary disk space: the plain XML and 29 bytes per row.",
        per_set=True,
    )  # fmt: skip
    index_lastmod: str = option(
        "newest", "Layout", "lastmod in the index: the newest entry, or when the file changed.",
        choices=("newest", "changed"), core=False,
    )  # fmt: skip
    output: str = option("xml", "Layout", "XML, or one URL per line.", choices=("xml", "text"))
    gzip: bool = option(True, "Layout", "Compress the shards.", core=False)
    level: str = option(
        "default", "Layout", "Compression level.", choices=("fast", "default", "best"), core=False
    )
    add_sitemap: tuple[str, ...] = option(
        (), "Layout", "Add a sitemap made elsewhere to the index (repeatable).", metavar="URL",
        core=False,
    )  # fmt: skip

    where: tuple[str, ...] = option(
        (), "Rows", "Keep rows: 'COL=VALUE' or 'COL!=VALUE' (repeatable).", metavar="COND",
        per_set=True,
    )  # fmt: skip
    exclude: str | os.PathLike[str] | None = option(
        None, "Rows", "File with URLs to leave out, in the column loc: the drop list of urlset"
        " audit, for example. In any format of an input.", metavar="PATH", core=False,
    )  # fmt: skip
    hosts: str = option(
        "same", "Rows", "Which hosts URLs may have: same, any, or a list a,b.", metavar="HOSTS",
        per_set=True,
    )  # fmt: skip
    strict_urls: bool = option(
        False, "Rows", "Reject a % without two hexadecimal digits.", per_set=True
    )
    relative_urls: bool = option(
        False, "Rows", "Join relative URLs (a/b, ../c, ?d, //host/e) to --site; without it a URL"
        " begins with http(s):// or with one /.", per_set=True,
    )  # fmt: skip
    on_invalid: str = option(
        "reject", "Rows", "What to do with a row without a valid URL.", choices=("reject", "fail")
    )
    on_bad_field: str = option(
        "omit", "Rows", "What to do with an invalid lastmod, priority, image and so on.",
        choices=("omit", "reject"), per_set=True,
    )  # fmt: skip
    max_rejects: str | int = option(
        "1%", "Rows", "Publish nothing if more rows than this are rejected.", metavar="N|P%"
    )
    rejects: str | os.PathLike[str] | None = option(
        None, "Rows", "File for rejected rows, .csv or .parquet [OUT/.urlset/rejects.csv].",
        metavar="PATH", core=False,
    )  # fmt: skip
    duplicates: str = option(
        "keep", "Rows", "What to do with a URL that occurred before, in any set; drop and fail use"
        " at most 40 bytes of memory per URL (200 M URLs in 8 GB).",
        choices=("keep", "drop", "fail"),
    )  # fmt: skip
    max_shrink: str = option(
        "20%", "Rows", "Publish nothing if the set shrank by more than this.", metavar="P%",
        core=False,
    )  # fmt: skip

    format: str | None = option(
        None, "Run", "Format of the input; lines is one URL per line [by name and content].",
        choices=("csv", "parquet", "arrow", "jsonl", "lines"), per_set=True, core=False,
    )  # fmt: skip
    query: str | None = option(
        None, "Run", "Query of a database, whose rows are the catalog.", metavar="SQL",
        per_set=True, core=False,
    )  # fmt: skip
    delimiter: str | None = option(
        None, "Run", "Delimiter of CSV, or 'tab' [detected].", metavar="CHAR", per_set=True
    )
    encoding: str | None = option(
        None, "Run", "Encoding of CSV and lines: utf-8, latin-1, utf-16, shift_jis and others [by"
        " the byte order mark, else utf-8].", metavar="NAME", per_set=True,
    )  # fmt: skip
    max_cell: int = option(
        1 << 20, "Run", "Maximum size of a CSV cell in bytes.", metavar="N",
        limits=LIMITS["max_cell"], per_set=True,
    )  # fmt: skip
    threads: int | None = option(
        None, "Run", "Threads that render and compress [cores].", metavar="N",
        limits=LIMITS["threads"],
    )  # fmt: skip
    changes: str | os.PathLike[str] | None = option(
        None, "Run", "Write which URLs were added, changed, removed, .csv, .jsonl or .parquet "
        "(needs --duplicates drop or fail).", metavar="PATH", core=False,
    )  # fmt: skip
    report: str | os.PathLike[str] | None = option(
        None, "Run", "Write a page with charts about this build and the last ones, .html.",
        metavar="PATH", core=False,
    )  # fmt: skip
    verify_staged: bool = option(
        False, "Run", "Read and check the whole set before it goes live.", core=False
    )
    dry_run: bool = option(False, "Run", "Do everything except publishing.", core=False)

    def checked(self) -> Options:
        """The same options, with every check that needs no data.

        Raises:
            ConfigError: for the first wrong value.
        """
        if not self.site:
            raise ConfigError(
                "no site is given (--site https://www.shop.example)", code="config.site"
            )
        if isinstance(self.out, str) and not self.out:
            raise ConfigError("no output folder is given (--out DIR)", code="config.out")
        for name in ("out", "state", "rejects", "changes", "report"):
            target = getattr(self, name)
            if target is not None and not is_store(target):
                must_be_local(name, target)
        self._check_headers()
        check_values(self)
        check_name(self.name)
        self._check_changes()
        if self.report is not None:
            check_page(self.report)
        self.max_rejects_json()
        parse_percent("max_shrink", self.max_shrink)
        self.filters_json()
        self._check_lastmod()
        self._check_text()
        self._check_addresses()
        return self

    def _check_headers(self) -> None:
        if is_store(self.out):
            return
        for name in ("header", "cache_control", "content_encoding"):
            if getattr(self, name):
                raise ConfigError(
                    f"{name}: the server of a folder sets the headers; this is for object stores",
                    code="config.header",
                )

    def _check_changes(self) -> None:
        if self.changes is None:
            return
        if self.duplicates == "keep":
            raise ConfigError(
                "changes: with duplicates, a URL that is new in one shard may already be in"
                " another; drop them (--duplicates drop)",
                code="config.changes",
            )
        if not os.fspath(self.changes).endswith((".csv", ".jsonl", ".parquet")):
            raise ConfigError(
                f"changes: {os.fspath(self.changes)!r} does not end in .csv, .jsonl or .parquet",
                code="config.changes",
            )

    def _check_lastmod(self) -> None:
        self.forget_seconds()
        self.now_seconds()
        columns = _names(self.lastmod_from)
        if "*" in columns and len(columns) > 1:
            raise ConfigError(
                "lastmod_from: * is all columns; write it alone, or name the columns",
                code="config.lastmod_from",
            )
        if self.lastmod_from and not columns:
            raise ConfigError("lastmod_from: names no column", code="config.lastmod_from")
        if columns and self.output == "text":
            raise ConfigError(
                "lastmod_from: a text sitemap contains URLs only; omit the option, or write XML",
                code="config.text",
            )
        for name in ("lastmod_ignore", "lastmod_restart"):
            if (
                getattr(self, name)
                and columns != ["*"]
                and (name != "lastmod_restart" or not columns)
            ):
                needed = "*" if name == "lastmod_ignore" else "COL,COL"
                raise ConfigError(f"{name}: needs --lastmod-from {needed}", code=f"config.{name}")

    def forget_seconds(self) -> int:
        """``forget`` in seconds.

        Raises:
            ConfigError: ``config.forget``.
        """
        match = re.fullmatch(r"(?a)(\d{1,6})\s*d", self.forget.strip())
        if not match:
            raise ConfigError(
                f"forget: {self.forget!r} is not a number of days; write for example 90d",
                code="config.forget",
            )
        return int(match[1]) * 86_400

    def now_seconds(self) -> int | None:
        """``now`` in seconds since 1970.

        Raises:
            ConfigError: ``config.now``.
        """
        if self.now is None:
            return None
        from datetime import datetime  # most builds do not need it

        text = self.now.strip().upper()
        try:
            if not re.fullmatch(RFC_3339, text):
                raise ValueError
            # a fraction is cut
            seconds = datetime.fromisoformat(re.sub(r"[.]\d+", "", text)).timestamp()
        except (ValueError, OverflowError):
            raise ConfigError(
                f"now: {self.now!r} is not a time of RFC 3339; write for example"
                " 2026-11-22T03:00:00Z",
                code="config.now",
            ) from None
        return int(seconds)

    def _check_text(self) -> None:
        """A text sitemap contains URLs only."""
        if self.output != "text":
            return
        for spec in EXTENSION_OPTIONS:
            if spec.kind in ("columns", "pairs", "column") and getattr(self, spec.name):
                raise ConfigError(
                    f"{spec.name}: a text sitemap contains URLs only; omit the option, or write"
                    " XML",
                    code="config.text",
                )

    def _check_addresses(self) -> None:
        address = self.sitemap_url or self.site
        try:
            parts = urlsplit(address)
        except ValueError:  # brackets that are not an IPv6 address
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ConfigError(
                f"{address!r} is not the address of a site; write for example"
                " https://www.shop.example",
                code="config.sitemap_url" if self.sitemap_url else "config.site",
            )
        if "{host}" in (self.sitemap_url or "") and self.split_by != "@host":
            raise ConfigError(
                "sitemap_url: {host} needs --split-by @host", code="config.sitemap_url"
            )
        if self.add_sitemap and not self.preset.index:
            raise ConfigError(
                f"add_sitemap: {self.for_} accepts no index; submit the sitemap separately",
                code="config.add_sitemap",
            )
        if self.split_by == "@host" and self.add_sitemap:
            raise ConfigError(
                "add_sitemap: with --split-by @host each host has its own index, and the option"
                " cannot select one",
                code="config.split",
            )
        for sitemap in self.add_sitemap:
            _core.address(sitemap)

    def folder_url(self) -> str:
        """The address of the output folder, ending in ``/``; ``{host}`` where each has its own."""
        if self.sitemap_url:
            address = self.sitemap_url.rstrip("/") + "/"
        else:
            parts = urlsplit(self.site)
            host = "{host}" if self.split_by == "@host" else parts.netloc
            address = f"{parts.scheme}://{host}/"
        # {host} is a placeholder, which the rules of a host do not allow
        return address if "{host}" in address else _core.address(address)

    @property
    def preset(self) -> Preset:
        """The limits of ``for``, or those of the protocol."""
        return PRESETS[self.for_] if self.for_ else Preset()

    def max_rejects_json(self) -> dict[str, float]:
        """``max_rejects`` as the core reads it.

        Raises:
            ConfigError: ``config.percent``.
        """
        text = str(self.max_rejects).strip()
        if text.isdecimal():
            return {"count": min(int(text), MAX_COUNT)}
        if not text.endswith("%"):
            raise ConfigError(
                f"max_rejects: {text!r} is neither a number of rows nor a percentage of them;"
                " write for example 100 or 1%",
                code="config.percent",
            )
        return {"share": parse_percent("max_rejects", text)}

    def filters_json(self) -> list[dict[str, object]]:
        """``where`` as the core reads it.

        Raises:
            ConfigError: ``config.where``.
        """
        filters: list[dict[str, object]] = []
        for condition in self.where:
            column, sign, value = condition.partition("=")
            if not sign or not column.rstrip("!"):
                raise ConfigError(
                    f"where: {condition!r} does not have the form COL=VALUE or COL!=VALUE",
                    code="config.where",
                )
            negate = column.endswith("!")
            column = column[:-1] if negate else column
            filters.append({"column": column.strip(), "value": value.strip(), "negate": negate})
        return filters

    def _needs_now(self) -> bool:
        ages = (spec.name for spec in EXTENSION_OPTIONS if spec.kind == "age")
        return bool(self.lastmod_from) or any(getattr(self, name) != "keep" for name in ages)

    def _now(self) -> int:
        now = self.now_seconds()
        return int(time.time()) if now is None else now

    def core_json(self) -> dict[str, Any]:
        """The configuration of the core: its options by their names, and derived values."""
        values: dict[str, Any] = {}
        for one in options_of(type(self)):
            if one.core:
                value = getattr(self, one.name)
                values[one.key] = [_pair(text) for text in value] if one.pairs else value
        return values | {
            "sitemap_url": self.folder_url(),
            "max_bytes": min(self.max_bytes, self.preset.max_bytes),
            "max_loc": self.preset.max_loc,
            "max_rejects": self.max_rejects_json(),
            "where": self.filters_json(),
            "ages": self.report is not None,
            "lastmod_from": _names(self.lastmod_from),
            "lastmod_ignore": _names(self.lastmod_ignore),
            "forget": self.forget_seconds(),
            "now": self._now() if self._needs_now() or self.report is not None else 0,
        }


def _names(texts: Iterable[str]) -> list[str]:
    """The names in lists with commas."""
    names = (name.strip() for text in texts for name in text.split(","))
    return [name for name in names if name]


def _pair(text: str) -> tuple[str | None, str]:
    """``KEY=COL`` as a pair; without ``=`` there is no key."""
    key, sign, column = text.partition("=")
    return (key.strip(), column) if sign else (None, text)


def parse_percent(name: str, text: str) -> float:
    """``20%`` as 0.2.

    Raises:
        ConfigError: ``config.percent``.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", str(text).strip())
    if not match or float(match[1]) > 100:
        raise ConfigError(
            f"{name}: {text!r} is not a percentage from 0% to 100%; write for example 1%",
            code="config.percent",
        )
    return float(match[1]) / 100


def check_name(name: str) -> str:
    """A name that is safe at the beginning of a file name and in a URL.

    Raises:
        ConfigError: ``config.name``.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
        raise ConfigError(
            f"name: {name!r} contains other characters than letters, digits, '-', '_' and '.', does"
            " not begin with a letter or a digit, or has more than 100 characters",
            code="config.name",
        )
    return name
