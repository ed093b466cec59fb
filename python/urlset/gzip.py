"""Which encoder compresses the shards.

Measured on two cores over finished XML shards (MB/s a core, and how many times smaller):

    ISA-L, the wheel ``isal``, level 1     820   5.43     ISA-L native, level 1    837   5.43
    ISA-L, the wheel ``isal``, level 2     778   5.52     ISA-L native, custom
    libdeflate level 1                     383   5.66     Huffman table, level 0   870   5.43

Called once a shard with the GIL released the wheel costs 2 % against the library linked in, and
needs neither nasm nor autotools where urlset is installed: so the wheel it is, and libdeflate (in
the Rust core) where there is none. ISA-L's bytes may differ between CPU families.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from isal import igzip_lib
except ImportError:  # no wheel for this platform
    igzip_lib: Any = None  # type: ignore[no-redef] # a module or nothing

#: what ``--level`` means: the level of ISA-L, of libdeflate where ISA-L is missing
LEVELS = {"fast": (1, 1), "default": (2, 1), "best": (None, 9)}


def encoder_name() -> str:
    """The encoder and its version, as ``urlset --version`` names it."""
    if igzip_lib is None:
        return "libdeflate"
    from isal import __version__

    return f"ISA-L, isal {__version__}"


def encoder(level: str) -> Callable[[object], bytes] | int:
    """What the core compresses with: ISA-L as a callable, or a level of libdeflate."""
    isal, libdeflate = LEVELS[level]
    if igzip_lib is None or isal is None:
        return libdeflate
    compress, gzip, memory = igzip_lib.compress, igzip_lib.COMP_GZIP, igzip_lib.MEM_LEVEL_LARGE

    def one_shard(shard: object) -> bytes:
        packed: bytes = compress(shard, isal, gzip, memory)
        return packed

    return one_shard
