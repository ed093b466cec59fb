"""The cases whose results must not change: about 200 builds, with verify, read and diff after each.

Everything is made from a seed. No case depends on the clock, the machine or the encoder of gzip.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SITE = "https://www.shop.example"
SEED = 20_261_121

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One build.

    Attributes:
        name: stable; the key in the recorded file.
        rows: the catalog.
        options: of ``urlset.build``.
        form: how the rows are passed: ``table``, ``csv``, ``parquet``, ``arrow`` or ``jsonl``.
        former: rows of a build into the same folder before it.
    """

    name: str
    rows: Rows
    options: dict[str, Any] = field(default_factory=dict)
    form: str = "table"
    former: Rows | None = None


#: loc values: valid ones, some to encode, some to reject or warn about
LOCS = [
    "/plain",
    f"{SITE}/a",
    f"{SITE}/a?b=c&d='e'",
    "/ü/ß?q=ä",
    f"{SITE}/100%",
    f"{SITE}/%C3%BC%zz",
    "/a b",
    '/<x>"y"',
    f"{SITE}/#top",
    f"{SITE}:443/port",
    f"{SITE}:/port",
    "HTTPS://WWW.SHOP.EXAMPLE/Case",
    "https://bücher.example/x",
    "https://other.example/x",
    "http://www.shop.example/x",
    "//www.shop.example/x",
    "relative",
    "N/A",
    "",
    None,
    " /blank ",
    "ftp://www.shop.example/x",
    "mailto:a@b.example",
    "https:///x",
    "https://user:pw@www.shop.example/",
    "https://-a.example/",
    "https://256.1.1.1/",
    "/tab\tinside",
    "/" + "x" * 1_100,
    "/" + "y" * 2_100,
    "/😀",
    "/a/../b",
    "/./c",
    "\\back\\slash",
    "/q?a&amp;b",
    "/X",
    "/x",
    "/x/",
    f"{SITE}",
    "https://www.shop.example.",
    "https://xn--a/",
    "https://1.2.3.4/",
    "https://[::1]/x",
]
LASTMODS = [
    None,
    "2026-01-02",
    "2026-01-02T03:04:05Z",
    "2026-01-02 03:04",
    "2026-01-02T03:04:05.678+01:00",
    "2026",
    "2026-02-30",
    "0000-00-00",
    "yesterday",
    "",
    "2024-02-29",
    "1700000000",
    "2026-01-02T24:00:00Z",
]
CHANGEFREQS = [None, "daily", "Weekly", "often", ""]
PRIORITIES = [None, 0.5, 1.0, 0.0, 1.1, 0.123456, -0.1]
IMAGES = [None, [], [f"{SITE}/i.jpg"], ["/a.jpg", "/a.jpg", "N/A"], ["https://cdn.example/ü.png"]]
LINKS = [None, "/de", "https://de.shop.example/x", "not a url", ""]
CATEGORIES = ["shoes", "Shoes", "hats & caps", "", None, "../x", "a-00001"]
GROUPS = ["g1", "g2", "g3", None]
LANGUAGES = ["de", "en-GB", "fr", "xx_YY", "x-default"]
VIDEO = {
    "thumbnail_loc": [f"{SITE}/t.jpg", None],
    "title": ["A title", "T" * 101, None],
    "description": ["Text & more", "d" * 2_049],
    "content_loc": ["/v.mp4", None],
    "duration": [60, 0, 28_801, None],
    "live": ["yes", "maybe", None],
}
NEWS = {
    "name": ["Paper", None],
    "language": ["en", "zh-cn", "english"],
    "publication_date": ["2026-01-02T03:04:05Z", "2026-01-02", "soon"],
    "title": ["T", None],
}


def catalog(random: random.Random, count: int, *, clean: bool = False) -> Rows:
    """Rows with every column; ``clean`` ones are all accepted."""
    rows = []
    for number in range(count):
        odd = not clean and random.random() < 0.3
        rows.append(
            {
                "loc": random.choice(LOCS) if odd else f"{SITE}/p/{random.randrange(count * 2)}-x",
                "lastmod": random.choice(LASTMODS)
                if not clean
                else f"2026-01-{number % 28 + 1:02}",
                "changefreq": random.choice(CHANGEFREQS) if odd else "daily",
                "priority": random.choice(PRIORITIES) if odd else 0.5,
                "images": random.choice(IMAGES),
                "de": random.choice(LINKS) if odd else f"/de/{number}",
                "category": random.choice(CATEGORIES),
                "group": random.choice(GROUPS),
                "language": random.choice(LANGUAGES) if odd else LANGUAGES[number % 3],
                "stock": random.choice(["true", "false"]),
                **{f"v_{tag}": random.choice(values) for tag, values in VIDEO.items()},
                **{f"n_{tag}": random.choice(values) for tag, values in NEWS.items()},
            }
        )
    return rows


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no-gzip": {"gzip": False},
    "best": {"level": "best"},
    "text": {"output": "text"},
    "small-shards": {"max_urls": 7},
    "small-bytes": {"max_bytes": 4_096},
    "small-index": {"max_urls": 3, "max_sitemaps": 4},
    "stable": {"layout": "stable", "max_urls": 9},
    "stable-changed": {
        "layout": "stable",
        "max_urls": 9,
        "index_lastmod": "newest",
        "duplicates": "drop",
    },
    "drop": {"duplicates": "drop"},
    "fail": {"duplicates": "fail"},
    "sort": {"sort": True, "max_urls": 11},
    "any-host": {"hosts": "any"},
    "listed-hosts": {"hosts": "other.example,xn--bcher-kva.example"},
    "strict-urls": {"strict_urls": True},
    "reject-fields": {"on_bad_field": "reject"},
    "fail-rows": {"on_invalid": "fail"},
    "few-rejects": {"max_rejects": "1"},
    "where": {"where": ["stock=true", "category!=shoes"]},
    "images": {"image": ["images"]},
    "alternates": {"alternate": ["de=de"], "lang": "en"},
    "alternate-rows": {
        "alternate": ["de=de"],
        "lang": "en",
        "alternate_rows": True,
        "hosts": "any",
    },
    "groups": {"alternate_group": "group", "lang_column": "language", "sort": False},
    "video": {"video": [f"{tag}=v_{tag}" for tag in VIDEO]},
    "news": {"news": [f"{tag}=n_{tag}" for tag in NEWS]},
    "everything": {
        "image": ["images"],
        "alternate": ["de=de"],
        "lang": "en",
        "x_default": "en",
        "video": [f"{tag}=v_{tag}" for tag in VIDEO],
        "news": [f"{tag}=n_{tag}" for tag in NEWS],
    },
    "split": {"split_by": "category", "max_urls": 5},
    "split-each": {"split_by": "category", "split_index": "each"},
    "split-host": {"split_by": "@host", "hosts": "any"},
    "template": {"loc_template": f"{SITE}/{{category:raw}}/{{language}}", "loc": None},
    "sitemap-url": {"sitemap_url": f"{SITE}/p/"},
    "google": {"for_": "google"},
    "yandex": {"for_": "yandex"},
    "baidu": {"for_": "baidu"},
    "added": {"add_sitemap": [f"{SITE}/blog.xml"]},
    "named": {"name": "products"},
    "constants": {"changefreq": "=monthly", "priority": "=0.7", "lastmod": "=2026-01-01"},
    "zone": {"timezone": "Europe/Berlin"},
    "one-thread": {"threads": 1},
    "dry": {"dry_run": True},
    "verified": {"verify_staged": True, "hosts": "any"},
}


def cases() -> Iterator[Case]:
    """All of them, in a fixed order."""
    generator = random.Random(SEED)
    most = {"max_rejects": "100%", "max_shrink": "100%"}
    for name, options in OPTIONS.items():
        for kind, count, clean in (("odd", 60, False), ("clean", 40, True), ("one", 1, True)):
            rows = catalog(generator, count, clean=clean)
            if name == "groups":  # the rows of one page are adjacent
                rows.sort(key=lambda row: row["group"] or "")
            yield Case(f"{name}/{kind}", rows, most | options)
    for form in ("csv", "parquet", "arrow", "jsonl"):
        for number in range(5):
            rows = catalog(generator, 50)
            yield Case(f"{form}/{number}", rows, most | {"image": ["images"]}, form)
    for number in range(20):
        former = catalog(generator, 80, clean=True)
        rows = [row for row in former if generator.random() > 0.1] + catalog(
            generator, 5, clean=True
        )
        layout = "stable" if number % 2 else "packed"
        options = most | {"layout": layout, "max_urls": 20, "duplicates": "drop"}
        yield Case(f"again/{number}", rows, options, former=former)
    for value in LOCS:
        yield Case(
            f"loc/{json.dumps(value)[:40]}", [{"loc": value}, {"loc": "/one-good-row"}], most
        )
    for name, wrong in {
        "no-site": {"site": ""},
        "bad-site": {"site": "shop"},
        "no-column": {"loc": "missing"},
        "bad-name": {"name": "../x"},
        "max-urls": {"max_urls": 50_001},
        "max-bytes": {"max_bytes": 1},
        "hosts": {"hosts": "a b"},
        "where": {"where": ["x"]},
        "zone": {"timezone": "Mars/Base"},
        "image": {"image": ["missing"]},
        "video": {"video": ["nosuchtag=loc"]},
        "language": {"alternate": ["en_US=de"]},
        "shrink": {"max_shrink": "x"},
        "split": {"split_by": "missing"},
        "template": {"loc_template": "{", "loc": None},
        "constant": {"priority": "=7"},
        "text": {"output": "text", "image": ["images"]},
    }.items():
        yield Case(f"wrong/{name}", catalog(generator, 3, clean=True), most | wrong)
