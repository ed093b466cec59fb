"""``--report``: the pages of build, verify and diff, read by a strict parser."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import urlset as package
from conftest import SITE, read_index, read_set, urlset
from report_pages import HOSTILE, Element, number, parse

pytestmark = pytest.mark.long

AGES = ["in the future", "up to 24 hours", "24 hours to 7 days", "7 days to 30 days",
        "30 days to 90 days", "90 days to a year", "a year to 2 years", "2 years to 5 years",
        "over 5 years", "no lastmod"]  # fmt: skip
#: days before now, and the row of the histogram
DAYS = {-3: 0, -0.5: 1, 0.5: 1, 2: 2, 6.5: 2, 8: 3, 29: 3, 31: 4, 89: 4, 91: 5, 364: 5, 366: 6,
        729: 6, 731: 7, 1824: 7, 1826: 8, 9000: 8, None: 9}  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def catalog(path: Path, number: int = 300, **more: Any) -> Path:
    return write(path, [{"url": f"{SITE}/p/{n}", **more} for n in range(number)])


def dated(path: Path, *, copies: int = 1, repeated: int = 1) -> tuple[Path, Counter[str]]:
    """A catalog with lastmods of every age, and the histogram that it must have."""
    now, rows, wanted = datetime.now(UTC), [], Counter[str]()
    for copy in range(copies):
        for days, place in DAYS.items():
            time = "" if days is None else f"{now - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
            url = f"{SITE}/{copy}/{days}"
            rows += [{"url": url, "lastmod": time, "kind": f"k{copy % 3}"}] * repeated
            wanted[AGES[place]] += 1
    return write(path, rows), wanted


def build(source: Path, out: Path, page: Path, *args: object, status: int = 0) -> Element:
    common = ("--site", SITE, "--out", out, "--max-shrink", "100%", "--report", page)
    ended = urlset("build", source, *common, *args)
    assert ended.status == status, ended.err
    return parse(page)


def histogram(page: Element) -> Counter[str]:
    rows = page.table("URLs by the age of their lastmod")
    found = Counter({label: number(urls) for label, urls, _ in rows})
    shares = [re.sub("under 0", "0", share) for _, _, share in rows]
    assert sum(float(share.removesuffix(" %")) for share in shares) == pytest.approx(100, abs=0.6)
    return +found


def headline(page: Element) -> str:
    return page.one("strong").text


def tiles(page: Element) -> dict[str, str]:
    terms = page.one("dl").all("dt")
    values = [one for one in page.one("dl").all("dd") if one.attributes["class"] == "value"]
    return {term.text: value.text for term, value in zip(terms, values, strict=True)}


def test_a_build_with_everything(tmp_path: Path) -> None:
    source, wanted = dated(tmp_path / "c.csv", copies=30, repeated=2)
    bad = ["ftp://x/1", "https://other.example/", "", f"{SITE}/{'x' * 3_000}"]
    with source.open("a") as file:
        file.writelines(f"{url},,k0\n" for url in bad * 3)
    page = build(source, tmp_path / "out", tmp_path / "r.html", "--duplicates", "drop",
                 "--max-rejects", "50%", "--split-by", "kind", "--max-urls", 20)  # fmt: skip
    urls = len(DAYS) * 30
    assert headline(page) == f"Published: {urls} URLs are live"
    assert tiles(page)["URLs"] == str(urls) and tiles(page)["Rejected rows"] == "12"
    # duplicates are dropped, and rejected rows have no age
    assert histogram(page) == wanted
    rejects = {code: number(rows) for code, rows, _ in page.table("Rejected rows")}
    with (tmp_path / "out/.urlset/rejects.csv").open(newline="") as file:
        listed = list(csv.DictReader(file))
    assert rejects == Counter(row["code"] for row in listed) and len(rejects) == 4
    samples = page.by_id("rejects").text
    assert all(f"row {row['row']}" in samples for row in listed)
    # the sets and their sitemaps, as a crawler finds them
    sitemaps = [
        entry["loc"].rpartition("/")[2] for entry in read_index(tmp_path / "out/sitemap.xml")
    ]
    sets = {row[0]: row[1:] for row in page.table("URLs and bytes by set")}
    for name, (count, _, shards, written) in sets.items():
        assert number(count) == urls / 3
        assert number(shards) == number(written) == sum(one.startswith(name) for one in sitemaps)
    entries = page.table("URLs of each sitemap")
    assert [row[0] for row in entries] == sitemaps
    assert sum(number(row[1]) for row in entries) == len(read_set(tmp_path / "out")) == urls
    outcomes = page.by_id("rows").text
    assert "duplicates dropped" in outcomes and f"{urls:,} (" in outcomes


def test_the_age_of_a_date_is_that_of_its_midnight(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    days = [0, 1, 6, 8, 29, 31, 5_000]
    rows = [{"url": f"{SITE}/{n}", "lastmod": f"{now - timedelta(days=n):%Y-%m-%d}"} for n in days]
    source = write(tmp_path / "c.csv", rows)
    wanted = Counter({AGES[1]: 1, AGES[2]: 2, AGES[3]: 2, AGES[4]: 1, AGES[8]: 1})
    for args in ([], ["--sort"], ["--layout", "stable"]):
        page = build(source, tmp_path / "out", tmp_path / "r.html", *args)
        assert histogram(page) == wanted
    package.verify(tmp_path / "out", report=tmp_path / "v.html")
    assert histogram(parse(tmp_path / "v.html")) == wanted


def test_sets_of_a_job_are_added_up(tmp_path: Path) -> None:
    one, first = dated(tmp_path / "a.csv", copies=2)
    catalog(tmp_path / "b.csv", 70)
    toml = tmp_path / "urlset.toml"
    toml.write_text(
        f'site = "{SITE}"\nout = "{tmp_path}/out"\nreport = "{tmp_path}/r.html"\n'
        f'[[set]]\nname = "a"\ninput = "{one}"\n[[set]]\nname = "b"\ninput = "{tmp_path}/b.csv"\n'
    )
    package.build(config=toml)
    page = parse(tmp_path / "r.html")
    rows = {row[0]: row[1] for row in page.table("URLs and bytes by set")}
    assert rows == {"a": str(2 * len(DAYS)), "b": "70"}
    assert histogram(page) == first + Counter({"no lastmod": 70})


def test_a_job_with_several_parts(tmp_path: Path) -> None:
    one, wanted = dated(tmp_path / "a.csv")
    job = package.Job(site=SITE, out=tmp_path / "out", report=tmp_path / "new/r.html")
    parts = [job.write(one), job.write(catalog(tmp_path / "b.csv", 50))]
    parts = [package.Part.from_json(part.to_json()) for part in parts]
    job.commit(parts)
    page = parse(tmp_path / "new/r.html")
    assert headline(page) == f"Published: {len(DAYS) + 50} URLs are live"
    assert histogram(page) == wanted + Counter({"no lastmod": 50})
    # a guard refuses the second job, and its page says so
    job = package.Job(site=SITE, out=tmp_path / "out", report=tmp_path / "r.html")
    part = job.write(write(tmp_path / "c.csv", [{"url": f"{SITE}/1"}]))
    with pytest.raises(package.DataError):
        job.commit([part])
    assert headline(parse(tmp_path / "r.html")) == "Refused: nothing was published"


def test_the_history_is_that_of_the_builds_that_changed_the_set(tmp_path: Path) -> None:
    out, page = tmp_path / "out", tmp_path / "r.html"
    sizes = [100, 100, 150, 120]
    for size in sizes:
        parsed = build(catalog(tmp_path / "c.csv", size), out, page, "--max-urls", 50)
    rows = parsed.table("URLs by build")  # the newest first
    assert [row[1:3] for row in rows] == [["120", "\u221230"], ["150", "+50"], ["100", "0"]]
    assert "\u221230 since the last build" in parsed.one("dl").text
    rows = parsed.table("Sitemaps written by build")
    assert [row[1:3] for row in rows] == [["1", "3"], ["1", "3"], ["2", "2"]]
    # a build without changes writes nothing but the page
    manifest = (out / ".urlset/manifest.json").read_bytes()
    parsed = build(tmp_path / "c.csv", out, page, "--max-urls", 50)
    assert headline(parsed).startswith("Nothing changed")
    assert (out / ".urlset/manifest.json").read_bytes() == manifest
    assert len(parsed.table("URLs by build")) == 3


def test_the_changes_of_builds_with_a_feed(tmp_path: Path) -> None:
    out, page, feed = tmp_path / "out", tmp_path / "r.html", tmp_path / "changes.csv"
    source = tmp_path / "c.csv"
    build(catalog(source, 40), out, page)  # without a feed
    args = ("--duplicates", "drop", "--changes", feed)
    build(catalog(source, 60), out, page, *args)
    rows = [{"url": f"{SITE}/p/{n}", "lastmod": "2026-01-01" if n < 3 else ""} for n in range(50)]
    parsed = build(write(source, rows), out, page, *args)
    with feed.open(newline="") as file:
        counts = Counter(row["change"] for row in csv.DictReader(file))
    assert counts == {"changed": 3, "removed": 10}
    table = parsed.table("URLs changed by build")
    assert [row[1:] for row in table] == [["0", "3", "10"], ["20", "0", "0"]]
    assert "0 added, 3 changed, 10 removed" in parsed.one("dl").text
    # nothing changes: the numbers of the last build are not those of this one
    parsed = build(source, out, page, *args)
    assert "as in the last build" in parsed.one("dl").text
    assert len(parsed.table("URLs changed by build")) == 2


def test_the_history_is_bounded(tmp_path: Path) -> None:
    out = tmp_path / "out"
    catalog(tmp_path / "c.csv", 3)
    for size in range(1, 64):
        package.build(f"{tmp_path}/c.csv", site=SITE, out=out, where=[f"url!={SITE}/{size}"],
                      max_urls=size)  # fmt: skip
    history = json.loads((out / ".urlset/manifest.json").read_text())["history"]
    # each build had other options, so each wrote all files
    assert len(history) == 60 and all(one["urls"] == 3 for one in history)
    assert [one["written"] for one in history[:2]] == [1, 1]


@pytest.mark.parametrize("change", [
    {"at": "yesterday"}, {"at": "2026-13-01T00:00:00Z"}, {"at": 5}, {"urls": -1}, {"urls": 1e9},
    {"urls": True}, {"rows": None}, {"seconds": "1"}, {"seconds": -1}, {"seconds": 1e999},
    {"bytes": 1 << 80}, {"changes": [1, 2]}, {"changes": [1, 2, -3]}, {"changes": 5}, None, [], "x",
])  # fmt: skip
def test_a_damaged_history_is_found(tmp_path: Path, change: Any) -> None:
    out = tmp_path / "out"
    package.build(catalog(tmp_path / "c.csv"), site=SITE, out=out)
    path = out / ".urlset/manifest.json"
    manifest = json.loads(path.read_text())
    good = manifest["history"][0]
    manifest["history"] = [good | change if isinstance(change, dict) else change]
    path.write_text(json.dumps(manifest))
    with pytest.raises(package.PublishError) as refused:
        package.build(tmp_path / "c.csv", site=SITE, out=out)
    assert refused.value.code == "state.damaged"
    # a manifest of an earlier version has no history
    del manifest["history"]
    path.write_text(json.dumps(manifest))
    package.build(tmp_path / "c.csv", site=SITE, out=out)


def test_a_refused_build_has_a_page(tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(catalog(tmp_path / "c.csv"), out, tmp_path / "r.html")
    live = (out / "sitemap.xml").read_bytes()
    rows = [{"url": f"{SITE}/{n}" if n % 2 else f"ftp://{n}"} for n in range(100)]
    for name, args in (("share", []), ("count", ["--max-rejects", "9"])):
        page = build(write(tmp_path / "bad.csv", rows), out, tmp_path / "r.html", *args, status=1)
        assert headline(page) == "Refused: nothing was published", name
        assert (
            "loc.scheme" in page.by_id("rejects").text and "ftp://0" in page.by_id("rejects").text
        )
        assert "rejected, more than" in page.one("main").text
    # before a row was read
    page = build(tmp_path / "bad.csv", out, tmp_path / "r.html", "--lastmod", "nope", status=2)
    assert 'no column "nope"' in page.one("main").text
    # a guard after the whole set was rendered
    page = build(catalog(tmp_path / "few.csv", 10), out, tmp_path / "r.html", "--max-shrink", "5%",
                 status=1)  # fmt: skip
    assert "--max-shrink" in page.one("main").text
    assert (out / "sitemap.xml").read_bytes() == live
    # a dry run
    page = build(tmp_path / "few.csv", out, tmp_path / "r.html", "--dry-run")
    assert headline(page) == "Dry run: nothing was published"
    assert (out / "sitemap.xml").read_bytes() == live


def test_hostile_values_stay_text(tmp_path: Path) -> None:
    """In every place of the page of a build: values, columns, file names, sets, messages."""
    column = 'u"><script>alert(1)</script>'
    rows = [{column: f"ftp://{value}", "c": value} for value in HOSTILE]
    rows += [{column: f"{SITE}/{n}", "c": value} for n, value in enumerate(HOSTILE)]
    source = write(tmp_path / "<img src=x onerror=alert(1)>\u202e.csv", rows)
    page = build(source, tmp_path / "out", tmp_path / "r.html", "--loc", column, "--split-by", "c",
                 "--max-rejects", "90%")  # fmt: skip
    text = page.by_id("rejects").text
    shown = [value for value in HOSTILE if value.isprintable() and len(value) < 100]
    # five examples of each reason
    assert sum(f"ftp://{value}" in text for value in shown) >= 4
    assert "alert(1)" in text and "<img src=x onerror=alert(1)>\\u202e.csv" in text
    assert page.table("Columns of the fields")[0] == ["loc", column]


def test_hostile_sitemaps_stay_text(tmp_path: Path) -> None:
    """In the pages of verify and diff: URLs, file names and messages."""
    from xml.sax.saxutils import escape

    legal = [value for value in HOSTILE if not set(value) & set("\x00\x07\x1b\ufffe")]
    for side, more in (("old", ""), ("new", "?new")):
        folder = tmp_path / side
        folder.mkdir()
        entries = "".join(
            f"<url><loc>{escape(f'{SITE}/{n}/{value}{more}')}</loc><lastmod>{escape(value)}</lastmod>"
            "</url>" for n, value in enumerate(legal)
        )  # fmt: skip
        (folder / 'a"><b>\u202e.xml').write_text(
            '<?xml version="1.0" encoding="UTF-8"?>'
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
        )
    ended = urlset("verify", tmp_path / "new", "--report", tmp_path / "v.html", "-q")
    assert ended.status == 1
    text = parse(tmp_path / "v.html").one("main").text
    assert "alert(1)" in text and '"><b>\\u202e.xml' in text
    assert urlset("diff", tmp_path / "old", tmp_path / "new", "--lenient", "--report",
                  tmp_path / "d.html").status == 0  # fmt: skip
    page = parse(tmp_path / "d.html")
    assert tiles(page) == {"Added": str(len(legal)), "Changed": "0", "Removed": str(len(legal))}
    assert "<script>alert(1)</script>" in page.by_id("added").text


def test_verify_shows_what_its_report_counts(tmp_path: Path) -> None:
    source, wanted = dated(tmp_path / "c.csv", copies=20)
    package.build(source, site=SITE, out=tmp_path / "out", max_urls=50)
    shard = tmp_path / "out/sitemap-00003.xml.gz"
    shard.write_bytes(shard.read_bytes()[:-40])
    report = package.verify(tmp_path / "out", report=tmp_path / "v.html")
    page = parse(tmp_path / "v.html")
    assert headline(page).startswith("Not valid")
    assert tiles(page)["URLs"] == str(report.urls) and "ages" not in report.to_dict()
    codes = {row[0]: number(row[1]) for row in page.table("Findings by code")}
    assert codes == report.counts and "gzip.truncated" in codes
    for problem in report.problems:
        assert problem.message in page.by_id("findings").text
    files = {row[0]: number(row[1]) for row in page.table("URLs of each sitemap")}
    assert files == {one.name: one.urls for one in report.files if one.kind == "urlset"}
    assert sum(histogram(page).values()) == report.urls < sum(wanted.values())


def test_diff_shows_an_even_sample(tmp_path: Path) -> None:
    old = [{"url": f"{SITE}/{'ab'[n % 2]}/{n:05}", "lastmod": "2026-01-01"} for n in range(9_000)]
    new = [dict(row) for row in old[500:]]
    for row in new[:4_000]:
        row["lastmod"] = "2026-02-02"
    new += [{"url": f"{SITE}/page-{n}", "lastmod": ""} for n in range(7)]
    for name, rows in (("old", old), ("new", new)):
        package.build(write(tmp_path / "c.csv", rows), site=SITE, out=tmp_path / name)
    ended = urlset("diff", tmp_path / "old", tmp_path / "new", "--report", tmp_path / "d.html",
                   "-o", tmp_path / "d.csv")  # fmt: skip
    assert ended.status == 0 and "7 added, 4,000 changed, 500 removed" in ended.out
    page = parse(tmp_path / "d.html")
    assert tiles(page) == {"Added": "7", "Changed": "4,000", "Removed": "500"}
    folders = {row[0]: row[1:] for row in page.table("URLs by folder")}
    assert folders == {"/a/": ["2,250", "0", "2,000", "250"], "/b/": ["2,250", "0", "2,000", "250"],
                       "/": ["7", "7", "0", "0"]}  # fmt: skip
    changed = [code.text for code in page.by_id("changed").all("code")]
    assert len(changed) == 20 and changed == sorted(changed)
    # of rows that are sorted by URL, the sample reaches from the first to the last ones
    folders_of = Counter(url.removeprefix(f"{SITE}/")[0] for url in changed)
    assert abs(folders_of["a"] - folders_of["b"]) <= 2
    assert len(page.by_id("added").all("code")) == 7
    # the same from Python; the rows can still be read
    changes = package.diff(tmp_path / "old", tmp_path / "new", report=tmp_path / "p.html")
    assert tiles(parse(tmp_path / "p.html")) == tiles(page)
    assert changes.read_all().num_rows == 4_507
    # no difference
    ended = urlset("diff", tmp_path / "old", tmp_path / "old", "--report", tmp_path / "d.html")
    assert headline(parse(tmp_path / "d.html")) == "No URL was added, changed or removed"


def test_thousands_of_sitemaps_are_a_small_page(tmp_path: Path) -> None:
    source = catalog(tmp_path / "c.csv", 30_000)
    page = build(source, tmp_path / "out", tmp_path / "r.html", "--max-urls", 10)
    assert tiles(page)["Sitemaps"] == "3,000"
    assert (tmp_path / "r.html").stat().st_size < 300_000
    rows = page.table("URLs of each 50 sitemaps in order")
    assert len(rows) == 60 and all(row[1] == "500" for row in rows)
    package.verify(tmp_path / "out", report=tmp_path / "v.html")
    parse(tmp_path / "v.html")
    assert (tmp_path / "v.html").stat().st_size < 300_000


def test_thousands_of_sets_are_a_small_page(tmp_path: Path) -> None:
    rows = [{"url": f"{SITE}/{n}", "c": f"c{n % 2_000}"} for n in range(4_500)]
    page = build(write(tmp_path / "c.csv", rows), tmp_path / "out", tmp_path / "r.html",
                 "--split-by", "c")  # fmt: skip
    sets = page.table("URLs and bytes by set")
    assert len(sets) == 31 and sets[-1][0] == "1,970 other sets"
    assert sum(number(row[1]) for row in sets) == 4_500
    assert sum(number(row[3]) for row in sets) == 2_000


def test_the_path_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    source = catalog(tmp_path / "c.csv")
    listed = tmp_path / "urls.html"
    listed.write_text(f"{SITE}/1\n")
    out = tmp_path / "out"
    folder = tmp_path / "folder.html"
    folder.mkdir()
    build_ = ("build", source, "--site", SITE, "--out", out)
    for args, status, code in (
        ((*build_, "--report", "-"), 2, "config.report"),
        ((*build_, "--report", tmp_path / "r.json"), 2, "config.report"),
        ((*build_, "--report", "ftp://x/r.html"), 2, "config.report"),
        ((*build_, "--report", folder), 3, "output.report"),
        (("build", listed, "--format", "lines", "--site", SITE, "--out", out, "--report", listed),
         2, "config.report"),
        (("verify", listed, "--report", listed), 2, "config.report"),
        (("verify", listed, "--report", tmp_path / "x.xml"), 2, "config.report"),
        (("verify", listed, "--report", folder), 3, "output.report"),
        (("diff", listed, source, "--report", listed), 2, "config.report"),
        (("diff", source, listed, "--report", folder), 3, "output.report"),
    ):  # fmt: skip
        ended = urlset(*args)
        assert ended.status == status and f"[{code}]" in ended.err, (args, ended.err)
        assert ended.err.count("\n") == 1
    assert not out.exists() and listed.read_text() == f"{SITE}/1\n"


def test_a_page_that_cannot_be_written_does_not_undo_the_build(tmp_path: Path) -> None:
    """The folder of the page becomes a file while the build runs."""
    reports = tmp_path / "reports"
    code = f"""
import pathlib, pyarrow as pa, urlset
def batches():
    pathlib.Path({str(reports)!r}).write_text("")
    yield pa.record_batch({{"loc": ["{SITE}/1"]}})
try:
    urlset.build(batches(), site={SITE!r}, out={str(tmp_path / "out")!r},
                 report={str(reports / "r.html")!r})
except urlset.PublishError as error:
    print(error.code, error)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("output.report") and "the new set is live" in ended.stdout
    assert [row["loc"] for row in read_set(tmp_path / "out")] == [f"{SITE}/1"]


def test_without_a_page_no_template_is_imported(tmp_path: Path) -> None:
    source = catalog(tmp_path / "c.csv")
    code = f"""
import sys, urlset
urlset.build({str(source)!r}, site={SITE!r}, out={str(tmp_path / "out")!r})
urlset.verify({str(tmp_path / "out")!r})
list(urlset.diff({str(tmp_path / "out")!r}, {str(tmp_path / "out")!r}))
assert not [name for name in sys.modules if "jinja" in name or name.startswith("urlset.html")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
