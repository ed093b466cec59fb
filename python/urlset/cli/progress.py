"""The progress line of a build."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ..wording import count

if TYPE_CHECKING:
    from .. import _core
    from ..build.source import Input


class Line:
    """Rows, rows per second, shards, and the time left if the size of the input is known."""

    def __init__(self) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("reading", total=None)
        self._started = time.monotonic()

    def __enter__(self) -> Line:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, progress: _core.Progress, inputs: list[Input]) -> None:
        """Called about ten times a second."""
        rows, shards = progress.rows, progress.shards
        rate = rows / max(time.monotonic() - self._started, 1e-3)
        text = f"{count(rows, 'row')}  {rate:,.0f} rows/s  {count(shards, 'sitemap')}"
        total = done = None
        if inputs and all(one.size for one in inputs):
            total, done = sum(one.size for one in inputs), progress.bytes
        elif inputs and all(one.rows for one in inputs):
            total, done = sum(one.rows or 0 for one in inputs), rows
        self._bar.update(self._task, description=text, total=total, completed=done or 0)
