"""Sizes on the command line: ``512MiB``, ``1GB``, ``1048576``."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Size(click.ParamType[int]):
    """A number of bytes, with a binary unit or none."""

    name = "size"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:i?B)?", value.strip(), re.IGNORECASE)
        if not match:
            self.fail(f"{value!r} is no size; write 512MiB or 1GiB", param, ctx)
        return int(match[1]) * _UNITS[match[2].upper()]


SIZE = Size()
