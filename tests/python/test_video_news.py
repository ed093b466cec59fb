"""Videos and news: mapped tag by tag or from structs, checked, in the order of the schema."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urlset as us
from conftest import SITE, urlset
from extended import build, namespaces, notes, read_urls

CDN = "https://cdn.example"
REQUIRED = {
    "thumbnail_loc": f"{CDN}/t.jpg",
    "title": "Title",
    "description": "Text",
    "content_loc": f"{CDN}/v.mp4",
}
EVERY = {
    **REQUIRED,
    "player_loc": "/player?v=1&w=2",
    "duration": 28_800,
    "expiration_date": "2027-01-02T03:04:05+01:00",
    "rating": 4.25,
    "view_count": 12_345,
    "publication_date": "2026-01-02",
    "tag": ["one", "<two>"],
    "family_friendly": True,
    "restriction": "de at",
    "restriction_relationship": "Allow",
    "requires_subscription": "NO",
    "uploader": 'Ann "A" & Co',
    "uploader_info": "https://shop.example/ann",
    "platform": "web, tv",
    "platform_relationship": "deny",
    "live": "yes",
}
WRITTEN = {
    **REQUIRED,
    "player_loc": f"{SITE}/player?v=1&w=2",
    "duration": "28800",
    "expiration_date": "2027-01-02T02:04:05Z",
    "rating": "4.25",
    "view_count": "12345",
    "publication_date": "2026-01-02",
    "tag": ["one", "<two>"],
    "family_friendly": "yes",
    "restriction": "DE AT",
    "restriction_relationship": "allow",
    "requires_subscription": "no",
    "uploader": 'Ann "A" & Co',
    "uploader_info": "https://shop.example/ann",
    "platform": "web tv",
    "platform_relationship": "deny",
    "live": "yes",
}


def videos(out: Path) -> list[list[dict[str, Any]]]:
    return [url.get("videos", []) for url in read_urls(out / "sitemap-00001.xml.gz")]


def test_every_tag_from_toml(tmp_path: Path, out: Path, schema) -> None:
    source = tmp_path / "c.csv"
    columns = [tag for tag in EVERY if tag not in ("platform_relationship", "live")]
    with source.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["loc", *(f"v {tag}" for tag in columns)])
        cells = [json.dumps(v) if isinstance(v := EVERY[tag], list) else v for tag in columns]
        writer.writerow(["/a", *cells])
        writer.writerow(["/b", *("" for _ in columns)])
    config = tmp_path / "urlset.toml"
    lines = [f'{tag} = "v {tag}"' for tag in columns]
    config.write_text(
        f'input = "c.csv"\nsite = "{SITE}"\nout = "out"\n[video]\n'
        + "\n".join([*lines, 'platform_relationship = "=deny"', 'live = "=yes"'])
    )
    ended = urlset("build", "--config", config)
    assert (ended.status, ended.err) == (0, "")
    assert videos(out) == [[WRITTEN], []]
    assert namespaces(out / "sitemap-00001.xml.gz") == {"video"}
    schema(out / "sitemap-00001.xml.gz")


def test_structs_and_lists_of_structs(out: Path, schema) -> None:
    second = {**REQUIRED, "title": "Second", "content_loc": None, "player_loc": "/p"}
    fields = [(tag, pa.array([value]).type) for tag, value in EVERY.items()]
    struct = pa.struct(fields)
    table = pa.table({"loc": ["/a", "/b"], "v": pa.array([EVERY, None], struct)})
    build(out, table, schema, video="v")
    assert videos(out) == [[WRITTEN], []]
    table = pa.table(
        {"loc": ["/a", "/b"], "v": pa.array([[EVERY, second, None], []], pa.list_(struct))}
    )
    build(out, table, schema, video=["v"])
    del second["content_loc"]
    assert videos(out) == [[WRITTEN, {**second, "player_loc": f"{SITE}/p"}], []]
    cells = [json.dumps([EVERY, {**second, "player_loc": "/p"}]), json.dumps(EVERY)]
    table = pa.table({"loc": ["/a", "/b"], "v": cells})
    build(out, table, schema, video=["v"])
    assert videos(out) == [[WRITTEN, {**second, "player_loc": f"{SITE}/p"}], [WRITTEN]]


@pytest.mark.parametrize(
    ("tag", "value", "written"),
    [
        ("title", "x" * 100, "x" * 100),
        ("title", "🛒" * 100, "🛒" * 100),
        ("title", "x" * 101, None),
        ("title", "", None),
        ("title", "</video:title>]]><!--&amp;\"'", "</video:title>]]><!--&amp;\"'"),
        ("title", "a\r\nb", "a\r\nb"),
        ("title", "\x00\x07", None),
        ("description", "y" * 2_048, "y" * 2_048),
        ("description", "y" * 2_049, None),
        ("thumbnail_loc", "ftp://a.example/b", None),
        ("thumbnail_loc", "/ä b.jpg", f"{SITE}/%C3%A4%20b.jpg"),
        ("content_loc", "/page", None),
        ("content_loc", f"{SITE}/page", None),
    ],
)
def test_required_tags(out: Path, schema, tag: str, value: str, written: str | None) -> None:
    table = pa.table(
        {"loc": ["/page"], **{name: [v] for name, v in {**REQUIRED, tag: value}.items()}}
    )
    report = build(out, table, schema, video={name: name for name in REQUIRED})
    if written is None:
        assert videos(out) == [[]]
        assert notes(report)[f"video.{tag}"] == 1
        assert not namespaces(out / "sitemap-00001.xml.gz")
    else:
        assert videos(out) == [[{**REQUIRED, tag: written}]]
        assert not report.warnings


@pytest.mark.parametrize(
    ("tag", "value", "written"),
    [
        ("duration", 0, None),
        ("duration", 1, "1"),
        ("duration", 28_801, None),
        ("duration", 90.0, "90"),
        ("duration", 90.5, None),
        ("duration", "1e3", None),
        ("duration", "-5", None),
        ("rating", 0, "0"),
        ("rating", -0.0, "0"),
        ("rating", 5, "5"),
        ("rating", "5.01", None),
        ("rating", "NaN", None),
        ("rating", 1e-7, "0.0000001"),
        ("view_count", 0, "0"),
        ("view_count", -1, None),
        ("view_count", str(2**64 - 1), str(2**64 - 1)),
        ("view_count", "99999999999999999999", None),
        ("publication_date", "2026-13-01", None),
        ("publication_date", "2026", None),
        ("publication_date", datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00Z"),
        ("family_friendly", "maybe", None),
        ("family_friendly", False, "no"),
        ("requires_subscription", 1, "yes"),
        ("uploader", "u" * 255, "u" * 255),
        ("uploader", "u" * 256, None),
        ("tag", [f"t{n}" for n in range(32)], [f"t{n}" for n in range(32)]),
        ("tag", ["a", "", None, "b\x0b"], ["a", "b"]),
        ("tag", "one, two", ["one, two"]),
        ("restriction", "DE", None),
        ("platform", "web", None),
    ],
)  # fmt: skip
def test_other_tags(out: Path, schema, tag: str, value: Any, written: Any) -> None:
    table = pa.table({"loc": ["/page"], **{n: [v] for n, v in {**REQUIRED, tag: value}.items()}})
    report = build(out, table, schema, video={n: n for n in [*REQUIRED, tag]})
    wanted = {**REQUIRED} if written is None else {**REQUIRED, tag: written}
    assert videos(out) == [[wanted]]
    found = notes(report)
    found.pop("text.illegal", None)
    assert found == ({f"video.{tag}": 1} if written is None else {})


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"restriction": "XX", "restriction_relationship": "allow"}, {}),
        ({"restriction": "DE,fr", "restriction_relationship": "perhaps"}, {}),
        ({"restriction": ["DE", "FR"], "restriction_relationship": "deny"},
         {"restriction": "DE FR", "restriction_relationship": "deny"}),
        ({"platform": "radio", "platform_relationship": "allow"}, {}),
        ({"uploader": "A", "uploader_info": "https://other.example/"}, {"uploader": "A"}),
        ({"uploader": "A", "uploader_info": "https://evilshop.example/"}, {"uploader": "A"}),
        ({"uploader": "A", "uploader_info": "/a\"b"},
         {"uploader": "A", "uploader_info": f"{SITE}/a%22b"}),
    ],
)  # fmt: skip
def test_attributes(out: Path, schema, given: dict[str, Any], written: dict[str, str]) -> None:
    row = {**REQUIRED, **given}
    table = pa.table({"loc": ["/page"], **{name: [value] for name, value in row.items()}})
    report = build(out, table, schema, video={name: name for name in row})
    assert videos(out) == [[{**REQUIRED, **written}]]
    assert bool(report.warnings) == (given.keys() != written.keys())


def test_tags_beyond_the_most(out: Path, schema) -> None:
    table = pa.table({"loc": ["/a"], "t": [[f"t{n}" for n in range(40)]]})
    video = {"tag": "t", **{name: f"={value}" for name, value in REQUIRED.items()}}
    report = build(out, table, schema, video=video)
    assert len(videos(out)[0][0]["tag"]) == 32
    assert notes(report) == {"video.over_32_tags": 8}


@pytest.mark.parametrize("cell", ["[1]", "no", "[", '["a"]', "[[]]", "[{}]"])
def test_cells_that_are_no_video(out: Path, schema, cell: str) -> None:
    report = build(out, pa.table({"loc": ["/a"], "v": [cell]}), schema, video=["v"])
    assert videos(out) == [[]]
    assert sum(notes(report).values()) == 1


def test_rejecting_names_column_and_code(out: Path) -> None:
    table = pa.table({"loc": ["/a", "/b"], "t": ["x", "a\x07b"]})
    video = {"title": "t", "description": "=d", "content_loc": "=/v", "thumbnail_loc": "=/t"}
    options = {"on_bad_field": "reject", "max_rejects": "50%", "video": video}
    report = us.build(table, site=SITE, out=out, **options)
    assert report.rejects["by_code"] == {"video.title": 1}
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert (row["row"], row["column"], row["value"]) == ("2", "t", "a\\x07b")


@pytest.mark.parametrize("given", [{"titel": "t"}, {"price": "t"}, ["a", "b"], ["title=t", "v"]])
def test_tags_that_do_not_exist(out: Path, given: Any) -> None:
    with pytest.raises(us.ConfigError, match="video"):
        us.build(pa.table({"loc": ["/a"], "t": ["x"]}), site=SITE, out=out, video=given)


NEWS = {"name": "=The Shop", "language": "=en", "publication_date": "d", "title": "t"}


def test_news(out: Path, schema) -> None:
    table = pa.table({
        "loc": ["/a", "/b", "/c", "/d"],
        "d": ["2026-01-02T03:04Z", None, "yesterday", "2026-01-02"],
        "t": ["Ü & <b>", None, "x", "  "],
    })  # fmt: skip
    report = build(out, table, schema, news=NEWS)
    urls = read_urls(out / "sitemap-00001.xml.gz")
    assert [url.get("news") for url in urls] == [
        ("The Shop", "en", "2026-01-02T03:04:00Z", "Ü & <b>"), None, None, None,
    ]  # fmt: skip
    assert notes(report) == {"news.publication_date": 1, "news.title": 1}


@pytest.mark.parametrize(
    ("language", "good"),
    [
        ("EN", True),
        ("deu", True),
        ("zh-CN", True),
        ("zh-hk", False),
        ("e", False),
        ("en-US", False),
    ],
)
def test_languages_of_news(out: Path, schema, language: str, good: bool) -> None:
    table = pa.table({"loc": ["/a"], "d": ["2026-01-02"], "t": ["x"]})
    build(out, table, schema, news={**NEWS, "language": f"={language}"})
    news = read_urls(out / "sitemap-00001.xml.gz")[0].get("news")
    assert news == (("The Shop", language.lower(), "2026-01-02", "x") if good else None)


def test_a_thousand_news_a_shard(out: Path, schema) -> None:
    dates = ["2026-01-02" if n % 2 else None for n in range(4_002)]
    table = pa.table({"loc": [f"/{n}" for n in range(4_002)], "d": dates, "t": dates})
    report = build(out, table, schema, news=NEWS)
    counts = [
        sum("news" in url for url in read_urls(path)) for path in sorted(out.glob("sitemap-*.gz"))
    ]
    assert counts == [1_000, 1_000, 1]
    assert [shard.urls for shard in report.shards] == [2_001, 2_000, 1]


@pytest.mark.parametrize("policy", ["keep", "omit", "drop"])
def test_old_news(out: Path, schema, policy: str) -> None:
    now = datetime.now(UTC)
    dates = [now - timedelta(hours=47), now - timedelta(hours=49), now - timedelta(days=9)]
    table = pa.table({"loc": ["/a", "/b", "/c"], "d": dates, "t": ["x"] * 3})
    report = build(out, table, schema, news=NEWS, news_old=policy, duplicates="drop")
    found = [(url["loc"], "news" in url) for url in read_urls(out / "sitemap-00001.xml.gz")]
    everything = [(f"{SITE}/a", True), (f"{SITE}/b", False), (f"{SITE}/c", False)]
    if policy == "keep":
        assert found == [(loc, True) for loc, _ in everything]
    elif policy == "omit":
        assert (found, notes(report)) == (everything, {"news.old": 2})
    else:
        assert (found, report.filtered, notes(report)) == (everything[:1], 2, {"news.dropped": 2})
