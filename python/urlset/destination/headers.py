"""The headers of the objects of a set.

A name of a shard covers its headers (:attr:`Headers.salt`): an object is never written again with
others. Every write sends all headers: a write without them resets them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .. import _core
from ..errors import ConfigError

if TYPE_CHECKING:
    from ..options import Options

#: the content of a shard never changes under its name
SHARD_CACHE = "public, max-age=31536000, immutable"
#: five minutes: crawlers read an index a few times a day, and a new set must be seen soon
INDEX_CACHE = "public, max-age=300"
#: objects of the state
STATE = {"Content-Type": "application/json", "Cache-Control": "no-store"}
#: the content types of shards, by the endings of their names. A compressed one is a file of its
#: own kind: with Content-Encoding, clients would decompress it on the way, some of them twice.
TYPES = {".gz": "application/gzip", ".xml": "application/xml", ".txt": "text/plain; charset=utf-8"}
#: what a store keeps with an object, in lower case; everything else must be metadata
KNOWN = {
    name.lower(): name
    for name in (
        "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language",
        "Content-Type", "Storage-Class",
    )
}  # fmt: skip
_STORAGE_CLASS = re.compile(r"x-(amz|goog)-storage-class")
_METADATA = re.compile(r"x-(?:amz|goog|ms)-meta-(?P<name>[a-z0-9_-]{1,100})")


@dataclass(frozen=True, slots=True)
class Headers:
    """The headers that the user named, by kind of object.

    Attributes:
        shards: of shards.
        index: of indexes.
        encoding: what the bytes of a shard depend on besides its content.
    """

    shards: Mapping[str, str] = field(default_factory=dict)
    index: Mapping[str, str] = field(default_factory=dict)
    encoding: str = ""

    @classmethod
    def of(cls, options: Options) -> Headers:
        """The headers of a build.

        Raises:
            ConfigError: ``config.header``.
        """
        shards: dict[str, str] = {}
        index: dict[str, str] = {}
        if options.cache_control is not None:
            value = _checked("cache_control", options.cache_control)
            shards["Cache-Control"] = index["Cache-Control"] = value
        if options.content_encoding is not None:
            shards["Content-Encoding"] = _checked("content_encoding", options.content_encoding)
        for header in options.header:
            kind, _, rest = header.partition(":")
            kinds = {"shards": (shards,), "index": (index,)}.get(kind)
            name, sign, value = (header if kinds is None else rest).partition("=")
            if not sign:
                raise ConfigError(
                    f"header: {header!r} does not have the form NAME=VALUE, shards:NAME=VALUE or"
                    " index:NAME=VALUE",
                    code="config.header",
                )
            for one in kinds or (shards, index):
                one[_name(name.strip())] = _checked("header", value.strip())
        return cls(shards, index, options.level if options.gzip else "")

    @property
    def salt(self) -> str:
        """What the name of a shard covers besides its content."""
        return json.dumps([self.encoding, sorted(self.shards.items())])

    @property
    def of_index_digest(self) -> str:
        """Changes with the headers of the indexes."""
        return _core.digest(json.dumps(sorted(self.of_index().items())))

    def of_shard(self, path: str) -> dict[str, str]:
        """The headers of a shard."""
        content_type = TYPES[path[path.rindex(".") :]]
        return {"Content-Type": content_type, "Cache-Control": SHARD_CACHE, **self.shards}

    def of_index(self) -> dict[str, str]:
        """The headers of an index."""
        return {"Content-Type": "application/xml", "Cache-Control": INDEX_CACHE, **self.index}


def _name(name: str) -> str:
    """A name as obstore has it: a metadata field without its prefix."""
    lower = name.lower()
    if _STORAGE_CLASS.fullmatch(lower):
        return "Storage-Class"
    metadata = _METADATA.fullmatch(lower)
    if metadata is not None:
        return metadata["name"]
    if lower not in KNOWN:
        raise ConfigError(
            f"header: {name!r} is not kept by object stores; use {', '.join(KNOWN.values())} or"
            " x-amz-meta-NAME",
            code="config.header",
        )
    return KNOWN[lower]


def _checked(option: str, value: str) -> str:
    """A value that is one line: a line break would begin another header."""
    if not value or not all(" " <= character <= "~" for character in value):
        raise ConfigError(
            f"{option}: {value!r} is not a value of a header: it is empty, or has line breaks or"
            " other characters than printable ASCII",
            code="config.header",
        )
    return value
