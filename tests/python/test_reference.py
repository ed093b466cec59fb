"""The reference of the documentation contains every code that the source can emit."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from conftest import ROOT
from urlset.cli import COMMANDS, cli
from urlset.option_table import options_of
from urlset.options import Options

sys.path.insert(0, str(ROOT / "scripts"))
import codes as reference_codes
import reference

CODE = re.compile(r'"([a-z][a-z0-9]*\.[a-z][a-z0-9_]*)"')
#: endings of file names and hosts, which have the form of a code
FILES = re.compile(r"\.(arrow|com|csv|gz|html|ipc|jpg|json|jsonl|org|parquet|rs|toml|txt|xml|zip)$")
#: names of other things with the form of a code
OTHER = {
    "announce.report", "audit.report", "audit.run", "lastmod.new", "style.css", "build.job",
    "build.part", "inspect.diff", "inspect.read", "inspect.verify", "urlset.build",
    "urlset.errors", "httpcore.connection", "httpcore.http11", "httpcore.http2",
    "httpcore.proxy", "collector.event", "collector.finish", "decoder.group", "encode.group",
    "group.batch", "read.file", "read.flush", "reader.batch", "reader.end",
    "sort.new", "sorter.run", "split.new", "stamps.index", "stamps.sync",
    "syncer.file", "worker.part", "worker.render", "worker.write",
}  # fmt: skip
#: codes with a part that is computed, as in the source, and what they can be
COMPUTED = {
    "config.{name}": [
        "config.changes", "config.drop_list", "config.json", "config.jsonl", "config.output",
        "config.rejects", "config.report", "config.resume",
        "config.lastmod_ignore", "config.lastmod_restart",
    ],
    "config.{option}": ["config.changes", "config.json", "config.rejects"],
    "index.{code}": ["index.unreadable", "index.damaged", "index.doctype", "index.not_a_sitemap"],
    "output.{name}": [
        "output.changes", "output.json", "output.rejects", "output.output", "output.drop_list",
        "output.resume", "output.report",
    ],
    "store.{kind}": [
        f"store.{kind}"
        for kind in (
            "bucket", "permission", "credentials", "region", "endpoint", "timeout", "unreachable",
            "busy", "unsupported", "key", "failed",
        )
    ],
    "{engine}.bad_key": ["indexnow.bad_key", "bing.bad_key", "yandex.bad_key"],
    "{engine}.{code}": ["indexnow.bad_url", "indexnow.other_host", "bing.bad_url"],
    "{engine}.interrupted": ["indexnow.interrupted", "bing.interrupted"],
    "{engine}.key_file": ["indexnow.key_file", "bing.key_file"],
    "{engine}.no_key": ["indexnow.no_key", "bing.no_key", "yandex.no_key"],
    "{self.engine}.redirect": ["google.redirect"],
    "{self.engine}.unanswered": ["google.unanswered", "robots.unanswered"],
    "{self.engine}.{…}": ["indexnow.throttled", "google.unanswered"],
    "{self.engine}.{code}": [
        "indexnow.key_refused", "indexnow.bad_request", "indexnow.refused", "bing.key_refused",
        "bing.property", "bing.refused", "google.refused", "google.token_refused",
        "yandex.key_refused", "yandex.refused",
    ],
}  # fmt: skip


def shape(part: ast.expr) -> str:
    """A part of an f-string, with the name of what is inserted."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    value = getattr(part, "value", part)
    return f"{{{ast.unparse(value) if isinstance(value, (ast.Name, ast.Attribute)) else '…'}}}"


def python_sources() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / "python/urlset").rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def emitted() -> dict[str, str]:
    """Every literal of the source with the form of a code, and where it is."""
    found: dict[str, str] = {}
    for path, tree in python_sources():
        docs = {
            node.body[0].value
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for each in node.keywords:
                    if each.arg == "code" and isinstance(each.value, ast.Constant):
                        found[each.value.value] = str(path)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs:
                match = CODE.fullmatch(f'"{node.value}"')
                if match and not FILES.search(match[1]):
                    found.setdefault(match[1], str(path))
                for name in re.findall(r"\[([a-z]+\.[a-z_]+)\]", node.value):  # in a message
                    found.setdefault(name, str(path))
    for path in sorted(
        [*(ROOT / "rust/core").rglob("*.rs"), *(ROOT / "rust/python").rglob("*.rs")]
    ):
        if path.name in ("tests.rs", "pagemap.rs"):  # pagemap is compiled for tests only
            continue
        text = path.read_text(encoding="utf-8").partition("#[cfg(test)]\nmod tests {")[0]
        for line in text.splitlines():
            if not line.lstrip().startswith("//"):
                for name in CODE.findall(line):
                    if not FILES.search(name):
                        found.setdefault(name, str(path))
    return {code: path for code, path in found.items() if code not in OTHER and code}


def test_every_code_of_the_source_is_in_the_reference() -> None:
    known = {entry.code for entry in reference_codes.entries()}
    codes = emitted()
    assert len(codes) > 250
    assert {code: path for code, path in codes.items() if code not in known} == {}


def test_every_computed_code_is_in_the_reference() -> None:
    known = {entry.code for entry in reference_codes.entries()}
    seen = set()
    for path, tree in python_sources():
        for node in ast.walk(tree):
            values = [
                each.value
                for each in (node.keywords if isinstance(node, ast.Call) else [])
                if each.arg == "code"
            ]
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "code":
                values.append(node.value)
            for value in values:
                for part in ast.walk(value):
                    if isinstance(part, ast.JoinedStr):
                        text = "".join(map(shape, part.values))
                        assert text in COMPUTED, f"{path}: {text}"
                        seen.add(text)
    assert seen == set(COMPUTED)
    assert {code for codes in COMPUTED.values() for code in codes} <= known


def test_every_code_of_the_texts_is_one_of_the_source() -> None:
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for folder, kind in (("python/urlset", "*.py"), ("rust/core", "*.rs"))
        for path in (ROOT / folder).rglob(kind)
    )
    computed = {code for codes in COMPUTED.values() for code in codes}
    engines = {name.partition(".")[2] for name in computed if name.partition(".")[0] == "indexnow"}
    for entry in reference_codes.entries():
        _, _, rest = entry.code.partition(".")
        # warnings of extensions are made of the tag, those of engines of the engine
        forms = (f'"{entry.code}"', f"[{entry.code}]", f'"{rest}"', f'.{rest}"')
        literal = any(form in text for form in forms)
        assert literal or entry.code in computed or rest in engines, entry.code


def test_every_entry_has_cause_and_remedy() -> None:
    for entry in reference_codes.entries():
        assert entry.cause and entry.remedy, entry


def test_every_finding_and_reject_is_explained() -> None:
    from urlset import _core

    known = {(entry.code, entry.kind.partition(",")[0]) for entry in reference_codes.entries()}
    assert {(name, "finding") for name, _, _ in _core.finding_codes()} <= known
    assert len(reference_codes.loc_faults()) >= 19
    assert {(name, "reject") for name, _ in reference_codes.loc_faults()} <= known


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.pages()


def test_every_option_is_in_the_reference(pages: dict[str, str]) -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        section = (
            pages["command-line.md"].partition(f"\n## urlset {name}\n")[2].partition("\n## ")[0]
        )
        for param in command.params:
            for flag in param.opts if isinstance(param, click.Option) else []:
                assert f"`{flag}`" in section, (name, flag)
    for one in options_of(Options):
        assert f"\n| `{one.key}` |" in pages["toml.md"]
        assert f"\n| `{one.name}` |" in pages["python.md"]


def test_every_code_has_one_anchor(pages: dict[str, str]) -> None:
    anchors = re.findall(r'id="([a-z0-9_.]+)"', pages["codes.md"])
    assert len(anchors) == len(set(anchors))
    assert set(anchors) == {entry.code for entry in reference_codes.entries()}
