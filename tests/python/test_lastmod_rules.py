"""The rules of ``--lastmod-from``: equal values, lists of columns, damage, what is refused."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urlset
from conftest import SITE, read_set
from conftest import urlset as command
from lastmod_builds import ONE, THREE, TWO, build, stamps, table, times, written
from urlset.errors import ConfigError, DataError

pytestmark = pytest.mark.long

#: texts of CSV that are equal, and one that is not
TEXTS = [
    (("1", "1.0", "1.00"), "1.01"),
    (("1.5", "1.50", "1.500000"), "1.05"),
    (("0", "-0", "0.0", "-0.00"), "0.01"),
    (("-3", "-3.0"), "3"),
    (("19.99", "19.989999771118164"), "19.98"),
    (("0.1", "0.10000000149011612"), "0.1000000015"),
    (("100000000000000000000", "1e+20", "1E20", "1.0E20"), "100000000000000000001"),
    (("0.0000001", "1e-07", "1.0E-7"), "0.0000002"),
    (("12345678.5", "1.23456785E7"), "12345678.6"),
    (("12345678901234567890.10", "12345678901234567890.1"), "12345678901234567890.2"),
    (("16777217", "16777217.0"), "16777216"),
    (("true", "True", "TRUE"), "false"),
    (("2026-01-02", "2026-01-02 00:00:00", "2026-01-02T00:00:00.000Z"), "2026-01-03"),
    (("2026-01-02T05:00:00+02:00", "2026-01-02 03:00:00", "2026-01-02T03:00Z"),
     "2026-01-02T05:00:00Z"),
    (("", "NaN", "nan"), "0"),
    (("007",), "7"),
    (("1e5",), "100000"),
    (("+7",), "7"),
    ((" 7",), "7"),
    ((".5",), "0.5"),
    (("5.",), "5"),
    (("1,5",), "1.5"),
    (("0x10",), "16"),
    (("yes",), "true"),
    (("A",), "a"),
    (("999999999999999.98",), "999999999999999.99"),
    (("2026-13-02",), "2026-12-02"),
    (("-",), ""),
    (("1.2.3",), "1.2"),
    (("12-34-56",), "12"),
]  # fmt: skip


def test_texts_that_are_equal_and_texts_that_are_not(tmp_path: Path) -> None:
    out = tmp_path / "out"
    rows = [(f"/{at}", equal[0]) for at, (equal, _) in enumerate(TEXTS)]
    build(written(tmp_path, rows, "loc", "value"), out, ONE)
    for turn in range(1, 4):
        rows = [(f"/{at}", equal[turn % len(equal)]) for at, (equal, _) in enumerate(TEXTS)]
        found = build(written(tmp_path, rows, "loc", "value"), out, TWO)
        assert [loc for loc, time in times(out).items() if time] == []
        assert (found["kept"], found["changed"]) == (len(TEXTS), 0)
    rows = [(f"/{at}", other) for at, (_, other) in enumerate(TEXTS)]
    found = build(written(tmp_path, rows, "loc", "value"), out, THREE)
    assert [loc for loc, time in times(out).items() if time != THREE] == []
    assert found["changed"] == len(TEXTS)


UTC_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
#: arrays of types, and the texts of the same values in CSV
TYPED: list[tuple[pa.Array, list[str]]] = [
    *((pa.array([0, 1, 100], kind), ["0", "1", "100.0"])
      for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64())),
    (pa.array([-(2**63), 2**63 - 1]), ["-9223372036854775808", "9223372036854775807"]),
    (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
    (pa.array([1.0, 19.99, -0.0, 1 / 3, 1e16, 1e-9, None, float("nan")]),
     ["1", "19.990", "0", repr(1 / 3), "1e+16", "1e-09", "", ""]),
    (pa.array([1.0, 19.99, 0.1, 123456.789, None], pa.float32()),
     ["1.0", "19.99", "0.1", "123456.79", ""]),
    (pa.array([1.0, 19.99, 0.1, 123456.789], pa.float32()).cast(pa.float64()),
     ["1", "19.99", "0.10", "123456.79"]),
    (pa.array([0.5, 2.0], pa.float16()), ["0.5", "2"]),
    (pa.array([Decimal("1.50"), Decimal("-7.00"), None], pa.decimal128(9, 2)), ["1.5", "-7", ""]),
    (pa.array([Decimal("1234567.8900")], pa.decimal128(20, 4)), ["1234567.89"]),
    (pa.array([Decimal("1000000000000000000000000000000.500")], pa.decimal128(38, 3)),
     ["1000000000000000000000000000000.5"]),
    (pa.array([True, False, None]), ["true", "False", ""]),
    (pa.array([date(2026, 1, 2), None]), ["2026-01-02", ""]),
    (pa.array([date(2026, 1, 2)], pa.date64()), ["2026-01-02 00:00:00"]),
    *((pa.array([UTC_TIME], pa.timestamp(unit, zone)), ["2026-01-02 03:04:05"])
      for unit in ("s", "ms", "us", "ns") for zone in ("UTC", "America/New_York")),
    (pa.array([UTC_TIME.replace(tzinfo=None)], pa.timestamp("ns")), ["2026-01-02T03:04:05Z"]),
    (pa.array(["a", "007", "", None, "1.50"], pa.large_string()), ["a", "007", "", "", "1.5"]),
    (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    (pa.array(["a longer text, in a view"], pa.string_view()), ["a longer text, in a view"]),
    (pa.nulls(2), ["", ""]),
]  # fmt: skip


@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: str(typed[0].type))
def test_types_are_equal_to_their_text(tmp_path: Path, typed: tuple[pa.Array, list[str]]) -> None:
    array, texts = typed
    out = tmp_path / "out"
    locs = [f"{SITE}/{at}" for at in range(len(texts))]
    build(written(tmp_path, zip(locs, texts, strict=True), "loc", "value"), out, ONE)
    found = build(pa.table({"value": array, "loc": locs}), out, TWO)
    assert found["kept"] == len(texts), times(out)


def test_lists_and_structs_are_compared(tmp_path: Path) -> None:
    out = tmp_path / "out"
    values: list[Any] = [{"a": [1, 2], "b": "x"}, {"a": [], "b": None}, {"a": None, "b": "x"}]
    build(table(zip(("/1", "/2", "/3"), values, strict=True)), out, ONE)
    values[1:] = [{"a": [None], "b": None}, {"a": None, "b": "y"}]
    build(table(zip(("/1", "/2", "/3"), values, strict=True)), out, TWO)
    assert times(out) == {"/1": None, "/2": TWO, "/3": TWO}


@pytest.mark.parametrize("parts", [([["a", "b"]], [["ab"]]), ([["a"], ["b"]], [["a", "b"]])])
def test_no_two_lists_run_together(tmp_path: Path, parts: tuple[Any, Any]) -> None:
    for at, value in enumerate(parts):
        kind = pa.list_(pa.list_(pa.string()))
        build(table([("/1", value)], kind), tmp_path / "out", (ONE, TWO)[at])
    assert times(tmp_path / "out") == {"/1": TWO}


def test_all_columns_but_those_of_loc_and_lastmod(tmp_path: Path) -> None:
    out, names = tmp_path / "out", ("loc", "updated_at", "a", "b", "stock")
    options = {"lastmod_from": "*", "lastmod_ignore": ["stock"]}
    build(written(tmp_path, [("/1", "2026-01-01", 1, 2, 3), ("/2", "", 1, 2, 3)], *names), out, ONE,
          **options)  # fmt: skip
    rows = [(f"{SITE}/1", "2026-05-05", 1, 2, 9), ("/2", "", 1, 3, 9)]
    found = build(written(tmp_path, rows, *names), out, TWO, **options)
    assert times(out) == {"/1": "2026-01-01", "/2": TWO}
    # a further column is another list: nothing is compared, and nothing changes
    rows = [("/1", "", 1, 5, 9, 7), ("/2", "", 1, 3, 9, 7)]
    report = urlset.build(
        written(tmp_path, rows, *names, "more"), site=SITE, out=out, now=THREE, **options
    )
    assert times(out) == {"/1": "2026-01-01", "/2": TWO}
    assert report.lastmod is not None and report.lastmod["adopted"] == 2
    assert [(w.code, w.count) for w in report.warnings] == [("lastmod.columns", 2)]
    found = build(written(tmp_path, rows, *names, "more"), out, THREE, **options)
    assert (found["kept"], found["adopted"]) == (2, 0)
    with pytest.raises(ConfigError, match=r"lastmod-ignore: there is no column .stok."):
        build(table([("/1", 1)]), out, THREE, lastmod_from="*", lastmod_ignore="stok")


def test_a_clock_that_went_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for value, now in ((1, ONE), (2, THREE)):
        build(table([("/1", value), ("/2", 0)]), out, now)
    report = urlset.build(
        table([("/1", 3), ("/2", 1)]), site=SITE, out=out, lastmod_from="value", now=TWO
    )
    assert times(out) == {"/1": THREE, "/2": TWO}
    assert [(w.code, w.count) for w in report.warnings] == [("lastmod.clock", 1)]


def test_many_rows_in_any_order(tmp_path: Path) -> None:
    """The order changes, so that the stamps are read into memory; threads make their index."""
    out, pick = tmp_path / "out", random.Random(1)
    values = {f"/{at}": at % 7 for at in range(70_000)}
    build(table(values.items()), out, ONE)
    changed = {loc: value + 1 for loc, value in pick.sample(sorted(values.items()), 500)}
    rows = [*(values | changed).items(), *((f"/new/{at}", at) for at in range(300))]
    gone = {loc for loc, _ in pick.sample(rows[:70_000], 400)}
    rows = [row for row in rows if row[0] not in gone]
    for threads in (1, 4):
        copy = tmp_path / str(threads)
        shutil.copytree(out, copy)
        pick.shuffle(rows)
        found = build(table(rows), copy, TWO, threads=threads)
        wanted = {loc: TWO if loc in changed or "new" in loc else None for loc, _ in rows}
        assert times(copy) == wanted
        assert (found["gone"], found["added"]) == (400, 300)
        assert stamps(copy).stat().st_size <= 18 * len(rows) + 26 * 400 + 64
        assert found["bytes"] == stamps(copy).stat().st_size


def test_only_urls_that_are_written_are_stamped(tmp_path: Path) -> None:
    """A row that is rejected or filtered is gone, and keeps its time when it comes back."""
    out, names = tmp_path / "out", ("loc", "value", "kind")
    options = {"where": "kind=a", "max_rejects": "100%", "duplicates": "drop"}
    good = [("/1", 1, "a"), ("/2", 2, "a"), ("/3", 3, "a")]
    build(written(tmp_path, good, *names), out, ONE, **options)
    rows = [("/1", 1, "a"), ("/1", 7, "a"), ("/2", 2, "b"), ("https://other.example/3", 3, "a")]
    found = build(written(tmp_path, rows, *names), out, TWO, **options)
    assert (found["kept"], found["gone"], found["added"]) == (1, 2, 0)
    found = build(written(tmp_path, good, *names), out, THREE, **options)
    assert (found["kept"], found["gone"]) == (3, 0)
    assert times(out) == {"/1": None, "/2": None, "/3": None}


def test_rows_that_become_several_urls(tmp_path: Path) -> None:
    out, names = tmp_path / "out", ("loc", "de", "fr", "value", "changed")
    options = {"alternate": ["de=de", "fr=fr"], "lang": "en", "alternate_rows": True,
               "lastmod": "changed"}  # fmt: skip
    build(written(tmp_path, [("/1", "/de/1", "", 1, "2026-01-01")], *names), out, ONE, **options)
    assert times(out) == {"/1": "2026-01-01", "/de/1": "2026-01-01"}
    rows = [("/1", "/de/1", "/fr/1", 1, "2026-02-02"), ("/2", "/de/2", "", 1, "")]
    found = build(written(tmp_path, rows, *names), out, TWO, **options)
    wanted = {"/1": "2026-01-01", "/de/1": "2026-01-01", "/fr/1": "2026-02-02"}
    assert times(out) == {**wanted, "/2": TWO, "/de/2": TWO}
    assert (found["kept"], found["added"]) == (2, 3)
    rows = [("/1", "/de/1", "/fr/1", 2, ""), ("/2", "/de/2", "", 1, "")]
    found = build(written(tmp_path, rows, *names), out, THREE, **options)
    assert times(out) == {**dict.fromkeys(wanted, THREE), "/2": TWO, "/de/2": TWO}


def test_groups_sorting_and_sets_of_a_column(tmp_path: Path) -> None:
    """The stamps are in the order of the input, whatever the order of the sitemaps is."""
    names = ("loc", "group", "lang", "value")
    rows = [(f"/{9 - at}", at // 2, "en" if at % 2 else "de", at) for at in range(8)]
    other = [(*row[:3], row[3] + (row[3] == 5)) for row in rows]
    for options in (
        {"alternate_group": "group", "lang_column": "lang"}, {"sort": True}, {"split_by": "lang"},
    ):  # fmt: skip
        out = tmp_path / next(iter(options))
        build(written(tmp_path, rows, *names), out, ONE, **options)
        found = build(written(tmp_path, other, *names), out, TWO, **options)
        assert times(out) == {row[0]: TWO if row[3] == 5 else None for row in rows}
        assert (found["kept"], found["changed"], found["gone"]) == (7, 1, 0)


def test_what_does_not_publish_does_not_advance(tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(table([(f"/{at}", 1) for at in range(10)]), out, ONE)
    before = stamps(out), stamps(out).read_bytes()
    changed = table([(f"/{at}", 2) for at in range(10)])
    build(changed, out, TWO, dry_run=True)
    with pytest.raises(DataError, match="instead of the 10"):
        build(changed.slice(0, 2), out, TWO, max_shrink="20%")
    broken = written(tmp_path, [("/1", 2), ("x", 2)], "loc", "value")
    with pytest.raises(urlset.RejectLimitError):
        build(broken, out, TWO)
    assert (stamps(out), stamps(out).read_bytes()) == before
    build(changed, out, THREE)
    assert set(times(out).values()) == {THREE}
    before = stamps(out), stamps(out).stat().st_mtime_ns
    build(changed, out, "2026-11-25T00:00:00Z")  # nothing changed: no file is written
    assert (stamps(out), stamps(out).stat().st_mtime_ns) == before


def test_a_build_without_the_option_keeps_the_stamps(tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(table([("/1", 1), ("/2", 1)]), out, ONE)
    report = urlset.build(table([("/1", 2), ("/2", 1)]), site=SITE, out=out)
    assert report.lastmod is None and "lastmod" not in report.to_dict()
    build(table([("/1", 2), ("/2", 1)]), out, TWO)
    assert times(out) == {"/1": TWO, "/2": None}


def test_sets_of_several_names_have_their_own_stamps(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for now, value in ((ONE, 1), (TWO, 2)):
        build(table([("/a", value)]), out, now, name="a")
        build(table([("/b", 1)]), out, now, name="sitemap")
        build(table([("/c", 1)]), out, now, name="c")
    assert len(list((out / ".urlset").rglob("lastmod-*"))) == 3
    assert [entry.get("lastmod") for entry in read_set(out, "a.xml")] == [TWO]
    assert times(out) == {"/b": None}


def test_what_is_refused(tmp_path: Path) -> None:
    out, source = tmp_path / "out", table([("/1", 1)])
    for options, code in (
        ({"lastmod_from": "*,value"}, "config.lastmod_from"),
        ({"lastmod_from": " , "}, "config.lastmod_from"),
        ({"lastmod_from": "nothing"}, "column.missing"),
        ({"output": "text"}, "config.text"),
        ({"lastmod_ignore": "value"}, "config.lastmod_ignore"),
        ({"lastmod_from": (), "lastmod_restart": True}, "config.lastmod_restart"),
        ({"forget": "90"}, "config.forget"),
        ({"forget": "-1d"}, "config.forget"),
        ({"now": "2026-11-22"}, "config.now"),
        ({"now": "2026-11-22T03:00:00"}, "config.now"),
        ({"now": "2026-02-30T03:00:00Z"}, "config.now"),
        ({"now": "0000-01-01T00:00:00Z"}, "config.now"),
    ):
        options = {"lastmod_from": "value", **options}
        with pytest.raises(ConfigError) as caught:
            urlset.build(source, site=SITE, out=out, **options)
        assert caught.value.code == code, options
    with pytest.raises(ConfigError, match=r"lastmod_from: not in a job with several parts"):
        urlset.Job(site=SITE, out=out, lastmod_from="value")
    config = tmp_path / "urlset.toml"
    config.write_text(
        f"""site = "{SITE}"\nout = "{out}"\nlastmod_from = ["value"]\n[[set]]\nname = "a"\n"""
        f"""input = "{written(tmp_path, [("/1", 1)], "loc", "value")}"\n"""
    )
    with pytest.raises(ConfigError, match=r"lastmod_from: not with \[\[set\]\] tables"):
        urlset.build(config=config)
    assert not (out / "sitemap.xml").exists()


def test_the_summary_and_the_report(tmp_path: Path) -> None:
    out, names = tmp_path / "out", ("loc", "value", "updated_at")
    catalog = written(tmp_path, [("/1", 1, "2026-01-01"), ("/2", 1, "")], *names)
    arguments = ("build", catalog, "--site", SITE, "--out", out, "--lastmod-from", "value")
    ended = command(*arguments)
    assert "lastmod from content: first build, nothing to compare; 2 URLs, 1 with the lastmod of"\
        " their row, 1 without lastmod\n" in ended.out  # fmt: skip
    written(tmp_path, [("/1", 2, "2026-01-01"), ("/3", 1, "")], *names)
    ended = command(*arguments, "--now", "2026-11-22T05:00:00.5+02:00", "--json", tmp_path / "r")
    assert "1 changed, 0 unchanged, 1 new, 1 gone and remembered\n" in ended.out
    report = json.loads((tmp_path / "r").read_bytes())
    assert times(out) == {"/1": "2026-11-22T03:00:00Z", "/3": "2026-11-22T03:00:00Z"}
    assert report["lastmod"] == {
        "first": False, "kept": 0, "changed": 1, "added": 1, "adopted": 0, "clock_behind": 0,
        "without": 0, "gone": 1, "forgotten": 0, "bytes": stamps(out).stat().st_size,
    }  # fmt: skip
    before = datetime.now(UTC).replace(microsecond=0)
    written(tmp_path, [("/1", 3, ""), ("/3", 1, "")], *names)
    assert command(*arguments).status == 0
    found = times(out)["/1"]
    assert found is not None and before <= datetime.fromisoformat(found) <= datetime.now(UTC)


def test_other_columns_without_values_are_not_the_same_content(tmp_path: Path) -> None:
    out, names = tmp_path / "out", ("loc", "value", "other")
    options = {"duplicates": "keep"}
    build(written(tmp_path, [("/1", 1, ""), ("/1", "", "")], *names), out, ONE, **options)
    build(written(tmp_path, [("/1", 2, ""), ("/1", "", "")], *names), out, TWO, **options)
    rows = [(f"{SITE}/1", 2, ""), (f"{SITE}/1", "", "")]
    options["lastmod_from"] = "other"
    found = build(written(tmp_path, rows, *names), out, THREE, **options)
    assert found["adopted"] == 2
    assert [entry.get("lastmod") for entry in read_set(out)] == [TWO, TWO]
