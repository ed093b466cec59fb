"""The state folder: the names of its files, and the states of several sets in it.

The state of the set ``sitemap`` is the state folder itself; every other name has a folder in it.
"""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import ConfigError, PublishError
from ..options import check_name
from .directory import Directory
from .manifest import (
    MAX_STATE_BYTES,
    Journal,
    Manifest,
    damaged,
    parse_journal,
    parse_manifest,
)
from .objects import Object

#: the state folder where the user named no other
STATE = ".urlset"
MANIFEST = "manifest.json"
JOURNAL = "publish.json"
LOCK = "lock"
REJECTS = "rejects.csv"
#: where several names need a lock together and folders cannot be locked
LOCK_OF_NAMES = f"{LOCK}.names"
#: the files that the state folder contains between two builds
STATE_FILES = (MANIFEST, JOURNAL, LOCK)
#: the name whose state is the state folder itself
DEFAULT_NAME = "sitemap"
#: other names in the state folder, which no set can have there
RESERVED = (
    r"(?ai)staging(-[0-9a-f]{32})?|lock|lock\.names|announce|(manifest|publish)\.json(\.new)?"
    r"|rejects\.csv|lastmod-[0-9a-f]{32}|(changes|rejects)-.*\.(csv|jsonl|parquet|new)"
)
#: leftovers of a build that ended before its journal; not the staging of jobs with several parts
LITTER = r"staging|(manifest|publish)\.json\.new|rejects-.*\.new|changes-pending[-.].*"


def check_state_name(name: str) -> str:
    """Checks that the state folder can contain a folder of this name.

    Raises:
        ConfigError: ``config.name``.
    """
    check_name(name)
    if re.fullmatch(RESERVED, name):
        raise ConfigError(
            f"name: {name!r} is a name that the state folder uses itself; choose another",
            code="config.name",
        )
    return name


def read_manifest(folder: Directory) -> Manifest | None:
    """The manifest in a state folder; None if there is none.

    Raises:
        PublishError: ``state.unreadable``; ``state.damaged``; ``state.newer``; ``publish.path``;
            ``output.link``.
    """
    found = _read(folder, MANIFEST)
    return None if found is None else parse_manifest(found.data, folder.path / MANIFEST)


def read_journal(folder: Directory) -> Journal | None:
    """The journal in a state folder; None if there is none.

    Raises:
        PublishError: as :func:`read_manifest`.
    """
    found = _read(folder, JOURNAL)
    return None if found is None else parse_journal(found.data, folder.path / JOURNAL)


def _read(folder: Directory, name: str) -> Object | None:
    path = folder.path / name
    try:
        return folder.read(name, MAX_STATE_BYTES + 1)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EISDIR, errno.ENXIO):  # not a regular file
            raise damaged(path) from None
        raise PublishError(f"{path}: {error.strerror}", code="state.unreadable") from None


def states_in(root: Directory) -> Iterator[tuple[str, Directory]]:
    """The states of all names, ``sitemap`` first; each is open for one iteration of the loop."""
    yield DEFAULT_NAME, root
    for name in root.list():
        if re.fullmatch(RESERVED, name):
            continue
        try:
            folder = root.sub(name)
        except (OSError, PublishError):  # a file or a link, not the state of a set
            continue
        with folder:
            yield name, folder


def manifests_in(root: Directory) -> Iterator[tuple[Path, Manifest]]:
    """The manifests of all names in a state folder, with their paths.

    Raises:
        PublishError: as :func:`read_manifest`.
        OSError: a folder cannot be read.
    """
    for _, folder in states_in(root):
        manifest = read_manifest(folder)
        if manifest is not None:
            yield folder.path / MANIFEST, manifest


def manifests_of(out: Path) -> list[Manifest]:
    """The manifests of all names in an output folder, for readers that do not need one.

    A manifest that cannot be read is left out.
    """
    found = []
    with contextlib.ExitStack() as opened:
        opened.enter_context(contextlib.suppress(OSError, PublishError))  # any folder
        folder = opened.enter_context(Directory.open(out))
        state = opened.enter_context(folder.sub(STATE))
        for _, each in states_in(state):
            with contextlib.suppress(OSError, PublishError):
                manifest = read_manifest(each)
                if manifest is not None:
                    found.append(manifest)
    return found


def continues(manifest: Manifest, name: str, sets: Sequence[str]) -> bool:
    """Whether a build of this name replaces the set of a manifest that has another place.

    urlset 0.1 wrote the manifest of every name to the same place, and a job may change from one
    set to several.

    Args:
        sets: the names of the ``[[set]]`` tables of the build.
    """
    if manifest.name is not None:
        return bool(set(sets) & set(manifest.sets))
    files = [path.rpartition("/")[2] for path in manifest.files()]
    if name == DEFAULT_NAME and f"{name}.xml" in files:
        return True

    def fits(file: str, stem: str) -> bool:
        return file.startswith((f"{stem}-", f"{stem}."))

    if sets:
        return any(fits(file, stem) for file in files for stem in (*sets, name))
    return bool(files) and all(fits(file, name) for file in files)


def name_of(manifest: Manifest) -> str:
    """A name for the state of a build of urlset 0.1, which did not record its own."""
    paths = [entry.path for entry in manifest.indexes] or [entry.path for entry in manifest.shards]
    stem = paths[0].rpartition("/")[2].split(".xml")[0].split(".txt")[0] if paths else ""
    while stem:
        with contextlib.suppress(ConfigError):
            if continues(manifest, check_state_name(stem), ()):
                return stem
        stem = stem.rpartition("-")[0]
    return "former"
