"""Stores and deletes the blocks in the database.

Theory of operation.  The table ``bodies`` holds each block as it was encoded, never changed; the
table ``blocks`` holds a small row for each with its masks, changed as messages are settled.  During
a write, changed extents are collected and their rows written once at its end.

An extent that is no longer needed leaves its queue immediately, and its rows are deleted some at a
time (``dead``), so that no single write pays for emptying a large queue.  Until then its row says
that all its messages are settled, or its queue was removed: so it is recognised again after a
restart.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tmqp.block_writing import encode_block
from tmqp.blocks import FLAG_HIGH, FLAG_TRANSIENT, StoredMessage
from tmqp_server.storage.port import DamageError, Note, Retention
from tmqp_server.storage.records import (
    encode_runs,
    survey,
)
from tmqp_server.storage.sqlite.blocks import BlockReader
from tmqp_server.storage.sqlite.extents import (
    MAX_SPAN,
    Extent,
    QueueState,
    Row,
    extent_of,
    retains,
    row_of,
    span,
)
from tmqp_server.storage.sqlite.schema import mark_of
from tmqp_server.storage.sqlite.tally import Tally
from tmqp_server.storage.stored_runs import StoredRun

__all__ = [
    "MAX_BLOCK_BYTES",
    "MAX_BLOCK_COUNT",
    "Shelf",
    "bits",
    "mask_of",
    "noted",
    "portions",
]

#: Messages and bytes of bodies in one block; a single message may be larger.  With head and index a
#: block has at most 1 MiB, so that it is not cut for a reader that takes no larger payloads.
MAX_BLOCK_COUNT: Final = 1_024
MAX_BLOCK_BYTES: Final = 960 << 10
#: Where settled messages are retained, a block has this share of what is: it is retained as a whole
#: or not.
_RETAINED_SHARE: Final = 8

_COLUMNS: Final = (
    "id, key, first, last, count, size, newest_us, present, owed, high, transient, notes, crc"
)


def mask_of(first: int, sequences: list[int]) -> int:
    """The mask of some sequences; bit 0 is ``first``."""
    mask = 0
    for sequence in sequences:
        mask |= 1 << (sequence - first)
    return mask


def bits(first: int, mask: int) -> list[int]:
    """The sequences of a mask, in increasing order."""
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(first + low.bit_length() - 1)
        mask ^= low
    return found


def portions(retention: Retention, messages: list[StoredMessage]) -> list[list[StoredMessage]]:
    """Divide new messages into pieces that retention can keep or drop separately."""
    most_bytes = retention.retain_bytes // _RETAINED_SHARE
    most_us = retention.retain_time_ms * 1_000 // _RETAINED_SHARE
    if not retention.retain_bytes and not retention.retain_time_ms:
        return [messages]
    found: list[list[StoredMessage]] = []
    part: list[StoredMessage] = []
    size = begin_us = 0
    for message in messages:
        if part and (
            (retention.retain_bytes and size + len(message.body) > most_bytes)
            or (retention.retain_time_ms and message.timestamp_us - begin_us > most_us)
        ):
            found.append(part)
            part = []
        if not part:
            size, begin_us = 0, message.timestamp_us
        part.append(message)
        size += len(message.body)
    found.append(part)
    return found


class Shelf(BlockReader):
    """The blocks of all queues; see the module's theory of operation."""

    __slots__ = (
        "queues",
        "next_id",
        "boot_id",
        "dirty",
        "added",
        "dead",
        "tally",
        "identity",
        "suspects",
    )

    def __init__(self, db: sqlite3.Connection, directory: Path, skip: bool) -> None:
        super().__init__(db, directory, skip)
        self.queues: dict[int, QueueState] = {}
        self.next_id = 1
        #: Transient messages in blocks below this one are of an earlier run; 0 is not known yet.
        self.boot_id = 0
        self.dirty: dict[int, Extent] = {}
        #: How many blocks were stored since the last maintenance.
        self.added = 0
        self.dead: deque[Extent] = deque()
        self.tally = Tally()
        #: The mark of this database, for references to its blocks.
        self.identity = 0
        #: Extents near which it may pay to merge.
        self.suspects: dict[int, Extent] = {}

    # --- Loading ---------------------------------------------------------------------------------

    def anew(self, store_id: str) -> Shelf:
        """A new shelf of the same database, with a new id, that has not read any rows yet."""
        shelf = Shelf(self.db, self.directory, self.skip)
        shelf.identity = mark_of(self.directory, store_id)
        shelf.problems = self.problems
        shelf.boot_id = self.boot_id
        shelf.next_id = self.next_id
        return shelf

    def load(self) -> None:
        """Read the rows of all blocks, without the bodies."""
        for row in self.db.execute(f"SELECT {_COLUMNS} FROM blocks ORDER BY key, first, id"):
            self.next_id = max(self.next_id, row[0] + 1)
            try:
                extent = extent_of(row)
            except DamageError as error:
                if not self.skip:
                    raise
                self.report(str(error))
                continue
            queue = self.queues.get(extent.key)
            if queue is None:
                self.dead.append(extent)
                continue
            queue.sequence = max(queue.sequence, extent.last)
            if not self.boot_id or extent.id < self.boot_id:
                self._forget_transient(queue, extent)
            if extent.owed or (extent.present and queue.is_kept(extent)):
                queue.add(extent)
                self.suspect(extent)
            else:
                self.dead.append(extent)
        if not self.boot_id:
            self.boot_id = self.next_id

    def _forget_transient(self, queue: QueueState, extent: Extent) -> None:
        """Drop the transient messages of an earlier process."""
        if extent.transient:
            extent.owed &= ~extent.transient
            extent.present &= ~extent.transient
            extent.transient = 0
            if extent.present and retains(queue.queue):
                extent.weight = self.size_of(extent, extent.present)

    # --- Writing ---------------------------------------------------------------------------------

    def append(self, queue: QueueState, messages: list[StoredMessage], settled: set[int]) -> None:
        """Store messages, in increasing sequence, in new blocks of a queue."""
        if not messages:
            return
        size, flags, newest_us = survey(messages)
        if (
            len(messages) <= MAX_BLOCK_COUNT
            and size <= MAX_BLOCK_BYTES
            and messages[-1].sequence - messages[0].sequence < MAX_SPAN
        ):
            self._put(queue, messages, size, flags, newest_us, settled)
            return
        start = size = 0
        for place, message in enumerate(messages):
            body_size = len(message.body)
            if place > start and (
                place - start >= MAX_BLOCK_COUNT
                or size + body_size > MAX_BLOCK_BYTES
                or message.sequence - messages[start].sequence >= MAX_SPAN
            ):
                part = messages[start:place]
                self._put(queue, part, *survey(part), settled)
                start, size = place, 0
            size += body_size
        part = messages[start:]
        self._put(queue, part, *survey(part), settled)

    def _put(
        self,
        queue: QueueState,
        messages: list[StoredMessage],
        size: int,
        flags: int,
        newest_us: int,
        settled: set[int],
    ) -> None:
        first, last = messages[0].sequence, messages[-1].sequence
        count = len(messages)
        high = transient = done = 0
        if last - first + 1 == count:
            present = span(count)
        else:
            present = mask_of(first, [message.sequence for message in messages])
        if flags & FLAG_HIGH:
            high = mask_of(first, [m.sequence for m in messages if m.flags & FLAG_HIGH])
        if flags & FLAG_TRANSIENT:
            transient = mask_of(first, [m.sequence for m in messages if m.flags & FLAG_TRANSIENT])
        if settled:
            done = mask_of(first, [m.sequence for m in messages if m.sequence in settled])
        key = queue.queue.key
        number = self._number()
        self._write(number, encode_block(key, messages))
        owed = present & ~done
        extent = Extent(
            number, key, first, last, count, size, newest_us, present, owed, high, transient
        )
        self._take_in(queue, extent)

    def append_runs(self, key: int, runs: list[StoredRun]) -> QueueState | None:
        """Store runs, in increasing sequence without gaps, in new blocks of a queue.

        Return None, and store nothing, if there are no runs, there is no such queue, or it may
        already have some of the messages.
        """
        queue = self.queues.get(key)
        if queue is None or not runs or runs[0].first <= queue.sequence:
            return None
        queue.sequence = runs[-1].last
        # All came at one time: only their size divides them (`portions`).
        most_bytes = MAX_BLOCK_BYTES
        if queue.queue.retention.retain_bytes:
            most_bytes = min(most_bytes, queue.queue.retention.retain_bytes // _RETAINED_SHARE)
            most_bytes = max(most_bytes, 1)
        pieces: list[StoredRun] = []
        count = size = 0
        for run in runs:
            # In equal parts: not a full block each time and a small one behind it.
            parts = max(-(-run.count // MAX_BLOCK_COUNT), -(-len(run.bodies) // most_bytes), 1)
            for piece in run.cut(-(-run.count // parts), most_bytes):
                body_size = len(piece.bodies)
                if pieces and (
                    count + piece.count > MAX_BLOCK_COUNT or size + body_size > most_bytes
                ):
                    self._put_runs(queue, pieces, count, size)
                    pieces = []
                    count = size = 0
                pieces.append(piece)
                count += piece.count
                size += body_size
        self._put_runs(queue, pieces, count, size)
        return queue

    def _put_runs(self, queue: QueueState, runs: list[StoredRun], count: int, size: int) -> None:
        key = queue.queue.key
        first, last = runs[0].first, runs[-1].last
        high = transient = 0
        newest_us = 0
        for run in runs:
            newest_us = max(newest_us, run.timestamp_us)
            mask = span(run.count) << (run.first - first)
            if run.flags & FLAG_HIGH:
                high |= mask
            if run.flags & FLAG_TRANSIENT:
                transient |= mask
        number = self._number()
        self._write(number, encode_runs(key, runs))
        there = span(count)
        extent = Extent(
            number, key, first, last, count, size, newest_us, there, there, high, transient
        )
        self._take_in(queue, extent)

    def _number(self) -> int:
        number = self.next_id
        self.next_id += 1
        self.added += 1
        return number

    def _write(self, number: int, block: bytes) -> None:
        self.db.execute("INSERT INTO bodies VALUES (?, ?)", (number, block))

    def _take_in(self, queue: QueueState, extent: Extent) -> None:
        queue.add(extent)
        self.dirty[extent.id] = extent
        self.suspect(extent)

    def take_down(self, notes: Iterable[Note]) -> None:
        """Add notes about messages."""
        for note in notes:
            queue = self.queues.get(note.key)
            extent = None if queue is None else queue.find(note.sequence)
            if extent is not None:
                if extent.notes is None:
                    extent.notes = {}
                extent.notes[note.sequence] = (note.attempts, note.put_backs)
                self.dirty[extent.id] = extent

    def drop(self, queue: QueueState, extent: Extent) -> None:
        """Remove an extent from its queue; its rows are deleted later."""
        queue.remove(extent)
        self.forget(extent)

    def forget(self, extent: Extent) -> None:
        """Schedule the rows of a removed extent for deletion."""
        extent.owed = 0
        self.dirty[extent.id] = extent
        self.suspects.pop(extent.id, None)
        self.dead.append(extent)

    def settle(self, queue: QueueState, sequences: list[int]) -> None:
        """Settle messages of a queue."""
        extent: Extent | None = None
        mask = 0
        for sequence in sorted(sequences):
            if extent is None or not (
                sequence <= extent.last and extent.present >> (sequence - extent.first) & 1
            ):
                if extent is not None:
                    self._settle(queue, extent, mask)
                extent = queue.find(sequence)
                mask = 0
            if extent is not None:
                mask |= 1 << (sequence - extent.first)
        if extent is not None:
            self._settle(queue, extent, mask)

    def _settle(self, queue: QueueState, extent: Extent, mask: int) -> None:
        """Settle the messages of a mask, and drop the extent if nothing of it is left."""
        if not extent.owed & mask:
            return
        self.mark(extent, mask)
        if not extent.owed and not queue.is_kept(extent):
            self.drop(queue, extent)

    def mark(self, extent: Extent, mask: int) -> None:
        """Mark the messages of a mask as settled."""
        extent.owed &= ~mask
        self.dirty[extent.id] = extent
        if extent.owed.bit_count() * 8 < extent.count:
            self.suspect(extent)

    def suspect(self, extent: Extent) -> None:
        """Check later whether to merge an extent with its neighbours."""
        self.suspects[extent.id] = extent

    def bury(self, most: int) -> None:
        """Delete the rows of up to *most* dropped extents."""
        gone = [self.dead.popleft() for _ in range(min(most, len(self.dead)))]
        if not gone:
            return
        for extent in gone:
            self.dirty.pop(extent.id, None)
            self.uncache(extent.id)
            if extent.crc >= 0:
                self.tally.remove("blocks", extent.crc)
                extent.crc = -1
        ids = [(extent.id,) for extent in gone]
        self.db.executemany("DELETE FROM blocks WHERE id = ?", ids)
        self.db.executemany("DELETE FROM bodies WHERE id = ?", ids)

    def flush(self) -> None:
        """Write the rows of changed extents."""
        if self.dirty:
            rows: list[Row] = []
            for extent in self.dirty.values():
                row = row_of(extent)
                if extent.crc >= 0:
                    self.tally.remove("blocks", extent.crc)
                extent.crc = row[-1]
                self.tally.add("blocks", extent.crc)
                rows.append(row)
            self.db.executemany(
                f"REPLACE INTO blocks ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            self.dirty.clear()

    # --- Reading ---------------------------------------------------------------------------------

    def sequences(
        self, queue: QueueState, first: int, last: int, priority: int | None
    ) -> Iterator[tuple[int, Extent]]:
        """The owed sequences of a queue with a priority, in order, each with its extent.

        Without a priority, all kept sequences.
        """
        waiting: list[tuple[int, Extent]] = []
        extents = queue.extents
        place = queue.begin(first)
        while place < len(extents) and extents[place].first <= last:
            extent = extents[place]
            place += 1
            mask = queue.visible(extent) if priority is None else extent.owed_of(priority)
            mask &= extent.within(first, last)
            if not mask:
                continue
            waiting.extend([(sequence, extent) for sequence in bits(extent.first, mask)])
            following = extents[place].first if place < len(extents) else last + 1
            if waiting[-1][0] < following:
                if len(waiting) > 1:
                    waiting.sort(key=_sequence)
                yield from waiting
                waiting = []
        waiting.sort(key=_sequence)
        yield from waiting


def noted(extent: Extent, message: StoredMessage) -> StoredMessage:
    """A message with its notes applied."""
    if extent.notes is not None:
        note = extent.notes.get(message.sequence)
        if note is not None:
            message.attempts, message.put_backs = note
    return message


def _sequence(pair: tuple[int, Extent]) -> int:
    return pair[0]
