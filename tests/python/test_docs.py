"""The examples of README and documentation: each command and each Python block is run.

A block that cannot run here follows a comment with the reason, ``<!-- not run: ... -->``; its
options and keywords are checked all the same. A block after ``<!-- runs with s3 -->`` uses a store
that the test starts. The blocks of a page run in order, in one folder with
the files of :func:`prepare`. A ``text`` block behind a command is its output: every line of it is
compared; a line ``...`` stands for lines that are left out.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import gzip
import json
import os
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet
import pytest
import urlset
from conftest import ROOT, SITE
from store_servers import moto, objects
from urlset.announce.options import AnnounceOptions
from urlset.audit.options import AuditOptions
from urlset.cli import COMMANDS, cli
from urlset.inspect.options import DiffOptions, ReadOptions, VerifyOptions
from urlset.option_table import find_option
from urlset.options import Options

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?:not run: (?P<why>[^>]+)|runs with (?P<server>s3)) -->\n)?"
    r"^```(?P<language>[a-z]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
TABLES: dict[str, type[Any]] = {
    "build": Options, "Job": Options, "verify": VerifyOptions, "read": ReadOptions,
    "audit": AuditOptions, "diff": DiffOptions, "announce": AnnounceOptions, "write": Options,
    "SitemapSink": Options,
}  # fmt: skip
#: options of other programs in the texts
OTHER = {"--additional-python-modules", "--help", "--version", "--install", "--bench", "--rows"}
OTHER |= {"--wide", "--images", "--alternates", "--strace"}  # of the benchmarks
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    why: str | None  # it does not run
    server: str | None  # it runs with a server
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("text"))
        yield Block(match["language"], match["text"], match["why"], match["server"], line)


def commands(text: str) -> Iterator[list[str]]:
    """The words behind each ``urlset`` in a shell script."""
    for line in text.replace("\\\n", " ").splitlines():
        # not posix: a quoted operator stays in its quotes
        lexer = shlex.shlex(line, posix=False, punctuation_chars=True)
        lexer.wordchars += "*{}@=:,!%[]…"
        words = list(lexer)
        while "urlset" in {Path(word).name for word in words}:
            begin = next(n for n, word in enumerate(words) if Path(word).name == "urlset")
            end = next(
                (n for n in range(begin, len(words)) if re.fullmatch(r"[|&;<>()]+", words[n])),
                len(words),
            )
            found = shlex.split(" ".join(words[begin + 1 : end]))
            if found and words[begin - 1] != "-t":  # the name of an image
                yield found
            words = words[end:]


def parse(words: list[str]) -> None:
    """Parses a command with the parser of urlset, and does not run it."""
    if words[0].startswith("-"):
        assert words[0] in ("--version", "--help")
        return
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None, words[0]
    with command.make_context(words[0], words[1:]):
        pass


@every_page
def test_the_commands_have_real_options(page: Path) -> None:
    for block in blocks(page):
        if block.language == "sh":
            for words in commands(block.text):
                try:
                    parse(words)
                except click.ClickException as error:
                    pytest.fail(f"{page.name}:{block.line}: {words}: {error.format_message()}")
        elif block.language in ("", "text"):
            lines = block.text.splitlines()
            assert not [line for line in lines if line.startswith("urlset ")], "write ```sh"


@every_page
def test_every_option_in_a_text_exists(page: Path) -> None:
    known = set(OTHER)
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for param in command.params:
            known |= {*param.opts, *param.secondary_opts}
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    spans = re.findall(
        r"`([^`]+)`", re.sub(r"`(?:cargo|python|pip|pytest|scripts/)[^`]*`", "", text)
    )
    named = {flag for span in spans for flag in re.findall(r"(?<!\S)--[a-z][a-z0-9-]+", span)}
    assert named <= known
    assert not re.findall(r"^    (?:urlset|\$) .*", text, re.MULTILINE), "use a fenced block"


@every_page
def test_the_python_blocks_have_real_names_and_keywords(page: Path) -> None:
    for block in blocks(page):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner, name = ast.unparse(node.func.value), node.func.attr
            if owner == "urlset":
                assert name in urlset.__all__, f"{page.name}: urlset.{name}"
            if owner in ("urlset", "urlset.ray") and name in TABLES:
                given = {each.arg for each in node.keywords if each.arg}
                found = {key for key in given if find_option(TABLES[name], key)}
                assert given - found <= {"source", "config", "on_progress"}, f"{page.name}: {name}"


@every_page
def test_the_toml_blocks_have_real_keys(page: Path) -> None:
    for block in blocks(page):
        if block.language == "toml":
            table = tomllib.loads(block.text)
            for part in [table, *table.pop("set", [])]:
                unknown = [key for key in part if key != "input" and not find_option(Options, key)]
                assert not unknown, f"{page.name}:{block.line}"


def prepare(folder: Path) -> None:
    """The files that the examples read."""
    (folder / "examples").mkdir()
    shutil.copy(ROOT / "examples/catalog.csv", folder / "examples")
    rows = [
        {
            "id": n, "url": f"{SITE}/p/{n}", "slug": f"lamp-{n}", "status": "live", "stock": 5,
            "updated_at": f"2026-10-{n % 28 + 1:02} 10:00:00", "changed": "2026-10-01 08:00",
            "in_stock": n % 20 > 0, "active": True, "title": f"Lamp {n}", "price": n / 4,
            "description": f"A lamp with {n} bulbs",
        }
        for n in range(1, 501)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows)
    for name, url in (
        ("products.parquet", "url"), ("products/1.parquet", "link"), ("exports/1.parquet", "url"),
        ("products-1.parquet", "product_url"), ("products-2.parquet", "product_url"),
    ):  # fmt: skip
        (folder / name).parent.mkdir(exist_ok=True)
        names = [url if column == "url" else column for column in table.column_names]
        pyarrow.parquet.write_table(table.rename_columns(names), folder / name)
    write_csv(folder / "products.csv", rows)
    feed = [{"product_link": row.pop("url"), **row} for row in [row.copy() for row in rows]]
    write_csv(folder / "feed.csv", feed, delimiter=";", encoding="latin-1")
    (folder / "feed.csv.gz").write_bytes(gzip.compress((folder / "feed.csv").read_bytes()))
    (folder / "urls.txt").write_text("".join(f"{row['url']}\n" for row in rows))
    (folder / "urls.txt.gz").write_bytes(gzip.compress((folder / "urls.txt").read_bytes()))
    with contextlib.closing(sqlite3.connect(folder / "shop.db")) as database:
        database.execute("create table product (url text, updated_at text)")
        values = [(row["url"], row["updated_at"]) for row in rows]
        database.executemany("insert into product values (?, ?)", values)
        database.commit()
    write_csv(folder / "drop.csv", [{"loc": rows[0]["url"], "reason": "gone"}])
    head = ["Handle", "Title", "Vendor", "Published", "Variant SKU", "Image Src", "Status"]
    shop = [
        [
            "oak-chair",
            "Oak Chair",
            "Example",
            "true",
            "OC-1",
            "https://cdn.shop.example/oak-1.jpg",
            "active",
        ],
        ["oak-chair", "", "", "", "OC-2", "https://cdn.shop.example/oak-2.jpg", ""],
        [
            "glass-lamp",
            "Glass Lamp",
            "Example",
            "true",
            "GL-1",
            "https://cdn.shop.example/glass-1.jpg",
            "active",
        ],
        ["draft", "Draft", "Example", "false", "DR-1", "", "draft"],
    ]
    write_csv(folder / "shopify.csv", [dict(zip(head, row, strict=True)) for row in shop])
    languages = ("en", "de", "fr")
    pages = [{code: f"{SITE}/{code}/{n}" for code in languages} for n in range(50)]
    write_csv(
        folder / "languages.csv",
        [{"url": page["en"], "url_de": page["de"], "url_fr": page["fr"]} for page in pages],
    )
    write_csv(
        folder / "translations.csv",
        [
            {"page_id": n, "language": code, "url": page[code]}
            for n, page in enumerate(pages)
            for code in languages
        ],
    )
    hosts = ("www.shop.example", "de.shop.example")
    write_csv(folder / "hosts.csv", [{"url": f"https://{h}/{n}"} for n in range(9) for h in hosts])
    write_csv(folder / "paths.csv", [{"url": f"/products/{n}"} for n in range(9)])
    items = [
        {
            "url": f"{SITE}/{n}", "lastmod": "2026-10-01", "img": [f"{SITE}/{n}.jpg"],
            "links": [{"lang": c, "url": f"{SITE}{p}/{n}"} for c, p in (("en", ""), ("de", "/de"))],
            "video": [
                {
                    "thumbnail_loc": f"{SITE}/{n}.png", "title": "Lamp", "description": "A lamp",
                    "content_loc": f"{SITE}/{n}.mp4",
                }
            ],
            "news": {
                "name": "Shop News", "language": "en", "title": "A lamp",
                "publication_date": time.strftime("%Y-%m-%d"),
            },
        }
        for n in range(9)
    ]  # fmt: skip
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    for name, part in (("yesterday", rows), ("today", rows[1:]), ("served", rows)):
        source = pa.table({"url": [row["url"] for row in part]})
        urlset.build(source, site=SITE, out=folder / name)


@contextlib.contextmanager
def store(page: Path, folder: Path) -> Iterator[dict[str, str]]:
    """The variables of a server with the buckets of a page, if a block of it needs one."""
    text = "".join(block.text for block in blocks(page) if block.server)
    if not text:
        yield dict(os.environ)
        return
    with moto() as server:
        buckets = set(re.findall(r"s3://([a-z-]+)", text))
        for name in buckets:
            server.client.create_bucket(Bucket=name)
        catalog = (folder / "products.parquet").read_bytes()
        if "exports" in buckets:
            server.client.put_object(Bucket="exports", Key="products.parquet", Body=catalog)
        yield server.environ()
        for name in buckets:  # the server of another test in this process has them too
            for key in objects(server.client, name):
                server.client.delete_object(Bucket=name, Key=key)
            server.client.delete_bucket(Bucket=name)


def write_csv(path: Path, rows: list[dict[str, Any]], **form: str) -> None:
    with path.open("w", newline="", encoding=form.pop("encoding", "utf-8")) as file:
        writer = csv.DictWriter(file, rows[0], **form)  # type: ignore[arg-type]
        writer.writeheader()
        writer.writerows(rows)


def script(page: Path, folder: Path, port: int) -> str:
    """All blocks of a page that run, as one shell script."""
    # a command that fails must not leave the server of the example
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"]
    imports = ""
    for number, block in enumerate(blocks(page)):
        text = block.text.replace("8000", str(port))
        if block.why or block.language not in ("sh", "python", "toml"):
            continue
        lines.append(f"echo '== {page.name}:{block.line}'")
        if block.language == "sh":
            # the next command begins when the server of the example listens
            wait = f" & until (: < /dev/tcp/127.0.0.1/{port}) 2> /dev/null; do sleep 0.1; done\n"
            lines.append(re.sub(r"(http\.server .*) &\n", rf"\1{wait}", text))
        elif block.language == "toml":
            file = folder / f"block-{number}.toml"
            file.write_text(text)
            lines.append(f"cp {file.name} urlset.toml")
        else:
            file = folder / f"block_{number}.py"
            file.write_text(imports + text)
            found = [n for n in ast.parse(text).body if isinstance(n, (ast.Import, ast.ImportFrom))]
            imports += "".join(f"{ast.unparse(node)}\n" for node in found)
            lines.append(f"python {file.name}")
    return "\n".join(lines)


def outputs(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The marker of each command that runs and whose output the page shows, and that output."""
    before = None
    for block in blocks(page):
        if block.language == "text" and before and before.language == "sh" and not before.why:
            yield f"== {page.name}:{before.line}", block.text.splitlines()
        before = block


def comparable(line: str, port: int = 8000) -> str:
    """A line without what differs from run to run: times, sizes of gzip, ports, column widths."""
    line = re.sub(r"[\d,]+ rows/s|\d+\.\d+ (s|kB)\b", "N", line.replace(str(port), "8000"))
    return " ".join(line.split())


def assert_shown(page: Path, output: str, port: int) -> None:
    """Every line that the page shows as the output of a command is one, in this order."""
    for marker, shown in outputs(page):
        found = output.partition(f"{marker}\n")[2].partition(f"\n== {page.name}")[0]
        printed = iter([comparable(line, port) for line in found.splitlines()])
        for line in shown:
            if line != "...":
                assert comparable(line) in printed, f"{marker}: {line}\n{found}"


@pytest.mark.long
@every_page
def test_the_examples_run(page: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path / "clone"  # the tutorial makes a folder beside it
    folder.mkdir()
    text = script(page, folder, port)
    if "\necho" not in text:
        return  # it has no examples that run
    prepare(folder)
    if page.stem == "verify":  # the page begins with a set
        (folder / "served").rename(folder / "sitemaps")
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with store(page, folder) as environment:
        done = subprocess.run(
            ["bash", "-c", text], cwd=folder,
            env=environment | {"PATH": tools, "HOME": str(tmp_path)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert_shown(page, done.stdout, port)


def test_a_wrong_output_in_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\nurlset build\n```\n\n```text\n5 rows: 5 URLs; 0.1 s\n...\nlive\n```\n")
    output = "== page.md:1\n5 rows:  5 URLs; 0.7 s\nwarning\nlive\n== page.md:9\n"
    assert_shown(page, output, 1)
    for wrong in (output.replace("5 URLs", "4 URLs"), output.replace("live\n", "")):
        with pytest.raises(AssertionError, match=r"page\.md:1"):
            assert_shown(page, wrong, 1)
