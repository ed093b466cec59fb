"""The sitemap files of a target, and the problems between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .. import _core
from ..destination.manifest import Manifest, ShardRecord


@dataclass
class Item:
    """One sitemap file.

    Attributes:
        path: the file on this machine.
        name: relative to the folder, or the URL it was fetched from.
        url: its address, if known.
        listed: whether an index lists it.
        rules: the position of the rules of its set in :attr:`Found.rules`.
    """

    path: Path
    name: str
    url: str | None = None
    listed: bool = False
    rules: int = 0


@dataclass
class Rules:
    """Unusual content that the files of a set may have.

    Attributes:
        hosts: hosts that URLs may have besides the host of their file; empty: all, ``None``: none.
        added: URLs that the first index lists although the folder has no such files.
        keeps_duplicates: the set was built with ``--duplicates keep``.
        site: the site of the set, if a manifest says so.
    """

    hosts: list[str] | None = None
    added: list[str] = field(default_factory=list)
    keeps_duplicates: bool = False
    site: str | None = None

    @classmethod
    def of(cls, manifest: Manifest) -> Rules:
        """The rules of the set of a manifest."""
        hosts = None if manifest.hosts is None else list(manifest.hosts)
        return cls(hosts, list(manifest.added), manifest.keeps_duplicates, manifest.site)


class Defect(NamedTuple):
    """A problem between the files of a target.

    Attributes:
        file: the name of the :class:`Item`.
        line: from 1; 0 for the file as a whole.
        offset: byte offset before compression.
    """

    code: str
    file: str
    line: int
    offset: int
    url: str | None
    message: str


@dataclass
class Found:
    """The files of a target, and the problems between them.

    Attributes:
        items: indexes first, each file once.
        shards: the records of the manifests by file name.
        rules: those of each set that the files belong to.
    """

    items: list[Item] = field(default_factory=list)
    problems: list[Defect] = field(default_factory=list)
    shards: dict[str, ShardRecord] = field(default_factory=dict)
    rules: list[Rules] = field(default_factory=lambda: [Rules()])

    def of_file(self, file: str, code: str, message: str, url: str | None = None) -> None:
        """Adds a problem of a file as a whole."""
        self.problems.append(Defect(code, file, 0, 0, url, message))

    def of_entry(self, index: str, child: _core.Child, code: str, message: str) -> None:
        """Adds a problem of an entry of an index."""
        self.problems.append(Defect(code, index, child.line, child.offset, child.loc, message))

    def first_entries(self, index: str, children: Iterable[_core.Child]) -> Iterator[_core.Child]:
        """The entries of an index without repeated ones, which are problems."""
        lines: dict[str, int] = {}
        for child in children:
            if child.loc in lines:
                message = f"listed already in line {lines[child.loc]}"
                self.of_entry(index, child, "index.duplicate", message)
            else:
                lines[child.loc] = child.line
                yield child


def peek(path: Path) -> tuple[str, list[_core.Child]]:
    """The kind of a file, and the entries of an index; ``unreadable`` where it cannot be opened."""
    try:
        listing = _core.peek(path)
    except OSError:
        return "unreadable", []  # verify and read report the reason
    return listing.kind, listing.children
