"""Random rows with every extension at once: valid, and read back with the values of the rows."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urlset as us
from conftest import SITE
from extended import namespaces, read_urls
from extension_model import (
    CHANGEFREQ,
    DATES,
    INFO,
    LANGUAGES,
    PRIORITY,
    RELATED,
    SIMPLE,
    Entry,
    Notes,
    alternates,
    entry,
    is_empty,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from schemas import SITEMAP

pytestmark = pytest.mark.long

FRAME = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    ' xmlns:xhtml="http://www.w3.org/1999/xhtml">\n</urlset>\n'
)
LANGUAGES_OF_PAGE = ["de", "fr", "es", "it", "nl", "pl", "pt", "sv"]


def written(row: dict[str, str]) -> str:
    """A row with images and alternates exactly as in the protocol."""
    pictures = "".join(
        f"<image:image><image:loc>{row[f'image_{n}']}</image:loc></image:image>" for n in range(3)
    )
    links = "".join(
        f'<xhtml:link rel="alternate" hreflang="{code}" href="{row[code]}"/>'
        for code in LANGUAGES_OF_PAGE
    )
    return f"<url><loc>{row['loc']}</loc>{pictures}{links}</url>\n"


@pytest.mark.parametrize("more", [0, 1])
def test_50_mib_with_extensions(tmp_path: Path, out: Path, more: int) -> None:
    """The byte limit closes the shard long before 50,000 URLs, at its last byte."""
    rows: list[dict[str, str]] = []
    room = 52_428_800 - len(FRAME)
    while True:
        number = len(rows)
        row = {"loc": f"{SITE}/de/{number}-{'x' * (number % 700)}"}
        row |= {f"image_{n}": f"https://cdn.example/{number}-{n}.jpg" for n in range(3)}
        row |= {code: f"{SITE}/{code}/{number}-{'y' * 200}" for code in LANGUAGES_OF_PAGE}
        row["de"] = row["loc"]
        size = len(written(row))
        if room < 2 * size + 2_000:  # the last row fills the rest
            last = {**row, "image_0": f"https://cdn.example/{'z' * 1_000}"}
            spare = room - len(written(last)) + more
            assert 0 <= spare < 8 * 1_700
            for code in LANGUAGES_OF_PAGE[1:]:
                part = min(spare, 1_700)
                last[code] += "w" * part
                spare -= part
            assert spare == 0 and room + more == len(written(last))
            rows += [last, row]
            break
        rows.append(row)
        room -= size
    with (tmp_path / "c.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    report = us.build(
        tmp_path / "c.csv",
        site=SITE,
        out=out,
        image=[f"image_{n}" for n in range(3)],
        alternate={code: code for code in LANGUAGES_OF_PAGE},
        gzip=False,
    )
    count = len(rows) - 1 - more
    assert count < 40_000 and report.urls == len(rows)
    assert [shard.urls for shard in report.shards] == [count, 1 + more]
    header, footer = FRAME[:-10], FRAME[-10:]
    for path, part in zip(
        sorted(out.glob("sitemap-*.xml")), (rows[:count], rows[count:]), strict=True
    ):
        assert path.read_text() == header + "".join(map(written, part)) + footer
    sizes = [(out / shard.path).stat().st_size for shard in report.shards]
    assert sizes == [shard.bytes for shard in report.shards]
    if more:
        assert sizes[0] < 52_428_800 < sizes[0] + len(written(rows[count]))
    else:
        assert sizes[0] == 52_428_800


SEPARATOR = "|"
#: other warnings of a build; their rules have separate tests
ELSEWHERE = {
    "priority.ignored", "loc.over_1024", "manifest.config", "loc.fragment", "loc.entity",
    "loc.backslash", "loc.placeholder", "loc.variant", "lastmod.same",
}  # fmt: skip

CHARS = st.one_of(
    st.sampled_from("/a.%4cF?#&'\"<>[]{}| \t\r\n\x00\x07\x0b\x7f\x85\u2028\ufffe\U0001f6d2"),
    st.characters(codec="utf-8"),
)
TEXT = st.text(CHARS, max_size=20)
LONG = st.sampled_from(["x" * 100, "x" * 101, "\U0001f6d2" * 100, "ä" * 255, "&" * 2_048])
PATH = TEXT.map(lambda text: f"/x{text}")
LOC = st.one_of(PATH, TEXT.map(lambda text: f"{SITE}/{text}"))
WRONG = st.sampled_from(["ftp://cdn.example/a.jpg", "https://", "/a\x07b", "/" + "y" * 2_100])
URL = st.one_of(LOC, TEXT.map(lambda text: f"https://cdn.example/{text}"), WRONG)
MAYBE_URL = st.one_of(st.none(), st.sampled_from(["", " "]), URL)


def one_of(known: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(list(known))


JSON_LISTS = st.lists(
    st.one_of(URL, st.none(), st.integers(), st.just([]), st.just({"a": "/b"})), max_size=4
)
JSON_CELLS = st.one_of(
    st.none(),
    st.builds(json.dumps, JSON_LISTS, ensure_ascii=st.booleans()),
    st.builds(json.dumps, JSON_LISTS).map(lambda text: text[:-1]),
    st.just('{"url": "/a.jpg"}'),
)
#: the text between two separators is a separate URL
PART = URL.map(lambda url: url.replace(SEPARATOR, ""))
DELIMITED = st.lists(st.one_of(PART, st.just(" ")), min_size=1, max_size=3).map(SEPARATOR.join)


@st.composite
def videos(draw: st.DrawFn) -> dict[str, Any]:
    made: dict[str, Any] = {tag: draw(one_of(known)) for tag, known in SIMPLE.items()}
    for tag, pairs in RELATED.items():
        made[tag], made[f"{tag}_relationship"] = draw(one_of(pairs))
    # mostly valid: a video is omitted if one of these is not
    made["thumbnail_loc"] = draw(st.one_of(LOC, MAYBE_URL))
    made["title"] = draw(st.one_of(TEXT.map(lambda text: f"T {text}"), LONG, TEXT, st.none()))
    made["description"] = draw(st.one_of(TEXT.map(lambda text: f"D {text}"), LONG, TEXT))
    made["content_loc"] = draw(st.one_of(LOC, MAYBE_URL, st.just("<loc>")))
    made["player_loc"] = draw(st.one_of(MAYBE_URL, st.just("<loc>")))
    made["uploader"] = draw(st.one_of(st.none(), TEXT, LONG))
    made["uploader_info"] = draw(one_of(INFO))
    made["tag"] = draw(st.one_of(st.none(), st.lists(st.one_of(TEXT, st.none()), max_size=3)))
    return made


NEWS = st.fixed_dictionaries({
    "name": st.one_of(TEXT.map(lambda text: f"N {text}"), TEXT, st.none()),
    "language": one_of(LANGUAGES),
    "publication_date": one_of(DATES),
    "title": st.one_of(TEXT.map(lambda text: f"T {text}"), TEXT, LONG),
})  # fmt: skip


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    row = draw(
        st.fixed_dictionaries(
            {
                "loc": LOC,
                "lastmod": one_of(DATES),
                "changefreq": one_of(CHANGEFREQ),
                "priority": one_of(PRIORITY),
                "one": st.one_of(st.none(), DELIMITED),
                "json": JSON_CELLS,
                "list": st.one_of(st.none(), st.lists(st.one_of(URL, st.none()), max_size=4)),
                "de": MAYBE_URL,
                "en": MAYBE_URL,
                "fr": MAYBE_URL,
                "videos": st.one_of(
                    st.none(), st.lists(st.one_of(videos(), st.none()), max_size=2)
                ),
                "news": st.one_of(st.none(), NEWS),
                "key": one_of([None, " ", "A", "A", "A"]),
                "code": one_of(["de", "DE", "en-GB", "fr", "x-default", "en_US", "", None]),
            }
        )
    )
    for video in filter(None, row["videos"] or ()):
        for tag in ("content_loc", "player_loc"):
            if video[tag] == "<loc>":
                video[tag] = row["loc"]
    if draw(st.booleans()):
        row["de"] = row["loc"]
    return row


text = pa.string()
VIDEO = pa.struct({
    **dict.fromkeys(["thumbnail_loc", "title", "description", "content_loc", "player_loc"], text),
    "duration": pa.int32(), "expiration_date": text, "rating": pa.float64(),
    "view_count": pa.int64(), "publication_date": text, "tag": pa.list_(text),
    "family_friendly": pa.bool_(), "restriction": text, "restriction_relationship": text,
    "requires_subscription": text, "uploader": text, "uploader_info": text, "platform": text,
    "platform_relationship": text, "live": text,
})  # fmt: skip
SCHEMA = pa.schema({
    **dict.fromkeys(["loc", "lastmod", "changefreq", "priority", "one", "json"], text),
    "list": pa.list_(text), "de": text, "en": text, "fr": text, "videos": pa.list_(VIDEO),
    "news": pa.struct(dict.fromkeys(["name", "language", "publication_date", "title"], text)),
    "key": text, "code": text,
})  # fmt: skip

COLUMNS = f"""
site = "{SITE}"
image = ["one", "json", "list"]
image_separator = "{SEPARATOR}"
video = "videos"
news = "news"
max_rejects = "100%"
max_shrink = "100%"
x_default = "en-GB"
"""
MODES = {
    "columns": 'lang = "it"\n[alternate]\nde = "de"\nen-GB = "en"\nfr = "fr"\n',
    "no-self": 'lang = "de"\n[alternate]\nde = "de"\nen-GB = "en"\nfr = "fr"\n',
    "rows": 'lang = "it"\nalternate_rows = true\n[alternate]\nde = "de"\nen-GB = "en"\nfr = "fr"\n',
    "group": 'alternate_group = "key"\nlang_column = "code"\n',
}


def expected(table: list[dict[str, Any]], mode: str) -> tuple[list[Entry], Notes, int]:
    """The entries in their order, the warnings, and the number of rejected rows."""
    notes: Notes = Counter()
    made: list[Entry] = []
    members: list[tuple[dict[str, Any], Entry]] = []
    rejected = 0
    for row in table:
        of_row: Notes = Counter()
        url = entry(row, SEPARATOR, of_row)
        if url is None:
            rejected += 1
            continue
        made.append(url)
        if mode == "group":
            members.append((row, url))
        else:
            columns = {"de": row["de"], "en-GB": row["en"], "fr": row["fr"]}
            lang = "de" if mode == "no-self" else "it"
            links = alternates(url["loc"], columns, lang, "en-GB", of_row)
            if links:
                url["alternates"] = links
            if mode == "rows":
                for href in dict.fromkeys(href for _, href in links if href != url["loc"]):
                    if href.startswith(f"{SITE}/"):
                        made.append({**url, "loc": href})
                    else:
                        of_row["alternate.not_a_row"] += 1
        notes += of_row
    families: list[list[tuple[dict[str, Any], Entry]]] = []
    for row, url in members:
        if is_empty(row["key"]):
            continue
        if not families or families[-1][0][0]["key"] != row["key"]:
            families.append([])
        families[-1].append((row, url))
    for family in families:
        links = []
        for row, url in family:
            if row["code"] in ("en_US", "", None):
                notes["alternate.code"] += 1
            elif row["code"].lower() in [code.lower() for code, _ in links]:
                notes["alternate.duplicate"] += 1
            else:
                links.append((row["code"], url["loc"]))
        if len(links) < 2:
            continue
        codes = dict(links)
        if "en-GB" in codes and "x-default" not in codes:
            links.append(("x-default", codes["en-GB"]))
        for row, url in family:
            if row["code"] not in ("en_US", "", None):
                url["alternates"] = links
    return made, +notes, rejected


USED = {"images": "image", "alternates": "xhtml", "videos": "video", "news": "news"}


def check(
    folder: Path, table: list[dict[str, Any]], mode: str, size: int, batch: int, layout: str
) -> None:
    if mode == "group":  # the rows of a key are adjacent; each such run has a separate key
        for number, row in enumerate(table):
            if row["key"] == "A":
                row["key"] = f" &{number // 4} "
        table.sort(key=lambda row: "" if is_empty(row["key"]) else row["key"])
    wanted, notes, rejected = expected(table, mode)
    source = pa.Table.from_pylist(table, SCHEMA)
    source = pa.Table.from_batches(source.to_batches(max_chunksize=batch), SCHEMA)
    config = folder / "urlset.toml"
    config.write_text(COLUMNS + MODES[mode])
    out = folder / "out"
    options: dict[str, Any] = {"config": config, "out": out, "max_urls": size, "gzip": False}
    options["layout"] = layout
    if not wanted:
        with pytest.raises(us.DataError):
            us.build(source, **options)
        return
    report = us.build(source, **options)
    found: list[Entry] = []
    shards = [out / shard.path for shard in report.shards]
    for path in shards:
        urls = read_urls(path)
        assert path.stat().st_size <= 52_428_800 and 0 < len(urls) <= size
        assert namespaces(path) == {USED[key] for url in urls for key in url if key in USED}
        found += urls
    assert found == wanted
    counted = {w.code: w.count for w in report.warnings if w.code not in ELSEWHERE}
    assert counted == dict(notes)
    assert (report.rows, report.rejected, report.urls) == (len(table), rejected, len(wanted))
    assert report.rows + report.expanded == report.urls + report.rejected
    for path in shards:
        SITEMAP.assertValid(etree.parse(path))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("examples", [40, pytest.param(1_000, marks=pytest.mark.slow)])
def test_rows_with_everything(tmp_path: Path, mode: str, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=examples == 40,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.lists(rows(), min_size=1, max_size=8),
        st.integers(1, 5),
        st.integers(1, 8),
        st.sampled_from(["packed", "stable"]),
    )
    def run(table: list[dict[str, Any]], size: int, batch: int, layout: str) -> None:
        check(tmp_path, table, mode, size, batch, layout)

    run()
