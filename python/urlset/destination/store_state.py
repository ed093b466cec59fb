"""The state of a set in an object store, and what is live.

The first index of a set is its commit record. A comment in it names the manifest, which has the
digest of its bytes in its name. So one request for the index finds the manifest, and the condition
on the index decides between two builds. A set without a first index (``--for baidu``,
``--split-index each``) has the manifest under a fixed name as its commit record; it counts only
where there is no first index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .. import _core
from ..errors import PublishError
from ..transport.store import Location, NotFoundError, Object
from .directory import parts_of
from .headers import STATE as STATE_HEADERS
from .manifest import Manifest, parse_manifest
from .state import DEFAULT_NAME, MANIFEST, STATE

#: the object that a job with several parts has until it is committed or aborted
OPEN = "open"
#: attempts to read an index and its manifest, which another build may replace in between
ATTEMPTS = 5
#: the last line of an index
FOOTER = "</sitemapindex>\n"
#: how the first index names its manifest, before the last line
MARK = "<!-- urlset {digest} -->\n"
MARKED = re.compile(rb"<!-- urlset ([0-9a-f]{32}) -->\n(?=</sitemapindex>\s*\Z)")
MARK_BYTES = len(MARK.format(digest="0" * 32))
#: names in a state that contain a digest
OF_A_PUBLICATION = re.compile(r"(?:manifest|journal)-([0-9a-f]{32})\.json")


class State(NamedTuple):
    """The state of a set: objects under a prefix."""

    location: Location
    prefix: str

    @classmethod
    def of(cls, out: Location, state: Location | None, name: str) -> State:
        """The state of the set of a name; without ``state`` it is below the set."""
        folder = "" if name == DEFAULT_NAME else f"{name}/"
        return cls(out, f"{STATE}/{folder}") if state is None else cls(state, folder)

    def key(self, name: str) -> str:
        """The key of an object."""
        return self.prefix + name

    def url(self, name: str = "") -> str:
        """The address of an object, for messages."""
        return self.location.url(self.key(name)).rstrip("/")

    def upload(self, name: str, file: Path, content_type: str) -> None:
        """Uploads a local file, in parts if it is large."""
        key, store = self.key(name), self.location.store
        headers = {**STATE_HEADERS, "Content-Type": content_type}
        self.location.call(lambda: store.put(key, file, attributes=headers), "write", key)

    def download(self, name: str, target: Path) -> bool:
        """Copies an object to a local file; False if there is none."""
        return download(self.location, self.key(name), target)

    def clear(self, folder: str) -> None:
        """Removes the objects whose names begin with ``folder/``."""
        keys = [one.key for one in self.location.list(self.key(f"{folder}/"))]
        self.location.delete(keys)


class Live(NamedTuple):
    """What is live.

    Attributes:
        record: the commit record; None before the first build.
        is_index: the commit record is the first index.
        text: of the first index, without the mark.
        digest: of the manifest.
    """

    record: Object | None = None
    is_index: bool = True
    text: str | None = None
    manifest: Manifest | None = None
    digest: str | None = None


class StoreJournal(NamedTuple):
    """The part of a publication that follows the commit.

    Attributes:
        indexes: the text of the indexes besides the first one.
        remove: the indexes that the new set does not have.
    """

    indexes: Mapping[str, str]
    remove: tuple[str, ...]

    def to_bytes(self) -> bytes:
        """The journal as JSON."""
        return json.dumps(self._asdict(), separators=(",", ":")).encode()

    @classmethod
    def parse(cls, data: bytes, place: str) -> StoreJournal:
        """Reads and checks a journal.

        Raises:
            PublishError: ``state.damaged``.
        """
        try:
            content: dict[str, Any] = json.loads(data)
            indexes, remove = content["indexes"], content["remove"]
            for path in (*indexes, *remove):
                parts_of(path, place)
            if not all(isinstance(text, str) for text in indexes.values()):
                raise TypeError("text")
            return cls(indexes, tuple(remove))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise PublishError(
                f"{place}: is damaged; remove it and build again", code="state.damaged"
            ) from None


def download(location: Location, key: str, target: Path) -> bool:
    """Copies an object to a local file, in parts; False if there is none."""
    try:
        stream = iter(location.call(lambda: location.store.get(key), "read", key))
    except NotFoundError:
        return False
    with target.open("wb") as file:
        while part := location.call(lambda: next(stream, None), "read", key):
            file.write(part)
    return True


def marked(text: str, digest: str) -> bytes:
    """The first index with the name of its manifest."""
    return f"{text.removesuffix(FOOTER)}{MARK.format(digest=digest)}{FOOTER}".encode()


def digest_in(index: bytes) -> str | None:
    """The digest that an index contains; None if urlset did not publish it to a store."""
    found = MARKED.search(index, max(0, len(index) - 4 * MARK_BYTES))
    return found[1].decode() if found else None


def read_live(out: Location, state: State, name: str) -> Live:
    """What is live under a name.

    Raises:
        PublishError: ``publish.foreign``: the index is not of urlset; ``state.missing``;
            ``state.damaged``; what the store responds.
    """
    key, missing = f"{name}.xml", None
    for _ in range(ATTEMPTS):
        index = out.get(key)
        if index is None:
            return _read_fixed(state)
        digest = digest_in(index.data)
        if digest is None:
            raise PublishError(
                f"{out.url(key)}: is there and no build of urlset is known to have made it; move it"
                " away, or choose another --name or --out",
                code="publish.foreign",
            )
        if digest == missing:
            break
        found = state.location.get(state.key(manifest_name(digest)))
        if found is not None:
            text = MARKED.sub(b"", index.data).decode()
            manifest = _parsed(found.data, digest, state)
            return Live(index, True, text, manifest, digest)
        missing = digest  # another build may have published since
    raise PublishError(
        f"{out.url(key)}: {state.url()} does not contain its manifest; name the --state of the"
        " builds that made it, or move the index away and build again",
        code="state.missing",
    )


def _read_fixed(state: State) -> Live:
    found = state.location.get(state.key(MANIFEST))
    if found is None:
        return Live()
    return Live(found, False, None, _parsed(found.data, None, state), _core.digest(found.data))


def _parsed(data: bytes, digest: str | None, state: State) -> Manifest:
    name = MANIFEST if digest is None else manifest_name(digest)
    place = state.url(name)
    if digest is not None and _core.digest(data) != digest:
        raise PublishError(
            f"{place}: is damaged: its content is not that of its name; restore it, or move the"
            " index away and build again",
            code="state.damaged",
        )
    manifest = parse_manifest(data, place)
    if manifest.store is None:
        raise PublishError(
            f"{place}: is the manifest of a folder; choose another --state", code="state.damaged"
        )
    return manifest


def manifest_name(digest: str) -> str:
    """The name of a manifest."""
    return f"manifest-{digest}.json"


def journal_name(digest: str) -> str:
    """The name of the journal that belongs to a manifest."""
    return f"journal-{digest}.json"
