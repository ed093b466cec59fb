"""The benches: catalogs are as documented, and an incomplete contestant is detected."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
# its scripts import each other by name
sys.path.append(str(BENCHES))

pytest.importorskip("numpy", reason="the catalog generator needs numpy")

import catalog
import chart
import check
import common
import edits
import nightly
import publish
import report

pytestmark = pytest.mark.long

igzip_lib = pytest.importorskip("isal.igzip_lib", reason="the ratio is that of ISA-L, level 1")

NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def generate(out: Path, *options: str) -> Path:
    script = [sys.executable, str(BENCHES / "catalog.py"), "--out", str(out), *options]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


@pytest.fixture(scope="module")
def ten_thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("catalog") / "c.csv", "--rows", "10k")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_same_seed_same_bytes_on_any_number_of_threads(tmp_path: Path, suffix: str) -> None:
    # three chunks, the last of them short
    digests = set()
    for number, threads in enumerate((1, 3)):
        path = tmp_path / f"{number}.{suffix}"
        catalog.write(path, 2 * catalog.CHUNK + 7, catalog.Shape(seed=5), threads)
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1
    other = tmp_path / f"other.{suffix}"
    catalog.write(other, 2 * catalog.CHUNK + 7, catalog.Shape(seed=6))
    assert hashlib.sha256(other.read_bytes()).hexdigest() not in digests


def test_a_shorter_catalog_begins_a_longer_one(tmp_path: Path, ten_thousand: Path) -> None:
    longer = generate(tmp_path / "longer.csv", "--rows", str(catalog.CHUNK + 10))
    short, long = ten_thousand.read_bytes(), longer.read_bytes()
    assert long.startswith(short)
    assert long.count(b"\n") == catalog.CHUNK + 11


@pytest.mark.parametrize(
    "options",
    [[], ["--wide", "--images", "2", "--alternates", "3"], ["--duplicates", "2000"]],
    ids=["default", "wide", "duplicates"],
)
def test_csv_and_parquet_hold_the_same_rows(tmp_path: Path, options: list[str]) -> None:
    rows = read_csv(generate(tmp_path / "c.csv", "--rows", "10_000", *options))
    table = pq.read_table(generate(tmp_path / "c.parquet", "--rows", "10_000", *options))
    assert list(rows[0]) == table.column_names
    assert len(rows) == table.num_rows == 10_000
    for text, typed in zip(rows, table.to_pylist(), strict=True):
        for name, value in typed.items():
            assert _as_typed(text[name], value) == value


def _as_typed(text: str, like: Any) -> Any:
    if isinstance(like, datetime):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
        return datetime.fromisoformat(text)
    return type(like)(text)


def test_shape_of_the_rows(tmp_path: Path) -> None:
    path = generate(tmp_path / "c.csv", "--rows", "100k")
    rows = read_csv(path)
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    assert 182 <= path.stat().st_size / len(rows) <= 190
    assert 0.017 <= sum('"' in line for line in lines) / len(lines) <= 0.023
    assert 0.05 <= sum("&" in row["url"] for row in rows) / len(rows) <= 0.12
    assert len({row["url"] for row in rows}) == len({row["id"] for row in rows}) == len(rows)
    assert {row["priority"] for row in rows} == {"1.0", *(f"0.{tenth}" for tenth in range(10))}
    assert all(re.fullmatch(r"https://www\.shop\.example/[\x21-\x7e]+", r["url"]) for r in rows)


def test_duplicates_repeat_urls_of_the_first_chunk(tmp_path: Path) -> None:
    many = 3 * catalog.CHUNK
    path = generate(tmp_path / "c.csv", "--rows", str(many), "--duplicates", "10000")
    urls = [row["url"] for row in read_csv(path)]
    first = set(urls[: catalog.CHUNK])
    assert len(first) == catalog.CHUNK
    repeats = [url for url in urls[catalog.CHUNK :] if url in first]
    assert 0.09 <= len(repeats) / (many - catalog.CHUNK) <= 0.11
    assert check.distinct_urls(path) == len(set(urls))


def test_the_sitemaps_compress_as_real_ones_do(tmp_path: Path, ten_thousand: Path) -> None:
    path = generate(tmp_path / "c.csv", "--rows", "50k")
    out = stdlib(path, tmp_path / "out", "--plain")
    (shard,) = check.shards(out)
    data = shard.read_bytes()
    assert 180 <= len(data) / 50_000 <= 188
    ratio = len(data) / len(igzip_lib.compress(data, 1, igzip_lib.COMP_GZIP))
    assert 4.1 <= ratio <= 4.6


@pytest.mark.parametrize("text", ["0", "-1", "501M", "2G", "", "1.5", "nan", "1e99M"])
def test_rows_are_bounded(text: str, tmp_path: Path) -> None:
    out = tmp_path / "c.csv"
    script = [sys.executable, str(BENCHES / "catalog.py"), f"--rows={text}", "--out", str(out)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_another_ending_is_refused(tmp_path: Path) -> None:
    script = [sys.executable, str(BENCHES / "catalog.py"), "--rows", "1", "--out"]
    done = subprocess.run([*script, str(tmp_path / "c.txt")], capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1
    assert not list(tmp_path.iterdir())


def stdlib(source: Path, out: Path, *options: str) -> Path:
    out.mkdir()
    peer = BENCHES / "peers" / "stdlib.py"
    subprocess.run([sys.executable, str(peer), str(source), str(out), *options], check=True)
    return out


def test_the_check_passes_a_whole_job_and_finds_a_lesser_one(
    tmp_path: Path, ten_thousand: Path
) -> None:
    want = check.expected(ten_thousand)
    urls = [row["url"] for row in read_csv(ten_thousand)]
    assert (want.urls, want.first, want.last) == (10_000, urls[0], urls[-1])
    out = stdlib(ten_thousand, tmp_path / "out")
    (shard,) = check.shards(out)
    assert check.check(out, want) == shard.stat().st_size
    # an independent check of the same file
    tree = ElementTree.fromstring(gzip.decompress(shard.read_bytes()))
    found = [loc.text for loc in tree.iter(f"{NAMESPACE}loc")]
    assert found == urls

    data = gzip.decompress(shard.read_bytes())
    entries = re.findall(rb"<url>.*?</url>\n", data)
    lesser = {
        "9999 URLs": data.replace(entries[5_000], b""),
        "first and last": data.replace(b"<loc>https", b"<loc>http", 1),
        "differ": data.replace(entries[7] + entries[8], entries[8] + entries[7]),
        "<lastmod>": re.sub(rb"<lastmod>[^<]*</lastmod>", b"", data, count=1),
        "<priority>": re.sub(rb"<priority>[^<]*</priority>", b"", data, count=1),
        "not well-formed": data.replace(b"</urlset>", b""),
    }
    for reason, content in lesser.items():
        assert content != data
        shard.write_bytes(gzip.compress(content, 1))
        with pytest.raises(common.BenchError, match=reason):
            check.check(out, want)


def test_too_large_a_shard_is_found(tmp_path: Path) -> None:
    path = generate(tmp_path / "c.csv", "--rows", "50_001")
    out = stdlib(path, tmp_path / "out", "--plain")
    assert len(check.shards(out)) == 2
    check.check(out, check.expected(path))
    first, second = check.shards(out)
    entry = re.findall(rb"<url>.*?</url>\n", second.read_bytes())[0]
    first.write_bytes(first.read_bytes().replace(b"</urlset>", entry + b"</urlset>"))
    second.unlink()
    with pytest.raises(common.BenchError, match="50001 URLs"):
        check.check(out, check.expected(path))


def test_costs_are_those_of_the_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(common, "WORK", tmp_path)
    ballast = bytearray(200 << 20)  # must not count as memory of the child process
    busy = "import time; b = bytearray(64 << 20); e = time.process_time() + 0.3\n"
    busy += "while time.process_time() < e: pass\ntime.sleep(0.3)"
    cost = common.measure([sys.executable, "-S", "-c", busy])
    assert len(ballast) > 0
    assert 64 << 20 < cost.peak_rss < 150 << 20
    assert 0.3 <= cost.cpu < 0.6 <= cost.wall
    with pytest.raises(common.BenchError, match="exit status 3: gone"):
        common.measure([sys.executable, "-c", "print('gone'); raise SystemExit(3)"])
    with pytest.raises(common.BenchError, match="cannot run /no/such/program"):
        common.measure(["/no/such/program"])


def test_the_runner_with_the_standard_library_peer(tmp_path: Path) -> None:
    told = tmp_path / "run.json"
    script = [sys.executable, str(BENCHES / "run.py"), "--rows", "10k", "--repeat", "2"]
    options = ["--only", "stdlib-gz,stdlib-plain", "--json", str(told)]
    done = subprocess.run([*script, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = json.loads(told.read_text())
    assert {result["key"] for result in run["results"]} == {"stdlib-gz", "stdlib-plain"}
    for result in run["results"]:
        assert result["failed"] is None
        assert len(result["runs"]) == 2
        assert result["rows"] == 5_000
        assert result["rows_per_second"] == pytest.approx(5_000 / result["wall"])
        assert result["output_bytes"] > 100_000
    assert str(tmp_path) not in told.read_text()
    assert "| Python standard library, gzip 1 | 5 k |" in done.stdout


def test_the_runner_with_two_of_urlset(tmp_path: Path) -> None:
    own = Path(sys.executable).parent / "urlset"
    if not own.exists():
        pytest.skip("the command urlset is not installed beside this Python")
    busy = tmp_path / "busy"
    busy.write_text(f"""#!{sys.executable}
import sys, time
from urlset.cli import main
end = time.process_time() + ("--out" in sys.argv) * 3
while time.process_time() < end: pass
main()
""")
    busy.chmod(0o755)
    told = tmp_path / "run.json"
    script = [sys.executable, str(BENCHES / "run.py"), "--rows", "1k", "--repeat", "1"]
    options = ["--only", "stdlib-gz,urlset-csv-gz", "--against", str(busy), "--json", str(told)]
    done = subprocess.run([*script, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    keys = [result["key"] for result in json.loads(told.read_text())["results"]]
    assert keys == ["urlset-csv-gz", "urlset-csv-gz-other"]
    (line,) = (
        line for line in done.stdout.splitlines() if line.startswith("| urlset, CSV to gzip")
    )
    least, other, ratio = (float(cell) for cell in line.split("|")[2:5])
    assert other > 3 > least
    assert ratio == pytest.approx(least / other, abs=0.01)


def test_extensions_counts_what_was_written(tmp_path: Path) -> None:
    if not (Path(sys.executable).parent / "urlset").exists():
        pytest.skip("the command urlset is not installed beside this Python")
    told = tmp_path / "extensions.json"
    script = [sys.executable, str(BENCHES / "extensions.py"), "--rows", "2200", "--repeat", "1"]
    done = subprocess.run([*script, "--json", str(told)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = json.loads(told.read_text())
    assert (run["plain"]["rows"], run["extended"]["rows"]) == (2_200, 200)
    for one in ("plain", "extended"):
        assert run[one]["xml"] == run[f"{one}-no-gzip"]["xml"] > 200_000
    rates = [run[one]["xml"] / run[one]["wall"] for one in ("extended", "plain")]
    assert run["share_percent"] == pytest.approx(100 * rates[0] / rates[1])
    assert run["says"] in report.document([run])


def test_the_runner_refuses_an_unknown_contestant() -> None:
    script = [sys.executable, str(BENCHES / "run.py"), "--only", "nobody"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("run: --only: no nobody; there are urlset-csv-gz")
    assert done.stderr.count("\n") == 1


def result(key: str, speed: float, group: str = "peer", **more: Any) -> dict[str, Any]:
    told = {"key": key, "label": f"{key} <&>", "group": group, "gzip": True, "failed": None}
    told |= {"rows": 1_000, "wall": 1_000 / speed, "cpu": 1.0, "peak_rss": 1 << 20}
    return {**told, "rows_per_second": speed, **more}


def test_targets_say_met_and_not_met() -> None:
    results = [
        result("urlset-csv-gz", 4_000_000.0, "urlset"),
        result("igzip", 5_000_000.0, "limit"),
        result("polars-gz", 1_250_000.0),
        result("sitemapjs-gz", 5_000.0),
    ]
    table = report.targets_table([{"bench": "run", "results": results}])
    lines = {line.split(" | ")[0]: line for line in table.splitlines()}
    assert lines["| CSV to gzip, time / `igzip -1`"].endswith("| 1.25 | ≤ 1.5 | ≤ 1 | met | run |")
    assert "| 3.20 x | ≥ 4 x | ≥ 7 x | **not met** | run |" in table
    assert "| 800 x | ≥ 300 x | ≥ 700 x | **moonshot met** | run |" in table
    assert lines["| cost of all checks"].endswith("not measured | checks |")


def test_targets_of_runs_of_several_sizes() -> None:
    def run(rows: int, *results: dict[str, Any]) -> dict[str, Any]:
        return {"bench": "run", "rows": rows, "results": [*results]}

    own, limit = result("urlset-csv-gz", 2.0, "urlset"), result("igzip", 5.0, "limit")
    large = run(10_000_000, own | {"rows_per_second": 4.0}, limit)
    small = run(2_000_000, own, limit, result("polars-gz", 0.4))
    lines = report.targets_table([large, small]).splitlines()
    assert lines[2:5] == [
        "| CSV to gzip, time / `igzip -1`, 2 M rows | 2.50 | ≤ 1.5 | ≤ 1 | **not met** | run |",
        "| CSV to gzip, time / `igzip -1`, 10 M rows | 1.25 | ≤ 1.5 | ≤ 1 | met | run |",
        # only if it was measured
        "| CSV to gzip against Polars + igzip, 2 M rows | 5.00 x | ≥ 4 x | ≥ 7 x | met | run |",
    ]


def test_readers_are_compared_by_their_rates() -> None:
    def reader(key: str, urls: int, wall: float) -> dict[str, Any]:
        told = {"key": key, "label": key, "urls": urls, "failed": None, "cpu": 1.0}
        return {**told, "wall": wall, "urls_per_second": urls / wall, "peak_rss": 1 << 20}

    results = [
        reader("verify", 2_000_000, 1.0), reader("gzip", 2_000_000, 0.5),
        reader("usp", 500_000, 10.0), reader("read", 2_000_000, 2.0),
        {"key": "advertools", "label": "advertools", "urls": 1, "failed": "not there"},
    ]  # fmt: skip
    told = {"bench": "reading", "results": results}
    lines = report.targets_table([told]).splitlines()
    (usp,) = (line for line in lines if "ultimate-sitemap-parser" in line)
    (gzip_t,) = (line for line in lines if "gzip -t" in line)
    (advertools,) = (line for line in lines if "advertools" in line)
    assert usp.split(" | ")[1:] == ["40 x", "≥ 20 x", "", "met", "reading |"]
    assert gzip_t.split(" | ")[1:] == ["2.00", "≤ 1", "", "**not met**", "reading |"]
    assert advertools.endswith("not measured | reading |")
    table = report.reading_table(told)
    assert "| usp | 500 k | 10.00 | 50,000 | 1.00 | 1 |" in table
    assert "not measured: not there" in table


def test_the_chart_is_well_formed_and_to_scale() -> None:
    results = [result("a", 4e6), result("b", 1e6), result("plain", 9e6, gzip=False)]
    drawn = chart.svg(results, {"cores": 2})
    bars = [
        float(bar.get("width", "0"))
        for bar in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}rect")
        if bar.get("height") == str(chart.BAR)
    ]
    assert len(bars) == 2
    assert bars[0] / bars[1] == pytest.approx(4.0, rel=0.01)


def test_tables_go_between_the_marks() -> None:
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    assert report.insert(page, "new") == page.replace("old", "new")
    with pytest.raises(ValueError, match="needs one"):
        report.insert("no marks", "new")


def test_strace_lines_are_summed_by_call() -> None:
    trace = (
        "12 fsync(5)                     = 0 <0.250000>\n"
        "13 fsync(6 <unfinished ...>\n"
        '12 rename("a", "b") = 0 <0.000100>\n'
        "13 <... fsync resumed>)         = 0 <0.500000>\n"
        '12 renameat2(3, "a", 3, "b", 0) = 0 <0.000300>\n'
        "12 +++ exited with 0 +++\n"
    )
    assert publish.seconds_in_calls(trace) == pytest.approx({"fsync": 0.75, "rename": 0.0004})
    assert publish.share_by_timings({"timings": {"build": 9.0, "publish": 1.0}}) == 10.0
    assert publish.share_by_timings({}) is None


@pytest.mark.parametrize("seed", range(5))
def test_edits_are_what_they_tell(tmp_path: Path, seed: int) -> None:
    """Against a plain set difference of the catalog and the edited one."""
    old, new = generate(tmp_path / "c.csv", "--rows", "2000"), tmp_path / "edited.csv"
    scripts = [
        edits.Edits.scattered(300, 2_000, seed), edits.Edits.region(100, 10, 10, 2_000, seed),
        edits.Edits.scattered(2_000, 2_000, seed),
    ]  # fmt: skip
    for script in scripts:
        told = script.apply(old, new)
        sides = []
        for path in (old, new):
            with path.open(newline="") as file:
                sides.append({row["url"]: row["updated_at"] for row in csv.DictReader(file)})
        before, after = sides
        wanted = {("added", url, after[url], "") for url in after.keys() - before.keys()}
        wanted |= {("removed", url, "", before[url]) for url in before.keys() - after.keys()}
        both = [url for url in before.keys() & after.keys() if before[url] != after[url]]
        assert told == wanted | {("changed", url, after[url], before[url]) for url in both}
        back = {("changed", url, before[url], after[url]) for url in both}
        assert {row for row in nightly.backwards(told) if row[0] == "changed"} == back
        assert len(told) == len(script.what)
    region = edits.Edits.region(100, 10, 10, 2_000, seed)
    assert [sorted(region.what.values()).count(k) for k in ("change", "insert", "delete")] == [
        100, 10, 10,
    ]  # fmt: skip


def test_shards_that_hold_an_edit() -> None:
    shards = [{"urls": 10}, {"urls": 5}, {"urls": 10}]
    for places, held in (([0, 9], 1), ([9, 10], 2), ([0, 14, 15, 24], 3), ([12, 11], 1)):
        assert edits.Edits(dict.fromkeys(places, "change")).held(shards) == held


def test_a_feed_that_is_wrong_is_seen(tmp_path: Path) -> None:
    feed = tmp_path / "changes.csv"
    want = {("added", "https://a.example/1", "2026-01-01", "")}
    line = "added,https://a.example/1,2026-01-01,\n"
    for lines, right in ((line, True), ("", False), (line + line, False)):
        feed.write_text(f"change,loc,lastmod,old_lastmod\n{lines}")
        if right:
            nightly.check_feed(feed, want)
        else:
            with pytest.raises(common.BenchError, match="change feed"):
                nightly.check_feed(feed, want)
