"""Which objects exist, by a few listings of a prefix that may contain anything."""

from __future__ import annotations

from collections.abc import Iterable

from ..transport.store import Location
from .interface import Stored
from .uploads import e_tag_of


def found_in(
    location: Location, keys: Iterable[str], others: Iterable[str] = ()
) -> dict[str, Stored]:
    """Those of the keys that exist.

    A listing begins before the next wanted key. After a page without one, the next listing begins
    later: a bucket with millions of other objects takes as many requests as an empty one.

    Args:
        keys: of these, one that was not listed is requested: not every store lists in order.
        others: of these, one that was not listed does not exist.
    """
    keys = set(keys)
    found = _listed(location, sorted(keys.union(others)))
    for key in keys.difference(found):
        one = location.head(key)
        if one is not None:
            found[key] = Stored(one.size, 0, e_tag_of(one.version))
    return found


def _listed(location: Location, wanted: list[str]) -> dict[str, Stored]:
    found: dict[str, Stored] = {}
    position = 0
    while position < len(wanted):
        # a listing begins behind this name, which is before the key and after the one before it
        start = wanted[position][:-1]
        for number, page in enumerate(location.pages(after=start)):
            before = position
            sizes = {one.key: one for one in page}
            last = max(sizes, default="")
            while position < len(wanted) and wanted[position] <= last:
                one = sizes.get(wanted[position])
                if one is not None:
                    found[one.key] = Stored(one.size, 0, e_tag_of(one.version))
                position += 1
            if position == len(wanted) or (number and position == before):
                break
        else:
            return found
    return found
