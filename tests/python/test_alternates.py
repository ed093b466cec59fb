"""Alternates: one column per language, maps, lists of structs, rows as languages."""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urlset as us
from conftest import SITE, urlset
from extended import build, namespaces, notes, read_urls

pytestmark = pytest.mark.long


def lists(out: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    found = []
    for path in sorted(out.glob("sitemap-*.xml.gz")):
        for url in read_urls(path):
            links = [(code, href.removeprefix(SITE)) for code, href in url.get("alternates", ())]
            found.append((url["loc"].removeprefix(SITE), links))
    return found


PAGE = [("de", "/de/a"), ("en-GB", "/en/a"), ("fr", "https://fr.example/a&b")]


def test_a_column_a_language(tmp_path: Path, out: Path, schema) -> None:
    source = tmp_path / "c.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([
            ("loc", "d", "e", "f"),
            ("/de/a", "/de/a", "/en/a", "https://fr.example/a&b"),
            ("/de/b", "/de/b", "", "ftp://fr.example/b"),
            ("/de/c", "", "", ""),
            ("/de/d", "/x", "/en/d", ""),
        ])  # fmt: skip
    args = ("--alternate", "de=d", "--alternate", "en-GB=e", "--alternate", "fr=f")
    ended = urlset("build", source, "--site", SITE, "--out", out, *args, "--json", tmp_path / "j")
    assert (ended.status, ended.err) == (0, "")
    assert lists(out) == [
        ("/de/a", PAGE),
        ("/de/b", [("de", "/de/b")]),
        ("/de/c", []),
        ("/de/d", [("de", "/x"), ("en-GB", "/en/d")]),
    ]
    found = {w["code"]: w["count"] for w in json.loads((tmp_path / "j").read_text())["warnings"]}
    assert found == {"alternate.empty": 5, "alternate.invalid": 1, "alternate.no_self": 1}
    assert "Google ignores links" in ended.out
    schema(out / "sitemap-00001.xml.gz")
    assert namespaces(out / "sitemap-00001.xml.gz") == {"xhtml"}


def test_loc_is_added_under_its_language(out: Path, schema) -> None:
    table = pa.table({"loc": ["/a", "/b", "/c"], "de": ["/de/a", "/b", None], "en": ["/en/a"] * 3})
    options = {"alternate": {"de": "de", "en": "en"}, "lang": "fr", "x_default": "en"}
    report = build(out, table, schema, **options)
    assert lists(out) == [
        ("/a", [("fr", "/a"), ("de", "/de/a"), ("en", "/en/a"), ("x-default", "/en/a")]),
        ("/b", [("de", "/b"), ("en", "/en/a"), ("x-default", "/en/a")]),
        ("/c", [("fr", "/c"), ("en", "/en/a"), ("x-default", "/en/a")]),
    ]
    assert notes(report) == {"alternate.empty": 1}


MAP = pa.map_(pa.string(), pa.string())
STRUCT = pa.struct([("lang", pa.string()), ("url", pa.string())])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([PAGE, None, [("es-419", "/a"), ("de", None)], [("DE", "/d")]], MAP),
        pa.array(
            [
                [{"lang": code, "url": href} for code, href in PAGE],
                [],
                [{"lang": "es-419", "url": "/a"}, {"lang": "de", "url": None}],
                [{"lang": "DE", "url": "/d"}],
            ],
            pa.list_(STRUCT),
        ),
        pa.array([
            json.dumps(dict(PAGE)), "", '{"es-419": "/a", "de": null}',
            '[{"hreflang": "DE", "href": "/d"}]',
        ]),
    ],
    ids=["map", "structs", "json"],
)  # fmt: skip
def test_columns_of_all_languages(out: Path, schema, column: pa.Array) -> None:
    table = pa.table({"loc": ["/de/a", "/b", "/c", "/d"], "all": column})
    report = build(out, table, schema, alternate=["all"])
    assert lists(out) == [("/de/a", PAGE), ("/b", []), ("/c", []), ("/d", [("DE", "/d")])]
    assert notes(report) == {"alternate.code": 1, "alternate.empty": 1}


@pytest.mark.parametrize(
    "cell", ["[", "{", "[1]", "x", '[["de","/a"]]', '"de"', '{"de": {"a": 1}}', "[" * 60_000]
)
def test_cells_that_are_none(out: Path, schema, cell: str) -> None:
    table = pa.table({"loc": ["/de/a"], "all": [cell]})
    report = build(out, table, schema, alternate=["all"])
    assert lists(out) == [("/de/a", [])]
    assert notes(report) == {"alternate.invalid": 1}


@pytest.mark.parametrize(
    ("code", "hint"),
    [("en_US", "en-US"), ("UK", "en-GB"), ("es-419", "write es alone"), ("deu", "three letters")],
)
def test_codes(out: Path, code: str, hint: str) -> None:
    table = pa.table({"loc": ["/a"], "u": ["/b"]})
    with pytest.raises(us.ConfigError, match=hint):
        us.build(table, site=SITE, out=out, alternate={code: "u"})
    with pytest.raises(us.ConfigError, match=hint):
        us.build(table, site=SITE, out=out, alternate={"de": "u"}, lang=code)


def test_every_alternate_a_row(out: Path, schema) -> None:
    table = pa.table({
        "loc": ["/de/a", "/de/b", "/de/c"],
        "en": ["/en/a", "/en/a", None],
        "fr": ["https://fr.example/a", "/de/b", None],
        "i": ["/1.jpg", None, None],
        "lastmod": ["2026-01-02"] * 3,
    })  # fmt: skip
    options = {"alternate": {"en": "en", "fr": "fr"}, "lang": "de", "alternate_rows": True}
    report = build(out, table, schema, image=["i"], duplicates="drop", max_urls=2, **options)
    first = [("de", "/de/a"), ("en", "/en/a"), ("fr", "https://fr.example/a")]
    second = [("en", "/en/a"), ("fr", "/de/b")]
    assert lists(out) == [
        ("/de/a", first), ("/en/a", first), ("/de/b", second), ("/de/c", []),
    ]  # fmt: skip
    urls = [url for path in sorted(out.glob("sitemap-*.gz")) for url in read_urls(path)]
    assert [url.get("images") for url in urls] == [[f"{SITE}/1.jpg"], [f"{SITE}/1.jpg"], None, None]
    assert {url["lastmod"] for url in urls} == {"2026-01-02"}
    assert (report.rows, report.expanded, report.duplicates, report.urls) == (3, 2, 1, 4)
    assert notes(report) == {"alternate.empty": 2, "alternate.not_a_row": 1}


def test_every_alternate_a_row_on_its_host(out: Path, schema) -> None:
    table = pa.table({"loc": ["/a"], "fr": ["https://fr.example/a"]})
    options = {"alternate": {"fr": "fr"}, "lang": "de", "alternate_rows": True}
    build(out, table, schema, hosts="fr.example", **options)
    pair = [("de", "/a"), ("fr", "https://fr.example/a")]
    assert lists(out) == [("/a", pair), ("https://fr.example/a", pair)]


GROUP = {"alternate_group": "g", "lang_column": "l"}


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_rows_of_a_group(out: Path, schema, batch: int) -> None:
    rows = [
        ("/de/a", "A", "de"), ("/en/a", "A", "en"), ("/fr/a", "A", "fr"),
        ("/alone", None, "de"), ("/de/b", "B", "de"), ("/xx", "B", "en_US"), ("/en/b", "B", "en"),
        ("ftp://x", "C", "de"), ("/de/c", "C", "de"), ("/de/d", "D", "de"), ("/de/d2", "D", "DE"),
        ("/en/d", "D", "en"), ("/en/d", "D", "fr"),
    ]  # fmt: skip
    columns = dict(zip(("loc", "g", "l"), zip(*rows, strict=True), strict=True))
    table = pa.table({name: list(values) for name, values in columns.items()})
    source = pa.Table.from_batches(table.to_batches(max_chunksize=batch))
    options = {"duplicates": "drop", "x_default": "en", "max_rejects": "50%", **GROUP}
    report = build(out, source, schema, **options)
    a = [("de", "/de/a"), ("en", "/en/a"), ("fr", "/fr/a"), ("x-default", "/en/a")]
    d = [("de", "/de/d"), ("en", "/en/d"), ("x-default", "/en/d")]
    assert lists(out) == [
        ("/de/a", a), ("/en/a", a), ("/fr/a", a), ("/alone", []),
        ("/de/b", b := [("de", "/de/b"), ("en", "/en/b"), ("x-default", "/en/b")]), ("/xx", []),
        ("/en/b", b), ("/de/c", []), ("/de/d", d), ("/de/d2", d), ("/en/d", d),
    ]  # fmt: skip
    assert notes(report) == {"alternate.code": 1, "alternate.duplicate": 1}
    assert (report.duplicates, report.rejected) == (1, 1)


def test_groups_from_csv_do_not_depend_on_threads(tmp_path: Path, schema) -> None:
    source = tmp_path / "c.csv"
    with source.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("loc", "g", "l"))
        for page in range(20_000):
            for code in ("de", "en", "fr"):
                writer.writerow((f"/{code}/{page}-{'x' * (page % 50)}", f"p{page}", code))
    written = []
    for threads in (1, 3):
        out = tmp_path / str(threads)
        build(out, source, schema, threads=threads, gzip=False, max_urls=7_001, **GROUP)
        written.append({path.name: path.read_bytes() for path in out.glob("*.xml")})
    assert written[0] == written[1]
    urls = [u for p in sorted((tmp_path / "1").glob("sitemap-*.xml")) for u in read_urls(p)]
    assert len(urls) == 60_000
    for first in range(0, len(urls), 3):
        members = urls[first : first + 3]
        wanted = list(zip(("de", "en", "fr"), (url["loc"] for url in members), strict=True))
        assert all(url["alternates"] == wanted for url in members)


def test_a_group_that_does_not_stand_together(out: Path) -> None:
    table = pa.table({"loc": ["/a", "/b", "/c"], "g": ["1", "2", "1"], "l": ["de", "de", "en"]})
    with pytest.raises(us.DataError, match=r"row 3.*not adjacent") as caught:
        us.build(table, site=SITE, out=out, **GROUP)
    assert caught.value.code == "alternate.apart"
    huge = pa.table({
        "loc": [f"/{n}" for n in range(1_001)], "g": [5] * 1_001, "l": ["de"] * 1_001,
    })  # fmt: skip
    with pytest.raises(us.DataError, match=r"row 1001.*more than 1,000"):
        us.build(huge, site=SITE, out=out, **GROUP)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"alternate_rows": True}, "no columns"),
        ({"alternate_group": "g"}, "lang-column"),
        ({"alternate_group": "g", "lang": "de", "alternate": {"de": "g"}}, "not both"),
        ({"alternate": ["de=loc", "DE=loc"]}, "given twice"),
        ({"alternate": ["de=loc"], "output": "text"}, "URLs only"),
        ({"alternate": ["de=loc"], "x_default": "fr"}, "no column contains the URLs of fr"),
    ],
)
def test_options_that_do_not_fit(out: Path, options: dict[str, object], hint: str) -> None:
    with pytest.raises(us.ConfigError, match=hint):
        us.build(pa.table({"loc": ["/a"], "g": ["1"]}), site=SITE, out=out, **options)


def codes_of_many_languages(count: int) -> list[str]:
    scripts = itertools.product("abcdefghijklmnopqrstuvwxyz", repeat=4)
    return [f"de-{''.join(script)}" for script in itertools.islice(scripts, count)]


@pytest.mark.parametrize("rows", [False, True])
def test_more_alternates_than_there_are_languages(out: Path, schema, rows: bool) -> None:
    links = {code: f"/{code}" for code in codes_of_many_languages(1_200)}
    table = pa.table({"loc": ["/a", "/b"], "all": [json.dumps(links), None]})
    report = build(out, table, schema, alternate=["all"], lang="en", alternate_rows=rows)
    found = lists(out)
    # with loc itself
    assert [len(list) for _, list in found[:2]] == [1_001, 1_001 if rows else 0]
    assert notes(report)["alternate.over_1000"] == 200
    if rows:
        # 1,001 entries of 90 kB exceed the limit of a page
        assert 400 < report.expanded < 1_000
        assert notes(report)["alternate.not_a_row"] == 1_000 - report.expanded
        assert sum(shard.bytes for shard in report.shards) < 52_428_800 + 2_000


def test_a_group_that_is_larger_than_a_sitemap(out: Path) -> None:
    codes = codes_of_many_languages(700)
    table = pa.table({"loc": [f"/{c}{'x' * 90}" for c in codes], "g": ["1"] * 700, "l": codes})
    with pytest.raises(us.DataError, match="exceed the size limit of a sitemap") as caught:
        us.build(table, site=SITE, out=out, **GROUP)
    assert caught.value.code == "alternate.group"


def test_rejecting(out: Path) -> None:
    table = pa.table({"loc": ["/a", "/b"], "de": ["/a", None]})
    options = {"on_bad_field": "reject", "max_rejects": "50%"}
    report = us.build(table, site=SITE, out=out, alternate={"de": "de"}, **options)
    assert report.rejects["by_code"] == {"alternate.empty": 1}


# of a separate process; ru_maxrss survives exec and would be that of pytest
PEAK = """
import re, sys, urlset
report = urlset.build(sys.argv[2], site=sys.argv[1], out=sys.argv[3], alternate="alts", lang="en",
                      alternate_rows=True)
print(report.urls, re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells no peak")
def test_memory_where_each_row_becomes_many(tmp_path: Path, out: Path) -> None:
    """4,096 rows, a batch where a row becomes one, are 640 MB of XML with 40 languages each."""
    regions = ("AT", "BE", "CA", "CH", "DE", "ES", "FR", "GB", "IE", "IT")
    languages = [f"{code}-{region}" for code in ("de", "fr", "it", "es") for region in regions]
    links = [[(code, f"/{code}/{n}") for code in languages] for n in range(4_096)]
    source = tmp_path / "c.parquet"
    alts = pa.array(links, pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({"url": [f"/{n}" for n in range(4_096)], "alts": alts}), source)
    command = [sys.executable, "-c", PEAK, SITE, str(source), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    urls, kilobytes = map(int, done.stdout.split())
    assert urls == 4_096 * 41 and kilobytes < 512 * 1024
