"""The charts of sitemap files: URLs and bytes in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

from ..wording import count
from .charts import Columns, Series, columns, grouped
from .document import round_size, size, visible

#: up to this number, the table lists each file; of more, the groups of the chart
MAX_FILES = 200
#: characters of the name of a file
MAX_NAME = 120


class FileSize(NamedTuple):
    """A file: its name, URLs, bytes before compression, and the number of its series."""

    name: str
    urls: int
    bytes: int
    series: int = 0


def file_charts(files: Sequence[FileSize], series: Sequence[Series]) -> list[Columns]:
    """URLs and bytes of files in their order; neighbours share a column if there are many."""
    if not files:
        return []
    whole = "{:,.0f}".format
    return [
        _chart("file-urls", "URLs", files, series, attrgetter("urls"), whole, whole),
        _chart("file-bytes", "Bytes before compression", files, series, attrgetter("bytes"), size,
               round_size),
    ]  # fmt: skip


def _chart(
    id: str, name: str, files: Sequence[FileSize], series: Sequence[Series],
    measure: Callable[[FileSize], int], show: Callable[[float], str], axis: Callable[[float], str],
) -> Columns:  # fmt: skip
    groups = grouped(files)
    several = len(groups[0])
    labels = {n: f"{n * several + 1:,}" for n in {0, len(groups) // 2}}
    labels[len(groups) - 1] = f"{len(files):,}"
    each = "of each sitemap" if several == 1 else f"of each {several} sitemaps in order"
    listed: list[Sequence[FileSize]] = [[file] for file in files]
    if len(files) > MAX_FILES:
        listed = groups

    def sums(group: Sequence[FileSize]) -> list[int]:
        return [
            sum(measure(file) for file in group if file.series == number)
            for number in range(len(series))
        ]

    return columns(
        id,
        f"{name} {each}",
        f"{count(len(groups), 'column')}. {name} in all: {show(sum(map(measure, files)))}.",
        series,
        [sums(group) for group in groups],
        heads=["Sitemap" if len(listed[0]) == 1 else "Sitemaps", *(one.name for one in series)],
        rows=[[_name(group), *map(show, sums(group))] for group in listed],
        labels=labels,
        text=axis,
    )


def _name(group: Sequence[FileSize]) -> str:
    first, last = visible(group[0].name, MAX_NAME), visible(group[-1].name, MAX_NAME)
    return first if len(group) == 1 else f"{first} to {last}"
