"""Build, read, compare: random rows with every extension come back, in every form of output."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urlset
from conftest import SITE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from urlset.rows import write

pytestmark = pytest.mark.long

# values that a build writes unchanged: one line of legal characters without white space around it
word = st.text(
    st.characters(exclude_categories=["C", "Z"], include_characters=" "), min_size=1, max_size=12
).filter(lambda text: text == text.strip())
path = st.text("abcXYZ0189-_.~/%&=;?", max_size=12).map(lambda text: text.replace("%", "%C3%A4"))
url = path.map(lambda text: f"{SITE}/p{text}")
date = st.dates(datetime(1970, 1, 2).date(), datetime(2099, 1, 1).date()).map(str)
instant = st.datetimes(datetime(1970, 1, 2), datetime(2099, 1, 1)).map(
    lambda when: when.replace(microsecond=0).isoformat() + "Z"
)
LANGUAGES = ["de", "fr-CH", "zh-Hant", "pt-BR", "x-default"]
STRUCT = pa.struct(
    [("thumbnail_loc", pa.string()), ("title", pa.string()), ("description", pa.string()),
     ("content_loc", pa.string()), ("player_loc", pa.string()), ("duration", pa.int64()),
     ("expiration_date", pa.string()), ("rating", pa.float64()), ("view_count", pa.int64()),
     ("publication_date", pa.string()), ("tag", pa.list_(pa.string())),
     ("family_friendly", pa.string()), ("restriction", pa.string()),
     ("restriction_relationship", pa.string()), ("requires_subscription", pa.string()),
     ("uploader", pa.string()), ("uploader_info", pa.string()), ("platform", pa.string()),
     ("platform_relationship", pa.string()), ("live", pa.string())]
)  # fmt: skip
NEWS = ["name", "language", "publication_date", "title"]
SCHEMA = pa.schema(
    [("url", pa.string()), ("lastmod", pa.string()), ("changefreq", pa.string()),
     ("priority", pa.float64()), ("images", pa.list_(pa.string())),
     ("alternates", pa.list_(pa.struct([("lang", pa.string()), ("url", pa.string())]))),
     ("video", pa.list_(STRUCT)), ("news", pa.struct([(name, pa.string()) for name in NEWS]))]
)  # fmt: skip


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


@st.composite
def videos(draw: st.DrawFn) -> dict[str, Any]:
    yes_no = maybe(st.sampled_from(["yes", "no"]))
    video: dict[str, Any] = {
        "thumbnail_loc": draw(url), "title": draw(word), "description": draw(word),
        "content_loc": draw(url) + "/v.mp4", "player_loc": draw(maybe(url.map("{}/x".format))),
        "duration": draw(maybe(st.integers(1, 28_800))), "expiration_date": draw(maybe(date)),
        "rating": draw(maybe(st.integers(0, 50).map(lambda n: n / 10))),
        "view_count": draw(maybe(st.integers(0, 2**53))),
        "publication_date": draw(maybe(date | instant)),
        "tag": draw(maybe(st.lists(word, min_size=1, max_size=3, unique=True))),
        "family_friendly": draw(yes_no), "requires_subscription": draw(yes_no),
        "live": draw(yes_no), "uploader": draw(maybe(word)),
    }  # fmt: skip
    for name, values in (("restriction", ["DE", "AT CH"]), ("platform", ["web", "mobile tv"])):
        video[name] = draw(maybe(st.sampled_from(values)))
        relation = draw(st.sampled_from(["allow", "deny"]))
        video[f"{name}_relationship"] = relation if video[name] else None
    video["uploader_info"] = draw(maybe(url)) if video["uploader"] else None
    return video


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    langs = draw(maybe(st.lists(st.sampled_from(LANGUAGES), min_size=1, unique=True)))
    loc = draw(url)
    return {
        "url": loc,
        "lastmod": draw(maybe(date | instant)),
        "changefreq": draw(maybe(st.sampled_from(["daily", "never"]))),
        "priority": draw(maybe(st.integers(0, 10).map(lambda n: n / 10))),
        "images": draw(maybe(st.lists(url, min_size=1, max_size=3, unique=True))),
        # the page itself is one of them
        "alternates": langs
        and [{"lang": lang, "url": draw(url) if n else loc} for n, lang in enumerate(langs)],
        "video": draw(maybe(st.lists(videos(), min_size=1, max_size=2))),
        "news": draw(
            maybe(
                st.fixed_dictionaries(
                    {"name": word, "language": st.sampled_from(["en", "zh-cn"]),
                     "publication_date": date | instant, "title": word}
                )
            )
        ),
    }  # fmt: skip


def wanted(row: dict[str, Any]) -> dict[str, Any]:
    """The row as `read` returns it."""
    videos = [
        {("tags" if name == "tag" else name): value for name, value in video.items()}
        for video in row["video"] or ()
    ]
    links = [{"lang": link["lang"], "href": link["url"]} for link in row["alternates"] or ()]
    relics = dict.fromkeys(["access", "genres", "keywords", "stock_tickers"])
    text = row["lastmod"]
    return {
        "loc": row["url"],
        "lastmod": text and datetime.fromisoformat(text).replace(tzinfo=UTC),
        "lastmod_text": text,
        "changefreq": row["changefreq"],
        "priority": row["priority"],
        "images": row["images"],
        "alternates": links or None,
        "video": videos or None,
        "news": row["news"] and {**row["news"], **relics},
        "shard": "sitemap-00001.xml.gz",
    }


def iso(row: dict[str, Any]) -> dict[str, Any]:
    """The row as JSON Lines have it: no nulls, instants as text."""
    when = row["lastmod"]
    kept = {name: value for name, value in row.items() if value is not None}
    return kept | ({"lastmod": when.strftime("%Y-%m-%dT%H:%M:%SZ")} if when else {})


def by_order(links: list[dict[str, str]] | None) -> list[tuple[str, ...]] | None:
    return links and sorted(tuple(link.values()) for link in links)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(given=st.lists(rows(), min_size=1, max_size=5))
def test_rows_come_back(
    given: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("round")
    report = urlset.build(
        pa.Table.from_pylist(given, schema=SCHEMA), site=SITE, out=root / "out", loc="url",
        image=["images"], alternate="alternates", video="video", news="news",
        max_rejects="0",
    )  # fmt: skip
    assert report.urls == len(given)
    assert {warning.code for warning in report.warnings} <= {"priority.ignored"}
    assert urlset.verify(root / "out", duplicates=False).total("error") == 0
    want = [wanted(row) for row in given]
    for suffix in ("parquet", "csv", "jsonl"):
        with urlset.read(root / "out") as stream:
            assert write(stream, str(root / f"rows.{suffix}")) == len(given)
    assert pq.read_table(root / "rows.parquet").to_pylist() == want
    lines = (root / "rows.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line) for line in lines if line] == [
        json.loads(json.dumps(iso(row))) for row in want
    ]
    nested = ("images", "alternates", "video", "news")
    with (root / "rows.csv").open(newline="", encoding="utf-8") as file:
        for cells, row in zip(csv.DictReader(file), want, strict=True):
            assert {name: json.loads(cells[name] or "null") for name in nested} == {
                name: row[name] for name in nested
            }
            for name in ("loc", "lastmod_text", "changefreq", "shard"):
                assert cells[name] == (row[name] or "")
            assert cells["lastmod"] == iso(row).get("lastmod", "")
            assert (float(cells["priority"]) if cells["priority"] else None) == row["priority"]
