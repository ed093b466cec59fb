"""Counts and foreign text in messages."""

from __future__ import annotations


def count(number: int, one: str, many: str | None = None) -> str:
    """``number`` before a noun: ``1 URL``, ``2,000 URLs``.

    Args:
        one: the noun for one.
        many: for any other number; by default ``one`` with an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def one_line(text: str) -> str:
    """``text`` on one line, control characters escaped: data never controls the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
