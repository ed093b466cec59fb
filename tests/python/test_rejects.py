"""Every row has one outcome, and the reject file agrees with the report."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urlset as package
from conftest import SITE, read_set, urlset
from urlset import DataError, RejectLimitError, Report


def build(urls: list[str], out: Path, **options: object) -> Report:
    path = out.parent / "c.csv"
    path.write_text("url\n" + "".join(f"{url}\n" for url in urls))
    options = {"max_rejects": "100%", "max_shrink": "100%"} | options
    return package.build(path, site=SITE, out=out, **options)


def rejects(out: Path) -> list[dict[str, str]]:
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("duplicates", ["keep", "drop"])
def test_the_sum_of_fates(out: Path, seed: int, duplicates: str) -> None:
    """Against a plain model of the outcome of each row."""
    rng = random.Random(seed)
    path = out.parent / "c.csv"
    lines, written, seen = ["url,stock"], [], set()
    wanted = {"filtered": 0, "rejected": 0, "duplicates": 0}
    for _ in range(20_000):
        kind, i = rng.random(), rng.randrange(8_000)
        stock = rng.choice(["yes", "yes", "no"])
        url = f"{SITE}/{i}" if kind > 0.1 else rng.choice(["", "ftp://a.b/", "https://x.example/"])
        ragged = kind > 0.97
        lines.append(f"{url},{stock}" + (",more" if ragged else ""))
        if ragged:
            wanted["rejected"] += 1
        elif stock == "no":
            wanted["filtered"] += 1
        elif kind <= 0.1:
            wanted["rejected"] += 1
        elif duplicates == "drop" and url in seen:
            wanted["duplicates"] += 1
        else:
            seen.add(url)
            written.append(url)
    path.write_text("\n".join(lines))
    report = package.build(
        path, site=SITE, out=out, where=["stock=yes"], duplicates=duplicates,
        max_rejects="100%", max_urls=999, threads=3,
    )  # fmt: skip
    assert {key: getattr(report, key) for key in wanted} == wanted
    assert report.rows == 20_000 == report.urls + sum(wanted.values())
    assert [entry["loc"] for entry in read_set(out)] == written
    assert len(rejects(out)) == wanted["rejected"] == sum(report.rejects["by_code"].values())


def test_max_rejects_at_its_edge(out: Path) -> None:
    def outcome(bad: int, rows: int, limit: str | int) -> bool:
        urls = ["x:" if i < bad else f"{SITE}/{i}" for i in range(rows)]
        try:
            build(urls, out, max_rejects=limit)
        except RejectLimitError as error:
            assert error.code == "rejects.limit" and error.exit_status == 1
            assert f"{bad} of " in str(error) and "loc.scheme" in str(error)
            assert len(rejects(out)) == bad
            return False
        return True

    for rows, percent in ((100, 29), (100, 7), (1000, 57), (300, 1), (100, 99)):
        at = rows * percent // 100
        assert outcome(at, rows, f"{percent}%"), (rows, percent)
        assert not outcome(at + 1, rows, f"{percent}%"), (rows, percent)
    assert outcome(0, 10, "0%") and not outcome(1, 10, "0%")
    assert outcome(3, 10, 3) and outcome(3, 10, "3") and not outcome(4, 10, "3")
    assert outcome(0, 10, 0) and not outcome(1, 10, 0)
    assert outcome(3, 200, "1.5%") and not outcome(4, 200, "1.5%")


def test_the_message_shows_the_share_as_it_was_given(out: Path) -> None:
    # the first of them contains what to do
    first = r"the first is .*: row \d+: the URL is neither http nor https; write"
    with pytest.raises(RejectLimitError, match=rf"more than 29% .*{first}"):
        build(["x:"] * 30 + [f"{SITE}/{i}" for i in range(70)], out, max_rejects="29%")


@pytest.mark.parametrize("wrong", ["101%", "-1", "x", "", "1 in 3", "1e3%", "nan%", -1])
def test_a_limit_that_is_none(out: Path, wrong: object) -> None:
    with pytest.raises(package.ConfigError):
        build([f"{SITE}/1"], out, max_rejects=wrong)


def test_all_rows_rejected(out: Path) -> None:
    build([f"{SITE}/1"], out)
    before = {path: path.read_bytes() for path in out.glob("*.xml*")}
    with pytest.raises(DataError) as info:
        build(["x:", "y:"], out)
    assert info.value.code == "rows.none"
    assert {path: path.read_bytes() for path in out.glob("*.xml*")} == before


def test_on_invalid_fail_names_the_first_row(out: Path) -> None:
    urls = [f"{SITE}/{i}" for i in range(40_000)]
    urls[30_000], urls[35_000] = "x:\x1b[2J", "y:"
    path = out.parent / "c.csv"
    path.write_text("url\n" + "\n".join(urls))
    args = ("build", path, "--site", SITE, "--out", out, "--on-invalid", "fail")
    for threads in (1, 2, 7):
        ended = urlset(*args, "--threads", threads)
        assert ended.status == 1
        assert "row 30001:" in ended.err and "\x1b" not in ended.err
        assert ended.err.count("\n") == 1
    assert not list(out.glob("*.xml*"))


HOSTILE = [
    'a"b', '"', '""', "a,b;c\td", "line\nbreak", "cr\rlf\r\n", "\x1b[31mred\x1b[0m", "nul\0",
    "\x7f\x85\x9b", "=cmd|' /C calc'!A0", "ü🛒\u202e", "x" * 5000, "\\x41", "<b>&amp;",
]  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_hostile_values_in_the_reject_file(out: Path, tmp_path: Path, ending: str) -> None:
    target = tmp_path / "deep" / f"r.{ending}"
    table = pa.table({"url\n\x1b": [f"x:{value}" for value in HOSTILE] + [f"{SITE}/1"]})
    report = package.build(
        table, site=SITE, out=out, loc="url\n\x1b", max_rejects="100%", rejects=target
    )
    assert report.rejects["path"] == str(target) and not (out / ".urlset/rejects.csv").exists()
    if ending == "csv":
        with target.open(newline="") as file:
            found = list(csv.DictReader(file))
        raw = target.read_bytes()
        assert not any(byte in raw for byte in (0x1B, 0x00, 0x0D, 0x7F))
    else:
        found = pq.read_table(target).to_pylist()
        assert pq.read_schema(target).field("row").type == pa.int64()
    assert [int(row["row"]) for row in found] == list(range(1, len(HOSTILE) + 1))
    for row, value in zip(found, HOSTILE, strict=True):
        shown = row["value"]
        assert not any(c in shown for c in "\x1b\0\r\x7f\x85\x9b")
        if value.isprintable() or value == "line\nbreak":
            assert f"x:{value}"[:4096] == shown
        assert row["code"] in ("loc.scheme", "loc.control")
    assert not list((out / ".urlset").glob("*.new"))


def test_rejects_of_a_former_build_do_not_stay(out: Path) -> None:
    build(["x:", f"{SITE}/1"], out)
    assert len(rejects(out)) == 1
    report = build([f"{SITE}/1"], out)
    assert not (out / ".urlset/rejects.csv").exists() and report.rejects["path"] is None


def test_a_reject_file_that_cannot_be_written(out: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path / "file/x.csv", tmp_path):
        ended = _build_cli(out, tmp_path, "--rejects", target)
        assert (ended.status, ended.err.count("\n")) == (3, 1), ended
        assert not list(out.glob("*.xml*"))


def _build_cli(out: Path, tmp_path: Path, *args: object):
    path = tmp_path / "c.csv"
    path.write_text(f"url\nx:\n{SITE}/1\n")
    return urlset("build", path, "--site", SITE, "--out", out, "--max-rejects", 1, *args)


def test_duplicates_across_blocks_and_inputs(out: Path, tmp_path: Path) -> None:
    paths = []
    for part in range(3):
        path = tmp_path / f"{part}.csv"
        rows = [f"{SITE}/{i}?&{'x' * (i % 90)}" for i in range(part * 5_000, part * 5_000 + 15_000)]
        path.write_text("url\n" + "\n".join([*rows, rows[7]]))
        paths.append(path)
    report = package.build(paths, site=SITE, out=out, duplicates="drop")
    assert (report.rows, report.urls, report.duplicates) == (45_003, 25_000, 20_003)
    found = [entry["loc"] for entry in read_set(out)]
    assert found == [f"{SITE}/{i}?&{'x' * (i % 90)}" for i in range(25_000)]
    report = package.build(paths, site=SITE, out=out)
    assert (report.urls, report.duplicates) == (45_003, 0)
    for threads in (1, 7):
        with pytest.raises(DataError, match=r"0\.csv: row 15001: ") as info:
            package.build(paths, site=SITE, out=out, duplicates="fail", threads=threads)
        assert info.value.code == "duplicates.found"
    assert package.build(paths[0], site=SITE, out=out, duplicates="drop", max_shrink="100%").urls


def test_duplicates_compare_what_is_written(out: Path) -> None:
    urls = ["/a b", f"{SITE}/a%20b", f" {SITE}/a b ", f"{SITE}/a%20B", "/x/../a%20b"]
    assert build(urls, out, duplicates="drop").duplicates == 3


def test_where(out: Path, tmp_path: Path) -> None:
    table = pa.table(
        {
            "url": [f"{SITE}/{i}" for i in range(4)],
            "text": ["yes", "no", None, "a=b"],
            "flag": [True, False, None, True],
            "count": [1, 0, None, -5],
            "big": pa.array([2**64 - 1, 0, None, 7], pa.uint64()),
            "share": [0.5, 1.0, None, 1e20],
            "price": pa.array([150, 0, None, -5], pa.int64()).cast(pa.decimal128(20, 0)),
            "cents": pa.array(["1.50", "0.00", None, "-5.05"]).cast(pa.decimal128(20, 2)),
            "day": pa.array(["2024-01-01", "2024-01-02", None, "1969-01-01"]).cast(pa.date32()),
        }
    )  # fmt: skip
    pq.write_table(table, tmp_path / "c.parquet")

    def kept(*conditions: str) -> list[int]:
        results = []
        for source in (table, tmp_path / "c.parquet"):
            report = package.build(
                source, site=SITE, out=out, where=[*conditions], max_shrink="100%"
            )
            assert report.filtered == 4 - report.urls
            results.append([int(e["loc"][-1]) for e in read_set(out)])
        assert results[0] == results[1]
        return results[0]

    for condition, rows in {
        "text=yes": [0], "text!=yes": [1, 2, 3], "text=": [2], "text!=": [0, 1, 3], "text=a=b": [3],
        " text = yes ": [0], "flag=true": [0, 3], "flag=1": [0, 3], "flag=False": [1],
        "flag!=true": [1, 2], "flag=": [2], "count=1": [0], "count=-5": [3], "count!=0": [0, 2, 3],
        "count=": [2], "big=18446744073709551615": [0], "share=0.5": [0], "share=.50": [0],
        "share=1": [1], "share=100000000000000000000": [3], "price=150": [0], "price=150.0": [0],
        "cents=1.5": [0], "cents=1.50": [0], "cents=0": [1], "cents=-5.05": [3],
        "cents!=01.5": [1, 2, 3],
        "day=2024-01-02": [1], "day!=": [0, 1, 3],
    }.items():  # fmt: skip
        assert kept(condition) == rows, condition
    assert kept("text!=no", "flag!=") == [0, 3]
    for wrong in ("text", "=x", "!=x", "", "nope=1"):
        with pytest.raises(package.ConfigError) as info:
            kept(wrong)
        assert "\n" not in str(info.value)


def test_all_rows_filtered(out: Path) -> None:
    with pytest.raises(DataError) as info:
        build([f"{SITE}/1"], out, where=["url=x"])
    assert info.value.code == "rows.none" and "1 filtered" in str(info.value)
