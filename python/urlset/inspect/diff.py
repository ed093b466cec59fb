"""The URLs that were added, changed and removed between two sets of sitemaps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _core
from ..destination.manifest import ShardRecord
from ..errors import ConfigError
from ..rows import Rows
from .lookup import find
from .options import MEMORY, MIN_MEMORY, DiffOptions
from .read import must_be_whole, thread_count
from .targets import Found, Item, peek

if TYPE_CHECKING:
    from typing import Unpack

    from ..keywords import DiffKeywords

#: path, name and, if a manifest has it, digest of a file
SideFile = tuple[Any, str, str | None]


@dataclass(frozen=True)
class Counts:
    """The numbers of added, changed and removed URLs, and of files that are equal on both sides."""

    added: int
    changed: int
    removed: int
    equal_files: int


class Changes(Rows):
    """Changes as a stream of Arrow batches with the columns change, loc, lastmod, old_lastmod."""

    @property
    def counts(self) -> Counts:
        """The numbers of changes, after all rows were read.

        Raises:
            ValueError: not all rows were read.
        """
        counts = self._stream.counts()
        if counts is None:
            raise ValueError("read all rows first")
        return Counts(*counts)


def diff(
    old: str | os.PathLike[str], new: str | os.PathLike[str], **options: Unpack[DiffKeywords]
) -> Changes:
    """Compare two sets of sitemaps of any producer: files, indexes, folders or URLs.

    A URL is changed if the text of its lastmod or of any other field differs. Files with the same
    bytes on both sides are not parsed, and not even read if both sides have a manifest of urlset.
    A URL counts once, even if a side lists it several times; it is changed if the two sides do not
    list the same entries for it.

    Args:
        old, new: the set before and after.
        options: those of ``urlset diff --help``, with underscores; ``memory`` in bytes. ``report``
            reads all rows once before this function returns.

    Returns:
        Rows with the columns ``change`` (added, changed, removed), ``loc``, ``lastmod``,
        ``old_lastmod`` (as written): sorted by loc if they fit into the memory.

    Raises:
        InputError: a set does not exist, contains no sitemap, or is damaged.
        PublishError: ``output.report``: the page cannot be written.
    """
    chosen = DiffOptions(**options)
    if chosen.report is not None:
        from ..html.document import check_target  # most calls write no page

        check_target(chosen.report, (old, new), "nothing was compared")
    stack = ExitStack()
    try:
        sides = []
        for target in (old, new):
            found = stack.enter_context(find(target, allow_private=chosen.allow_private))
            must_be_whole(found, chosen.lenient)
            sides.append(files_of(found))
        changes = compare(
            *sides,
            lenient=chosen.lenient,
            memory=chosen.memory,
            threads=chosen.threads,
            stack=stack,
        )
        if chosen.report is not None:
            from ..html.diff import diff_page
            from ..html.document import write_page

            write_page(chosen.report, diff_page(changes, os.fspath(old), os.fspath(new)))
        return changes
    except BaseException:
        stack.close()
        raise


def files_of(found: Found) -> list[SideFile]:
    """The files of a side, with the digests of its manifest."""
    files: list[SideFile] = []
    for item in found.items:
        known = found.shards.get(item.name)
        digest = known.digest if known is not None and _is_current(item, known) else None
        files.append((item.path, item.name, digest))
    # an index has no digest in a manifest, and nothing to compare
    if any(digest for _, _, digest in files):
        paths = {item.name: item.path for item in found.items}
        files = [
            (path, name, digest)
            for path, name, digest in files
            if digest is not None or peek(paths[name])[0] != "index"
        ]
    return files


def _is_current(item: Item, known: ShardRecord) -> bool:
    """Whether the file is still the one of the manifest, by its size on disk."""
    try:
        return item.path.stat().st_size == known.compressed_bytes
    except OSError:
        return False


def compare(
    old: Sequence[SideFile],
    new: Sequence[SideFile],
    *,
    lenient: bool = False,
    memory: int = MEMORY,
    threads: int | None = None,
    stack: ExitStack | None = None,
) -> Changes:
    """Compare two lists of local files."""
    if memory < MIN_MEMORY:
        raise ConfigError("memory must be at least 1 MiB", code="diff.options")
    count = thread_count(threads)
    stack = stack or ExitStack()
    stream = _core.diff_stream(list(old), list(new), count, memory, lenient, stack)
    return Changes(stream, stack, count)
