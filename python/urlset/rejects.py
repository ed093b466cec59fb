"""The reject file: from the parts that the core wrote to where the user wants it."""

from __future__ import annotations

import shutil
from pathlib import Path

from .errors import PublishError
from .outfile import is_special, replacing


def keep(parts: list[Path], target: Path) -> None:
    """Joins the parts (CSV, each with a header) to ``target``: CSV, or Parquet by its ending."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        joined = parts[0]
        with joined.open("ab") as whole:
            for part in parts[1:]:
                with part.open("rb") as file:
                    file.readline()
                    shutil.copyfileobj(file, whole)
                part.unlink()
        if target.suffix.lower() in (".parquet", ".pq"):
            _to_parquet(joined, target)
            joined.unlink()
        elif joined.stat().st_dev == target.parent.stat().st_dev and not is_special(target):
            joined.replace(target)
        else:
            with joined.open("rb") as file, replacing(target) as new:
                shutil.copyfileobj(file, new)
            joined.unlink()
    except OSError as error:
        raise PublishError(f"{target}: {error.strerror}", code="output.rejects") from None


def _to_parquet(source: Path, target: Path) -> None:
    """In batches: there may be millions."""
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    types = {name: pa.string() for name in ("input", "column", "code", "message", "value")}
    reader = pacsv.open_csv(
        source,
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(column_types=types | {"row": pa.int64()}),
    )
    with reader, replacing(target) as new, pq.ParquetWriter(new, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
