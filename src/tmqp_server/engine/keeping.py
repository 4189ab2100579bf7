"""Handles the storage's answers: saved messages, messages read back, restored state.

Theory of operation.  *Saved or not.* ``synced`` releases the waiting confirms and replies (rule 1).
A message that could not be saved is handled in one of four ways.  If it has an older copy, or its
queue guarantees nothing, it stays in memory.  If a decision requested the saving, its producer is
notified and the message continues unsaved.  If its queue is durable, its producer is notified and
the message is dropped, unless a consumer already has it.  But if another queue has already
confirmed it to its producer, or it is a dead letter, it continues, and is saved later
(``debts.py``).

*On disk only.* A message in a tail is removed from memory when the storage has it, and returns with
``Fetched``; only then its expiry and its delay are checked.  If the storage lacks messages that the
tail counts, they were damaged: they are dropped and counted.  Deferred messages return through
``shelving.py``.

*Restored.* All messages of a restored queue are in its tails.
"""

from __future__ import annotations

from tmqp.constants import NACK_ERROR, RESULT_BUSY
from tmqp_server.engine.commands import (
    Command,
    Fetched,
    KeptMessage,
    RestoreChannel,
    RestoreFeed,
    RestoreKeys,
    RestoreMark,
    RestoreQueue,
    RestoreRouter,
    StorageState,
    Synced,
)
from tmqp_server.engine.core import Core, PendingChange, PendingFetch, PendingRun, PendingSave
from tmqp_server.engine.delivery.batch_checks import PendingBatch
from tmqp_server.engine.delivery.batches import Batches
from tmqp_server.engine.delivery.feed_commits import Commit
from tmqp_server.engine.delivery.feeding import Feeder
from tmqp_server.engine.delivery.feeds import Feeds
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.pump import Pump
from tmqp_server.engine.delivery.returning import Returned
from tmqp_server.engine.delivery.saving import tell_apart
from tmqp_server.engine.delivery.sharing import reindex, share
from tmqp_server.engine.delivery.shelving import PendingShelf, Shelving
from tmqp_server.engine.effects import Confirm, ConfirmRun, Erase
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.message import (
    MARK_AWAY,
    MARK_FAILED,
    MARK_FED,
    MARK_GONE,
    MARK_HIGH,
    MARK_OWED,
    MARK_SAVED,
    MARK_SAVING,
    MARK_TOGETHER,
    MARK_UNTOLD,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.tails import Tail
from tmqp_server.engine.reading.browsing import Browsing, PendingBrowse
from tmqp_server.engine.routing.routers import Routing
from tmqp_server.engine.transactions.staging import PendingCommit, PendingStage
from tmqp_server.engine.transactions.transactions import Transactions

__all__ = ["Keeper", "notes_of"]


class Keeper:
    """Handles the commands of the storage."""

    __slots__ = (
        "_batches",
        "_browsing",
        "_core",
        "_feeder",
        "_feeds",
        "_flights",
        "_outcomes",
        "_pump",
        "_routing",
        "_shelving",
        "_transactions",
    )

    def __init__(
        self,
        core: Core,
        flights: Flights,
        outcomes: Outcomes,
        pump: Pump,
        routing: Routing,
        transactions: Transactions,
        batches: Batches,
        browsing: Browsing,
        feeder: Feeder,
        feeds: Feeds,
    ) -> None:
        self._batches = batches
        self._browsing = browsing
        self._core = core
        self._feeder = feeder
        self._feeds = feeds
        self._flights = flights
        self._outcomes = outcomes
        self._pump = pump
        self._routing = routing
        self._shelving = Shelving(core, flights)
        self._transactions = transactions

    def perform(self, command: Command) -> bool:
        """Carry out a command of the storage; return False if it is not one."""
        if isinstance(command, Synced):
            self._synced(command)
        elif isinstance(command, Fetched):
            self._fetched(command)
        elif isinstance(command, StorageState):
            self._core.storage_ok = command.ok
        elif isinstance(command, RestoreKeys):
            self._core.channels.last_key = max(self._core.channels.last_key, command.last_key)
        elif isinstance(command, RestoreChannel):
            self._restore_channel(command)
        elif isinstance(command, RestoreQueue):
            self._restore_queue(command)
        elif isinstance(command, RestoreFeed):
            self._feeds.restore(command)
        elif isinstance(command, RestoreRouter):
            self._routing.restore(command)
        elif isinstance(command, RestoreMark):
            self._transactions.restore(command)
        else:
            return False
        return True

    # --- Saved or not ----------------------------------------------------------------------------

    def _synced(self, command: Synced) -> None:
        """Handle the storage's answer, and release what waited for it (rule 1)."""
        core = self._core
        tickets = core.tickets
        touched: dict[int, Queue] = {}
        for ticket in range(command.ticket, command.ticket + command.count):
            pending = tickets.pop(ticket, None)
            if isinstance(pending, PendingRun):
                self._synced_run(pending, command.ok, touched)
            elif isinstance(pending, PendingSave):
                message = pending.message
                core.unsynced_bytes -= message.size
                rare = message.rare
                if rare is None or rare.ticket != ticket:
                    # It was requested again since, and waits for that.
                    self._answered_between(pending.queue, message, pending.sequence, command.ok)
                    continue
                message.marks &= ~MARK_SAVING
                if pending.tail is not None or not command.ok:
                    touched[pending.queue.key] = pending.queue
                if command.ok:
                    self._saved(pending.queue, message, pending.transient, pending.tail)
                else:
                    self._not_saved(pending.queue, message, pending.transient, pending.tail)
            elif isinstance(pending, PendingChange):
                core.refund(pending.memory)
                reply = pending.reply
                if reply is not None:
                    if not command.ok:
                        reply.code = RESULT_BUSY
                        reply.body = None
                    core.out.append(reply)
            elif isinstance(pending, PendingCommit):
                self._transactions.synced(pending, command.ok)
            elif isinstance(pending, Commit):
                self._feeder.synced(pending, command.ok)
            elif isinstance(pending, PendingBatch):
                self._batches.synced(pending, command.ok)
            elif isinstance(pending, PendingStage):
                self._transactions.put_aside(pending, command.ok)
            else:
                core.count_unknown_ticket()
        for queue in touched.values():
            if not command.ok and not queue.closed:
                for failed in self._flights.take_failed(queue):
                    self._outcomes.drop(queue, failed)
                core.release_pull(queue)
                self._pump.resume(queue, core.now)
            core.refill(queue)

    def _synced_run(self, run: PendingRun, ok: bool, touched: dict[int, Queue]) -> None:
        """The same for messages of a run, whose confirms are one effect."""
        core = self._core
        core.unsynced_bytes -= run.size
        queue = run.queue
        if not ok:
            touched[queue.key] = queue
        told: list[str] = []
        last = 0
        saved = 0
        sequence = run.first - 1
        for message in run.messages:
            sequence += 1
            rare = message.rare
            marks = message.marks
            if rare is None and ok:
                # What _saved does, in place: nearly all messages of runs come here.
                message.marks = (marks | MARK_SAVED) & ~(MARK_SAVING | MARK_TOGETHER)
                saved += 1
                last = message.sequence
            elif rare is not None and rare.ticket:
                # It was requested again since, and waits for that.
                self._answered_between(queue, message, sequence, ok)
                continue
            elif ok:
                message.marks = marks & ~(MARK_SAVING | MARK_TOGETHER)
                self._saved(queue, message, False, None)
            else:
                message.rarely()  # which records where it was to be stored
                tell_apart(message)
                message.marks &= ~MARK_SAVING
                self._not_saved(queue, message, False, None)
                continue
            if marks & MARK_TOGETHER:
                told.append(message.message_id)
        self._flights.save(queue, saved)
        core.became_safe(queue, last)
        if told and not run.producer.alive:
            self._core.skip_confirms(len(told))
        elif told:
            first = run.messages[0]
            core.tally.count_confirms(len(told))
            core.out.append(ConfirmRun(run.producer.number, told, first.channel, first.queue_id))

    def _answered_between(self, queue: Queue, message: Message, sequence: int, ok: bool) -> None:
        """Handle the answer about a copy of a message that is not its newest: if it was saved, it
        has replaced the older copy."""
        rare = message.rare
        if rare is None or rare.between is None:
            return
        key = queue.key
        place = (key, sequence)
        if place not in rare.between:
            return
        rare.between.remove(place)
        if not ok:
            return
        if rare.old_key != key:
            self._core.release_claim(rare.old_key)
        rare.old_key = key
        rare.old = sequence
        if not message.marks & MARK_SAVED:
            message.marks |= MARK_SAVED
            self._flights.save(queue, 1)

    def _saved(self, queue: Queue, message: Message, transient: bool, tail: Tail | None) -> None:
        rare = message.rarely()
        rare.between = None
        if rare.old:
            rare.old = 0
            if rare.old_key != queue.key:
                self._core.release_claim(rare.old_key)
        self._core.became_safe(queue, rare.stored)
        if not transient:
            if not message.marks & MARK_SAVED:
                self._flights.save(queue, 1)
            message.marks |= MARK_SAVED
        self._release(queue, message, True)
        if message.marks & MARK_AWAY:
            self._flights.put_away(queue, message, transient)
        if tail is None:
            return
        tail.unsynced -= 1
        self._leave_on_disk(queue, message, tail)

    def _leave_on_disk(self, queue: Queue, message: Message, tail: Tail) -> None:
        """Leave a message on disk only."""
        self._flights.let_go(queue, message)
        tail.last = max(tail.last, message.rarely().stored)

    def _not_saved(
        self, queue: Queue, message: Message, transient: bool, tail: Tail | None
    ) -> None:
        rare = message.rarely()
        stored = rare.stored
        rare.stored = 0
        if rare.old and rare.old_key == queue.key:
            rare.stored = rare.old
            rare.old = 0
        saved = message.marks & MARK_SAVED != 0
        kept = saved or transient
        self._release(queue, message, kept)
        if tail is None:
            if not saved and not message.marks & MARK_GONE:
                self._flights.unstore(queue, message.size)
            stays = stored != 0 and not message.marks & MARK_GONE
        else:
            stays = self._take_from_tail(queue, message, rare.stored, saved, tail)
        if not stays or not queue.saves:
            return
        if message.marks & MARK_OWED:
            if rare.stored == 0:
                self._outcomes.debts.add(queue, message)
        elif not kept and message.holder is None and not message.holders:
            message.marks |= MARK_FAILED

    def _take_from_tail(
        self, queue: Queue, message: Message, stored: int, saved: bool, tail: Tail
    ) -> bool:
        """Let a message of a tail that could not be saved wait in memory.

        Return False if it need not: it was cleared, or its older copy is still in the tail.

        :param stored: the sequence of its older copy in the queue, 0 if it has none.
        """
        flights = self._flights
        tail.unsynced -= 1
        if queue.tail_of(message) is not tail:
            if saved:
                flights.store(queue, message.size)  # which the tail has subtracted
            self._outcomes.settle(queue, message)  # it was cleared
            return False
        if stored > tail.after and not (message.attempts or message.marks & MARK_FED):
            # The older copy is in the tail, unchanged, and nothing after it has been read back.
            tail.skip.pop(stored, None)
            self._leave_on_disk(queue, message, tail)
            return False
        flights.take_from_disk(queue, tail, 1, message.size)
        if not saved:
            flights.unstore(queue, message.size)
        flights.close_tail(queue, tail, message.marks & MARK_HIGH != 0)
        queue.put_last(message)
        if stored > tail.after:
            tail.skip[stored] = None
        if message.rare is not None:
            self._core.arm(queue)
        return True

    def _release(self, queue: Queue, message: Message, saved: bool) -> None:
        """Release the waiting confirm, as a negative one if the message was not saved."""
        rare = message.rarely()
        if message.marks & MARK_UNTOLD:
            message.marks &= ~MARK_UNTOLD
            self._core.notify_message(queue, message)
        held = rare.held_confirm
        if held is None:
            return
        rare.held_confirm = None
        assert isinstance(held, Confirm)
        if not message.producer.alive:
            self._core.skip_confirms(1)
            return
        if not saved:
            held.positive = False
            held.reason = NACK_ERROR
            held.source = ""
            held.forwarded = None
        self._core.tally.count_confirms(1, saved)
        self._core.out.append(held)

    # --- On disk only ----------------------------------------------------------------------------

    def _fetched(self, command: Fetched) -> None:
        """Let messages that were read back wait in memory again, if they are still owed."""
        core = self._core
        asked = core.fetches.pop(command.number, None)
        if asked is None:
            core.count_unknown_ticket()
            return
        if isinstance(asked, PendingBrowse):
            self._browsing.fetched(asked, command)
        elif isinstance(asked, PendingShelf):
            self._shelving.fetched(asked, command)
        else:
            assert isinstance(asked, PendingFetch)
            self._fetched_tail(asked, command)

    def _fetched_tail(self, asked: PendingFetch, command: Fetched) -> None:
        core = self._core
        queue = asked.queue
        tail = asked.tail
        tail.fetching = False
        there = queue.high_tail if asked.high_priority else queue.regular_tail
        if there is not tail:
            return  # cleared meanwhile
        if command.withheld:
            core.withhold(queue, command.withheld)
        returned = Returned(queue, asked.high_priority)
        for kept in command.messages:
            if kept.sequence in tail.skip:
                continue
            if tail.count > 0:
                self._flights.take_from_disk(queue, tail, 1, kept.size)
            else:
                self._flights.restore(queue, 1)
                self._flights.store(queue, kept.size)
            self._bring_back(queue, kept, returned)
        tail.after = max(tail.after, command.up_to)
        if tail.skip and len(tail.skip) > 2 * core.limits.max_batch_length:
            tail.skip = {each: None for each in tail.skip if each > tail.after}
        self._flights.close_tail(queue, tail, asked.high_priority)
        if queue.fleeting and queue.count == 0:
            core.note_emptied(queue)
        core.arm(queue)
        self._pump.resume(queue, core.now)
        core.release_pull(queue)
        core.refill(queue)

    def _bring_back(self, queue: Queue, kept: KeptMessage, returned: Returned) -> None:
        core = self._core
        if kept.transient:
            # In memory, nothing shows that it was on disk.
            self._flights.unstore(queue, kept.size)
            core.out.append(Erase(0, queue.key, kept.sequence))
        message = returned.message(kept, 0 if kept.transient else MARK_SAVED, core.now)
        self._flights.bring_back(queue, kept.size)
        if kept.expires_at <= core.now and self._outcomes.expire(queue, message):
            return
        if core.shares_decisions:
            share(queue, message)
        if kept.due_at > core.now:
            self._outcomes.saver.defer(queue, message, kept.due_at)
            return
        if queue.discipline.replaces and queue.waiting_count():
            core.trash.append(self._flights.clear_waiting(queue))
            reindex(queue, message)
        queue.put_last(message)

    # --- Restoring -------------------------------------------------------------------------------

    def _restore_channel(self, command: RestoreChannel) -> None:
        channels = self._core.channels
        if channels.find(command.channel) is not None:
            raise ValueError(f"the channel {command.channel!r} exists already")
        options = command.options
        if not self._core.options.knows(options):
            names = f"{options.authenticator!r}, {options.event_handler!r}"
            raise ValueError(
                f"the channel {command.channel} needs an authenticator or event handler: {names}"
            )
        channel = channels.create(command.channel, options)
        self._core.watch_channel(channel)
        self._core.watch_idle(channel)

    def _restore_queue(self, command: RestoreQueue) -> None:
        core = self._core
        name = f"{command.channel}/{command.queue_id}"
        channel = core.channels.find(command.channel)
        if channel is None or command.queue_id in channel.queues:
            raise ValueError(f"the queue {name} cannot be restored: no channel, or it exists")
        if not core.channels.knows_handler(command.options.delivery_handler):
            handler = command.options.delivery_handler
            raise ValueError(f"the queue {name} needs the delivery handler {handler!r}")
        queue = core.channels.create_queue(channel, command.queue_id, command.options)
        core.channels.last_key = max(core.channels.last_key - 1, command.key)
        queue.key = command.key
        queue.sequence = command.sequence
        queue.appended = command.sequence
        queue.safe = command.sequence
        queue.suspect = command.suspect
        count = command.high_count + command.regular_count
        self._flights.restore(queue, count)
        if count:
            queue.bounded = True
        self._flights.store(queue, command.high_bytes + command.regular_bytes)
        if command.high_count:
            tail = queue.high_tail = Tail(0, command.sequence)
            self._flights.put_on_disk(queue, tail, command.high_count, command.high_bytes)
        if command.regular_count:
            tail = queue.regular_tail = Tail(0, command.sequence)
            self._flights.put_on_disk(queue, tail, command.regular_count, command.regular_bytes)
        core.refill(queue)


def notes_of(queues: list[Queue]) -> list[tuple[int, int, int, int]]:
    """Facts about saved messages that the storage does not have: see ``Broker.notes``."""
    found: list[tuple[int, int, int, int]] = []
    for queue in queues:
        for message in queue.sent_before():
            if message.marks & (MARK_SAVED | MARK_SAVING):
                rare = message.rare
                stored = message.sequence if rare is None else rare.stored
                if stored:
                    found.append((queue.key, stored, message.attempts, message.put_backs))
    return found
