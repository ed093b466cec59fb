"""Random damage to bytes."""

from __future__ import annotations

import random

ODD = (
    b"\0", b"\xff" * 4, b"\x00\x00\x00\x80", b"\x7f" + b"\xff" * 7, b'"', b"\n", b"\xef\xbb\xbf",
    b"\xed\xa0\x80", b"]]>", b"&", b"<", b"{", b"[" * 50, b"1" + b"0" * 400, b"NaN",
)  # fmt: skip


def damage(data: bytes, rng: random.Random) -> bytes:
    """The bytes with one to some places changed, cut or moved."""
    text = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        at = rng.randrange(len(text) + 1)
        if rng.random() < 0.3:  # most of the metadata is in headers and footers
            at = rng.choice((min(at, 64), max(0, len(text) - rng.randrange(1, 400))))
        length = rng.choice((1, 1, 4, 8, 100))
        match rng.randrange(7):
            case 0 if at < len(text):
                text[at] ^= 1 << rng.randrange(8)
            case 1:
                text[at : at + length] = rng.randbytes(length)
            case 2:
                text[at : at + length] = rng.choice(ODD)
            case 3:
                text[at:at] = rng.choice(ODD)
            case 4:
                del text[at : at + length]
            case 5:
                text[at:at] = text[at : at + rng.randrange(1, 2_000)]
            case _ if rng.random() < 0.3:
                del text[at:]
    return bytes(text)
