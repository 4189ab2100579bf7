"""What ours is compared with: a source and a writer that hand over messages one by one.

They are what somebody writes who follows Spark's manual for data sources in Python: rows instead of
Arrow batches.  They use the same connection, the same ranges asked for ahead and the same codec, so
what differs is the way between Python and the JVM, and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from tmqp import Frame, MessageType
from tmqp.blocks import split_blocks
from tmqp.constants import OP_CHANNEL_INFORMATION
from tmqp_spark.options import SinkOptions, read_options
from tmqp_spark.ranges import read_answers
from tmqp_spark.source import (
    RangePartition,
    TmqpDataSource,
    TmqpReader,
    borrow_link,
    return_link,
)
from tmqp_spark.workers import settle_memory
from tmqp_spark.writing import borrow_pusher, return_pusher

__all__ = ["PLAIN_COLUMNS", "RowSink", "RowSource", "TupleSource"]

#: What the sources read; no column costs more than looking it up.
PLAIN_COLUMNS: Final = "seq bigint, queue int, value binary"
_PIECE_BYTES: Final = 1 << 18


class _TupleReader(TmqpReader):
    """Ranges as ours, and a tuple for each message."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages of a part, one by one."""
        settle_memory()
        if not isinstance(partition, RangePartition):
            return
        wanted = partition.range
        queue = wanted.queue
        link = borrow_link(self._connection)
        try:
            for data, start in read_answers(link, wanted, self._options):
                for block in split_blocks(bytes(data[start:])):
                    for message in block.messages():
                        yield (message.sequence, queue, message.payload)
        finally:
            return_link(link)


class _RowReader(_TupleReader):
    """The same with a Row for each message, as Spark's manual has it."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages of a part, one by one."""
        for sequence, queue, value in super().read(partition):
            yield Row(seq=sequence, queue=queue, value=value)


class TupleSource(TmqpDataSource):
    """A source of tuples: the columns of :data:`PLAIN_COLUMNS`."""

    kind: type[TmqpReader] = _TupleReader

    @classmethod
    def name(cls) -> str:
        """What it is called in ``format(...)``."""
        return "tmqp_bench_tuples"

    def schema(self) -> str:
        """The columns."""
        return PLAIN_COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch query's reader."""
        made = super().reader(schema)
        assert isinstance(made, TmqpReader), "filters are not pushed down here"
        return self.kind(made._connection, made._options, made._projection)


class RowSource(TupleSource):
    """A source of Rows: the columns of :data:`PLAIN_COLUMNS`."""

    kind: type[TmqpReader] = _RowReader

    @classmethod
    def name(cls) -> str:
        """What it is called in ``format(...)``."""
        return "tmqp_bench_rows"


class _Rows(WriterCommitMessage):
    """How many rows a task has written."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


class _RowWriter(DataSourceWriter):
    """Pushes a message for each Row, without waiting; what was refused comes at the end."""

    def __init__(self, source: TmqpDataSource, options: SinkOptions) -> None:
        self._connection = source._connection
        self._options = options

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Write a task's rows."""
        settle_memory()
        options = self._options
        queue = options.queue or 0
        pusher = borrow_pusher(self._connection, options.window)
        pusher.connect()
        source, count, size = pusher.client_id, 0, 0
        pieces: list[bytes] = []
        kind = int(MessageType.QUEUE_MESSAGE)
        for row in iterator:
            count += 1
            frame = Frame.build(
                kind,
                options.channel,
                queue,
                row.value,
                message_id=f"row-{count:08x}",
                source=source,
            )
            pieces.append(frame.raw)
            size += len(frame.raw)
            if size >= _PIECE_BYTES:
                pusher.send(pieces)
                pieces, size = [], 0
        if pieces:
            pusher.send(pieces)
        pusher.finish(pusher.start(OP_CHANNEL_INFORMATION, options.channel))
        return_pusher(pusher)
        return _Rows(count)


class RowSink(TmqpDataSource):
    """A sink that is handed Rows, as Spark's manual has it; columns: ``value`` alone."""

    @classmethod
    def name(cls) -> str:
        """What it is called in ``format(...)``."""
        return "tmqp_bench_row_sink"

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """A batch's writer."""
        return _RowWriter(self, read_options(SinkOptions, self._given))


# Spark's workers cannot import what is in no installed package.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
