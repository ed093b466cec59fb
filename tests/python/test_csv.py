"""CSV files as shops export them."""

from __future__ import annotations

import csv
import gzip
import io
import os
import threading
from pathlib import Path

import pytest
import zstandard
from conftest import SITE, Ended, read_set, urlset

ROWS = [f"{SITE}/küche/{i}" for i in range(1, 4)]
ENCODED = [f"{SITE}/k%C3%BCche/{i}" for i in range(1, 4)]


def build(data: bytes, out: Path, *args: object, name: str = "c.csv") -> Ended:
    path = out.parent / name
    path.write_bytes(data)
    return urlset("build", path, "--site", SITE, "--out", out, *args)


def locs(out: Path) -> list[str]:
    return [entry["loc"] for entry in read_set(out)]


def rejects(out: Path) -> list[tuple[str, str, str]]:
    with (out / ".urlset/rejects.csv").open(newline="") as file:
        return [(r["row"], r["column"], r["code"]) for r in csv.DictReader(file)]


def text(end: str = "\n", delimiter: str = ",") -> str:
    return "".join(f"{url}{delimiter}x{end}" for url in ["url", *ROWS])


@pytest.mark.parametrize(
    ("data", "args"),
    [
        (b"\xef\xbb\xbf" + text().encode(), ()),
        (text().encode("utf-16"), ()),
        (b"\xfe\xff" + text().encode("utf-16-be"), ()),
        (b"\xff\xfe" + text().encode("utf-16-le"), ("--encoding", "utf-16")),
        (b"\xfe\xff" + text().encode("utf-16-be"), ("--encoding", "utf-16")),
        (text().encode("utf-16-le"), ("--encoding", "utf-16le")),
        (text().encode("utf-16-be"), ("--encoding", "utf-16be")),
        (text().encode("latin-1"), ("--encoding", "latin-1")),
        (text().encode("cp1252"), ("--encoding", "windows-1252")),
        (gzip.compress(text().encode(), mtime=0), ()),
        (
            gzip.compress(text()[:50].encode(), mtime=0)
            + gzip.compress(text()[50:].encode(), mtime=0),
            (),
        ),
        (zstandard.compress(text().encode()), ()),
        (gzip.compress(text().encode("utf-16"), mtime=0), ()),
        (text(delimiter=";").encode(), ()),
        (text(delimiter="\t").encode(), ()),
        (text(delimiter="|").encode(), ()),
        (text(delimiter="\t").encode(), ("--delimiter", "tab")),
        (text(delimiter="~").encode(), ("--delimiter", "~")),
        (text(end="\r").encode(), ()),
        (text(end="\r\n").encode(), ()),
        (text().rstrip("\n").encode(), ()),
        (text(end="\r").rstrip("\r").encode(), ()),
        (("\n\r\n" + text(end="\n\n\n", delimiter=";")).encode(), ()),
    ],
)
def test_forms_of_csv(out: Path, data: bytes, args: tuple[str, ...]) -> None:
    ended = build(data, out, *args)
    assert (ended.status, ended.err) == (0, "")
    assert locs(out) == ENCODED


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "latin-1", "shift_jis"])
def test_an_encoding_beyond_the_first_block(out: Path, encoding: str) -> None:
    letters = "ü" if encoding == "latin-1" else "カ"
    rows = [f"{SITE}/{i}/" + letters * (i % 9) for i in range(30_000)]
    data = "\n".join(["url", *rows]).encode(encoding)
    assert build(data, out, "--encoding", encoding.replace("16-", "16")).status == 0
    from urllib.parse import quote

    assert locs(out) == [quote(row, safe=":/") for row in rows]


def test_standard_input(out: Path) -> None:
    ended = urlset("build", "-", "--site", SITE, "--out", out, input=gzip.compress(text().encode()))
    assert (ended.status, ended.err) == (0, "")
    assert locs(out) == ENCODED


def test_a_fifo_without_an_ending(tmp_path: Path, out: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(text().encode(),))
    writer.start()
    ended = urlset("build", fifo, "--site", SITE, "--out", out)
    writer.join(10)
    assert (ended.status, ended.err) == (0, "")
    assert locs(out) == ENCODED


def test_one_column_and_blank_lines(out: Path) -> None:
    data = f'url\n\n{SITE}/1\n\r\n""\n{SITE}/2\n\n'.encode()
    assert build(data, out, "--max-rejects", "1").status == 0
    assert locs(out) == [f"{SITE}/1", f"{SITE}/2"]
    assert rejects(out) == [("2", "url", "loc.empty")]


def test_quotes(out: Path) -> None:
    data = (
        f'url,name\n{SITE}/1,Monitor 27" IPS\n{SITE}/2,a"b"c\n'
        f'"{SITE}/3","line\nbreak, ""quoted"""\n{SITE}/4,"""\r\n"""\n"{SITE}/5?""",x\n'
    )
    assert build(data.encode(), out).status == 0
    assert locs(out) == [f"{SITE}/{n}" for n in ("1", "2", "3", "4", "5?%22")]
    with io.StringIO(data, newline="") as file:
        assert len(list(csv.reader(file))) == 6


@pytest.mark.parametrize(
    ("rows", "code", "row"),
    [
        (f'{SITE}/1,x\n{SITE}/2,"a" b\n{SITE}/3,c\n', "csv.after_quote", 2),
        (f'{SITE}/1,x\n{SITE}/2,"a\n{SITE}/3,c\n', "csv.unclosed_quote", 2),
        (f'{SITE}/1,"\n\n\n"\n\n"{SITE}/2', "csv.unclosed_quote", 2),
        (f"{SITE}/1,x\n{SITE}/2,{'x' * (1 << 20)}y\n", "csv.cell_too_long", 2),
        (f'{SITE}/1,x\n{SITE}/2,"{"x" * (1 << 20)}y"\n', "csv.cell_too_long", 2),
        (f'{SITE}/1,x\n{SITE}/2,"{"x" * (60 << 20)}"\n', "csv.cell_too_long", 2),
        (f"{SITE}/1,x\n{SITE}/2,{'x' * (60 << 20)}\n", "csv.cell_too_long", 2),
    ],
)
def test_what_ends_the_run(out: Path, rows: str, code: str, row: int) -> None:
    ended = build(f"url,name\n{rows}".encode(), out)
    assert ended.status == 3
    assert ended.err.count("\n") == 1 and len(ended.err) < 500
    assert f"row {row}:" in ended.err and f"[{code}]" in ended.err
    assert not list(out.glob("*.xml*"))


def test_the_row_of_a_fault_far_into_the_file(out: Path) -> None:
    rows = [
        f'{SITE}/{i},"x ""{i}""\n27"\n' if i % 2 else f'{SITE}/{i},27"\n' for i in range(50_000)
    ]
    data = "url,name\n" + "".join(rows) + f'{SITE}/x,"a" b\n'
    ended = build(data.encode(), out)
    assert ended.status == 3 and "row 50001:" in ended.err


@pytest.mark.parametrize("quote", ["", '"'])
def test_max_cell_is_exact(out: Path, quote: str) -> None:
    for length, status in ((1000, 0), (1001, 3)):
        data = f"url,name\n{SITE}/1,{quote}{'x' * length}{quote}\n".encode()
        assert build(data, out, "--max-cell", "1000").status == status


def test_rows_that_are_rejected_one_by_one(out: Path) -> None:
    data = (
        b"url,name\n" + f"{SITE}/1,ok\n{SITE}/2\n{SITE}/3,a,b\n".encode() + b"\xff\xfe,x\n"
        + f"{SITE}/5,".encode() + b"\xc3\x28\n" + f"{SITE}/6,a\0b\n{SITE}/7,ok\n".encode()
    )  # fmt: skip
    assert build(data, out, "--max-rejects", "5").status == 0
    assert locs(out) == [f"{SITE}/1", f"{SITE}/7"]
    assert rejects(out) == [
        ("2", "", "row.ragged"), ("3", "", "row.ragged"), ("4", "", "row.not_utf8"),
        ("5", "", "row.not_utf8"), ("6", "", "row.nul"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"", 3, "input.empty"),
        (b"\n\r\n\n", 3, "input.empty"),
        (b"\xef\xbb\xbf", 3, "input.empty"),
        (b"url,name\n", 1, "rows.none"),
        (b"url,name", 1, "rows.none"),
        (b"a,b\n1,2\n", 2, "column.missing"),
        (b"url,link\n1,2\n", 2, "column.ambiguous"),
        (b"url,url\n1,2\n", 2, "column.ambiguous"),
        (b'"url\n', 3, "csv.unclosed_quote"),
        (b'"url"x,y\n', 3, "csv.after_quote"),
        (text().encode("utf-16-le"), 3, "csv.encoding"),
        (b"\xfcrl,x\n", 3, "csv.encoding"),
        (b"x" * (3 << 20), 3, "csv.cell_too_long"),
        (b"url," * 20_000 + b"x\n", 3, "csv.header"),
        (gzip.compress(text().encode() * 3, mtime=0)[:-30], 3, "input.truncated"),
        (gzip.compress(text().encode() * 3, mtime=0)[:-3], 3, "input.truncated"),
        (gzip.compress(text().encode(), mtime=0) + b"junk" * 9, 3, "input.damaged"),
        (zstandard.compress(text().encode() * 3)[:-5], 3, "input.truncated"),
        (b"\x1f\x8b", 3, None),
        (b"\x28\xb5\x2f\xfd", 3, None),
    ],
)  # fmt: skip
def test_files_that_are_none(out: Path, data: bytes, status: int, code: str | None) -> None:
    ended = build(data, out)
    assert (ended.status, ended.err.count("\n")) == (status, 1), ended.err
    assert ended.err.startswith("urlset: error: ")
    assert code is None or f"[{code}]" in ended.err
    assert not list(out.glob("*.xml*"))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_an_archive_cut_anywhere_is_never_taken_as_whole(out: Path, pack) -> None:
    import random

    rows = random.Random(1).sample(range(10**9), 60_000)
    packed = pack("\n".join(["url", *(f"{SITE}/{i}" for i in rows)]).encode())
    for cut in (1, 4, 8, 9, 11, 100, 4096, len(packed) // 2, len(packed) - 40):
        ended = build(packed[:-cut], out)
        assert (ended.status, ended.err.count("\n")) == (3, 1), (cut, ended)
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0x55
    assert build(bytes(damaged), out).status == 3
    assert not list(out.glob("*.xml*"))


def test_many_columns(out: Path) -> None:
    names = ",".join(f"c{i}" for i in range(9_999))
    data = f"{names},url\n{',' * 9_999}{SITE}/1\n"
    assert build(data.encode(), out).status == 0
    assert locs(out) == [f"{SITE}/1"]


def test_two_columns_of_one_name_that_nobody_needs(out: Path) -> None:
    assert build(f"x,url,x\n1,{SITE}/1,2\n".encode(), out).status == 0
    ended = build(f"x,url,x\n1,{SITE}/1,2\n".encode(), out, "--where", "x=1")
    assert ended.status == 2 and "[column.ambiguous]" in ended.err


def test_a_file_whose_name_is_not_utf_8(tmp_path: Path, out: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.csv"
    Path(os.fsdecode(path)).write_text(text())
    for given in (os.fsdecode(path), f"{tmp_path}/*.csv"):
        ended = urlset("build", given, "--site", SITE, "--out", out)
        assert (ended.status, ended.err.count("\n")) == (3, 1), ended
        assert "[input.name]" in ended.err


def test_no_such_file_and_no_permission(tmp_path: Path, out: Path) -> None:
    ended = urlset("build", tmp_path / "none.csv", "--site", SITE, "--out", out)
    assert ended.status == 3 and "No such file" in ended.err and not out.exists()
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "c.csv").write_text("url\n")
    (tmp_path / "c.csv").chmod(0)
    ended = urlset("build", tmp_path / "c.csv", "--site", SITE, "--out", out)
    assert ended.status == 3 and "Permission denied" in ended.err
