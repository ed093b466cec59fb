"""Numbers on the command line; click itself says of them ``x>=1`` and ``valid float``."""

from __future__ import annotations

import click


class Whole(click.ParamType[int]):
    """A whole number, of ``least`` or more if that is given."""

    name = "integer"

    def __init__(self, least: int | None = None) -> None:
        self._least = least

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or (self._least is not None and number < self._least):
            least = "" if self._least is None else f" of {self._least} or more"
            self.fail(f"{str(value)!r} is not a whole number{least}", param, ctx)
        return number


class Number(click.ParamType[float]):
    """A number, with a fraction or without."""

    name = "float"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number; write 30 or 2.5", param, ctx)
