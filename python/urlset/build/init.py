"""``urlset init``: writes a commented ``urlset.toml`` after a look at the first rows."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from .. import _core
from ..errors import ConfigError
from ..options import Options, make_options
from .source import column_names, feeds
from .source.sample import sample

#: the site for the first look, where the user has not named one
NO_SITE = "https://www.shop.example"
#: how a column of page addresses may be called, best first
LOC_NAMES = ("loc", "url", "link", "product_url", "canonical_url")
#: the extensions whose columns are found by words in their names
GUESSED = [extension for extension in _core.extensions() if extension.column_words]
#: URLs of the first rows from which the site is taken
SAMPLE = 1_000
#: rendered rows that the file shows
SHOWN = 3


@dataclass(frozen=True)
class Look:
    """What the first rows become under some options.

    Attributes:
        mapping: the columns and constants that fields are taken from, by field.
        urls: rendered ``<url>`` elements, at most :data:`SAMPLE`.
        reasons: one line for each of the first rejected rows.
        rows: how many rows were looked at.
        rejected: how many of them would be rejected, by code.
        notes: how many values would be left out, by code.
    """

    mapping: dict[str, str]
    urls: list[str]
    reasons: list[str]
    rows: int
    rejected: dict[str, int]
    notes: dict[str, int]


def look(path: str, options: Options) -> Look:
    """Renders the first rows of ``path``; nothing is written.

    Raises:
        ConfigError: a column is missing or ambiguous.
        InputError: the input cannot be read.
    """
    [feed, *_] = feeds([path], options)
    config = json.dumps(options.core_json())
    try:
        seen = json.loads(_core.preview(config, feed.name, feed.format, feed.handle, SAMPLE))
    finally:
        feed.close()
    return Look(
        mapping={chosen["field"]: chosen["from"] for chosen in seen["mapping"]},
        urls=seen["urls"],
        reasons=seen["rejects"][:SHOWN],
        rows=seen["rows"],
        rejected=seen["rejected"],
        notes=seen["notes"],
    )


def guess_loc(columns: list[str]) -> str | None:
    """The column that most likely holds the page's address."""
    lower = {name.lower(): name for name in reversed(columns)}
    for name in LOC_NAMES:
        if name in lower:
            return lower[name]
    for part in ("url", "link", "href", "loc"):
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
            seen = look(path, make_options(options, given, where=path))
        except ConfigError:  # a column of a type without text
            continue
        has_values = any(f"<{extension.prefix}:" in url for url in seen.urls)
        invalid = any(code.startswith(f"{extension.name}.") for code in seen.notes)
        if has_values and not invalid:
            found.append(name)
    return found


def site_of(urls: list[str]) -> str | None:
    """The scheme and host that most of the rendered URLs have."""
    sites: Counter[str] = Counter()
    for url in urls:
        # the prefixes of extensions are declared in the head of a sitemap only
        loc = ElementTree.fromstring(url.split("</loc>", 1)[0] + "</loc></url>").findtext("loc")  # noqa: S314 - rendered by the core
        parts = urlsplit(loc or "")
        if parts.netloc:
            sites[f"{parts.scheme}://{parts.netloc}"] += 1
    return sites.most_common(1)[0][0] if sites else None


def render(
    path: str,
    columns: list[str],
    extensions: dict[str, list[str]],
    seen: Look,
    options: Options,
) -> str:
    """The text of a ``urlset.toml`` with the mapping that was found."""
    site = options.site
    lines = [
        "# What urlset build does; every option of `urlset build --help` can stand here.",
        "# Paths are relative to this file.",
        "",
        _line("input", path),
        _line("site", site),
        _line("out", str(options.out)),
        "# The folder under which the files will be served, if it is not the root of the site:",
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
    """A TOML string. A JSON string is none: JSON escapes characters in a way that TOML refuses."""
    import tomli_w

    return tomli_w.dumps({"v": text}).removeprefix("v = ").rstrip("\n")


def _example(key: str, value: str | list[str]) -> str:
    """A key and its value as a comment."""
    return f"# {_line(key, value)}"


def _comment(text: str) -> str:
    """``text`` on one line, without what TOML forbids in a comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def init(
    path: str, target: Path, options: Options, *, out: str = "sitemaps", force: bool = False
) -> str:
    """Writes ``target`` and returns its text.

    Args:
        path: the input, as ``urlset build`` takes it.
        target: the file to write.
        options: what the user named: the site, the column of the URL, the form of the input.
        out: the output folder that the file names.
        force: replace ``target`` if it exists.

    Raises:
        ConfigError: the file exists, or no column looks like an address.
        InputError: the input cannot be read.
    """
    if target.exists() and not force:
        raise ConfigError(f"{target} exists already (--force replaces it)", code="config.exists")
    with sample(path) as readable:
        probe = replace(options, site=options.site or NO_SITE, out=out)
        columns = column_names(readable, probe)
        if options.loc is None and options.loc_template is None:
            loc = guess_loc(columns)
            if loc is None:
                raise ConfigError(
                    f"{path}: no column looks like a URL ({', '.join(columns)}); name it"
                    " (--loc COLUMN, or --loc-template 'https://…/{slug}')",
                    code="column.missing",
                )
            probe = replace(probe, loc=loc)
        first = look(readable, replace(probe, hosts="any"))
        chosen = replace(probe, site=options.site or site_of(first.urls) or NO_SITE)
        seen = look(readable, chosen)
        extensions = {
            one.name: extension_columns(readable, columns, chosen, one) for one in GUESSED
        }
    if path != "-" and "://" not in path:  # a urlset.toml names files from where it stands
        path = os.path.relpath(path, target.parent)
    text = render(path, columns, extensions, seen, chosen)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{target}: {error.strerror}", code="config.unwritable") from None
    return text
