"""Requests to the storage to save messages, and to erase them.

Theory of operation.  A message is saved under the key of its queue and a sequence that increases
with each request for the same queue: that order is the order after a restart.  Most messages are
saved when they arrive, under their own sequence.  A message that is saved later, or goes to the end
of its queue, gets a new sequence.  If the storage already has it, the older copy stays valid until
the new one is saved: one request contains both (``Append.old``).  The same applies to copies that
were requested in between and are not answered yet: the first of them that is written replaces the
older copy, and must not be erased with a newer one that is not written (``Erase.depends``).

The place of a saved message is in its ``Rare`` record (``stored``; ``old`` and ``old_key``; and
``between``), or, if it has none, is its own sequence.

A message that is on disk only to save memory, because its queue is not durable, is *transient*: the
copy is erased when the message returns to memory, and by a restart.

The messages of a run (``push_runs.py``) are requested together, with one ticket.  If one of them is
requested again, it gets its own ticket, and its confirm waits for that one.
"""

from __future__ import annotations

from tmqp_server.engine.core import Core, PendingSave
from tmqp_server.engine.delivery.sharing import forget
from tmqp_server.engine.effects import Append, ClearStored, Confirm, Erase
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.message import (
    MARK_COPY,
    MARK_HIGH,
    MARK_SAVED,
    MARK_SAVING,
    MARK_SHARED,
    MARK_TOGETHER,
    Message,
    Rare,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.tails import Tail

__all__ = ["Saver", "erasures_between", "tell_apart"]


class Saver:
    """Requests to the storage about messages."""

    __slots__ = ("_core", "_flights")

    def __init__(self, core: Core, flights: Flights) -> None:
        self._core = core
        self._flights = flights

    def save(self, queue: Queue, message: Message) -> None:
        """Have a message saved where it is."""
        self._save(queue, message, False)

    def defer(self, queue: Queue, message: Message, due_at: float) -> None:
        """Defer a message: in memory, or on disk only if it has no room there.

        If it cannot go to disk now, it stays in memory nevertheless.
        """
        if (
            self._flights.wants_transient(queue, message, due_at)
            and self._core.has_room_to_save(message.size)
            and queue.has_disk_for(message)
        ):
            self._save(queue, message, True)
        self._flights.defer(queue, message, due_at)

    def _save(self, queue: Queue, message: Message, transient: bool) -> None:
        message.rarely()  # which records where it is stored now, if it is
        sequence = message.sequence
        if sequence <= queue.appended:
            sequence = queue.sequence + 1
            queue.sequence = sequence
        self._append(queue, message, sequence, transient)
        tail = queue.tail_of(message)
        if tail is not None:
            tail.skip[sequence] = None

    def save_again(self, queue: Queue, message: Message) -> None:
        """Save a copy at the end of the queue for a saved message that is put at the end."""
        if message.marks & (MARK_SAVED | MARK_SAVING):
            self.save(queue, message)

    def spill(self, queue: Queue, message: Message) -> None:
        """Append a message to its priority's tail, on disk only."""
        rare = message.rarely()
        marks = message.marks & (MARK_SAVED | MARK_SAVING)
        if not marks & MARK_SAVING or rare.stored != queue.sequence or rare.ticket == 0:
            queue.sequence += 1
            message.sequence = queue.sequence
            self._append(queue, message, queue.sequence, marks == 0 and not queue.saves)
        tail = queue.tail_of(message)
        if tail is None:
            tail = Tail(rare.stored - 1, rare.stored - 1)
            queue.set_tail(message.marks & MARK_HIGH != 0, tail)
        tail.skip.pop(rare.stored, None)
        if message.marks & MARK_SHARED:
            # Other nodes' decisions do not reach messages on disk only.
            message.marks &= ~MARK_SHARED
            forget(queue, message)
        tail.unsynced += 1
        self._flights.put_on_disk(queue, tail, 1, message.size)
        pending = self._core.tickets[rare.ticket]
        assert isinstance(pending, PendingSave)
        pending.tail = tail

    def _append(self, queue: Queue, message: Message, sequence: int, transient: bool) -> None:
        core = self._core
        rare = message.rarely()
        tell_apart(message)
        if not message.marks & (MARK_SAVED | MARK_SAVING):
            self._flights.store(queue, message.size)
        elif rare.stored:
            if not message.marks & MARK_SAVING:
                rare.old_key = queue.key
                rare.old = rare.stored
            elif rare.old or (message.marks & MARK_COPY and queue.saves):
                # Its source may be settled by that copy, and its producer notified.
                _add_between(rare, queue.key, rare.stored)
            else:
                # The storage has not answered about that copy, and no promise depends on it.
                core.out.append(Erase(rare.ticket, queue.key, rare.stored))
        if rare.between is not None:
            for key, between in rare.between:
                core.out.append(Erase(0, key, between, True))
        core.last_ticket += 1
        ticket = core.last_ticket
        message.marks |= MARK_SAVING
        rare.ticket = ticket
        rare.stored = sequence
        queue.appended = sequence
        core.tickets[ticket] = PendingSave(message, queue, sequence, transient)
        core.unsynced_bytes += message.size
        core.out.append(
            Append(
                ticket,
                message,
                queue.channel_name,
                queue.queue_id,
                queue.key,
                sequence,
                transient,
                rare.old_key,
                rare.old,
            )
        )

    def move(self, source: Queue, message: Message, target: Queue, letter: Message) -> None:
        """Keep the copy of *message* owed until its dead letter is saved."""
        if message.marks & (MARK_SAVED | MARK_SAVING):
            self._flights.unstore(source, message.size)
        rare = message.rarely()
        moved = letter.rarely()
        if rare.old and rare.old_key != source.key:
            moved.old_key = rare.old_key  # with the claim on its queue
        else:
            moved.old_key = source.key
            self._core.claim(source)
        moved.old = rare.old or rare.stored
        letter.marks |= message.marks & MARK_SAVED
        if letter.marks & MARK_SAVED:
            self._flights.store(target, letter.size)
        moved.between = rare.between
        if rare.old and rare.stored:
            _add_between(moved, source.key, rare.stored)
        rare.old = 0
        rare.between = None
        message.marks &= ~(MARK_SAVED | MARK_SAVING)

    def erase(self, queue: Queue, message: Message) -> None:
        """Have all copies of a message erased."""
        out = self._core.out
        rare = message.rare
        if rare is None:
            if not queue.closed:
                out.append(Erase(0, queue.key, message.sequence))
            return
        if queue.closed and rare.old_key == queue.key:
            out.extend(erasures_between(message))
            rare.between = None
        else:
            self._erase_older(message, rare, queue.key)
        if rare.stored and not queue.closed:
            out.append(Erase(rare.ticket, queue.key, rare.stored))

    def erase_older(self, message: Message) -> None:
        """The same for a message that could not be saved where it is, but has copies elsewhere."""
        rare = message.rare
        if rare is not None and rare.old:
            self._erase_older(message, rare, 0)

    def _erase_older(self, message: Message, rare: Rare, key: int) -> None:
        """Have the copies erased that the newest one would have replaced; *key* is that of the
        message's queue."""
        out = self._core.out
        if rare.old:
            out.append(Erase(0, rare.old_key, rare.old))
            if rare.old_key != key:
                rare.old = 0
                self._core.release_claim(rare.old_key)
        out.extend(erasures_between(message))
        rare.between = None

    def clear_tails(self, queue: Queue, high_priority: bool, regular: bool) -> None:
        """Settle all messages that wait on disk only; they count as cleared."""
        if high_priority and queue.high_tail is not None:
            self._clear_tail(queue, queue.high_tail, True)
        if regular and queue.regular_tail is not None:
            self._clear_tail(queue, queue.regular_tail, False)

    def _clear_tail(self, queue: Queue, tail: Tail, high_priority: bool) -> None:
        self._flights.count_cleared(queue, tail.count)
        self._flights.forget_tail(queue, tail)
        queue.set_tail(high_priority, None)
        if queue.closed:
            return
        first = tail.after + 1
        for kept in sorted(tail.skip):
            if kept > first:
                self._core.keep(ClearStored(queue.key, high_priority, first, kept - 1))
            first = max(first, kept + 1)
        if first <= queue.sequence:
            self._core.keep(ClearStored(queue.key, high_priority, first, queue.sequence))


def _add_between(rare: Rare, key: int, sequence: int) -> None:
    if rare.between is None:
        rare.between = []
    rare.between.append((key, sequence))


def erasures_between(message: Message) -> list[Erase]:
    """The erasures of the copies of a message about which the storage has not answered."""
    found: list[Erase] = []
    rare = message.rare
    if rare is not None and rare.between is not None:
        for key, sequence in rare.between:
            found.append(Erase(0, key, sequence))
    return found


def tell_apart(message: Message) -> None:
    """Give a message its own waiting confirm, if its confirm waits with those of its run."""
    if message.marks & MARK_TOGETHER:
        message.marks &= ~MARK_TOGETHER
        message.rarely().held_confirm = Confirm(
            message.producer.number,
            message.message_id,
            message.channel,
            message.queue_id,
            True,
            "",
            True,
            "",
            None,
        )
