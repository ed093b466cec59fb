"""``urlset init``: a commented ``urlset.toml`` from a look at an input."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from . import _core
from .config import Options
from .errors import ConfigError
from .source import Feed, feeds
from .source.sample import sample

#: a site for the look alone, where the user has not named one
NO_SITE = "https://www.shop.example"
#: how a column of addresses may be called, best first
LOC_NAMES = ("loc", "url", "link", "product_url", "canonical_url")


def columns_of(feed: Feed, options: Options) -> list[str]:
    """The columns of an input."""
    if feed.stream is None:
        config = json.dumps(options.core_json())
        return _core.look(config, feed.name, feed.format, feed.begun)
    import pyarrow as pa

    return list(pa.RecordBatchReader.from_stream(feed.stream).schema.names)


def guess_loc(columns: list[str]) -> str | None:
    """The column that most likely holds the address."""
    lower = {name.lower(): name for name in reversed(columns)}
    for name in LOC_NAMES:
        if name in lower:
            return lower[name]
    for part in ("url", "link", "href", "loc"):
        for name in columns:
            if part in name.lower() and not any(w in name.lower() for w in ("image", "img")):
                return name
    return None


def look(path: str, options: Options) -> tuple[dict[str, Any], Options]:
    """What the first rows become, and the options under which they do.

    Raises:
        ConfigError: no column looks like an address.
        InputError: the input cannot be read.
    """
    options = replace(options, site=options.site or NO_SITE)
    if options.loc is None and options.loc_template is None:
        # all columns are asked for, so that none is missed
        probe = replace(options, loc_template=None)
        try:
            [feed, *_] = feeds([path], probe)
            columns = columns_of(feed, probe)
        except ConfigError as error:
            if error.code not in ("column.missing", "column.ambiguous"):
                raise
            columns = _columns_in(str(error))
        loc = guess_loc(columns)
        if loc is None:
            raise ConfigError(
                f"{path}: no column looks like a URL ({', '.join(columns)}); name it (--loc COLUMN,"
                " or --loc-template 'https://…/{slug}')",
                code="column.missing",
            )
        options = replace(options, loc=loc)
    relaxed = replace(options, hosts="any")
    [feed, *_] = feeds([path], relaxed)
    config = json.dumps(relaxed.core_json())
    seen: dict[str, Any] = json.loads(_core.preview(config, feed.name, feed.format, feed.handle, 3))
    return seen, options


def _columns_in(message: str) -> list[str]:
    """The columns that an error of the mapping lists."""
    return [part for i, part in enumerate(message.split('"')) if i % 2]


def site_of(urls: list[str]) -> str | None:
    """The site of the first rendered URL."""
    for url in urls:
        loc = ElementTree.fromstring(url).findtext("loc")  # noqa: S314 - rendered by us
        if loc:
            parts = urlsplit(loc)
            return f"{parts.scheme}://{parts.netloc}"
    return None


def render(path: str, seen: dict[str, Any], options: Options, site: str, out: str) -> str:
    """The text of a ``urlset.toml``."""
    quote = json.dumps  # a JSON string is a TOML basic string
    found = {chosen["field"]: chosen["from"] for chosen in seen["mapping"]}
    columns = ", ".join(seen["columns"])
    lines = [
        "# What urlset build does; every option of `urlset build --help` can stand here.",
        "# Paths are relative to this file.",
        "",
        f"input = {quote(path)}",
        f"site = {quote(site)}",
        f"out = {quote(out)}",
        "# The folder under which the files will be served, if it is not the root of the site:",
        f"# sitemap_url = {quote(site + '/sitemaps/')}",
        "",
        f"# The columns of the input: {_comment(columns)}",
    ]
    if options.loc_template is not None:
        lines.append(f"loc_template = {quote(options.loc_template)}")
    else:
        lines.append(f"loc = {quote(found['loc'])}")
    for field, example in (
        ("lastmod", "updated_at"),
        ("changefreq", "=daily"),
        ("priority", "=0.5"),
    ):
        if field in found:
            lines.append(f"{field} = {quote(found[field])}")
        else:
            lines.append(f"# {field} = {quote(example)}")
    pictures = [
        name
        for name in seen["columns"]
        if any(word in name.lower() for word in ("image", "img", "picture", "photo"))
    ]
    if pictures:
        lines.append(f"# image = {quote(pictures)}")
    lines += [
        "",
        "# Rows to keep, for example:",
        '# where = ["in_stock=true", "status!=draft"]',
        '# duplicates = "drop"',
        '# max_rejects = "1%"',
        "",
        "# The first rows, as they would be written:",
        *(f"#   {_comment(url)}" for url in seen["urls"]),
        *(f"#   {_comment(reject)}" for reject in seen["rejects"]),
    ]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    """On one line, and nothing that TOML forbids in a comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def init(
    path: str, target: Path, options: Options, *, out: str = "sitemaps", force: bool = False
) -> str:
    """Writes ``target`` and returns its text.

    Raises:
        ConfigError: the file is there already, or no column looks like an address.
    """
    if target.exists() and not force:
        raise ConfigError(f"{target} is there already (--force replaces it)", code="config.exists")
    with sample(path) as beginning:
        seen, chosen = look(beginning, options)
        site = options.site or site_of(seen["urls"]) or NO_SITE
        if site != chosen.site:
            seen, _ = look(beginning, replace(chosen, site=site))
    if path != "-" and "://" not in path:  # a urlset.toml names files from where it stands
        path = os.path.relpath(path, target.parent)
    text = render(path, seen, chosen, site, out)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{target}: {error.strerror}", code="config.unwritable") from None
    return text
