"""The manifests of the sets under a prefix, for readers that do not need one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from ..errors import Error
from ..transport.store import Location
from .manifest import Manifest, parse_manifest
from .state import DEFAULT_NAME, MANIFEST, STATE
from .store_state import digest_in, manifest_name


def manifests_under(place: Location, indexes: Mapping[str, bytes]) -> list[Manifest]:
    """The manifests of sets that urlset published to a store, or to a folder that was copied.

    A manifest that cannot be read is left out.

    Args:
        indexes: the content of the indexes by their names.
    """
    paths = {f"{STATE}/{MANIFEST}": None}
    for name, data in indexes.items():
        stem = name.removesuffix(".xml")
        folder = STATE if stem == DEFAULT_NAME else f"{STATE}/{stem}"
        digest = digest_in(data)
        paths[f"{folder}/{MANIFEST if digest is None else manifest_name(digest)}"] = None
    found = []
    for path in paths:
        with suppress(Error):
            copy = place.get(path)
            if copy is not None:
                found.append(parse_manifest(copy.data, place.url(path)))
    return found
