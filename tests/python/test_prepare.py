"""Ordered rows: their locs and ranges, the checks of a job with ordered parts, its manifest."""

from __future__ import annotations

import csv
import json
import pickle
import random
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Any

import prepare_cases
import pyarrow as pa
import pytest
import urlset
from conftest import SITE, read_set
from prepare_cases import LOCS, catalog, must_be_in_order, rewritten, shards_of
from store_servers import Server
from urlset import Job, Part
from urlset.build.ranges import Ranges, live_bounds, live_ranges
from urlset.destination.manifest import ShardRecord, parse_manifest


def plan(out: Path, **options: Any) -> Job:
    given = {"ordered": True, "max_urls": 100, "max_shrink": "100%", "max_rejects": "100%"}
    return Job(site=SITE, out=out, **given | options)


def ranges(out: Path, partitions: int | None = None, **options: Any) -> Ranges:
    return live_ranges({"site": SITE, "out": str(out), **options}, None, partitions)


def table(locs: list[str]) -> pa.Table:
    return pa.table({"loc": locs})


def numbered(first: int, last: int) -> list[str]:
    return [f"{SITE}/p/{number:06}" for number in range(first, last)]


def test_the_locs_are_those_of_the_rules_and_of_a_build(out: Path) -> None:
    prepare_cases.check_the_cases()
    rows = pa.table({"loc": [raw for raw, _ in LOCS]})
    found = ranges(out).locate(rows, 0)[0].to_pylist()
    assert found == [loc for _, loc in LOCS]
    urlset.build(rows, site=SITE, out=out, max_rejects="100%")
    assert [entry["loc"] for entry in read_set(out)] == [loc for loc in found if loc is not None]


def test_the_locs_of_templates_and_filters(out: Path) -> None:
    rows = pa.table({
        "slug": ["größe & co", "b", None, "d", "N/A"],
        "id": [1, 2, 3, 4, 5],
        "sold": [False, True, False, False, False],
        "updated_at": ["2026-01-01"] * 5,
        "picture": [["a", "b"]] * 5,
    })  # fmt: skip
    options = {"loc_template": "/{slug}/{id}", "where": ["sold=false", "id!=4"], "image": ["slug"]}
    given = ranges(out, **options)
    assert given.columns(rows.schema) == (
        ("slug", "id", "sold"),
        ("slug", "id", "sold"),
        "updated_at",
    )
    wanted = [f"{SITE}/gr%C3%B6%C3%9Fe%20%26%20co/1", None, None, None, None]
    assert given.locate(rows, 0)[0].to_pylist() == wanted
    needed = rows.select(["slug", "id", "sold"])
    again = pickle.loads(pickle.dumps(given))
    assert again.locate(needed, 0)[0].to_pylist() == wanted
    with pytest.raises(urlset.ConfigError, match="id"):
        again.locate(rows.select(["slug", "sold"]), 0)
    with pytest.raises(urlset.ConfigError, match="slug"):
        given.columns(rows.select(["id", "sold"]).schema)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 65_536, 150_001])
def test_the_range_of_each_row(out: Path, rows: int) -> None:
    numbers = random.Random(rows).choices(range(10**6), k=rows)
    locs = [f"{SITE}/p/{number:06}" if number % 5 else "x:" for number in numbers]
    bounds = tuple(numbered(n, n + 1)[0] for n in (1, 250_001, 250_002, 999_999))
    given = Ranges(ranges(out).settings, bounds)
    found, places = given.locate(table(locs), 12)
    assert found.to_pylist() == [loc if loc != "x:" else None for loc in locs]
    assert places.to_pylist() == [bisect_right(bounds, loc) if loc != "x:" else 2 for loc in locs]
    for exact in bounds:
        assert given.locate(table([exact]), 0)[1].to_pylist() == [bounds.index(exact) + 1]


@pytest.mark.parametrize("options", [{}, {"output": "text"}, {"layout": "stable"}])
@pytest.mark.parametrize("place", [1, 2, 777, 99_999])
def test_rows_that_do_not_ascend(out: Path, options: dict[str, Any], place: int) -> None:
    """In a chunk, at its beginning, and at the edges of batches."""
    locs = [f"{loc}?a=1&b='{'x' * 20}" for loc in numbered(0, 100_000)]
    job = plan(out, max_urls=50_000, **options)
    assert job.write(table(locs)).urls == 100_000
    locs[place] = locs[place - 1][:-1]
    with pytest.raises(urlset.DataError) as caught:
        job.write(table(locs))
    assert caught.value.code == "rows.order" and caught.value.row == place + 1
    assert str(caught.value).endswith(f": {locs[place]}")
    with pytest.raises(urlset.DataError):  # each batch ascends
        job.write(iter([pa.record_batch({"loc": locs[50:]}), pa.record_batch({"loc": locs[:50]})]))


@pytest.mark.parametrize("options", [{}, {"output": "text"}, {"layout": "stable"}])
def test_a_duplicate_is_named(out: Path, options: dict[str, Any]) -> None:
    """Its row number helps nobody after an engine has sorted the rows."""
    locs = [f"{loc}?a=1&b='{'x' * 20}" for loc in numbered(0, 50_000)]
    locs[40_000] = locs[39_999]
    with pytest.raises(urlset.DataError) as caught:
        plan(out, duplicates="fail", **options).write(table(locs))
    assert caught.value.code == "duplicates.found" and caught.value.row == 40_001
    assert f"occurred before: {locs[40_000]}; drop such rows" in str(caught.value)


def test_the_order_is_that_of_the_final_locs(out: Path) -> None:
    job = plan(out, duplicates="drop")
    wanted = sorted({loc for _, loc in LOCS if loc is not None}, key=str.encode)
    cells = sorted(LOCS, key=lambda pair: (pair[1] or "").encode())
    part = job.write(table([raw for raw, _ in cells]))
    assert job.commit([part]).duplicates == len([1 for _, loc in LOCS if loc]) - len(wanted)
    assert must_be_in_order(out) == wanted
    with pytest.raises(urlset.DataError, match=r"row \d+"):
        plan(out).write(table([f"{SITE}/%C3%BC", f"{SITE}/z~", "/über"]))


def test_parts_are_listed_in_the_order_of_their_locs(out: Path) -> None:
    job = plan(out)
    parts = [
        job.write(table(numbered(*each))) for each in ((500, 750), (0, 0), (0, 250), (250, 300))
    ]
    job.commit(parts)
    assert must_be_in_order(out) == numbered(0, 300) + numbered(500, 750)
    shards = json.loads((out / ".urlset/manifest.json").read_text())["shards"]
    found = shards_of(out)
    assert [shard["first"] for shard in shards] == [min(entries) for entries in found.entries]
    edges = [shard["first"] for shard in shards if "edge" in shard]
    assert edges == [numbered(n, n + 1)[0] for n in (0, 250, 500)]
    urlset.build(table(numbered(0, 300)), site=SITE, out=out, max_shrink="100%")
    assert not {"first", "edge"} & set(
        json.loads((out / ".urlset/manifest.json").read_text())["shards"][0]
    )


@pytest.mark.parametrize(
    ("second", "does"), [((249, 300), True), ((100, 110), True), ((250, 300), False)]
)
def test_parts_that_overlap(out: Path, second: tuple[int, int], does: bool) -> None:
    job = plan(out)
    parts = [job.write(table(numbered(*each))) for each in ((0, 0), second, (0, 250))]
    if not does:
        assert job.commit(parts).published
        return
    with pytest.raises(urlset.DataError) as caught:
        job.commit(parts)
    assert caught.value.code == "rows.order" and "parts 2 and 1 overlap" in str(caught.value)
    assert not list(out.glob("*.xml"))


def test_duplicates_and_changes_over_all_parts(tmp_path: Path, out: Path) -> None:
    first, second = numbered(0, 300), numbered(300, 400)
    job = plan(out, duplicates="fail")
    with pytest.raises(urlset.DataError) as caught:
        job.write(table([*first[:5], *first[4:]]))
    assert caught.value.code == "duplicates.found" and caught.value.row == 6
    job.abort()
    feed = tmp_path / "changes.csv"
    job = plan(out, duplicates="drop", changes=feed)
    report = job.commit([job.write(table([*first, first[-1]])), job.write(table(second))])
    assert (report.rows, report.urls, report.duplicates) == (401, 400, 1)
    job = plan(out, duplicates="drop", changes=feed, layout="stable")
    job.commit([job.write(table(first[10:])), job.write(table([*second, f"{SITE}/q"]))])
    with feed.open(newline="") as file:
        changes = {(row["loc"], row["change"]) for row in csv.DictReader(file)}
    assert changes == {(loc, "removed") for loc in first[:10]} | {(f"{SITE}/q", "added")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternate_group": "g", "lang_column": "l"}, "alternate_group: not in a job"),
        ({"alternate": ["de=a"], "lang": "en", "alternate_rows": True},
         "alternate_rows: not in a job"),
        ({"ordered": False, "duplicates": "drop"}, "urlset.spark.prepare or urlset.ray.prepare"),
        ({"ordered": False, "sort": True}, "urlset.spark.prepare or urlset.ray.prepare"),
    ],
)  # fmt: skip
def test_options_that_are_refused(out: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(urlset.ConfigError) as caught:
        plan(out, **options)
    assert caught.value.code == "job.option" and message in str(caught.value)
    assert not out.exists()


def test_a_split_set_has_its_locs_in_order_too(out: Path) -> None:
    job = plan(out, split_by="kind", sort=True)
    kinds = ["ab"[number % 2] for number in range(300)]
    rows = pa.table({"loc": numbered(0, 300), "kind": kinds})
    job.commit([job.write(rows.slice(0, 120)), job.write(rows.slice(120))])
    assert {entry["loc"] for entry in read_set(out)} == set(numbered(0, 300))
    shards = json.loads((out / ".urlset/manifest.json").read_text())["shards"]
    assert [shard["first"] for shard in shards if "edge" in shard] == [
        numbered(0, 1)[0], numbered(120, 121)[0]
    ]  # fmt: skip


def test_a_part_with_wrong_locs(out: Path) -> None:
    job = plan(out)
    text = job.write(table(numbered(0, 250))).to_json()
    content = json.loads(text)
    for wrong in ([], [1, 2, 3], ["a", "b"], None):
        if wrong != []:  # of rows that are not ordered
            content["outcomes"][0]["firsts"] = wrong
            with pytest.raises(urlset.ConfigError, match="not a part"):
                Part.from_json(json.dumps(content))
    assert job.commit([Part.from_json(text)]).published


def record(first: str | None, urls: int, *, edge: bool = False) -> ShardRecord:
    return ShardRecord("a.xml", urls, 1, 1, "0" * 32, None, "", 0, first=first, edge=edge)


def test_the_bounds_of_the_next_job() -> None:
    names = [f"{number:04}" for number in range(1_000)]
    sizes = random.Random(1).choices(range(500, 1_000), k=1_000)
    edges = {names[at] for at in range(0, 1_000, 100)}
    live = [record(n, s, edge=n in edges) for n, s in zip(names, sizes, strict=True)]
    random.Random(2).shuffle(live)
    kept = tuple(sorted(edges))[1:]
    assert live_bounds([], 4) is None and live_bounds([record(None, 9)], 4) is None
    for wanted in (None, 8, 9, 10, 11, 13):  # a previous edge stays
        assert live_bounds(live, wanted) == kept
    more = live_bounds(live, 40)
    assert more is not None and set(kept) < set(more) <= set(names) and len(more) == 39
    fewer = live_bounds(live, 3)
    assert fewer is not None and set(fewer) < set(kept) and 2 <= len(fewer) <= 5
    for bounds in (kept, more, fewer):
        filled = [0] * (len(bounds) + 1)
        for name, size in zip(names, sizes, strict=True):
            filled[bisect_right(bounds, name)] += size
        assert max(filled) < 2.5 * sum(filled) / len(filled) and sorted(bounds) == [*bounds]
    # a part that has grown is split
    grown = [one._replace(urls=one.urls * 5) if (one.first or "") < "0100" else one for one in live]
    split = live_bounds(grown, None)
    assert (
        split is not None
        and set(kept) < set(split)
        and {one < "0100" for one in split} == {True, False}
    )
    # one loc in many shards is one range
    assert live_bounds([record("a", 9, edge=True), *[record("b", 9)] * 8], 9) == ("b",)


@pytest.mark.parametrize(
    "wrong", [{"first": 3}, {"first": ""}, {"first": "x" * 2_048}, {"first": None}, {"edge": False},
              {"edge": 1}, {"edge": "true"}, {"first": ["a"]}],
)  # fmt: skip
def test_a_hostile_manifest(out: Path, wrong: dict[str, Any]) -> None:
    job = plan(out)
    job.commit([job.write(table(numbered(0, 250)))])
    file = out / ".urlset/manifest.json"
    content = json.loads(file.read_text())
    assert parse_manifest(file.read_bytes(), file).shards[0].edge
    content["shards"][0] |= wrong
    file.write_text(json.dumps(content))
    with pytest.raises(urlset.PublishError) as caught:
        ranges(out)
    assert caught.value.code == "state.damaged"


def test_ranges_without_ordered_rows_that_are_live(out: Path) -> None:
    assert ranges(out).bounds is None
    urlset.build(table(numbered(0, 300)), site=SITE, out=out)
    assert ranges(out).bounds is None
    job = plan(out)
    job.commit([job.write(table(numbered(0, 150))), job.write(table(numbered(150, 300)))])
    assert ranges(out).bounds == (numbered(150, 151)[0],)
    # all rows of another site would be in one range
    assert ranges(out, site="https://new.example").bounds is None


@pytest.mark.parametrize("groups", [(6, 100), (600, 1)])
def test_an_edit_rewrites_the_shards_that_hold_it(out: Path, groups: tuple[int, int]) -> None:
    """The parts begin where those of the live set begin."""
    old = catalog(60_000)
    options: dict[str, Any] = {"layout": "stable", "duplicates": "drop", "max_urls": 1_000}

    def publish(rows: dict[str, list[str]], given: Ranges) -> None:
        whole = pa.table(rows).sort_by("loc")
        places = given.locate(whole, 0)[1]
        job = plan(out, **options)
        parts = [whole.filter(pa.compute.equal(places, n)) for n in range(given.count)]
        job.commit([job.write(part) for part in parts])

    bounds = tuple(prepare_cases.loc(number) for number in range(9_999, 170_000, 15_000))
    publish(old.rows, Ranges(ranges(out, **options).settings, bounds))
    before = shards_of(out)
    new = old.edited(*groups, seed=3)
    given = ranges(out, **options)
    assert given.count == len(bounds) + 1
    publish(new.rows, given)
    after = shards_of(out)
    assert {k: v for entries in after.entries for k, v in entries.items()} == new.entries
    written, hit = rewritten(before, after)
    assert 0 < written <= 1.25 * hit and hit >= 6
    # more ranges begin at shards, so no shard changes
    more = ranges(out, 30, **options)
    assert 20 < more.count < 40
    publish(new.rows, more)
    assert shards_of(out) == after
    assert ranges(out, **options).bounds == more.bounds


@pytest.mark.long
def test_ranges_of_an_object_store(s3: Server) -> None:
    options: dict[str, Any] = {"site": SITE, "out": f"s3://{s3.bucket}/maps", "max_shrink": "100%"}

    def publish() -> dict[str, str]:
        job = pickle.loads(pickle.dumps(Job(ordered=True, max_urls=100, **options)))
        parts = [job.write(table(numbered(*each))) for each in ((300, 450), (0, 300))]
        job.commit(Part.from_json(part.to_json()) for part in parts)
        listing = s3.client.list_objects_v2(Bucket=s3.bucket, Prefix="maps/sitemap-")["Contents"]
        return {one["Key"]: one["ETag"] for one in listing}

    before = publish()
    assert len(before) == 5
    assert live_ranges(options, None, None).bounds == (numbered(300, 301)[0],)
    assert publish() == before


@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_the_cost_of_more_ranges(tmp_path: Path, layout: str) -> None:
    """Each range but one adds at most one shard; URLs and their order stay."""
    known: list[str] = []
    shards: dict[int, int] = {}
    for count in (1, 4, 97):
        out = tmp_path / f"out-{count}"
        job = plan(out, layout=layout, max_urls=100)
        edges = [20_000 * number // count for number in range(count + 1)]
        parts = [job.write(table(numbered(*each))) for each in pairwise(edges)]
        shards[count] = len(job.commit(parts).shards)
        found = must_be_in_order(out)
        assert found == (known or found)
        known = found
    assert shards[1] <= shards[4] <= shards[1] + 3
    assert shards[4] <= shards[97] <= shards[1] + 96
