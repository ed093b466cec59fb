"""The findings as rows, and the list of URLs to drop."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from ..errors import PublishError
from ..rows import Rows
from ..transport.target import replacing, target_of
from .crawl import Page
from .report import CODES
from .sample import Sample
from .tally import findings_of

if TYPE_CHECKING:
    import pyarrow as pa

#: rows of a batch
BATCH = 10_000


class FindingRows(Rows):
    """A row for each finding of each page.

    The columns: loc, finding, severity, status, target, detail, stratum, content_type, seconds.
    """

    def __init__(self, pages: Callable[[], Iterator[Page]], sample: Sample) -> None:
        self._pages, self._sample = pages, sample

    @property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        text = ("loc", "finding", "severity", "target", "detail", "stratum", "content_type")
        kinds = dict.fromkeys(text, pa.string()) | {"status": pa.int16(), "seconds": pa.float64()}
        order = ("loc", "finding", "severity", "status", "target", "detail", "stratum",
                 "content_type", "seconds")  # fmt: skip
        return pa.schema([(name, kinds[name]) for name in order])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        rows = self._rows()
        while batch := list(islice(rows, BATCH)):
            yield pa.RecordBatch.from_pylist(batch, schema=self.schema)

    def _rows(self) -> Iterator[dict[str, object]]:
        for page in self._pages():
            for one in findings_of(page, self._sample):
                yield {
                    "loc": one.loc, "finding": one.code, "severity": CODES[one.code].severity,
                    "status": one.status, "target": one.target, "detail": one.detail,
                    "stratum": one.stratum, "content_type": page.content_type,
                    "seconds": one.seconds,
                }  # fmt: skip

    def write_parquet(self, file: BinaryIO) -> int:
        import pyarrow.parquet as pq

        count = 0
        with pq.ParquetWriter(file, self.schema, compression="zstd") as writer:
            for batch in self:
                writer.write_batch(batch)
                count += batch.num_rows
        return count


def write_drop_list(path: str, pages: Iterator[Page]) -> int:
    """Writes the URLs that should not be listed as CSV; returns their number.

    Raises:
        PublishError: the file cannot be written.
    """
    count = 0
    try:
        with replacing(target_of(path)) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(("loc", "reason"))
            for page in pages:
                reason = next((fact.code for fact in page.facts if CODES[fact.code].drop), None)
                if reason is not None:
                    writer.writerow((page.loc, reason))
                    count += 1
            text.detach()
    except OSError as error:
        why = error.strerror or str(error)
        raise PublishError(f"{path}: {why}", code="output.unwritable") from error
    return count
