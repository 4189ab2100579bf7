"""The sinks of the format ``tmqp`` as Spark sees them, batch and streaming.

Theory of operation.  Spark makes a writer where the write is planned and pickles it to the
executors, where :meth:`write` runs in each task; then ``commit`` or ``abort`` runs in a process of
the driver: of a batch on the same, pickled writer, of a stream on another one that is made again
for each micro-batch.  So a stream's writer holds nothing that was made up, and what a task and the
commit must agree on comes from Spark: the query's id is the application and the number of the
micro-batch is the epoch (see :mod:`tmqp_spark.committing`).  Both are the same when the micro-batch
is run again, after whatever failure.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tmqp_spark.committing import TaskKey, abort, commit
from tmqp_spark.errors import InvalidOption, SparkError
from tmqp_spark.options import (
    ConnectionOptions,
    SinkOptions,
    check_names,
    read_options,
    read_stream_connection,
)
from tmqp_spark.transport import BrokerLink
from tmqp_spark.workers import settle_memory
from tmqp_spark.writing import borrow_pusher, check_sink, return_pusher, write_once, write_plain

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = [
    "TmqpArrowWriter",
    "TmqpCommitMessage",
    "TmqpStreamArrowWriter",
    "batch_writer",
    "stream_writer",
]

#: Spark's own names for what tells a micro-batch from all others.
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_LOG: Final = logging.getLogger("tmqp_spark")


class TmqpCommitMessage(WriterCommitMessage):
    """What a task says when it is through: whose transaction holds how much.

    ``transaction`` is 0 where nothing was staged; ``bytes`` are those of the messages.
    """

    def __init__(self, key: TaskKey, transaction: int, rows: int, bytes: int) -> None:
        self.application = key.application
        self.epoch = key.epoch
        self.part = key.part
        self.attempt = key.attempt
        self.transaction = transaction
        self.rows = rows
        self.bytes = bytes


class _Writes:
    """What tasks and commits of both kinds of writers do."""

    def __init__(
        self, connection: ConnectionOptions, options: SinkOptions, columns: list[str]
    ) -> None:
        self._connection = connection
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write a task's rows: stage them, or push them if once is not asked for."""
        settle_memory()
        key = self._key(_context())
        pusher = borrow_pusher(self._connection, self._options.window)
        transaction = 0
        try:
            if self._options.guarantee == "exactly_once":
                transaction, written = write_once(
                    pusher, self._options, self._columns, key, iterator
                )
            else:
                written = write_plain(pusher, self._options, self._columns, key, iterator)
        except BaseException:
            pusher.close()
            raise
        return_pusher(pusher)
        settle_memory()  # the first rows load more
        return TmqpCommitMessage(key, transaction, written.rows, written.bytes)

    def _key(self, context: TaskContext) -> TaskKey:
        raise NotImplementedError

    def _commit(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        """Make what was staged visible, all at once."""
        staged = _staged(messages)
        if not staged:
            return
        application, epoch = staged[0].application, staged[0].epoch
        rows = sum(message.rows for message in staged)
        # One process commits all micro-batches of a query: its connection is kept.
        link = borrow_pusher(self._connection, self._options.window)
        try:
            pushed = commit(
                link, application, epoch, [(each.transaction, each.rows) for each in staged]
            )
        except BaseException:
            link.close()
            raise
        return_pusher(link)
        settle_memory()
        if pushed != rows:
            _LOG.warning(
                "%s epoch %d was committed before: %d rows are not written again",
                application,
                epoch,
                rows,
            )

    def _abort(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        """Have the broker forget what was staged; what is not known here times out."""
        staged = _staged(messages)
        if not staged:
            return
        link = BrokerLink(self._connection)
        try:
            abort(link, staged[0].application, [each.transaction for each in staged])
        finally:
            link.close()


class TmqpArrowWriter(_Writes, DataSourceArrowWriter):
    """A batch write: all of it or nothing, when it is to be exactly once.

    The application is ``txnAppId`` and the epoch ``txnVersion``, so that a write that is done again
    counts once; without them it is a name that was never used before.
    """

    def __init__(
        self, connection: ConnectionOptions, options: SinkOptions, columns: list[str]
    ) -> None:
        super().__init__(connection, options, columns)
        self._application = options.txn_app_id or f"spark-{uuid.uuid4().hex}"
        self._epoch = options.txn_version or 0

    def _key(self, context: TaskContext) -> TaskKey:
        return TaskKey(
            self._application, self._epoch, context.partitionId(), context.taskAttemptId()
        )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the write count."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Forget it."""
        self._abort(messages)


class TmqpStreamArrowWriter(_Writes, DataSourceStreamArrowWriter):
    """A streaming query's writes: each micro-batch once, when it is to be exactly once."""

    def _key(self, context: TaskContext) -> TaskKey:
        query = context.getLocalProperty(_QUERY_ID)
        batch = context.getLocalProperty(_BATCH_ID)
        if query and batch and batch.isdigit():
            return TaskKey(query, int(batch), context.partitionId(), context.taskAttemptId())
        if self._options.guarantee == "exactly_once":
            raise SparkError(
                f"{self._connection.url}: this Spark does not tell tasks their micro-batch "
                f"({_QUERY_ID}, {_BATCH_ID}), which exactly-once writes need: use Spark 4.2 or "
                f"4.3, or set guarantee=at_least_once"
            )
        return TaskKey(f"spark-{uuid.uuid4().hex}", 0, context.partitionId(), 0)

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """Make the micro-batch count."""
        for message in _staged(messages):
            if message.epoch != batchId:
                raise SparkError(
                    f"a task of micro-batch {message.epoch} answered for micro-batch {batchId}"
                )
        self._commit(messages)

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """Forget it."""
        self._abort(messages)


# --- Making writers -------------------------------------------------------------------------------


def batch_writer(given: Mapping[str, str], schema: StructType, overwrite: bool) -> TmqpArrowWriter:
    """The writer of a batch.

    :raises InvalidOption: and :class:`InvalidSchema`: for what cannot be.
    """
    connection, options, columns = _read(given, schema)
    if overwrite:
        raise InvalidOption(
            'a queue is appended to, not overwritten: use .mode("append") (clear a queue with'
            " Client.clear_queue)"
        )
    if bool(options.txn_app_id) != (options.txn_version is not None):
        raise InvalidOption("txnAppId and txnVersion belong together: a name, and a rising number")
    if options.txn_app_id and options.guarantee != "exactly_once":
        raise InvalidOption("txnAppId is for guarantee=exactly_once")
    return TmqpArrowWriter(connection, options, columns)


def stream_writer(
    given: Mapping[str, str], schema: StructType, overwrite: bool
) -> TmqpStreamArrowWriter:
    """The writer of a stream's micro-batch.

    :raises InvalidOption: and :class:`InvalidSchema`: for what cannot be.
    """
    _, options, columns = _read(given, schema)
    connection = read_stream_connection(given)
    if overwrite:
        raise InvalidOption(
            'a queue is appended to, not overwritten: use .outputMode("append"), or "update" if'
            " each change shall be a message"
        )
    if options.txn_app_id or options.txn_version is not None:
        raise InvalidOption(
            "txnAppId and txnVersion are for batch writes (such as those in foreachBatch); a"
            " streaming query has its own id and numbers"
        )
    return TmqpStreamArrowWriter(connection, options, columns)


def _read(
    given: Mapping[str, str], schema: StructType
) -> tuple[ConnectionOptions, SinkOptions, list[str]]:
    check_names(given, "sink", ConnectionOptions, SinkOptions)
    options = read_options(SinkOptions, given)
    fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    columns = check_sink(fields, options)
    settle_memory()
    return read_options(ConnectionOptions, given), options, columns


def _staged(messages: Iterable[WriterCommitMessage | None]) -> list[TmqpCommitMessage]:
    """The messages of tasks that staged something; one of a failed task is None."""
    return [
        message
        for message in messages
        if isinstance(message, TmqpCommitMessage) and message.transaction
    ]


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise SparkError("a tmqp sink writes in Spark's tasks only")
    return context
