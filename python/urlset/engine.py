"""What the writers for Spark and Ray share: a job whose tasks run on one core each."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from .build.job import Job
from .build.part import Part
from .build.ranges import Ranges, live_ranges
from .errors import ConfigError, Error, InputError, PublishError, RejectLimitError
from .option_table import options_of
from .options import Options
from .report import Report
from .wording import count

if TYPE_CHECKING:
    import pyarrow as pa

#: options for the files of an input; the engine has read them
OF_FILES = ("format", "delimiter", "encoding", "max_cell")


def plan(given: Mapping[str, Any], *, ordered: bool = False) -> Job:
    """The job for the rows of an engine.

    Args:
        given: the options of :func:`urlset.build`, and ``config``. ``threads`` is 1 by default: an
            engine runs a task on each core.
        ordered: the rows are prepared.

    Raises:
        ConfigError: wrong options; ``config.unknown``: an unknown one.
        PublishError: the output cannot be written, or another build is publishing there.
    """
    _check_names(given)
    return Job(**{"threads": 1, **given}, ordered=ordered)


def _check_names(given: Mapping[str, Any]) -> None:
    known = ["config", *(one.key for one in options_of(Options) if one.key not in OF_FILES)]
    for key in given:
        name = key.removesuffix("_")
        if name in OF_FILES:
            raise ConfigError(
                f"{name}: is for files, and the engine has read them; omit it", code="job.option"
            )
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"unknown option {key!r}{hint}", code="config.unknown")


def plan_ranges(given: Mapping[str, Any], partitions: int | None) -> Ranges:
    """The ranges of locs that the partitions of an engine contain.

    Args:
        given: as for :func:`plan`.
        partitions: about their number; None for that of the live set.

    Raises:
        Error: as :func:`plan`; ``config.partitions``: not a positive number.
    """
    _check_names(given)
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        raise ConfigError(
            f"partitions: {partitions!r} is not a positive number", code="config.partitions"
        )
    given = {"threads": 1, **given}
    return live_ranges(given, given.pop("config", None), partitions)


def check_columns(job: Job, schema: pa.Schema) -> None:
    """Checks the columns before any task runs: engines log the traceback of each failed task.

    Raises:
        ConfigError: a missing or ambiguous column, or one of lists or structs; the job is aborted.
    """
    try:
        job.write(schema.empty_table(), name="the rows")
    except BaseException:
        abort(job)
        raise


def abort(job: Job) -> None:
    """Removes what the tasks staged, if the destination answers.

    Otherwise ``urlset clean`` removes it later: an error here would hide why the job failed.
    """
    with suppress(PublishError):
        job.abort()


class Batches:
    """An iterator that keeps the exception of another one: a stream of Arrow passes only its text.

    All batches get the schema of the first one, if only the order of the columns or the kind of
    their text differs.

    Attributes:
        error: what the engine, or code of the user that runs in the task, raised.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._schema: pa.Schema | None = None
        self._number = 0
        self.error: Exception | None = None

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            batch = next(self._batches)
            self._number += 1
            if self._schema is None:
                self._schema = batch.schema
            elif batch.schema != self._schema:
                return _conformed(batch, self._schema, self._number)
        except StopIteration:
            raise
        except Exception as error:
            self.error = error
            raise
        return batch


def _conformed(batch: pa.RecordBatch, schema: pa.Schema, number: int) -> pa.RecordBatch:
    import pyarrow as pa

    def is_text(kind: pa.DataType) -> bool:
        return kind in (pa.string(), pa.large_string())

    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if sorted(columns) == sorted(batch.schema.names) == sorted(schema.names):
        known = [(columns[field.name], field.type) for field in schema]
        wrong = [
            f"column {field.name!r} is {column.type}, and {kind} in the first one"
            for field, (column, kind) in zip(schema, known, strict=True)
            if column.type != kind and not pa.types.is_null(column.type)
            and not (is_text(column.type) and is_text(kind))
        ]  # fmt: skip
        if not wrong:
            return pa.RecordBatch.from_arrays([one.cast(to) for one, to in known], schema=schema)
    else:
        found, wanted = (", ".join(map(repr, each.names)) for each in (batch.schema, schema))
        wrong = [f"has the columns {found}, and the first one {wanted}"]
    raise InputError(
        f"batch {number}: {wrong[0]}; bring all rows to one schema in the engine",
        code="input.damaged",
    )


def write(job: Job, batches: Iterator[pa.RecordBatch], number: int) -> str:
    """Writes the rows of a task; what it raises names the partition.

    Nothing here reads ``batches`` again after an error: only the engine can produce the rows of a
    failed task from the start.

    Args:
        batches: record batches of pyarrow.
        number: of the partition.

    Returns:
        The part as JSON.
    """
    partition = f"partition {number}"
    source = Batches(batches)
    try:
        return job.write(source, name=partition).to_json()
    except Error as failed:
        if source.error is not None and not isinstance(source.error, Error):
            raise source.error from None
        error = source.error or failed
        message = str(error)
        if not message.startswith(partition):
            message = f"{partition}: {message}"
        if error.code == "rows.order" and source.error is None:
            message += "; make prepare the last step before the write"
        if error.code == "job.closed":
            message += (
                "; if the job still runs, this machine does not see the destination of the driver:"
                " publish to a folder that all machines share"
            )
        named = copy.copy(error)
        named.args = (message,)
        raise named from None


def commit(job: Job, messages: Iterable[str | None]) -> Report:
    """Commits the parts of all tasks, in the order of their partitions.

    Args:
        messages: what :func:`write` returned, one for each partition; None if a task failed.

    Raises:
        PublishError: ``job.part``: the part of a task is missing.
        Error: what :meth:`urlset.Job.commit` raises.
    """
    parts: list[Part] = []
    for number, message in enumerate(messages):
        if message is None:
            raise PublishError(
                f"partition {number}: the engine delivered no result; nothing was published; run"
                " the job again",
                code="job.part",
            )
        parts.append(Part.from_json(message))
    try:
        return job.commit(parts)
    except RejectLimitError as error:
        # the rows of a partition often come from one source
        lost = [n for n, part in enumerate(parts) if part.rows and part.rejected == part.rows]
        if not lost or len(lost) == len(parts):
            raise
        named = f"{error}; of partition {lost[0]}, all {count(parts[lost[0]].rows, 'row')}"
        more = f", and those of {len(lost) - 1:,} more" if len(lost) > 1 else ""
        raise RejectLimitError(named + more, code=error.code) from None
