"""The port of stores: the interface between the server and the code that keeps its messages.

Theory of operation.  The server writes to a :class:`Store` in units of a :class:`StoreBatch`, each
of which is atomic and durable: when :meth:`Store.write` returns, the whole batch survives a power
cut; when it raises, nothing of the batch is stored, neither now nor after a restart.  So one sync
serves all messages that arrived during the previous one, and the server confirms only messages that
were written.

Messages belong to queues, which a store identifies by a *key*: a number that the server never
reuses, so that a queue that is removed and created again is a different one.  Within a queue, a
message is identified by its *sequence*, which increases and is never reused.  A store never reads a
message's body.

A message is *settled* when the queue no longer has to deliver it.  A store may drop a settled
message, unless the queue's :class:`Retention` keeps it for readers.

Everything here blocks and is called by one thread at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from tmqp._compat import mypyc_attr
from tmqp.blocks import AS_BLOCKS, StoredMessage
from tmqp_server.engine.records import Record
from tmqp_server.storage.stored_runs import StoredRun, unrolled

__all__ = [
    "ANY_PRIORITY",
    "HIGH_ONLY",
    "REGULAR_ONLY",
    "CheckReport",
    "DamageError",
    "DropChannel",
    "DropCursor",
    "DropMark",
    "DropQueue",
    "DropRouter",
    "KeepChannel",
    "KeepCursor",
    "KeepMark",
    "KeepQueue",
    "KeepRouter",
    "Note",
    "Portion",
    "QueueOffsets",
    "Recovered",
    "RecoveredQueue",
    "Retention",
    "SettleAll",
    "StagedBody",
    "Store",
    "StoreBatch",
    "StoreError",
    "StoreFullError",
    "StoredPart",
    "TopologyChange",
    "UnknownDoorError",
]

#: Which messages of a queue are meant.
ANY_PRIORITY: Final = 0
HIGH_ONLY: Final = 1
REGULAR_ONLY: Final = 2


class StoreError(Exception):
    """The store failed; the message says what failed, and where."""


class StoreFullError(StoreError):
    """There is no room left on the disk; worth trying again later."""


class UnknownDoorError(Exception):
    """A message came through a door that this server does not know; ``number`` is the door's."""

    def __init__(self, number: int) -> None:
        super().__init__(f"this server knows no door with the number {number}")
        self.number = number


class DamageError(StoreError):
    """What was read is not what was written; the text names the queue and the sequences."""


class Retention(Record):
    """What a queue keeps of its settled messages for readers; all 0 and False: nothing.

    A settled message is kept while it is within the newest ``retain_bytes`` of the queue or younger
    than ``retain_time_ms`` (each counts only when it is not 0), or, with ``retain_for_readers``,
    until every cursor of the queue has passed it; the other two then bound what a cursor that lags
    can hold back.  Without any cursor nothing is held for readers.
    """

    __slots__ = ("retain_bytes", "retain_time_ms", "retain_for_readers")

    def __init__(
        self, retain_bytes: int = 0, retain_time_ms: int = 0, retain_for_readers: bool = False
    ) -> None:
        self.retain_bytes = retain_bytes
        self.retain_time_ms = retain_time_ms
        self.retain_for_readers = retain_for_readers


# --- Topology ------------------------------------------------------------------------------------


class KeepChannel(Record):
    """A channel with its options, new or changed; ``options`` is for the server to read again."""

    __slots__ = ("name", "options")

    def __init__(self, name: str, options: bytes) -> None:
        self.name = name
        self.options = options


class DropChannel(Record):
    """A channel is gone; its queues are dropped one by one."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class KeepQueue(Record):
    """A queue with its options, new or changed."""

    __slots__ = ("key", "channel", "queue_id", "options", "retention")

    def __init__(
        self, key: int, channel: str, queue_id: int, options: bytes, retention: Retention
    ) -> None:
        self.key = key
        self.channel = channel
        self.queue_id = queue_id
        self.options = options
        self.retention = retention


class DropQueue(Record):
    """A queue is gone, with its messages and cursors."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key


class KeepRouter(Record):
    """A router with everything about it, new or changed."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: bytes) -> None:
        self.name = name
        self.value = value


class DropRouter(Record):
    """A router is gone."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class KeepCursor(Record):
    """A named reader has finished with everything up to ``sequence``, or begins behind it."""

    __slots__ = ("name", "key", "sequence")

    def __init__(self, name: str, key: int, sequence: int) -> None:
        self.name = name
        self.key = key
        self.sequence = sequence


class DropCursor(Record):
    """A named reader of a queue is gone."""

    __slots__ = ("name", "key")

    def __init__(self, name: str, key: int) -> None:
        self.name = name
        self.key = key


class KeepMark(Record):
    """An application has committed this epoch, at a time in microseconds of Unix time.

    It belongs to the messages of the same batch: all of them are there, or neither.
    """

    __slots__ = ("application", "epoch", "at_us")

    def __init__(self, application: str, epoch: int, at_us: int) -> None:
        self.application = application
        self.epoch = epoch
        self.at_us = at_us


class DropMark(Record):
    """What an application committed last is forgotten."""

    __slots__ = ("application",)

    def __init__(self, application: str) -> None:
        self.application = application


class SettleAll(Record):
    """All messages of a queue from ``first`` to ``last`` and of a priority are settled.

    This is what clears the part of a queue that is on disk only.
    """

    __slots__ = ("key", "last", "priority", "first")

    def __init__(self, key: int, last: int, priority: int, first: int = 0) -> None:
        self.key = key
        self.last = last
        self.priority = priority
        self.first = first


TopologyChange: TypeAlias = (
    KeepChannel
    | DropChannel
    | KeepQueue
    | DropQueue
    | KeepRouter
    | DropRouter
    | KeepCursor
    | DropCursor
    | KeepMark
    | DropMark
    | SettleAll
)


class Note(Record):
    """What happened to a kept message without settling it; written when the server stops."""

    __slots__ = ("key", "sequence", "attempts", "put_backs")

    def __init__(self, key: int, sequence: int, attempts: int, put_backs: int) -> None:
        self.key = key
        self.sequence = sequence
        self.attempts = attempts
        self.put_backs = put_backs


@mypyc_attr(allow_interpreted_subclasses=True)
class Portion:
    """Messages of one queue to be appended, made only when they are written.

    ``staging`` is the number of the body that the store was given before and that they are made
    of; 0 for none.  The store hands that body over with :meth:`load` before it asks for anything
    but the size, and takes it away when it has the messages.
    """

    __slots__ = ("key", "staging")

    def __init__(self, key: int, staging: int = 0) -> None:
        self.key = key
        self.staging = staging

    def load(self, body: bytes) -> None:
        """Take the staged body; an empty one lets it go.

        :raises ValueError: when it is not what was staged.
        """
        raise NotImplementedError

    def messages(self) -> list[StoredMessage]:
        """The messages, in rising sequence.

        :raises ValueError: when they cannot be made; the whole batch fails then.
        """
        raise NotImplementedError

    def size(self) -> int:
        """How many bytes they take, about."""
        raise NotImplementedError

    def runs(self) -> list[StoredRun]:
        """The same as runs, in order; none where each message has to be examined."""
        return []


@mypyc_attr(allow_interpreted_subclasses=True)
class StagedBody:
    """A body to be put aside, made only when that is done."""

    __slots__ = ()

    def body(self) -> bytes:
        """What is to be given back."""
        raise NotImplementedError

    def size(self) -> int:
        """How many bytes it takes, about."""
        raise NotImplementedError


class StoreBatch:
    """What is written at once.

    First the ``changes`` are made, in order; then the ``appended`` messages of each queue added,
    and those of ``runs`` between them, in rising sequence, and behind them the ``portions``, in
    order; then the ``settled`` sequences
    of each queue, in any order, are marked, and the ``notes`` taken down.  A message that is
    appended and settled in one batch need not be written at all, unless it is retained.  Sequences
    and queues that are not known are skipped.

    Before all that, the ``staged`` bodies are put aside, each under its number, for a portion of
    this batch or of a later one.  They need not survive the process, and do not: what is there when
    a store is opened is deleted.  A batch that only brings such is not synced.  When all else is
    done, those in ``dropped`` are deleted; one that is not there is skipped.
    """

    __slots__ = (
        "changes",
        "appended",
        "runs",
        "portions",
        "settled",
        "notes",
        "staged",
        "dropped",
    )

    def __init__(self) -> None:
        self.changes: list[TopologyChange] = []
        self.appended: dict[int, list[StoredMessage]] = {}
        self.runs: dict[int, list[StoredRun]] = {}
        self.portions: list[Portion] = []
        self.settled: dict[int, list[int]] = {}
        self.notes: list[Note] = []
        self.staged: dict[int, StagedBody] = {}
        self.dropped: list[int] = []

    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.staged or self.dropped or self.keeps())

    def keeps(self) -> bool:
        """Whether there is anything that must survive the process."""
        return bool(self.changes or self.settled or self.notes or self._appends())

    def brings(self) -> bool:
        """Whether there are new messages, or bodies to be put aside."""
        return bool(self.staged) or self._appends()

    def _appends(self) -> bool:
        return bool(self.appended or self.runs or self.portions)

    def messages(self) -> int:
        """How many messages it brings, of those that were pushed."""
        count = 0
        for messages in self.appended.values():
            count += len(messages)
        for runs in self.runs.values():
            for run in runs:
                count += run.count
        return count

    def size(self) -> int:
        """How many bytes its new messages take, about."""
        size = 0
        for messages in self.appended.values():
            for message in messages:
                size += len(message.body)
        for runs in self.runs.values():
            for run in runs:
                size += len(run.bodies)
        for portion in self.portions:
            size += portion.size()
        for staged in self.staged.values():
            size += staged.size()
        return size

    def unroll(self) -> None:
        """Let the messages of runs stand among the others, each by itself."""
        for key, runs in self.runs.items():
            messages = unrolled(self.appended.get(key), runs)
            if messages:
                self.appended[key] = messages
        self.runs = {}


# --- What comes back -----------------------------------------------------------------------------


class RecoveredQueue(Record):
    """A queue as it was found.

    ``sequence`` is the last one used; ``high_count``, ``regular_count`` and ``bytes`` are about
    what is owed, without transient messages; ``high_bytes`` are those of high priority.
    """

    __slots__ = ("queue", "sequence", "high_count", "regular_count", "bytes", "high_bytes")

    def __init__(
        self,
        queue: KeepQueue,
        sequence: int,
        high_count: int,
        regular_count: int,
        bytes: int,
        high_bytes: int,
    ) -> None:
        self.queue = queue
        self.sequence = sequence
        self.high_count = high_count
        self.regular_count = regular_count
        self.bytes = bytes
        self.high_bytes = high_bytes


class Recovered(Record):
    """What a store holds when it is opened, each list in the order of creation.

    ``store_id`` was made when the store was; ``last_key`` is the highest key a queue ever had.
    ``clean`` says that the server closed the store itself: else any message that is owed may have
    been sent, and settled, without a trace.
    """

    __slots__ = (
        "store_id",
        "clean",
        "last_key",
        "channels",
        "queues",
        "routers",
        "cursors",
        "marks",
    )

    def __init__(
        self,
        store_id: str,
        clean: bool,
        last_key: int,
        channels: list[KeepChannel],
        queues: list[RecoveredQueue],
        routers: list[KeepRouter],
        cursors: list[KeepCursor],
        marks: list[KeepMark] | None = None,
    ) -> None:
        self.store_id = store_id
        self.clean = clean
        self.last_key = last_key
        self.channels = channels
        self.queues = queues
        self.routers = routers
        self.cursors = cursors
        self.marks: list[KeepMark] = [] if marks is None else marks


class QueueOffsets(Record):
    """What of a queue can be read: ``earliest`` to ``latest`` sequence, both 0 when nothing.

    ``bytes`` and ``count`` are about all that is kept, ``oldest_us`` is the earliest's timestamp.
    """

    __slots__ = ("earliest", "latest", "count", "bytes", "oldest_us")

    def __init__(self, earliest: int, latest: int, count: int, bytes: int, oldest_us: int) -> None:
        self.earliest = earliest
        self.latest = latest
        self.count = count
        self.bytes = bytes
        self.oldest_us = oldest_us


class StoredPart(Record):
    """Messages kept of a queue: ``count`` of them from ``first`` to ``last``, and their bytes."""

    __slots__ = ("first", "last", "count", "bytes")

    def __init__(self, first: int, last: int, count: int, bytes: int) -> None:
        self.first = first
        self.last = last
        self.count = count
        self.bytes = bytes


class CheckReport(Record):
    """What a verification found; ``problems`` is empty when all is well."""

    __slots__ = ("channels", "queues", "messages", "bytes", "problems")

    def __init__(
        self, channels: int, queues: int, messages: int, bytes: int, problems: list[str]
    ) -> None:
        self.channels = channels
        self.queues = queues
        self.messages = messages
        self.bytes = bytes
        self.problems = problems


class Store(Protocol):
    """What keeps messages; see the module's theory of operation."""

    def recover(self) -> Recovered:
        """What is there; called once, first.  Transient messages are forgotten by it.

        :raises StoreError: when the store cannot be read.
        """

    def write(self, batch: StoreBatch, now_us: int) -> None:
        """Make a batch durable; ``now_us`` is Unix time, for retention by age.

        :raises StoreFullError: no room; nothing of the batch is there.
        :raises StoreError: it failed otherwise; nothing of the batch is there.
        """

    def catch_up(self) -> None:
        """Do what a write left for later, for those who wait for it to be answered first.

        Called behind each write that brought portions; nothing is lost when it is not.
        """

    def fetch(
        self, key: int, after: int, last: int, limit: int, max_bytes: int, priority: int
    ) -> list[StoredMessage]:
        """The first messages of a queue that are owed, ``after`` < sequence <= ``last``.

        Up to ``limit`` of the ``priority``, and no more than ``max_bytes`` of bodies, but one at
        least if there is one.

        :raises DamageError: when what should be there is not what was written.
        :raises StoreError: when it cannot be read.
        """

    def read(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, form: int = AS_BLOCKS
    ) -> list[bytes]:
        """What is kept of a queue from ``first`` to ``last``, settled or not, as blocks.

        The blocks are in the format of ``tmqp.blocks``; they hold exactly the messages asked
        for, in order, up to ``limit`` and to ``max_bytes`` of the blocks together, but one at least
        if there is one.  They may end sooner, where more would mean to cut a large block, but for
        ``limit`` not before half of it is reached.  A block that is wanted as a whole may be given
        as it is, without a look at its checksums: that is for whoever reads it.

        :param form: ``AS_INDEXES``: give head and index of each block, and not the bodies behind
            them; then these do not count for ``max_bytes`` either.  ``AS_REFERENCES``: instead of a
            block that is in a database as it would be given, give a reference to it
            (``tmqp.references``); only the reference counts for ``max_bytes``.  ``AS_COLUMNS`` and
            bits: give some columns of each block (``tmqp.block_columns``), which counts as a whole.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when it cannot be read.
        """

    def offsets(self, keys: Sequence[int]) -> list[QueueOffsets]:
        """What can be read of these queues; zeros for one that is not known."""

    def find(self, key: int, timestamp_us: int) -> int:
        """The first sequence that is kept of a queue and came at a time (Unix) or later; 0 if none.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when it cannot be read.
        """

    def split(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, most_parts: int
    ) -> list[StoredPart]:
        """Split what is kept of a queue from ``first`` to ``last``, without reading bodies.

        Each message is in one part; parts follow one another.  Each has up to ``limit`` messages
        and ``max_bytes`` of bodies, 0 for any number, but one message at least; and there are
        ``most_parts`` at most, so that what is behind the last may be missing.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when it cannot be read.
        """

    def check(self) -> CheckReport:
        """Read everything and compare it with its checksums; damage is reported, not raised."""

    def close(self, clean: bool) -> None:
        """Give the store back; ``clean`` says that everything was written that had to be."""
