"""The page of ``diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..wording import count
from .charts import bars
from .document import percent, render, visible

if TYPE_CHECKING:
    import pyarrow as pa

    from ..inspect.diff import Changes, Counts

KINDS = ("added", "changed", "removed")
COLOURS = {"added": "ok", "changed": "a", "removed": "error"}
#: URLs of each kind that are shown
MAX_SAMPLES = 20
#: folders that are counted, and those that are shown; the others are one row
MAX_COUNTED, MAX_FOLDERS = 1_000, 15
#: the first folder of a URL; a URL without one belongs to /
FOLDER = r"^[A-Za-z]+://[^/?#]*(/[^/?#]+/|).*$"
OTHERS = "other folders"


class Sample:
    """An even sample of a stream whose length is not known: every n-th row."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._stride, self._seen = 1, 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes the rows of a batch."""
        place = -self._seen % self._stride
        while place < batch.num_rows:
            self.rows += batch.slice(place, 1).to_pylist()
            if len(self.rows) == 2 * MAX_SAMPLES:
                self.rows, self._stride = self.rows[::2], 2 * self._stride
            place += 1 + -(self._seen + place + 1) % self._stride
        self._seen += batch.num_rows

    def shown(self) -> list[dict[str, Any]]:
        """At most :data:`MAX_SAMPLES` rows, evenly spread."""
        number = len(self.rows)
        if number <= MAX_SAMPLES:
            return self.rows
        return [self.rows[place * number // MAX_SAMPLES] for place in range(MAX_SAMPLES)]


class Folders:
    """The changes by the first folder of their URLs, in bounded memory."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[str, int]] = {}

    def add(self, kind: str, locs: pa.Array) -> None:
        """Counts URLs."""
        import pyarrow.compute as pc

        folders = pc.replace_substring_regex(locs, FOLDER, r"\1")
        for found in pc.value_counts(folders).to_pylist():
            name = found["values"] or "/"
            if name not in self.counts and len(self.counts) >= MAX_COUNTED:
                name = OTHERS
            of_kind = self.counts.setdefault(name, dict.fromkeys(KINDS, 0))
            of_kind[kind] += found["counts"]

    def shown(self) -> list[tuple[str, dict[str, int]]]:
        """The folders with the most changes, and the others together."""
        others = self.counts.pop(OTHERS, dict.fromkeys(KINDS, 0))
        ordered = sorted(self.counts.items(), key=lambda item: -sum(item[1].values()))
        for _, counts in ordered[MAX_FOLDERS:]:
            others = {kind: others[kind] + counts[kind] for kind in KINDS}
        rest = [(OTHERS, others)] if any(others.values()) else []
        return [*ordered[:MAX_FOLDERS], *rest]


def diff_page(changes: Changes, old: str, new: str) -> str:
    """Reads all changes, and returns their page."""
    import pyarrow.compute as pc

    samples = {kind: Sample() for kind in KINDS}
    folders = Folders()
    for batch in changes:
        for kind in KINDS:
            rows = batch.filter(pc.equal(batch.column("change"), kind))
            if rows.num_rows:
                samples[kind].add(rows)
                folders.add(kind, rows.column("loc"))
    counts = changes.counts
    numbers = {kind: getattr(counts, kind) for kind in KINDS}
    total = sum(numbers.values())
    return render(
        "diff.html",
        old=old,
        new=new,
        verdict=_verdict(counts, total),
        total=total,
        numbers=numbers,
        parts_of_total=[
            (kind, COLOURS[kind], number, f"{number:,} ({percent(number, total)})")
            for kind, number in numbers.items()
        ],
        folders=bars([
            (visible(name, 120), sum(found.values()),
             (f"{sum(found.values()):,}", *(f"{found[kind]:,}" for kind in KINDS)))
            for name, found in folders.shown()
        ]),
        samples={kind: sample.shown() for kind, sample in samples.items()},
    )  # fmt: skip


def _verdict(counts: Counts, total: int) -> tuple[str, str, str]:
    equal = (
        f"{count(counts.equal_files, 'file')} equal on both sides." if counts.equal_files else ""
    )
    if not total:
        return "ok", "No URL was added, changed or removed", equal
    return "ok", f"{count(total, 'URL')} differ", equal
