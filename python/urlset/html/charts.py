"""The geometry of charts. Templates draw them as inline SVG.

Horizontal positions are percentages and vertical ones pixels, so a chart fits any width and its
text keeps its size. Charting libraries draw for one width, and shrink the text with it: on a phone
nobody can read it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

from .. import _core

Item = TypeVar("Item")

#: the height of the area of columns, in pixels
HEIGHT = 132
#: the most columns that a phone can show
MAX_COLUMNS = 60


class Series(NamedTuple):
    """A kind of values: its name, and the class of its colour."""

    name: str
    colour: str


class Rectangle(NamedTuple):
    """A rectangle: ``x`` and ``width`` in percent, ``y`` and ``height`` in pixels."""

    x: float
    width: float
    y: float
    height: float
    colour: str


class Tick(NamedTuple):
    """A line of the grid: its place in pixels, and its text."""

    y: float
    label: str


class Label(NamedTuple):
    """A text below the columns: ``x`` in percent, and which end of the text is there."""

    x: float
    anchor: str
    text: str


@dataclass(frozen=True)
class Columns:
    """Columns in an order.

    Attributes:
        id: unique in the page.
        title, description: for people who do not see it.
        series: the parts of a column, from below.
        heads: the titles of the columns of the table: the label, then each part.
        rows: the table: the label and the texts of each column.
    """

    id: str
    title: str
    description: str
    series: Sequence[Series]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    rectangles: Sequence[Rectangle]
    ticks: Sequence[Tick]
    labels: Sequence[Label]
    height: int = HEIGHT


def columns(
    id: str,
    title: str,
    description: str,
    series: Sequence[Series],
    values: Sequence[Sequence[float]],
    *,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    labels: Mapping[int, str],
    text: Callable[[float], str] = "{:,.0f}".format,
) -> Columns:
    """A chart of columns.

    Args:
        values: of each column, the value of each series.
        labels: below the columns, by their numbers.
        text: from the value of a tick to its text.
    """
    top, steps = _scale(max((sum(parts) for parts in values), default=0))
    ticks = [Tick(_round(HEIGHT * (1 - step / top)), text(step)) for step in steps]
    slot = 100 / max(len(values), 1)
    width = min(0.8 * slot, 8)  # few columns are not wide
    starts = [slot * (number + 0.5) - width / 2 for number in range(len(values))]
    rectangles = []
    for number, parts in enumerate(values):
        base = float(HEIGHT)
        for one, value in zip(series, parts, strict=True):
            height = HEIGHT * value / top
            if value:
                height = max(height, 1.5)  # a small value is visible
                base -= height
                rectangles.append(
                    Rectangle(_round(starts[number]), _round(width), _round(base), _round(height),
                              one.colour)
                )  # fmt: skip
    placed = []
    for number, label in labels.items():
        share, anchor = 0.5, "middle"
        if len(labels) > 1 and number in (0, len(values) - 1):  # the text stays within the chart
            share, anchor = (1.0, "end") if number else (0.0, "start")
        placed.append(Label(_round(starts[number] + share * width), anchor, label))
    return Columns(id, title, description, series, heads, rows, rectangles, ticks, placed)


def _scale(largest: float) -> tuple[float, list[float]]:
    """The end of an axis from 0, and the steps on it that people read easily."""
    if largest <= 0:
        return 1, []
    unit = 10 ** math.floor(math.log10(largest))
    step = next(unit * part for part in (0.25, 0.5, 1, 2.5, 5) if largest / (unit * part) <= 4)
    if largest >= 4:
        step = max(step, 1)
    number = math.ceil(largest / step)
    return step * number, [step * n for n in range(1, number + 1)]


def _round(value: float) -> float:
    return round(value, 2)


def grouped(items: Sequence[Item], limit: int = MAX_COLUMNS) -> list[Sequence[Item]]:
    """At most ``limit`` groups of neighbours, all of the same length except for the last."""
    length = max(1, math.ceil(len(items) / limit))
    return [items[at : at + length] for at in range(0, len(items), length)]


class Bar(NamedTuple):
    """A row of a table with a bar.

    Attributes:
        label: trusted or visible text.
        value: the length of the bar.
        cells: the texts of the other columns.
        share: of the longest bar, in percent.
    """

    label: str
    value: float
    cells: Sequence[str]
    share: float
    colour: str = "a"


def bars(rows: Sequence[tuple[str, float, Sequence[str]]], colour: str = "a") -> list[Bar]:
    """Bars relative to the longest one."""
    longest = max((value for _, value, _ in rows), default=0) or 1
    return [
        Bar(label, value, cells, _round(100 * value / longest), colour)
        for label, value, cells in rows
    ]


def age_labels() -> list[str]:
    """The names of the ages that the core counts, from the future to none."""
    steps = _core.age_steps()
    names = {1: "24 hours", 7: "7 days", 30: "30 days", 90: "90 days", 365: "a year",
             730: "2 years", 1825: "5 years"}  # fmt: skip
    spans = [names[step] for step in steps[1:]]
    between = [f"{one} to {other}" for one, other in pairwise(spans)]
    return ["in the future", f"up to {spans[0]}", *between, f"over {spans[-1]}", "no lastmod"]


def age_bars(ages: Sequence[int]) -> list[Bar]:
    """The histogram of ages; empty without URLs. The future is shown only if there is any."""
    from .document import percent

    total = sum(ages)
    if total == 0:
        return []  # also before anything was read
    rows = [
        (label, number, (f"{number:,}", percent(number, total)))
        for label, number in zip(age_labels(), ages, strict=True)
        if number or label != "in the future"
    ]
    special = {"in the future": "error", "no lastmod": "muted"}
    return [bar._replace(colour=special.get(bar.label, "a")) for bar in bars(rows)]
