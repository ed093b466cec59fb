"""The options of a build: one table for the command line, ``urlset.toml`` and ``urlset.build``.

Each field of :class:`Options` is an option of the command line (``max_urls`` is ``--max-urls``), a
key of ``urlset.toml`` and a keyword of :func:`urlset.build`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypedDict, TypeVar
from urllib.parse import urlsplit

from . import _core
from .errors import ConfigError
from .outfile import must_be_local

#: PROTOCOL section 1
MAX_URLS = 50_000
MAX_BYTES = 52_428_800
MAX_SITEMAPS = 50_000
#: the smallest file that holds one URL of 2,047 characters
MIN_BYTES = 4_096
#: the largest number of rows that the core counts to
MAX_COUNT = (1 << 63) - 1

Table = TypeVar("Table")


@dataclass(frozen=True)
class Preset:
    """What one engine takes; smaller limits of the user stay (PROTOCOL sections 1, 2, 3 and 7)."""

    max_bytes: int = MAX_BYTES
    max_sitemaps: int = MAX_SITEMAPS
    max_loc: int = 2_047
    index: bool = True
    ignores_priority: bool = False


PRESETS = {
    "google": Preset(ignores_priority=True),
    "bing": Preset(ignores_priority=True),
    "yandex": Preset(max_loc=1_024),
    "baidu": Preset(max_bytes=10_485_760, index=False),
    "2006": Preset(max_bytes=10_485_760, max_sitemaps=1_000),
}


def _option(
    default: Any,
    section: str,
    help: str,
    *,
    metavar: str | None = None,
    choices: Sequence[str] | None = None,
    limits: tuple[int, int] | None = None,
    per_set: bool = False,
) -> Any:
    """A field with what the command line and the documents say of it.

    ``limits`` are the smallest and the largest whole number that the option takes.
    """
    metadata = {
        "section": section, "help": help, "metavar": metavar, "choices": choices,
        "limits": limits, "per_set": per_set,
    }  # fmt: skip
    return field(default=default, metadata=metadata)


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
            choices = ("keep", "omit", "drop") if spec.kind == "age" else None
            option = _option(
                default,
                "Extensions",
                spec.help,
                metavar=spec.metavar,
                choices=choices,
                per_set=True,
            )
            setattr(table, spec.name, option)
    table.__annotations__ = annotations
    return table


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)  # half the time at start-up
@_with_extensions
class Options:
    """What a build is to do. Values are as a user writes them; :meth:`checked` checks them."""

    site: str = _option("", "Where", "The site that all URLs belong to.", metavar="URL")
    out: str | os.PathLike[str] = _option("", "Where", "The folder to publish to.", metavar="DIR")
    name: str = _option(
        "sitemap", "Where", "The first part of the file names.", metavar="NAME", per_set=True
    )
    sitemap_url: str | None = _option(
        None, "Where", "The folder under which the files will be served [the root of --site].",
        metavar="URL",
    )  # fmt: skip
    state: str | os.PathLike[str] | None = _option(
        None, "Where", "The folder for manifest and staging [OUT/.urlset].", metavar="DIR"
    )

    loc: str | None = _option(
        None, "Mapping", "Column of the URL [loc, url, link, product_url, canonical_url].",
        metavar="COL", per_set=True,
    )  # fmt: skip
    loc_template: str | None = _option(
        None, "Mapping", "Or a template: 'https://www.shop.example/{category:raw}/{slug}-{id}'.",
        metavar="TEXT", per_set=True,
    )  # fmt: skip
    lastmod: str | None = _option(
        None, "Mapping", "Column of the last change [lastmod, last_modified, updated_at, "
        "modified_at].", metavar="COL", per_set=True,
    )  # fmt: skip
    lastmod_epoch: str | None = _option(
        None, "Mapping", "lastmod holds integers since 1970.",
        choices=("seconds", "milliseconds"), per_set=True,
    )  # fmt: skip
    changefreq: str | None = _option(
        None, "Mapping", "Column, or a constant: =daily.", metavar="COL", per_set=True
    )
    priority: str | None = _option(
        None, "Mapping", "Column, or a constant: =0.5.", metavar="COL", per_set=True
    )
    timezone: str | None = _option(
        None, "Mapping", "Zone of times that name none [UTC].", metavar="ZONE", per_set=True
    )

    for_: str | None = _option(
        None, "Layout", "Limits and checks of one engine, or of the protocol of 2006; baidu takes"
        " no index.", choices=tuple(PRESETS),
    )  # fmt: skip
    max_urls: int = _option(
        MAX_URLS, "Layout", "URLs a shard at most.", metavar="N", limits=(1, MAX_URLS)
    )
    max_bytes: int = _option(
        MAX_BYTES, "Layout", "Uncompressed bytes a shard at most.", metavar="N",
        limits=(MIN_BYTES, MAX_BYTES),
    )  # fmt: skip
    max_sitemaps: int = _option(
        MAX_SITEMAPS, "Layout", "Shards an index at most.", metavar="N", limits=(1, MAX_SITEMAPS)
    )
    split_by: str | None = _option(
        None, "Layout", "A set of shards for each value of a column; @host for each host, in"
        " OUT/HOST/ with an index each. What waits goes to the disk, at most the plain XML.",
        metavar="COL|@host", per_set=True,
    )  # fmt: skip
    split_index: str = _option(
        "one", "Layout", "One index over all values of --split-by, or one for each.",
        choices=("one", "each"),
    )  # fmt: skip
    max_groups: int = _option(
        10_000, "Layout", "Values of --split-by at most.", metavar="N", limits=(1, 1_000_000),
        per_set=True,
    )  # fmt: skip
    layout: str = _option(
        "packed", "Layout", "Full shards, or borders set by the rows, so that an edit touches one "
        "shard.", choices=("packed", "stable"),
    )  # fmt: skip
    sort: bool = _option(
        False, "Layout", "Rows in the order of loc, for catalogs without a stable one. What does"
        " not fit into memory goes to the disk: the plain XML and 29 bytes a row.", per_set=True,
    )  # fmt: skip
    index_lastmod: str = _option(
        "newest", "Layout", "lastmod in the index: the newest entry, or when the file changed.",
        choices=("newest", "changed"),
    )  # fmt: skip
    output: str = _option("xml", "Layout", "XML, or one URL a line.", choices=("xml", "text"))
    gzip: bool = _option(True, "Layout", "Compress the shards.")
    level: str = _option(
        "default", "Layout", "How hard to compress.", choices=("fast", "default", "best")
    )
    add_sitemap: tuple[str, ...] = _option(
        (), "Layout", "Put a sitemap made elsewhere into the index (repeatable).", metavar="URL"
    )

    where: tuple[str, ...] = _option(
        (), "Rows", "Keep rows: 'COL=VALUE' or 'COL!=VALUE' (repeatable).", metavar="COND",
        per_set=True,
    )  # fmt: skip
    hosts: str = _option(
        "same", "Rows", "Which hosts URLs may have: same, any, or a list a,b.", metavar="HOSTS",
        per_set=True,
    )  # fmt: skip
    strict_urls: bool = _option(
        False, "Rows", "Reject a % without two hexadecimal digits.", per_set=True
    )
    relative_urls: bool = _option(
        False, "Rows", "Join relative URLs (a/b, ../c, ?d, //host/e) to --site; without it a URL"
        " begins with http(s):// or with one /.", per_set=True,
    )  # fmt: skip
    on_invalid: str = _option(
        "reject", "Rows", "What to do with a row without a valid URL.", choices=("reject", "fail")
    )
    on_bad_field: str = _option(
        "omit", "Rows", "What to do with a senseless lastmod, priority, image ...",
        choices=("omit", "reject"), per_set=True,
    )  # fmt: skip
    max_rejects: str | int = _option(
        "1%", "Rows", "More rejected rows than this publish nothing.", metavar="N|P%"
    )
    rejects: str | os.PathLike[str] | None = _option(
        None, "Rows", "Where rejected rows go, .csv or .parquet [OUT/.urlset/rejects.csv].",
        metavar="PATH",
    )  # fmt: skip
    duplicates: str = _option(
        "keep", "Rows", "What to do with a URL that came before, in any set; drop and fail take"
        " at most 40 bytes a URL (200 M URLs in 8 GB).", choices=("keep", "drop", "fail"),
    )  # fmt: skip
    max_shrink: str = _option(
        "20%", "Rows", "A set that shrank by more than this is not published.", metavar="P%"
    )

    format: str | None = _option(
        None, "Run", "Format of the input; lines is a URL a line [by name and content].",
        choices=("csv", "parquet", "arrow", "jsonl", "lines"), per_set=True,
    )  # fmt: skip
    delimiter: str | None = _option(
        None, "Run", "Delimiter of CSV, or 'tab' [found by looking].", metavar="CHAR", per_set=True
    )
    encoding: str | None = _option(
        None, "Run", "Encoding of CSV and lines: utf-8, latin-1, utf-16, shift_jis and others [by"
        " its mark, else utf-8].", metavar="NAME", per_set=True,
    )  # fmt: skip
    max_cell: int = _option(
        1 << 20, "Run", "Bytes of a CSV cell at most.", metavar="N", limits=(1, 64 << 20),
        per_set=True,
    )  # fmt: skip
    threads: int | None = _option(
        None, "Run", "Threads that render and compress [cores].", metavar="N", limits=(1, 1_024)
    )
    changes: str | os.PathLike[str] | None = _option(
        None, "Run", "Write which URLs were added, changed, removed, .csv, .jsonl or .parquet "
        "(needs --duplicates drop or fail).", metavar="PATH",
    )  # fmt: skip
    verify_staged: bool = _option(False, "Run", "Read and check the whole set before it goes live.")
    dry_run: bool = _option(False, "Run", "Do all but publish.")

    def checked(self) -> Options:
        """The same options, with every value checked that needs no look at the data.

        Raises:
            ConfigError: for the first that is wrong.
        """
        if not self.site:
            raise ConfigError("which site? (--site https://www.shop.example)", code="config.site")
        if not str(self.out):
            raise ConfigError("where to? (--out DIR)", code="config.out")
        for name in ("out", "state", "rejects", "changes"):
            target = getattr(self, name)
            if target is not None:
                must_be_local(name, target)
        for spec in fields(self):
            choices, value = spec.metadata["choices"], getattr(self, spec.name)
            if choices and value is not None and value not in choices:
                raise ConfigError(
                    f"{spec.name.rstrip('_')}: {value!r} is none of {', '.join(choices)}",
                    code="config.choice",
                )
            limits = spec.metadata["limits"]
            if limits and value is not None and not limits[0] <= value <= limits[1]:
                raise ConfigError(
                    f"{spec.name}: {value} is not a whole number from {limits[0]} to {limits[1]}",
                    code="config.limit",
                )
        check_name(self.name)
        if self.changes is not None:
            if self.duplicates == "keep":
                raise ConfigError(
                    "changes: where duplicates are kept, a new URL in one shard may stand in"
                    " another already; drop them (--duplicates drop)",
                    code="config.changes",
                )
            if not os.fspath(self.changes).endswith((".csv", ".jsonl", ".parquet")):
                raise ConfigError(
                    f"changes: {os.fspath(self.changes)!r} ends in none of .csv, .jsonl, .parquet",
                    code="config.changes",
                )
        self.max_rejects_json()
        parse_percent("max_shrink", self.max_shrink)
        self.filters_json()
        self._check_text()
        address = self.sitemap_url or self.site
        try:
            parts = urlsplit(address)
        except ValueError:  # brackets that are no IPv6 address
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ConfigError(
                f"{address!r} is no address of a site; write for example https://www.shop.example",
                code="config.sitemap_url" if self.sitemap_url else "config.site",
            )
        if "{host}" in (self.sitemap_url or "") and self.split_by != "@host":
            raise ConfigError(
                "sitemap_url: {host} stands for the hosts of --split-by @host",
                code="config.sitemap_url",
            )
        if self.add_sitemap and not self.preset.index:
            raise ConfigError(
                f"add_sitemap: {self.for_} takes no index; name the sitemap to it by itself",
                code="config.add_sitemap",
            )
        if self.split_by == "@host" and self.add_sitemap:
            raise ConfigError(
                "add_sitemap: each host has an index of its own; into which of them?",
                code="config.split",
            )
        for sitemap in self.add_sitemap:
            _core.address(sitemap)
        return self

    def _check_text(self) -> None:
        """A text sitemap has room for URLs only."""
        if self.output != "text":
            return
        for spec in EXTENSION_OPTIONS:
            if spec.kind in ("columns", "pairs", "column") and getattr(self, spec.name):
                raise ConfigError(
                    f"{spec.name}: a text sitemap holds URLs only; leave it out, or write XML",
                    code="config.text",
                )

    def folder_url(self) -> str:
        """The address of the output folder, ending in ``/``; ``{host}`` where each has its own."""
        if self.sitemap_url:
            address = self.sitemap_url.rstrip("/") + "/"
        else:
            parts = urlsplit(self.site)
            host = "{host}" if self.split_by == "@host" else parts.netloc
            address = f"{parts.scheme}://{host}/"
        # {host} stands for each of many hosts, and is no host itself
        return address if "{host}" in address else _core.address(address)

    @property
    def preset(self) -> Preset:
        """The limits of ``for``, or those of the protocol."""
        return PRESETS[self.for_] if self.for_ else Preset()

    def max_bytes_of_preset(self) -> int:
        """The smaller limit; one beyond that of the protocol stays, and the core refuses it."""
        if self.max_bytes > MAX_BYTES:
            return self.max_bytes
        return min(self.max_bytes, self.preset.max_bytes)

    def max_rejects_json(self) -> dict[str, float]:
        """``max_rejects`` as the core reads it."""
        text = str(self.max_rejects).strip()
        if text.isdecimal():
            return {"count": min(int(text), MAX_COUNT)}
        if not text.endswith("%"):
            raise ConfigError(
                f"max_rejects: {text!r} is neither a number of rows nor a share of them;"
                " write for example 100 or 1%",
                code="config.percent",
            )
        return {"share": parse_percent("max_rejects", text)}

    def filters_json(self) -> list[dict[str, object]]:
        """``where`` as the core reads it."""
        filters: list[dict[str, object]] = []
        for condition in self.where:
            column, sign, value = condition.partition("=")
            if not sign or not column.rstrip("!"):
                raise ConfigError(
                    f"where: {condition!r} is not of the form COL=VALUE or COL!=VALUE",
                    code="config.where",
                )
            negate = column.endswith("!")
            column = column[:-1] if negate else column
            filters.append({"column": column.strip(), "value": value.strip(), "negate": negate})
        return filters

    @staticmethod
    def _pairs(given: tuple[str, ...]) -> list[tuple[str | None, str]]:
        """``KEY=COL`` as a pair; without ``=`` there is no key."""
        pairs: list[tuple[str | None, str]] = []
        for text in given:
            key, sign, column = text.partition("=")
            pairs.append((key.strip(), column) if sign else (None, text))
        return pairs

    def _extensions_json(self) -> dict[str, Any]:
        """The options of the extensions as the core reads them."""
        values: dict[str, Any] = {"now": 0}
        for spec in EXTENSION_OPTIONS:
            value = getattr(self, spec.name)
            values[spec.name] = self._pairs(value) if spec.kind == "pairs" else value
            if spec.kind == "age" and value != "keep":
                values["now"] = int(time.time())
        return values

    def core_json(self) -> dict[str, Any]:
        """The part that the core needs, as it reads it."""
        delimiter = {"tab": "\t", r"\t": "\t"}.get(self.delimiter or "", self.delimiter)
        if delimiter is not None and len(delimiter) != 1:
            raise ConfigError(
                f"delimiter: {self.delimiter!r} is not one character", code="config.delimiter"
            )
        return {
            "site": self.site,
            "sitemap_url": self.folder_url(),
            "name": self.name,
            "mapping": {
                "loc": self.loc,
                "loc_template": self.loc_template,
                "lastmod": self.lastmod,
                "changefreq": self.changefreq,
                "priority": self.priority,
                **self._extensions_json(),
            },
            "max_urls": self.max_urls,
            "max_bytes": self.max_bytes_of_preset(),
            "max_loc": self.preset.max_loc,
            "split_by": self.split_by,
            "max_groups": self.max_groups,
            "layout": self.layout,
            "sort": self.sort,
            "output": self.output,
            "on_invalid": self.on_invalid,
            "on_bad_field": self.on_bad_field,
            "max_rejects": self.max_rejects_json(),
            "duplicates": self.duplicates,
            "hosts": self.hosts,
            "strict_urls": self.strict_urls,
            "relative_urls": self.relative_urls,
            "timezone": self.timezone,
            "lastmod_epoch": self.lastmod_epoch,
            "where": self.filters_json(),
            "delimiter": delimiter,
            "encoding": self.encoding,
            "max_cell": self.max_cell,
            "threads": self.threads,
        }


class BuildOptions(TypedDict, total=False):
    """The keywords of :func:`urlset.build`: the fields of :class:`Options` but site and out."""

    name: str
    sitemap_url: str | None
    state: str | os.PathLike[str] | None
    loc: str | None
    loc_template: str | None
    lastmod: str | None
    lastmod_epoch: str | None
    changefreq: str | None
    priority: str | None
    image: Sequence[str]
    image_separator: str | None
    alternate: Sequence[str] | Mapping[str, str]
    lang: str | None
    x_default: str | None
    alternate_rows: bool
    alternate_group: str | None
    lang_column: str | None
    video: Sequence[str] | Mapping[str, str]
    news: Sequence[str] | Mapping[str, str]
    news_old: str
    timezone: str | None
    for_: str | None
    max_urls: int
    max_bytes: int
    max_sitemaps: int
    split_by: str | None
    split_index: str
    max_groups: int
    layout: str
    sort: bool
    index_lastmod: str
    output: str
    gzip: bool
    level: str
    add_sitemap: Sequence[str]
    where: Sequence[str]
    hosts: str
    strict_urls: bool
    relative_urls: bool
    on_invalid: str
    on_bad_field: str
    max_rejects: str | int
    rejects: str | os.PathLike[str] | None
    duplicates: str
    max_shrink: str
    format: str | None
    delimiter: str | None
    encoding: str | None
    max_cell: int
    threads: int | None
    changes: str | os.PathLike[str] | None
    verify_staged: bool
    dry_run: bool


def parse_percent(name: str, text: str) -> float:
    """``20%`` as 0.2."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", str(text).strip())
    if not match or float(match[1]) > 100:
        raise ConfigError(
            f"{name}: {text!r} is not a share from 0% to 100%; write for example 1%",
            code="config.percent",
        )
    return float(match[1]) / 100


def check_name(name: str) -> str:
    """A name that is safe as the beginning of a file name and in a URL."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
        raise ConfigError(
            f"name: {name!r} is not made of letters, digits, '-', '_' and '.'", code="config.name"
        )
    return name


def option_of(key: str) -> Field[Any] | None:
    """The option that a user means; ``for`` cannot be a keyword in Python: there it is ``for_``."""
    name = key.replace("-", "_")
    return next((s for s in fields(Options) if name in (s.name, s.name.removesuffix("_"))), None)


def make_options(base: Options, given: Mapping[str, Any], *, where: str) -> Options:
    """``base`` with what was given, each of the right type.

    Raises:
        ConfigError: an unknown key or a value of the wrong type.
    """
    values: dict[str, Any] = {}
    for key, value in given.items():
        spec = option_of(key)
        if spec is None:
            from difflib import get_close_matches

            known = [spec.name.rstrip("_") for spec in fields(Options)]
            if ".toml" in where:
                known += ["input", "set"]
            close = get_close_matches(key, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"{where}: unknown option {key!r}{hint}", code="config.unknown")
        values[spec.name] = _typed(spec.name, str(spec.type), value, where)
    return replace(base, **values)


def _typed(name: str, annotation: str, value: Any, where: str) -> Any:
    if annotation.startswith("tuple"):
        if isinstance(value, Mapping):  # a table of keys and columns
            value = [f"{key}={column}" for key, column in value.items()]
        values = (value,) if isinstance(value, str) else value
        if isinstance(values, (list, tuple)) and all(isinstance(v, str) for v in values):
            return tuple(values)
    elif value is None and "None" in annotation:
        return None
    elif isinstance(value, bool):
        if "bool" in annotation:
            return value
    elif isinstance(value, int) and "int" in annotation:
        return value
    elif ("str" in annotation and isinstance(value, str)) or (
        "PathLike" in annotation and isinstance(value, os.PathLike)
    ):
        return value
    raise ConfigError(
        f"{where}: {name} cannot be {value!r} ({type(value).__name__})", code="config.type"
    )
