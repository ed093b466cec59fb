"""Ray Data: ``urlset.ray.write(dataset, ...)``, one commit for all tasks. See docs/engines.md.

::

    urlset.ray.write(dataset, site="https://www.shop.example", out="/mnt/shared/sitemaps")
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import _core, engine
from .errors import ConfigError, Error
from .report import Report

try:
    from ray.data import DataContext, Datasink
    from ray.data._internal.execution.interfaces import TaskContext
    from ray.data.block import BlockAccessor
    from ray.exceptions import RayTaskError
except ImportError as error:
    raise ModuleNotFoundError(
        "urlset.ray needs Ray Data: pip install 'urlset[ray]'", name="ray"
    ) from error

if TYPE_CHECKING:
    from typing import Unpack

    import pyarrow as pa
    from ray.data import Dataset
    from ray.data.datasource.datasink import WriteResult

    from .keywords import BuildKeywords

__all__ = ["SitemapSink", "write"]


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
    sink = SitemapSink(site=site, out=out, config=config, **options)
    try:
        _check_columns(dataset, sink)
        dataset.write_datasink(sink, ray_remote_args=ray_remote_args, concurrency=concurrency)
        return sink.report
    except BaseException as error:
        # Ray reports a failed write only for an Exception
        engine.abort(sink.job)
        for cause in _causes(error):
            # the exception that Ray raises has the type of its cause, and a traceback as message
            if isinstance(cause, Error) and not isinstance(cause, RayTaskError):
                # Ray has added how to configure its retries
                cause.args = (str(cause).partition("\n")[0],)
                raise cause from None
        raise


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

    Attributes:
        job: what it writes.
        report: of the commit.

    Raises:
        ConfigError: wrong options; ``ray.errored_blocks``: Ray would leave out failed blocks.
        PublishError: the output cannot be written, or another build is publishing there.
    """

    def __init__(self, **options: Any) -> None:
        if DataContext.get_current().max_errored_blocks != 0:
            raise ConfigError(
                "max_errored_blocks: Ray would leave out the rows of failed blocks, and the set"
                " would lack their URLs; set DataContext.max_errored_blocks to 0",
                code="ray.errored_blocks",
            )
        self.job = engine.plan({key: value for key, value in options.items() if value is not None})
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
        yield from BlockAccessor.for_block(block).to_arrow().to_batches()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = getattr(error, "cause", None) or error.__cause__
