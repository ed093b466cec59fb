"""The nightly rebuild: only changed files are written, and the change feed is exact."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
from pathlib import Path

import pytest
import urlset as package
from conftest import SITE, files, read_bytes, read_index, read_set, read_shard, urlset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.long

Row = tuple[str, str]  # a path and a lastmod


def write_catalog(path: Path, rows: list[Row]) -> None:
    lines = "".join(f"{SITE}/{name},{lastmod}\n" for name, lastmod in rows)
    path.write_text(f"url,lastmod\n{lines}")


def feed(path: Path) -> set[tuple[str, ...]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    listed = [(r["change"], r["loc"], r["lastmod"], r["old_lastmod"]) for r in rows]
    assert len(listed) == len(set(listed))
    return set(listed)


def difference(old: list[Row], new: list[Row]) -> set[tuple[str, ...]]:
    """A plain set difference."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for rows, known in ((old, before), (new, after)):
        for name, lastmod in rows:
            known.setdefault(f"{SITE}/{name}", lastmod)  # the first of duplicates wins
    changes = {("added", loc, after[loc], "") for loc in after.keys() - before.keys()}
    changes |= {("removed", loc, "", before[loc]) for loc in before.keys() - after.keys()}
    both = (loc for loc in before.keys() & after.keys() if before[loc] != after[loc])
    return changes | {("changed", loc, after[loc], before[loc]) for loc in both}


names = st.from_regex(r"[a-z0-9]{8}", fullmatch=True)
dates = st.sampled_from(["2026-01-01", "2026-02-03", "2026-11-20", ""])
rows_of = st.lists(st.tuples(names, dates), min_size=1, max_size=120)
edit = st.one_of(
    st.tuples(st.just("insert"), st.integers(0, 10**6), st.tuples(names, dates)),
    st.tuples(st.just("delete"), st.integers(0, 10**6), st.none()),
    st.tuples(st.just("touch"), st.integers(0, 10**6), dates),
    st.tuples(st.just("move"), st.integers(0, 10**6), st.none()),
)


def apply(rows: list[Row], edits: list[tuple[str, int, object]]) -> list[Row]:
    rows = list(rows)
    for what, at, value in edits:
        place = at % (len(rows) + 1)
        if what == "insert":
            rows.insert(place, value)
        elif rows and (what != "delete" or len(rows) > 1):
            row = rows.pop(at % len(rows))
            if what == "touch":
                rows.insert(at % (len(rows) + 1), (row[0], str(value)))
            elif what == "move":
                rows.append(row)
    return rows


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=rows_of,
    scripts=st.lists(st.lists(edit, max_size=8), min_size=1, max_size=3),
    layout=st.sampled_from(["stable", "packed"]),
)
def test_incremental_equals_full(tmp_path_factory, rows, scripts, layout) -> None:
    folder = tmp_path_factory.mktemp("nightly")
    live: list[Row] = []
    catalog, changes = folder / "c.csv", folder / "changes.csv"
    for script in [[], *scripts]:
        rows = apply(rows, script)
        write_catalog(catalog, rows)
        options = {"site": SITE, "layout": layout, "max_urls": 10, "duplicates": "drop"}
        package.build(catalog, out=folder / "live", max_shrink="100%", changes=changes, **options)
        package.build(catalog, out=folder / str(len(list(folder.iterdir()))), **options)
        whole = folder / str(len(list(folder.iterdir())) - 1)
        manifest = json.loads((folder / "live/.urlset/manifest.json").read_text())
        incremental = files(folder / "live")
        assert set(files(whole)) | set(manifest["retired"]) == set(incremental)
        assert files(whole).items() <= incremental.items()
        assert feed(changes) == difference(live, rows)
        live = rows


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_feeds_of_each_format(tmp_path: Path, out: Path, ending: str) -> None:
    catalog, changes = tmp_path / "c.csv", tmp_path / f"changes.{ending}"
    write_catalog(catalog, [("a1", "2026-01-01"), ("b2", ""), ("c3", "")])
    args = ("build", catalog, "--site", SITE, "--out", out, "--changes", changes)
    assert urlset(*args).status == 2  # duplicates are kept
    args += ("--duplicates", "drop")
    assert urlset(*args).status == 0
    write_catalog(catalog, [("a1", "2026-01-02"), ("c3", ""), ("d4", "2026-01-01")])
    assert urlset(*args).status == 0
    if ending == "csv":
        rows = list(csv.DictReader(changes.open(newline="")))
    elif ending == "jsonl":
        rows = [json.loads(line) for line in changes.read_text().splitlines()]
    else:
        import pyarrow.parquet as pq

        rows = pq.read_table(changes).to_pylist()
    found = {(r["change"], r["loc"]) for r in rows}
    assert found == {
        ("changed", f"{SITE}/a1"), ("removed", f"{SITE}/b2"), ("added", f"{SITE}/d4"),
    }  # fmt: skip


def test_a_set_that_shrank_too_far(tmp_path: Path, out: Path) -> None:
    catalog = tmp_path / "c.csv"
    args = ("build", catalog, "--site", SITE, "--out", out)
    write_catalog(catalog, [(f"p{n}", "") for n in range(100)])
    assert urlset(*args).status == 0
    write_catalog(catalog, [(f"p{n}", "") for n in range(79)])
    ended = urlset(*args)
    assert (ended.status, len(read_set(out))) == (1, 100)
    assert "publish.shrank" in ended.err
    assert urlset(*args, "--max-shrink", "21%").status == 0
    assert len(read_set(out)) == 79


def test_the_former_generation_stays_one_build(tmp_path: Path, out: Path) -> None:
    catalog = tmp_path / "c.csv"
    args = ("build", catalog, "--site", SITE, "--out", out, "--layout", "stable", "--max-urls", 10)
    generations = []
    for night in range(4):
        write_catalog(catalog, [(f"p{n}", f"2026-01-0{night + 1}") for n in range(40)])
        assert urlset(*args).status == 0
        live = {entry["loc"].rsplit("/", 1)[1] for entry in read_index(out / "sitemap.xml")}
        generations.append(live)
        there = {path.name for path in out.glob("*.gz")}
        assert there == set().union(*generations[-2:])


def test_index_lastmod_changed(tmp_path: Path, out: Path) -> None:
    catalog = tmp_path / "c.csv"
    args = ("build", catalog, "--site", SITE, "--out", out, "--max-urls", 10)
    args += ("--index-lastmod", "changed")
    rows = [(f"p{n}", "2020-01-01") for n in range(30)]
    write_catalog(catalog, rows)
    assert urlset(*args).status == 0
    first = read_index(out / "sitemap.xml")
    assert all(entry["lastmod"] > "2026" for entry in first)
    import time

    time.sleep(1.1)  # the resolution of the times is one second
    rows[15] = ("other", "2020-01-01")
    write_catalog(catalog, rows)
    assert urlset(*args).status == 0
    second = read_index(out / "sitemap.xml")
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, False, True]


def test_live_files_changed_by_hand_are_written_anew(tmp_path: Path, out: Path) -> None:
    catalog = tmp_path / "c.csv"
    args = ("build", catalog, "--site", SITE, "--out", out, "--max-urls", 10)
    write_catalog(catalog, [(f"p{n}", "") for n in range(30)])
    assert urlset(*args).status == 0
    wanted = files(out)
    (out / "sitemap-00001.xml.gz").write_bytes(b"edited")
    (out / "sitemap-00002.xml.gz").unlink()
    (out / "sitemap.xml").write_text("edited")
    ended = urlset(*args)
    assert ended.status == 0 and "manifest.edited" in ended.out
    assert files(out) == wanted


def test_another_configuration_builds_all_anew(tmp_path: Path, out: Path) -> None:
    catalog = tmp_path / "c.csv"
    write_catalog(catalog, [(f"p{n}", "") for n in range(30)])
    assert urlset("build", catalog, "--site", SITE, "--out", out).status == 0
    ended = urlset("build", catalog, "--site", SITE, "--out", out, "--level", "best")
    assert ended.status == 0 and "manifest.config" in ended.out


def test_a_feed_over_sets_that_share_urls(tmp_path: Path) -> None:
    """The first set that has a URL keeps it: one that moves to the next set is not removed."""
    toml = (
        f'site = "{SITE}"\nout = "out"\nduplicates = "drop"\nchanges = "changes.csv"\n'
        '[[set]]\nname = "a"\ninput = "a.csv"\n[[set]]\nname = "b"\ninput = "b.csv"\n'
    )
    (tmp_path / "urlset.toml").write_text(toml)
    nights = [
        ([("x", ""), ("y", "")], [("y", ""), ("z", "")]),
        ([("x", "")], [("y", ""), ("z", "")]),
        ([("x", ""), ("z", "2026-01-01")], [("y", ""), ("z", "")]),
    ]
    live: list[Row] = []
    for first, second in nights:
        write_catalog(tmp_path / "a.csv", first)
        write_catalog(tmp_path / "b.csv", second)
        ended = urlset("build", "--json", "-", cwd=tmp_path)
        assert ended.status == 0, ended.err
        report = json.loads(ended.out)
        assert (report["urls"], report["duplicates"]) == (3, len(first + second) - 3)
        assert feed(tmp_path / "changes.csv") == difference(live, first + second)
        live = first + second
    (tmp_path / "urlset.toml").write_text(toml.replace('"drop"', '"fail"'))
    ended = urlset("build", cwd=tmp_path)
    assert ended.status == 1 and "b.csv: row 2: its URL occurred before" in ended.err


@pytest.mark.parametrize("layout", ["packed", "stable"])
def test_a_feed_over_files_changed_by_hand(tmp_path: Path, out: Path, layout: str) -> None:
    """It compares with the live files, not with those that the last build wrote."""
    catalog, changes = tmp_path / "c.csv", tmp_path / "changes.csv"
    rows = [(f"p{n}", "") for n in range(30)]
    args = ("build", catalog, "--site", SITE, "--out", out, "--max-urls", 10, "--layout", layout)
    args += ("--duplicates", "drop", "--changes", changes)
    write_catalog(catalog, rows)
    assert urlset(*args).status == 0
    first = sorted(out.glob("*.gz"))[0]
    gone = read_shard(first)[3]["loc"]
    edited = read_bytes(first).replace(f"<url><loc>{gone}</loc></url>\n".encode(), b"")
    assert edited != read_bytes(first)
    first.write_bytes(gzip.compress(edited))
    assert urlset(*args).status == 0
    assert feed(changes) == {("added", gone, "", "")}
    first.write_bytes(b"damaged")
    ended = urlset(*args)
    assert (ended.status, ended.err.count("\n")) == (3, 1)
    assert "[changes.live]" in ended.err and "without --changes" in ended.err
    assert urlset(*args[:-2]).status == 0
    assert urlset(*args).status == 0
    assert feed(changes) == set() and len(read_set(out)) == 30


def test_common_ends_are_cut(tmp_path: Path) -> None:
    """The differing parts remain, and no entry of only one side is lost."""
    from urlset import _core
    from urlset.build.differences import SitemapFile, write_differences

    files = [[tmp_path / f"{side}.xml{gz}" for side in ("old", "new")] for gz in ("", ".gz")]
    cuts = [tmp_path / f"{side}-cut.xml" for side in ("old", "new")]

    pick = random.Random(4)

    def document(urls: list[int], more: str) -> bytes:
        lines = "".join(f"<url><loc>{SITE}/{n}</loc></url>\n" for n in urls)
        return f"<?xml?>\n<urlset{more}>\n{lines}</urlset>\n".encode()

    def urls_of(text: bytes) -> set[str]:
        assert text.startswith(b"<?xml?>\n<urlset") and text.endswith(b"</url>\n</urlset>\n")
        return {line for line in text.decode().split("\n") if line.startswith("<url>")}

    short = 0
    for _ in range(2_000):
        old = pick.sample(range(30), pick.randrange(1, 12))
        new = list(old)
        for _ in range(pick.randrange(4)):
            if new and pick.random() < 0.5:
                del new[pick.randrange(len(new))]
            else:
                new.insert(pick.randrange(len(new) + 1), pick.randrange(100, 1_000))
        new = list(dict.fromkeys(new)) or [5_000]
        texts = document(old, ""), document(new, pick.choice(["", "", ' xmlns:x="y"']))
        packed = pick.randrange(2)
        for path, text in zip(files[packed], texts, strict=True):
            path.write_bytes(gzip.compress(text) if packed else text)
        written = _core.write_differences(*files[packed], *cuts)
        assert written is not None
        cut = [
            urls_of(path.read_bytes()) if is_there else set()
            for path, is_there in zip(cuts, written, strict=True)
        ]
        whole = [urls_of(text) for text in texts]
        assert cut[0] <= whole[0] and cut[1] <= whole[1]
        assert (cut[0] - cut[1], cut[1] - cut[0]) == (whole[0] - whole[1], whole[1] - whole[0])
        short += len(cut[0]) < len(whole[0])
    assert short > 1_000
    # the comparison reports a file that cannot be read
    paths = [tmp_path / f"a-1-{n}.xml.gz" for n in range(2)]
    paths[0].write_bytes(b"damaged")
    paths[1].write_bytes(gzip.compress(texts[1]))
    sides = [[SitemapFile(path, path.name, "0")] for path in paths]
    assert write_differences(*sides, tmp_path) == tuple(sides)


def test_a_dry_run_writes_no_feed(tmp_path: Path, out: Path) -> None:
    catalog, changes = tmp_path / "c.csv", tmp_path / "changes.csv"
    write_catalog(catalog, [("a", "")])
    args = ("build", catalog, "--site", SITE, "--out", out, "--changes", changes)
    assert urlset(*args, "--duplicates", "drop", "--dry-run").status == 0
    assert not changes.exists()
    assert [path.name for path in (out / ".urlset").iterdir()] == ["lock"]


def test_a_feed_is_no_other_configuration(tmp_path: Path, out: Path) -> None:
    """A first ``--changes`` or ``--verify-staged`` writes no file again."""
    catalog = tmp_path / "c.csv"
    write_catalog(catalog, [(f"p{n}", "") for n in range(30)])
    args = ("build", catalog, "--site", SITE, "--out", out, "--duplicates", "drop")
    assert urlset(*args).status == 0
    ended = urlset(*args, "--verify-staged", "--changes", tmp_path / "changes.csv")
    assert ended.status == 0 and "manifest.config" not in ended.out


WRONG = [
    ("shards", {}), ("shards", "abc"), ("indexes", {"a": 1}), ("retired", "abc"), ("urls", -1),
    ("urls", True), ("folder", 5), ("folder", None), ("manifest", True), ("manifest", 0),
    ("manifest", -1), ("manifest", 1.0),
]  # fmt: skip
WRONG_OF_SHARD = [
    ("digest", 5), ("digest", None), ("digest", "x" * 32), ("digest", "0" * 31), ("path", ["a"]),
    ("changed_at", 5), ("changed_at", "<&\x07"), ("changed_at", "2026-01-01T00:00:00Z\n"),
    ("compressed_bytes", "x"), ("compressed_bytes", None), ("compressed_bytes", 1e99),
    ("mtime_ns", "x"), ("mtime_ns", True),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), WRONG + WRONG_OF_SHARD)
def test_wrong_types_in_a_manifest(tmp_path: Path, out: Path, key: str, value: object) -> None:
    catalog = tmp_path / "c.csv"
    write_catalog(catalog, [(f"p{n}", "") for n in range(30)])
    options = {"site": SITE, "out": out, "max_urls": 10, "index_lastmod": "changed"}
    package.build(catalog, **options)
    path = out / ".urlset/manifest.json"
    manifest = json.loads(path.read_text())
    (manifest["shards"][1] if (key, value) in WRONG_OF_SHARD else manifest)[key] = value
    path.write_text(json.dumps(manifest))
    before = files(out)
    with pytest.raises(package.PublishError) as told:
        package.build(catalog, **options)
    assert told.value.code == "state.damaged" and "\n" not in str(told.value)
    assert files(out) == before
    # as the message requires; the existing sitemaps would prevent the build
    path.unlink()
    with pytest.raises(package.PublishError, match="move it away"):
        package.build(catalog, **options)
    for file in out.glob("*.xml*"):
        file.unlink()
    package.build(catalog, **options)
    assert files(out).keys() == before.keys()


@pytest.mark.parametrize("layout", ["packed", "stable"])
@pytest.mark.parametrize("name", ["shard", "index"])
def test_a_folder_in_the_place_of_a_file(tmp_path: Path, out: Path, layout: str, name: str) -> None:
    """The error precedes any replacement."""
    catalog = tmp_path / "c.csv"
    args = ("build", catalog, "--site", SITE, "--out", out, "--max-urls", 10, "--layout", layout)
    write_catalog(catalog, [(f"p{n}", "") for n in range(30)])
    assert urlset(*args).status == 0
    way = out / "sitemap.xml" if name == "index" else sorted(out.glob("*.gz"))[-1]
    way.unlink()
    way.mkdir()
    others = {p: p.read_bytes() for p in out.glob("*") if p.is_file()}
    write_catalog(catalog, [(f"p{n}", "2026-01-01" if n == 3 else "") for n in range(30)])
    if name == "shard":
        write_catalog(catalog, [(f"p{n}", "") for n in range(30)])
    ended = urlset(*args)
    assert (ended.status, ended.err.count("\n")) == (3, 1)
    assert f"{way}: is there" in ended.err and "[publish.foreign]" in ended.err
    assert {p: p.read_bytes() for p in out.glob("*") if p.is_file()} == others
    way.rmdir()
    assert urlset(*args).status == 0 and len(read_set(out)) == 30


def test_layouts_and_limits_change_places(tmp_path: Path, out: Path) -> None:
    """After each change of the configuration only its files remain, with a note."""
    catalog = tmp_path / "c.csv"
    write_catalog(catalog, [(f"p{n}", "") for n in range(300)])
    args = ("build", catalog, "--site", SITE, "--out", out, "--max-urls")
    configurations = (
        (50, "--layout", "packed"), (50, "--layout", "stable"), (20, "--layout", "packed"),
        (20, "--layout", "stable", "--no-gzip"), (50, "--layout", "packed", "--output", "text"),
        (50, "--layout", "packed", "--output", "text", "--level", "best"),
    )  # fmt: skip
    for number, configuration in enumerate(configurations):
        ended = urlset(*args, *configuration)
        assert ended.status == 0 and ("manifest.config" in ended.out) == (number > 0)
        alone = tmp_path / f"alone{number}"
        urlset(*args[:5], alone, "--max-urls", *configuration)
        there = {p.name: p.read_bytes() for p in alone.iterdir() if p.is_file()}
        assert {p.name: p.read_bytes() for p in out.iterdir() if p.is_file()} == there


def test_a_clock_that_goes_back(tmp_path: Path, out: Path) -> None:
    """Times in the future, as of a wrong clock, only cause a rewrite."""
    catalog = tmp_path / "c.csv"
    args = ("build", catalog, "--site", SITE, "--out", out, "--max-urls", 10)
    write_catalog(catalog, [(f"p{n}", "") for n in range(30)])
    assert urlset(*args).status == 0
    wanted = files(out)
    for path in out.rglob("*"):
        os.utime(path, (4e9, 4e9))
    ended = urlset(*args)
    assert ended.status == 0 and "manifest.edited" in ended.out and files(out) == wanted
    ended = urlset(*args)
    assert ended.status == 0 and "manifest.edited" not in ended.out


@pytest.mark.slow
def test_single_edits_touch_single_shards(tmp_path: Path) -> None:
    """Over 1,000 edits at random places: 95 % touch one shard, 99 % at most two."""
    random.seed(5)
    rows = [(f"{random.randrange(36**8):08d}", "") for _ in range(20_000)]
    catalog, out = tmp_path / "c.csv", tmp_path / "out"
    options = {"site": SITE, "layout": "stable", "max_urls": 1_000, "duplicates": "drop"}
    write_catalog(catalog, rows)
    report = package.build(catalog, out=out, **options)
    assert 20_000 / len(report.shards) >= 600
    touched = []
    for _ in range(1_000):
        edited, place = list(rows), random.randrange(len(rows))
        what = random.choice(["insert", "delete", "touch"])
        if what == "insert":
            edited.insert(place, (f"new{random.randrange(10**9)}", ""))
        elif what == "delete":
            del edited[place]
        else:
            edited[place] = (edited[place][0], "2026-11-20")
        write_catalog(catalog, edited)
        report = package.build(catalog, out=out, dry_run=True, **options)
        touched.append(sum(shard.changed for shard in report.shards))
    one = sum(n <= 1 for n in touched) / len(touched)
    two = sum(n <= 2 for n in touched) / len(touched)
    print(f"one shard {one:.1%}, at most two {two:.1%}, worst {max(touched)}")
    assert one >= 0.95 and two >= 0.99
