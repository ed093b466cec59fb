"""The reject file: joined from the files of the core, in the format and place of the user.

A row may contain line breaks, so the core parses the CSV to count the rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .. import _core
from ..errors import PublishError
from ..outfile import is_special
from ..transport.target import Target, replacing
from ..wording import count

if TYPE_CHECKING:
    from ..destination.interface import Publication

#: a row has a few kilobytes at most, but the name of its column may be long
PARQUET_BLOCK_BYTES = 16 << 20


def keep_rejects(
    names: Sequence[str], target: Target | None, publication: Publication
) -> tuple[str, dict[str, int]] | None:
    """Joins the reject files of the parts and moves the result to its place.

    Args:
        names: of the reject files: CSV, each with a header.
        target: the path that the user named, CSV or Parquet by its ending; None for the state.

    Returns:
        The path of the file, and its number of rows by code, counted after the files were joined;
        None if no row was rejected.
    """
    files = [file for file in map(publication.reject_file, names) if file is not None]
    if not files:
        if target is None:
            publication.remove_rejects()  # those of the previous build would mislead
        return None
    if target is not None:
        return str(target), join_rejects(files, target)
    with _writing(files[0]):
        counts = _concatenate(files)
        return publication.put_rejects(files[0]), counts


def join_rejects(files: list[Path], target: Target) -> dict[str, int]:
    """Joins reject files to ``target``, and removes them.

    Returns:
        The number of rows by code, counted after the files were joined.

    Raises:
        PublishError: ``output.rejects``; ``rejects.lost``.
    """
    joined = files[0]
    with _writing(target):
        if isinstance(target, Path):
            target.parent.mkdir(parents=True, exist_ok=True)
        counts = _concatenate(files)
        if target.suffix.lower() in (".parquet", ".pq"):
            _to_parquet(joined, target, sum(counts.values()))
            joined.unlink()
        elif isinstance(target, Path) and _can_rename(joined, target):
            joined.replace(target)
        else:
            with joined.open("rb") as file, replacing(target) as new:
                shutil.copyfileobj(file, new)
            joined.unlink()
    return counts


def _can_rename(file: Path, target: Path) -> bool:
    return file.stat().st_dev == target.parent.stat().st_dev and not is_special(target)


def _concatenate(files: list[Path]) -> dict[str, int]:
    """Appends the other files to the first one, without their headers, and counts its rows."""
    with files[0].open("ab") as whole:
        for path in files[1:]:
            with path.open("rb") as file:
                file.readline()
                shutil.copyfileobj(file, whole)
            path.unlink()
    return _core.count_rejects(files[0])


@contextmanager
def _writing(target: Target) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PublishError(f"{target}: {error.strerror}", code="output.rejects") from None


def check_rejects(counts: Mapping[str, int], rejected: Mapping[str, int]) -> None:
    """Checks that the reject file contains every rejected row.

    Raises:
        PublishError: ``rejects.lost``: it does not; nothing was published.
    """
    if counts != rejected:
        raise PublishError(
            f"the reject file contains {sum(counts.values()):,} of the"
            f" {count(sum(rejected.values()), 'row')} rejected; nothing was published; check the"
            " disk, or report this",
            code="rejects.lost",
        )


def _to_parquet(source: Path, target: Target, rows: int) -> None:
    """Converts in batches: there may be millions of rows."""
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
