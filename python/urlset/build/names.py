"""Names of files: no two files of a job have one, also where the case of letters is not told apart.

The files of a *stem* are its shards, ``STEM-00001.xml.gz`` or ``STEM-HASH-DIGEST.xml.gz``, and its
indexes, ``STEM.xml`` and ``STEM-index-2.xml``. A set that is not split has its name as stem, a set
that is split has one for each value, ``NAME-VALUE`` or ``HOST/NAME``.

Names of sets are known before anything is read: what would collide is refused. Values are not: the
core gives a value another name where its files would meet those of a stem in :func:`taken`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from ..destination.state import JOURNAL, LOCK, MANIFEST, STATE, is_sitemap
from ..errors import ConfigError, PublishError

if TYPE_CHECKING:
    from ..options import Options

#: what the state folder holds between two builds
STATE_FILES = (MANIFEST, JOURNAL, LOCK)
#: what a file of the stem ``owner`` is called, without ``.xml``
FILE_OF = re.compile(
    r"(?P<owner>.+)-(?:[0-9]{5,}|index-[0-9]+|[0-9a-f]{16}-[0-9a-f]{16})", re.DOTALL
)


def owner_of(stem: str) -> str | None:
    """The stem that has a file with the name of the first index of ``stem``, such as ``a`` for
    ``a-00001``; ``owner`` in ``shard/name.rs`` is the same rule.
    """
    match = FILE_OF.fullmatch(stem.lower())
    return match["owner"] if match else None


def splits_index(options: Options) -> bool:
    """Whether each value that the set is split by has an index of its own."""
    return options.split_by == "@host" or (
        options.split_by is not None and options.split_index == "each"
    )


def check_sets(sets: Sequence[Options], *, where: str) -> None:
    """No two sets of a job write files of one name, whatever their rows are.

    Raises:
        ConfigError: they may.
    """
    for one, other in combinations(sets, 2):
        a, b = one.name.lower(), other.name.lower()
        if a == b:
            raise ConfigError(f"{where}: two sets have one name", code="config.set")
        # in the folder of a host each of them has an index
        by_host = one.split_by == other.split_by == "@host"
        if by_host and (owner_of(a) == b or owner_of(b) == a):
            raise ConfigError(
                f"{where}: files of the sets {one.name} and {other.name} may have one name; choose"
                " another name for one of them",
                code="config.set",
            )


def taken(sets: Sequence[Options], index: str) -> list[str]:
    """The stems that no value of a set may get, since a set or the index of sets has them.

    Args:
        sets: the sets of the job.
        index: what the index over all of them is called.
    """
    if len(sets) == 1:
        return []
    stems = [options.name for options in sets if options.split_by is None]
    shared = any(not splits_index(options) or options.add_sitemap for options in sets)
    return [*stems, index] if shared else stems


def taken_by(stems: Iterable[str]) -> list[str]:
    """The stems that are taken once these have files."""
    names: list[str] = []
    for stem in stems:
        owner = owner_of(stem)
        names += [stem] if owner is None else [stem, owner]
    return names


def check_targets(
    targets: Mapping[str, str | os.PathLike[str] | None],
    out: Path,
    state: Path,
    files: Iterable[str],
) -> None:
    """What a build writes beside the set takes the place of no file of the set or of the state.

    Args:
        targets: by option where it is written, if anywhere.
        out: the output folder.
        state: the folder of the state.
        files: the paths that are live.

    Raises:
        ConfigError: ``config.{option}``, where it would.
    """
    known = {*files} if any(targets.values()) else set()
    own = {state.resolve() / name for name in STATE_FILES}
    for option, target in targets.items():
        if target is None:
            continue
        real = Path(target).resolve()
        inside = real.relative_to(out.resolve()) if real.is_relative_to(out.resolve()) else None
        if real in own or (inside is not None and inside.as_posix() in known):
            raise ConfigError(
                f"{option}: {os.fspath(target)!r} is a file of the set or of its state; write it"
                " elsewhere",
                code=f"config.{option}",
            )


def must_not_be_of_a_set(
    option: str,
    target: str | os.PathLike[str],
    out: str | os.PathLike[str],
    state: str | os.PathLike[str] | None,
) -> None:
    """A file that is written whatever comes has no name of a sitemap or of a state.

    This is known before any state is read, and it holds for the sets of other names, too.

    Args:
        option: names the file.
        out: the output folder.
        state: the folder of the state; ``None`` for the one in ``out``.

    Raises:
        ConfigError: ``config.{option}``, where it has.
    """
    real = Path(target).resolve()
    folder = Path(out).resolve()
    own = Path(state).resolve() if state is not None else folder / STATE
    of_state = real.is_relative_to(own) and real.name in STATE_FILES
    of_set = real.is_relative_to(folder) and is_sitemap(real.name)
    if of_state or of_set:
        raise ConfigError(
            f"{option}: {os.fspath(target)!r} has the name of a sitemap or of a file of the state;"
            " write it elsewhere",
            code=f"config.{option}",
        )


def check_files(shards: Iterable[tuple[str, str]], indexes: Iterable[str]) -> None:
    """No two files of a build have one name, and none has that of a folder: asked before the last
    of them are staged.

    Args:
        shards: path and digest of each; equal shards of the stable layout share a file.
        indexes: their paths.

    Raises:
        PublishError: two have one name; nothing was published.
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
