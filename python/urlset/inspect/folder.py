"""The sitemap files of a folder, and those that an index on this machine lists."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .. import _core
from ..destination.manifest import Manifest
from ..destination.state import manifests_of
from ..errors import InputError
from ..report import MAX_GOOGLE_INDEXES
from .targets import Found, Item, Rules, peek

SUFFIXES = (".xml", ".xml.gz", ".txt", ".txt.gz")
#: segments of the path of a URL that may be folders on this machine
MAX_SEGMENTS = 32


def files_of_file(path: Path) -> Found:
    """One file and, if it is an index, the files that it lists."""
    kind, children = peek(path)
    found = Found([Item(path, path.name)])
    if kind == "index":
        _add_children(found, found.items[0], children, {})
    return found


def files_of_folder(
    root: Path, manifests: list[Manifest] | None = None, name: str | None = None
) -> Found:
    """All sitemap files in a folder.

    Args:
        manifests: of the sets in it; by default those in its state folder.
        name: the name in errors; by default its path.

    Raises:
        InputError: ``target.empty``, ``target.unreadable``.
    """
    found = Found()
    manifests = manifests_of(root) if manifests is None else manifests
    name_of_root = name or str(root)
    # the options of its set apply to each file; strict rules apply to the file of no set
    found.rules = [Rules(), *map(Rules.of, manifests)]
    rules_of = {path: number for number, each in enumerate(manifests, 1) for path in each.files()}
    # several sets with different URLs: their indexes contain them
    bases = {each.sitemap_url for each in manifests}
    base = bases.pop() if len(bases) == 1 else "{"
    unreadable: list[OSError] = []
    files: dict[str, Item] = {}
    for path in _walk(root, unreadable):
        name = path.relative_to(root).as_posix()
        address = None if "{" in base else f"{base}{name}"
        files[name] = Item(path, name, address, rules=rules_of.get(name, 0))
    kinds, indexes, listed = _read_indexes(found, files)
    own = [item for item in indexes if item.path not in listed]
    if len(own) > MAX_GOOGLE_INDEXES:
        first = own[MAX_GOOGLE_INDEXES]
        message = f"{len(own):,} indexes in this folder"
        found.of_file(first.name, "index.too_many", message, first.url)
    found.items[:0] = own
    done = {item.path for item in indexes} | listed
    # kept for crawlers with an old index: not part of the set
    done |= {root / name for each in manifests for name in each.retired}
    for name, item in files.items():
        if item.path in done or not _is_sitemap(name, kinds.get(name)):
            continue
        if indexes and kinds.get(name) in ("urlset", "text"):
            message = "no index in this folder lists it"
            found.of_file(name, "index.unlisted_file", message, item.url)
        found.items.append(item)
    found.shards = {shard.path: shard for each in manifests for shard in each.shards}
    for error in unreadable:
        folder = Path(error.filename).relative_to(root).as_posix()
        message = f"this folder cannot be read: {error.strerror}"
        found.of_file(f"{folder}/", "file.unreadable", message)
    if not found.items and not unreadable:
        raise InputError(
            f"{name_of_root}: no sitemap in this folder", code="target.empty", input=name_of_root
        )
    return found


def _read_indexes(
    found: Found, files: dict[str, Item]
) -> tuple[dict[str, str], list[Item], set[Path]]:
    """The kinds of files by name, the indexes, and the files that these list.

    Plain files come first, and a file that a plain index lists is not opened to find its kind.
    """
    kinds: dict[str, str] = {}
    indexes: list[Item] = []
    listed: set[Path] = set()
    for name, item in sorted(files.items(), key=lambda pair: (pair[0].endswith(".gz"), pair[0])):
        if item.path in listed:
            continue
        kinds[name], children = peek(item.path)
        if kinds[name] == "index":
            indexes.append(item)
            listed |= _add_children(found, item, children, files)
    return kinds, indexes, listed


def _is_sitemap(name: str, kind: str | None) -> bool:
    """Whether a file that no index lists is meant as a sitemap."""
    if name.endswith((".txt", ".txt.gz")) and kind not in ("text", "unreadable"):
        return False  # robots.txt and the like
    return kind != "other" or "sitemap" in name.rpartition("/")[2].lower()


def _walk(root: Path, unreadable: list[OSError]) -> Iterator[Path]:
    """The files in a folder that can be sitemaps.

    Args:
        unreadable: receives the errors of folders below ``root``.

    Raises:
        InputError: ``target.unreadable``: ``root`` cannot be read.
    """

    def failed(error: OSError) -> None:
        if Path(error.filename) == root:
            raise InputError(
                f"{root}: this folder cannot be read: {error.strerror}",
                code="target.unreadable", input=str(root),
            ) from None  # fmt: skip
        if not isinstance(error, FileNotFoundError):  # removed since it was listed
            unreadable.append(error)

    for folder, folders, names in os.walk(root, onerror=failed):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(folder, name)


def _add_children(
    found: Found, index: Item, children: list[_core.Child], files: dict[str, Item]
) -> set[Path]:
    """Adds the files that an index lists and reports the missing ones; returns their paths."""
    root = index.path.parent
    added: set[Path] = set()
    paths = {item.path: item for item in files.values()}
    for child in found.first_entries(index.name, children):
        loc = child.loc
        path, hint = _local(loc, root)
        known = index if path == index.path else paths.get(path) if path else None
        other = known is not None and known.url is not None and unquote(known.url) != unquote(loc)
        if loc in found.rules[index.rules].added and (path in (None, index.path) or other):
            continue  # an option of the build added it; it is published elsewhere
        if path is None or (path == index.path and other):
            message = f"no such file under {root.name or '.'}{hint}"
            found.of_entry(index.name, child, "index.missing_file", message)
        elif path == index.path:
            found.of_entry(index.name, child, "index.self", "the index lists itself")
        elif path not in added:
            added.add(path)
            item = paths.get(path) or Item(path, path.relative_to(root).as_posix())
            if other:
                message = f"by the manifest of this folder it is {item.url}"
                found.of_entry(index.name, child, "index.address", message)
            item.url = item.url or loc
            item.listed = True
            found.items.append(item)
    return added


def _local(loc: str, root: Path) -> tuple[Path | None, str]:
    """The file under ``root`` that a URL means: the longest end of its path that exists.

    The URL is hostile by assumption: no part of it leads out of ``root``.

    Returns:
        the path and "", or ``None`` and a hint for the message.
    """
    ends, others = children_keys(loc)
    for end in ends:
        path = root / end
        try:
            if path.is_file() and path.resolve().is_relative_to(root.resolve()):
                return path, ""
        except OSError:
            continue
    for other in others:
        path = root / other
        try:
            if path.is_file():
                return None, f"; there is {path.relative_to(root).as_posix()}"
        except OSError:
            continue
    return None, ""


def children_keys(loc: str) -> tuple[list[str], list[str]]:
    """The paths in a folder that a URL may mean, the longest first; those with the other ending.

    The URL is hostile by assumption: no path leads out of the folder.
    """
    try:
        parts = [unquote(part) for part in urlsplit(loc).path.split("/") if part]
    except ValueError:
        return [], []
    if any(part in (".", "..") or set(part) & {"/", "\\", "\0", ":"} for part in parts):
        return [], []
    ends = [parts[start:] for start in range(max(0, len(parts) - MAX_SEGMENTS), len(parts))]
    others = []
    for *folders, name in ends:
        other = name[:-3] if name.lower().endswith(".gz") else f"{name}.gz"
        if other:
            others.append("/".join((*folders, other)))
    return ["/".join(end) for end in ends], others
