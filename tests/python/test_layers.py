"""Imports of the package point one way: a table of allowed edges, and no cycles.

Imports inside functions count; those under ``if TYPE_CHECKING`` do not, since they do not run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import urlset

ROOT = Path(urlset.__file__).parent

#: layers from the bottom to the top; a module belongs to the first pattern that fits, and imports
#: only its own layer and those that it names
BASE = (
    "errors", "wording", "_core", "signals", "threads", "interruptible", "pool", "outfile", "hosts",
    "rows", "system", "transport.target",
)  # fmt: skip
LAYERS: dict[str, tuple[str, ...]] = {
    # used by everything else
    "errors": (),
    "wording": (),
    "signals": (),
    "_core": (),
    "threads": ("errors",),
    "interruptible": ("threads",),
    "pool": ("threads", "errors"),
    "system": (),
    "outfile": ("errors", "system"),
    "hosts": ("errors", "_core"),
    "rows": ("errors", "outfile", "transport.target", "_core"),
    "transport.*": BASE,
    "option*": ("keywords", *BASE),
    "keywords": ("option*",),
    "report": ("option*", *BASE),
    # the place of publication; only this package depends on its kind
    "destination.*": ("transport.*", "option*", *BASE),
    # the stages of a build; they do not import each other
    "build.source.*": ("transport.*", "option*", *BASE),
    "build.names": ("option*", *BASE),
    "build.index": ("report", "option*", *BASE),
    "build.gzip": ("_core",),
    "build.part": ("report", *BASE),
    "build.differences": BASE,
    "build.rejects": ("destination.interface", *BASE),
    "build.check": ("destination.manifest", *BASE),
    "build.changes": ("build.differences", "destination.interface", "destination.manifest", *BASE),
    "build.stamps": (
        "destination.interface", "destination.manifest", "report", "option*", *BASE,
    ),
    "toml": ("build.names", "option*", *BASE),
    "build.details": BASE,
    # pages about results
    "html.*": ("report", "audit.report", *BASE),
    # a job imports all stages
    "build.plan": ("build.names", "build.source.*", "destination.*", "toml", "option*", *BASE),
    "build.write": ("build.*", "destination.interface", "report", *BASE),
    "build.ranges": ("build.plan", "build.source.*", "destination.*", "option*", *BASE),
    "build.commit": ("build.*", "destination.*", "html.*", "report", "option*", *BASE),
    "build.job": ("build.*", "destination.*", "report", "toml", "option*", *BASE),
    # the same job on engines
    "engine": ("build.job", "build.part", "build.ranges", "report", "option*", *BASE),
    "spark": ("engine", "build.job", "option*", *BASE),
    "ray": ("engine", "report", *BASE),
    "build.init": ("build.source.*", "option*", *BASE),
    # reading back
    "inspect.*": (
        "transport.*", "report", "destination.manifest", "destination.state",
        "destination.store_manifests", "html.*", "option*", *BASE,
    ),
    # fetches pages of what inspect reads
    "audit.*": ("inspect.*", "html.*", "transport.*", "option*", "keywords", *BASE),
    "clean": ("destination.*", "keywords", "option*", *BASE),
    # on top
    "announce.*": (
        "transport.*", "toml", "destination.directory", "destination.manifest", "destination.state",
        "destination.store_manifests", "inspect.*", "option*", *BASE,
    ),
    "cli.*": (
        "build.*", "inspect.*", "announce.*", "audit.*", "clean", "toml", "report", "keywords",
        "option*", "__init__", *BASE,
    ),
    "__main__": ("cli.*", "__init__"),
    # its functions are imported when they are first used
    "__init__": ("*",),
}  # fmt: skip

#: modules that only ``destination`` imports: they depend on a folder
OF_A_FOLDER = (
    "destination.folder", "destination.publication", "destination.completion",
    "destination.recovery", "destination.lock", "destination.relative",
)  # fmt: skip


def modules() -> dict[str, Path]:
    """Every module by its name in the package; a package by ``name.__init__``."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in sorted(ROOT.rglob("*.py"))
    } | {"_core": ROOT / "_core.pyi"}


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes that are executed."""
    for node in ast.iter_child_nodes(tree):
        if is_for_types(node):
            assert isinstance(node, ast.If)
            for other in node.orelse:
                yield other
                yield from statements(other)
            continue
        yield node
        yield from statements(node)


def imports(name: str, path: Path, known: set[str]) -> set[str]:
    """The modules of the package that a module imports."""
    here = name.split(".")[:-1]
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - (node.level - 1)]
            target = [*base, *(node.module.split(".") if node.module else ())]
            for alias in node.names:
                whole, package = ".".join([*target, alias.name]), ".".join(target)
                inner = [whole, f"{whole}.__init__", package, ".".join([*target, "__init__"])]
                found.add(next(one for one in inner if one in known))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(one.split(".")[0] == "urlset" for one in names), (name, names)
    return found - {name}


def graph() -> dict[str, set[str]]:
    known = modules()
    return {
        name: imports(name, path, set(known)) if path.suffix == ".py" else set()
        for name, path in known.items()
    }


def fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or name == pattern.removesuffix("*") + "__init__"


def layer_of(name: str) -> str:
    for layer in LAYERS:
        if fits(name, layer):
            return layer
    raise AssertionError(f"{name}: belongs to no layer; add it to the table")


def violations(edges: dict[str, set[str]]) -> set[tuple[str, str]]:
    return {
        (name, other)
        for name, others in edges.items()
        for other in others
        if layer_of(name) != layer_of(other)
        and not any(fits(other, allowed) for allowed in LAYERS[layer_of(name)])
    } | {
        (name, other)
        for name, others in edges.items()
        for other in others.intersection(OF_A_FOLDER)
        if not name.startswith("destination.")
    }


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(edges):
        if name not in index:
            visit(name)
    return found


def test_every_import_is_allowed() -> None:
    assert sorted(violations(graph())) == []


def test_no_cycles() -> None:
    # the package itself imports its functions by name, when they are first used
    edges = {name: others - {"__init__"} for name, others in graph().items() if name != "__init__"}
    assert cycles(edges) == []


def test_the_test_sees_an_import_in_a_function(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from ..report import Report\n"
        "def f():\n    from ..inspect.verify import verify\n    from .. import errors\n"
    )
    known = set(modules())
    assert imports("build.x", path, known) == {"inspect.verify", "errors"}
    assert violations({"build.names": {"inspect.verify"}}) == {("build.names", "inspect.verify")}
    assert violations({"build.commit": {"destination.folder"}})
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set()}) == [["a", "b", "c"]]
