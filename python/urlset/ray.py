"""Ray Data: ``urlset.ray.write(dataset, ...)``, one commit for all tasks. See docs/engines.md.

::

    urlset.ray.write(dataset, site="https://www.shop.example", out="/mnt/shared/sitemaps")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from . import _core, engine
from .errors import ConfigError, Error
from .report import Report

try:
    from ray.data import DataContext, Dataset, Datasink
    from ray.data._internal.execution.interfaces import TaskContext
    from ray.data.block import BlockAccessor
    from ray.data.extensions import ArrowPythonObjectType
    from ray.exceptions import RayTaskError
except ImportError as error:
    raise ModuleNotFoundError(
        "urlset.ray needs Ray Data: pip install 'urlset[ray]'", name="ray"
    ) from error

if TYPE_CHECKING:
    from typing import Unpack

    import pyarrow as pa
    from ray.data.datasource.datasink import WriteResult

    from .build.ranges import Ranges
    from .keywords import BuildKeywords

__all__ = ["SitemapSink", "prepare", "write"]

#: the columns that :func:`prepare` adds: the final loc, and the number of the range
LOC, RANGE = "__urlset_loc__", "__urlset_range__"
#: the attribute of a dataset that is prepared: its ranges
PREPARED = "_urlset_ranges"
#: a function takes whole blocks of Arrow
TABLES: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": None}
#: the locs that are sampled of a block
SAMPLE = 64
#: the rows of a range, if no number of ranges is given
RANGE_ROWS = 2_000_000


def write(
    dataset: Dataset,
    *,
    site: str | None = None,
    out: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    concurrency: int | None = None,
    **options: Unpack[BuildKeywords],
) -> Report:
    """Publishes the rows of a dataset. If anything fails, what is live does not change.

    Args:
        dataset: read once; each task writes shards of its own.
        site: the site of all URLs, ``https://www.shop.example``.
        out: the folder to publish to; all machines of the cluster must share it.
        config: a ``urlset.toml`` without ``[[set]]`` tables; arguments override its options.
        ray_remote_args: of the write tasks, as for ``Dataset.write_datasink``.
        concurrency: the maximum number of write tasks at once.
        options: as for :class:`urlset.Job`; ``threads`` is 1 by default.

    Raises:
        Error: as for :class:`urlset.Job`; an error in a task names the partition.
        ray.exceptions.RayError: what else failed in Ray.
    """
    _must_be_dataset(dataset)
    given = {"site": site, "out": out, "config": config, **options}
    ranges = getattr(dataset, PREPARED, None)
    sink = SitemapSink(ordered=ranges is not None, **given)
    try:
        with _plain_errors():
            _check_columns(dataset, sink)
            if ranges is not None:
                _write_ranges(dataset, ranges, sink, ray_remote_args or {}, concurrency)
            else:
                remote = {"ray_remote_args": ray_remote_args, "concurrency": concurrency}
                dataset.write_datasink(sink, **remote)
            return sink.report
    except BaseException:
        # Ray reports a failed write only for an Exception
        engine.abort(sink.job)
        raise


def prepare(
    dataset: Dataset,
    *,
    site: str | None = None,
    out: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | None = None,
    partitions: int | None = None,
    **options: Unpack[BuildKeywords],
) -> Dataset:
    """Assigns the rows to ranges of their final locs; :func:`write` brings each range together.

    Equal locs meet in one part: the write accepts ``duplicates`` and ``changes``. The ranges begin
    where parts of the live set begin, so that under the stable layout an edit changes few shards.
    Without such a set the locs are sampled, which reads the dataset once more. Of rows with the
    same loc the one with the largest lastmod comes first (``duplicates=drop`` keeps it), then the
    one with the smallest values of the other columns that the build reads, except lists, structs
    and maps.

    This must be the last step before :func:`write`, which sorts each range, checks the order, and
    needs the memory for one range in each task.

    Args:
        dataset: the rows.
        partitions: about the number of the ranges; by default that of the live set, or one for
            every 2 million rows.
        site, out, config, options: those of the write.

    Raises:
        ConfigError: wrong options, a missing or ambiguous column.
        PublishError: the output cannot be written, or another build is publishing there.
    """
    _must_be_dataset(dataset)
    given = {"site": site, "out": out, "config": config, **options}
    given = {key: value for key, value in given.items() if value is not None}
    ranges = engine.plan_ranges(given, partitions)
    if ranges.bounds is None and partitions != 1:
        ranges = replace(ranges, bounds=_sampled_bounds(dataset, ranges, partitions))

    def locate(rows: pa.Table) -> pa.Table:
        rows = _given(rows)
        context = TaskContext.get_current()
        # rows without a loc are spread over all ranges, those of one task into one of them
        locs, numbers = ranges.locate(rows, context.task_idx if context is not None else 0)
        return rows.append_column(LOC, locs).append_column(RANGE, numbers)

    located = dataset.map_batches(_as_udf(locate), **TABLES)
    setattr(located, PREPARED, ranges)  # a dataset that is made of this one does not have it
    return located


def _must_be_dataset(given: object) -> None:
    if not isinstance(given, Dataset):
        raise ConfigError(
            f"{type(given).__name__} is not a dataset of Ray: pass for example"
            " ray.data.from_arrow(table)",
            code="ray.dataset",
        )


def _sampled_bounds(dataset: Dataset, ranges: Ranges, partitions: int | None) -> tuple[str, ...]:
    """Bounds of ranges of about the same number of rows."""

    def sample(rows: pa.Table) -> pa.Table:
        import pyarrow as pa

        locs = ranges.locate(_given(rows), 0)[0].drop_null()
        locs = locs.take(pa.compute.sort_indices(locs))
        size = max(-(-len(locs) // SAMPLE), 1)
        weights = [min(size, len(locs) - at) for at in range(0, len(locs), size)]
        return pa.table({LOC: locs[::size], "rows": pa.array(weights, pa.int64())})

    with _plain_errors():
        sampled = dataset.map_batches(_as_udf(sample), **TABLES).take_all()
    sampled.sort(key=itemgetter(LOC))
    rows = sum(one["rows"] for one in sampled)
    count = partitions or -(-rows // RANGE_ROWS)
    bounds: dict[str, None] = {}
    before = 0
    for one in sampled:
        if before * count >= rows * (len(bounds) + 1):
            bounds[one[LOC]] = None
        before += one["rows"]
    return tuple(bounds)


def _write_ranges(
    dataset: Dataset,
    ranges: Ranges,
    sink: SitemapSink,
    remote: dict[str, Any],
    concurrency: int | None,
) -> None:
    """Writes each range as a part, and commits them."""

    def write(rows: pa.Table) -> pa.Table:
        import pyarrow as pa

        columns = ranges.columns(rows.schema)
        keys = [(LOC, "ascending"), *((name, "ascending") for name in columns.ties)]
        if columns.lastmod is not None:
            keys.insert(1, (columns.lastmod, "descending"))
        number = rows[RANGE][0].as_py()
        part = engine.write(sink.job, iter(rows.sort_by(keys).to_batches()), number)
        return pa.table({"number": [number], "part": [part]})

    # twice as many partitions as ranges, since Ray assigns them by a hash
    groups = dataset.groupby(RANGE, num_partitions=2 * ranges.count)
    remote = {"batch_format": "pyarrow", "concurrency": concurrency} | remote
    written = groups.map_groups(_as_udf(write), **remote)
    try:
        parts = sorted((one["number"], one["part"]) for one in written.take_all())
    except ValueError:  # of Arrow: Ray cannot shuffle a dataset without any row (2.60)
        if dataset.take(1):
            raise
        parts = []
    sink.report = engine.commit(sink.job, [part for _, part in parts])


def _check_columns(dataset: Dataset, sink: SitemapSink) -> None:
    """Checks the columns if they are known. (``on_write_start`` gets others in a fused read.)"""
    try:
        known = dataset.schema(fetch_if_missing=False)
    except Exception:  # noqa: BLE001 - the blocks differ: Ray or the tasks report it, or it is legal
        return
    if known is not None and hasattr(known.base_schema, "empty_table"):
        engine.check_columns(sink.job, known.base_schema)


class SitemapSink(Datasink[tuple[int, str]]):
    """The sink behind :func:`write`, for ``Dataset.write_datasink``. It can be used once.

    Creating it plans the job.

    Args:
        ordered: as for :class:`urlset.Job`; each task then must write one range of locs.
        options: as for :func:`write`.

    Attributes:
        job: what it writes.
        report: of the commit.

    Raises:
        ConfigError: wrong options; ``ray.errored_blocks``: Ray would leave out failed blocks.
        PublishError: the output cannot be written, or another build is publishing there.
    """

    def __init__(self, *, ordered: bool = False, **options: Any) -> None:
        if DataContext.get_current().max_errored_blocks != 0:
            raise ConfigError(
                "max_errored_blocks: Ray would leave out the rows of failed blocks, and the set"
                " would lack their URLs; set DataContext.max_errored_blocks to 0",
                code="ray.errored_blocks",
            )
        given = {key: value for key, value in options.items() if value is not None}
        self.job = engine.plan(given, ordered=ordered)
        self.report = Report(version=_core.__version__)

    def get_name(self) -> str:
        """The name of the write tasks."""
        return "urlset"

    def write(self, blocks: Iterable[Any], ctx: TaskContext) -> tuple[int, str]:
        """Writes the blocks of one task; returns its number and its part as JSON."""
        return ctx.task_idx, engine.write(self.job, _batches(blocks, ctx), ctx.task_idx)

    def on_write_complete(self, write_result: WriteResult[tuple[int, str]]) -> None:
        """Makes all parts live, in the order of their tasks."""
        parts = sorted(write_result.write_returns)
        self.report = engine.commit(self.job, [part for _, part in parts])

    def on_write_failed(self, error: Exception) -> None:
        """Removes what the tasks staged; what is live stays."""
        engine.abort(self.job)


def _batches(blocks: Iterable[Any], ctx: TaskContext) -> Iterator[pa.RecordBatch]:
    iterator = iter(blocks)
    while True:
        # The core reads in a thread of its own, and the context of Ray is that of a thread.
        TaskContext.set_current(ctx)
        block = next(iterator, None)
        if block is None:
            return
        rows = BlockAccessor.for_block(block).to_arrow()
        if RANGE in rows.schema.names:
            raise ConfigError(
                "the rows were changed after prepare: make it the last step before the write",
                code="rows.order",
            )
        yield from _given(rows).to_batches()


def _given(rows: pa.Table) -> pa.Table:
    """The rows without the columns of an earlier :func:`prepare`, and with their texts as text.

    Ray pickles a column of pandas if some of its values are NaN. It cannot shuffle views, nor join
    blocks with different dictionaries.
    """
    import pyarrow as pa

    rows = rows.drop_columns([name for name in (LOC, RANGE) if name in rows.schema.names])
    for place, column in enumerate(rows.columns):
        kind, plain = column.type, column
        if isinstance(kind, ArrowPythonObjectType):
            with suppress(Exception):  # another object, also one that cannot be unpickled
                plain = pa.array((value.as_py() for value in column), pa.string(), from_pandas=True)
        elif pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
            text = pa.types.is_string_view(kind)
            plain = column.cast(pa.large_string() if text else pa.large_binary())
        elif pa.types.is_dictionary(kind):
            plain = column.cast(kind.value_type)
        if plain is not column:
            rows = rows.set_column(place, rows.schema.names[place], plain)
    return rows


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raises an error of urlset in a task as it is."""
    try:
        yield
    except BaseException as error:
        for cause in _causes(error):
            # the exception that Ray raises has the type of its cause, and a traceback as message
            if isinstance(cause, Error) and not isinstance(cause, RayTaskError):
                # Ray has added how to configure its retries
                cause.args = (str(cause).partition("\n")[0],)
                raise cause from None
        raise


def _as_udf(function: Callable[[pa.Table], pa.Table]) -> Callable[[Any], Any]:
    """The function for Ray, which otherwise keeps only the text of its exception."""

    def udf(rows: Any) -> Any:
        try:
            return function(rows)
        except Error:
            DataContext.get_current().raise_original_map_exception = True
            raise

    return udf


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = getattr(error, "cause", None) or error.__cause__
