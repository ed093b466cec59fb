"""Names of files: no two files of a job share one, even if the case of letters is ignored.

The files of a *stem* are its shards, ``STEM-00001.xml.gz`` or ``STEM-HASH-DIGEST.xml.gz``, and its
indexes, ``STEM.xml`` and ``STEM-index-2.xml``. A set that is not split has its name as its stem; a
set that is split has a stem for each value, ``NAME-VALUE`` or ``HOST/NAME``.

The names of sets are known before anything is read: those that collide are refused. Values are not
known: the core gives a value another name if its files would collide with those of a stem in
:func:`taken_stems`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from ..errors import ConfigError, PublishError

if TYPE_CHECKING:
    from ..options import Options

#: the name of a file of the stem ``owner``, without ``.xml``
FILE_OF = r"(?s)(?P<owner>.+)-(?:[0-9]{5,}|index-[0-9]+|[0-9a-f]{16}-[0-9a-f]{16})"


def owner_of(stem: str) -> str | None:
    """The stem that has a file with the name of the first index of ``stem``: ``a`` for ``a-00001``.

    ``owner`` in ``shard/name.rs`` is the same rule.
    """
    match = re.fullmatch(FILE_OF, stem.lower())
    return match["owner"] if match else None


def splits_index(options: Options) -> bool:
    """Whether each value of ``split_by`` has a separate index."""
    return options.split_by == "@host" or (
        options.split_by is not None and options.split_index == "each"
    )


def check_sets(sets: Sequence[Options], *, where: str) -> None:
    """Checks that no two sets of a job can write files of the same name, for any rows.

    Raises:
        ConfigError: ``config.set``.
    """
    for one, other in combinations(sets, 2):
        a, b = one.name.lower(), other.name.lower()
        if a == b:
            raise ConfigError(f"{where}: two sets have the same name", code="config.set")
        # each of them has an index in the folder of a host
        by_host = one.split_by == other.split_by == "@host"
        if by_host and (owner_of(a) == b or owner_of(b) == a):
            raise ConfigError(
                f"{where}: files of the sets {one.name} and {other.name} may have the same name;"
                " choose another name for one of them",
                code="config.set",
            )


def taken_stems(sets: Sequence[Options], index: str) -> list[str]:
    """The stems that no value of a set may get: those of sets and of the index of all sets.

    Args:
        index: the stem of the index over all sets.
    """
    if len(sets) == 1:
        return []
    stems = [options.name for options in sets if options.split_by is None]
    shared = any(not splits_index(options) or options.add_sitemap for options in sets)
    return [*stems, index] if shared else stems


def taken_by(stems: Iterable[str]) -> list[str]:
    """The stems that conflict with files of these stems."""
    names: list[str] = []
    for stem in stems:
        owner = owner_of(stem)
        names += [stem] if owner is None else [stem, owner]
    return names


def check_files(shards: Iterable[tuple[str, str]], indexes: Iterable[str]) -> None:
    """Checks that no two files of a build share a name, and that none has the name of a folder.

    Args:
        shards: path and digest of each; equal shards with content names share a file.
        indexes: the paths of the indexes.

    Raises:
        PublishError: ``output.same_name``; nothing was published.
    """
    known: set[str] = set()
    paths = [path for path, _ in dict.fromkeys(shards)] + list(indexes)
    folders = {path.lower().rpartition("/")[0] for path in paths}
    for path in paths:
        name = path.lower()
        if name in known or name in folders:
            raise PublishError(
                f"{path}: two files of this build would have this name; nothing was published;"
                " choose other names for the sets",
                code="output.same_name",
            )
        known.add(name)
