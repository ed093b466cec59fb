"""Counts in messages."""

from __future__ import annotations


def count(number: int, one: str, many: str | None = None) -> str:
    """``number`` before a noun: ``1 URL``, ``2,000 URLs``.

    Args:
        one: the noun for one.
        many: for any other number; ``one`` with an s where it is not given.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def printable(text: str) -> str:
    """``text`` on one line, safe for a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)
