"""The store in memory: for tests, and for servers that never save.

Theory of operation.  It implements the port literally, message by message, without optimisation, so
that other stores can be compared with it.  Nothing survives the process;
:meth:`MemoryStore.restarted` returns what a store on disk would have after the server has ended,
cleanly or not.

A write changes copies, which replace the originals at its end, so that a write that fails, for lack
of room or because a test planned it, changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.block_writing import encode_block
from tmqp.blocks import (
    AS_BLOCKS,
    AS_INDEXES,
    ENTRY_SIZE,
    FLAG_HIGH,
    FLAG_TRANSIENT,
    HEAD_SIZE,
    StoredMessage,
)
from tmqp_server.storage.port import (
    HIGH_ONLY,
    REGULAR_ONLY,
    CheckReport,
    DropChannel,
    DropCursor,
    DropMark,
    DropQueue,
    DropRouter,
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Portion,
    QueueOffsets,
    Recovered,
    RecoveredQueue,
    SettleAll,
    StoreBatch,
    StoredPart,
    StoreError,
    StoreFullError,
    TopologyChange,
)
from tmqp_server.storage.records import in_form

__all__ = ["MemoryStore"]

#: The most messages in a block that :meth:`MemoryStore.read` returns.
_BLOCK_COUNT: Final = 1_024
_OF_QUEUE: Final = (KeepQueue, DropQueue, KeepCursor, DropCursor, SettleAll)


class _Queue:
    """A queue: its messages by sequence, and which of them are owed."""

    __slots__ = ("queue", "sequence", "messages", "owed", "cursors")

    def __init__(self, queue: KeepQueue) -> None:
        self.queue = queue
        self.sequence = 0
        self.messages: dict[int, StoredMessage] = {}
        self.owed: set[int] = set()
        self.cursors: dict[str, int] = {}

    def copy(self) -> _Queue:
        """A copy with the same contents; it shares the messages, which never change."""
        other = _Queue(self.queue)
        other.sequence = self.sequence
        other.messages = dict(self.messages)
        other.owed = set(self.owed)
        other.cursors = dict(self.cursors)
        return other

    def ages(self) -> bool:
        """Whether time alone can make it drop messages."""
        return bool(self.queue.retention.retain_time_ms)

    def forget(self, now_us: int) -> None:
        """Drop messages that are settled and not retained."""
        retention = self.queue.retention
        slowest = min(self.cursors.values()) if self.cursors else None
        newer_bytes = 0
        for sequence in sorted(self.messages, reverse=True):
            message = self.messages[sequence]
            large = bool(retention.retain_bytes) and newer_bytes >= retention.retain_bytes
            age_us = retention.retain_time_ms * 1_000
            old = bool(age_us) and message.timestamp_us <= now_us - age_us
            newer_bytes += len(message.body)
            if sequence in self.owed:
                continue
            if retention.retain_for_readers:
                is_kept = slowest is not None and sequence > slowest and not large and not old
            else:
                is_kept = bool(
                    (retention.retain_bytes and not large) or (retention.retain_time_ms and not old)
                )
            if not is_kept:
                del self.messages[sequence]


class MemoryStore:
    """A store in memory, for tests of programs that run a server: ``running(config, store=...)``.

    The server behaves as with a data directory, and can be restarted with the remaining data::

        async with running(config, store=store):
            ...
        async with running(config, store=store.restarted()):
            ...

    :param store_id: what distinguishes it from other stores.
    :param capacity_bytes: the maximal size of all stored messages in bytes; 0 for no limit.
    """

    def __init__(self, store_id: str = "memory", capacity_bytes: int = 0) -> None:
        self.store_id = store_id
        self.capacity_bytes = capacity_bytes
        #: Raised by the next writes, one each: a test plans failures with it.
        self.failures: list[Exception] = []
        self._was_clean = True
        self._is_open = True
        self._last_key = 0
        self._channels: dict[str, KeepChannel] = {}
        self._routers: dict[str, KeepRouter] = {}
        self._queues: dict[int, _Queue] = {}
        self._cursors: dict[tuple[int, str], KeepCursor] = {}
        self._marks: dict[str, KeepMark] = {}
        self._staged: dict[int, bytes] = {}

    @property
    def staged(self) -> list[int]:
        """The numbers of staged bodies."""
        return list(self._staged)

    def restarted(self) -> MemoryStore:
        """Return the store for the next server, after the one that used this store has ended.

        If that server did not stop cleanly, the next one finds what a crash leaves.
        """
        other = MemoryStore(self.store_id, self.capacity_bytes)
        other._was_clean = self._was_clean and not self._is_open
        other._last_key = self._last_key
        other._channels = dict(self._channels)
        other._routers = dict(self._routers)
        other._queues = {key: queue.copy() for key, queue in self._queues.items()}
        other._cursors = dict(self._cursors)
        other._marks = dict(self._marks)
        self._is_open = False
        return other

    # --- Opening and closing ---------------------------------------------------------------------

    def recover(self) -> Recovered:
        """Return the contents of the store, without transient messages.

        :raises StoreError: never.
        """
        queues: list[RecoveredQueue] = []
        for queue in self._queues.values():
            high = regular = size = high_size = 0
            for sequence, message in list(queue.messages.items()):
                if message.flags & FLAG_TRANSIENT:
                    del queue.messages[sequence]
                    queue.owed.discard(sequence)
                elif sequence in queue.owed:
                    size += len(message.body)
                    if message.flags & FLAG_HIGH:
                        high += 1
                        high_size += len(message.body)
                    else:
                        regular += 1
            queues.append(
                RecoveredQueue(queue.queue, queue.sequence, high, regular, size, high_size)
            )
        was_clean, self._was_clean = self._was_clean, False
        return Recovered(
            self.store_id,
            was_clean,
            self._last_key,
            list(self._channels.values()),
            queues,
            list(self._routers.values()),
            list(self._cursors.values()),
            list(self._marks.values()),
        )

    def close(self, clean: bool) -> None:
        """Close the store; a second call does nothing."""
        if self._is_open:
            self._was_clean = clean
            self._is_open = False

    # --- Writing ---------------------------------------------------------------------------------

    def write(self, batch: StoreBatch, now_us: int) -> None:
        """Store a batch.

        :raises StoreFullError: if there is no room; nothing of the batch is stored.
        :raises StoreError: if a test planned it; nothing of the batch is stored.
        """
        if self.failures:
            raise self.failures.pop(0)
        batch.unroll()
        before = (
            self._channels,
            self._routers,
            self._queues,
            self._cursors,
            self._marks,
            self._last_key,
        )
        self._channels = dict(self._channels)
        self._routers = dict(self._routers)
        self._queues = dict(self._queues)
        self._cursors = dict(self._cursors)
        self._marks = dict(self._marks)
        touched = {change.key for change in batch.changes if isinstance(change, _OF_QUEUE)}
        touched.update(batch.appended, batch.settled, [note.key for note in batch.notes])
        touched.update([portion.key for portion in batch.portions])
        touched.update([key for key in self._queues if self._queues[key].ages()])
        for key in touched.intersection(self._queues):
            self._queues[key] = self._queues[key].copy()
        for number, staged in batch.staged.items():
            self._staged[number] = staged.body()
        try:
            self._write(batch, now_us, touched)
        except BaseException:
            (
                self._channels,
                self._routers,
                self._queues,
                self._cursors,
                self._marks,
                self._last_key,
            ) = before
            for number in batch.staged:
                del self._staged[number]
            raise
        for number in batch.dropped:
            self._staged.pop(number, None)

    def _write(self, batch: StoreBatch, now_us: int, touched: set[int]) -> None:
        for change in batch.changes:
            self._change(change)
        for key, messages in batch.appended.items():
            self._append(key, messages)
        for portion in batch.portions:
            self._append(portion.key, self._messages(portion))
        for key, sequences in batch.settled.items():
            queue = self._queues.get(key)
            if queue is not None:
                queue.owed.difference_update(sequences)
        for note in batch.notes:
            queue = self._queues.get(note.key)
            found = None if queue is None else queue.messages.get(note.sequence)
            if queue is not None and found is not None:
                queue.messages[note.sequence] = _noted(found, note.attempts, note.put_backs)
        for key in touched.intersection(self._queues):
            self._queues[key].forget(now_us)
        if self.capacity_bytes and batch.brings() and self._size() > self.capacity_bytes:
            raise StoreFullError(f"there is room for {self.capacity_bytes} bytes")

    def _messages(self, portion: Portion) -> list[StoredMessage]:
        if not portion.staging:
            return portion.messages()
        body = self._staged.get(portion.staging)
        if body is None:
            raise StoreError(f"nothing was put aside under the number {portion.staging}")
        portion.load(body)
        messages = portion.messages()
        portion.load(b"")
        return messages

    def _append(self, key: int, messages: list[StoredMessage]) -> None:
        queue = self._queues.get(key)
        if queue is not None and messages:
            for message in messages:
                queue.messages[message.sequence] = message
                queue.owed.add(message.sequence)
            queue.sequence = max(queue.sequence, messages[-1].sequence)

    def _size(self) -> int:
        kept = sum(
            len(message.body)
            for queue in self._queues.values()
            for message in queue.messages.values()
        )
        return kept + sum(len(body) for body in self._staged.values())

    def _change(self, change: TopologyChange) -> None:
        if isinstance(change, KeepChannel):
            self._channels[change.name] = change
        elif isinstance(change, DropChannel):
            self._channels.pop(change.name, None)
        elif isinstance(change, KeepRouter):
            self._routers[change.name] = change
        elif isinstance(change, DropRouter):
            self._routers.pop(change.name, None)
        elif isinstance(change, KeepQueue):
            self._last_key = max(self._last_key, change.key)
            if change.key in self._queues:
                self._queues[change.key].queue = change
            else:
                self._queues[change.key] = _Queue(change)
        elif isinstance(change, DropQueue):
            self._queues.pop(change.key, None)
            for place in [place for place in self._cursors if place[0] == change.key]:
                del self._cursors[place]
        elif isinstance(change, KeepMark):
            self._marks.pop(change.application, None)
            self._marks[change.application] = change
        elif isinstance(change, DropMark):
            self._marks.pop(change.application, None)
        elif isinstance(change, SettleAll):
            self._settle_all(change)
        else:
            self._move_cursor(change)

    def _settle_all(self, change: SettleAll) -> None:
        queue = self._queues.get(change.key)
        if queue is not None:
            queue.owed = {
                sequence
                for sequence in queue.owed
                if not change.first <= sequence <= change.last
                or not _is_of(queue.messages[sequence], change.priority)
            }

    def _move_cursor(self, change: KeepCursor | DropCursor) -> None:
        queue = self._queues.get(change.key)
        if queue is None:
            return
        if isinstance(change, KeepCursor):
            queue.cursors[change.name] = change.sequence
            self._cursors[change.key, change.name] = change
        else:
            queue.cursors.pop(change.name, None)
            self._cursors.pop((change.key, change.name), None)

    def reserve(self, key: int, sequence: int) -> None:
        """Note that the queue's next message has a sequence after this one."""
        queue = self._queues.get(key)
        if queue is not None:
            queue.sequence = max(queue.sequence, sequence)

    # --- Reading ---------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Do nothing: this store has no deferred work."""

    def fetch(
        self, key: int, after: int, last: int, limit: int, max_bytes: int, priority: int
    ) -> list[StoredMessage]:
        """Return the first messages of a queue that are owed, ``after`` < sequence <= ``last``."""
        queue = self._queues.get(key)
        found: list[StoredMessage] = []
        if queue is None:
            return found
        total = 0
        for sequence in sorted(queue.owed):
            message = queue.messages[sequence]
            if not after < sequence <= last or not _is_of(message, priority):
                continue
            total += len(message.body)
            if len(found) >= limit or (found and total > max_bytes):
                break
            found.append(message)
        return [_noted(message, message.attempts, message.put_backs) for message in found]

    def read(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, form: int = AS_BLOCKS
    ) -> list[bytes]:
        """Return the kept messages of a queue from ``first`` to ``last``, settled or not, as
        blocks."""
        queue = self._queues.get(key)
        found: list[StoredMessage] = []
        total = 0
        for sequence in sorted(queue.messages) if queue is not None else ():
            if not first <= sequence <= last or queue is None:
                continue
            message = queue.messages[sequence]
            if len(found) % _BLOCK_COUNT == 0:
                total += HEAD_SIZE
            total += ENTRY_SIZE + (0 if form == AS_INDEXES else len(message.body))
            if len(found) >= limit or (found and total > max_bytes):
                break
            found.append(message)
        blocks: list[bytes] = []
        for start in range(0, len(found), _BLOCK_COUNT):
            some = found[start : start + _BLOCK_COUNT]
            block = encode_block(key, some)
            blocks.append(in_form(block, len(some), form))
        return blocks

    def offsets(self, keys: Sequence[int]) -> list[QueueOffsets]:
        """Return the available sequences of these queues; zeros for an unknown queue."""
        found: list[QueueOffsets] = []
        for key in keys:
            queue = self._queues.get(key)
            if queue is None or not queue.messages:
                found.append(QueueOffsets(0, 0, 0, 0, 0))
                continue
            messages = queue.messages
            earliest, latest = min(messages), max(messages)
            size = sum([len(message.body) for message in messages.values()])
            oldest_us = messages[earliest].timestamp_us
            found.append(QueueOffsets(earliest, latest, len(messages), size, oldest_us))
        return found

    def find(self, key: int, timestamp_us: int) -> int:
        """Return the first kept sequence that arrived at this time or later; 0 if there is none."""
        queue = self._queues.get(key)
        for sequence in sorted(queue.messages) if queue is not None else ():
            if queue is not None and queue.messages[sequence].timestamp_us >= timestamp_us:
                return sequence
        return 0

    def split(
        self, key: int, first: int, last: int, limit: int, max_bytes: int, most_parts: int
    ) -> list[StoredPart]:
        """Split the kept messages of a queue from ``first`` to ``last`` into parts."""
        queue = self._queues.get(key)
        parts: list[StoredPart] = []
        for sequence in sorted(queue.messages) if queue is not None else ():
            if queue is None or not first <= sequence <= last:
                continue
            size = len(queue.messages[sequence].body)
            part = parts[-1] if parts else None
            if (
                part is None
                or (limit and part.count >= limit)
                or (max_bytes and part.bytes + size > max_bytes)
            ):
                if len(parts) >= most_parts:
                    break
                parts.append(StoredPart(sequence, sequence, 1, size))
            else:
                part.last = sequence
                part.count += 1
                part.bytes += size
        return parts

    def check(self) -> CheckReport:
        """Count the messages; a store in memory has no checksums."""
        count = sum([len(queue.owed) for queue in self._queues.values()])
        return CheckReport(len(self._channels), len(self._queues), count, self._size(), [])


def _is_of(message: StoredMessage, priority: int) -> bool:
    if priority == HIGH_ONLY:
        return bool(message.flags & FLAG_HIGH)
    return priority != REGULAR_ONLY or not message.flags & FLAG_HIGH


def _noted(message: StoredMessage, attempts: int, put_backs: int) -> StoredMessage:
    return StoredMessage(
        message.sequence,
        message.timestamp_us,
        message.expires_us,
        message.due_us,
        message.flags,
        attempts,
        put_backs,
        message.hops,
        message.payload_offset,
        message.payload_size,
        message.body,
    )
