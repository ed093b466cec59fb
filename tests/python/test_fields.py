"""lastmod, changefreq, priority: forms, zones, constants, policies."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest
import urlset as package
from conftest import SITE, read_index, read_set
from urlset import ConfigError, Report


def build(column: str, values: list[str | None], out: Path, **options: object) -> Report:
    """From CSV, the input with text only."""
    path = out.parent / "c.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["url", column])
        writer.writerows([f"{SITE}/{i}", value] for i, value in enumerate(values))
    options = {"max_rejects": "100%", "max_shrink": "100%"} | options
    return package.build(path, site=SITE, out=out, **options)


def written(column: str, values: list[str | None], out: Path, **options: object) -> list[str]:
    build(column, values, out, **options)
    return [entry.get(column, "") for entry in read_set(out)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2024-02-29", "2024-02-29"), ("2024-02-29T10:20:30Z", "2024-02-29T10:20:30Z"),
        ("2024-02-29 10:20:30", "2024-02-29T10:20:30Z"),
        ("2024-02-29T10:20", "2024-02-29T10:20:00Z"),
        ("2024-02-29T10:20+02:00", "2024-02-29T08:20:00Z"),
        ("2024-02-29 10:20:30.999999999+00:00", "2024-02-29T10:20:30Z"),
        ("2024-01-01T00:30:00+02:00", "2023-12-31T22:30:00Z"),
        ("2023-12-31T23:30:00-02:00", "2024-01-01T01:30:00Z"),
        (" 2024-02-29 ", "2024-02-29"), ("", ""), ("   ", ""),
        ("2024", ""), ("2024-02", ""), ("2023-02-29", ""), ("2024-02-30", ""), ("2024-13-01", ""),
        ("0000-00-00", ""), ("0000-00-00 00:00:00", ""), ("2024-04-31", ""), ("2024-00-10", ""),
        ("2024-02-29T25:00:00Z", ""), ("2024-02-29T10:60:00Z", ""), ("yesterday", ""),
        ("2024-02-29T10:20:30+99:00", ""), ("29.02.2024", ""), ("1700000000", ""),
        ("10000-01-01", ""), ("-2024-01-01", ""), ("2024-02-29 10:20:30 Europe/Berlin", ""),
        ("2024-02-29\n", "2024-02-29"), ("\uff12\uff10\uff12\uff14-01-01", ""), ("2024-02-29T", ""),
    ],
)  # fmt: skip
def test_lastmod(text: str, wanted: str, out: Path, schema) -> None:
    assert written("lastmod", [text, "2020-01-01"], out) == [wanted, "2020-01-01"]
    schema(out / "sitemap-00001.xml.gz")


def test_zones(out: Path) -> None:
    def zoned(text: str, zone: str) -> str:
        return written("lastmod", [text], out, timezone=zone)[0]

    assert zoned("2024-07-01 12:00:00", "Europe/Berlin") == "2024-07-01T10:00:00Z"
    assert zoned("2024-01-01 12:00:00", "Europe/Berlin") == "2024-01-01T11:00:00Z"
    assert zoned("2024-01-01 12:00:00Z", "Europe/Berlin") == "2024-01-01T12:00:00Z"
    assert zoned("2024-01-01", "Asia/Tokyo") == "2024-01-01"
    # the hours that a change of the clock skips or repeats still result in a time
    assert zoned("2024-03-31 02:30:00", "Europe/Berlin").startswith("2024-03-31T0")
    assert zoned("2024-10-27 02:30:00", "Europe/Berlin").startswith("2024-10-27T0")
    for wrong in ("Europe/Berlim", "../../etc/passwd", "", "+02:00x"):
        with pytest.raises(ConfigError) as info:
            zoned("2024-01-01", wrong)
        assert info.value.code == "config.timezone"


def test_changefreq(out: Path, schema) -> None:
    seven = ["always", "hourly", "daily", "weekly", "monthly", "yearly", "never"]
    assert written("changefreq", [*seven, "", "often", "1"], out) == [*seven, "", "", ""]
    assert written("changefreq", ["Daily", " weekly ", "NEVER"], out) == [
        "daily",
        "weekly",
        "never",
    ]
    schema(out / "sitemap-00001.xml.gz")


def test_priority(out: Path, schema) -> None:
    values = {
        "0": "0.0", "1": "1.0", "0.5": "0.5", ".5": "0.5", "1.": "1.0", "0.25": "0.3",
        "0.05": "0.1", "0.04999": "0.0",
        "0.95": "1.0", "1.0000": "1.0", "+0.5": None, "1.01": "", "-0.1": "",
        "1.00000000000000001": "", "nan": "", "inf": "", "high": "", "0,5": "", "": "", "0x1": "",
        "\u0660.\u0665": "", "0.5.5": "", "--1": "",
    }  # fmt: skip
    found = written("priority", list(values), out)
    for (text, wanted), got in zip(values.items(), found, strict=True):
        assert wanted is None or got == wanted, text
    schema(out / "sitemap-00001.xml.gz")


def test_constants(out: Path) -> None:
    build("x", ["1", "2"], out, changefreq="=daily", priority="=0.55", lastmod="=2024-01-01 10:00")
    assert read_set(out)[1] == {
        "loc": f"{SITE}/1", "lastmod": "2024-01-01T10:00:00Z", "changefreq": "daily",
        "priority": "0.6",
    }  # fmt: skip
    for field, wrong in (("changefreq", "=often"), ("priority", "=2"), ("lastmod", "=2024")):
        with pytest.raises(ConfigError) as info:
            build("x", ["1"], out, **{field: wrong})
        assert info.value.code == "config.constant"
    with pytest.raises(ConfigError):
        build("x", ["1"], out, loc=f"={SITE}/x")


def test_a_senseless_field_is_left_out_or_rejects_its_row(out: Path) -> None:
    values = ["2024", "2024-01-01", "0000-00-00", ""]
    report = build("lastmod", values, out)
    assert (report.urls, report.rejected) == (4, 0)
    assert [(w.code, w.count) for w in report.warnings] == [("lastmod.invalid", 2)]
    report = build("lastmod", values, out, on_bad_field="reject")
    assert (report.urls, report.rejected) == (2, 2)
    assert [w.code for w in report.warnings] == ["manifest.config"]  # other options than before
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        found = [(r["row"], r["column"], r["code"], r["value"]) for r in csv.DictReader(file)]
    assert found == [
        ("1", "lastmod", "lastmod.invalid", "2024"),
        ("3", "lastmod", "lastmod.invalid", "0000-00-00"),
    ]  # fmt: skip
    for column, value in (("changefreq", "often"), ("priority", "7")):
        report = build(column, [value, ""], out, on_bad_field="reject")
        assert report.rejects["by_code"] == {f"{column}.invalid": 1}


def test_what_is_noted_of_a_row_that_is_rejected_does_not_count(out: Path) -> None:
    path = out.parent / "c.csv"
    path.write_text(f"url,priority\n{SITE}/{'x' * 1100},9\n{SITE}/a,1\n")
    options = {"site": SITE, "out": out, "max_rejects": 1, "on_bad_field": "reject"}
    found = package.build(path, **options).warnings
    assert [warning.code for warning in found] == ["priority.ignored"]


def test_fields_are_found_by_name_and_say_so(out: Path) -> None:
    table = pa.table({"Link": [f"{SITE}/1"], "Updated_At": ["2024-01-01"], "Priority": ["1"]})
    report = package.build(table, site=SITE, out=out)
    assert report.mapping == {"loc": "Link", "lastmod": "Updated_At", "priority": "Priority"}
    with pytest.raises(ConfigError, match="lastmod") as info:
        package.build(table.append_column("lastmod", [["x"]]), site=SITE, out=out)
    assert info.value.code == "column.ambiguous" and "--lastmod" in str(info.value)
    with pytest.raises(ConfigError, match=r"there is no column \"nope\"") as info:
        package.build(table, site=SITE, out=out, lastmod="nope")
    assert info.value.code == "column.missing"


def test_the_lastmod_of_the_index_is_the_newest_of_its_shard(out: Path) -> None:
    values = [
        "2024-01-01", "2024-01-01T00:00:00Z",  # a date counts as its midnight UTC
        "2024-01-02", "2024-01-01T23:59:59Z",
        "2024-01-02T01:00:00+02:00", "2024-01-01T22:59:59Z",
        "", "1969-01-01",
        "", "2024",
    ]  # fmt: skip
    build("lastmod", list(values), out, max_urls=2)
    assert [entry.get("lastmod") for entry in read_index(out / "sitemap.xml")] == [
        "2024-01-01T00:00:00Z", "2024-01-02", "2024-01-01T23:00:00Z", "1969-01-01", None,
    ]  # fmt: skip
