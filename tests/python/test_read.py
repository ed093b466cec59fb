"""read: rows written by a plain Python writer come back equal; forms, formats, errors."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urlset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.long

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
EXTENSIONS = {
    "image": "http://www.google.com/schemas/sitemap-image/1.1",
    "video": "http://www.google.com/schemas/sitemap-video/1.1",
    "news": "http://www.google.com/schemas/sitemap-news/0.9",
    "xhtml": "http://www.w3.org/1999/xhtml",
}
VIDEO = [
    "thumbnail_loc", "title", "description", "content_loc", "player_loc", "duration",
    "expiration_date", "rating", "view_count", "publication_date", "tags", "family_friendly",
    "restriction", "requires_subscription", "uploader", "platform", "live",
]  # fmt: skip
ATTRIBUTES = {
    "restriction": ("relationship", "restriction_relationship"),
    "platform": ("relationship", "platform_relationship"),
    "uploader": ("info", "uploader_info"),
}

# unchanged in XML and by trimming of white space
word = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=12,
).filter(lambda s: s == s.strip(" \t\r\n") and s)
url = word.map(lambda s: "https://www.shop.example/" + s)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def struct(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(fields)


videos = struct(
    **{name: maybe(word) for name in VIDEO},
    restriction_relationship=maybe(st.sampled_from(["allow", "deny"])),
    platform_relationship=maybe(st.sampled_from(["allow", "deny"])),
    uploader_info=maybe(url),
) | struct(**{name: st.none() for name in [*VIDEO, *(pair[1] for pair in ATTRIBUTES.values())]})
videos = st.tuples(
    videos,
    maybe(st.integers(0, 2**62)),
    maybe(st.integers(0, 2**62)),
    maybe(st.floats(0, 5)),
    maybe(st.lists(word, min_size=1, max_size=3)),
).map(lambda t: {**t[0], "duration": t[1], "view_count": t[2], "rating": t[3], "tags": t[4]})
NEWS = ["name", "language", "publication_date", "title", "access", "genres", "keywords",
        "stock_tickers"]  # fmt: skip
news = struct(**{name: maybe(word) for name in NEWS})
row = struct(
    loc=url,
    lastmod=maybe(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1))),
    changefreq=maybe(word),
    priority=maybe(st.integers(0, 10).map(lambda n: n / 10)),
    images=maybe(st.lists(url, min_size=1, max_size=3)),
    alternates=maybe(st.lists(struct(lang=word, href=url), min_size=1, max_size=3)),
    video=maybe(st.lists(videos, min_size=1, max_size=2)),
    news=maybe(news),
)


def tag(name: str, text: object, attributes: str = "") -> str:
    return f"<{name}{attributes}>{escape(str(text))}</{name}>"


def write_row(row: dict[str, Any]) -> str:
    out = ["<url>", tag("loc", row["loc"])]
    if row["lastmod"] is not None:
        out.append(tag("lastmod", row["lastmod"].isoformat() + "Z"))
    out += [tag(n, row[n]) for n in ("changefreq", "priority") if row[n] is not None]
    out += [f"<image:image>{tag('image:loc', i)}</image:image>" for i in row["images"] or ()]
    for link in row["alternates"] or ():
        lang, href = quoteattr(link["lang"]), quoteattr(link["href"])
        out.append(f'<xhtml:link rel="alternate" hreflang={lang} href={href}/>')
    for video in row["video"] or ():
        out.append("<video:video>")
        for name in VIDEO:
            value = video[name]
            attribute = ""
            if name in ATTRIBUTES:
                attribute_name, column = ATTRIBUTES[name]
                if value is None:
                    video[column] = None
                if video[column] is not None:
                    attribute = f" {attribute_name}={quoteattr(video[column])}"
            if name == "tags":
                out += [tag("video:tag", one) for one in value or ()]
            elif value is not None:
                out.append(tag(f"video:{name}", value, attribute))
        out.append("</video:video>")
    if row["news"] is not None:
        n = row["news"]
        out.append("<news:news><news:publication>")
        out += [tag(f"news:{k}", n[k]) for k in ("name", "language") if n[k] is not None]
        out.append("</news:publication>")
        out += [tag(f"news:{k}", n[k]) for k in NEWS[2:] if n[k] is not None]
        out.append("</news:news>")
    return "".join([*out, "</url>"])


def document(rows: list[str], joiner: str = "\n") -> bytes:
    names = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in EXTENSIONS.items())
    body = joiner.join(rows)
    return f'<?xml version="1.0"?>\n<urlset xmlns="{NS}" {names}>{body}</urlset>'.encode()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(row, max_size=6), zipped=st.booleans())
def test_what_was_written_comes_back(
    rows: list[dict[str, Any]], zipped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = document([write_row(row) for row in rows])
    path = tmp_path_factory.mktemp("round") / ("s.xml.gz" if zipped else "s.xml")
    path.write_bytes(gzip.compress(data) if zipped else data)
    table = urlset.read(path).read_all()
    got = table.drop_columns(["lastmod_text", "shard"]).to_pylist()
    wanted = [{**row, "lastmod": row["lastmod"] and row["lastmod"].replace(tzinfo=UTC)}
              for row in rows]  # fmt: skip
    assert got == wanted
    texts = [row["lastmod"] and row["lastmod"].isoformat() + "Z" for row in rows]
    assert table["lastmod_text"].to_pylist() == texts
    assert table["shard"].to_pylist() == [path.name] * len(rows)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Three files, not in the order of their size, 100,000 rows."""
    root = tmp_path / "site"
    root.mkdir()
    names = []
    for shard, count in enumerate([50_000, 1, 49_999]):
        rows = [f"<url><loc>https://www.shop.example/{shard}/{n}</loc><lastmod>2026-01-02</lastmod>"
                f"<priority>0.5</priority></url>" for n in range(count)]  # fmt: skip
        name = f"s{shard}.xml.gz"
        (root / name).write_bytes(gzip.compress(document(rows), 1))
        names.append(f"<sitemap><loc>https://www.shop.example/{name}</loc></sitemap>")
    index = f'<sitemapindex xmlns="{NS}">{"".join(names)}</sitemapindex>'
    (root / "sitemap.xml").write_text(index)
    return root


def test_order_is_that_of_the_files(site: Path) -> None:
    locs = urlset.read(site, threads=3).read_all()["loc"].to_pylist()
    wanted = [f"https://www.shop.example/{s}/{n}" for s, c in enumerate([50_000, 1, 49_999])
              for n in range(c)]  # fmt: skip
    assert locs == wanted


def test_any_library_takes_the_stream(site: Path) -> None:
    assert pl.DataFrame(urlset.read(site)).height == 100_000
    stream = pa.RecordBatchReader.from_stream(urlset.read(site))  # noqa: F841 - DuckDB finds it
    newest = duckdb.sql("select count(*), max(lastmod)::varchar from stream").fetchall()
    assert newest[0][0] == 100_000
    assert len(pa.table(urlset.read(site)).to_pandas()) == 100_000
    assert (
        pd.Timestamp("2026-01-02", tz="UTC") == urlset.read(site).read_all()["lastmod"][0].as_py()
    )


def test_a_stream_that_is_dropped_stops(site: Path) -> None:
    rows = urlset.read(site)
    next(iter(rows))
    rows.close()


def run(*args: object) -> subprocess.CompletedProcess[bytes]:
    code = "from urlset.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, timeout=120
    )


def test_formats(site: Path, tmp_path: Path) -> None:
    for suffix in ("parquet", "csv", "jsonl", "arrow"):
        done = run("read", site, "-o", tmp_path / f"rows.{suffix}")
        assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "rows.parquet")
    assert table.equals(urlset.read(site).read_all())
    assert pa.ipc.open_file(tmp_path / "rows.arrow").read_all().equals(table)
    with (tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["loc"] for row in rows] == table["loc"].to_pylist()
    assert rows[0]["lastmod"] == "2026-01-02T00:00:00Z"
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert json.loads(lines[-1]) == {
        "loc": "https://www.shop.example/2/49998", "lastmod": "2026-01-02T00:00:00Z",
        "lastmod_text": "2026-01-02", "priority": 0.5, "shard": "s2.xml.gz",
    }  # fmt: skip
    out = run("read", site, "-o", "-", "--format", "csv").stdout
    assert out == (tmp_path / "rows.csv").read_bytes()
    assert run("read", site, "-o", "x.xlsx").returncode == 2
    assert run("read", site, "-o", "/nowhere/x.csv").returncode == 3
    assert [p.name for p in tmp_path.glob(".rows*")] == []


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "arrow"])
def test_a_stdout_that_takes_nothing(site: Path, kind: str) -> None:
    command = [sys.executable, "-c", "from urlset.cli import main; main()", "read", str(site)]
    command += ["-o", "-", "--format", kind]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 3
    assert done.stderr.endswith(b"stdout: No space left on device [output.unwritable]\n")
    assert done.stderr.count(b"\n") == 1
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert child.wait(120) == 3
    assert said.endswith(b"Broken pipe [output.unwritable]\n") and said.count(b"\n") == 1


def test_nested_columns_are_json_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "s.xml"
    row = {"loc": "https://a.example/x", "lastmod": None, "changefreq": None, "priority": None,
           "images": ['https://a.example/"1",2'], "alternates": [{"lang": "de", "href": "h"}],
           "video": None, "news": None}  # fmt: skip
    path.write_bytes(document([write_row(row)]))
    out = run("read", path, "-o", "-", "-q").stdout.decode()
    (got,) = csv.DictReader(io.StringIO(out))
    assert json.loads(got["images"]) == row["images"]
    assert json.loads(got["alternates"]) == row["alternates"]


def test_damage_is_an_error_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.xml"
    path.write_bytes(
        document(["<url><loc>https://a.example/1</loc></url>",
                  "<url><loc>https://a.example/2</lok></url>",
                  "<url><loc>https://a.example/3</loc><lastmod>soon</lastmod></url>",
                  "<url><lastmod>2026-01-01</lastmod></url>"])
    )  # fmt: skip
    with pytest.raises(urlset.InputError) as error:
        urlset.read(path).read_all()
    assert error.value.code == "xml.mismatch"
    assert "s.xml: line 3" in str(error.value)
    table = urlset.read(path, lenient=True).read_all()
    assert table["loc"].to_pylist() == ["https://a.example/1", "https://a.example/3"]
    assert table["lastmod"].to_pylist() == [None, None]
    assert table["lastmod_text"].to_pylist() == [None, "soon"]
    done = run("read", path, "-o", tmp_path / "x.parquet")
    assert done.returncode == 3 and done.stderr.count(b"\n") == 1
    assert not (tmp_path / "x.parquet").exists()


def test_a_missing_file_of_an_index_is_an_error(site: Path) -> None:
    (site / "s1.xml.gz").unlink()
    with pytest.raises(urlset.InputError) as error:
        urlset.read(site)
    assert error.value.code == "index.missing_file"
    assert urlset.read(site, lenient=True).read_all().num_rows == 99_999


def test_text_sitemaps(tmp_path: Path) -> None:
    path = tmp_path / "urls.txt"
    path.write_bytes(b"\xef\xbb\xbfhttps://a.example/1\r\n\r\n https://a.example/2 ")
    locs = urlset.read(path).read_all()["loc"].to_pylist()
    assert locs == ["https://a.example/1", "https://a.example/2"]
