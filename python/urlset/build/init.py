"""``urlset init``: inspects the first rows of an input and writes a commented ``urlset.toml``."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from .. import _core
from ..errors import ConfigError, PublishError
from ..option_table import find_option, option, replaced
from ..options import COLUMN_NAMES, Options
from ..outfile import must_be_local
from .source import column_names, open_inputs
from .source.sample import sample

#: the site for the first preview, without the option
NO_SITE = "https://www.shop.example"
#: parts of the names of other columns that may contain page addresses
URL_WORDS = ("url", "link", "href", "loc")
#: the extensions whose columns are found by words in their names
GUESSED = [extension for extension in _core.extensions() if extension.column_words]
#: rows in a preview
SAMPLE = 1_000
#: rendered rows in the file
SHOWN = 3


def _like(name: str, help: str, default: Any = None) -> Any:
    """An option of a build with its own help."""
    one = find_option(Options, name)
    assert one is not None  # noqa: S101 - a name of the table
    return option(default, "Options", help, metavar=one.metavar, choices=one.choices)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InitOptions:
    """The options of ``urlset init``: some of a build, to inspect the input and for the file."""

    site: str | None = _like("site", "The site [that of the first URLs].")
    loc: str | None = _like("loc", "Column of the URL.")
    loc_template: str | None = _like("loc_template", "Or a template of columns.")
    out: str = _like("out", "The folder to publish to.", "sitemaps")
    format: str | None = _like("format", "Format of the input [by name and content].")
    delimiter: str | None = _like("delimiter", "Delimiter of CSV, or 'tab'.")
    encoding: str | None = _like("encoding", "Encoding of CSV.")


@dataclass(frozen=True)
class Preview:
    """The result of the first rows under some options.

    Attributes:
        mapping: the columns and constants that fields are taken from, by field.
        urls: rendered ``<url>`` elements, at most :data:`SAMPLE`.
        reasons: one line for each of the first rejected rows.
        rows: the number of rows read.
        rejected: the number of rows that would be rejected, by code.
        notes: the number of values that would be omitted, by code.
    """

    mapping: dict[str, str]
    urls: list[str]
    reasons: list[str]
    rows: int
    rejected: dict[str, int]
    notes: dict[str, int]


def preview(path: str, options: Options) -> Preview:
    """Renders the first rows of ``path``; writes nothing.

    Raises:
        ConfigError: a column is missing or ambiguous.
        InputError: the input cannot be read.
    """
    [input, *_] = open_inputs([path], options)
    config = json.dumps(options.core_json())
    try:
        seen = json.loads(_core.preview(config, input.name, input.format, input.handle, SAMPLE))
    finally:
        input.close()
    return Preview(
        mapping={chosen["field"]: chosen["from"] for chosen in seen["mapping"]},
        urls=seen["urls"],
        reasons=seen["rejects"][:SHOWN],
        rows=seen["rows"],
        rejected=seen["rejected"],
        notes=seen["notes"],
    )


def guess_loc(columns: list[str]) -> str | None:
    """The column that most likely contains the address of the page."""
    lower = {name.lower(): name for name in reversed(columns)}
    for name in COLUMN_NAMES["loc"]:
        if name in lower:
            return lower[name]
    for part in URL_WORDS:
        for name in columns:
            if part in name.lower() and not any(_is_named(name, one) for one in GUESSED):
                return name
    return None


def _is_named(column: str, extension: _core.Extension) -> bool:
    return any(word in column.lower() for word in extension.column_words)


def extension_columns(
    path: str, columns: list[str], options: Options, extension: _core.Extension
) -> list[str]:
    """The columns with a name of an extension whose first values are all valid."""
    found = []
    for name in columns:
        if not _is_named(name, extension) or name in (options.loc, options.lastmod):
            continue
        given = {extension.name: name, "hosts": "any"}
        try:
            seen = preview(path, replaced(options, given, where=path))
        except ConfigError:  # a column of a type without text
            continue
        has_values = any(f"<{extension.prefix}:" in url for url in seen.urls)
        invalid = any(code.startswith(f"{extension.name}.") for code in seen.notes)
        if has_values and not invalid:
            found.append(name)
    return found


def site_of(urls: list[str]) -> str | None:
    """The scheme and host of most of the rendered URLs."""
    sites: Counter[str] = Counter()
    for url in urls:
        # a <url> alone has no declarations for the prefixes of extensions
        loc = ElementTree.fromstring(url.split("</loc>", 1)[0] + "</loc></url>").findtext("loc")  # noqa: S314 - rendered by the core
        parts = urlsplit(loc or "")
        if parts.netloc:
            sites[f"{parts.scheme}://{parts.netloc}"] += 1
    return sites.most_common(1)[0][0] if sites else None


def render(
    path: str,
    columns: list[str],
    extensions: dict[str, list[str]],
    seen: Preview,
    options: Options,
) -> str:
    """The text of a ``urlset.toml`` with this mapping."""
    site = options.site
    lines = [
        "# The options of urlset build; every option of `urlset build --help` can be set here.",
        "# Paths are relative to this file.",
        "",
        _line("input", path),
        _line("site", site),
        _line("out", str(options.out)),
        "# The URL of the folder that the files will be served from, if not the root of the site:",
        _example("sitemap_url", f"{site}/sitemaps/"),
        "",
        f"# The columns of the input: {_comment(', '.join(columns))}",
    ]
    if options.loc_template is not None:
        lines.append(_line("loc_template", options.loc_template))
    else:
        lines.append(_line("loc", seen.mapping["loc"]))
    for field, example in (
        ("lastmod", "updated_at"),
        ("changefreq", "=daily"),
        ("priority", "=0.5"),
    ):
        if field in seen.mapping:
            lines.append(_line(field, seen.mapping[field]))
        else:
            lines.append(_example(field, example))
    for field in ("format", "delimiter", "encoding"):
        value = getattr(options, field)
        if value is not None:
            lines.append(_line(field, value))
    lines += [_example(name, found) for name, found in extensions.items() if found]
    lines += [
        "",
        "# Rows to keep, for example:",
        _example("where", ["in_stock=true", "status!=draft"]),
        _example("duplicates", "drop"),
        _example("max_rejects", "1%"),
        "",
    ]
    rejected = sum(seen.rejected.values())
    if rejected:
        codes = ", ".join(f"{code} {count:,}" for code, count in sorted(seen.rejected.items()))
        lines.append(f"# Of the first {seen.rows:,} rows {rejected:,} would be rejected: {codes}.")
        lines += [f"#   {_comment(reason)}" for reason in seen.reasons]
        if "loc.other_host" in seen.rejected:
            lines += ["# To accept URLs of other hosts:", _example("hosts", "any")]
    if seen.urls:
        lines.append("# The first rows, as they would be written:")
        lines += [f"#   {_comment(url)}" for url in seen.urls[:SHOWN]]
    return "\n".join(lines) + "\n"


def _line(key: str, value: str | list[str]) -> str:
    """A key and its value."""
    if isinstance(value, str):
        return f"{key} = {_quoted(value)}"
    return f"{key} = [{', '.join(map(_quoted, value))}]"


def _quoted(text: str) -> str:
    """A TOML string. A JSON string does not work: TOML refuses some of its escapes."""
    import tomli_w

    return tomli_w.dumps({"v": text}).removeprefix("v = ").rstrip("\n")


def _example(key: str, value: str | list[str]) -> str:
    """A key and its value as a comment."""
    return f"# {_line(key, value)}"


def _comment(text: str) -> str:
    """``text`` on one line, without characters that TOML forbids in a comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def init(path: str, target: Path, options: InitOptions, *, force: bool = False) -> str:
    """Writes ``target`` and returns its text.

    Args:
        path: the input, as for ``urlset build``.
        target: the file to write.
        options: known options; the others follow from the input.
        force: replace ``target`` if it exists.

    Raises:
        ConfigError: the file exists, or no column looks like an address.
        InputError: the input cannot be read.
        PublishError: the file cannot be written.
    """
    must_be_local("output", target)
    if target.exists() and not force:
        raise ConfigError(f"{target} exists already (--force replaces it)", code="config.exists")
    known = {key: value for key, value in asdict(options).items() if value is not None}
    base = replace(Options(), **{"site": NO_SITE} | known)
    with sample(path) as readable:
        columns = column_names(readable, base)
        if base.loc is None and base.loc_template is None:
            loc = guess_loc(columns)
            if loc is None:
                raise ConfigError(
                    f"{path}: no column looks like a URL ({', '.join(columns)}); name it"
                    " (--loc COLUMN, or --loc-template 'https://…/{slug}')",
                    code="column.missing",
                )
            base = replace(base, loc=loc)
        if options.site is None:
            first = preview(readable, replace(base, hosts="any"))
            base = replace(base, site=site_of(first.urls) or NO_SITE)
        seen = preview(readable, base)
        extensions = {one.name: extension_columns(readable, columns, base, one) for one in GUESSED}
    if path != "-" and "://" not in path:  # paths in the file are relative to its folder
        path = os.path.relpath(path, target.parent)
    text = render(path, columns, extensions, seen, base)
    try:
        target.write_bytes(text.encode())
    except OSError as error:
        raise PublishError(f"{target}: {error.strerror}", code="config.unwritable") from None
    return text
