"""Which encoder compresses the shards.

Measured on one core over finished XML shards (MB/s, and how many times smaller):

    ISA-L, the wheel ``isal``, a shard at once   level 1  614  4.18    level 2  581  4.29
    ISA-L, the wheel ``isal``, a stream          level 1  673  4.18    level 2  630  4.29
                                                 level 0  684  3.77    level 3  317  4.40
    ISA-L linked in                              level 1  667  4.18    level 2  627  4.29
        level 0 with a Huffman table made from the first shard         700  4.18

A stream takes a call for each block of the shard (``BLOCK`` in ``shard/gzip.rs``), with the GIL
released, and needs no buffer for the shard as a whole: as fast as the library linked in, without
nasm and autotools where urlset is installed. So the wheel it is, and libdeflate (in the Rust core)
where there is none. ISA-L's bytes may differ between CPU families.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from isal import isal_zlib
except ImportError:  # no wheel for this platform
    isal_zlib: Any = None  # type: ignore[no-redef] # a module or nothing

#: what ``--level`` means: the level of ISA-L, of libdeflate where ISA-L is missing
LEVELS = {"fast": (0, 1), "default": (1, 1), "best": (None, 9)}

#: window bits of zlib that ask for a gzip file
GZIP = 31
#: memory level of zlib: the most
MEMORY = 9


def encoder_name() -> str:
    """The encoder and its version, as ``urlset --version`` names it."""
    if isal_zlib is None:
        return "libdeflate"
    from isal import __version__

    return f"ISA-L, isal {__version__}"


def encoder(level: str) -> Callable[[], Any] | int:
    """What the core compresses with: what begins a stream of ISA-L, or a level of libdeflate."""
    isal, libdeflate = LEVELS[level]
    if isal_zlib is None or isal is None:
        return libdeflate
    begin, method = isal_zlib.compressobj, isal_zlib.DEFLATED
    return lambda: begin(isal, method, GZIP, MEMORY)
