"""Inputs of real users: lists of URLs, compressed files, files without a table, unusual headers,
encodings, folders with other files, and objects of Python."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import random
import sqlite3
import subprocess
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import urlset as package
import zstandard
from conftest import SITE, read_set, urlset
from urlset import ConfigError, DataError, InputError

URLS = [f"{SITE}/p/{i}" for i in range(500)]
LIST = "\n".join(URLS) + "\n"
CSV = "url\n" + LIST
JSONL = "".join(json.dumps({"url": url}) + "\n" for url in URLS)

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
#: two files one after the other, as these formats allow
TWICE = {ending: pack for ending, pack in PACK.items() if ending}


def locs(source: object, out: Path, **options: object) -> list[str]:
    options = {"max_shrink": "100%", "max_rejects": "90%", **options}
    package.build(source, site=SITE, out=out, **options)
    return [entry["loc"] for entry in read_set(out)]


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize(("name", "text"), [("c.csv", CSV), ("c.txt", LIST), ("c.jsonl", JSONL)])
def test_packed_files(tmp_path: Path, out: Path, name: str, text: str, packing: str) -> None:
    data = PACK[packing](text.encode())
    for path in (tmp_path / f"{name}{packing}", tmp_path / name, tmp_path / "noname"):
        path.write_bytes(data)
        assert locs(path, out) == URLS, path
    ended = urlset("build", "-", "--site", SITE, "--out", out, input=data)
    assert ended.status == 0, ended
    assert [entry["loc"] for entry in read_set(out)] == URLS


@pytest.mark.parametrize("packing", TWICE)
@pytest.mark.parametrize(("name", "text"), [("c.csv", CSV), ("c.txt", LIST), ("c.jsonl", JSONL)])
def test_packed_files_of_several_parts_and_cut_ones(
    tmp_path: Path, out: Path, name: str, text: str, packing: str
) -> None:
    path = tmp_path / f"{name}{packing}"
    pack, middle = PACK[packing], text.index("\n", len(text) // 2) + 1
    parts = [pack(text[:middle].encode()), pack(text[middle:].encode())]
    path.write_bytes(b"".join(parts))
    assert locs(path, out) == URLS
    for cut in (1, 9, len(parts[1]) // 2):
        path.write_bytes(b"".join(parts)[:-cut])
        ended = urlset("build", path, "--site", SITE, "--out", tmp_path / "cut")
        assert (ended.status, ended.err.count("\n")) == (3, 1), (cut, ended)
        assert not list((tmp_path / "cut").glob("*.xml*"))


def test_an_xz_file_cannot_ask_for_any_memory(tmp_path: Path, out: Path) -> None:
    """A window of 3 GiB, which the file declares and does not need."""
    packed = lzma.compress(CSV.encode(), filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}])
    # the header of the block is at offset 12; it contains the window and ends with a CRC
    size = (packed[12] + 1) * 4
    head = bytearray(packed[12 : 12 + size])
    head[head.index(b"\x21\x01") + 2] = 39
    head[-4:] = zlib.crc32(bytes(head[:-4])).to_bytes(4, "little")
    for name in ("c.csv.xz", "c.jsonl.xz"):
        (tmp_path / name).write_bytes(packed[:12] + bytes(head) + packed[12 + size :])
        ended = urlset("build", tmp_path / name, "--site", SITE, "--out", out)
        assert (ended.status, ended.err.count("\n")) == (3, 1), ended
        assert "[input.damaged]" in ended.err


def lines_of(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, and their numbers, by Python's own reader."""
    lines = io.StringIO(text.removeprefix("\ufeff"), newline=None).read().split("\n")
    return [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("seed", range(3))
def test_lists_against_a_slow_model(tmp_path: Path, out: Path, end: str, seed: int) -> None:
    """Order and numbers of rows are correct across blocks, for lines of any content."""
    dice = random.Random(seed)
    lines = []
    for i in range(60_000):
        lines.append(
            dice.choices(
                [f"{SITE}/{i}", "", "  ", f'{SITE}/"{i},a;b|c"', f'ftp://x.example/"{i}', "\t",
                 f"{SITE}/{i}?q={'x' * dice.randrange(200)}"],
                [20, 1, 1, 3, 1, 1, 10],
            )[0]
        )  # fmt: skip
    mark = dice.choice(["", "\ufeff"])
    text = mark + end.join(lines) + dice.choice(["", end, end * 3])
    path = tmp_path / "urls.txt"
    path.write_bytes(text.encode())
    wanted = lines_of(text)
    good = [line for _, line in wanted if not line.startswith("ftp")]
    report = package.build(path, site=SITE, out=out, format="lines", max_rejects="50%")
    assert report.rows == len(wanted) and report.urls == len(good)
    assert [e["loc"] for e in read_set(out)] == [line.replace('"', "%22").replace("|", "%7C")
                                                 for line in good]  # fmt: skip
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        rejected = [(int(row["row"]), row["value"]) for row in csv.DictReader(file)]
    assert rejected == [(number, line) for number, line in wanted if line.startswith("ftp")]


def test_a_list_is_told_from_a_table(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "x.txt"
    for text, format in (
        ("url\nhttps://www.shop.example/1\n", "csv"),
        ("loc\tlastmod\nhttps://www.shop.example/1\t2024-01-01\n", "csv"),
        ("https://www.shop.example/1", "lines"),
        ("\n\nhttps://www.shop.example/1\n", "lines"),
        ("HTTPS://www.shop.example/1,2.html\nhttps://www.shop.example/2\n", "lines"),
    ):
        path.write_text(text)
        report = package.build(path, site=SITE, out=out, max_shrink="100%")
        assert report.mapping["loc"] == ("loc" if format == "lines" or "loc" in text else "url")
        assert report.urls == len([w for w in text.split() if w.lower().startswith("https")])
    # rows of cells without a header are not published as URLs with commas
    path.write_text(
        "https://www.shop.example/1,2024-01-01\nhttps://www.shop.example/2,2024-01-01\n"
    )
    with pytest.raises(ConfigError, match="--format lines") as caught:
        package.build(path, site=SITE, out=out)
    assert caught.value.code == "column.missing"
    # relative URLs are a list only with the option
    path.write_text("/p/1\n/p/2\n")
    assert locs(path, out, format="lines") == [f"{SITE}/p/1", f"{SITE}/p/2"]
    # and a list whose name is that of a table
    (tmp_path / "x.csv").write_text(LIST)
    with pytest.raises(ConfigError, match="--format lines"):
        package.build(tmp_path / "x.csv", site=SITE, out=out)


def test_a_list_that_comes_in_drops(tmp_path: Path, out: Path) -> None:
    """The lines determine the format, not the first part that a pipe returns."""
    for text, status in ((LIST, 0), (LIST.replace("\n", ",2024-01-01\n"), 2)):
        child = subprocess.Popen(
            [sys.executable, "-m", "urlset", "build", "-", "--site", SITE, "--out", str(out)],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert child.stdin is not None
        for part in (text[:17], text[17:40], text[40:]):
            child.stdin.write(part.encode())
            child.stdin.flush()
            time.sleep(0.3)
        said = child.communicate(timeout=60)[1]
        assert (child.returncode, said.count(b"\n")) == (status, status // 2), said


def test_rows_of_a_list_that_are_no_text(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(f"{SITE}/1\n\n".encode() + b"https://www.shop.example/\xfc\n"
                     b"https://www.shop.example/a\0b\n" + f"{SITE}/2".encode())  # fmt: skip
    assert locs(path, out) == [f"{SITE}/1", f"{SITE}/2"]
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        rejected = [(row["row"], row["code"]) for row in csv.DictReader(file)]
    assert rejected == [("3", "row.not_utf8"), ("4", "row.nul")]
    assert locs(path, out, encoding="latin-1")[1] == f"{SITE}/%C3%BC"
    path.write_bytes(b"")
    with pytest.raises(InputError) as caught:
        package.build(path, site=SITE, out=out, format="lines")
    assert caught.value.code == "input.empty"
    path.write_bytes(b"\n \r\n")
    with pytest.raises(DataError) as none:
        package.build(path, site=SITE, out=out, format="lines")
    assert none.value.code == "rows.none"
    path.write_bytes(b"https://www.shop.example/" + b"a" * (17 << 20))
    with pytest.raises(InputError) as long:
        package.build(path, site=SITE, out=out)
    assert long.value.code == "lines.too_long"


def test_duplicates_of_a_list_are_named_by_their_line(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(f"{SITE}/1\n\n\n{SITE}/2\n{SITE}/1\n")
    with pytest.raises(DataError, match="row 5"):
        package.build(path, site=SITE, out=out, duplicates="fail")


def _orc() -> bytes:
    sink = io.BytesIO()
    pa.orc.write_table(pa.table({"url": URLS}), sink)
    return sink.getvalue()


def _zip(*names: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, CSV)
    return sink.getvalue()


def _tar() -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as file:
        entry = tarfile.TarInfo("c.csv")
        entry.size = len(CSV)
        file.addfile(entry, io.BytesIO(CSV.encode()))
    return sink.getvalue()


def _sqlite(folder: Path) -> bytes:
    with sqlite3.connect(folder / "x.db") as base:
        base.execute("create table t (url text)")
    return (folder / "x.db").read_bytes()


def _duckdb(folder: Path) -> bytes:
    with duckdb.connect(str(folder / "x.duckdb")) as base:
        base.execute("create table t (url text)")
    return (folder / "x.duckdb").read_bytes()


FOREIGN: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "xlsx": (lambda _: _zip("[Content_Types].xml", "xl/workbook.xml"), "Excel workbook (.xlsx)"),
    "zip": (lambda _: _zip("c.csv"), "zip archive"),
    "xls": (lambda _: bytes.fromhex("d0cf11e0a1b11ae1") + bytes(504), "(.xls)"),
    "tar.gz": (lambda _: _tar(), "tar archive"),
    "7z": (lambda _: b"7z\xbc\xaf\x27\x1c\0\4" + bytes(50), "7z archive"),
    "pdf": (lambda _: b"%PDF-1.7\n%\xe2\xe3", "PDF"),
    "html": (lambda _: b"\n<!doctype HTML><html><body>Log in", "HTML page"),
    "json": (lambda _: json.dumps([{"url": url} for url in URLS]).encode(), "one JSON array"),
    "avro": (lambda _: b"Obj\x01\x04\x16avro.schema", "Avro"),
    "orc": (lambda _: _orc(), "ORC"),
    "sqlite": (_sqlite, "SQLite"),
    "duckdb": (_duckdb, "DuckDB"),
    "sitemap": (
        lambda _: (
            b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        ),
        "urlset read",
    ),
    "gz.gz": (lambda _: gzip.compress(gzip.compress(CSV.encode())), "compressed twice"),
    "png": (lambda _: b"\x89PNG\r\n\x1a\n" + bytes(30), "image"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_no_table_is_named(tmp_path: Path, out: Path, kind: str) -> None:
    make, named = FOREIGN[kind]
    data = make(tmp_path)
    for name, args in (
        ("x.csv", ()), ("x.txt", ()), ("x", ()), ("x.csv", ("--format", "csv")),
        ("x", ("--format", "lines")), ("x.jsonl", ()),
    ):  # fmt: skip
        path = tmp_path / name
        path.write_bytes(data)
        ended = urlset("build", path, "--site", SITE, "--out", out, *args)
        assert (ended.status, ended.err.count("\n")) == (3, 1), (name, ended)
        assert named in ended.err and "[input.format]" in ended.err, (name, ended)
        assert str(path) in ended.err
    ended = urlset("build", "-", "--site", SITE, "--out", out, input=data)
    assert ended.status == 3 and named in ended.err and "[input.format]" in ended.err
    assert not out.exists() or not list(out.glob("*.xml*"))


def test_parquet_on_standard_input(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"url": URLS}), path, row_group_size=100)
    for args in ((), ("--format", "parquet")):
        command = [sys.executable, "-m", "urlset", "build", "-", "--site", SITE, "--out", str(out)]
        with path.open("rb") as file:  # a file, then a pipe
            assert subprocess.run([*command, *args], stdin=file, check=False).returncode == 0
        assert [entry["loc"] for entry in read_set(out)] == URLS
        ended = urlset(*command[3:], *args, input=path.read_bytes())
        assert ended.status == 0, ended
        ended = urlset(*command[3:], *args, input=path.read_bytes()[:-9])
        assert (ended.status, ended.err.count("\n")) == (3, 1), ended
    wrong = urlset(*command[3:], "--format", "csv", input=path.read_bytes())
    assert wrong.status == 3 and "Parquet" in wrong.err
    for name in ("c.csv", "c"):  # the content takes precedence over the name
        (tmp_path / name).write_bytes(path.read_bytes())
        assert locs(tmp_path / name, out) == URLS


@pytest.mark.parametrize(
    "first", ["sep=;\n", "sep=;\r\n", "SEP=;\r", '"sep=;"\n', "\ufeffsep=;\r\n", "sep=|\n"]
)
def test_the_delimiter_that_excel_is_told(tmp_path: Path, out: Path, first: str) -> None:
    """A header with more commas than delimiters looks like one with commas as delimiters."""
    d = "|" if "|" in first else ";"
    path = tmp_path / "x.csv"
    text = f"{first}url{d}a,b,c\n{SITE}/1{d}1\n{SITE}/2{d}2\n"
    path.write_text(text, newline="")
    assert locs(path, out) == [f"{SITE}/1", f"{SITE}/2"]
    path.write_bytes(text.removeprefix("\ufeff").encode("utf-16"))
    assert locs(path, out) == [f"{SITE}/1", f"{SITE}/2"]


@pytest.mark.parametrize(
    "name", ["Product URL", "Product-URL", "product  url", " URL ", "LOC", "Loc", "PRODUCT_URL",
             "Canonical Url", "Link"]
)  # fmt: skip
def test_columns_are_found_however_they_are_spelled(tmp_path: Path, out: Path, name: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"id,{name},Last Modified\n1,{SITE}/1,2024-01-01\n")
    package.build(path, site=SITE, out=out)
    assert read_set(out) == [{"loc": f"{SITE}/1", "lastmod": "2024-01-01"}]
    table = pa.table({"id": [1], name: [f"{SITE}/1"]})
    assert locs(table, out) == [f"{SITE}/1"]
    pq.write_table(table, tmp_path / "x.parquet")
    assert locs(tmp_path / "x.parquet", out) == [f"{SITE}/1"]


def test_two_spellings_of_one_column_are_ambiguous(tmp_path: Path, out: Path) -> None:
    for header in ("Product URL,product_url", "url,LINK", "url,URL"):
        (tmp_path / "x.csv").write_text(f"{header}\n{SITE}/1,{SITE}/2\n")
        with pytest.raises(ConfigError, match="--loc COLUMN") as caught:
            package.build(tmp_path / "x.csv", site=SITE, out=out)
        assert caught.value.code == "column.ambiguous"


@pytest.mark.parametrize(
    "label",
    ["utf-16-le", "utf_16_le", "UTF-16LE", "utf-16-be", "utf_16_be", "utf-16", "utf_8_sig",
     "mac_roman", "cp1252", "latin1", "latin_1", "iso8859_15", "cp1250", "koi8_r", "shift_jis",
     "cp932", "euc_jp", "gb2312", "gbk", "big5", "cp949", "euc_kr", "mac_cyrillic", "cp874"],
)  # fmt: skip
def test_encodings_by_the_names_of_python(tmp_path: Path, out: Path, label: str) -> None:
    """The same text, encoded by Python under that name."""
    text = "é"
    for candidate in ("é", "日", "я", "한", "ก"):
        try:
            candidate.encode(label)
        except UnicodeEncodeError:
            continue
        text = candidate
        break
    for format, header in (("csv", "url\n"), ("lines", "")):
        path = tmp_path / f"x.{format}"
        path.write_bytes(f"{header}{SITE}/{text}\n".encode(label))
        [loc] = locs(path, out, encoding=label, format=format)
        escaped = "".join(f"%{byte:02X}" for byte in text.encode())
        assert loc == f"{SITE}/{escaped}", codecs.lookup(label).name


def test_an_encoding_that_is_wrong_is_not_asked_for_again(tmp_path: Path, out: Path) -> None:
    path = tmp_path / "x.csv"
    for header, row in ((b"url", b"/\xfd\xff"), (b"url,\xfd\xff", b"/1,2")):
        path.write_bytes(header + b"\n" + SITE.encode() + row + b"\n")
        ended = urlset("build", path, "--site", SITE, "--out", out, "--encoding", "shift_jis")
        said = ended.err
        rejects = out / ".urlset/rejects.csv"
        said += rejects.read_text() if rejects.exists() else ""
        assert ended.status in (1, 3) and "shift_jis" in said, said
        assert "--encoding" not in said and "name it" not in said and "name the" not in said, said
    ended = urlset("build", path, "--site", SITE, "--out", out, "--encoding", "klingon")
    assert (ended.status, ended.err.count("\n")) == (2, 1) and "config.encoding" in ended.err


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl"])
def test_integers_of_lastmod_name_the_option(tmp_path: Path, out: Path, format: str) -> None:
    path = tmp_path / f"x.{format}"
    frame = pl.DataFrame({"url": URLS[:3], "lastmod": [1_700_000_000, 1_700_000_001, None]})
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[format](
        path
    )
    report = package.build(path, site=SITE, out=out)
    [warning] = [w for w in report.warnings if w.code == "lastmod.invalid"]
    assert "--lastmod-epoch" in warning.message and warning.count == 2
    with pytest.raises(package.RejectLimitError):
        package.build(path, site=SITE, out=out, on_bad_field="reject")
    assert "--lastmod-epoch seconds" in (out / ".urlset/rejects.csv").read_text()


def test_files_in_a_folder_that_are_no_data(tmp_path: Path, out: Path) -> None:
    folder = tmp_path / "in"
    others = {
        "README.md": "# about", ".DS_Store": "x", "_SUCCESS": "", "schema.json": '{"type": "x"}',
        "a.csv.crc": "crc", "logo.png": "\x89PNG", "LICENSE": "MIT", "sub/notes.html": "<html>",
        ".git/config": "x", "README.txt": "hello",
    }  # fmt: skip
    for name, text in others.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "a.csv").write_text(f"url\n{SITE}/1\n")
    (folder / "sub" / "b.csv.gz").write_bytes(gzip.compress(f"url\n{SITE}/2\n".encode()))
    for options in ({}, {"format": "csv"}):
        report = package.build(folder, site=SITE, out=out, **options)
        assert [entry["loc"] for entry in read_set(out)] == [f"{SITE}/1", f"{SITE}/2"]
        [warning] = [w for w in report.warnings if w.code == "input.skipped"]
        assert warning.count == 10
        for name in others:
            assert name.replace(".git/config", ".git/") in warning.message
    ended = urlset("build", folder, "--site", SITE, "--out", out)
    assert ended.status == 0 and "README.md" in ended.out and "[input.skipped]" in ended.out


PROSE = "Exported on Monday, by Anna.\nPrices are net, without tax.\nSee https://x.example.\n"


@pytest.mark.parametrize("text", [PROSE, "nothing here\n", "first,\nsecond line\nthird; a\n"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("options", [{}, {"format": "csv"}, {"loc": "url"}])
def test_a_text_in_a_folder_that_is_no_data(
    tmp_path: Path, out: Path, text: str, packed: bool, options: dict[str, str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text(f"url\n{SITE}/1\n")
    notes = folder / ("notes.txt.gz" if packed else "notes.txt")
    notes.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    report = package.build(folder, site=SITE, out=out, **options)
    assert [entry["loc"] for entry in read_set(out)] == [f"{SITE}/1"]
    [warning] = [w for w in report.warnings if w.code == "input.skipped"]
    assert warning.count == 1 and notes.name in warning.message
    # a file that the user names is an input
    for source in (notes, [folder / "a.csv", notes], str(folder / "*")):
        with pytest.raises(package.ConfigError) as caught:
            package.build(source, site=SITE, out=out, **options)
        assert caught.value.code == "column.missing"


@pytest.mark.parametrize(
    ("text", "urls", "code"),
    [
        (f"id\turl\n1\t{SITE}/2\n", 2, None),
        (f"{SITE}/2\n{SITE}/3\n", None, "input.mixed"),
        ("url\n/2\n/3\n", 3, None),
        ("url\n", 1, None),
        ("id\taddress\n1\tx\n2\ty\n", None, "column.missing"),
        (f"address\n{SITE}/2\n", None, "column.missing"),
        ("/2\n/3\n", None, "column.missing"),
    ],
)
def test_a_text_in_a_folder_that_is_data(
    tmp_path: Path, out: Path, text: str, urls: int | None, code: str | None
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text(f"url\n{SITE}/1\n")
    (folder / "b.txt").write_text(text)
    try:
        report = package.build(folder, site=SITE, out=out)
    except package.Error as error:
        assert error.code == code
    else:
        assert (report.urls, code) == (urls, None)
        assert not [w for w in report.warnings if w.code == "input.skipped"]


def test_folders_without_endings_of_data(tmp_path: Path, out: Path) -> None:
    """The files that Hadoop and Spark write."""
    for number, (name, write) in enumerate(
        [
            ("part-0000", lambda path: path.write_text(CSV)),
            ("part-0000.json", lambda path: path.write_text(JSONL)),
            ("000000_0", lambda path: pq.write_table(pa.table({"url": URLS}), path)),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder / name)
        (folder / "_SUCCESS").touch()
        (folder / "README").write_text("about")
        assert locs(folder, out) == URLS, name
    with pytest.raises(InputError, match=r"contains no file with data \(there are README\.md\)"):
        (tmp_path / "none").mkdir()
        (tmp_path / "none" / "README.md").write_text("x")
        package.build(tmp_path / "none", site=SITE, out=out)


def test_partitions_beside_other_files(tmp_path: Path, out: Path) -> None:
    folder = tmp_path / "in" / "country=de"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"url": URLS}), folder / "a.parquet")
    (folder / "README.md").write_text("x")
    assert locs(tmp_path / "in", out, where=["country=de"]) == URLS
    # folders above the input folder contain no columns
    (tmp_path / "url=x").mkdir()
    (tmp_path / "in").rename(tmp_path / "url=x" / "in")
    assert locs(tmp_path / "url=x" / "in", out, where=["country=de"]) == URLS


def _batches() -> list[pa.RecordBatch]:
    return pa.table({"url": URLS}).to_batches(max_chunksize=70)


def test_batches_in_a_list_or_from_a_generator(out: Path) -> None:
    assert locs(_batches(), out) == URLS
    assert locs(iter(_batches()), out) == URLS
    assert locs((batch for batch in _batches()), out) == URLS
    assert locs((pa.Table.from_batches([batch]) for batch in _batches()), out) == URLS
    # the rows of one list are numbered continuously
    bad = [
        pa.record_batch({"url": [f"{SITE}/1", f"{SITE}/2"]}),
        pa.record_batch({"url": ["ftp://x"]}),
    ]
    locs(bad, out)
    assert ",3," in (out / ".urlset/rejects.csv").read_text()

    def broken() -> Iterator[pa.RecordBatch]:
        yield _batches()[0]
        raise RuntimeError("the cursor is gone")

    with pytest.raises(InputError, match="the cursor is gone"):
        package.build(broken(), site=SITE, out=out)


class Frame:
    """An object of an unknown type."""


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: URLS, "pyarrow.table({'loc': urls})"),
    (lambda: tuple(URLS), "pyarrow.table({'loc': urls})"),
    (lambda: iter(URLS), "pyarrow.table({'loc': list(urls)})"),
    (lambda: ({"url": url} for url in URLS), "Table.from_pylist"),
    (lambda: set(URLS), "pyarrow.table({'loc': sorted(urls)})"),
    (lambda: {"url": URLS}, "pyarrow.table(columns)"),
    (lambda: [{"url": url} for url in URLS], "pyarrow.table(columns)"),
    (lambda: duckdb.connect(), "con.sql('select"),
    (lambda: pl.Series(URLS), "to_frame('loc')"),
    (lambda: pd.Series(URLS), "to_frame('loc')"),
    (lambda: pl.LazyFrame({"url": URLS}), ".collect()"),
    (lambda: pa.array(URLS), "pyarrow.table"),
    (lambda: pa.chunked_array([URLS]), "pyarrow.table({'loc': array})"),
    (lambda: np.array(URLS), "pyarrow.table"),
    (lambda: io.BytesIO(CSV.encode()), "the path of the file"),
    (lambda: CSV.encode(), "the path of a file"),
    (lambda: sqlite3.connect(":memory:"), "pandas.read_sql"),
    (lambda: Frame(), "__arrow_c_stream__"),
    (lambda: Frame, "not its class"),
    (lambda: 5, "__arrow_c_stream__"),
    (lambda: None, "__arrow_c_stream__"),
    (lambda: [None], "__arrow_c_stream__"),
    (lambda: iter([]), "is empty"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_objects_that_give_no_rows_say_what_to_pass(out: Path, number: int) -> None:
    make, says = WRONG[number]
    with pytest.raises(ConfigError) as caught:
        package.build(make(), site=SITE, out=out)
    assert caught.value.code == "config.input" and says in str(caught.value), caught.value
    assert "\n" not in str(caught.value) and not out.exists()


@pytest.mark.parametrize("text", [CSV, LIST, JSONL], ids=["csv", "lines", "jsonl"])
def test_a_look_at_standard_input(tmp_path: Path, text: str) -> None:
    for data in (text.encode(), gzip.compress(text.encode())):
        ended = urlset("init", "-", "--force", cwd=tmp_path, input=data)
        assert ended.status == 0, ended
        assert f"<loc>{URLS[0]}</loc>" in ended.out and f'site = "{SITE}"' in ended.out
    (tmp_path / "urls.txt").write_text(LIST)
    assert urlset("init", "urls.txt", "--force", cwd=tmp_path).status == 0
    assert urlset("build", cwd=tmp_path).status == 0
    assert len(read_set(tmp_path / "sitemaps")) == len(URLS)
