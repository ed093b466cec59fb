"""``build --exclude``: URLs that are left out, in any spelling and from any format."""

from __future__ import annotations

import csv
import gzip
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urlset as package
from conftest import SITE, read_set, urlset

LOCS = [f"{SITE}/p/{number}?a=1&b={number}" for number in range(2_000)]


def catalog(path: Path, locs: list[str]) -> Path:
    path.write_text("loc,stock\n" + "".join(f'"{loc}",1\n' for loc in locs))
    return path


def drop_list(path: Path, locs: list[str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("loc", "reason"), *((loc, "gone") for loc in locs)])
    return path


def build(
    tmp_path: Path, exclude: Path | str, *options: object
) -> tuple[dict[str, Any], list[str]]:
    """The report, and the URLs of the set."""
    report, out = tmp_path / "report.json", tmp_path / "out"
    source = catalog(tmp_path / "in.csv", LOCS)
    ended = urlset("build", source, "--site", SITE, "--out", out, "--json", report, "--exclude",
                   exclude, "--quiet", *options)  # fmt: skip
    assert ended.status == 0, ended.err
    return json.loads(report.read_text()), [entry["loc"] for entry in read_set(out)]


def write_csv(path: Path, locs: list[str]) -> Path:
    return drop_list(path.with_suffix(".csv"), locs)


def write_gzip(path: Path, locs: list[str]) -> Path:
    plain = drop_list(path.with_suffix(".csv"), locs)
    packed = path.with_suffix(".csv.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    return packed


def write_parquet(path: Path, locs: list[str]) -> Path:
    pq.write_table(pa.table({"reason": [None] * len(locs), "loc": locs}), path)
    return path


@pytest.mark.parametrize("write", [write_csv, write_gzip, write_parquet])
@pytest.mark.parametrize(
    "options", [(), ("--duplicates", "drop"), ("--sort", "--layout", "stable")]
)
def test_the_urls_of_the_list_are_left_out_and_counted(
    tmp_path: Path, write: Any, options: tuple[str, ...]
) -> None:
    dropped = random.Random(1).sample(LOCS, 700)
    exclude = write(
        tmp_path / "drop.parquet", [*dropped, f"{SITE}/not-listed", "http://b.example/"]
    )
    report, urls = build(tmp_path, exclude, *options)
    kept = [loc for loc in LOCS if loc not in set(dropped)]
    assert sorted(urls) == sorted(kept)
    assert (report["rows"], report["urls"], report["filtered"]) == (2_000, 1_300, 700)
    [note] = [one for one in report["warnings"] if one["code"] == "loc.excluded"]
    assert note["count"] == 700


def test_spellings_of_a_url(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text(f"loc\n{SITE}/ä b\n/relative\n{SITE}/x?a=1&b=2\n{SITE}/keep\n{SITE}/A\n")
    exclude = drop_list(
        tmp_path / "drop.csv",
        [f"{SITE}/%C3%A4%20b", f"{SITE}/relative", f" {SITE}/x?a=1&b=2 ", f"{SITE}/a"],
    )
    report = package.build(source, site=SITE, out=tmp_path / "out", exclude=exclude)
    assert report.filtered == 3
    urls = [entry["loc"] for entry in read_set(tmp_path / "out")]
    assert urls == [f"{SITE}/keep", f"{SITE}/A"]


def test_a_text_sitemap(tmp_path: Path) -> None:
    exclude = drop_list(tmp_path / "drop.csv", LOCS[:5])
    source = catalog(tmp_path / "in.csv", LOCS)
    out = tmp_path / "out"
    report = package.build(source, site=SITE, out=out, exclude=exclude, output="text", gzip=False)
    text = b"".join(path.read_bytes() for path in out.glob("*.txt")).decode()
    assert text.split() == LOCS[5:]
    assert report.filtered == 5


def test_alternates_that_become_rows(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text(f"loc,de\n{SITE}/en/1,{SITE}/de/1\n{SITE}/en/2,{SITE}/de/2\n")
    exclude = drop_list(tmp_path / "drop.csv", [f"{SITE}/en/1", f"{SITE}/de/2"])
    report = package.build(
        source, site=SITE, out=tmp_path / "out", exclude=exclude, alternate={"de": "de"},
        lang="en", alternate_rows=True,
    )  # fmt: skip
    urls = [entry["loc"] for entry in read_set(tmp_path / "out")]
    assert urls == [f"{SITE}/de/1", f"{SITE}/en/2"]
    assert (report.rows, report.expanded, report.urls, report.filtered) == (2, 2, 2, 2)


def test_a_job_with_parts_takes_the_list_along(tmp_path: Path) -> None:
    exclude = drop_list(tmp_path / "drop.csv", LOCS[:10])
    job = package.Job(site=SITE, out=tmp_path / "out", exclude=exclude)
    exclude.unlink()
    job = pickle.loads(pickle.dumps(job))
    parts = [job.write(pa.table({"loc": part})) for part in (LOCS[:1_000], LOCS[1_000:])]
    report = job.commit(parts)
    assert (report.urls, report.filtered) == (1_990, 10)


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (None, 3, "No such file"),
        (b"url,reason\nhttps://a.de/,x\n", 2, "there is no column"),
        (b"loc,reason\nhttps://a.de/,x\nnot a url,x\n", 3, "row 2"),
        (b'loc,reason\n"https://a.de/,x\n', 3, "drop.csv"),
        (b"PAR1 is not Parquet", 3, "drop.csv"),
        (b"", 3, "drop.csv"),
    ],
)
def test_a_list_that_cannot_be_used(
    tmp_path: Path, content: bytes | None, status: int, words: str
) -> None:
    exclude = tmp_path / "drop.csv"
    if content is not None:
        exclude.write_bytes(content)
    source = catalog(tmp_path / "in.csv", LOCS[:10])
    out = tmp_path / "out"
    ended = urlset("build", source, "--site", SITE, "--out", out, "--exclude", exclude)
    assert ended.status == status, ended.err
    [line] = ended.err.splitlines()
    assert "exclude: " in line
    assert words in line
    assert not out.exists()


def test_an_output_cannot_replace_the_list(tmp_path: Path) -> None:
    exclude = drop_list(tmp_path / "drop.csv", LOCS[:1])
    source = catalog(tmp_path / "in.csv", LOCS[:10])
    ended = urlset("build", source, "--site", SITE, "--out", tmp_path / "out", "--exclude",
                   exclude, "--rejects", exclude)  # fmt: skip
    assert ended.status == 2, ended.err
    assert exclude.read_text().startswith("loc,reason")


def test_a_list_without_rows_leaves_nothing_out(tmp_path: Path) -> None:
    report, urls = build(tmp_path, drop_list(tmp_path / "drop.csv", []))
    assert urls == LOCS
    assert report["filtered"] == 0
