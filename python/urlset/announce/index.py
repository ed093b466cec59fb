"""A sitemap index (or one sitemap) read to its addresses: bounded, and safe with hostile XML."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

from ..errors import InputError

#: PROTOCOL section 1: uncompressed bytes and entries of one file
MAX_BYTES, MAX_ENTRIES = 52_428_800, 50_000
_MAX_DEPTH, _MAX_LOC, _CHUNK = 32, 2_048, 65_536
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


class IndexFile:
    """What an XML sitemap file holds.

    Attributes:
        is_index: root ``sitemapindex``; otherwise ``urlset``.
        locs: the ``loc`` of each entry; of an ``urlset`` only counted, in ``entries``.
        entries: how many there are.
    """

    def __init__(self, name: str) -> None:
        self.name, self.is_index, self.entries = name, False, 0
        self.locs: list[str] = []
        self._path: list[str] = []
        self._text: list[str] | None = None
        self._size = 0

    def wrong(self, why: str, code: str = "index.damaged") -> InputError:
        return InputError(f"{self.name}: {why}", code=code, input=self.name)

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        local = name.removeprefix(_NAMESPACE + " ")
        if not self._path:
            if local not in ("sitemapindex", "urlset"):
                raise self.wrong(
                    f"is not a sitemap: its root is {name[-100:]!r}", "index.not_a_sitemap"
                )
            self.is_index = local == "sitemapindex"
        self._path.append(local)
        if len(self._path) > _MAX_DEPTH:
            raise self.wrong("elements nested too deep")
        entry = "sitemap" if self.is_index else "url"
        if len(self._path) == 2 and local == entry:
            self.entries += 1
            if self.entries > MAX_ENTRIES:
                raise self.wrong(f"more than {MAX_ENTRIES:,} entries")
        if self.is_index and self._path[1:] == ["sitemap", "loc"]:
            self._text, self._size = [], 0

    def text(self, data: str) -> None:
        if self._text is not None:
            self._size += len(data)
            if self._size > _MAX_LOC + 512:
                raise self.wrong("a loc is too long")
            self._text.append(data)

    def end(self, _name: str) -> None:
        if self._text is not None:
            self.locs.append("".join(self._text).strip())
            self._text = None
        self._path.pop()

    def doctype(self, *_declaration: object) -> None:
        raise self.wrong("holds a DOCTYPE, which no sitemap needs: refused", "index.doctype")


def read_index(path: Path) -> IndexFile:
    """Read an index or a sitemap, gzipped or not.

    Raises:
        InputError: ``index.unreadable``, ``index.damaged``, ``index.doctype``,
            ``index.not_a_sitemap``.
    """
    found = IndexFile(str(path))
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = found.start
    parser.EndElementHandler = found.end
    parser.CharacterDataHandler = found.text
    parser.StartDoctypeDeclHandler = found.doctype
    parser.buffer_text = True
    size = 0
    try:
        with path.open("rb") as file:
            for chunk in _chunks(file):
                size += len(chunk)
                if size > MAX_BYTES:
                    raise found.wrong(f"more than {MAX_BYTES:,} bytes")
                parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except OSError as error:
        raise found.wrong(f"cannot be read: {error.strerror}", "index.unreadable") from None
    except expat.ExpatError as error:
        raise found.wrong(
            f"not well-formed XML at line {error.lineno}: {expat.ErrorString(error.code)}"
        ) from None
    except (zlib.error, EOFError, ValueError, LookupError):  # LookupError: an unknown encoding
        raise found.wrong("damaged gzip data or encoding") from None
    return found


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """The file's bytes, inflated where it is gzip, never more than a small piece at a time."""
    head = file.read(2)
    file.seek(0)
    if head != b"\x1f\x8b":
        while chunk := file.read(_CHUNK):
            yield chunk
        return
    inflate = zlib.decompressobj(wbits=31)
    while not inflate.eof:
        chunk = inflate.unconsumed_tail or file.read(_CHUNK)
        piece = inflate.decompress(chunk, _CHUNK)
        if not chunk and not piece:
            raise EOFError
        yield piece
