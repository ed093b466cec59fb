"""What stable shards of two generations have in common, left out before they are compared.

An edit leaves the border of its shard mostly where it is, so the old and the new shard of that
border begin and end alike. Equal entries at both ends cancel, because in a build with a change feed
no URL stands in two places (it needs ``--duplicates drop`` or ``fail``). Only what lies between
goes to the comparison, which costs far more a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

#: path, name and digest of a file, as :mod:`urlset.diff` takes it
Shard = tuple[Any, str, str | None]

URL, END = b"<url>", b"</urlset>\n"
#: bytes that are compared at once: copies of that size stay in the cache, and hold the GIL for 1 ms
#: a pair of 7 MB, where halves of the whole took 10
BLOCK = 1 << 16


def trimmed(
    old: Sequence[Shard], new: Sequence[Shard], folder: Path
) -> tuple[list[Shard], list[Shard]]:
    """The same files; of those that share a border, copies in ``folder`` of what differs.

    An old file without a digest (it was edited by hand) stays as it is.
    """
    by_border = {_border(name): (path, name, digest) for path, name, digest in old if digest}
    pairs = [
        (by_border.pop(_border(shard[1])), shard)
        for shard in new
        if _border(shard[1]) in by_border and _is_xml(shard[1])
    ]
    paired = [{pair[side][1] for pair in pairs} for side in (0, 1)]
    rest_old = [shard for shard in old if shard[1] not in paired[0]]
    rest_new = [shard for shard in new if shard[1] not in paired[1]]

    def cut(numbered: tuple[int, tuple[Shard, Shard]]) -> list[list[Shard]]:
        number, (before, after) = numbered
        kept: list[list[Shard]] = [[], []]
        contents = _content(before[0]), _content(after[0])
        if contents[0] is None or contents[1] is None:
            return [[before], [after]]
        texts = common_ends_cut(contents[0], contents[1])
        for side, (shard, text) in enumerate(zip((before, after), texts, strict=True)):
            if text is not None:
                path = folder / f"{number}-{side}.xml"
                path.write_bytes(text)
                kept[side].append((path, shard[1], None))
        return kept

    with ThreadPoolExecutor(2) as pool:
        for kept in pool.map(cut, enumerate(pairs)):
            rest_old += kept[0]
            rest_new += kept[1]
    return rest_old, rest_new


def _border(name: str) -> str:
    """``NAME-<border>`` of ``NAME-<border>-<digest>.xml.gz``."""
    return name.rpartition("-")[0]


def _is_xml(name: str) -> bool:
    return name.endswith((".xml", ".xml.gz"))


def _content(path: Path) -> bytes | None:
    """The document; None for what cannot be read: the comparison says why."""
    inflate: Any
    try:
        from isal import isal_zlib as inflate
    except ImportError:
        import zlib as inflate
    try:
        data = path.read_bytes()
        return bytes(inflate.decompress(data, 31)) if path.name.endswith(".gz") else data
    except (OSError, inflate.error):
        return None


def common_ends_cut(old: bytes, new: bytes) -> tuple[bytes | None, bytes | None]:
    """Both documents without the entries that they share at their beginning and at their end.

    None for one of which nothing is left.
    """
    first = [text.find(URL) for text in (old, new)]
    if -1 in first:
        return old, new
    start = old.rfind(URL, 0, _common_prefix(old, new))
    starts = [start, start] if start >= 0 else first
    room = min(len(old) - starts[0], len(new) - starts[1])
    same = _common_suffix(old, new, room)
    tail = old.find(URL, len(old) - same)
    kept = len(old) - tail if tail >= 0 else len(END)
    cut: list[bytes | None] = []
    for text, head, begin in zip((old, new), first, starts, strict=True):
        middle = text[begin : len(text) - kept]
        cut.append(text[:head] + middle + END if URL in middle else None)
    return cut[0], cut[1]


def _common_prefix(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with alike."""
    most = min(len(one), len(other))
    at = 0
    while at < most and one[at : at + BLOCK] == other[at : at + BLOCK]:
        at += BLOCK
    low, high = min(at, most), min(at + BLOCK, most)
    while low < high:
        middle = (low + high + 1) // 2
        if one[at:middle] == other[at:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(one: bytes, other: bytes, most: int) -> int:
    """How many bytes, of at most ``most``, two texts end with alike."""
    a, b = len(one), len(other)
    at = 0
    while at + BLOCK <= most and one[a - at - BLOCK : a - at] == other[b - at - BLOCK : b - at]:
        at += BLOCK
    low, high = at, min(at + BLOCK, most)
    while low < high:
        middle = (low + high + 1) // 2
        if one[a - middle : a - at] == other[b - middle : b - at]:
            low = middle
        else:
            high = middle - 1
    return low
