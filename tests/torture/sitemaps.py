"""Published sets as a crawler reads them: by zlib, and by expat or lxml, never by urlset."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .case import SITE, Failed

NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
#: what the protocol allows in one file
MAX_URLS, MAX_BYTES = 50_000, 52_428_800

Entry = tuple[str, str]  # loc and lastmod


def inflate(path: Path) -> bytes:
    """The bytes of a file; one gzip member without trailing bytes, if it is compressed."""
    data = path.read_bytes()
    if path.suffix != ".gz":
        return data
    decoder = zlib.decompressobj(31)
    try:
        text = decoder.decompress(data)
    except zlib.error as error:
        raise Failed(f"{path.name}: does not inflate: {error}") from None
    if not decoder.eof or decoder.unused_data:
        raise Failed(f"{path.name}: is cut off, or something follows")
    return text


def parse(text: bytes, name: str, rng: random.Random | None = None) -> Any:
    """The root element, by expat or, at random, by lxml."""
    try:
        if rng is not None and rng.random() < 0.3:
            from lxml import etree  # type: ignore[import-untyped, unused-ignore]

            return etree.fromstring(text, etree.XMLParser(no_network=True, huge_tree=True))
        return ElementTree.fromstring(text)
    except SyntaxError as error:  # both raise subclasses of it
        raise Failed(f"{name}: is not well-formed: {error}") from None


def entries(path: Path, rng: random.Random | None = None) -> list[Entry]:
    """The entries of a sitemap."""
    text = inflate(path)
    if path.name.removesuffix(".gz").endswith(".txt"):
        return [(line, "") for line in text.decode().splitlines()]
    root = parse(text, path.name, rng)
    if root.tag != f"{NS}urlset" or len(text) > MAX_BYTES or not 1 <= len(root) <= MAX_URLS:
        raise Failed(f"{path.name}: {root.tag} with {len(root)} entries, {len(text)} bytes")
    return [(url.findtext(f"{NS}loc") or "", url.findtext(f"{NS}lastmod") or "") for url in root]


def listed(path: Path) -> list[str]:
    """The files that an index lists, relative to its folder."""
    root = parse(path.read_bytes(), path.name)
    if root.tag != f"{NS}sitemapindex":
        raise Failed(f"{path.name}: is no index")
    return [(one.findtext(f"{NS}loc") or "").removeprefix(f"{SITE}/") for one in root]


def manifest(out: Path) -> dict[str, Any]:
    """The manifest of the live set."""
    return dict(json.loads((out / ".urlset/manifest.json").read_text()))


def shards(out: Path) -> list[str]:
    """All shards as the indexes list them; fails if a file is in two, missing, or in none."""
    live = manifest(out)
    names = [name for index in live["indexes"] for name in listed(out / index["path"])]
    if len(set(names)) != len(names):
        raise Failed(f"a shard is listed twice: {sorted(names)}")
    known = {*names, *(index["path"] for index in live["indexes"]), *live["retired"]}
    there = {
        str(path.relative_to(out))
        for path in out.rglob("*")
        if path.is_file() and ".urlset" not in path.parts
    }
    if there != known:
        raise Failed(f"files {sorted(there ^ known)} are in no index, or are missing")
    for entry in live["shards"]:
        size = (out / entry["path"]).stat().st_size
        if size != entry["compressed_bytes"]:
            raise Failed(f"{entry['path']}: {size} bytes, the manifest says otherwise")
    return names


def read_set(out: Path, rng: random.Random | None = None) -> list[Entry]:
    """All entries from the indexes, in their order."""
    return [entry for name in shards(out) for entry in entries(out / name, rng)]


def live_urls(out: Path) -> list[str]:
    """The entries that a crawler finds from ``sitemap.xml``, at any moment."""
    index = out / "sitemap.xml"
    return [loc for name in listed(index) for loc, _ in entries(out / name)]
