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
    import pyarrow as pa
    from pyspark import TaskContext
    from pyspark.sql import functions as sf
    from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.types import ArrayType, DataType, MapType, StructType
except ImportError as error:
    raise ModuleNotFoundError(
        "urlset.spark needs Spark 4.1 or later: pip install 'urlset[spark]'", name="pyspark"
    ) from error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["SitemapSource", "SitemapWriter", "prepare", "register"]

#: the column that :func:`prepare` adds; the writer does not read it
PREPARED = "__urlset_prepared__"
#: the names of types, by their beginning, that no option takes
OPAQUE = ("binary", "variant", "time(", "interval", "geo")


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
        ordered = PREPARED in schema.names
        options = options_of_text(self.options)
        columns = _arrow_schema(schema)
        job = engine.plan(options, ordered=ordered)
        engine.check_columns(job, columns)
        return SitemapWriter(job)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """Refuses ``writeStream``.

        Raises:
            ConfigError: ``spark.stream``.
        """
        raise ConfigError(
            "writeStream: a set is replaced as a whole, and a stream has only its new rows; write"
            " a table of all rows with df.write",
            code="spark.stream",
        )

    def schema(self) -> Any:
        """Refuses ``spark.read``.

        Raises:
            ConfigError: ``spark.read``.
        """
        raise ConfigError(
            "spark.read: this format only writes; read a set with urlset.read", code="spark.read"
        )


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
    """The columns, as far as their check needs them. (Spark's own function changes with it.)

    Raises:
        ConfigError: ``spark.type``: Spark cannot pass a column to Python.
    """
    text = pa.string()

    def simplified(kind: DataType) -> pa.DataType:
        if isinstance(kind, ArrayType):
            return pa.list_(text)
        if isinstance(kind, (StructType, MapType)):
            return pa.struct([("value", text)])
        return pa.binary() if kind.simpleString().startswith(OPAQUE) else text

    for field in schema:
        name = field.dataType.simpleString()
        if name == "interval" or name.startswith(("interval year", "interval month")):
            raise ConfigError(
                f"column {field.name!r}: Spark cannot pass the type {name!r} to Python; select the"
                " columns that urlset needs",
                code="spark.type",
            )
    return pa.schema([(field.name, simplified(field.dataType)) for field in schema])


def prepare(df: DataFrame, *, partitions: int | None = None, **options: Any) -> DataFrame:
    """Brings the rows into the order of their final locs, so that each partition is one range.

    Equal locs meet in one partition: the write accepts ``duplicates`` and ``changes``. The ranges
    begin where parts of the live set begin, so that under the stable layout an edit changes few
    shards. Without such a set Spark samples the locs. Of rows with the same loc the one with the
    largest lastmod comes first (``duplicates=drop`` keeps it), then the one with the smallest
    values of the other columns that the build reads, except lists, structs and maps.

    This must be the last step before the write, which checks the order. The column that it adds,
    ``__urlset_prepared__``, informs the writer.

    Args:
        df: the rows.
        partitions: about the number of the partitions; by default that of the live set, or for the
            first one what Spark chooses.
        options: those of the write; values may be text as for the write. ``config`` is the path of
            a ``urlset.toml``.

    Raises:
        ConfigError: wrong options, a missing or ambiguous column.
        PublishError: the output cannot be written, or another build is publishing there.
    """
    texts = options_of_text({k: v for k, v in options.items() if isinstance(v, str)})
    ranges = engine.plan_ranges(options | texts, partitions)
    columns = ranges.columns(_arrow_schema(df.schema))

    def locate(*arrays: pa.Array) -> pa.Array:
        context = TaskContext.get()
        rows = pa.table(list(arrays), names=list(columns.loc))
        # rows without a loc are spread over all ranges, those of one task into one of them
        locs, numbers = ranges.locate(rows, context.partitionId() if context is not None else 0)
        return pa.StructArray.from_arrays([locs.cast(pa.string()), numbers], ["loc", "range"])

    udf: Any = arrow_udf  # its overloads do not know functions of several arrays
    located = udf(locate, "loc string, range int")(*map(_column, columns.loc))
    given = df.withColumn(PREPARED, located)
    loc = sf.col(PREPARED)["loc"]
    if ranges.bounds is not None or partitions == 1:
        given = given.repartitionById(ranges.count, sf.col(PREPARED)["range"])
    elif partitions is not None:
        given = given.repartitionByRange(partitions, loc)
    else:
        given = given.repartitionByRange(loc)
    dated = [_column(columns.lastmod).desc()] if columns.lastmod is not None else []
    # a constant in the place of the locs: Spark sends all columns to the writer
    return given.sortWithinPartitions(loc, *dated, *map(_column, columns.ties)).withColumn(
        PREPARED, sf.lit(True)
    )


def _column(name: str) -> Column:
    return sf.col(f"`{name.replace('`', '``')}`")


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
    except (ValueError, RecursionError):
        value = None
    texts = value.values() if isinstance(value, dict) and one.pairs else value
    if not isinstance(value, (list, dict)) or not all(isinstance(each, str) for each in texts):
        example = json.dumps([text] if value is None else ["a", "b"])
        raise ConfigError(
            f"{one.key}: {text!r} is not a JSON list of texts; write for example {example}",
            code="config.type",
        )
    return value
