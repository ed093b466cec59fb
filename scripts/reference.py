"""The reference pages of the documentation, as Markdown, from the code of the installed package.

:func:`pages` returns them by name. ``docs/codes.toml`` adds the causes and remedies that
the code does not contain.
"""

from __future__ import annotations

import ast
import html
import inspect
import json
import re
import tempfile
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import urlset
from urlset import _core, errors, report
from urlset.announce.options import ENGINES, AnnounceOptions
from urlset.announce.report import AnnounceReport, EngineOutcome, SitemapStatus
from urlset.build.job import Job
from urlset.clean import CleanOptions
from urlset.cli import COMMANDS, cli
from urlset.destination import manifest
from urlset.inspect.options import DiffOptions, ReadOptions, VerifyOptions
from urlset.inspect.verify import File, Problem, VerifyReport
from urlset.option_table import Option, options_of
from urlset.options import Options

ROOT = Path(__file__).parents[1]
SOURCES = [ROOT / "python/urlset", ROOT / "rust/core", ROOT / "rust/python"]
NOTE = "<!-- written by scripts/site from the code -->\n\n"


def pages() -> dict[str, str]:
    """The Markdown of each page by its name."""
    with tempfile.TemporaryDirectory() as folder:
        example = urlset.build(
            ROOT / "examples/catalog.csv", site="https://www.shop.example", out=folder
        )
        state = json.loads((Path(folder) / ".urlset/manifest.json").read_bytes())
        checked = urlset.verify(folder).to_dict()
        built = json.loads(json.dumps(example.to_dict()).replace(folder, "sitemaps"))
    return {
        name: NOTE + text
        for name, text in {
            "command-line.md": command_line(),
            "toml.md": toml(),
            "python.md": python(),
            "reports.md": reports(built, checked),
            "manifest.md": manifests(state),
            "codes.md": codes(),
        }.items()
    }


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; the cells are Markdown in one line."""
    lines = [list(head)]
    lines += [["---"] * len(lines[0])]
    lines += [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(text: str) -> str:
    """Text as code, in a cell of a table too."""
    if "|" in text:  # a table would show the backslash before it
        return f"<code>{html.escape(text, quote=False).replace('|', '&#124;')}</code>"
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def prose(text: str) -> str:
    """Help or a message as Markdown: nothing in it is markup, and names of options are code."""
    text = html.escape(text, quote=False)
    text = re.sub(r"([*_\[\]{}])", r"\\\1", text)
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", text)


# command line -----------------------------------------------------------------------------------


def command_line() -> str:
    """Every command with its options."""
    parts = [
        "# Command line\n\n"
        "Each command exits with status 0, or prints one line with the reason: 1 a data check"
        " failed, 2 wrong usage, 3 the environment failed, 130 and 143 stopped by a signal. The"
        " line ends with a code, which [Codes](codes.md) explains.\n"
    ]
    context = click.Context(cli, info_name="urlset")
    for name in COMMANDS:
        command = getattr(import_module(f"urlset.cli.{name}"), name)
        inner = click.Context(command, info_name=name, parent=context)
        usage = " ".join(["urlset", name, *command.collect_usage_pieces(inner)])
        parts.append(f"\n## urlset {name}\n\n```text\n{usage}\n```\n\n")
        parts.append(prose(inspect.cleandoc(command.help or "")) + "\n")
        sections = {
            one.name: one.section for cls in TABLES.get(name, ()) for one in options_of(cls)
        }
        groups: dict[str, list[list[str]]] = {}
        for param in command.get_params(inner):
            if isinstance(param, click.Option) and "--help" not in param.opts:
                group = sections.get(param.name or "") or ("Run" if name == "build" else "Options")
                groups.setdefault(group, []).append([flags(param, inner), prose(param.help or "")])
        for group in groups:
            parts.append(f"\n### {group} {{ #{name}-{slug(group)} }}\n\n")
            parts.append(table(["option", "meaning"], groups[group]))
        if command.epilog:
            text = inspect.cleandoc(command.epilog.replace("\b", ""))
            parts.append(f"\n```text\n{text}\n```\n")
    return "".join(parts)


TABLES: dict[str, tuple[type[Any], ...]] = {
    "build": (Options,),
    "verify": (VerifyOptions,),
    "read": (ReadOptions,),
    "diff": (DiffOptions,),
    "announce": (AnnounceOptions,),
    "clean": (CleanOptions,),
}


def flags(param: click.Option, context: click.Context) -> str:
    """The spellings of an option with the placeholder of its value."""
    names = ", ".join(code(name) for name in [*param.opts, *param.secondary_opts])
    if param.is_flag or param.flag_value is False:
        return names
    return f"{names} {code(param.make_metavar(context))}"


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


# urlset.toml ------------------------------------------------------------------------------------


def toml() -> str:
    """The keys of ``urlset.toml``."""
    parts = [
        "# urlset.toml\n\n"
        "`urlset init INPUT` writes this file, and `urlset build` without an input reads it. The"
        " keys are the options of `urlset build` with underscores. An option of the command line"
        " replaces that of the file. Paths are relative to the folder of the file.\n\n"
        "`input` is a path or a list of paths. Several `[[set]]` tables, each with its own `name`"
        " and `input`, are built into one index; a set may also have its own value for each key"
        " marked with *set*.\n\n"
        "```toml\n"
        'site = "https://www.shop.example"\nout = "sitemaps"\nduplicates = "drop"\n\n'
        '[[set]]\nname = "products"\ninput = "products.csv"\nwhere = ["in_stock=true"]\n\n'
        '[[set]]\nname = "pages"\ninput = "pages.txt"\n```\n'
    ]
    for section, group in sections_of(Options):
        rows = [
            [code(one.key), prose(described(one)), prose(default_of(one)), "set" * one.per_set]
            for one in group
        ]
        parts.append(f"\n## {section}\n\n" + table(["key", "meaning", "default", ""], rows))
    return "".join(parts)


def sections_of(cls: type[Any]) -> Iterator[tuple[str, list[Option]]]:
    """The options of a table by their headings."""
    groups: dict[str, list[Option]] = {}
    for one in options_of(cls):
        groups.setdefault(one.section or "Options", []).append(one)
    yield from groups.items()


def described(one: Option) -> str:
    """The help with the choices."""
    choices = f" One of: {', '.join(one.choices)}." if one.choices else ""
    off = "false: " if one.default is True and one.flag else ""  # the help is that of --no-NAME
    return f"{off}{one.help}{choices}"


def default_of(one: Option) -> str:
    """The default as TOML; nothing if there is none."""
    if one.default in (None, "", ()):
        return ""
    if isinstance(one.default, bool):
        return str(one.default).lower()
    return json.dumps(one.default)


# Python -----------------------------------------------------------------------------------------


def python() -> str:
    """The public names of the package."""
    parts = [
        "# Python\n\n"
        "All functions raise subclasses of [`urlset.Error`](#urlset.Error). The types of the"
        " keywords are in `urlset.keywords`.\n"
    ]
    keywords: dict[str, type[Any]] = {"build": Options, "Job": Options} | {
        name: TABLES[name][0] for name in ("verify", "read", "diff", "announce", "clean")
    }
    order = ["build", "Job", "verify", "read", "diff", "announce", "clean"]
    order += sorted(set(urlset.__all__) - {*order, "__version__"}, key=lambda n: (n != "Error", n))
    for name in order:
        thing = getattr(urlset, name)
        parts.append(f"\n## urlset.{name} {{ #urlset.{name} }}\n\n")
        parts.append(f"```text\n{signature(name, thing)}\n```\n\n{docstring(thing)}\n")
        if name in keywords and name != "Job":
            rows = [
                [code(one.name), code(one.keyword or one.type), prose(described(one))]
                for one in options_of(keywords[name])
            ]
            parts.append("\n" + table(["keyword", "type", "meaning"], rows))
        if name in ("Job", "Part"):
            for key, method in vars(thing).items():
                if not key.startswith("_") and callable(getattr(thing, key)):
                    function = getattr(method, "__func__", method)
                    parts.append(f"\n### urlset.{name}.{key} {{ #urlset.{name}.{key} }}\n\n")
                    parts.append(f"```text\n{signature(key, function)}\n```\n\n")
                    parts.append(docstring(function) + "\n")
    # not imported: pyspark and ray are extras
    parts.append(module("spark", ("register",)))
    parts.append(module("ray", ("write", "SitemapSink")))
    return "".join(parts)


def signature(name: str, thing: Any) -> str:
    """The call, one parameter a line if it is long."""
    try:
        found = inspect.signature(thing.__init__ if inspect.isclass(thing) else thing)
    except (TypeError, ValueError):
        return name
    if name == "Job":
        found = inspect.signature(Job)
    each: list[str] = []
    for one in found.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not any(text.startswith("*") for text in each):
            each.append("*")
        if one.name != "self":
            each.append(re.sub(r": '([^']*)'", r": \1", str(one)))
    text = f"{name}({', '.join(each)})"
    if len(text) > 96:
        text = f"{name}(\n" + "".join(f"    {one},\n" for one in each) + ")"
    return text


def docstring(thing: Any) -> str:
    return markdown(inspect.getdoc(thing) or "")


def markdown(doc: str) -> str:
    """A docstring with sections (Args, Returns, Raises, Attributes) as Markdown."""
    lines, out = doc.splitlines(), []
    while lines:
        line = lines.pop(0)
        heading = re.fullmatch(r"(Args|Returns|Raises|Attributes|Yields):", line)
        if heading is None:
            out.append(line)
            continue
        body = []
        while lines and (not lines[0] or lines[0].startswith(" ")):
            body.append(lines.pop(0))
        items = re.findall(
            r"^([^\s:][^:\n]*): (.*(?:\n(?: .*)?)*)", textwrap.dedent("\n".join(body)), re.MULTILINE
        )
        out.append(f"\n**{heading[1].replace('Args', 'Arguments')}**\n")
        if items and heading[1] not in ("Returns", "Yields"):
            out += [f"- `{key}`: {' '.join(value.split())}" for key, value in items]
        else:
            out.append(" ".join(" ".join(body).split()))
        out.append("")
    text = "\n".join(out)
    # tables of reStructuredText stay as they are
    text = re.sub(r"((?:^ *=+ .*\n)(?:.*\n)*?(?:^ *=+.*$))", r"```text\n\1\n```", text, flags=re.M)
    text = re.sub(r":\w+:`[~.]?(?:urlset\.)?([^`]+)`", r"`\1`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def module(name: str, public: tuple[str, ...]) -> str:
    """A module that is not imported: its docstring and those of its public names."""
    tree = ast.parse((ROOT / f"python/urlset/{name}.py").read_text(encoding="utf-8"))
    parts = [
        f"\n## urlset.{name} {{ #urlset.{name} }}\n\n{markdown(ast.get_docstring(tree) or '')}\n"
    ]
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in public:
            doc = ast.get_docstring(node)
            arguments = ast.unparse(node.args) if isinstance(node, ast.FunctionDef) else ""
            parts.append(f"\n### urlset.{name}.{node.name} {{ #urlset.{name}.{node.name} }}\n\n")
            parts.append(f"```text\n{node.name}({arguments})\n```\n\n{markdown(doc or '')}\n")
    return "".join(parts)


# reports and the manifest -----------------------------------------------------------------------


def reports(built: dict[str, Any], checked: dict[str, Any]) -> str:
    """The keys of ``--json``."""
    return (
        "# Reports\n\nThe reports of `--json` and of the functions in Python. The keys are stable;"
        " new keys may follow.\n"
        + "\n## build\n\n"
        + records(report.Report, report.Shard, report.IndexFile, report.Warning)
        + "\n" + example("urlset build examples/catalog.csv … --json -", built)
        + "\n## verify\n\n" + records(VerifyReport, Problem, File)
        + "\n" + example("urlset verify sitemaps --json -", checked)
        + "\n## announce\n\n" + records(AnnounceReport, EngineOutcome, SitemapStatus)
    )  # fmt: skip


def manifests(state: dict[str, Any]) -> str:
    """The keys of the manifest."""
    return (
        "# Manifest\n\n`.urlset/manifest.json` lists what is live. [The nightly"
        " rebuild](../nightly.md#the-manifest) describes what a build does with it.\n\n"
        + records(
            manifest.Manifest, manifest.ShardRecord, manifest.IndexRecord, manifest.StoreRecord,
            manifest.Feed,
        )
        + "\n" + example("urlset build examples/catalog.csv …", state)
    )  # fmt: skip


def records(*classes: type[Any]) -> str:
    """The fields of dataclasses or named tuples with their types and descriptions."""
    parts = []
    for cls in classes:
        doc = inspect.getdoc(cls) or ""
        described_as = dict[str, str]()
        for keys, text in re.findall(r"^    (\w[\w, ]*): (.*(?:\n {5,}.*)*)", doc, re.MULTILINE):
            described_as |= dict.fromkeys(keys.split(", "), " ".join(text.split()))
        rows = [
            [
                code(name),
                code(getattr(kind, "__forward_arg__", kind)),
                markdown(described_as.get(name, "")),
            ]
            for name, kind in cls.__annotations__.items()
        ]
        parts.append(f"### {cls.__name__} {{ #{cls.__name__.lower()} }}\n\n")
        parts.append(
            markdown(doc.split("\n\n")[0]) + "\n\n" + table(["key", "type", ""], rows) + "\n"
        )
    return "".join(parts)


def example(title: str, value: dict[str, Any]) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return f"Example, `{title}`:\n\n```json\n{text}\n```\n"


# codes ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """What a code means in one place."""

    code: str
    kind: str
    cause: str
    remedy: str


def codes() -> str:
    """Every code with cause and remedy; the address of a code is ``codes/#CODE``."""
    parts = [
        "# Codes\n\n"
        "Every error, rejected row, warning of a build and finding of `verify` has a code, which"
        " is stable. *error 2* is an error with exit status 2. *reject* is the code of a row in"
        " the reject file. *warning* is in the report of a build, after its number *N*. *finding*"
        " is that of `verify`, with its severity. With `--on-bad-field reject` the warnings about"
        " values become rejects.\n"
    ]
    groups: dict[str, list[Entry]] = {}
    for entry in sorted(entries(), key=lambda one: one.code):
        groups.setdefault(entry.code.partition(".")[0], []).append(entry)
    for name, group in groups.items():
        anchored: set[str] = set()
        rows = []
        for one in group:
            anchor = "" if one.code in anchored else f'<span id="{one.code}"></span>'
            anchored.add(one.code)
            texts = [text[:1].upper() + text[1:] for text in (one.cause, one.remedy)]
            rows.append([f"{anchor}{code(one.code)}<br>{one.kind}", *texts])
        heading = f"\n## {name} {{ #group-{name} }}\n\n"
        parts.append(heading + table(["code", "cause", "remedy"], rows))
    return "".join(parts)


def entries() -> list[Entry]:
    """Every code of the code and of ``docs/codes.toml``."""
    texts = tomllib.loads((ROOT / "docs/codes.toml").read_text(encoding="utf-8"))
    statuses = exit_statuses()
    found = []
    for name, (cause, remedy) in texts["errors"].items():
        found.append(Entry(name, f"error {statuses.get(name, '')}".strip(), cause, remedy))
    for engine in ENGINES:
        for name, (cause, remedy) in texts["engines"].items():
            if f"{engine}.{name}" not in texts["errors"]:
                found.append(Entry(f"{engine}.{name}", "error 1", cause, remedy))
    for name, (cause, remedy) in texts["rejects"].items():
        found.append(Entry(name, "reject", cause, remedy))
    for name, text in loc_faults():
        found.append(explained(name, "reject", text, texts["remedies"]))
    for name, (cause, remedy) in texts["warnings"].items():
        found.append(Entry(name, "warning", cause, remedy))
    for name, text in report.NOTES.items():
        found.append(explained(name, "warning", f"N {text}", texts["remedies"]))
    for name, severity, remedy in _core.finding_codes():
        if name in texts["findings"]:  # test_reference.py fails for another
            cause = prose(texts["findings"][name])
            found.append(Entry(name, f"finding, {severity}", cause, prose(remedy)))
    return found


def explained(name: str, kind: str, text: str, remedies: dict[str, str]) -> Entry:
    """A message of the form "what; remedy"; without a remedy it is in ``docs/codes.toml``."""
    cause, remedy = [*re.split(r"; (?![^(]*\))", text, maxsplit=1), ""][:2]
    written = remedies.get(name) or remedies.get(f"{name.partition('.')[0]}.*", "")
    return Entry(name, kind, re.sub("^N ", "*N* ", prose(cause)), prose(remedy) or written)


def loc_faults() -> list[tuple[str, str]]:
    """The reasons to reject a URL: code and message."""
    text = (ROOT / "rust/core/sitemap/loc_fault.rs").read_text(encoding="utf-8")
    return re.findall(r'^    [A-Z]\w+ "(loc\.\w+)" "([^"]+)"$', text, re.MULTILINE)


def exit_statuses() -> dict[str, int]:
    """The exit status of each error whose class is written beside its code."""
    kinds = {"Config": 2, "Input": 3, "Data": 1, "Rejects": 1, "Output": 3}
    core = (ROOT / "rust/core/error.rs").read_text(encoding="utf-8")
    pairs = re.findall(r'^    [A-Z]\w+ ([A-Z]\w+) "([\w.]+)"$', core, re.MULTILINE)
    found = {name: kinds[kind] for kind, name in pairs if kind in kinds}
    for path in sorted((ROOT / "python/urlset").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            kind = getattr(errors, node.func.id, None)
            for each in node.keywords:
                if kind and each.arg == "code" and isinstance(each.value, ast.Constant):
                    found.setdefault(each.value.value, kind.exit_status)
    return found
