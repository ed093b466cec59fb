"""Prepared rows on Spark: exact duplicates and changes, and shards that stay as they are."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import prepare_cases
import pyarrow as pa
import pytest
import urlset
from conftest import SITE, read_set
from engine_cases import live, must_be_whole
from prepare_cases import catalog, many, must_be_in_order, rewritten, shards_of
from test_spark import spark, store  # noqa: F401  also skips this file without Spark

import urlset.spark
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

pytestmark = pytest.mark.long

for module in (sys.modules[__name__], prepare_cases):
    cloudpickle.register_pickle_by_value(module)

OPTIONS = {"site": SITE, "max_urls": "1000", "max_shrink": "100%", "duplicates": "drop"}


def rows(spark: SparkSession, columns: dict[str, list[Any]], partitions: int = 5) -> DataFrame:
    """Rows in another order than they are given."""
    return spark.createDataFrame(pa.table(columns)).repartition(partitions)


def save(df: DataFrame, out: Path, **options: str) -> None:
    given = OPTIONS | {"out": str(out)} | options
    df.write.format("urlset").mode("overwrite").options(**given).save()


def prepare(df: DataFrame, out: Path, partitions: int | None = None, **options: str) -> DataFrame:
    given = OPTIONS | {"out": str(out)} | options
    return urlset.spark.prepare(df, partitions=partitions, **given)


def publish(df: DataFrame, out: Path, partitions: int | None = None, **options: str) -> None:
    save(prepare(df, out, partitions, **options), out, **options)


def fails(df: DataFrame, out: Path, **options: str) -> str:
    with pytest.raises(PySparkException) as caught:
        save(df, out, **options)
    line = next(one for one in str(caught.value).splitlines() if "urlset.errors." in one)
    return line.partition(": ")[2]


def manifest(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / ".urlset/manifest.json").read_text()))


def test_the_same_urls_on_any_number_of_partitions(spark: SparkSession, tmp_path: Path) -> None:
    cells = many(3_000, seed=1)
    df = rows(spark, {"address": [raw for raw, _ in cells], "n": list(range(3_000))})
    wanted = sorted({loc for n, (_, loc) in enumerate(cells) if loc is not None and n != 7})
    options = {"loc": "address", "where": '["n!=7"]', "max_rejects": "5", "layout": "stable"}
    for partitions in (4, 40):
        out = tmp_path / f"out-{partitions}"
        publish(df, out, partitions, **options)
        assert must_be_in_order(out) == wanted
        must_be_whole(out)
        edges = sum("edge" in shard for shard in manifest(out)["shards"])
        assert partitions * 0.7 <= edges <= partitions
        with (out / ".urlset/rejects.csv").open(newline="") as file:
            rejects = [row["value"] for row in csv.DictReader(file)]
        assert sorted(rejects) == sorted(
            raw or "" for n, (raw, loc) in enumerate(cells) if loc is None and n != 7
        )


def test_templates(spark: SparkSession, out: Path) -> None:
    words = ["größe", "Größe", "a/b", "", None, "z"] * 50
    df = rows(spark, {"word": words, "n": [n % 60 for n in range(300)]})
    publish(df, out, 1, loc_template=f"{SITE}/{{word}}/{{n}}", max_rejects="40%")
    found = {entry.removeprefix(SITE) for entry in must_be_in_order(out)}
    encoded = {"größe": "gr%C3%B6%C3%9Fe", "Größe": "Gr%C3%B6%C3%9Fe", "a/b": "a%2Fb", "z": "z"}
    assert found == {f"/{encoded[w]}/{n % 60}" for n, w in enumerate(words) if w in encoded}


def test_one_percent_of_the_rows_change(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    """The shards that are written are at most 1.25 times those that hold an edit."""
    state = catalog(30_000)
    feed = tmp_path / "changes.csv"
    options = {"layout": "stable", "changes": str(feed), "max_urls": "500"}
    publish(rows(spark, state.rows), out, 8, **options)
    assert len(manifest(out)["shards"]) > 60
    for groups, size in ((6, 50), (300, 1)):
        before, old = shards_of(out), state.entries
        state = state.edited(groups, size, seed=size)
        publish(rows(spark, state.rows), out, **options)
        after, new = shards_of(out), state.entries
        assert {k: v for entries in after.entries for k, v in entries.items()} == new
        written, hit = rewritten(before, after)
        assert 0 < written <= 1.25 * hit
        with feed.open(newline="") as file:
            found = {(row["loc"], row["change"]) for row in csv.DictReader(file)}
        assert found == (
            {(loc, "added") for loc in new.keys() - old.keys()}
            | {(loc, "removed") for loc in old.keys() - new.keys()}
            | {(loc, "changed") for loc in old.keys() & new.keys() if old[loc] != new[loc]}
        )
    must_be_whole(out)


def test_the_newest_of_equal_locs_is_kept(spark: SparkSession, out: Path) -> None:
    columns = {
        "loc": [f"{SITE}/{n % 50}" for n in range(1_000)],
        "lastmod": [f"2026-{1 + n % 5:02}-{1 + n // 50:02}" for n in range(1_000)],
        "priority": ["0.5", "0.7"] * 500,
        "tags": [{"a": n} for n in range(1_000)],
    }  # fmt: skip
    publish(rows(spark, columns), out, 3)
    found = {entry["loc"]: entry["lastmod"] for entry in read_set(out)}
    assert found == {f"{SITE}/{n}": f"2026-{1 + n % 5:02}-20" for n in range(50)}
    before = shards_of(out)
    publish(rows(spark, columns, 11), out)
    assert shards_of(out) == before
    doubled = rows(spark, {"loc": [f"{SITE}/{n % 999}" for n in range(1_000)]})
    message = fails(prepare(doubled, out, duplicates="fail"), out, duplicates="fail")
    assert message.startswith("partition ") and f"occurred before: {SITE}/0; drop" in message
    assert shards_of(out) == before
    must_be_whole(out)


def test_all_rows_have_one_loc(spark: SparkSession, out: Path) -> None:
    for _ in range(2):
        publish(rows(spark, {"loc": [f"{SITE}/a"] * 500}), out, 4)
        assert live(out) == [f"{SITE}/a"]


def test_no_row_is_left(spark: SparkSession, out: Path) -> None:
    df = rows(spark, {"loc": [f"{SITE}/{n}" for n in range(300)]})
    publish(df, out, 3)
    before = shards_of(out)
    assert "there are no rows" in fails(prepare(df.where("loc is null"), out), out)
    wrong = df.withColumn("loc", sf.lit("x:"))
    assert "300 of 300 rows rejected" in fails(prepare(wrong, out), out)
    # rows without a loc are in all partitions
    places = prepare(wrong.repartition(9), out).select(sf.spark_partition_id()).distinct().count()
    assert places == 3
    assert shards_of(out) == before
    must_be_whole(out)


def test_the_example_of_the_documents(spark: SparkSession, tmp_path: Path, out: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/engines.md").read_text()
    [code] = [part for part in text.split("```")[1::2] if "urlset.spark.prepare" in part]
    code = code.removeprefix("python").replace("/mnt/shared/sitemaps", str(out))
    products = rows(spark, {"product_url": ["/b", "/a", "/b"]}, 2)
    exec(code.replace("/mnt/shared", str(tmp_path)), {"products": products, "urlset": urlset})
    assert live(out) == [f"{SITE}/a", f"{SITE}/b"]
    assert (tmp_path / "changes.csv").read_text().count("added") == 2


def test_rows_that_were_changed_afterwards(spark: SparkSession, out: Path) -> None:
    df = rows(spark, {"loc": [f"{SITE}/{n:04}" for n in range(2_000)]})
    prepared = prepare(df, out, 4)
    remedy = "make prepare the last step before the write"
    message = fails(prepared.repartition(3), out)
    assert message.startswith("partition ") and "row" in message and remedy in message
    sorted_alone = prepared.drop("__urlset_prepared__").repartition(3).sortWithinPartitions("loc")
    message = fails(sorted_alone.withColumn("__urlset_prepared__", sf.lit(True)), out)
    assert "overlap" in message and remedy in message
    message = fails(prepared.drop("__urlset_prepared__"), out)
    assert "duplicates: not in a job with several parts" in message
    assert "urlset.spark.prepare" in message
    assert not list(out.glob("*.xml"))
    save(prepared, out)  # it can be used again
    assert len(must_be_in_order(out)) == 2_000
    must_be_whole(out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_ulrs": 3}, "did you mean max_urls"),
        ({"loc": "nothing"}, "nothing"),
        ({"alternate_group": "loc"}, "alternate_group"),
        ({"partitions": 0}, "partitions: 0 is not a positive number"),
        ({"partitions": "4"}, "partitions: '4' is not a positive number"),
        ({"partitions": 1.5}, "partitions: 1.5 is not a positive number"),
    ],
)  # fmt: skip
def test_wrong_options(
    spark: SparkSession,
    out: Path,
    options: dict[str, Any],
    message: str,
) -> None:
    df = rows(spark, {"loc": [f"{SITE}/a"]}, 1)
    with pytest.raises(urlset.ConfigError, match=message):
        urlset.spark.prepare(df, site=SITE, out=out, **options)
