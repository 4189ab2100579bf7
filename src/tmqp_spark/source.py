"""The format ``tmqp`` for Spark: batch and streaming sources of the messages that a broker keeps.

Theory of operation.  Spark creates these objects in several processes: the data source and the
batch reader in a planning process, which pickles them to executors; the streaming reader in a
process of the driver that lives as long as the query, and again in a planning process, for the
executors.  So these objects contain no connection: planning opens one for its requests, a streaming
reader opens its own with the first request, and executors keep some between tasks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tmqp_spark.arrow import BatchBuilder
from tmqp_spark.database import check_database, open_database
from tmqp_spark.filters import Filters
from tmqp_spark.following import Following, check_stream
from tmqp_spark.options import (
    ConnectionOptions,
    SinkOptions,
    SourceOptions,
    check_names,
    check_table,
    read_options,
    read_stream_connection,
)
from tmqp_spark.planning import check_batch, plan_batch
from tmqp_spark.ranges import QueueRange, read_range
from tmqp_spark.schema import Projection, default_columns, project, to_ddl
from tmqp_spark.sink import TmqpArrowWriter, TmqpStreamArrowWriter, batch_writer, stream_writer
from tmqp_spark.transport import BrokerLink, first_contact
from tmqp_spark.workers import settle_memory

__all__ = [
    "RangePartition",
    "TmqpDataSource",
    "TmqpFilteringReader",
    "TmqpReader",
    "TmqpStreamReader",
    "borrow_link",
    "return_link",
]

_COMPARISONS: Final[dict[type[Filter], str]] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    In: "in",
}

#: Connections of this process that no task uses at the moment.
_IDLE: Final[dict[ConnectionOptions, list[BrokerLink]]] = {}
_MOST_IDLE: Final = 4


# --- What tasks share -----------------------------------------------------------------------------


def borrow_link(options: ConnectionOptions) -> BrokerLink:
    """Return a connection for a task: an idle one of this process if it still works, or a new
    one."""
    idle = _IDLE.get(options, [])
    while idle:
        link = idle.pop()
        if link.owner == os.getpid() and link.is_quiet():
            return link
        link.close()
    return BrokerLink(options)


def return_link(link: BrokerLink) -> None:
    """Keep a connection for other tasks of this process."""
    idle = _IDLE.setdefault(link.options, [])
    if len(idle) < _MOST_IDLE and link.is_quiet():
        idle.append(link)
    else:
        link.close()


class RangePartition(InputPartition):
    """The range of a queue for one task."""

    def __init__(self, wanted: QueueRange) -> None:
        super().__init__(repr(wanted))
        self.range = wanted


class _Reads:
    """The common part of both readers: reading on executors."""

    def __init__(
        self, connection: ConnectionOptions, options: SourceOptions, projection: Projection
    ) -> None:
        self._connection = connection
        self._options = options
        self._projection = projection
        self._filters = Filters()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the messages of a partition as record batches."""
        settle_memory()
        # Spark replaces an empty list of partitions by a partition without a value.
        if not isinstance(partition, RangePartition):
            return
        wanted = partition.range
        link = borrow_link(self._connection)
        database = open_database(self._options) if self._projection.bodies else None
        try:
            what = f"{self._connection.url} {wanted.channel}/{wanted.queue}"
            builder = BatchBuilder(
                self._projection, wanted.channel, wanted.queue, wanted.incarnation, what
            )
            for portion in read_range(
                link,
                wanted,
                self._options,
                self._projection.bodies,
                database,
                self._projection.at_broker if self._options.prune else None,
            ):
                chosen = self._filters.apply(portion)
                if len(chosen):
                    yield builder.build(chosen)
        finally:
            if database is not None:
                database.close()
            return_link(link)


# --- Batch ----------------------------------------------------------------------------------------


class TmqpReader(_Reads, DataSourceReader):
    """A batch query's reader."""

    def partitions(self) -> list[InputPartition]:
        """Request the available messages from the broker, and divide them into tasks."""
        check_database(self._options)
        link = BrokerLink(self._connection)
        try:
            parts = plan_batch(link, self._options, self._filters)
        finally:
            link.close()
        return [RangePartition(part) for part in parts]


class TmqpFilteringReader(TmqpReader):
    """A batch query's reader that applies filters itself.

    It is only used if requested, because Spark refuses a reader with ``pushFilters`` unless its
    configuration allows it, and reuses the plan of a filtered read for other queries of the same
    loaded DataFrame, whatever their filters are.
    """

    def pushFilters(  # noqa: N802 - Spark's name
        self, filters: list[Filter]
    ) -> Iterable[Filter]:
        """Accept the filters that can be applied exactly; return the others."""
        return [each for each in filters if not self._takes(each)]

    def _takes(self, each: Filter) -> bool:
        column: tuple[str, ...] = getattr(each, "attribute", ())
        if len(column) != 1:
            return False
        if isinstance(each, IsNotNull):
            return self._filters.accept(column[0], "not null", None)
        comparison = _COMPARISONS.get(type(each))
        if comparison is None:
            return False
        return self._filters.accept(column[0], comparison, getattr(each, "value", None))


# --- Streaming ------------------------------------------------------------------------------------


class TmqpStreamReader(_Reads, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query's reader; see :mod:`tmqp_spark.following`."""

    _planner: Following | None = None
    _link: BrokerLink | None = None

    @property
    def _following(self) -> Following:
        if self._planner is None:
            check_database(self._options)
            self._link = first_contact(self._connection)
            self._planner = Following(self._link, self._options)
        return self._planner

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of a batch; if the options have two, both apply, but Spark is only told
        one."""
        if self._options.max_offsets is not None:
            return ReadMaxRows(self._options.max_offsets)
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note the current end of all queues: the query ends when everything up to there is
        read."""
        self._following.prepare_available_now()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where a new query begins."""
        return self._following.initial()

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """Return the end of the next batch; everything before ``start`` is processed."""
        return self._following.latest(start, isinstance(limit, ReadAllAvailable))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return the newest offsets, for the query's progress."""
        return self._following.report()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the ranges between two offsets."""
        return [RangePartition(part) for part in self._following.plan(start, end)]

    def commit(self, end: dict[str, Any]) -> None:
        """Handle that everything up to this offset is processed, which Spark reports one batch
        late."""
        self._following.commit(end)

    def stop(self) -> None:
        """Close the connection, if Spark reports that the query has ended."""
        if self._link is not None:
            self._link.close()


# --- The format -----------------------------------------------------------------------------------


class TmqpDataSource(DataSource):
    """The format ``tmqp``.

    :raises InvalidOption: for an option that is unknown or invalid.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        given = dict(options.items())
        check_table(given, self.name())
        check_names(given, "format", ConnectionOptions, SourceOptions, SinkOptions)
        super().__init__(options)
        self._given = given
        self._connection = read_options(ConnectionOptions, given)

    @classmethod
    def name(cls) -> str:
        """The name for ``format(...)``."""
        return "tmqp"

    def schema(self) -> str:
        """The columns of a source for which the user gives no schema."""
        options = self._source_options()
        return to_ddl(default_columns(options.include_headers, options.include_frame))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch query's reader, of the columns in ``schema``."""
        options = self._source_options()
        check_batch(options)
        kind = TmqpFilteringReader if options.filter_pushdown else TmqpReader
        return kind(self._connection, options, _projection(schema))

    def streamReader(  # noqa: N802 - Spark's name
        self, schema: StructType
    ) -> DataSourceStreamReader:
        """A streaming query's reader, of the columns in ``schema``."""
        options = self._source_options()
        check_stream(options)
        connection = read_stream_connection(self._given)
        return TmqpStreamReader(connection, options, _projection(schema))

    def writer(self, schema: StructType, overwrite: bool) -> TmqpArrowWriter:
        """A batch's writer, of rows with the columns in ``schema``."""
        return batch_writer(self._given, schema, overwrite)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> TmqpStreamArrowWriter:
        """A streaming query's writer, of rows with the columns in ``schema``."""
        return stream_writer(self._given, schema, overwrite)

    def _source_options(self) -> SourceOptions:
        check_names(self._given, "source", ConnectionOptions, SourceOptions)
        return read_options(SourceOptions, self._given)


def _projection(schema: StructType) -> Projection:
    return project(
        (field.name, field.dataType.simpleString(), field.nullable) for field in schema.fields
    )
