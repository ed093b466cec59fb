"""Checks that a contestant wrote all rows: reads its shards and compares them with the catalog."""

from __future__ import annotations

import csv
import gzip
import hashlib
import html
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.parsers import expat

from common import BenchError

MAX_URLS = 50_000
_LOC = re.compile(rb"<loc>([^<]*)</loc>")


@dataclass(frozen=True)
class Expected:
    """The expected entries of the shards of a catalog, in its order."""

    urls: int
    first: str
    last: str
    digest: str


def expected(catalog: Path) -> Expected:
    """Read from a CSV catalog with Python's csv; cached in a file beside it."""
    memory = catalog.with_suffix(".expected.json")
    if memory.exists() and memory.stat().st_mtime >= catalog.stat().st_mtime:
        return Expected(**json.loads(memory.read_text()))
    digest = hashlib.sha256()
    first = last = ""
    count = 0
    with catalog.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            last = row["url"]
            first = first or last
            count += 1
            digest.update(last.encode() + b"\n")
    told = Expected(count, first, last, digest.hexdigest())
    memory.write_text(json.dumps(asdict(told)))
    return told


def shards(folder: Path) -> list[Path]:
    """The files of a folder that contain a <urlset>, by the numbers in their names."""
    found = [path for path in folder.rglob("*.xml*") if ".urlset" not in path.parts]
    kept = [path for path in found if b"<urlset" in _head(path)]
    return sorted(kept, key=lambda path: [int(part) for part in re.findall(r"\d+", path.name)])


def check(folder: Path, want: Expected) -> int:
    """Returns the bytes of the shards as written; BenchError lists what is missing.

    All rows must be there in the order of the catalog, each with loc, lastmod and priority, in
    well-formed files of at most 50,000 URLs.
    """
    digest = hashlib.sha256()
    count = size = 0
    files = shards(folder)
    first = last = b""
    for number, path in enumerate(files):
        data = content(path)
        if number in (0, len(files) - 1):
            _well_formed(path, data)
        locs = [_unescaped(loc) for loc in _LOC.findall(data)]
        if len(locs) > MAX_URLS:
            raise BenchError(f"{path.name} holds {len(locs)} URLs")
        for name in (b"<lastmod>", b"<priority>"):
            if data.count(name) != len(locs):
                raise BenchError(f"{path.name}: {data.count(name)} {name.decode()} in {len(locs)}")
        if locs:
            first = first or locs[0]
            last = locs[-1]
            digest.update(b"\n".join(locs) + b"\n")
        count += len(locs)
        size += path.stat().st_size
    if count != want.urls:
        raise BenchError(f"{count} URLs written, {want.urls} expected")
    if (first.decode(), last.decode()) != (want.first, want.last):
        raise BenchError(f"first and last loc are {first!r} and {last!r}")
    if digest.hexdigest() != want.digest:
        raise BenchError("the locs differ from those of the catalog")
    return size


def _head(path: Path) -> bytes:
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path) if zipped else path.open("rb") as file:
        return file.read(1_000)


def content(path: Path) -> bytes:
    """The content of a sitemap, decompressed if necessary."""
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _unescaped(loc: bytes) -> bytes:
    return html.unescape(loc.decode()).encode() if b"&" in loc else loc


def _well_formed(path: Path, data: bytes) -> None:
    try:
        expat.ParserCreate().Parse(data, True)
    except expat.ExpatError as error:
        raise BenchError(f"{path.name} is not well-formed: {error}") from None


def count_urls(path: Path) -> int:
    """The number of URLs of a shard."""
    return len(_LOC.findall(content(path)))


def distinct_urls(catalog: Path) -> int:
    """The number of different URLs of a CSV catalog; uses about 100 bytes of memory per URL."""
    with catalog.open(newline="", encoding="utf-8") as file:
        return len({hash(row["url"]) for row in csv.DictReader(file)})
