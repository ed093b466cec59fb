"""The encoder that compresses the shards.

Measured on one core over finished XML shards (MB/s, and the compression ratio):

    ISA-L, the wheel ``isal``, a shard at once   level 1  614  4.18    level 2  581  4.29
    ISA-L, the wheel ``isal``, a stream          level 1  673  4.18    level 2  630  4.29
                                                 level 0  684  3.77    level 3  317  4.40
    ISA-L linked in                              level 1  667  4.18    level 2  627  4.29
        level 0 with a Huffman table made from the first shard         700  4.18

A stream takes one call for each block of the shard (``FixedBlocks`` in ``write/gzip.rs``), without
the GIL, and needs no buffer for the whole shard. It is as fast as the linked library, and needs
neither nasm nor autotools to build urlset. Hence the wheel is used, and libdeflate (in the Rust
core) on platforms without it. The bytes of ISA-L may differ between CPU families.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from isal import isal_zlib
except ImportError:  # no wheel for this platform
    isal_zlib: Any = None  # type: ignore[no-redef] # a module or nothing

#: the levels of ISA-L and of libdeflate for each ``--level``; None: always libdeflate
LEVELS = {"fast": (0, 1), "default": (1, 1), "best": (None, 9)}

#: window bits of zlib for a gzip file
GZIP = 31
#: memory level of zlib: the maximum
MEMORY = 9


def encoder_name() -> str:
    """The encoder and its version, for ``urlset --version``."""
    if isal_zlib is None:
        return "libdeflate"
    from isal import __version__

    return f"ISA-L, isal {__version__}"


def encoder(level: str) -> Callable[[], Any] | int:
    """The encoder for the core: a function that begins an ISA-L stream, or a libdeflate level."""
    isal, libdeflate = LEVELS[level]
    if isal_zlib is None or isal is None:
        return libdeflate
    begin, method = isal_zlib.compressobj, isal_zlib.DEFLATED
    return lambda: begin(isal, method, GZIP, MEMORY)
