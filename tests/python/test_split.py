"""A set of shards for each value or host: names, indexes, limits, memory."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urlset as us
from conftest import SITE, read_index, read_shard
from extended import build


def index_paths(out: Path, name: str) -> list[str]:
    return [entry["loc"].removeprefix(f"{SITE}/") for entry in read_index(out / name)]


def locs(out: Path, paths: list[str]) -> list[str]:
    return [url["loc"].removeprefix(SITE) for path in paths for url in read_shard(out / path)]


def shuffled(rows: int, values: int, seed: int = 1) -> tuple[pa.Table, dict[str, list[str]]]:
    pick = random.Random(seed)
    column = [f"v{pick.randrange(values)}" for _ in range(rows)]
    wanted: dict[str, list[str]] = {}
    for number, value in enumerate(column):
        wanted.setdefault(value, []).append(f"/{number}")
    return pa.table({"loc": [f"/{n}" for n in range(rows)], "cat": column}), wanted


@pytest.mark.parametrize("mode", ["one", "each"])
def test_by_column(out: Path, schema, mode: str) -> None:
    table, wanted = shuffled(2_000, 7)
    report = build(out, table, schema, split_by="cat", split_index=mode, max_urls=100)
    if mode == "one":
        assert [index.path for index in report.indexes] == ["sitemap.xml"]
        paths = index_paths(out, "sitemap.xml")
    else:
        assert [index.path for index in report.indexes] == [f"sitemap-{v}.xml" for v in wanted]
        assert report.url == f"{SITE}/sitemap-{next(iter(wanted))}.xml"
        assert not (out / "sitemap.xml").exists()
    for value, urls in wanted.items():
        if mode == "each":
            paths = index_paths(out, f"sitemap-{value}.xml")
        own = [path for path in paths if path.startswith(f"sitemap-{value}-")]
        assert own == [f"sitemap-{value}-{n + 1:05}.xml.gz" for n in range(-(-len(urls) // 100))]
        assert locs(out, own) == urls
    # a build with other values removes the files of the previous values
    build(out, table.slice(0, 1), schema, split_by="cat", max_shrink="100%")
    assert len([*out.glob("sitemap-v*")]) == 1


NASTY = ["../../x", "a/b", "A", "a", "ä", "", None, "..", "x" * 3_000, ".urlset", "CON", "1-00001",
         "index-2", "\x00\x1b[31m", "<&>\"'", "none", "🛒"]  # fmt: skip


def test_values_are_safe_names(out: Path, schema) -> None:
    table = pa.table({"loc": [f"/{n}" for n in range(len(NASTY))], "cat": NASTY})
    report = build(out, table, schema, split_by="cat", split_index="each", gzip=False)
    names = [path.name for path in out.iterdir() if path.name != ".urlset"]
    # null and the empty text are one value
    assert len(names) == 2 * (len(NASTY) - 1) == len({name.lower() for name in names})
    assert {index.path for index in report.indexes} <= set(names)
    assert sorted(p.name for p in out.parent.iterdir()) == ["out"]
    assert all(len(name) < 120 and name.isascii() for name in names)
    assert sorted(locs(out, [s.path for s in report.shards])) == sorted(table["loc"].to_pylist())


def test_too_many_values(out: Path, schema) -> None:
    table, _ = shuffled(200, 50)
    with pytest.raises(us.DataError, match=r'split by "cat".*more than 10 values'):
        us.build(table, site=SITE, out=out, split_by="cat", max_groups=10)
    with pytest.raises(us.ConfigError, match="no column"):
        us.build(table, site=SITE, out=out, split_by="category")
    hostile = table.rename_columns(["loc", "c\n\x1b[31m"])
    with pytest.raises(us.DataError) as caught:
        us.build(hostile, site=SITE, out=out, split_by="c\n\x1b[31m", max_groups=10)
    assert caught.value.code == "split.too_many" and str(caught.value).isprintable()


def test_stable_as_if_each_value_were_built_alone(tmp_path: Path, out: Path, schema) -> None:
    """Contents, boundary hashes and digests, which are in the names."""
    table, wanted = shuffled(3_000, 5)
    options: dict[str, Any] = {"layout": "stable", "max_urls": 100, "gzip": False}
    report = build(out, table, schema, split_by="cat", **options)
    together = {path.name: path.read_bytes() for path in out.glob("sitemap-*")}
    alone: dict[str, bytes] = {}
    for value, urls in wanted.items():
        folder = tmp_path / value
        only = us.build(
            table, site=SITE, out=folder, name=f"sitemap-{value}", where=[f"cat={value}"], **options
        )
        assert locs(folder, [shard.path for shard in only.shards]) == urls
        alone |= {shard.path: (folder / shard.path).read_bytes() for shard in only.shards}
    assert together == alone
    assert index_paths(out, "sitemap.xml") == [shard.path for shard in report.shards]


@pytest.mark.parametrize("by", ["cat", "@host"])
def test_an_edit_touches_one_stable_shard(out: Path, schema, by: str) -> None:
    pick = random.Random(5)
    rows = [(f"https://{pick.choice('abc')}.example/{n}", f"v{n % 4}/x") for n in range(2_000)]
    options = {"split_by": by, "layout": "stable", "max_urls": 60, "hosts": "any"}
    options |= {"split_index": "each", "duplicates": "drop"}

    def run(rows: list[tuple[str, str]]) -> us.Report:
        columns = dict(zip(("loc", "cat"), map(list, zip(*rows, strict=True)), strict=True))
        return build(out, pa.table(columns), schema, **options)

    first = {shard.path for shard in run(rows).shards}
    report = run([*rows[:1_000], ("https://b.example/new", "v1/x"), *rows[1_000:]])
    changed = [shard.path for shard in report.shards if shard.changed]
    assert len(first) > 30 and 1 <= len(changed) <= 2
    # those of the previous build are kept for one more build
    live = {path.relative_to(out).as_posix() for path in out.rglob("*.xml.gz")}
    assert live == first | set(changed) == first | {shard.path for shard in report.shards}
    assert sum(len(read_shard(out / shard.path)) for shard in report.shards) == 2_001
    assert not [shard for shard in run(rows[:1_999]).shards if shard.path not in live][2:]


@pytest.mark.parametrize("layout", ["packed", "stable"])
@pytest.mark.parametrize("by", ["cat", "@host"])
def test_the_change_feed_of_a_split_set(tmp_path: Path, out: Path, layout: str, by: str) -> None:
    """Rows are added, removed, changed, and moved between values, which does not change the URL."""
    pick = random.Random(layout + by)
    options: dict[str, Any] = {"split_by": by, "layout": layout, "max_urls": 20, "hosts": "any"}
    options |= {"duplicates": "drop", "max_shrink": "100%", "changes": tmp_path / "c.csv"}
    live: dict[str, str] = {}
    rows: dict[str, tuple[str, str]] = {}
    for _ in range(4):
        for _ in range(150):
            url = f"https://{pick.choice('abc')}.example/{pick.randrange(300)}"
            if pick.random() < 0.3:
                rows.pop(url, None)
            else:
                rows[url] = (f"2026-01-{pick.randrange(1, 28):02}", f"v{pick.randrange(5)}")
        table = pa.table({
            "loc": list(rows), "lastmod": [row[0] for row in rows.values()],
            "cat": [row[1] for row in rows.values()],
        })  # fmt: skip
        us.build(table, site=SITE, out=out, **options)
        now = {url: row[0] for url, row in rows.items()}
        wanted = {("added", url) for url in now.keys() - live.keys()}
        wanted |= {("removed", url) for url in live.keys() - now.keys()}
        both = now.keys() & live.keys()
        wanted |= {("changed", url) for url in both if now[url] != live[url]}
        with (tmp_path / "c.csv").open(newline="") as file:
            found = [(row["change"], row["loc"]) for row in csv.DictReader(file)]
        assert len(found) == len(wanted) and set(found) == wanted
        live = now


def test_hosts(out: Path, schema) -> None:
    rows = [
        f"https://{host}/{n}"
        for n in range(30)
        for host in ("a.example", "B.example", "münster.de", "a.example:8080")
    ]
    options = {"split_by": "@host", "hosts": "any", "max_urls": 20, "site": "https://a.example"}
    report = build(out, pa.table({"loc": rows}), schema, **options)
    hosts = ["a.example", "b.example", "xn--mnster-3ya.de"]
    assert [i.url for i in report.indexes[:3]] == [f"https://{host}/sitemap.xml" for host in hosts]
    assert report.indexes[3].url == "https://a.example:8080/sitemap.xml"
    for number, host in enumerate([*hosts, "a.example:8080"]):
        folder = (out / report.indexes[number].path).parent
        assert folder.parent == out and (number == 3 or folder.name == host)
        entries = read_index(folder / "sitemap.xml")
        assert [e["loc"] for e in entries] == [
            f"https://{host}/sitemap-{n:05}.xml.gz" for n in (1, 2)
        ]
        found = [
            url["loc"].lower() for path in sorted(folder.glob("*.gz")) for url in read_shard(path)
        ]
        assert found == [f"https://{host}/{n}" for n in range(30)]
    manifest = json.loads((out / ".urlset/manifest.json").read_text())
    assert manifest["sitemap_url"] == "https://{host}/"
    assert {shard["host"] for shard in manifest["shards"]} == {*hosts, "a.example:8080"}


def test_hosts_with_a_folder_of_their_own_and_rows_of_each_language(out: Path, schema) -> None:
    table = pa.table({"loc": ["https://de.example/s/1"], "fr": ["https://fr.example/s/1"]})
    options = {"site": "https://de.example", "hosts": "fr.example", "split_by": "@host"}
    alternates = {"alternate": {"fr": "fr"}, "lang": "de", "alternate_rows": True}
    report = build(out, table, schema, sitemap_url="https://{host}/s", **options, **alternates)
    assert [index.url for index in report.indexes] == [
        "https://de.example/s/sitemap.xml", "https://fr.example/s/sitemap.xml",
    ]  # fmt: skip
    assert read_index(out / "fr.example/sitemap.xml") == [
        {"loc": "https://fr.example/s/sitemap-00001.xml.gz"}
    ]
    assert not [w for w in report.warnings if w.code == "loc.outside_folder"]


def test_options_that_do_not_fit(out: Path) -> None:
    table = pa.table({"loc": ["/a"]})
    for options in (
        {"sitemap_url": "https://{host}/"},
        {"split_by": "@host", "add_sitemap": ["https://a.example/s.xml"]},
    ):
        with pytest.raises(us.ConfigError, match=r"@host|each host"):
            us.build(table, site=SITE, out=out, **options)


MEASURE = """
import os, re, sys, threading, time
import pyarrow as pa
import urlset
most = 0
def watch():
    global most
    while True:
        most = max(most, len(os.listdir("/proc/self/fd")))
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
def batches():
    for start in range(0, 1_500_000, 10_000):
        yield pa.record_batch({
            "loc": [f"/{'x' * 120}-{n}" for n in range(start, start + 10_000)],
            "cat": [f"v{n * 7919 % 10_000}" for n in range(start, start + 10_000)],
        })
schema = pa.schema([("loc", pa.string()), ("cat", pa.string())])
reader = pa.RecordBatchReader.from_batches(schema, batches())
options = {"split_by": "cat", "layout": sys.argv[3]}
report = urlset.build(reader, site=sys.argv[1], out=sys.argv[2], **options)
assert (report.urls, len(report.shards)) == (1_500_000, 10_000)
# of this process only; ru_maxrss survives exec and would be that of pytest
print(most, re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_ten_thousand_values_in_any_order(out: Path, layout: str) -> None:
    command = [sys.executable, "-c", MEASURE, SITE, str(out), layout]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    files, kilobytes = map(int, done.stdout.split())
    print(f"{layout}: {files} open files, {kilobytes / 1024:.0f} MiB")
    assert files <= 200 and kilobytes <= 512 * 1024
    (path,) = out.glob("sitemap-v1-*")
    assert len(read_shard(path)) == 150
