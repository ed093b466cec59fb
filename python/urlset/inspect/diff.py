"""Which URLs were added, changed, removed between two sets of sitemaps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _core
from ..errors import ConfigError
from .options import MEMORY, DiffOptions
from .read import must_be_whole, thread_count
from .rows import Rows, write
from .targets import Found, Item, find

if TYPE_CHECKING:
    from typing import Unpack

    from ..keywords import DiffKeywords


@dataclass(frozen=True)
class Counts:
    """How many URLs were added, changed and removed; how many files were equal on both sides."""

    added: int
    changed: int
    removed: int
    equal_files: int


class Changes(Rows):
    """Changes as a stream of Arrow batches with the columns change, loc, lastmod, old_lastmod."""

    @property
    def counts(self) -> Counts:
        """How much changed; known once all rows were read.

        Raises:
            ValueError: they were not.
        """
        counts = self._stream.counts()
        if counts is None:
            raise ValueError("read all rows first")
        return Counts(*counts)


def diff(
    old: str | os.PathLike[str], new: str | os.PathLike[str], **options: Unpack[DiffKeywords]
) -> Changes:
    """Compare two sets of sitemaps of any producer: files, indexes, folders or URLs.

    A URL counts as changed where its lastmod or any other field differs as it is written. Files
    with the same bytes on both sides are not looked into, and not even read where both sides
    have a manifest of urlset. A URL counts once, however often a side lists it; it is changed where
    the two sides do not list the same entries for it.

    Args:
        old, new: what was, and what is.
        options: those of ``urlset diff --help``, with underscores; ``memory`` in bytes.

    Returns:
        Rows with the columns ``change`` (added, changed, removed), ``loc``, ``lastmod``,
        ``old_lastmod`` (as written): sorted by loc as long as they fit into the memory.

    Raises:
        InputError: one of them does not exist, holds no sitemap, or is damaged.
    """
    chosen = DiffOptions(**options)
    stack = ExitStack()
    try:
        sides = []
        for target in (old, new):
            found = stack.enter_context(find(target, allow_private=chosen.allow_private))
            must_be_whole(found, chosen.lenient)
            sides.append(shards_of(found))
        return compare(
            *sides,
            lenient=chosen.lenient,
            memory=chosen.memory,
            threads=chosen.threads,
            stack=stack,
        )
    except BaseException:
        stack.close()
        raise


#: path, name and, where a manifest has it, digest of a file
Shard = tuple[Any, str, str | None]


def shards_of(found: Found) -> list[Shard]:
    """The files of a side, with the digests of its manifest."""
    shards = []
    for item in found.items:
        known = found.shards.get(item.name, {})
        digest = known.get("digest")
        shards.append((item.path, item.name, digest if _is_current(item, known) else None))
    # an index has no digest in a manifest, and nothing to compare
    if any(digest for _, _, digest in shards):
        kinds = {name for _, name, digest in shards if digest is None}
        indexes = {name for name in kinds if _is_index(found, name)}
        shards = [shard for shard in shards if shard[1] not in indexes]
    return shards


def _is_current(item: Item, known: dict[str, Any]) -> bool:
    """Whether the file is still the one that the manifest speaks of, by its size on disk."""
    digest, size = known.get("digest"), known.get("compressed_bytes")
    if not isinstance(digest, str) or not isinstance(size, int):
        return False
    try:
        return item.path.stat().st_size == size
    except OSError:
        return False


def _is_index(found: Found, name: str) -> bool:
    for item in found.items:
        if item.name == name:
            try:
                return _core.peek(item.path).kind == "index"
            except OSError:
                return False
    return False


def compare(
    old: Sequence[Shard],
    new: Sequence[Shard],
    *,
    lenient: bool = False,
    memory: int = MEMORY,
    threads: int | None = None,
    stack: ExitStack | None = None,
) -> Changes:
    """Compare two lists of local files, as a build does for its change feed."""
    if memory < 1 << 20:
        raise ConfigError("memory must be at least 1 MiB", code="diff.options")
    count = thread_count(threads)
    stack = stack or ExitStack()
    stream = _core.diff_stream(list(old), list(new), count, memory, lenient, stack)
    return Changes(stream, stack, count)


def write_changes(
    old: Sequence[Shard],
    new: Sequence[Shard],
    path: str,
    **options: Any,
) -> Counts:
    """Write the changes between two lists of local files to ``path``, its suffix the format."""
    with compare(old, new, **options) as changes:
        write(changes, path)
        return changes.counts
