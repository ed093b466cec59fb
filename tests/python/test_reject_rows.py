"""Every rejected row is in the reject file, in the order of the input, for any sets."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import SITE, Ended, urlset

#: rows of each set: a letter is a valid row, anything else is rejected unchanged
Sets = list[list[str]]

FORMS: dict[str, Sets] = {
    "the first has only rejected rows": [[f"x:{n}" for n in range(5)], ["a", "x:5", "x:6", "x:7"]],
    "all but the last": [[f"x:{n}-{m}" for m in range(3)] for n in range(14)] + [["a"]],
    "every second has none": [["a"] if n % 2 else [f"x:{n}", "a"] for n in range(23)],
    "several shards": [[*"abcdefgh", f"x:{n}"] for n in range(13)],
    "cells of several lines": [["x:\n1\n", "a", 'x:"\n",\n"'], ["x:,\n\n", "b"], ["x:\r\n2"]],
}  # fmt: skip


def write_job(folder: Path, sets: Sets, ending: str, more: str = "") -> None:
    """A ``urlset.toml`` with a set for each list of cells."""
    lines = [f'site = "{SITE}"', 'out = "out"', "max-urls = 3", 'max-rejects = "100%"']
    lines += [f'rejects = "kept.{ending}"', more]
    for number, cells in enumerate(sets):
        with (folder / f"in-{number}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["url"])
            writer.writerows([f"{SITE}/{cell}" if len(cell) == 1 else cell] for cell in cells)
        lines += ["[[set]]", f'name = "s{number}"', f'input = "in-{number}.csv"']
    (folder / "urlset.toml").write_text("\n".join(lines))


def kept(folder: Path, ending: str) -> list[dict[str, object]]:
    path = folder / f"kept.{ending}"
    if ending == "parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    return [{**row, "input": Path(str(row["input"])).name, "row": int(row["row"])} for row in rows]


def build(folder: Path, *args: str) -> tuple[Ended, dict[str, object]]:
    ended = urlset("build", "--json", "-", *args, cwd=folder)
    return ended, json.loads(ended.out)


def wanted(sets: Sets) -> list[tuple[str, int, str]]:
    """File, row and value of each reject; bytes that are not text are escaped."""
    return [
        (f"in-{number}.csv", row, cell.replace("\r", "\\x0d"))
        for number, cells in enumerate(sets)
        for row, cell in enumerate(cells, 1)
        if len(cell) > 1
    ]


def told(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(row["input"], row["row"], row["value"]) for row in rows]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("form", FORMS)
def test_every_reject_is_kept_in_its_order(tmp_path: Path, form: str, ending: str) -> None:
    sets = FORMS[form]
    write_job(tmp_path, sets, ending)
    ended, report = build(tmp_path)
    assert (ended.status, ended.err) == (0, "")
    rows = kept(tmp_path, ending)
    assert [value[:2] for value in told(rows)] == [value[:2] for value in wanted(sets)]
    assert [row["value"] for row in rows] == [value for *_, value in wanted(sets)]
    assert report["rejected"] == len(rows)
    assert sum(report["rejects"]["by_code"].values()) == len(rows)
    assert not list((tmp_path / "out/.urlset").glob("*.new"))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_build_that_fails_keeps_what_was_rejected(tmp_path: Path, ending: str) -> None:
    """The count is that of the file, also of the set that failed."""
    sets = [["x:1", "x:2", "a"], ["x:3", "b"], ["x:4", "c"]]
    write_job(tmp_path, sets, ending)
    with (tmp_path / "in-1.csv").open("a") as file:
        file.write('"never closed\n')
    ended, report = build(tmp_path)
    assert ended.status == 3 and report["error"]["code"] == "csv.unclosed_quote"
    rows = kept(tmp_path, ending)
    assert told(rows) == wanted(sets[:2])
    assert report["rejected"] == 3 == sum(report["rejects"]["by_code"].values())


def test_too_many_rejects_of_several_sets(tmp_path: Path) -> None:
    sets = [["x:1", "x:2"], ["a", "x:3"], ["x:4"]]
    write_job(tmp_path, sets, "csv")
    text = (tmp_path / "urlset.toml").read_text()
    (tmp_path / "urlset.toml").write_text(text.replace('"100%"', "3"))
    ended, report = build(tmp_path)
    assert ended.status == 1 and report["error"]["code"] == "rejects.limit"
    assert told(kept(tmp_path, "csv")) == wanted(sets)
    assert report["rejected"] == 4


def test_one_bad_row_under_fail(tmp_path: Path) -> None:
    """The message contains the row that ends the build; the file those of the sets before."""
    sets = [["a", "b"], ["c", "x:1"]]
    write_job(tmp_path, sets, "csv", 'on-invalid = "fail"')
    ended, report = build(tmp_path)
    assert ended.status == 1 and "in-1.csv: row 2" in ended.err
    assert report["rejected"] == 0 and not (tmp_path / "kept.csv").exists()


def test_a_reject_file_that_lost_rows_is_found(tmp_path: Path) -> None:
    """The file is counted after its parts were joined: here a part loses its last row."""
    from urlset import PublishError
    from urlset.build import rejects

    part = tmp_path / "part.new"
    rows = '"in","1","url",loc.scheme,"no\nscheme","x:"\n' * 3
    part.write_text("input,row,column,code,message,value\n" + rows)
    counts = rejects.join_rejects([part], tmp_path / "kept.csv").counts
    assert counts == {"loc.scheme": 3}
    rejects.check_rejects(counts, {"loc.scheme": 3})
    with pytest.raises(PublishError) as lost:
        rejects.check_rejects(counts, {"loc.scheme": 4})
    assert lost.value.code == "rejects.lost" and lost.value.exit_status == 3


def test_the_message_names_the_reject_file(tmp_path: Path) -> None:
    source = tmp_path / "c.csv"
    source.write_text(f"url\n{SITE}/1\nx:\n")
    args = ("build", source, "--site", SITE, "--out", tmp_path / "out")
    for more, path in (((), tmp_path / "out/.urlset/rejects.csv"),
                       (("--rejects", tmp_path / "r.csv"), tmp_path / "r.csv")):  # fmt: skip
        ended = urlset(*args, *more)
        assert ended.status == 1 and "[rejects.limit]" in ended.err
        assert ended.err.count("\n") == 1 and f"the reject file is {path}" in ended.err
        assert len(path.read_text().splitlines()) == 2
