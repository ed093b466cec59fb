"""Prepared rows on Ray: exact duplicates and changes, and shards that stay as they are."""

from __future__ import annotations

import csv
import json
import random
import sys
from pathlib import Path
from typing import Any

import prepare_cases
import pandas as pd
import pyarrow as pa
import pytest
import urlset
from conftest import SITE, read_set
from engine_cases import live, must_be_whole
from prepare_cases import catalog, many, must_be_in_order, rewritten, shards_of
from test_ray import cluster, store  # noqa: F401  also skips this file without Ray

import urlset.ray
from ray import cloudpickle
from ray import data as ray_data

pytestmark = pytest.mark.long

for module in (sys.modules[__name__], prepare_cases):
    cloudpickle.register_pickle_by_value(module)


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shuffle that starts fewest processes, except in the test of the default."""
    if "default" not in request.node.name:
        context = ray_data.DataContext.get_current()
        monkeypatch.setattr(context, "shuffle_strategy", "sort_shuffle_pull_based")


def options(out: Path, **given: Any) -> dict[str, Any]:
    common = {"site": SITE, "out": out, "max_urls": 500, "max_shrink": "100%"}
    return common | {"duplicates": "drop"} | given


def dataset(columns: dict[str, list[Any]], blocks: int = 4) -> ray_data.Dataset:
    """Rows in another order than they are given."""
    table = pa.table(columns)
    order = list(range(table.num_rows))
    random.Random(blocks).shuffle(order)
    table = table.take(order)
    size = -(-table.num_rows // blocks)
    return ray_data.from_arrow([table.slice(at, size) for at in range(0, table.num_rows, size)])


def publish(
    data: ray_data.Dataset, out: Path, partitions: int | None = None, **given: Any
) -> urlset.Report:
    chosen = options(out, **given)
    return urlset.ray.write(urlset.ray.prepare(data, partitions=partitions, **chosen), **chosen)


def test_the_urls_are_those_of_the_rows_by_the_default_shuffle(out: Path) -> None:
    cells = many(2_000, seed=1)
    data = dataset({"address": [raw for raw, _ in cells], "n": list(range(2_000))})
    kept = [(raw, loc) for n, (raw, loc) in enumerate(cells) if n != 7]
    wanted = sorted({loc for _, loc in kept if loc is not None})
    given = {"loc": "address", "where": ["n!=7"], "max_rejects": "5", "layout": "stable"}
    report = publish(data, out, 3, **given)
    assert must_be_in_order(out) == wanted
    rejected = [raw or "" for raw, loc in kept if loc is None]
    assert (report.rows, report.filtered, report.rejected) == (2_000, 1, len(rejected))
    assert report.duplicates == len(kept) - len(wanted) - len(rejected)
    shards = json.loads((out / ".urlset/manifest.json").read_text())["shards"]
    assert sum("edge" in shard for shard in shards) == 3
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        assert sorted(row["value"] for row in csv.DictReader(file)) == sorted(rejected)
    must_be_whole(out)


def test_one_percent_of_the_rows_change(tmp_path: Path, out: Path) -> None:
    """The shards that are written are at most 1.25 times those that hold an edit."""
    state = catalog(30_000)
    feed = tmp_path / "changes.csv"
    given = {"layout": "stable", "changes": feed}
    publish(dataset(state.rows), out, 6, **given)
    before, old = shards_of(out), state.entries
    state = state.edited(6, 50, seed=1)
    report = publish(dataset(state.rows, 3), out, **given)
    after, new = shards_of(out), state.entries
    assert {k: v for entries in after.entries for k, v in entries.items()} == new
    written, hit = rewritten(before, after)
    assert 0 < written == sum(shard.changed for shard in report.shards) <= 1.25 * hit
    with feed.open(newline="") as file:
        found = {(row["loc"], row["change"]) for row in csv.DictReader(file)}
    assert {loc for loc, change in found if change == "added"} == new.keys() - old.keys()
    assert {loc for loc, change in found if change == "removed"} == old.keys() - new.keys()
    both = old.keys() & new.keys()
    changed = {loc for loc in both if old[loc] != new[loc]}
    assert {loc for loc, change in found if change == "changed"} == changed
    must_be_whole(out)


def test_the_newest_of_equal_locs_is_kept(out: Path) -> None:
    columns = {
        "loc": [f"{SITE}/{n % 50}" for n in range(1_000)],
        "lastmod": [f"2026-{1 + n % 5:02}-{1 + n // 50:02}" for n in range(1_000)],
        "tags": [["a", str(n)] for n in range(1_000)],
    }
    publish(dataset(columns), out, 2)
    found = {entry["loc"]: entry["lastmod"] for entry in read_set(out)}
    assert found == {f"{SITE}/{n}": f"2026-{1 + n % 5:02}-20" for n in range(50)}
    must_be_whole(out)


def test_texts_of_every_type(out: Path) -> None:
    """Ray pickles texts of pandas among NaN, and cannot join different dictionaries."""
    names = [f"{SITE}/{n:03}" for n in range(80)]
    dictionaries = [pa.array(names[at : at + 20]).dictionary_encode() for at in (0, 20)]
    data = ray_data.from_arrow([pa.table({"loc": each}) for each in dictionaries])
    frame = pd.DataFrame({"loc": pd.Series([*names[40:], float("nan")], dtype=object)})
    report = publish(data.union(ray_data.from_pandas(frame)), out, 3, max_rejects=1)
    assert live(out) == names and report.rejected == 1
    must_be_whole(out)


def as_view(rows: pa.Table) -> pa.Table:
    return rows.set_column(0, "loc", rows["loc"].cast(pa.string_view()))


def test_views(out: Path) -> None:
    """Ray can neither send them to another process nor shuffle them."""
    names = [f"{SITE}/{n:03}" for n in range(40)]
    publish(dataset({"loc": names}).map_batches(as_view, batch_format="pyarrow"), out, 3)
    assert live(out) == names


def test_edges(out: Path) -> None:
    same = dataset({"loc": [f"{SITE}/a"] * 200})
    publish(same, out, 3)
    with pytest.raises(urlset.DataError, match=r"^partition \d+: ") as caught:
        publish(same, out, duplicates="fail")
    assert f"occurred before: {SITE}/a; drop" in str(caught.value)
    assert caught.value.code == "duplicates.found"
    empty = ray_data.from_arrow(pa.table({"loc": pa.array([], "string")}))
    with pytest.raises(urlset.DataError, match="there are no rows"):
        publish(empty, out)
    with pytest.raises(urlset.RejectLimitError, match="200 of 200 rows rejected"):
        publish(dataset({"loc": ["x:"] * 200}, 2), out)
    with pytest.raises(urlset.ConfigError, match='there are: "address"'):
        publish(dataset({"address": ["/a"]}, 1), out)
    with pytest.raises(urlset.ConfigError, match="partitions: 0 is not a positive number"):
        publish(dataset({"loc": ["/a"]}, 1), out, 0)
    assert live(out) == [f"{SITE}/a"]
    must_be_whole(out)


def test_rows_that_were_changed_afterwards(out: Path) -> None:
    data = dataset({"loc": [f"{SITE}/{n:04}" for n in range(500)]})
    prepared = urlset.ray.prepare(data, partitions=2, **options(out))
    same = prepared.map_batches(lambda rows: rows, batch_format="pyarrow")
    with pytest.raises(urlset.ConfigError, match=r"urlset\.ray\.prepare"):
        urlset.ray.write(same, **options(out))
    with pytest.raises(urlset.ConfigError, match="make it the last step before the write"):
        urlset.ray.write(same, **options(out, duplicates="keep"))
    assert not list(out.glob("*.xml"))
    urlset.ray.write(prepared, concurrency=1, ray_remote_args={"num_cpus": 1}, **options(out))
    assert len(must_be_in_order(out)) == 500
    must_be_whole(out)
    # unless the last step is another prepare
    again = urlset.ray.prepare(
        prepared.filter(lambda row: row["loc"] > f"{SITE}/03"), **options(out)
    )
    assert urlset.ray.write(again, **options(out)).urls == len(must_be_in_order(out)) == 200
