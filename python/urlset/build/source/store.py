"""Inputs in object stores: an object, a glob, or a prefix with the files of a data set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from typing import Any

from ...errors import InputError
from ...options import Options
from ...transport.store import Address, Location, Stored, address_of, open_store
from ...transport.store_reader import ObjectReader, ParquetObject, read_at
from .input import Input, file_format
from .names import ABOUT, BZIP2_HEAD, HEAD, by_ending, format_of
from .pipe import stream_input
from .stream import Stream

_MAGIC = re.compile(r"[*\[]")


def store_inputs(
    uri: str, options: Options, partitions: Callable[[], Iterable[Input]]
) -> Iterable[Input]:
    """The inputs at an address.

    Args:
        partitions: returns the input for a prefix with hive partitions (``country=de/``).

    Raises:
        InputError: ``input.missing``, ``input.unreachable``, ``input.mixed``, ``input.damaged``.
    """
    address = address_of(uri)
    magic = _MAGIC.search(address.key)
    folder = address.key[: magic.start()].rpartition("/")[0] if magic else address.key
    if not magic and address.key and not uri.endswith("/"):
        parent, _, name = address.key.rpartition("/")
        place = _place(address, parent)
        known = place.head(name)
        if known is not None:
            return [_object_input(place, known, options)]
    place = _place(address, folder)
    if magic:
        pattern = address.key[len(folder) :].lstrip("/")
        found = sorted(_matching(place, pattern))
        if not found:
            raise InputError(f"{address}: no object matches", code="input.missing", input=uri)
    else:
        found = sorted(_data(place, options))
        if not found:
            raise InputError(f"{address}: there is no such object", code="input.missing", input=uri)
    formats = {options.format or by_ending(each.key) for each in found}
    if formats == {"parquet"} and any("=" in each.key.rpartition("/")[0] for each in found):
        return partitions()
    if not magic and len(formats) > 1:
        raise InputError(
            f"{address}: contains objects of several formats"
            f" ({', '.join(sorted(map(str, formats)))}); select them with a glob, or with --format",
            code="input.mixed",
            input=uri,
        )
    return [_object_input(place, known, options) for known in found]


def _place(address: Address, key: str) -> Location:
    return open_store(str(address._replace(key=key)), code=_code)


def _code(kind: str) -> str:
    return "input.damaged" if kind == "changed" else "input.unreachable"


def _matching(place: Location, pattern: str) -> Iterator[Stored]:
    """The objects whose keys match; ``**`` stands for any number of parts, hidden ones excluded."""
    parts = ["" if part == "**" else translate(part) for part in pattern.split("/")]
    expressions = [re.compile(part) for part in parts]

    def matches(names: list[str], at: int = 0) -> bool:
        if at == len(parts):
            return not names
        if not parts[at]:
            return any(
                matches(names[skipped:], at + 1)
                for skipped in range(len(names) + 1)
                if not any(name.startswith(".") for name in names[:skipped])
            )
        return bool(
            names
            and expressions[at].match(names[0])
            and (not names[0].startswith(".") or pattern.split("/")[at].startswith("."))
            and matches(names[1:], at + 1)
        )

    return (each for each in place.list() if matches(each.key.split("/")))


def _data(place: Location, options: Options) -> Iterator[Stored]:
    """The objects under a prefix that are data by their names."""
    for each in place.list():
        parts = each.key.split("/")
        is_hidden = any(part.startswith((".", "_")) for part in parts)
        is_data = options.format is not None or by_ending(each.key) is not None
        if not is_hidden and is_data and each.size and not re.fullmatch(ABOUT, parts[-1]):
            yield each


def _object_input(place: Location, known: Stored, options: Options) -> Input:
    """One object, of which only the first bytes are read now."""
    name = place.url(known.key)
    # more than a pipe takes: what follows is requested only when it is read
    size = min(known.size, HEAD + 1)
    head = bytes(read_at(place, known, 0, size)) if size else b""
    if head.startswith(b"BZh"):
        head = bytes(read_at(place, known, 0, min(known.size, BZIP2_HEAD)))
    format = options.format or format_of(
        known.key, head, options, shown=name, whole=len(head) == known.size
    )
    if format == "parquet":
        file = ParquetObject(place, known)
        return Input(
            name, "parquet", remote=file, size=known.size, close=lambda: _raise(file.failure)
        )
    reader = ObjectReader(place, known, head)
    if format in ("csv", "lines"):
        return Input(
            name,
            file_format(format),
            remote=reader,
            size=known.size,
            close=lambda: _raise(reader.failure),
        )
    return stream_input(Stream(reader), name, options, path=known.key)


def _raise(failure: Any) -> None:
    if failure is not None:
        raise failure
