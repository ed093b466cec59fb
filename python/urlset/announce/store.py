"""What is announced of a set in an object store."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..destination.store_manifests import manifests_under
from ..errors import InputError
from ..transport.store import Location, NotFoundError, address_of, open_store
from ..transport.store_reader import content
from .target import ANNOUNCE, MAX_INDEXES, Target, from_files, from_manifests, home_of

#: bytes of an index: the limit of the protocol
MAX_BYTES = 52_428_800


def read_store(target: Any, state: Path | None, sitemap_url: str | None) -> Target:
    """The target for an index or a prefix. The journal is in the state folder of the user.

    Raises:
        ConfigError, InputError: as :func:`.target.read_target`.
    """
    name = None
    place = open_store(target, code="announce.no_target")
    if isinstance(target, str) and not target.endswith("/"):
        address = address_of(target)
        parent, _, name = address.key.rpartition("/")
        above = open_store(str(address._replace(key=parent)), code="announce.no_target")
        data = _get(above, name) if name else None
        place, name = (above, name) if data is not None else (place, None)
    indexes = {name: data} if name is not None and data is not None else _indexes(place)
    if not indexes:
        raise InputError(f"{place}: contains no sitemap index (*.xml)", code="announce.no_target")
    folder = Path(place.address.bucket, place.address.key)
    known = [(folder, each) for each in manifests_under(place, indexes)]
    found = from_manifests(known, Path(), folder, name) if known else None
    if found is None:
        with tempfile.TemporaryDirectory(prefix="urlset-") as copies:
            for key, data in indexes.items():
                Path(copies, key).write_bytes(data)
            path = Path(copies, name) if name is not None else Path(copies)
            found = from_files(path, Path(copies), Path(), sitemap_url)
    home = state or home_of(found.host)
    return replace(found, folder=None, state=home / ANNOUNCE)


def _get(place: Location, name: str) -> bytes | None:
    try:
        return b"".join(content(place, name, MAX_BYTES))
    except NotFoundError:
        return None


def _indexes(place: Location) -> dict[str, bytes]:
    """The XML files directly under a prefix."""
    listed = place.call(lambda: place.store.list_with_delimiter(), "list")["objects"]
    names = sorted(each["path"] for each in listed if each["path"].endswith(".xml"))
    found = {}
    for name in names[: MAX_INDEXES + 1]:
        data = _get(place, name)
        if data is not None:
            found[name] = data
    return found
