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
    """A message came through a door that this server does not know; ``number`` is the number of the
    door.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"this server knows no door with the number {number}")
        self.number = number


class DamageError(StoreError):
    """Stored data is damaged: what was read differs from what was written.  The text says where."""


class Retention(Record):
    """Which settled messages a queue keeps for readers; by default none.

    A settled message is kept while it is within the newest ``retain_bytes`` of the queue or younger
    than ``retain_time_ms`` (each counts only when it is not 0), or, with ``retain_for_readers``,
    until every cursor of the queue has passed it; the other two then bound what a cursor that lags
    can hold back.  A queue without cursors holds nothing for readers.
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
    """A channel with its options, new or changed; only the server can read ``options``."""

    __slots__ = ("name", "options")

    def __init__(self, name: str, options: bytes) -> None:
        self.name = name
        self.options = options


class DropChannel(Record):
    """A channel was removed; its queues are dropped one by one."""

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
    """A queue was removed, with its messages and cursors."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key


class KeepRouter(Record):
    """A router with its bindings, new or changed."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: bytes) -> None:
        self.name = name
        self.value = value


class DropRouter(Record):
    """A router was removed."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class KeepCursor(Record):
    """A named reader has finished with everything up to ``sequence``, or begins after it."""

    __slots__ = ("name", "key", "sequence")

    def __init__(self, name: str, key: int, sequence: int) -> None:
        self.name = name
        self.key = key
        self.sequence = sequence


class DropCursor(Record):
    """A named reader of a queue was removed."""

    __slots__ = ("name", "key")

    def __init__(self, name: str, key: int) -> None:
        self.name = name
        self.key = key


class KeepMark(Record):
    """An application has committed this epoch, at a time in microseconds of Unix time.

    It belongs to the messages of the same batch: all of them are stored, or none.
    """

    __slots__ = ("application", "epoch", "at_us")

    def __init__(self, application: str, epoch: int, at_us: int) -> None:
        self.application = application
        self.epoch = epoch
        self.at_us = at_us


class DropMark(Record):
    """The mark of an application's last commit is deleted."""

    __slots__ = ("application",)

    def __init__(self, application: str) -> None:
        self.application = application


class SettleAll(Record):
    """All messages of a queue from ``first`` to ``last`` with a priority are settled.

    This settles the part of a queue that is only on disk.
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
    """What happened to a stored message that is not settled; written when the server stops."""

    __slots__ = ("key", "sequence", "attempts", "put_backs")

    def __init__(self, key: int, sequence: int, attempts: int, put_backs: int) -> None:
        self.key = key
        self.sequence = sequence
        self.attempts = attempts
        self.put_backs = put_backs


@mypyc_attr(allow_interpreted_subclasses=True)
class Portion:
    """Messages to be appended to one queue, created only when they are written.

    ``staging`` is the number of the staged body that they are created from; 0 for none.  The store
    passes that body to :meth:`load` before it asks for anything except the size, and releases it
    when it has the messages.
    """

    __slots__ = ("key", "staging")

    def __init__(self, key: int, staging: int = 0) -> None:
        self.key = key
        self.staging = staging

    def load(self, body: bytes) -> None:
        """Take the staged body; an empty body releases it.

        :raises ValueError: when it is not the body that was staged.
        """
        raise NotImplementedError

    def messages(self) -> list[StoredMessage]:
        """The messages, in increasing sequence.

        :raises ValueError: when they cannot be created; then the whole batch fails.
        """
        raise NotImplementedError

    def size(self) -> int:
        """Their approximate size in bytes."""
        raise NotImplementedError

    def runs(self) -> list[StoredRun]:
        """The same messages as runs, in order; empty if each message must be examined."""
        return []


@mypyc_attr(allow_interpreted_subclasses=True)
class StagedBody:
    """A body to be staged, created only when it is written."""

    __slots__ = ()

    def body(self) -> bytes:
        """The bytes to store."""
        raise NotImplementedError

    def size(self) -> int:
        """Its approximate size in bytes."""
        raise NotImplementedError


class StoreBatch:
    """All that is written at once.

    First the ``changes`` are made, in order.  Then the ``appended`` messages of each queue and its
    ``runs`` are added, together in increasing sequence, and after them the ``portions``, in order.
    Then the ``settled`` sequences of each queue, in any order, are marked, and the ``notes``
    stored. A message that is appended and settled in one batch need not be written at all, unless
    it is retained.  Unknown sequences and queues are skipped.

    Before all that, the ``staged`` bodies are stored, each under its number, for a portion of this
    batch or of a later one.  They need not survive the process: a store that is opened deletes all
    staged bodies.  A batch with nothing but staged bodies is not synced.  When all else is done,
    the bodies in ``dropped`` are deleted; unknown numbers are skipped.
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
        """Whether anything in it must survive the process."""
        return bool(self.changes or self.settled or self.notes or self._appends())

    def brings(self) -> bool:
        """Whether it has new messages, or bodies to stage."""
        return bool(self.staged) or self._appends()

    def _appends(self) -> bool:
        return bool(self.appended or self.runs or self.portions)

    def messages(self) -> int:
        """How many pushed messages it has; those of commits do not count."""
        count = 0
        for messages in self.appended.values():
            count += len(messages)
        for runs in self.runs.values():
            for run in runs:
                count += run.count
        return count

    def size(self) -> int:
        """The approximate size of its new messages and staged bodies in bytes."""
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
        """Replace the runs by their messages."""
        for key, runs in self.runs.items():
            messages = unrolled(self.appended.get(key), runs)
            if messages:
                self.appended[key] = messages
        self.runs = {}


# --- What comes back -----------------------------------------------------------------------------


class RecoveredQueue(Record):
    """A queue as it was found.

    ``sequence`` is the last one used; ``high_count``, ``regular_count`` and ``bytes`` are about the
    owed messages, without transient ones; ``high_bytes`` is the part of high priority.
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

    ``store_id`` was made with the store; ``last_key`` is the highest key that a queue ever had.
    ``clean`` says that the server closed the store itself: otherwise any owed message may have been
    sent, and settled, without a trace.
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
    """The readable sequences of a queue, from ``earliest`` to ``latest``; both are 0 if there are
    none.

    ``bytes`` and ``count`` are those of all kept messages; ``oldest_us`` is the timestamp of the
    earliest one.
    """

    __slots__ = ("earliest", "latest", "count", "bytes", "oldest_us")

    def __init__(self, earliest: int, latest: int, count: int, bytes: int, oldest_us: int) -> None:
        self.earliest = earliest
        self.latest = latest
        self.count = count
        self.bytes = bytes
        self.oldest_us = oldest_us


class StoredPart(Record):
    """Kept messages of a queue: ``count`` messages from ``first`` to ``last``, and their size in
    bytes.
    """

    __slots__ = ("first", "last", "count", "bytes")

    def __init__(self, first: int, last: int, count: int, bytes: int) -> None:
        self.first = first
        self.last = last
        self.count = count
        self.bytes = bytes


class CheckReport(Record):
    """The result of a verification; ``problems`` is empty if the store is undamaged."""

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
    """Keeps messages; see the module's theory of operation."""

    def recover(self) -> Recovered:
        """Return the contents of the store, and drop its transient messages; called once, first.

        :raises StoreError: when the store cannot be read.
        """

    def write(self, batch: StoreBatch, now_us: int) -> None:
        """Make a batch durable; ``now_us`` is Unix time, for retention by age.

        :raises StoreFullError: when there is no room; nothing of the batch is stored.
        :raises StoreError: when it fails for another reason; nothing of the batch is stored.
        """

    def catch_up(self) -> None:
        """Do work that a write has deferred, so that its clients are answered first.

        Called after each write with portions; nothing is lost if it is not called.
        """

    def fetch(
        self, key: int, after: int, last: int, limit: int, max_bytes: int, priority: int
    ) -> list[StoredMessage]:
        """Return the first owed messages of a queue, ``after`` < sequence <= ``last``.

        It returns up to ``limit`` messages of the ``priority``, and up to ``max_bytes`` of bodies,
        but at least one message if there is one.

        :raises DamageError: when a stored message is damaged.
        :raises StoreError: when the store cannot be read.
        """

    def read(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, form: int = AS_BLOCKS
    ) -> list[bytes]:
        """Return the kept messages of a queue from ``first`` to ``last``, settled or not, as
        blocks.

        The blocks are in the format of ``tmqp.blocks``.  They have exactly the requested messages,
        in order, up to ``limit`` and up to ``max_bytes`` of blocks, but at least one message if
        there is one. They may end sooner to avoid cutting a large block; with regard to ``limit``,
        only after half of it. A whole block may be returned as it is stored, without a check of its
        checksums: its reader checks them.

        :param form: ``AS_INDEXES``: return the head and index of each block, without the bodies,
            which then do not count for ``max_bytes``.  ``AS_REFERENCES``: return a reference
            instead of a block that is in the database as requested (``tmqp.references``); only the
            reference counts for ``max_bytes``.  ``AS_COLUMNS`` and bits: return some columns of
            each block (``tmqp.block_columns``); the block counts as a whole.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when the store cannot be read.
        """

    def offsets(self, keys: Sequence[int]) -> list[QueueOffsets]:
        """Return the readable sequences of these queues; zeros for an unknown queue."""

    def find(self, key: int, timestamp_us: int) -> int:
        """Return the first kept sequence of a queue that arrived at a Unix time or later; 0 if
        none.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when the store cannot be read.
        """

    def split(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, most_parts: int
    ) -> list[StoredPart]:
        """Split the kept messages of a queue from ``first`` to ``last`` into parts, without reading
        bodies.

        Each message is in one part, and parts are in order.  A part has up to ``limit`` messages
        and ``max_bytes`` of bodies (0: no limit), but at least one message.  There are at most
        ``most_parts`` parts, so messages after the last part may be missing.

        :raises DamageError: as :meth:`fetch`.
        :raises StoreError: when the store cannot be read.
        """

    def check(self) -> CheckReport:
        """Read everything and compare it with its checksums; damage is reported, not raised."""

    def close(self, clean: bool) -> None:
        """Close the store; ``clean`` says that everything that had to be written was written."""
