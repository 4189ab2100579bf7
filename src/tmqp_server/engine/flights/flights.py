"""Keeps the accounts of messages: which are in memory, which are in flight to whom, their outcomes.

Theory of operation.  A message is *admitted* when its queue has accepted it, *taken off* when it
was sent to a consumer that must acknowledge it, *answered* by each of these, and *let go* when it
is settled.  The code that decides any of this calls this module, and only this module changes these
accounts:

===========================================  ===================================================
``Queue.flights``, ``duplicates``, ``held``  what is in flight, and what holds the queue back
``Queue.count``, ``bytes``                   messages in memory, and their bytes
``Core.message_bytes``                       what the messages of all queues are charged
``Client.in_flight``, ``full``               how much a consumer has in flight, and whether too much
``Message.holder``, ``holders``, ``held``    who has it, and what knowing that is charged
most of ``QueueCounters``                    what happened to messages
===========================================  ===================================================

``RunFlights`` is the part of it for messages that come in runs, ``DeferralFlights`` that for those
that are deferred.

*The short ways.*  Most messages come and go by functions that do together what several others do
for the rest: ``take_in``, ``sent_to_all``, ``answer_in_place``, ``finish``, ``take_off_run`` and
``count_run``.  Each says which functions it stands for.
"""

from __future__ import annotations

from typing import Final

from tmqp.extensions import LAPSE_ANSWERED, LAPSE_TIMED_OUT
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES, holders_bytes
from tmqp_server.engine.effects import Lapsed
from tmqp_server.engine.flights.deferred import DeferralFlights
from tmqp_server.engine.flights.keying import let_go
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.message import (
    MARK_ANSWERED,
    MARK_BACK,
    MARK_DUPLICATE,
    MARK_GONE,
    MARK_KEYED,
    MARK_NEGATIVE,
    MARK_SAVED,
    MARK_SAVING,
    MARK_SHARED,
    MARK_SILENT,
    MARK_TIMED,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Audience, Session
from tmqp_server.engine.model.tails import Tail
from tmqp_server.engine.model.timed import TimedFlights, timing_of
from tmqp_server.engine.model.trash import Trash

__all__ = ["Flights", "enter", "leave"]

_REFUSED: Final = MARK_ANSWERED | MARK_NEGATIVE
#: A message with one of these cannot take the short way out.
_NOT_PLAIN: Final = MARK_BACK | MARK_DUPLICATE | MARK_SHARED | MARK_KEYED
#: With one of these the storage has it, or was asked to keep it.
_KEPT: Final = MARK_SAVED | MARK_SAVING


class Flights(DeferralFlights):
    """The accounts of messages."""

    __slots__ = ()

    # --- Entering --------------------------------------------------------------------------------

    def receive(self, queue: Queue, count: int, now: float) -> None:
        """Count pushes, whether or not they are accepted."""
        counters = queue.counters
        counters.received += count
        counters.last_received = now

    def admit(self, queue: Queue, message: Message) -> None:
        """Begin to count a message as accepted."""
        queue.counters.accepted += 1
        self.bring_back(queue, message.size)

    def take_in(self, queue: Queue, message: Message, now: float) -> None:
        """``receive`` and ``admit`` in one."""
        counters = queue.counters
        counters.received += 1
        counters.last_received = now
        counters.accepted += 1
        size = message.size
        queue.count += 1
        queue.bytes += size
        self._core.message_bytes += size + MESSAGE_OVERHEAD_BYTES

    def admit_on_disk(self, queue: Queue, count: int) -> None:
        """Begin to count messages that are on disk only."""
        queue.counters.accepted += count

    def restore(self, queue: Queue, count: int) -> None:
        """The same for messages from before the server was started."""
        queue.counters.restored += count
        self.admit_on_disk(queue, count)

    def take_back(self, queue: Queue, count: int) -> None:
        """Count messages of a commit or batch that failed."""
        queue.counters.undone += count

    # --- Leaving ---------------------------------------------------------------------------------

    def finish(self, queue: Queue, message: Message) -> None:
        """Count a message as done, and ``let_go``."""
        queue.counters.done += 1
        size = message.size
        queue.count -= 1
        queue.bytes -= size
        self._core.message_bytes -= size + MESSAGE_OVERHEAD_BYTES
        if queue.heeded:
            self._note_left(queue)

    def drop(self, queue: Queue, message: Message) -> None:
        """Count a message as given up, and ``let_go``."""
        queue.counters.dropped += 1
        self.let_go(queue, message)

    def dequeue(self, queue: Queue) -> None:
        """Count a message that leaves the lists and is not put back."""
        queue.counters.removed += 1

    def save(self, queue: Queue, count: int) -> None:
        """Count messages that the storage has saved."""
        queue.counters.saved += count

    def close_tail(self, queue: Queue, tail: Tail, high_priority: bool) -> None:
        """Remove a tail that has been read back completely; messages that are missing then are
        damaged."""
        if tail.unsynced or (tail.count and tail.after < tail.last):
            return
        lost = tail.count
        self.forget_tail(queue, tail)
        queue.set_tail(high_priority, None)
        queue.counters.damaged += lost
        queue.counters.dropped += lost

    def count_cleared(self, queue: Queue, count: int) -> None:
        """Count messages that were cleared one by one, or on disk only."""
        queue.counters.cleared += count

    def clear_waiting(self, queue: Queue) -> Trash:
        """Take out all waiting messages except deferred ones; otherwise as ``clear``."""
        queue.counters.cleared += queue.high_count + queue.regular_count
        return queue.detach_waiting()

    def clear(self, queue: Queue, high_priority: bool, regular: bool, in_flight: bool) -> Trash:
        """Take out the waiting and deferred messages of these priorities, and those in flight if
        *in_flight*.

        They count as cleared immediately.  The rest of the work is done for each message in
        ``Trash``, so the time does not depend on their number.
        """
        before = queue.live()
        deferred = queue.deferred
        memory = deferred.memory()
        on_disk = deferred.on_disk()
        trash = queue.detach(high_priority, regular)
        self._core.refund(memory - deferred.memory())
        queue.count_cap += on_disk - deferred.on_disk()
        if in_flight:
            trash.in_hand = queue.flights
            queue.flights = {}
            if queue.timed is not None:
                trash.timed = queue.timed.messages
                queue.timed = None
            queue.duplicates = {}
            queue.held = None
        queue.counters.cleared += before - queue.live()
        return trash

    # --- Sent ------------------------------------------------------------------------------------

    def sent(self, queue: Queue, message: Message, deliveries: int, now: float) -> None:
        """Count a message that was sent in so many deliveries."""
        counters = queue.counters
        if message.attempts:
            counters.redelivered += 1
        message.attempts += 1
        message.sent_at = now
        counters.sent += 1
        counters.deliveries += deliveries
        counters.last_sent = now

    def count_copies(self, queue: Queue, copies: int) -> None:
        """Count the deliveries to feeds of a message that consumers got as well."""
        queue.counters.deliveries += copies

    def sent_to_all(
        self, queue: Queue, message: Message, audience: Audience, wants: bool, now: float
    ) -> bool:
        """``dequeue`` and ``sent`` for a message that went to all of an audience; and ``give`` and
        ``take_off`` if the queue *wants* acknowledgements.

        Return whether it is in flight.
        """
        counters = queue.counters
        if message.attempts:
            counters.redelivered += 1
        message.attempts += 1
        message.sent_at = now
        counters.removed += 1
        counters.sent += 1
        counters.deliveries += len(audience.everyone)
        counters.last_sent = now
        if not wants:
            return False
        only = audience.only
        flights = queue.flights
        if (
            only is not None
            and only.in_flight + 1 < self._window
            and message.message_id not in flights
            and not queue.duplicates
            and queue.timed is None
        ):
            only.in_flight += 1
            message.holder = only
            flights[message.message_id] = message
            if now + queue.ack_timeout_s < queue.timer.wake_at:
                self._core.wakeups.arm(queue.timer, now + queue.ack_timeout_s)
            if queue.waits:
                queue.held = message
            return True
        if only is not None:
            self.give(queue, message, only)
        else:
            self.give_all(queue, message, audience.clients)
        if message.holder is None and message.holders is None:
            return False
        self.take_off(queue, message, now)
        return True

    def skip(self, queue: Queue, count: int) -> None:
        """Count deliveries that were skipped because the consumer could not take the message."""
        queue.counters.skipped += count

    def miss(self, queue: Queue, count: int) -> None:
        """Count deliveries that a door did not pass on as skipped ones."""
        queue.counters.missed += count
        queue.counters.skipped += count

    def give(self, queue: Queue, message: Message, client: Client) -> None:
        """Record the one consumer that has the message."""
        in_flight = client.in_flight
        if in_flight >= client.most and not self._may_hold(queue, message, client):
            # This happens only in queues that do not wait for consumers.
            queue.counters.untracked += 1
            return
        message.holder = client
        client.in_flight = in_flight + 1
        if in_flight + 1 >= self._window:
            self._fill(client)

    def give_all(self, queue: Queue, message: Message, clients: dict[int, Client]) -> None:
        """Record several consumers that have the message."""
        self._core.budget -= len(clients)
        window = self._window
        holders = clients.copy()
        for client in clients.values():
            in_flight = client.in_flight
            if in_flight >= client.most and not self._may_hold(queue, message, client):
                queue.counters.untracked += 1
                del holders[client.number]
                continue
            client.in_flight = in_flight + 1
            if in_flight + 1 >= window:
                self._fill(client)
        if holders:
            message.holders = holders
            message.held = holders_bytes(len(clients))
            self._core.charge(message.held)

    def _may_hold(self, queue: Queue, message: Message, client: Client) -> bool:
        """Whether a delivery to this consumer may be recorded; if it has terms, they record it,
        too."""
        if client.in_flight >= self._window:
            return False
        if not client.termed:
            client.most = self._window
            return True
        subscription = queue.audience.subscriptions.get(client.number)
        if subscription is not None and subscription.holds is not None:
            subscription.hold(queue, message)
        return True

    def take_off(self, queue: Queue, message: Message, now: float) -> None:
        """Record that a message is in flight, and have its timeout watched."""
        enter(queue, message)
        due = now + queue.ack_timeout_s
        if message.marks & MARK_TIMED:
            due = timing_of(message).due
        if due < queue.timer.wake_at:
            self._core.wakeups.arm(queue.timer, due)
        if queue.waits:
            queue.held = message

    # --- Answered --------------------------------------------------------------------------------

    def answer(
        self, queue: Queue, session: Session, message_id: str, positive: bool
    ) -> Message | None:
        """Take a message from the consumer that answers for it (F95); return None if it has no
        message of that id."""
        _count_answer(queue, session, positive)
        message = queue.flight(message_id)
        if session.node and positive and message is not None and message.holder is not session:
            self.take_from_all(queue, message, LAPSE_ANSWERED)
        else:
            message = self.held_by(queue, session, message_id)
            if message is None:
                return None
            self._take_from(queue, message, session)
        message.marks |= MARK_ANSWERED if positive else _REFUSED
        return message

    def release(self, queue: Queue, message: Message, client: Client) -> None:
        """Take a message from a consumer that releases it or has left."""
        queue.counters.released += 1
        self._take_from(queue, message, client)

    def answer_for(self, queue: Queue, message: Message, session: Session, positive: bool) -> None:
        """Take a message from the consumer whose batch answers for it."""
        _count_answer(queue, session, positive)
        self._take_from(queue, message, session)
        message.marks |= MARK_ANSWERED if positive else _REFUSED

    def held_by(self, queue: Queue, session: Session, message_id: str) -> Message | None:
        """The message of that id in flight to this session; if there is none, this is counted and
        None returned."""
        message = queue.flight(message_id)
        if message is None or not message.is_held_by(session):
            message = queue.duplicate_held_by(message_id, session)
            if message is None:
                queue.counters.unknown_acks += 1
                session.unknown_acks += 1
        return message

    def answer_in_place(
        self,
        queue: Queue,
        session: Session,
        message_id: str,
        positive: bool,
        erased: list[int] | None,
    ) -> bool:
        """``answer``, ``leave`` and ``finish`` in one, for a message that only this consumer has
        and that no other code needs to handle.  For any other, return False and do nothing.

        The sequence of a message that the storage may erase is added to *erased*; the caller tells
        the storage.  If it is None, such a message is not handled here.
        """
        message = queue.flights.get(message_id)
        if message is None or message.holder is not session:
            return False
        marks = message.marks
        if (
            message.rare is not None
            or marks & _NOT_PLAIN
            or queue.heeded
            or (marks & _KEPT and erased is None)
        ):
            return False
        counters = queue.counters
        if positive:
            counters.acks += 1
            session.acknowledged += 1
            message.marks = marks | (MARK_ANSWERED | MARK_GONE)
        else:
            counters.negative_acks += 1
            session.negative_acks += 1
            message.marks = marks | (_REFUSED | MARK_GONE)
        message.holder = None
        session.in_flight -= 1
        if session.closely:
            self._lighten(queue, message, session)
        del queue.flights[message_id]
        if queue.held is message:
            queue.held = None
        counters.done += 1
        queue.count -= 1
        queue.bytes -= message.size
        self._core.message_bytes -= message.size + MESSAGE_OVERHEAD_BYTES
        if marks & _KEPT and erased is not None:
            queue.disk_bytes -= message.size
            erased.append(message.sequence)
        return True

    def withhold(self, queue: Queue, count: int) -> None:
        """Count so many more messages as withheld, that is, invisible until their batch or commit
        is saved; fewer, if *count* is negative."""
        queue.withheld += count

    def time_out(self, queue: Queue, message: Message, client: Client) -> None:
        """Take a message from a consumer that has not answered in time (F94)."""
        self._core.budget -= 1
        counters = queue.counters
        counters.negative_acks += 1
        counters.ack_timeouts += 1
        client.ack_timeouts += 1
        self._take_away(queue, message, client, LAPSE_TIMED_OUT)

    def take_from_all(self, queue: Queue, message: Message, reason: str) -> None:
        """Take a message from all consumers that have it.

        :param reason: that of ``Lapsed``.
        """
        if message.holder is not None:
            self._take_away(queue, message, message.holder, reason)
            return
        holders = message.holders
        if holders is not None:
            for client in list(holders.values()):
                self._core.budget -= 1
                self._take_away(queue, message, client, reason)

    def _take_away(self, queue: Queue, message: Message, client: Client, reason: str) -> None:
        """Take a message from a consumer that has not answered; notify it if it wants that."""
        self._take_from(queue, message, client)
        if client.hears_lapses and client.alive:
            self._core.out.append(
                Lapsed(
                    client.number,
                    queue.channel_name,
                    queue.queue_id,
                    message.message_id,
                    message.sequence,
                    reason,
                )
            )

    def _take_from(self, queue: Queue, message: Message, client: Client) -> None:
        """Record that *client* no longer has the message."""
        if message.holder is client:
            message.holder = None
        else:
            holders = message.holders
            assert holders is not None
            del holders[client.number]
            if not holders:
                self._release(message)
        client.in_flight -= 1
        if not client.alive and client.in_flight == 0:
            self._core.forget_ended(client)
        if client.closely:
            self._lighten(queue, message, client)

    def _release(self, message: Message) -> None:
        """Remove the table of a message's consumers: the last of them no longer has it."""
        self._core.refund(message.held)
        message.held = 0
        message.holders = None

    def land(self, queue: Queue, message: Message) -> None:
        """Record that the message is no longer in flight."""
        leave(queue, message)
        if message.marks & MARK_KEYED:
            let_go(self._core, queue, message, False)
        if queue.held is message:
            queue.held = None

    def release_queue(self, queue: Queue) -> None:
        """Let a queue that waits for the answer to its last message send again (F96)."""
        queue.held = None

    def shrink(self, queue: Queue) -> None:
        """Free memory: an empty table keeps the size that it once had."""
        if not queue.flights:
            queue.flights = {}

    # --- Times -----------------------------------------------------------------------------------

    def retime(self, queue: Queue, message: Message) -> None:
        """Record that the deadline of a consumer that has the message has changed."""
        key = _key_of(message)
        queue.flights.pop(key, None)
        _enter_timed(queue, key, message)
        self._core.arm(queue)

    def retime_run(self, queue: Queue, messages: list[Message]) -> None:
        """The same for messages that were sent just now, none of which is a duplicate."""
        for message in messages:
            del queue.flights[message.message_id]
            _enter_timed(queue, message.message_id, message)
        self._core.arm(queue)

    # --- Consumers that have too much in flight --------------------------------------------------

    def _lighten(self, queue: Queue, message: Message, client: Client) -> None:
        """Record that a client that must be examined closely no longer has a message.

        A client that was full gets messages again only when a quarter of its window is free:
        otherwise a busy session would be counted again for every message.
        """
        if client.termed:
            audience = queue.audience
            subscription = audience.subscriptions.get(client.number)
            if subscription is not None and subscription.drop(message):
                self._core.wake_audience(audience)
        if client.full and client.in_flight <= self._window - (self._window + 3) // 4:
            client.full = False
            client.closely = client.termed
            session = self._core.sessions.get(client.number)
            if session is not None:
                self._core.recount(session)


def _count_answer(queue: Queue, session: Session, positive: bool) -> None:
    if positive:
        queue.counters.acks += 1
        session.acknowledged += 1
    else:
        queue.counters.negative_acks += 1
        session.negative_acks += 1


def enter(queue: Queue, message: Message) -> None:
    """Record that *message* has just been sent and must be acknowledged."""
    key = message.message_id
    # If a duplicate has outlived the first message, this one must not count as the oldest.
    if queue.flight(key) is not None or key in queue.duplicates:
        message.marks |= MARK_DUPLICATE
        key = f"{key}\x00{message.sequence}"
        message.rarely().key = key
        queue.duplicates.setdefault(message.message_id, []).append(message)
    if message.marks & MARK_TIMED:
        _enter_timed(queue, key, message)
    else:
        queue.flights[key] = message


def _enter_timed(queue: Queue, key: str, message: Message) -> None:
    if queue.timed is None:
        queue.timed = TimedFlights()
    queue.timed.messages[key] = message
    queue.timed.put(message, queue.ack_timeout_s)


def leave(queue: Queue, message: Message) -> None:
    """Record that *message* is no longer in flight; it must have been."""
    if message.marks & MARK_TIMED:
        message.marks &= ~(MARK_TIMED | MARK_SILENT)
        message.rarely().timing = None
        assert queue.timed is not None, "the message is in it"
        del queue.timed.messages[_key_of(message)]
    else:
        del queue.flights[_key_of(message)]
    if not message.marks & MARK_DUPLICATE:
        return
    message.marks &= ~MARK_DUPLICATE
    duplicates = queue.duplicates[message.message_id]
    duplicates.remove(message)
    if not duplicates:
        del queue.duplicates[message.message_id]


def _key_of(message: Message) -> str:
    return message.rarely().key if message.marks & MARK_DUPLICATE else message.message_id
