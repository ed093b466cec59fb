"""The manifest of a set and the journal of a publication: their only reader and writer.

The manifest lists the live set. The journal lists the files that a publication moves and removes,
so that the next build can complete it. Both are JSON files in the state folder.

For maintainers: the state folder may contain anything: a file of another program, a damaged disk,
an attack. Every value is checked here, once: types, bounded numbers, legal text, no path that leads
out of the output folder. Everything else is ``state.damaged``. ``test_state_hostile.py`` fails if a
check is missing. The records are named tuples: as dataclasses they take 8 ms more at start-up.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import PublishError
from .directory import parts_of

#: the version of manifest and journal; urlset does not touch a newer one
VERSION = 1
#: twice the size of the manifest of 2.5 billion URLs in 50,000 shards
MAX_STATE_BYTES = 256 << 20
#: a journal contains a manifest, which contains a list of shards
MAX_DEPTH = 16
MAX_INT = (1 << 63) - 1
#: the limit of the characters of a loc
MAX_LOC = 2_047
#: the builds that a manifest remembers
MAX_HISTORY = 60
#: the limit of Linux for a path, in bytes
MAX_PATH = 4_096
# patterns that only some builds need: `re` compiles them at their first use, not at start-up
DIGEST = r"[0-9a-f]{32}"
TIME = r"(?a)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
#: the name of a change feed that waits for its delivery
PENDING = r"changes-pending-[0-9]{1,9}\.(csv|jsonl|parquet)"
#: the name of the stamps of ``lastmod_from``
LASTMOD = r"lastmod-[0-9a-f]{32}"
#: the staging folder of a build in one process
STAGING = "staging"
#: the staging folder of a job with several parts, named after the id of the job
JOB_STAGING = r"staging-[0-9a-f]{32}"


class ShardRecord(NamedTuple):
    """A sitemap of the set.

    Attributes:
        path: relative to the output folder.
        urls: the number of entries.
        bytes: the size before compression.
        compressed_bytes: the size of the file.
        digest: 128 bits of BLAKE3 of the uncompressed bytes, hexadecimal.
        lastmod: the newest lastmod of its entries.
        changed_at: when a build last wrote other content, UTC.
        mtime_ns: the modification time of the file; another one means that it was edited.
        host: the host that serves it, in a set that is split by host.
        e_tag: of the object, in an object store.
        first: its first loc, in a set of ordered rows.
        edge: it begins a part of a job with ordered rows.
    """

    path: str
    urls: int
    bytes: int
    compressed_bytes: int
    digest: str
    lastmod: str | None
    changed_at: str
    mtime_ns: int
    host: str | None = None
    e_tag: str | None = None
    first: str | None = None
    edge: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON; what is not in every manifest only where it is known."""
        record = self._asdict() | {"edge": self.edge or None}
        return _without_none(record, "host", "e_tag", "first", "edge")


class IndexRecord(NamedTuple):
    """A sitemap index.

    Attributes:
        path: relative to the output folder.
        sitemaps: the number of entries.
        bytes: the size of the file.
        url: where it is served.
        digest: of its text, in an object store.
    """

    path: str
    sitemaps: int
    bytes: int
    url: str | None
    digest: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON; ``digest`` only where it is known."""
        return _without_none(self._asdict(), "digest")


class StampFile(NamedTuple):
    """The file with the stamps of ``lastmod_from``, in the state folder.

    Attributes:
        file: its name, which no other file ever has.
        bytes: its size.
        digest: 128 bits of BLAKE3 of its bytes, hexadecimal.
    """

    file: str
    bytes: int
    digest: str


class Feed(NamedTuple):
    """A change feed.

    Attributes:
        pending: its name in the state folder.
        target: the path where it is delivered.
    """

    pending: str
    target: str


class StoreRecord(NamedTuple):
    """What the manifest of an object store contains besides.

    Attributes:
        build: a random id, so that no two builds write the same manifest.
        headers: a digest of the headers that the indexes have.
        journal: a journal lists further changes; the publication is complete once it is gone.
        feeds: change feeds to deliver, unless their files are gone.
    """

    build: str
    headers: str
    journal: bool = False
    feeds: tuple[Feed, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON."""
        return self._asdict() | {"feeds": [feed._asdict() for feed in self.feeds]}


class UrlChanges(NamedTuple):
    """The numbers of URLs that a build added, changed and removed."""

    added: int
    changed: int
    removed: int


class BuildRecord(NamedTuple):
    """A build that changed the set, for the history in its reports.

    Attributes:
        at: when it was published, UTC.
        rows, urls, rejected: as in the report of the build.
        shards: the number of shards of the set.
        written: those that the build wrote.
        bytes, compressed_bytes: of all shards.
        seconds: from the first row to the staged set.
        changes: of the URLs, if the build wrote a change feed.
    """

    at: str
    rows: int
    urls: int
    rejected: int
    shards: int
    written: int
    bytes: int
    compressed_bytes: int
    seconds: float
    changes: UrlChanges | None = None

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON; ``changes`` only where they are known."""
        return _without_none(self._asdict(), "changes")


class Manifest(NamedTuple):
    """What is live.

    Attributes:
        urlset: the version that wrote it.
        name: of the set; None in a manifest of urlset 0.1.
        sets: the names of the ``[[set]]`` tables, if there are any.
        site: the option.
        sitemap_url: the address of the output folder. That of a file is this and its path; with
            ``{host}`` the path is without its first folder.
        config: the digest of the options that change output bytes.
        layout: ``packed`` or ``stable``.
        hosts: the hosts that URLs may have besides that of the site; none for any host, None for
            only the host of the site.
        added: URLs of sitemaps made elsewhere that the first index lists.
        keeps_duplicates: the set may list a URL twice.
        folder: the output folder, relative to the state folder.
        urls: the number of URLs in all shards.
        shards, indexes: the files of the set.
        retired: shards of the previous generation that are kept for one more build.
        store: what an object store needs besides; None for a folder.
        history: the last 60 builds that changed the set, the newest last.
        lastmod: the stamps of ``lastmod_from``.
    """

    urlset: str
    name: str | None
    sets: tuple[str, ...]
    site: str
    sitemap_url: str
    config: str
    layout: str
    hosts: tuple[str, ...] | None
    added: tuple[str, ...]
    keeps_duplicates: bool
    folder: str
    urls: int
    shards: tuple[ShardRecord, ...]
    indexes: tuple[IndexRecord, ...]
    retired: tuple[str, ...]
    store: StoreRecord | None = None
    history: tuple[BuildRecord, ...] = ()

    def content(self) -> Manifest:
        """The manifest without what differs between two builds of the same set."""
        store = self.store
        if store is not None:
            store = store._replace(build="", journal=False, feeds=())
        return self._replace(store=store, history=())

    lastmod: StampFile | None = None

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON."""
        return {
            "manifest": VERSION,
            "urlset": self.urlset,
            **({"name": self.name} if self.name is not None else {}),
            **({"sets": list(self.sets)} if self.sets else {}),
            "site": self.site,
            "sitemap_url": self.sitemap_url,
            "config": self.config,
            "layout": self.layout,
            **({} if self.hosts is None else {"hosts": list(self.hosts) or "any"}),
            **({"added": list(self.added)} if self.added else {}),
            **({"duplicates": "keep"} if self.keeps_duplicates else {}),
            "folder": self.folder,
            "urls": self.urls,
            "shards": [shard.to_dict() for shard in self.shards],
            "indexes": [index.to_dict() for index in self.indexes],
            "retired": list(self.retired),
            **({"store": self.store.to_dict()} if self.store is not None else {}),
            **({"history": [build.to_dict() for build in self.history]} if self.history else {}),
            **({"lastmod": self.lastmod._asdict()} if self.lastmod is not None else {}),
        }

    def files(self) -> Iterator[str]:
        """Every file that the manifest lists."""
        for shard in self.shards:
            yield shard.path
        for index in self.indexes:
            yield index.path
        yield from self.retired


class Journal(NamedTuple):
    """A publication that was begun.

    Attributes:
        new: the new manifest; None if only the feeds are not delivered yet.
        moves: the staged files, in the order in which they are moved.
        remove: the files of the previous set that the new one does not list.
        feeds: change feeds that are delivered afterwards; None in a journal of urlset 0.1.
        staging: the name of the staging folder.
    """

    new: Manifest | None = None
    moves: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    feeds: tuple[Feed, ...] | None = ()
    staging: str = STAGING

    def to_dict(self, *, with_new: bool = True) -> dict[str, Any]:
        """The journal as JSON; the new manifest only ``with_new``, otherwise null."""
        content: dict[str, Any] = {"manifest": VERSION}
        if self.new is not None:
            content |= {"moves": list(self.moves), "remove": list(self.remove)}
            content["new"] = self.new.to_dict() if with_new else None
        if self.staging != STAGING:
            content["staging"] = self.staging
        if self.feeds:
            content["feeds"] = [feed._asdict() for feed in self.feeds]
        return content

    def files(self) -> Iterator[str]:
        """Every file that the publication replaces, removes or lists."""
        yield from self.moves
        yield from self.remove
        if self.new is not None:
            yield from self.new.files()


def _without_none(record: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        if record[name] is None:
            del record[name]
    return record


def to_json(content: Manifest | Journal, new: str = "") -> str:
    """The text of the file.

    Args:
        new: the text of the new manifest of a journal, if it is known: it may be long.
    """
    if not new or not isinstance(content, Journal):
        return json.dumps(content.to_dict(), separators=(",", ":"))
    text = json.dumps(content.to_dict(with_new=False), separators=(",", ":"))
    # only a key: the quotes in a value have backslashes before them
    return text.replace('"new":null', f'"new":{new}', 1)


def parse_manifest(data: bytes, path: Path | str) -> Manifest:
    """Reads and checks a manifest.

    Args:
        data: the content of the file; more than :data:`MAX_STATE_BYTES` is damage.
        path: where it was read, for messages.

    Raises:
        PublishError: ``state.damaged``; ``state.newer``; ``publish.path``.
    """
    with _checking(path):
        return _manifest(_current(data, path))


def parse_journal(data: bytes, path: Path | str) -> Journal:
    """Reads and checks a journal, as :func:`parse_manifest`.

    Raises:
        PublishError: ``state.damaged``; ``state.newer``; ``publish.path``.
    """
    with _checking(path):
        return _journal(_current(data, path))


def damaged(path: Path | str) -> PublishError:
    """The error for a file of the state folder that cannot be used."""
    return PublishError(
        f"{path}: is damaged; restore it from a copy, or remove it together with the sitemaps of"
        " the previous build and build again",
        code="state.damaged",
    )


@contextmanager
def _checking(path: Path | str) -> Iterator[None]:
    """Converts the exceptions of the checks below."""
    try:
        yield
    except PublishError as error:
        if error.code == "state.newer":
            raise
        raise PublishError(
            f"{path}: is damaged or hostile: {error}; restore it from a copy, or remove it together"
            " with the sitemaps of the previous build and build again",
            code=error.code,
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged(path) from None


def _current(data: bytes, path: Path | str) -> dict[str, Any]:
    content = _object(data)
    version = content["manifest"]
    if type(version) is not int or version < 1:
        raise TypeError("version")
    if version > VERSION:
        raise PublishError(
            f"{path}: was written by a newer urlset; update urlset, or choose another --out",
            code="state.newer",
        )
    return content


def _object(data: bytes) -> dict[str, Any]:
    """A JSON object with legal text and finite, bounded numbers only."""
    if len(data) > MAX_STATE_BYTES:
        raise ValueError("size")
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
                value.encode()  # a lone surrogate is not text
            elif isinstance(value, int):
                if abs(value) > MAX_INT:
                    raise ValueError("number")
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError("number")
        if not below:
            return content
        level = below
    raise ValueError("depth")


def _manifest(content: dict[str, Any]) -> Manifest:
    if not isinstance(content, dict):
        raise TypeError("manifest")
    folder = _text(content, "folder")
    if "\0" in folder:
        raise ValueError("folder")
    return Manifest(
        urlset=_text(content, "urlset"),
        name=_text(content, "name") if "name" in content else None,
        sets=_texts(content, "sets") if "sets" in content else (),
        site=_text(content, "site"),
        sitemap_url=_text(content, "sitemap_url"),
        config=_text(content, "config"),
        layout=_text(content, "layout"),
        hosts=_hosts(content),
        added=_texts(content, "added") if "added" in content else (),
        keeps_duplicates=content.get("duplicates") == "keep",
        folder=folder,
        urls=_count(content, "urls"),
        shards=tuple(map(_shard, _list(content, "shards"))),
        indexes=tuple(map(_index, _list(content, "indexes"))),
        retired=tuple(map(_path, _list(content, "retired"))),
        store=_store(content["store"]) if "store" in content else None,
        history=tuple(map(_build, _list(content, "history")[-MAX_HISTORY:]))
        if "history" in content
        else (),
        lastmod=_lastmod(content["lastmod"]) if "lastmod" in content else None,
    )


def _journal(content: dict[str, Any]) -> Journal:
    feeds = tuple(map(_feed, _list(content, "feeds"))) if "feeds" in content else None
    if "new" not in content and feeds:
        return Journal(feeds=feeds)
    moves = tuple(map(_path, _list(content, "moves")))
    if not all(map(is_sitemap, moves)):
        raise ValueError("moves")
    staging = _text(content, "staging") if "staging" in content else STAGING
    if staging != STAGING and not re.fullmatch(JOB_STAGING, staging):
        raise ValueError("staging")
    remove = tuple(map(_path, _list(content, "remove")))
    return Journal(_manifest(content["new"]), moves, remove, feeds, staging)


def _shard(entry: Any) -> ShardRecord:
    digest, changed_at = entry["digest"], _time(entry["changed_at"])
    if not re.fullmatch(DIGEST, digest):
        raise ValueError("shard")
    mtime_ns = entry["mtime_ns"]
    if type(mtime_ns) is not int:
        raise TypeError("mtime_ns")
    return ShardRecord(
        path=_path(entry["path"]),
        urls=_count(entry, "urls", 0),
        bytes=_count(entry, "bytes", 0),
        compressed_bytes=_count(entry, "compressed_bytes"),
        digest=digest,
        lastmod=_text(entry, "lastmod") if entry.get("lastmod") is not None else None,
        changed_at=changed_at,
        mtime_ns=mtime_ns,
        host=_text(entry, "host") if "host" in entry else None,
        e_tag=_text(entry, "e_tag") if "e_tag" in entry else None,
        first=_loc(entry, "first") if "first" in entry else None,
        edge=_true(entry, "edge") if "edge" in entry else False,
    )


def _index(entry: Any) -> IndexRecord:
    return IndexRecord(
        path=_path(entry["path"]),
        sitemaps=_count(entry, "sitemaps", 0),
        bytes=_count(entry, "bytes", 0),
        url=_text(entry, "url") if "url" in entry else None,
        digest=_text(entry, "digest") if "digest" in entry else None,
    )


def _store(entry: dict[str, Any]) -> StoreRecord:
    if not isinstance(entry, dict) or type(entry.get("journal")) is not bool:
        raise TypeError("store")
    return StoreRecord(
        build=_text(entry, "build"),
        headers=_text(entry, "headers"),
        journal=entry["journal"],
        feeds=tuple(map(_feed, _list(entry, "feeds"))),
    )


def _build(entry: Any) -> BuildRecord:
    seconds = entry["seconds"]
    if type(seconds) not in (int, float) or seconds < 0:
        raise TypeError("seconds")
    changes = None
    if "changes" in entry:
        found = _list(entry, "changes")
        changes = UrlChanges(*(_count({"changes": number}, "changes") for number in found))
    return BuildRecord(
        at=_time(entry["at"]),
        rows=_count(entry, "rows"),
        urls=_count(entry, "urls"),
        rejected=_count(entry, "rejected"),
        shards=_count(entry, "shards"),
        written=_count(entry, "written"),
        bytes=_count(entry, "bytes"),
        compressed_bytes=_count(entry, "compressed_bytes"),
        seconds=seconds,
        changes=changes,
    )


def _time(text: str) -> str:
    if not re.fullmatch(TIME, text):
        raise ValueError("time")
    datetime.fromisoformat(text)
    return text


def _lastmod(entry: dict[str, Any]) -> StampFile:
    file, digest = _text(entry, "file"), _text(entry, "digest")
    if not re.fullmatch(LASTMOD, file) or not re.fullmatch(DIGEST, digest):
        raise ValueError("lastmod")
    return StampFile(file, _count(entry, "bytes"), digest)


def _feed(entry: Any) -> Feed:
    pending, target = _text(entry, "pending"), _text(entry, "target")
    if not re.fullmatch(PENDING, pending) or "\0" in target or len(target) > MAX_PATH:
        raise ValueError("feed")
    return Feed(pending, target)


def _hosts(content: dict[str, Any]) -> tuple[str, ...] | None:
    if content.get("hosts") == "any":
        return ()
    return _texts(content, "hosts") or None if "hosts" in content else None


def _path(path: Any) -> str:
    if not isinstance(path, str):
        raise TypeError("path")
    if len(path.encode()) > MAX_PATH:
        raise ValueError("path")
    parts_of(path, Path("the output folder"))
    return path


def _text(holder: dict[str, Any], key: str) -> str:
    value = holder[key]
    if not isinstance(value, str):
        raise TypeError(key)
    return value


def _loc(holder: dict[str, Any], key: str) -> str:
    loc = _text(holder, key)
    if not 0 < len(loc) <= MAX_LOC:
        raise ValueError(key)
    return loc


def _true(holder: dict[str, Any], key: str) -> bool:
    if holder[key] is not True:
        raise TypeError(key)
    return True


def _count(holder: dict[str, Any], key: str, default: int | None = None) -> int:
    value = holder[key] if default is None else holder.get(key, default)
    if type(value) is not int or value < 0:
        raise TypeError(key)
    return value


def _texts(holder: dict[str, Any], key: str) -> tuple[str, ...]:
    values = _list(holder, key)
    if not all(isinstance(value, str) for value in values):
        raise TypeError(key)
    return tuple(values)


def _list(holder: dict[str, Any], key: str) -> list[Any]:
    value = holder[key]
    if not isinstance(value, list):
        raise TypeError(key)
    return value


def is_sitemap(path: str) -> bool:
    """Whether urlset may have made a file, by its name: not robots.txt, not page.html."""
    name = path.rpartition("/")[2]
    known = name.removesuffix(".gz").endswith((".xml", ".txt"))
    return known and not path.startswith(".") and name.lower() != "robots.txt"


def content_named(path: str) -> bool:
    """Whether the name of a shard contains a digest: no other content ever has this name."""
    return re.search(r"-[0-9a-f]{16}-[0-9a-f]{16}\.(?:xml|txt)(?:\.gz)?$", path) is not None
