"""The page of all codes: errors, rejects, warnings and findings, with cause and remedy.

The texts are those of the code; ``docs/codes.toml`` adds what the code does not contain.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from markup import code, prose, table
from urlset import _core, errors, report
from urlset.announce.options import ENGINES
from urlset.audit.report import CODES as AUDIT

ROOT = Path(__file__).parents[1]
#: the codes of every engine that robots.txt has too: it needs no key and gets no list of URLs
ROBOTS = {"interrupted", "redirect", "throttled", "unanswered"}


@dataclass(frozen=True)
class Entry:
    """What a code means in one place."""

    code: str
    kind: str
    cause: str
    remedy: str


def page() -> str:
    """Every code with cause and remedy; the address of a code is ``codes/#CODE``."""
    parts = [
        "# Codes\n\n"
        "Every error, rejected row, warning of a build and finding of `verify` has a code, which"
        " is stable. *error 2* is an error with exit status 2. *reject* is the code of a row in"
        " the reject file. *warning* is in the report of a build, after its number *N*. *finding*"
        " is that of `verify`, *audit* one of `audit`, with its severity. With `--on-bad-field"
        " reject` the warnings about values become rejects.\n"
    ]
    groups: dict[str, list[Entry]] = {}
    for entry in sorted(entries(), key=lambda one: one.code):
        name = "audit" if entry.kind.startswith("audit") else entry.code.partition(".")[0]
        groups.setdefault(name, []).append(entry)
    for name, group in sorted(groups.items()):
        anchored: set[str] = set()
        rows = []
        for one in group:
            anchor = "" if one.code in anchored else f'<span id="{one.code}"></span>'
            anchored.add(one.code)
            texts = [
                f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
                for text in (one.cause, one.remedy)
            ]
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
            keyless = engine == "robots" and name not in ROBOTS
            if f"{engine}.{name}" not in texts["errors"] and not keyless:
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
    for name, finding in AUDIT.items():
        cause = f"*N* % of the URLs {prose(finding.verb)}"
        found.append(Entry(name, f"audit, {finding.severity}", cause, prose(finding.help)))
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
