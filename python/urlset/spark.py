"""Spark 4: ``df.write.format("urlset")``, one commit for all tasks. See docs/engines.md.

::

    urlset.spark.register(spark)
    (df.write.format("urlset").mode("overwrite")
       .option("site", "https://www.shop.example").option("out", "/mnt/shared/sitemaps").save())

Spark creates the writer in a process of its own, pickles it, and runs ``write`` in the tasks and
``commit`` or ``abort`` in yet another process. Only the messages of the tasks carry what they did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import engine
from .build.job import Job
from .errors import ConfigError
from .option_table import Option, find_option
from .options import Options

try:
    from pyspark import TaskContext
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
    from pyspark.sql.types import ArrayType, MapType, StructType
except ImportError as error:
    raise ModuleNotFoundError(
        "urlset.spark needs Spark 4.1 or later: pip install 'urlset[spark]'", name="pyspark"
    ) from error

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["SitemapSource", "SitemapWriter", "register"]


def register(spark: SparkSession) -> None:
    """Makes ``format("urlset")`` known to a session.

    Executors need urlset in their Python environment.
    """
    spark.dataSource.register(SitemapSource)


class SitemapSource(DataSource):
    """Where the rows of a DataFrame are published.

    Args:
        options: of ``urlset build``, by the names of ``urlset.toml``, as text: lists are JSON,
            switches ``true`` or ``false``; and ``config``, the path of a ``urlset.toml``.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "urlset"

    def writer(self, schema: StructType, overwrite: bool) -> SitemapWriter:
        """Plans the job.

        Raises:
            ConfigError: wrong options, a missing or ambiguous column; ``spark.append``.
            PublishError: the output cannot be written, or another build is publishing there.
        """
        if not overwrite:
            raise ConfigError(
                "append: a set is replaced as a whole, since its index lists all sitemaps; write"
                ' all rows with mode("overwrite")',
                code="spark.append",
            )
        job = engine.plan(options_of_text(self.options))
        engine.check_columns(job, _arrow_schema(schema))
        return SitemapWriter(job)


@dataclass
class Message(WriterCommitMessage):
    """What one task wrote: a :class:`urlset.Part` as JSON."""

    part: str


class SitemapWriter(DataSourceArrowWriter):
    """Writes the partitions of a DataFrame, and commits them together."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        """Writes one partition, in a task.

        Raises:
            Error: what :meth:`urlset.Job.write` raises; the message names the partition.
        """
        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        return Message(engine.write(self._job, iterator, number))

    def commit(self, messages: list[Any]) -> None:
        """Makes all partitions live, in their order."""
        engine.commit(self._job, [message and message.part for message in messages])

    def abort(self, messages: list[Any]) -> None:
        """Removes what the tasks staged; what is live stays. A failed task has None as message."""
        engine.abort(self._job)


def _arrow_schema(schema: StructType) -> pa.Schema:
    """The columns, as far as their check needs them. (Spark's own function changes with it.)"""
    import pyarrow as pa

    text = pa.string()

    def simplified(kind: object) -> pa.DataType:
        if isinstance(kind, ArrayType):
            return pa.list_(text)
        return pa.struct([("value", text)]) if isinstance(kind, (StructType, MapType)) else text

    return pa.schema([(field.name, simplified(field.dataType)) for field in schema])


def options_of_text(texts: Mapping[str, str]) -> dict[str, Any]:
    """The options that Spark passes as text.

    Raises:
        ConfigError: ``config.type``: not the text of a value of the option.
    """
    if "path" in texts:
        raise ConfigError(
            'save() takes no path: name the folder with .option("out", ...)', code="config.unknown"
        )
    return {key: _value(find_option(Options, key), key, text) for key, text in texts.items()}


def _value(one: Option | None, key: str, text: str) -> Any:
    if one is None:
        return text  # unknown, which the job reports, or config
    if one.is_list:
        return _list(one, text)
    if one.type == "bool":
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{key}: {text!r} is not true or false", code="config.type")
        return text.lower() == "true"
    if one.type in ("int", "int | None"):
        try:
            return int(text)
        except ValueError:
            raise ConfigError(
                f"{key}: {text!r} is not a whole number", code="config.type"
            ) from None
    return text


def _list(one: Option, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    texts = value.values() if isinstance(value, dict) and one.pairs else value
    if not isinstance(value, (list, dict)) or not all(isinstance(each, str) for each in texts):
        example = json.dumps([text] if value is None else ["a", "b"])
        raise ConfigError(
            f"{one.key}: {text!r} is not a JSON list of texts; write for example {example}",
            code="config.type",
        )
    return value
