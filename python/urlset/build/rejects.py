"""The reject file: joined from the files of the core, in the format and place of the user.

A row may contain line breaks, so the core parses the CSV to count the rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .. import _core
from ..errors import PublishError
from ..outfile import is_special
from ..transport.target import Target, replacing
from ..wording import count

if TYPE_CHECKING:
    from ..destination.interface import Publication

#: the columns of the file
COLUMNS = ("input", "row", "column", "code", "message", "value")
#: a row has a few kilobytes at most, but the name of its column may be long
PARQUET_BLOCK_BYTES = 16 << 20


class Kept(NamedTuple):
    """The reject file of a build.

    Attributes:
        path: where it is.
        counts: its rows by code, counted after the files were joined.
        examples: the first rows of each code, by column.
    """

    path: str
    counts: dict[str, int]
    examples: dict[str, list[dict[str, str]]]


def keep_rejects(
    names: Sequence[str], target: Target | None, publication: Publication, *, examples: bool = False
) -> Kept | None:
    """Joins the reject files of the parts and moves the result to its place.

    Args:
        names: of the reject files: CSV, each with a header.
        target: the path that the user named, CSV or Parquet by its ending; None for the state.
        examples: read some rows of each code.

    Returns:
        The file; None if no row was rejected.
    """
    files = [file for file in map(publication.reject_file, names) if file is not None]
    if not files:
        if target is None:
            publication.remove_rejects()  # those of the previous build would mislead
        return None
    if target is not None:
        return join_rejects(files, target, examples=examples)
    with _writing(files[0]):
        kept = _joined(files, examples)
        return kept._replace(path=publication.put_rejects(files[0]))


def join_rejects(files: list[Path], target: Target, *, examples: bool = False) -> Kept:
    """Joins reject files to ``target``, and removes them.

    Raises:
        PublishError: ``output.rejects``; ``rejects.lost``.
    """
    with _writing(target):
        if isinstance(target, Path):
            target.parent.mkdir(parents=True, exist_ok=True)
        kept = _joined(files, examples)
        _move(files[0], target, sum(kept.counts.values()))
    return kept._replace(path=str(target))


def _joined(files: list[Path], examples: bool) -> Kept:
    """Joins reject files to the first one."""
    _concatenate(files)
    rows = _core.count_rejects(files[0])
    counts = {code: number for code, (number, _) in rows.items()}
    if not examples:
        return Kept(str(files[0]), counts, {})
    found = {code: _rows_at(files[0], places) for code, (_, places) in rows.items()}
    return Kept(str(files[0]), counts, found)


def _move(joined: Path, target: Target, rows: int) -> None:
    if target.suffix.lower() in (".parquet", ".pq"):
        _to_parquet(joined, target, rows)
        joined.unlink()
    elif isinstance(target, Path) and _can_rename(joined, target):
        joined.replace(target)
    else:
        with joined.open("rb") as file, replacing(target) as new:
            shutil.copyfileobj(file, new)
        joined.unlink()


def _rows_at(file: Path, places: Sequence[int]) -> list[dict[str, str]]:
    """The rows at these offsets. A row has a few kilobytes, since its value is cut."""
    import csv

    found = []
    for place in places:
        with file.open("rb") as binary:
            binary.seek(place)
            # the name of a column may be longer than the module accepts
            with TextIOWrapper(binary, encoding="utf-8", newline="") as text, suppress(csv.Error):
                found.append(dict(zip(COLUMNS, next(csv.reader(text)), strict=True)))
    return found


def _can_rename(file: Path, target: Path) -> bool:
    return file.stat().st_dev == target.parent.stat().st_dev and not is_special(target)


def _concatenate(files: list[Path]) -> None:
    """Appends the other files to the first one, without their headers."""
    with files[0].open("ab") as whole:
        for path in files[1:]:
            with path.open("rb") as file:
                file.readline()
                shutil.copyfileobj(file, whole)
            path.unlink()


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
