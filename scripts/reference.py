"""The reference pages of the documentation, as Markdown, from the code of the installed package.

:func:`pages` returns them by name.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import tempfile
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import codes
import urlset
from markup import code, docstring, markdown, prose, slug, table
from urlset import report
from urlset.announce.options import AnnounceOptions
from urlset.announce.report import AnnounceReport, EngineOutcome, SitemapStatus
from urlset.audit.options import AuditOptions
from urlset.audit.report import AuditReport, Estimate, Finding, Stratum
from urlset.build.job import Job
from urlset.build.rejects import COLUMNS as REJECT_COLUMNS
from urlset.clean import CleanOptions
from urlset.cli import COMMANDS, cli
from urlset.destination import manifest
from urlset.errors import Error
from urlset.inspect.diff import Changes
from urlset.inspect.options import DiffOptions, ReadOptions, VerifyOptions
from urlset.inspect.read import Rows
from urlset.inspect.verify import File, Problem, VerifyReport
from urlset.option_table import Option, options_of
from urlset.options import Options

ROOT = Path(__file__).parents[1]
VERSION = ("str", "that of urlset.")
#: by class the keys of its JSON that are not its attributes, with type and meaning; None for an
#: attribute that the JSON does not have
JSON_KEYS: dict[type[Any], dict[str, tuple[str, str] | None]] = {
    manifest.Manifest: {
        "manifest": ("int", "the version of the format, 1; urlset refuses a newer one."),
        "hosts": (
            'list[str] | "any"',
            "the hosts that URLs may have besides that of the site, if there are any.",
        ),
        "duplicates": ("str", "`keep`, if the set may list a URL twice."),
        "keeps_duplicates": None,
    },
    VerifyReport: {
        "version": VERSION,
        "errors": ("int", "the number of errors, listed or not."),
        "warnings": ("int", "the number of warnings."),
        "notes": ("int", "the number of notes."),
        "ages": None,
    },
    AuditReport: {"version": VERSION},
    manifest.BuildRecord: {
        "changes": (
            "list[int] | None",
            "the numbers of URLs added, changed and removed, if the build wrote a change feed.",
        ),
    },
    AnnounceReport: {
        "version": VERSION,
        "error": ("dict[str, str] | None", '`{"code", "message"}` of the error that ended it.'),
        "ok": ("bool", "the engines accepted everything, or it was a dry run."),
        "environment_failed": None,
    },
}
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
            "codes.md": codes.page(),
        }.items()
    }


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
    rows = [[code(name), meaning] for name, meaning in ENVIRONMENT.items()]
    parts.append("\n## Environment\n\n" + table(["variable", "meaning"], rows))
    parts.append(
        "\nCredentials of [object stores](../destinations.md#credentials-and-endpoints) and"
        " [databases](../databases.md), `TMPDIR` for temporary files, and the variables of"
        " [proxies](../verify.md#fetching) have their usual names.\n"
    )
    return "".join(parts)


ENVIRONMENT = {
    "URLSET_INDEXNOW_KEY": "the key of [IndexNow](../announce.md).",
    "URLSET_GOOGLE_KEY_FILE": "the JSON file of a service account for Search Console; else"
    " `GOOGLE_APPLICATION_CREDENTIALS`.",
    "URLSET_BING_KEY": "the key of Bing Webmaster Tools.",
    "URLSET_YANDEX_TOKEN": "the token for Yandex Webmaster.",
    "URLSET_YANDEX_USER": "the number of the user of that token; else Yandex is asked.",
    "URLSET_STORE_TIMEOUT": "seconds without progress after which a request to an object store"
    " fails (30).",
    "URLSET_TRACEBACK": "1 shows the traceback of an internal error.",
    "_URLSET_COMPLETE": "writes the script for the [completion](../install.md#completion) of a"
    " shell.",
}

TABLES: dict[str, tuple[type[Any], ...]] = {
    "build": (Options,),
    "verify": (VerifyOptions,),
    "audit": (AuditOptions,),
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
        name: TABLES[name][0] for name in ("verify", "audit", "read", "diff", "announce", "clean")
    }
    order = ["build", "Job", "verify", "audit", "read", "diff", "announce", "clean"]
    order += sorted(set(urlset.__all__) - {*order, "__version__"}, key=lambda n: (n != "Error", n))
    #: what functions return, beside the public names
    returned = {"VerifyReport": VerifyReport, "Rows": Rows, "Changes": Changes}
    for name in [*order, *returned]:
        thing = returned.get(name) or getattr(urlset, name)
        path = name if name in returned else f"urlset.{name}"
        parts.append(f"\n## {path} {{ #{path} }}\n\n")
        if not inspect.isclass(thing) or name in ("Job", "Error"):  # nobody creates the others
            parts.append(f"```text\n{signature(name, thing)}\n```\n\n")
        if inspect.isclass(thing) and thing.__base__ in (*Error.__subclasses__(), Error):
            base = f"urlset.{thing.__base__.__name__}"
            parts.append(f"A subclass of [`{base}`](#{base}). ")
        fields = inspect.isclass(thing) and "Attributes:" in (thing.__doc__ or "")
        text = inspect.getdoc(thing) or ""
        parts.append(markdown(text.partition("Attributes:\n")[0] if fields else text) + "\n")
        if fields:
            rows = [[code(n), code(kind), meaning] for n, kind, meaning in attributes(thing)]
            parts.append("\n" + table(["attribute", "type", "meaning"], rows))
        if name in keywords and name != "Job":
            rows = [
                [code(one.name), code(one.keyword or one.type), prose(described(one))]
                for one in options_of(keywords[name])
            ]
            parts.append("\n" + table(["keyword", "type", "meaning"], rows))
        for key, member in vars(thing).items() if inspect.isclass(thing) else ():
            method = member.fget if isinstance(member, property) else member
            method = getattr(method, "__func__", method)  # of a class method
            if key.startswith("_") or not inspect.isfunction(method):
                continue
            call = signature(key, method)
            if isinstance(member, property):
                call = call.replace("() -> ", ": ")
            parts.append(f"\n### {path}.{key} {{ #{path}.{key} }}\n\n")
            parts.append(f"```text\n{call}\n```\n\n{docstring(method)}\n")
    # not imported: pyspark and ray are extras
    parts.append(module("spark", ("register", "prepare")))
    parts.append(module("ray", ("write", "prepare", "SitemapSink")))
    return "".join(parts)


def attributes(cls: type[Any]) -> list[tuple[str, str, str]]:
    """Name, type and description of each attribute in the docstring of a class."""
    described_as = dict[str, str]()
    for keys, text in re.findall(
        r"^    (\w[\w, ]*): (.*(?:\n {5,}.*)*)", inspect.getdoc(cls) or "", re.MULTILINE
    ):
        described_as |= dict.fromkeys(keys.split(", "), markdown(" ".join(text.split())).strip())
    types = {
        name: getattr(kind, "__forward_arg__", kind) for name, kind in cls.__annotations__.items()
    }
    if issubclass(cls, Error):  # its attributes are arguments, or of the class
        arguments = inspect.signature(cls.__init__).parameters
        types |= {name: arguments[name].annotation for name in described_as if name in arguments}
        types = {name: type(value).__name__ for name, value in vars(cls).items()} | types
        types = {name: types[name] for name in described_as}
    return [
        (name, str(types.get(name, "")), described_as.get(name, ""))
        for name in {**types, **described_as}
        if not name.startswith("_")
    ]


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
        if one.name not in ("self", "cls"):
            each.append(re.sub(r": '([^']*)'", r": \1", str(one)))
    returned = found.return_annotation
    arrow = f" -> {returned}" if returned not in (found.empty, None, "None") else ""
    text = f"{name}({', '.join(each)}){arrow}"
    if len(text) > 96:
        text = f"{name}(\n" + "".join(f"    {one},\n" for one in each) + f"){arrow}"
    return text


def module(name: str, public: tuple[str, ...]) -> str:
    """A module that is not imported: its docstring and those of its public names."""
    tree = ast.parse((ROOT / f"python/urlset/{name}.py").read_text(encoding="utf-8"))
    parts = [
        f"\n## urlset.{name} {{ #urlset.{name} }}\n\n{markdown(ast.get_docstring(tree) or '')}\n"
    ]
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in public:
            doc = ast.get_docstring(node)
            parts.append(f"\n### urlset.{name}.{node.name} {{ #urlset.{name}.{node.name} }}\n\n")
            if isinstance(node, ast.FunctionDef):
                text = f"{node.name}({ast.unparse(node.args)})"
                text += f" -> {ast.unparse(node.returns)}" if node.returns else ""
                parts.append("```text\n" + "\n    ".join(textwrap.wrap(text, 90)) + "\n```\n\n")
            parts.append(markdown(doc or "") + "\n")
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
        + "\n## audit\n\n" + records(AuditReport, Estimate, Stratum, Finding)
        + "\n## announce\n\n" + records(AnnounceReport, EngineOutcome, SitemapStatus)
        + "\n## The reject file\n\n"
        + "`.urlset/rejects.csv`, or the file of `--rejects`, has a line for each rejected row: "
        + ", ".join(code(name) for name in REJECT_COLUMNS)
        + ". `row` counts from 1, without the header; `code` is in the list of"
        + " [codes](codes.md); `value` is the cell.\n"
    )  # fmt: skip


def manifests(state: dict[str, Any]) -> str:
    """The keys of the manifest."""
    return (
        "# Manifest\n\n`.urlset/manifest.json` lists what is live; in an object store it is"
        " `manifest-DIGEST.json`. A key without a value is left out. [The nightly"
        " rebuild](../nightly.md#the-manifest) describes where it is and what a build does with"
        " it.\n\n"
        + records(
            manifest.Manifest, manifest.ShardRecord, manifest.IndexRecord, manifest.BuildRecord,
            manifest.StampFile, manifest.StoreRecord, manifest.Feed,
            level="##",
        )
        + "\n" + example("urlset build examples/catalog.csv …", state)
    )  # fmt: skip


def records(*classes: type[Any], level: str = "###") -> str:
    """The keys of the JSON of dataclasses or named tuples with their types and descriptions."""
    parts = []
    for cls in classes:
        doc = inspect.getdoc(cls) or ""
        keys: dict[str, tuple[str, str] | None] = {
            name: (kind, meaning) for name, kind, meaning in attributes(cls)
        }
        rows = [
            [code(name), code(found[0]), found[1]]
            for name, found in (keys | JSON_KEYS.get(cls, {})).items()
            if found
        ]
        parts.append(f"{level} {cls.__name__} {{ #{cls.__name__.lower()} }}\n\n")
        parts.append(
            markdown(doc.split("\n\n")[0]) + "\n" + table(["key", "type", "meaning"], rows) + "\n"
        )
    return "".join(parts)


def example(title: str, value: dict[str, Any]) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return f"Example, `{title}`:\n\n```json\n{text}\n```\n"
