"""``sort``: rows in the order of loc; rows that do not fit into memory go to the disk."""

from __future__ import annotations

import contextlib
import csv
import json
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urlset as us
from conftest import SITE, files, read_bytes, read_index, read_set, read_shard, urlset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from urlset.options import Options

pytestmark = pytest.mark.long

Row = tuple[str, str]  # loc and lastmod

#: bytes that are sorted in memory: one run per batch, several runs, one run
SMALL = [0, 3_000, 64 << 20]


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch):
    """Sets the size of the rows that are sorted in memory, and makes batches small."""
    plain = Options.core_json

    def set_to(size: int) -> None:
        def core_json(self: Options) -> dict[str, Any]:
            return plain(self) | {"sort_bytes": size, "batch_bytes": 512}

        monkeypatch.setattr(Options, "core_json", core_json)

    return set_to


def write_catalog(path: Path, rows: list[Row]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("loc", "lastmod"), *rows])
    return path


def listed(out: Path) -> list[Row]:
    return [(entry["loc"], entry.get("lastmod", "")) for entry in read_set(out)]


def catalog(rows: int, seed: int = 1, distinct: bool = True) -> list[Row]:
    pick = random.Random(seed)
    numbers = pick.sample(range(10**6), rows) if distinct else pick.choices(range(rows), k=rows)
    days = (f"2026-01-{pick.randrange(1, 29):02}" for _ in numbers)
    stems = ("p/", "p", "a%20b/", "x&y=", "it's/")
    return [(f"{SITE}/{stems[n % 5]}{n}", day) for n, day in zip(numbers, days, strict=True)]


paths = st.text(alphabet="ab/&'!~-.9", max_size=40).map(lambda text: f"{SITE}/x{text}")
lastmods = st.sampled_from(["", "2026-01-01", "2026-02-03T04:05:06Z"])


@settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    rows=st.lists(st.tuples(paths, lastmods), min_size=1, max_size=150),
    size=st.sampled_from(SMALL),
    layout=st.sampled_from(["packed", "stable"]),
    gzip=st.booleans(),
)
def test_as_sorted_does_it(tmp_path_factory, memory, rows, size, layout, gzip) -> None:
    folder = tmp_path_factory.mktemp("sort")
    source = write_catalog(folder / "c.csv", rows)
    memory(size)
    options = {"site": SITE, "layout": layout, "gzip": gzip, "max_urls": 10}
    us.build(source, out=folder / "unsorted", **options)
    written = listed(folder / "unsorted")  # dot segments, for example, are resolved
    us.build(source, out=folder / "out", sort=True, **options)
    # Python's sort keeps the order of equals too
    assert listed(folder / "out") == sorted(written, key=lambda row: row[0])
    assert not list((folder / "out/.urlset").glob("*.new"))


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("layout", ["packed", "stable"])
@pytest.mark.parametrize("gzip", [True, False])
def test_the_order_of_the_input_does_not_matter(
    tmp_path: Path, memory, size: int, layout: str, gzip: bool
) -> None:
    rows = catalog(3_000)
    options = {"site": SITE, "layout": layout, "gzip": gzip, "max_urls": 200, "max_bytes": 20_000}
    in_order = sorted(rows, key=lambda row: row[0])
    us.build(write_catalog(tmp_path / "order.csv", in_order), out=tmp_path / "wanted", **options)
    memory(size)
    wanted = files(tmp_path / "wanted")
    assert len(wanted) > 15
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        out = tmp_path / f"out{seed}"
        us.build(write_catalog(tmp_path / "c.csv", rows), out=out, sort=True, **options)
        assert files(out) == wanted
    columns = {"loc": [loc for loc, _ in rows], "lastmod": [day for _, day in rows]}
    pq.write_table(pa.table(columns), tmp_path / "c.parquet", row_group_size=500)
    for number, source in enumerate((tmp_path / "c.parquet", pa.table(columns))):
        us.build(source, out=tmp_path / f"arrow{number}", sort=True, **options)
        assert files(tmp_path / f"arrow{number}") == wanted


@pytest.mark.parametrize("size", SMALL)
def test_all_else_stays(tmp_path: Path, memory, size: int) -> None:
    """Rejects keep their rows, and of duplicates the first of the input stays."""
    memory(size)
    rows = catalog(2_000, 5, distinct=False)
    for at in (0, 700, 1_999):
        rows[at] = ("https://other.example/", "")
    source = write_catalog(tmp_path / "c.csv", rows)
    options: dict[str, Any] = {
        "site": SITE, "duplicates": "drop", "where": ["lastmod!=2026-01-05"], "max_urls": 100,
    }  # fmt: skip
    reports, rejects, sets = [], [], []
    for sort in (False, True):
        out = tmp_path / str(sort)
        reports.append(us.build(source, out=out, sort=sort, **options))
        rejects.append((out / ".urlset/rejects.csv").read_bytes())
        sets.append(listed(out))
    plain, ordered = reports
    assert rejects[0] == rejects[1]
    assert [row["row"] for row in csv.DictReader(rejects[0].decode().splitlines())] == [
        "1", "701", "2000",
    ]  # fmt: skip
    assert sets[1] == sorted(sets[0]) != sets[0]
    for field in ("rows", "urls", "rejected", "filtered", "duplicates"):
        assert getattr(plain, field) == getattr(ordered, field) > 0
    with pytest.raises(us.DataError, match=r"row \d+: its URL occurred before") as told:
        us.build(source, out=tmp_path / "f", sort=True, **(options | {"duplicates": "fail"}))
    with pytest.raises(us.DataError) as untold:
        us.build(source, out=tmp_path / "f", **(options | {"duplicates": "fail"}))
    assert str(told.value) == str(untold.value)


@pytest.mark.parametrize("size", SMALL)
def test_each_value_is_sorted_by_itself(tmp_path: Path, out: Path, memory, size: int) -> None:
    memory(size)
    rows = catalog(2_000)
    table = pa.table({
        "loc": [loc for loc, _ in rows], "shelf": [f"v{int(day[-2:]) % 3}" for _, day in rows],
    })  # fmt: skip
    us.build(table, site=SITE, out=out, sort=True, split_by="shelf", max_urls=100)
    found: dict[str, list[str]] = {}
    for sitemap in read_index(out / "sitemap.xml"):
        name = sitemap["loc"].removeprefix(f"{SITE}/sitemap-").split("-")[0]
        path = out / sitemap["loc"].removeprefix(f"{SITE}/")
        found.setdefault(name, []).extend(entry["loc"] for entry in read_shard(path))
    wanted: dict[str, list[str]] = {}
    for loc, shelf in sorted(zip(*table.to_pydict().values(), strict=True)):
        wanted.setdefault(shelf, []).append(loc)
    assert found == wanted


@pytest.mark.parametrize("size", SMALL)
def test_families_stay_whole(out: Path, tmp_path: Path, memory, size: int) -> None:
    """Groups of languages are complete before their rows are sorted."""
    memory(size)
    names = random.Random(2).sample(range(1_000), 300)
    table = pa.table({
        "loc": [f"{SITE}/{lang}/{n}" for n in names for lang in ("fr", "de")],
        "product": [n for n in names for _ in range(2)],
        "lang": ["fr", "de"] * 300,
    })  # fmt: skip
    options = {"site": SITE, "alternate_group": "product", "lang_column": "lang", "gzip": False}
    us.build(table, out=out, sort=True, **options)
    us.build(table, out=tmp_path / "plain", **options)

    def elements(folder: Path) -> list[bytes]:
        text = read_bytes(folder / "sitemap-00001.xml")
        return text.split(b"<url>")[1:-1]  # the footer follows the last one

    assert listed(out) == sorted(listed(tmp_path / "plain"))
    assert len(set(elements(out)) - set(elements(tmp_path / "plain"))) <= 1
    assert all(element.count(b"hreflang") == 2 for element in elements(out))


def test_text_and_empty(tmp_path: Path, out: Path, memory) -> None:
    memory(0)
    rows = catalog(500)
    source = write_catalog(tmp_path / "c.csv", rows)
    us.build(source, site=SITE, out=out, sort=True, output="text", gzip=False)
    lines = (out / "sitemap-00001.txt").read_text().splitlines()
    assert lines == sorted(loc for loc, _ in rows)
    with pytest.raises(us.DataError, match="there are no rows"):
        us.build(write_catalog(tmp_path / "c.csv", []), site=SITE, out=out, sort=True)


def test_everywhere_an_option(tmp_path: Path) -> None:
    rows = [(f"{SITE}/{n}", "") for n in (3, 1, 2)]
    write_catalog(tmp_path / "c.csv", rows)
    (tmp_path / "urlset.toml").write_text(
        f'site = "{SITE}"\nsort = true\nout = "toml"\ninput = "c.csv"\n'
    )
    assert urlset("build", cwd=tmp_path).status == 0
    command = ("build", "c.csv", "--site", SITE, "--sort")
    assert urlset(*command, "--out", "cli", cwd=tmp_path).status == 0
    for name in ("toml", "cli"):
        assert listed(tmp_path / name) == sorted(rows)
    ended = urlset(*command, "--out", "dry", "--dry-run", "--json", "-", cwd=tmp_path)
    assert json.loads(ended.out)["urls"] == 3
    assert not list((tmp_path / "dry").glob("*.xml*"))


#: a build whose sort spills every batch to the disk
DRIVER = """
import sys
from urlset.options import Options
plain = Options.core_json
Options.core_json = lambda self: plain(self) | {"sort_bytes": 100_000, "batch_bytes": 5_000}
from urlset.cli import main
main(sys.argv[1:])
"""


def large(tmp_path: Path, rows: int = 60_000) -> Path:
    return write_catalog(tmp_path / "large.csv", catalog(rows))


def no_leftovers(out: Path) -> None:
    names = {path.name for path in out.iterdir()} if out.exists() else set()
    assert names <= {".urlset"}
    assert {path.name for path in (out / ".urlset").glob("*")} <= {"lock"}


def sorts(process: subprocess.Popen[bytes]) -> bool:
    """Whether a build has its temporary file open."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if "sort.new" in str(entry.readlink()):
                    return True
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_stopped_while_it_sorts(tmp_path: Path, out: Path) -> None:
    source = large(tmp_path)
    command = [
        sys.executable, "-c", DRIVER, "build", "-", "--site", SITE, "--out", str(out),
        "--sort", "--quiet",
    ]  # fmt: skip
    rows = source.read_bytes()
    for wait in (0.0, 0.02, 0.05, 0.1):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(rows)  # and it continues: there is time to stop it
        process.stdin.flush()
        while process.poll() is None and not sorts(process):
            time.sleep(0.001)
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        status, error = process.wait(60), process.stderr.read()
        process.stdin.close()
        process.stderr.close()
        assert (status, error.count(b"\n")) == (130, 1), error
        assert not list(out.glob("*.xml*"))
        if b"nothing was published" in error:  # otherwise a busy machine left no time to clean up
            no_leftovers(out)
    assert subprocess.run(command, input=rows).returncode == 0
    assert {path.name for path in (out / ".urlset").iterdir()} == {"lock", "manifest.json"}


def test_a_disk_that_is_full(tmp_path: Path, out: Path) -> None:
    """The limit of a file is smaller than the data to sort: one line has it, no file is left."""
    source = large(tmp_path)

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = subprocess.run(
        [sys.executable, "-c", DRIVER, "build", source, "--site", SITE, "--out", out, "--sort"],
        capture_output=True, text=True, preexec_fn=limit, timeout=60,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1 and "sort.new: File too large" in done.stderr
    assert "[output.unwritable]" in done.stderr
    no_leftovers(out)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    try:
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, "build", source, "--site", SITE, "--out", disk / "out",
             "--sort"],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 3, done.stderr
        assert done.stderr.count("\n") == 1 and "[output.disk_full]" in done.stderr
        no_leftovers(disk / "out")
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
def test_memory_is_bounded(tmp_path: Path, out: Path) -> None:
    """3 M rows, half a gigabyte of XML, against a tenth of it: at most 160 MiB more."""
    peaks = []
    for rows in (300_000, 3_000_000):
        numbers = [n * 7_919_993 % rows for n in range(rows)]
        source = tmp_path / "c.csv"
        with source.open("w") as file:
            file.write("url\n")
            file.writelines(f"{SITE}/{'x' * 100}/{n:09}\n" for n in numbers)
        told = tmp_path / "report.json"
        assert urlset("build", source, "--site", SITE, "--out", out, "--sort", "--json", told,
                      "--quiet").status == 0  # fmt: skip
        report = json.loads(told.read_text())
        assert report["urls"] == rows
        peaks.append(report["peak_rss"])
    assert peaks[1] <= peaks[0] + (160 << 20)
    first = read_bytes(out / "sitemap-00001.xml.gz").count(b"<loc>")
    assert first == 50_000
