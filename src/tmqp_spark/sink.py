"""The sinks of the format ``tmqp`` as Spark sees them, batch and streaming.

Theory of operation.  Spark creates a writer in the process that plans the write, and pickles it to
the executors, where :meth:`write` runs in each task; then ``commit`` or ``abort`` runs in a process
of the driver: for a batch on the same, pickled writer, for a stream on another one that is created
for each micro-batch.  So a stream's writer must not contain generated values, and everything on
which tasks and the commit must agree comes from Spark: the query's id is the application and the
number of the micro-batch is the epoch (see :mod:`tmqp_spark.committing`).  Both stay the same when
the micro-batch runs again after any failure.
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

#: Spark's own names for what identifies a micro-batch.
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_LOG: Final = logging.getLogger("tmqp_spark")


class TmqpCommitMessage(WriterCommitMessage):
    """The result of a task: its transaction, and how much it contains.

    ``transaction`` is 0 if nothing was staged; ``bytes`` is the size of the messages.
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
    """The common part of both writers: the work of tasks, commits and aborts."""

    def __init__(
        self, connection: ConnectionOptions, options: SinkOptions, columns: list[str]
    ) -> None:
        self._connection = connection
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write a task's rows: stage them for ``exactly_once``, otherwise push them."""
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
        """Make the staged messages visible, all at once."""
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
        """Abort the staged transactions; unknown ones time out."""
        staged = _staged(messages)
        if not staged:
            return
        link = BrokerLink(self._connection)
        try:
            abort(link, staged[0].application, [each.transaction for each in staged])
        finally:
            link.close()


class TmqpArrowWriter(_Writes, DataSourceArrowWriter):
    """A batch write; with ``exactly_once``, all or nothing is written.

    The application is ``txnAppId`` and the epoch ``txnVersion``, so that a repeated write has no
    effect; without them the application is a new, unique name.
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
        """Commit the write."""
        self._commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort the write."""
        self._abort(messages)


class TmqpStreamArrowWriter(_Writes, DataSourceStreamArrowWriter):
    """The writes of a streaming query; with ``exactly_once``, each micro-batch once."""

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
        """Commit the micro-batch."""
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
        """Abort the micro-batch."""
        self._abort(messages)


# --- Making writers -------------------------------------------------------------------------------


def batch_writer(given: Mapping[str, str], schema: StructType, overwrite: bool) -> TmqpArrowWriter:
    """Make the writer of a batch.

    :raises InvalidOption: and :class:`InvalidSchema`: for invalid options or columns.
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
    """Make the writer of a stream's micro-batches.

    :raises InvalidOption: and :class:`InvalidSchema`: for invalid options or columns.
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
    """Return the results of tasks that staged something; that of a failed task is None."""
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
