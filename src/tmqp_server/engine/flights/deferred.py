"""The accounts of deferred messages; a part of ``flights``.

Theory of operation.  A queue that may have messages on disk only (durable, or with ``overflow``)
keeps ``memory_limit`` of the deferred ones in memory.  Of a message that finds no room, only an
entry with its id, its time and its place on disk stays: it is *put away*, immediately if the
storage has it, otherwise as soon as it does.  ``shelving.py`` reads it a little before it is due.
Messages that are due so soon that they would have to be read immediately have the same amount of
room again; if that is full as well, they are read when they are due.

For a queue that is not durable, a *transient* copy of a message to be put away is saved
(``Saver.defer``), which does not survive a restart.  It is erased as soon as the message is in
memory again, or if the message stayed in memory because it became due, or room became free, before
the storage answered.

A message is put away only if the disk has all facts about it.  It stays in memory if its producer
must still be answered, if it goes to the front of its queue, if it has a key or was copied by
feeds, or if other nodes have it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp_server.engine.books import DEFERRAL_BYTES, MESSAGE_OVERHEAD_BYTES, shelved_bytes
from tmqp_server.engine.core import PendingSave
from tmqp_server.engine.effects import Erase
from tmqp_server.engine.flights.runs import RunFlights
from tmqp_server.engine.model.deferrals import Deferral, DeferralShelf, ShelfLine
from tmqp_server.engine.model.message import (
    MARK_AWAY,
    MARK_BACK,
    MARK_CONFIRMED,
    MARK_FAILED,
    MARK_FED,
    MARK_HIGH,
    MARK_KEYED,
    MARK_SAVED,
    MARK_SAVING,
    MARK_SHARED,
    MARK_WANTS,
    Message,
)
from tmqp_server.engine.model.queues import Queue

__all__ = ["LOOK_AHEAD_S", "DeferralFlights"]

#: How long before its time a deferred message is read from the disk, in seconds.
LOOK_AHEAD_S: Final = 2.0
_KEPT: Final = MARK_SAVED | MARK_SAVING
#: With one of these a message stays in memory.
_STAYS: Final = MARK_BACK | MARK_KEYED | MARK_SHARED | MARK_FED | MARK_FAILED


class DeferralFlights(RunFlights):
    """The part of ``Flights`` for deferred messages."""

    __slots__ = ()

    # --- Leaving the memory ----------------------------------------------------------------------

    def let_go(self, queue: Queue, message: Message) -> None:
        """Remove a message from memory: it is settled and counted, or on disk only."""
        size = message.size
        queue.count -= 1
        queue.bytes -= size
        self._core.message_bytes -= size + MESSAGE_OVERHEAD_BYTES
        if queue.heeded:
            self._note_left(queue)

    def _note_left(self, queue: Queue) -> None:
        """Note that a message has left a queue that is watched for this."""
        core = self._core
        if queue.fleeting and queue.count == 0:
            core.note_emptied(queue)
        if queue.waiters:
            core.awake.append(queue.waiters)
            queue.waiters = deque()
            queue.heed()
        if queue.expected:
            core.freed[queue.key] = None
            core.wakeups.arm(core.hold_timer, core.now)

    # --- In memory -------------------------------------------------------------------------------

    def defer(self, queue: Queue, message: Message, due_at: float) -> None:
        """Let a message wait until it is due; only then it may be sent."""
        others = queue.deferred.in_memory()
        if queue.bounded and not self._has_room(queue, message, due_at, others):
            if not message.marks & MARK_SAVING:
                self._put_away(queue, message, due_at)
                return
            message.marks |= MARK_AWAY
        self._keep(queue, message, due_at)

    def _keep(self, queue: Queue, message: Message, due_at: float) -> None:
        queue.deferred.add(message, due_at)
        self._core.charge(DEFERRAL_BYTES)

    def take_deferred(self, queue: Queue, now: float) -> Message | None:
        """Take out the next deferred message that is due, or return None."""
        message = queue.deferred.take(now)
        if message is not None:
            if message.marks & MARK_AWAY:
                message.marks &= ~MARK_AWAY
                if message.marks & MARK_SAVING and self._is_transient(message):
                    self._forget_transient(queue, message)
            self._core.refund(DEFERRAL_BYTES)
        return message

    def cancel(self, queue: Queue, message: Message) -> None:
        """Remove a deferred message, which counts as cleared."""
        queue.deferred.remove(message)
        self._core.refund(DEFERRAL_BYTES)
        queue.counters.cleared += 1

    def take_failed(self, queue: Queue) -> list[Message]:
        """Take out waiting and deferred messages that could not be saved; the caller must settle
        each."""
        memory = queue.deferred.memory()
        failed = queue.take_failed()
        self._core.refund(memory - queue.deferred.memory())
        return failed

    # --- On disk only ----------------------------------------------------------------------------

    def wants_transient(self, queue: Queue, message: Message, due_at: float) -> bool:
        """Whether a message that is counted already and about to be deferred needs a transient copy
        so that it can be put away."""
        return (
            not message.marks & _KEPT
            and queue.spills_deferred()
            and not _must_stay(message)
            and not self._keeps(queue, message, due_at, queue.deferred.in_memory())
        )

    def _keeps(self, queue: Queue, message: Message, due_at: float, others: int) -> bool:
        """Whether a deferred message has room in memory beside *others*."""
        is_soon = due_at - LOOK_AHEAD_S <= self._core.now
        return queue.keeps_deferred(others, message.size, is_soon)

    def _has_room(self, queue: Queue, message: Message, due_at: float, others: int) -> bool:
        """Whether it has room there, or must stay there in any case."""
        return self._keeps(queue, message, due_at, others) or not _may_be_away(message)

    def put_away(self, queue: Queue, message: Message, transient: bool) -> None:
        """Put a message away that the storage has now, if it is still deferred and has no room in
        memory."""
        message.marks &= ~MARK_AWAY
        deferred = queue.deferred
        if not deferred.holds(message):
            return
        due_at = message.rarely().due_at
        others = deferred.in_memory() - 1
        if transient:
            if self._keeps(queue, message, due_at, others) or _must_stay(message):
                self._forget_transient(queue, message)
                return
        elif self._has_room(queue, message, due_at, others):
            return
        deferred.remove(message)
        self._core.refund(DEFERRAL_BYTES)
        self._put_away(queue, message, due_at)
        self._core.arm(queue)

    def _put_away(self, queue: Queue, message: Message, due_at: float) -> None:
        """Count a deferred message as on disk only.  It is in no list."""
        shelf = queue.deferred.shelf
        if shelf is None:
            shelf = DeferralShelf()
            queue.deferred.shelf = shelf
        stored = message.rarely().stored
        entry = Deferral(due_at, stored, message.message_id, message.size, None)
        shelf.line_of(message.marks & MARK_HIGH != 0).add(entry)
        shelf.wake_at = min(shelf.wake_at, due_at - LOOK_AHEAD_S)
        self._core.charge(shelved_bytes(entry.message_id))
        queue.count_cap -= 1  # it counts with those in memory
        self.let_go(queue, message)

    def _take_out(self, queue: Queue, line: ShelfLine, entry: Deferral) -> None:
        line.remove(entry)
        self._core.refund(shelved_bytes(entry.message_id))
        queue.count_cap += 1

    def _is_transient(self, message: Message) -> bool:
        """Whether the storage was last asked for a copy that only saves memory."""
        pending = self._core.tickets.get(message.rarely().ticket)
        return isinstance(pending, PendingSave) and pending.transient

    def _forget_transient(self, queue: Queue, message: Message) -> None:
        """Have the transient copy of a message erased."""
        rare = message.rarely()
        self.unstore(queue, message.size)
        if not queue.closed:
            self._core.out.append(Erase(rare.ticket, queue.key, rare.stored))
        message.marks &= ~MARK_SAVING
        rare.stored = 0
        rare.ticket = 0  # the storage's answer about it does not matter any more

    def take_down(
        self, queue: Queue, line: ShelfLine, entry: Deferral, message: Message, transient: bool
    ) -> None:
        """Take back a deferred message that was read from the disk, where its size may differ."""
        self._take_out(queue, line, entry)
        if transient:
            self.unstore(queue, entry.size)
            self._core.out.append(Erase(0, queue.key, entry.sequence))
        else:
            self.store(queue, message.size - entry.size)
        self.bring_back(queue, message.size)
        self._keep(queue, message, entry.due_at)

    def cancel_on_disk(self, queue: Queue, line: ShelfLine, entry: Deferral) -> None:
        """Remove a deferred message that is on disk only, which counts as cleared."""
        self._take_out(queue, line, entry)
        self.unstore(queue, entry.size)
        queue.counters.cleared += 1
        if queue.fleeting and queue.count == 0:
            self._core.note_emptied(queue)

    def lose(self, queue: Queue, line: ShelfLine, entry: Deferral) -> None:
        """Count a deferred message that can no longer be read."""
        self._take_out(queue, line, entry)
        self.unstore(queue, entry.size)
        queue.counters.damaged += 1
        queue.counters.dropped += 1

    def dispose_shelved(self, queue: Queue, entry: Deferral) -> None:
        """Have a cleared message erased that was on disk only."""
        self.unstore(queue, entry.size)
        if not queue.closed:
            self._core.out.append(Erase(0, queue.key, entry.sequence))

    def bring_back(self, queue: Queue, size: int) -> None:
        """Count an accepted message that is in memory from now on."""
        queue.count += 1
        queue.bytes += size
        self._core.message_bytes += size + MESSAGE_OVERHEAD_BYTES


def _must_stay(message: Message) -> bool:
    """Whether only the memory has some facts about a message, so that it cannot be put away."""
    marks = message.marks
    return marks & _STAYS != 0 or marks & (MARK_WANTS | MARK_CONFIRMED) == MARK_WANTS


def _may_be_away(message: Message) -> bool:
    """Whether the disk has all facts about a message, or soon will."""
    marks = message.marks
    if not marks & _KEPT or _must_stay(message):
        return False
    if marks & MARK_SAVING:
        return True
    rare = message.rarely()
    return rare.stored != 0 and rare.old == 0
