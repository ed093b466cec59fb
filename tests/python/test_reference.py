"""The reference of the documentation contains every code that the source can emit."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import urlset
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
    seen, refusals = set(), set()
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
    # the codes of answers: "property" in google.py is google.property
    for engine in ("bing", "google", "indexnow", "yandex"):
        path = ROOT / f"python/urlset/announce/{engine}.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("client.refusal"):
                for part in ast.walk(node.args[2]):
                    if isinstance(part, ast.Constant):
                        refusals.add(f"{engine}.{part.value}")
    refusals |= {"bing.key_refused", "bing.property"}  # from a table of answers
    assert len(refusals) > 12 and refusals <= known
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

    known = {(entry.code, entry.kind) for entry in reference_codes.entries()}
    findings = {(name, f"finding, {severity}") for name, severity, _ in _core.finding_codes()}
    assert len(findings) > 90
    assert {one for one in known if one[1].startswith("finding")} == findings
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


@pytest.mark.long
def test_every_option_of_the_help_is_in_the_reference(pages: dict[str, str]) -> None:
    for name in COMMANDS:
        help_text = subprocess.run(
            [sys.executable, "-m", "urlset", name, "--help"],
            capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "200"},
        ).stdout  # fmt: skip
        flags = re.findall(
            r"^  (?:-\w, )?(--[a-z0-9-]+)(?: / (--[a-z0-9-]+))?", help_text, re.MULTILINE
        )
        assert len(flags) > 1, name
        section = pages["command-line.md"].partition(f"\n## urlset {name}\n")[2]
        named = set(re.findall(r"`(--[a-z0-9-]+)`", section.partition("\n## ")[0]))
        assert {flag for pair in flags for flag in pair if flag} - named == {"--help"}, name


def test_every_variable_of_the_environment_is_in_the_reference(pages: dict[str, str]) -> None:
    used = {
        node.value
        for _, tree in python_sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and re.fullmatch(r"URLSET_[A-Z_]+", str(node.value))
    }
    section = pages["command-line.md"].partition("\n## Environment\n")[2]
    named = set(re.findall(r"^\| `(\w+)` \| .", section, re.MULTILINE))
    assert len(used) >= 6 and used | {"_URLSET_COMPLETE"} == named


def test_every_public_name_is_in_the_reference(pages: dict[str, str]) -> None:
    page = pages["python.md"]
    for name in set(urlset.__all__) - {"__version__"}:
        section = page.partition(f"\n## urlset.{name} {{")[2].partition("\n## ")[0]
        assert section, name
        thing = getattr(urlset, name)
        if not inspect.isclass(thing):
            for one in inspect.signature(thing).parameters.values():
                assert re.search(rf"^- `(\w+, )*{one.name}(, \w+)*`: .", section, re.MULTILINE), (
                    name
                )
                assert one.annotation is not one.empty, name
            assert "-> " in section, name
            continue
        for key, kind, meaning in re.findall(
            r"^\| `(\w+)` \| (.+) \| (.*) \|$", section, re.MULTILINE
        ):
            assert kind.strip("`") and meaning, f"{name}.{key}"
        for key, member in vars(thing).items():
            if not key.startswith("_") and (
                isinstance(member, property) or inspect.isroutine(member)
            ):
                described = section.partition(f"\n### urlset.{name}.{key} {{")[2].partition(
                    "\n### "
                )[0]
                assert re.search(r"^```\n\n\w", described, re.MULTILINE), f"{name}.{key}"


def test_every_function_that_the_documentation_calls_is_in_the_reference(
    pages: dict[str, str],
) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    texts.append((ROOT / "README.md").read_text(encoding="utf-8"))
    called = {name for text in texts for name in re.findall(r"\b(urlset(?:\.\w+)+)\(", text)}
    assert {"urlset.spark.prepare", "urlset.ray.write", "urlset.Part.from_json"} <= called
    known = set(re.findall(r"^##+ (urlset\.[\w.]+) ", pages["python.md"], re.MULTILINE))
    assert called <= known


def test_every_code_that_a_test_expects_is_in_the_reference() -> None:
    known = {entry.code for entry in reference_codes.entries()}
    expected = set()
    for path in (ROOT / "tests/python").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        expected |= set(re.findall(r"\bcode == \"([a-z]\w*\.\w+)\"", text))
        expected |= set(re.findall(r" \[([a-z]\w*\.[a-z_]+)\]\"", text))  # in a message
    assert len(expected) > 100
    assert expected - known == set()


def test_every_code_has_one_anchor(pages: dict[str, str]) -> None:
    anchors = re.findall(r'id="([a-z0-9_.]+)"', pages["codes.md"])
    assert len(anchors) == len(set(anchors))
    assert set(anchors) == {entry.code for entry in reference_codes.entries()}
