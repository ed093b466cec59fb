"""What the state folder says: manifests and journals, checked before anything is done with them.

The folder may hold anything: a file of another program, a damaged disk, an attack. Whatever is
read from it has the right types, bounded numbers, legal text and no path that leads out, or it is
refused as ``state.damaged``.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..errors import ConfigError, PublishError
from ..options import check_name
from .folder import Folder, inside

#: the state folder where no other was named
STATE = ".urlset"
MANIFEST = "manifest.json"
JOURNAL = "publish.json"
STAGING = "staging"
LOCK = "lock"
REJECTS = "rejects.csv"
#: a feed that waits for its delivery
PENDING = re.compile(r"changes-pending-[0-9]{1,9}\.(csv|jsonl|parquet)", re.ASCII)
#: the name whose state is the state folder itself; any other has a folder in it
DEFAULT_NAME = "sitemap"
#: what else is in the state folder, and can be no set's name there
RESERVED = re.compile(
    r"staging|lock|lock\.names|announce|(manifest|publish)\.json(\.new)?|rejects\.csv"
    r"|(changes|rejects)-.*\.(csv|jsonl|parquet|new)",
    re.IGNORECASE | re.ASCII,
)
#: what a build that ended before its journal leaves
LITTER = re.compile(
    r"staging|(manifest|publish)\.json\.new|rejects-.*\.new|changes-pending[-.].*", re.ASCII
)
#: the version of manifest and journal; a newer one is not touched
VERSION = 1
#: larger than the manifest of 2.5 billion URLs in 50,000 shards twice over
MAX_STATE_BYTES = 256 << 20
#: a journal holds a manifest, a list in it, a shard in that
MAX_DEPTH = 16
MAX_INT = (1 << 63) - 1
#: of a path in the output folder, as Linux has it
MAX_PATH = 4_096
#: what a manifest says of a shard and later goes into other files
DIGEST, TIME = r"[0-9a-f]{32}", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def check_state_name(name: str) -> str:
    """A name that may have a folder in the state folder.

    Raises:
        ConfigError: ``config.name``.
    """
    check_name(name)
    if RESERVED.fullmatch(name):
        raise ConfigError(
            f"name: {name!r} is a name that the state folder uses itself; choose another",
            code="config.name",
        )
    return name


def read_state(folder: Folder, name: str) -> dict[str, Any] | None:
    """A manifest or journal; None if there is none.

    Raises:
        PublishError: ``state.unreadable``; ``state.damaged``; ``state.newer``; ``publish.path``.
    """
    path = folder.path / name
    try:
        data = folder.read(name, MAX_STATE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EISDIR, errno.ENXIO):  # no regular file
            raise _damaged(path) from None
        raise PublishError(f"{path}: {error.strerror}", code="state.unreadable") from None
    try:
        content = parsed(data)
        version = content["manifest"]
        if type(version) is not int or version < 1:
            raise TypeError("version")
        if version <= VERSION:
            check_journal(content) if name == JOURNAL else check_manifest(content)
    except PublishError as error:
        raise PublishError(
            f"{path}: is damaged, or was made to do harm: {error}; put a copy of it back, or remove"
            " it together with the sitemaps of the former build and build everything anew",
            code=error.code,
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _damaged(path) from None
    if version > VERSION:
        raise PublishError(
            f"{path}: was written by a newer urlset; update urlset, or choose another --out",
            code="state.newer",
        )
    return content


def _damaged(path: Path) -> PublishError:
    return PublishError(
        f"{path}: is damaged; put a copy of it back, or remove it together with the sitemaps"
        " of the former build and build everything anew",
        code="state.damaged",
    )


def parsed(data: bytes) -> dict[str, Any]:
    """A JSON object of which every part can be used: legal text, finite and bounded numbers.

    Raises:
        ValueError, TypeError, RecursionError: it is none.
    """
    if len(data) > MAX_STATE_BYTES:
        raise ValueError("too large")
    content = json.loads(data.decode())
    if not isinstance(content, dict):
        raise TypeError("object")
    level: list[Any] = [content]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                for key in value:
                    key.encode()
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            elif isinstance(value, str):
                value.encode()  # a lone surrogate is no text
            elif isinstance(value, int):
                if abs(value) > MAX_INT:
                    raise ValueError("number")
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError("number")
        if not below:
            return content
        level = below
    raise ValueError("depth")


def check_journal(content: dict[str, Any]) -> None:
    """Raises ValueError, TypeError or KeyError where a part is missing or of a wrong type."""
    feeds = _list(content, "feeds") if "feeds" in content else []
    for feed in feeds:
        if not PENDING.fullmatch(feed["pending"]) or not isinstance(feed["target"], str):
            raise ValueError("feed")
        if "\0" in feed["target"] or len(feed["target"]) > MAX_PATH:
            raise ValueError("target")
    if "new" not in content and feeds:
        return  # nothing but feeds is left to deliver
    for key in ("moves", "remove"):
        for path in _list(content, key):
            _check_path(path)
            if key == "moves" and not is_sitemap(path):
                raise ValueError("moves")
    check_manifest(content["new"])


def check_manifest(content: dict[str, Any]) -> None:
    """Raises ValueError, TypeError or KeyError where a part is missing or of a wrong type."""
    if not isinstance(content, dict):
        raise TypeError("manifest")
    for shard in _list(content, "shards"):
        _check_path(shard["path"])
        for key, form in (("digest", DIGEST), ("changed_at", TIME)):
            if not re.fullmatch(form, shard[key], re.ASCII):
                raise ValueError(key)
        datetime.fromisoformat(shard["changed_at"])
        for key in ("compressed_bytes", "mtime_ns"):
            if type(shard[key]) is not int or shard["compressed_bytes"] < 0:
                raise TypeError(key)
        for key in ("urls", "bytes"):
            _check_type(shard, key, int)
        if shard.get("lastmod") is not None:
            _check_type(shard, "lastmod", str)
        _check_type(shard, "host", str)
    for index in _list(content, "indexes"):
        _check_path(index["path"])
        _check_type(index, "url", str)
        for key in ("sitemaps", "bytes"):
            _check_type(index, key, int)
    for path in _list(content, "retired"):
        _check_path(path)
    for key in ("site", "sitemap_url", "config", "layout", "folder", "urlset", "name"):
        _check_type(content, key, str)
    for key in ("site", "sitemap_url", "config", "layout", "folder", "urlset"):
        if key not in content:
            raise KeyError(key)
    if type(content["urls"]) is not int or content["urls"] < 0:
        raise TypeError("urls")
    if "\0" in content["folder"]:
        raise ValueError("folder")
    if "sets" in content and not all(isinstance(name, str) for name in _list(content, "sets")):
        raise TypeError("sets")


def _check_path(path: Any) -> None:
    if not isinstance(path, str):
        raise TypeError("path")
    if len(path.encode()) > MAX_PATH:
        raise ValueError("path")
    inside(Path("the output folder"), path)


def _check_type(holder: dict[str, Any], key: str, kind: type) -> None:
    if key in holder and type(holder[key]) is not kind:
        raise TypeError(key)


def _list(holder: dict[str, Any], key: str) -> list[Any]:
    value = holder[key]
    if not isinstance(value, list):
        raise TypeError(key)
    return value


def states_in(root: Folder) -> Iterator[tuple[str, Folder]]:
    """The states of all names, that of ``sitemap`` first; each is open for one turn of the loop."""
    yield DEFAULT_NAME, root
    for name in root.names():
        if RESERVED.fullmatch(name):
            continue
        try:
            folder = root.sub(name)
        except (OSError, PublishError):  # a file, or a link: no state of a set
            continue
        with folder:
            yield name, folder


def manifests_in(root: Folder) -> Iterator[tuple[Path, bytes]]:
    """The manifests of all names in a state folder; not checked.

    Raises:
        PublishError, OSError: one cannot be read.
    """
    for _, folder in states_in(root):
        with contextlib.suppress(FileNotFoundError):
            yield folder.path / MANIFEST, folder.read(MANIFEST, MAX_STATE_BYTES + 1)


def read_manifests(out: Path) -> list[dict[str, Any]]:
    """What the manifests in an output folder say, for readers, who need none of it.

    What is no manifest is left out, whatever it is.
    """
    found = []
    wrong = (OSError, PublishError, ValueError, TypeError, RecursionError)
    with contextlib.ExitStack() as opened:
        opened.enter_context(contextlib.suppress(OSError, PublishError))  # anybody's folder
        folder = opened.enter_context(Folder.open(out))
        state = opened.enter_context(folder.sub(STATE))
        for _, each in states_in(state):
            with contextlib.suppress(*wrong):
                found.append(parsed(each.read(MANIFEST, MAX_STATE_BYTES + 1)))
    return found


def files_of(manifest: dict[str, Any]) -> Iterator[str]:
    """Every file that a manifest lists."""
    for kind in ("shards", "indexes"):
        for entry in manifest.get(kind, ()):
            yield entry["path"]
    yield from manifest.get("retired", ())


def files_of_journal(journal: dict[str, Any]) -> Iterator[str]:
    """Every file that a publication that was begun replaces, removes or lists."""
    yield from journal.get("moves", ())
    yield from journal.get("remove", ())
    yield from files_of(journal.get("new", {}))


def is_of(manifest: dict[str, Any], name: str, sets: Sequence[str]) -> bool:
    """Whether a build of this name carries on what another state folder, or 0.1, has listed.

    Args:
        sets: the names of its ``[[set]]`` tables: a job whose sets come and go stays one job.
    """
    if "name" in manifest:
        return bool(set(sets) & set(manifest.get("sets", ())))
    files = [path.rpartition("/")[2] for path in files_of(manifest)]
    if name == DEFAULT_NAME and f"{name}.xml" in files:
        return True

    def fits(file: str, stem: str) -> bool:
        return file.startswith((f"{stem}-", f"{stem}."))

    if sets:
        return any(fits(file, stem) for file in files for stem in (*sets, name))
    return bool(files) and all(fits(file, name) for file in files)


def name_of(manifest: dict[str, Any]) -> str:
    """A name for the state of a build of 0.1, which did not note its own."""
    for entry in (*manifest["indexes"], *manifest["shards"]):
        stem = entry["path"].rpartition("/")[2].split(".xml")[0].split(".txt")[0]
        while stem:
            try:
                if is_of(manifest, check_state_name(stem), ()):
                    return str(stem)
            except ConfigError:
                pass
            stem = stem.rpartition("-")[0]
        break
    return "former"


def is_sitemap(path: str) -> bool:
    """Whether a file may be one that urlset made, by its name: robots.txt and page.html are not."""
    name = path.rpartition("/")[2]
    known = name.removesuffix(".gz").endswith((".xml", ".txt"))
    return known and not path.startswith(".") and name.lower() != "robots.txt"
