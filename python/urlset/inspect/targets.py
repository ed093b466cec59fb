"""Which sitemap files a target means: a file, a folder, an index, an http(s) URL."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .. import _core
from ..destination.state import read_manifests
from ..errors import InputError
from ..report import MAX_GOOGLE_INDEXES

SUFFIXES = (".xml", ".xml.gz", ".txt", ".txt.gz")


@dataclass
class Item:
    """One sitemap file.

    Attributes:
        path: where it lies.
        name: what to call it: relative to the folder, or its URL.
        url: where it is served, if that is known.
        listed: whether an index lists it.
        rules: which of :attr:`Found.rules` are those of its set.
    """

    path: Path
    name: str
    url: str | None = None
    listed: bool = False
    rules: int = 0


@dataclass
class Rules:
    """What is allowed in the files of a set though it is unusual.

    Attributes:
        hosts: those that URLs may have beside that of their file; none for all, ``None`` for none.
        added: addresses that the first index lists though no file of the folder has them.
        kept_duplicates: the set was built with ``--duplicates keep``.
    """

    hosts: list[str] | None = None
    added: list[str] = field(default_factory=list)
    kept_duplicates: bool = False

    @classmethod
    def of(cls, manifest: dict[str, Any]) -> Rules:
        """What a manifest says of the set."""
        rules = cls(kept_duplicates=manifest.get("duplicates") == "keep")
        hosts = manifest.get("hosts")
        if hosts == "any":
            rules.hosts = []
        elif isinstance(hosts, list) and hosts and all(isinstance(host, str) for host in hosts):
            rules.hosts = hosts
        rules.added = [url for url in _list(manifest, "added") if isinstance(url, str)]
        return rules


@dataclass
class Found:
    """The files of a target, and what is wrong between them.

    Attributes:
        items: indexes first, each file once.
        problems: (code, item name, line, byte offset, URL, message) each.
        shards: by name what a manifest of urlset says of a shard, its digest among it.
        rules: of each set whose files they are.
    """

    items: list[Item] = field(default_factory=list)
    problems: list[tuple[str, str, int, int, str | None, str]] = field(default_factory=list)
    shards: dict[str, dict[str, Any]] = field(default_factory=dict)
    rules: list[Rules] = field(default_factory=lambda: [Rules()])


def is_url(target: str) -> bool:
    """Whether ``target`` is an address and not a path."""
    return target.partition("://")[0].lower() in ("http", "https")


@contextmanager
def find(target: str | os.PathLike[str], **fetch_options: Any) -> Iterator[Found]:
    """The files that ``target`` means; fetched ones live until the end of the block.

    Raises:
        InputError: ``target.missing``, ``target.unreadable``, ``target.kind`` or ``target.empty``.
    """
    text = os.fspath(target)
    if is_url(text):
        from .fetch import fetched

        with fetched(text, **fetch_options) as found:
            yield found
        return
    path = Path(text)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise InputError(
            f"{text}: no such file or folder", code="target.missing", input=text
        ) from None
    except OSError as error:
        raise InputError(
            f"{text}: cannot be read: {error.strerror}", code="target.unreadable", input=text
        ) from None
    if stat.S_ISDIR(mode):
        yield _folder(path)
    elif stat.S_ISREG(mode):
        yield _file(path)
    else:  # a pipe cannot be read twice
        raise InputError(f"{text}: neither a file nor a folder", code="target.kind", input=text)


def _peek(path: Path) -> tuple[str, list[_core.Child]]:
    try:
        listing = _core.peek(path)
    except OSError:
        return "unreadable", []  # verify and read report the reason
    return listing.kind, listing.children


def _file(path: Path) -> Found:
    kind, children = _peek(path)
    found = Found([Item(path, path.name)])
    if kind == "index":
        _children(found, found.items[0], children, path.parent, {})
    return found


def _folder(root: Path) -> Found:
    found = Found()
    known = read_manifests(root)
    manifest = _merged(known)
    # each file is judged by what its own set was built with; that of no set by the strict rules
    found.rules = [Rules(), *map(Rules.of, known)]
    rules_of = {path: number for number, each in enumerate(known, 1) for path in _paths(each)}
    base = manifest.get("sitemap_url")
    retired = {name for name in _list(manifest, "retired") if isinstance(name, str)}
    files: dict[str, Item] = {}
    closed: list[OSError] = []
    for path in _walk(root, closed):
        name = path.relative_to(root).as_posix()
        is_known = isinstance(base, str) and "{" not in base
        address = f"{base}{name}" if is_known else None
        files[name] = Item(path, name, address, rules=rules_of.get(name, 0))
    # what a plain index lists need not be opened to know what it is
    kinds: dict[str, str] = {}
    listed: set[Path] = set()
    indexes: list[Item] = []
    for name, item in sorted(files.items(), key=lambda pair: (pair[0].endswith(".gz"), pair[0])):
        if item.path in listed:
            continue
        kind, children = _peek(item.path)
        kinds[name] = kind
        if kind == "index":
            indexes.append(item)
            listed |= _children(found, item, children, item.path.parent, files)
    shown = {item.path for item in indexes} | listed
    own = [item for item in indexes if item.path not in listed]
    if len(own) > MAX_GOOGLE_INDEXES:
        message = f"{len(own):,} indexes in this folder"
        name, address = own[MAX_GOOGLE_INDEXES].name, own[MAX_GOOGLE_INDEXES].url
        found.problems.append(("index.too_many", name, 0, 0, address, message))
    found.items[:0] = own
    for name, item in files.items():
        if item.path in shown or name in retired:
            continue  # retired: kept for crawlers that hold an old index, no part of the set
        if name.endswith((".txt", ".txt.gz")) and kinds.get(name) not in ("text", "unreadable"):
            continue  # robots.txt and its kind
        if kinds.get(name) == "other" and "sitemap" not in item.path.name.lower():
            continue
        if indexes and kinds.get(name) in ("urlset", "text"):
            message = "no index in this folder lists it"
            found.problems.append(("index.unlisted_file", name, 0, 0, item.url, message))
        found.items.append(item)
    found.shards = {
        shard["path"]: shard
        for shard in _list(manifest, "shards")
        if isinstance(shard, dict) and isinstance(shard.get("path"), str)
    }
    for error in closed:
        folder = Path(error.filename).relative_to(root).as_posix()
        message = f"this folder cannot be read: {error.strerror}"
        found.problems.append(("file.unreadable", f"{folder}/", 0, 0, None, message))
    if not found.items and not closed:
        raise InputError(f"{root}: no sitemap in this folder", code="target.empty", input=str(root))
    return found


def _walk(root: Path, closed: list[OSError]) -> Iterator[Path]:
    """The files of a folder that may be sitemaps; folders in it that cannot be read go to
    ``closed``.

    Raises:
        InputError: ``target.unreadable`` where the folder itself cannot be read.
    """

    def failed(error: OSError) -> None:
        if Path(error.filename) == root:
            raise InputError(
                f"{root}: this folder cannot be read: {error.strerror}",
                code="target.unreadable", input=str(root),
            ) from None  # fmt: skip
        if isinstance(error, FileNotFoundError):
            return  # it went away meanwhile
        closed.append(error)

    for folder, folders, names in os.walk(root, onerror=failed):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(folder, name)


def _merged(known: list[dict[str, Any]]) -> dict[str, Any]:
    """What the manifests of all names in a folder say together; nothing in anybody's folder."""
    if len(known) < 2:
        return known[0] if known else {}
    merged = dict(known[0])
    for key in ("shards", "retired", "indexes"):
        merged[key] = [entry for manifest in known for entry in _list(manifest, key)]
    if any(manifest.get("sitemap_url") != merged.get("sitemap_url") for manifest in known):
        merged.pop("sitemap_url", None)  # each set has its own: the indexes tell the addresses
    return merged


def _paths(manifest: dict[str, Any]) -> Iterator[str]:
    """The files of a set, as its manifest lists them."""
    for entry in _list(manifest, "shards") + _list(manifest, "indexes"):
        if isinstance(entry, dict) and isinstance(entry.get("path"), str):
            yield entry["path"]
    for path in _list(manifest, "retired"):
        if isinstance(path, str):
            yield path


def _list(manifest: dict[str, Any], name: str) -> list[Any]:
    value = manifest.get(name)
    return value if isinstance(value, list) else []


def _children(
    found: Found,
    index: Item,
    children: list[_core.Child],
    root: Path,
    files: dict[str, Item],
) -> set[Path]:
    """Adds the files that a local index lists; says what is missing."""
    seen: dict[str, int] = {}
    added: set[Path] = set()
    paths = {item.path: item for item in files.values()}
    for child in children:
        loc, line = child.loc, child.line
        place = (index.name, line, child.offset, loc)
        if loc in seen:
            message = f"listed already in line {seen[loc]}"
            found.problems.append(("index.duplicate", *place, message))
            continue
        seen[loc] = line
        path, message = _local(loc, root)
        known = index if path == index.path else paths.get(path) if path else None
        other = known is not None and known.url is not None and unquote(known.url) != unquote(loc)
        if loc in found.rules[index.rules].added and (path in (None, index.path) or other):
            continue  # the build was told to list it; it is published elsewhere
        if path is None or (path == index.path and other):
            missing = f"no such file under {root.name or '.'}"
            found.problems.append(("index.missing_file", *place, missing + message))
        elif path == index.path:
            found.problems.append(("index.self", *place, "the index lists itself"))
        elif path not in added:
            added.add(path)
            item = paths.get(path) or Item(path, path.relative_to(root).as_posix())
            if other:
                message = f"by the manifest of this folder it is {item.url}"
                found.problems.append(("index.address", *place, message))
            item.url = item.url or loc
            item.listed = True
            found.items.append(item)
    return added


def _local(loc: str, root: Path) -> tuple[Path | None, str]:
    """The file under ``root`` that an address means: by the longest end of its path that exists.

    An address is hostile until shown otherwise: no part of it leads out of ``root``.
    """
    try:
        parts = [unquote(part) for part in urlsplit(loc).path.split("/") if part]
    except ValueError:
        return None, ""
    if any(part in (".", "..") or set(part) & {"/", "\\", "\0", ":"} for part in parts):
        return None, ""
    for start in range(max(0, len(parts) - 32), len(parts)):
        path = root.joinpath(*parts[start:])
        try:
            if path.is_file() and path.resolve().is_relative_to(root.resolve()):
                return path, ""
        except OSError:
            continue
    for start in range(max(0, len(parts) - 32), len(parts)):
        name = parts[-1]
        other = name[:-3] if name.lower().endswith(".gz") else f"{name}.gz"
        if not other:
            break
        path = root.joinpath(*parts[start:-1], other)
        try:
            if path.is_file():
                return None, f"; there is {path.relative_to(root).as_posix()}"
        except OSError:
            continue
    return None, ""
