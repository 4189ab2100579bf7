"""The source ``tmqp_events``: the events of a broker, as a stream.

Theory of operation.  The streaming reader runs in a process of the driver as long as the query;
there, a feed (:mod:`tmqp_spark.feed`) receives the events.  An offset is the feed's name and a
number; the rows between two offsets are sent to the executors in the partition.  Events before the
start of a batch are processed and dropped.

A broker does not store events, so this is at most once: events that no feed received are missing,
and a batch that was planned and not finished when the query ended cannot be read again.  Every
known gap is a row, ``EventsMissed``.  Use a durable queue for data that must not be missed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tmqp_spark.errors import SparkError
from tmqp_spark.feed import EVENTS, EventFeed, EventRow, EventSelection, missed_row
from tmqp_spark.options import (
    ConnectionOptions,
    check_names,
    option,
    parse_duration_ms,
    read_options,
)
from tmqp_spark.workers import settle_memory

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

__all__ = ["EventOptions", "EventsPartition", "TmqpEventsDataSource", "TmqpEventsReader"]

_VERSION = 1
#: Rows in one task.
_MOST_ROWS = 50_000


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= 10_000_000:
        raise ValueError("a whole number from 1 to 10000000")
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions:
    """The options that select events."""

    events: str = option(
        "events", str, "names, such as `ClientConnected,QueueCreated`", "", "all that are possible"
    )
    channels: str = option("channels", str, "channels whose events are read; `*` for all", "")
    queues: str = option("queues", str, "queues for `MessageProduced`: `orders/7,orders/8`", "")
    most: int = option(
        "maxBufferedEvents", _count, "events kept until they are read; the oldest go", 100_000
    )
    most_a_batch: int = option(
        "maxEventsPerTrigger", _count, "maximum number of events in a batch", 50_000
    )
    poll_wait_ms: int = option("pollWaitMs", parse_duration_ms, "how long to wait for a batch", 250)


class EventsPartition(InputPartition):
    """The events of one task."""

    def __init__(self, rows: list[EventRow]) -> None:
        super().__init__(None)
        self.rows = rows


class TmqpEventsReader(DataSourceStreamReader):
    """Receives events in the driver; on executors it only converts them to columns."""

    _feed: EventFeed | None = None
    _run = ""

    def __init__(
        self, connection: ConnectionOptions, options: EventOptions, schema: StructType
    ) -> None:
        self._connection = connection
        self._options = options
        self._projection = EVENTS.project(
            (field.name, field.dataType.simpleString(), field.nullable) for field in schema.fields
        )

    def _listening(self) -> EventFeed:
        if self._feed is None:
            feed = EventFeed(self._connection, _wanted(self._options), self._options.most)
            feed.listen()
            self._feed = feed
            self._run = uuid.uuid4().hex
        return self._feed

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset of the first event after this call."""
        self._listening()
        return _offset(self._run, 0)

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """Return the end of the next batch; events before ``start`` are processed."""
        feed = self._listening()
        done = start["n"] if start.get("r") == self._run else 0
        feed.drop(done)
        count = feed.wait(done, self._options.poll_wait_ms / 1000)
        if count == 0 and start.get("r") != self._run:
            # No event yet: a different offset would start an empty batch.
            return start
        return _offset(self._run, min(count, done + self._options.most_a_batch))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the events between two offsets."""
        feed = self._listening()
        rows: list[EventRow] = []
        begin = start["n"] if start.get("r") == self._run else 0
        if end.get("r") != self._run:
            lost = end["n"] - start["n"] if start.get("r") == end.get("r") else None
            rows.append(missed_row(feed.now_us(), "the query was started again", lost))
        else:
            if start.get("r") != self._run:
                rows.append(missed_row(feed.now_us(), "the query was started again", None))
            rows += feed.rows(begin, end["n"])
        return [
            EventsPartition(rows[first : first + _MOST_ROWS])
            for first in range(0, len(rows), _MOST_ROWS)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the events as columns."""
        settle_memory()
        if not isinstance(partition, EventsPartition) or not partition.rows:
            return
        columns = dict(zip(EVENTS.names, zip(*partition.rows, strict=True), strict=True))
        schema = self._projection.schema
        yield pa.record_batch(
            [pa.array(columns[field.name], field.type) for field in schema], schema=schema
        )

    def commit(self, end: dict[str, Any]) -> None:
        """Drop the events before this offset, because they are processed."""
        if self._feed is not None and end.get("r") == self._run:
            self._feed.drop(end["n"])

    def stop(self) -> None:
        """Stop receiving events."""
        if self._feed is not None:
            self._feed.stop()


class TmqpEventsDataSource(DataSource):
    """``spark.readStream.format("tmqp_events")``.

    :raises InvalidOption: for an option that is unknown or invalid.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        given = dict(options.items())
        check_names(given, "events source", ConnectionOptions, EventOptions)
        super().__init__(options)
        self._connection = read_options(ConnectionOptions, given)
        self._options = read_options(EventOptions, given)
        _wanted(self._options)

    @classmethod
    def name(cls) -> str:
        """What is in ``format(...)``."""
        return "tmqp_events"

    def schema(self) -> str:
        """All columns."""
        return EVENTS.ddl()

    def reader(self, schema: StructType) -> Any:
        """Raise, because a broker keeps no events that a batch could read."""
        raise SparkError(
            "a broker keeps no events, so there is nothing to read in a batch: use"
            ' spark.readStream.format("tmqp_events")'
        )

    def streamReader(self, schema: StructType) -> TmqpEventsReader:  # noqa: N802 - Spark's name
        """A streaming query's reader, of the columns in ``schema``."""
        return TmqpEventsReader(self._connection, self._options, schema)


def _offset(run: str, number: int) -> dict[str, Any]:
    # In the order of their names: Spark compares offsets as text.
    return {"n": number, "r": run, "v": _VERSION}


def _wanted(options: EventOptions) -> EventSelection:
    return EventSelection(_list(options.events), _list(options.channels), _list(options.queues))


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
