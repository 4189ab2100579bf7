"""Writes the rows of a sink's task, and checks its columns and options.

This module does not need pyspark: rows are Arrow batches, and the caller identifies the task.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tmqp.constants import (
    MAX_QUEUE_ID,
    OP_CREATE_QUEUE,
    OP_QUEUE_INFORMATION,
    RESULT_DUPLICATE,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNAUTHORIZED,
    HeaderName,
)
from tmqp.models import ModelError, QueueInformation, QueueOptions
from tmqp_client.errors import code_words
from tmqp_spark.attending import attended
from tmqp_spark.committing import Staging, TaskKey
from tmqp_spark.errors import BrokerRefused, ConnectionBroken, InvalidOption, InvalidSchema
from tmqp_spark.options import ConnectionOptions, SinkOptions
from tmqp_spark.pushing import Pusher
from tmqp_spark.transport import BrokerLink

if TYPE_CHECKING:
    # Made where a task has rows only: every process that plans a query, of sources too, imports
    # this module, and the encoder's tables (and pandas, which pyarrow then looks for) take time.
    from tmqp_spark.encoding import MessageEncoder

__all__ = ["Written", "borrow_pusher", "check_sink", "return_pusher", "write_once", "write_plain"]

#: Columns of a source that a sink cannot have, and who writes them.
_BROKERS_OWN: Final = {
    "source": "the broker writes who pushed a message",
    "one_delivery": "the broker sets it when it delivers",
    "seq": "the broker gives a message its place",
    "timestamp": "the broker notes when a message came",
    "pending_ack": "the option ack says it",
    "pending_response": "a sink waits for no response",
    "delivery_count": "the broker counts deliveries",
    "frame": "a sink makes the message itself, of value and headers",
    "incarnation": "the broker names its queues",
}
_PAIRS: Final = "array<struct<key:string,value:string>>"
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "value": ("binary", "string"),
    "channel": ("string",),
    "queue": _WHOLE,
    "message_id": ("string",),
    "headers": ("map<string,string>", _PAIRS),
    "high_priority": ("boolean",),
    "ttl": _WHOLE,
}

#: Connections of this process that no task uses at the moment.
_IDLE: Final[dict[tuple[ConnectionOptions, int], list[Pusher]]] = {}
_MOST_IDLE: Final = 4


class Written:
    """The counts of a task: ``rows``, and the ``bytes`` of their messages."""

    __slots__ = ("bytes", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0


# --- Before anything is written -------------------------------------------------------------------


def check_sink(fields: Iterable[tuple[str, str]], options: SinkOptions) -> list[str]:
    """Check that rows of these columns can be messages; return the columns to send.

    :param fields: name and Spark's simple type of each column.
    :raises InvalidSchema: for an unknown column, or one of another type.
    :raises InvalidOption: if neither a column nor an option has the target of rows.
    """
    names: list[str] = []
    for name, kind in fields:
        if name in _TYPES:
            if kind not in _TYPES[name]:
                raise InvalidSchema(
                    f"column {name} of a tmqp sink is {' or '.join(_TYPES[name])}, not {kind}:"
                    " cast it, or make text of several columns with to_json(struct(*)) as value"
                )
            names.append(name)
        elif not options.ignore_unknown:
            raise InvalidSchema(_unknown(name))
    if "value" not in names:
        raise InvalidSchema(
            "a tmqp sink needs a column value, binary or string: the payload. Make one of several"
            " columns with to_json(struct(*)) as value"
        )
    if "channel" not in names and not options.channel:
        raise InvalidOption(
            "where do the rows go? Set the option channel, or have a column channel"
        )
    if "queue" not in names and options.queue is None:
        raise InvalidOption("where do the rows go? Set the option queue, or have a column queue")
    return names


def _unknown(name: str) -> str:
    ways = f'leave it out with drop("{name}"), or set ignoreUnknownColumns=true'
    if name in _BROKERS_OWN:
        return f"a tmqp sink has no column {name}: {_BROKERS_OWN[name]}; {ways}"
    near = difflib.get_close_matches(name, _TYPES, 1, 0.5)
    meant = f"did you mean {near[0]}? Else " if near else ""
    return f"a tmqp sink has no column {name!r} (it has {', '.join(_TYPES)}); {meant}{ways}"


class _Queues:
    """The queues that a task writes to, which are created or checked before their first row."""

    def __init__(self, link: BrokerLink, options: SinkOptions, columns: list[str]) -> None:
        self._link = link
        self._options = options
        self._by_row = [name for name in ("channel", "queue") if name in columns]
        self._known: set[tuple[str, int]] = set()
        once = options.guarantee == "exactly_once"
        self._make_durable = once or options.ack == "stored"
        # A transaction's push is refused by a queue that is not durable.
        self._check_durable = options.ack == "stored" and not once

    @property
    def words(self) -> str:
        """The targets of rows, for errors."""
        if not self._by_row:
            return f"{self._options.channel}/{self._options.queue}"
        if self._known:
            return ", ".join(f"{channel}/{queue}" for channel, queue in sorted(self._known)[:5])
        return "the rows' own channels"

    def look(self, batch: Any) -> None:
        """Create or check the queues of these rows, as the options require.

        :raises BrokerRefused: if a queue is missing, or not durable although that is required.
        """
        if not (self._options.create_queue or self._check_durable):
            return
        for place in self._places(batch) - self._known:
            self._known.add(place)
            if self._options.create_queue:
                self._create(*place)
            if self._check_durable:
                self._check(*place)

    def _places(self, batch: Any) -> set[tuple[str, int]]:
        options = self._options
        fixed = (options.channel, -1 if options.queue is None else options.queue)
        if not self._by_row:
            return {fixed}
        count = batch.num_rows
        channel: Any = pa.repeat(fixed[0], count)
        queue: Any = pa.repeat(str(fixed[1]), count)
        if "channel" in self._by_row:
            channel = pc.fill_null(batch.column("channel"), fixed[0])
        if "queue" in self._by_row:
            queue = pc.fill_null(batch.column("queue").cast(pa.string()), str(fixed[1]))
        places = set()
        for text in pc.binary_join_element_wise(channel, queue, "/").unique().to_pylist():
            name, _, number = text.rpartition("/")
            # Other rows are refused later, with their number.
            if name and 0 <= int(number) <= MAX_QUEUE_ID:
                places.add((name, int(number)))
        return places

    def _create(self, channel: str, queue: int) -> None:
        headers = (
            (HeaderName.CHANNEL_NAME.value, channel),
            (HeaderName.QUEUE_ID.value, str(queue)),
        )
        body = QueueOptions(durable=True if self._make_durable else None).to_json()
        what = f"create queue {channel}/{queue}"
        try:
            self._link.ask(OP_CREATE_QUEUE, what, channel, headers, body)
        except BrokerRefused as error:
            if error.code != RESULT_DUPLICATE:
                raise BrokerRefused(
                    f"{self._link.options.url}: {what} (option createQueue):"
                    f" {code_words(error.code)}",
                    error.code,
                ) from None

    def _check(self, channel: str, queue: int) -> None:
        """Check that a queue is durable, because otherwise ``ack=stored`` would be wrong."""
        body = queue.to_bytes(2, "little")
        what = f"look at queue {channel}/{queue}"
        code = RESULT_OK
        durable = False
        try:
            answer = self._link.ask(OP_QUEUE_INFORMATION, what, channel, (), body)
            durable = bool(QueueInformation.from_json(answer.payload).durable)
        except BrokerRefused as error:
            code = error.code
        except ModelError:
            durable = False
        if durable:
            return
        url = self._link.options.url
        ways = "or set ack=accepted"
        if code == RESULT_NOT_FOUND:
            text = f"{url}: there is no queue {channel}/{queue}: create it, or set createQueue=true"
        elif code == RESULT_UNAUTHORIZED:
            text = f"{url}: the token lacks the right to check whether {channel}/{queue} is durable"
        elif code:
            raise BrokerRefused(f"{url}: {what}: {code_words(code)}", code)
        else:
            text = (
                f"{url}: {channel}/{queue} is not durable, so an acknowledgement does not mean "
                "that a message is stored: make it durable"
            )
        raise BrokerRefused(f"{text}; {ways}", code)


# --- Connections ----------------------------------------------------------------------------------


def borrow_pusher(options: ConnectionOptions, window: int) -> Pusher:
    """Return a connection for a task: an idle one of this process if it still works, or a new
    one."""
    idle = _IDLE.get((options, window), [])
    while idle:
        pusher = idle.pop()
        if pusher.owner == os.getpid() and pusher.is_quiet():
            return pusher
        pusher.close()
    return Pusher(options, window)


def return_pusher(pusher: Pusher) -> None:
    """Keep a connection for other tasks of this process."""
    idle = _IDLE.setdefault((pusher.options, pusher.window), [])
    if len(idle) < _MOST_IDLE and pusher.is_quiet():
        idle.append(pusher)
    else:
        pusher.close()


# --- The rows of a task ---------------------------------------------------------------------------


def write_once(
    pusher: Pusher, options: SinkOptions, columns: list[str], key: TaskKey, batches: Iterator[Any]
) -> tuple[int, Written]:
    """Stage a task's rows in a separate transaction; return its number (0 for no rows) and its
    counts.

    If the epoch is already committed, the rows are skipped, and the number is 0.

    :raises SparkError: if a row cannot be a message, or the broker refuses it.
    """
    written = Written()
    queues = _Queues(pusher, options, columns)
    staging: Staging | None = None
    encoder: MessageEncoder | None = None
    try:
        with closing(attended(pusher, batches)) as tended:
            for whole in tended:
                batch = whole.select(columns)
                if batch.num_rows == 0:
                    continue
                if staging is None or encoder is None:
                    staging = Staging(pusher, key, queues.words, options.window)
                    staging.open(options.txn_timeout_ms)
                    pusher.tended = True
                    encoder = _encoder(pusher, options, key, ask=False)
                if staging.committed:
                    continue  # read to the end: Spark expects all rows to be consumed
                queues.look(batch)
                encoded = encoder.encode(batch)
                for start, end in pairwise(encoded.cuts(options.batch_bytes)):
                    staging.push(encoded.block(start, end))
                written.rows += encoded.count
                written.bytes += len(encoded.data)
        if staging is None or staging.committed:
            return 0, written
        staging.finish(written.rows)
    except BaseException as error:
        if staging is None:
            raise
        staging.give_up()
        if isinstance(error, ConnectionBroken):
            raise staging.lost(error) from None
        raise
    finally:
        pusher.tended = False
    return staging.number, written


def write_plain(
    pusher: Pusher, options: SinkOptions, columns: list[str], key: TaskKey, batches: Iterator[Any]
) -> Written:
    """Push a task's rows, and wait for acknowledgements as ``ack`` requires.

    :raises SparkError: if a row cannot be a message, or the broker refuses it.
    """
    written = Written()
    queues = _Queues(pusher, options, columns)
    encoder: MessageEncoder | None = None
    marker = ""
    for whole in batches:
        batch = whole.select(columns)
        if batch.num_rows == 0:
            continue
        if encoder is None:
            pusher.connect()
            encoder = _encoder(pusher, options, key, ask=options.ack != "none")
            if options.ack == "none":
                marker = options.channel or str(pc.min(batch.column("channel")).as_py() or "x")
        queues.look(batch)
        encoder.rename(pusher.client_id)
        encoded = encoder.encode(batch)
        for start, end in pairwise(encoded.cuts(options.batch_bytes)):
            pusher.push(encoded, start, end)
        written.rows += encoded.count
        written.bytes += len(encoded.data)
    pusher.settle(marker)
    return written


def _encoder(pusher: Pusher, options: SinkOptions, key: TaskKey, *, ask: bool) -> MessageEncoder:
    """Make the encoder of a task; ids are the same if the same rows are written again."""
    from tmqp_spark.encoding import MessageEncoder  # noqa: PLC0415 - see above

    name = f"{key.application}/{key.epoch}/{key.part}".encode()
    prefix = f"{blake2b(name, digest_size=8).hexdigest()}-"
    return MessageEncoder(options.channel, options.queue, pusher.client_id, prefix, ask=ask)
