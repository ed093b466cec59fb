"""The reject file: from the parts that the core wrote to where the user wants it.

A row may hold line breaks, so rows are counted by the core, as CSV.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .. import _core
from ..destination.outfile import is_special, replacing
from ..errors import PublishError
from ..wording import count

#: a row has at most some kilobytes, but the name of its column may be long
PARQUET_BLOCK_BYTES = 16 << 20


def keep(parts: list[Path], target: Path) -> dict[str, int]:
    """Joins the parts (CSV, each with a header) to ``target``: CSV, or Parquet by its ending.

    Returns:
        How many rows of each code the file has, counted in it after the parts were joined.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        joined = parts[0]
        with joined.open("ab") as whole:
            for part in parts[1:]:
                with part.open("rb") as file:
                    file.readline()
                    shutil.copyfileobj(file, whole)
                part.unlink()
        counts = _core.count_rejects(joined)
        if target.suffix.lower() in (".parquet", ".pq"):
            _to_parquet(joined, target, sum(counts.values()))
            joined.unlink()
        elif joined.stat().st_dev == target.parent.stat().st_dev and not is_special(target):
            joined.replace(target)
        else:
            with joined.open("rb") as file, replacing(target) as new:
                shutil.copyfileobj(file, new)
            joined.unlink()
    except OSError as error:
        raise PublishError(f"{target}: {error.strerror}", code="output.rejects") from None
    return counts


def check(counts: dict[str, int], rejected: dict[str, int]) -> None:
    """The reject file holds every rejected row.

    Raises:
        PublishError: it does not; nothing was published.
    """
    if counts != rejected:
        raise PublishError(
            f"the reject file holds {sum(counts.values()):,} of the"
            f" {count(sum(rejected.values()), 'row')} rejected; nothing was published; is the disk"
            " sound? if it is, please report this",
            code="rejects.lost",
        )


def _to_parquet(source: Path, target: Path, rows: int) -> None:
    """In batches: there may be millions."""
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    types = {name: pa.string() for name in ("input", "column", "code", "message", "value")}
    reader = pacsv.open_csv(
        source,
        read_options=pacsv.ReadOptions(block_size=PARQUET_BLOCK_BYTES),
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(column_types=types | {"row": pa.int64()}),
    )
    written = 0
    with reader, replacing(target) as new:
        with pq.ParquetWriter(new, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                written += batch.num_rows
        if written != rows:
            raise PublishError(
                f"{target}: {written:,} of {count(rows, 'row')} written; please report this",
                code="rejects.lost",
            )
