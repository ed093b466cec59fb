"""Building sitemaps with extensions, and reading them by lxml."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import urlset as us
from conftest import SITE, read_bytes
from lxml import etree

SM = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
IMAGE = "{http://www.google.com/schemas/sitemap-image/1.1}"
XHTML = "{http://www.w3.org/1999/xhtml}"
VIDEO = "{http://www.google.com/schemas/sitemap-video/1.1}"
NEWS = "{http://www.google.com/schemas/sitemap-news/0.9}"


def build(out: Path, source: object, schema: Callable[[Path], None], **options: Any) -> us.Report:
    """A build whose files are valid by the schemas and whose rows each have one outcome."""
    report = us.build(source, **({"site": SITE} | options), out=out)
    for path in out.rglob("*.xml*"):
        schema(path)
    fates = report.urls + report.rejected + report.filtered + report.duplicates
    assert report.rows + report.expanded == fates
    return report


def notes(report: us.Report) -> dict[str, int]:
    """The number of warnings, by code."""
    return {warning.code: warning.count for warning in report.warnings}


def read_urls(path: Path) -> list[dict[str, Any]]:
    """The entries of a shard, each with its images, alternates, videos and news."""
    root = etree.fromstring(read_bytes(path))
    assert root.tag == f"{SM}urlset"
    return [_entry(url) for url in root]


def _entry(url: etree._Element) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for child in url:
        if child.tag == f"{IMAGE}image":
            assert [part.tag for part in child] == [f"{IMAGE}loc"]
            entry.setdefault("images", []).append(child[0].text)
        elif child.tag == f"{XHTML}link":
            assert child.get("rel") == "alternate" and child.text is None
            link = (child.get("hreflang"), child.get("href"))
            entry.setdefault("alternates", []).append(link)
        elif child.tag == f"{VIDEO}video":
            entry.setdefault("videos", []).append(_video(child))
        elif child.tag == f"{NEWS}news":
            assert "news" not in entry
            publication, date, title = child
            name, language = publication
            entry["news"] = (name.text, language.text, date.text, title.text)
        else:
            assert child.tag.startswith(SM)
            entry[child.tag.removeprefix(SM)] = child.text
    return entry


def _video(video: etree._Element) -> dict[str, Any]:
    tags: dict[str, Any] = {}
    for part in video:
        name = part.tag.removeprefix(VIDEO)
        if name == "tag":
            tags.setdefault("tag", []).append(part.text)
            continue
        assert name not in tags
        tags[name] = part.text
        for attribute, value in part.attrib.items():
            tags[f"{name}_{attribute}"] = value
    return tags


def namespaces(path: Path) -> set[str]:
    """The prefixes that a shard declares."""
    return {prefix for prefix in etree.fromstring(read_bytes(path)).nsmap if prefix}
