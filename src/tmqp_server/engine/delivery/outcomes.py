"""Carries out decisions: confirms, saving, putting back, giving up, settling.

Theory of operation.  It keeps three guarantees.

*At most one confirm.* ``confirm`` marks the message; later confirms are ignored.

*Rule 1: no confirm before the storage has answered.* While a message is being saved, a positive
confirm is held; ``keeping.py`` releases it, or makes it negative; if the push allows it,
``done_confirms.py`` may release it earlier.

*Nothing is forgotten.* Whatever happens to a message, ``flights`` updates its counters and the
storage is told to erase it, here or, for runs of acknowledgements, in ``push_runs.py``.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    DECIDE_ACK_IF_SAVED,
    DECIDE_ACK_NEGATIVE,
    DECIDE_ACK_NONE,
    NACK_ERROR,
    NACK_NONE,
    NACK_TIMEOUT,
    PUT_BACK_END,
    PUT_BACK_NO,
    PUT_BACK_START,
    RESULT_BUSY,
    RESULT_LIMIT_EXCEEDED,
    RESULT_OK,
)
from tmqp.extensions import LAPSE_REMOVED
from tmqp_server.engine.commands import Acknowledge
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.awaited_copies import NACK_STORAGE, tell_held
from tmqp_server.engine.delivery.dead_letters import moved_letter
from tmqp_server.engine.delivery.debts import Debts
from tmqp_server.engine.delivery.rooms import Rooms
from tmqp_server.engine.delivery.saving import Saver
from tmqp_server.engine.delivery.sharing import forget, reindex, tell
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import Confirm
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.flights.keying import leave_place, let_go
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import (
    HOOK_ACKNOWLEDGED,
    HOOK_BEGIN_SEND,
    HOOK_CAN_RECEIVE,
    HOOK_CONSUMER_FAILED,
    HOOK_CONSUMER_RECEIVED,
    HOOK_DEQUEUED,
    HOOK_END_SEND,
    HOOK_MESSAGE_TIMEOUT,
    HOOK_RECEIVED,
    HOOK_SAVE,
    HOOK_TIMED_OUT,
    Decision,
)
from tmqp_server.engine.model.message import (
    MARK_ANSWERED,
    MARK_AWAITS,
    MARK_BACK,
    MARK_BACK_END,
    MARK_BACK_START,
    MARK_CONFIRMED,
    MARK_DECIDED,
    MARK_GONE,
    MARK_KEYED,
    MARK_NEGATIVE,
    MARK_OWED,
    MARK_SAVED,
    MARK_SAVING,
    MARK_SHARED,
    MARK_UNCOUNTED,
    MARK_WANTS,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.times import AT_ONCE, NEVER
from tmqp_server.engine.options import DEAD_LETTER, REFUSE

__all__ = ["Outcomes"]

#: A message with one of these is in further tables, or its confirm waits.
_LINKED: Final = MARK_SHARED | MARK_KEYED | MARK_AWAITS
_NOT_A_DECISION: Final = "a delivery handler must return a Decision"
#: The reason of the negative confirm if an ephemeral queue has no room.
_NO_ROOM: Final = "limit-exceeded"
#: The most messages that make way for one push.
_MOST_DISPLACED: Final = 1_000


class Outcomes(Rooms):
    """Calls handlers and carries out their decisions."""

    __slots__ = ("debts", "saver", "_directory", "_flights")

    def __init__(self, core: Core, flights: Flights, directory: Directory) -> None:
        super().__init__(core)
        self.saver = Saver(core, flights)
        self.debts = Debts(core, self.saver)
        self._flights = flights
        self._directory = directory

    # --- Asking ----------------------------------------------------------------------------------

    def ask(
        self,
        hook: int,
        queue: Queue,
        message: Message,
        consumer: Client | None,
        ack: Acknowledge | None,
    ) -> Decision:
        """Return the decision of the queue's handler at one step, even if the handler fails."""
        handler = queue.handler
        try:
            if hook == HOOK_RECEIVED:
                decision = handler.received_from_producer(queue, message)
            elif hook == HOOK_BEGIN_SEND:
                decision = handler.begin_send(queue, message)
            elif hook == HOOK_END_SEND:
                decision = handler.end_send(queue, message)
            elif hook == HOOK_MESSAGE_TIMEOUT:
                decision = handler.message_timed_out(queue, message)
            else:
                assert consumer is not None
                decision = self._ask_about(hook, queue, message, consumer, ack)
            if not isinstance(decision, Decision):
                raise TypeError(_NOT_A_DECISION)
        except Exception as error:  # noqa: BLE001 - user code hurts its own message only
            return self._failed(queue, message, error)
        return decision

    def _ask_about(
        self,
        hook: int,
        queue: Queue,
        message: Message,
        consumer: Client,
        ack: Acknowledge | None,
    ) -> Decision:
        handler = queue.handler
        if hook == HOOK_ACKNOWLEDGED:
            assert ack is not None
            return handler.acknowledge_received(queue, message, consumer, ack.positive, ack.reason)
        if hook == HOOK_TIMED_OUT:
            return handler.acknowledge_timed_out(queue, message, consumer)
        if hook == HOOK_CAN_RECEIVE:
            return handler.can_consumer_receive(queue, message, consumer)
        if hook == HOOK_CONSUMER_RECEIVED:
            return handler.consumer_received(queue, message, consumer)
        assert hook == HOOK_CONSUMER_FAILED
        return handler.consumer_receive_failed(queue, message, consumer)

    def _failed(self, queue: Queue, message: Message, error: Exception) -> Decision:
        """The decision that replaces one that a handler failed to make."""
        self.count_error(queue)
        try:
            decision = queue.handler.exception_thrown(queue, message, error)
            if not isinstance(decision, Decision):
                raise TypeError(_NOT_A_DECISION)
        except Exception:  # noqa: BLE001 - its own rescue failed as well
            self.count_error(queue)
            acknowledge = DECIDE_ACK_NEGATIVE if message.marks & MARK_WANTS else DECIDE_ACK_NONE
            return Decision(False, False, PUT_BACK_NO, acknowledge, NACK_ERROR)
        return decision

    def count_error(self, queue: Queue) -> None:
        """Count a failure of user code."""
        queue.counters.errors += 1

    def count_refused(self, queue: Queue, code: int) -> None:
        """Count a push that was not accepted, and is answered with this result code."""
        queue.counters.refused += 1
        self._core.tally.count_refusal(self._core.count_short(code))

    def dequeued(self, queue: Queue, message: Message) -> None:
        """Count a message that leaves the lists without being put back, and tell the handler."""
        self._flights.dequeue(queue)
        if queue.hooks & HOOK_DEQUEUED:
            try:
                queue.handler.message_dequeued(queue, message)
            except Exception as error:  # noqa: BLE001 - user code hurts its own message only
                self.apply(queue, message, self._failed(queue, message, error))

    # --- Saving and confirming -------------------------------------------------------------------

    def apply(self, queue: Queue, message: Message, decision: Decision) -> None:
        """Carry out the parts *save* and *acknowledge* of a decision, in this order (F103)."""
        saves = not decision.save or self._save(queue, message)
        acknowledge = decision.acknowledge
        if acknowledge == DECIDE_ACK_NONE:
            return
        if acknowledge == DECIDE_ACK_NEGATIVE:
            self.confirm(message, False, decision.reason, "", None)
        elif not saves:
            self.confirm(message, False, NACK_STORAGE, "", None)
        elif acknowledge != DECIDE_ACK_IF_SAVED or message.marks & (MARK_SAVED | MARK_SAVING):
            self.confirm(message, True, "", "", None)

    def apply_answer(
        self,
        queue: Queue,
        message: Message,
        decision: Decision,
        consumer: Client,
        ack: Acknowledge,
    ) -> None:
        """The same for a consumer's answer, which is passed on as the consumer gave it (F79)."""
        saves = not decision.save or self._save(queue, message)
        acknowledge = decision.acknowledge
        if acknowledge == DECIDE_ACK_NONE:
            return
        if not saves and ack.positive:
            self.confirm(message, False, NACK_STORAGE, "", None)
            return
        if acknowledge == DECIDE_ACK_IF_SAVED and not message.marks & (MARK_SAVED | MARK_SAVING):
            return
        source = "" if queue.options.hide_client_names else consumer.client_id
        self.confirm(message, ack.positive, ack.reason, source, ack.wire)

    def apply_silence(self, queue: Queue, message: Message, decision: Decision) -> None:
        """The same for a timeout, whose reason is ``timeout`` unless the handler knows better."""
        if decision.acknowledge == DECIDE_ACK_NEGATIVE and decision.reason == NACK_NONE:
            if decision.save:
                self._save(queue, message)
            self.confirm(message, False, NACK_TIMEOUT, "", None)
        else:
            self.apply(queue, message, decision)

    def confirm(
        self, message: Message, positive: bool, reason: str, source: str, forwarded: object
    ) -> None:
        """Send the producer a confirm, unless it got one or has disconnected (F77)."""
        if message.marks & MARK_CONFIRMED:
            return
        message.marks |= MARK_CONFIRMED
        producer = message.producer
        if not producer.alive:
            self._core.skip_confirms(1)
            return
        effect = Confirm(
            producer.number,
            message.message_id,
            message.channel,
            message.queue_id,
            positive,
            reason,
            message.attempts == 0,
            source,
            forwarded,
        )
        rare = message.rare
        if rare is not None:
            effect.receivers = rare.receivers
        if positive and message.marks & MARK_SAVING:
            message.rarely().held_confirm = effect
        else:
            self._core.tally.count_confirms(1, positive)
            self._core.out.append(effect)

    def _save(self, queue: Queue, message: Message) -> bool:
        """Ask the storage to save a message, once; a queue that stores nothing saves nothing.

        Return False if the storage fails or is too busy, or the queue's disk limit is reached.
        """
        if message.marks & (MARK_SAVED | MARK_SAVING) or not queue.discipline.stores:
            return True
        if queue.hooks & HOOK_SAVE:
            try:
                if not queue.handler.save_message(queue, message):
                    return True
            except Exception as error:  # noqa: BLE001 - user code hurts its own message only
                self.apply(queue, message, self._failed(queue, message, error))
                return True
        if queue.options.ephemeral or queue.temporary:
            return True
        if not self._core.has_room_to_save(message.size):
            return False
        if not queue.saves and not queue.has_disk_for(message):
            return False  # if all are saved, the room was checked when it arrived
        self.saver.save(queue, message)
        return True

    def will_save(self, queue: Queue, message: Message, decision: Decision) -> bool:
        """Whether a message of a batch is saved with the batch, after the *decision* of its queue's
        handler."""
        if not decision.save or not queue.discipline.stores or not self._core.stores:
            return False
        if queue.options.ephemeral or queue.temporary:
            return False
        if queue.hooks & HOOK_SAVE:
            try:
                return queue.handler.save_message(queue, message)
            except Exception:  # noqa: BLE001 - user code hurts its own batch only
                self.count_error(queue)
                return False
        return True

    # --- Entering and leaving the queue ----------------------------------------------------------

    def make_room(self, queue: Queue, size: int, deferred: bool) -> int:
        """0 if a message of *size* bytes can enter, else the result code to answer (F75).

        The messages that have waited longest make way if the queue's options say so, and a cached
        message for one that is not *deferred*.  A message that is too large for the empty queue
        displaces nothing, nor does one for which the server has no room: others need that room.

        Messages that are only in memory make room on disk, too, because as many bytes return from
        there.
        """
        replaced = None if deferred else self.replaced_in(queue)
        problem = self.problem_of_push(queue, size, False, replaced)
        if problem != RESULT_LIMIT_EXCEEDED or queue.options.when_full == REFUSE:
            return problem
        if size > queue.size_cap or size > queue.byte_cap or queue.is_too_large_for_disk(size):
            return problem
        made = 0
        for _ in range(_MOST_DISPLACED):
            oldest = queue.take_oldest()
            if oldest is None:
                break
            if not oldest.marks & (MARK_SAVED | MARK_SAVING):
                made += oldest.size
            self._displace(queue, oldest)
            problem = self.problem_of_push(queue, size, made >= size, None)
            if problem != RESULT_LIMIT_EXCEEDED:
                break
        if queue.spilled:
            self._core.refill(queue)
        return problem

    def _displace(self, queue: Queue, message: Message) -> None:
        """Drop a message, or move it to the dead letters, to make room for another."""
        self._core.budget -= 1
        queue.counters.displaced += 1
        if queue.options.when_full == DEAD_LETTER:
            self._give_up(queue, message, "full")
            return
        if message.marks & (MARK_WANTS | MARK_CONFIRMED) == MARK_WANTS:
            self.confirm(message, False, _NO_ROOM, "", None)
        self.drop(queue, message)

    def settle(self, queue: Queue, message: Message) -> None:
        """End the accounts of a message; the caller has counted its outcome."""
        self._flights.let_go(queue, message)
        if self._forget(queue, message):
            self._core.schedule(queue)

    def dispose(self, queue: Queue, message: Message) -> None:
        """Settle a message that has been cleared."""
        self._core.budget -= 1
        self._flights.take_from_all(queue, message, LAPSE_REMOVED)
        self.settle(queue, message)

    def _forget(self, queue: Queue, message: Message) -> bool:
        """Remove a settled message from all tables, and have the storage erase its copies.

        Return whether other messages waited for it that may be sent now.
        """
        marks = message.marks
        message.marks = marks | MARK_GONE
        freed = False
        if marks & _LINKED:
            if marks & MARK_SHARED:
                forget(queue, message)
            if marks & MARK_KEYED:
                freed = let_go(self._core, queue, message, True)
            if marks & MARK_AWAITS:
                tell_held(self._core, message)
        if marks & (MARK_SAVED | MARK_SAVING):
            self._flights.unstore(queue, message.size)
            self.saver.erase(queue, message)
        elif marks & MARK_OWED:
            self.debts.settle(message)
        return freed

    def wait_last(self, queue: Queue, message: Message) -> None:
        """Append a message to its priority's list: in memory, or on disk if the memory is full.

        If the storage fails or the disk limit is reached (seed 2387), it stays in memory
        nevertheless, maybe out of order: nothing is lost.
        """
        if message.attempts == 0:
            message.sent_at = self._core.now  # it waits since now
        if not queue.bounded or not queue.is_over(message, True) or message.marks & MARK_KEYED:
            queue.put_last(message)
        elif queue.options.ephemeral:
            queue.counters.overflowed += 1
            if message.marks & (MARK_WANTS | MARK_CONFIRMED) == MARK_WANTS:
                self.confirm(message, False, _NO_ROOM, "", None)
            self.drop(queue, message)
        elif self._core.storage_ok and self._core.stores and queue.has_disk_for(message):
            self.saver.spill(queue, message)
        else:
            queue.put_last(message)

    def finish(self, queue: Queue, message: Message) -> None:
        """Settle a consumed message, and notify the nodes that have it, too (F63)."""
        if message.marks & MARK_SHARED:
            tell(self._core.out, self._core.channels, queue, message)
        self._flights.finish(queue, message)
        self._forget(queue, message)

    def settle_elsewhere(self, queue: Queue, message: Message, positive: bool) -> None:
        """Settle a message that another node has settled.

        A producer that still waits for its confirm gets it here, because this is its node.
        """
        if message.marks & (MARK_WANTS | MARK_CONFIRMED) == MARK_WANTS:
            self.confirm(message, positive, NACK_NONE, "", None)
        self._flights.finish(queue, message)
        if self._forget(queue, message):
            self._core.schedule(queue)

    def drop(self, queue: Queue, message: Message) -> None:
        """Settle a message as dropped."""
        self._flights.drop(queue, message)
        if self._forget(queue, message):
            self._core.schedule(queue)

    def forget(self, queue: Queue, message: Message) -> None:
        """End the accounts of a message that was not accepted: only the storage may have it."""
        message.marks |= MARK_GONE
        if message.marks & (MARK_SAVED | MARK_SAVING):
            self._flights.unstore(queue, message.size)
            self.saver.erase(queue, message)

    def expire(self, queue: Queue, message: Message) -> bool:
        """Settle an expired message (F97); return False if its handler lets it wait on.

        Then it waits without a timeout, and this counts as a put-back (F98).
        """
        if queue.hooks & HOOK_MESSAGE_TIMEOUT:
            decision = self.ask(HOOK_MESSAGE_TIMEOUT, queue, message, None, None)
            self.apply_silence(queue, message, decision)
            rare = message.rarely()
            if decision.put_back != PUT_BACK_NO and rare.put_backs < queue.put_back_limit:
                rare.put_backs += 1
                rare.expires_at = NEVER
                queue.counters.requeued += 1
                return False
        if queue.options.expired_to_dead_letter:
            self._give_up(queue, message, "expired")
        else:
            queue.counters.expired += 1
            self.settle(queue, message)
        return True

    def put_back(self, queue: Queue, message: Message, where: int) -> None:
        """Let a message wait again, unless it was put back too often (F98).

        The limit counts put-backs, so a message is sent at most one time more often.  A message
        that was released with a delay is deferred.
        """
        if message.marks & MARK_DECIDED:
            self.settle_elsewhere(queue, message, not message.marks & MARK_NEGATIVE)
            return
        counts = not message.marks & MARK_UNCOUNTED
        message.marks &= ~(MARK_BACK | MARK_ANSWERED | MARK_NEGATIVE | MARK_UNCOUNTED)
        rare = message.rarely()
        if counts and rare.put_backs >= queue.put_back_limit:
            self._give_up(queue, message, "put-backs")
            return
        if queue.discipline.replaces:
            latest = queue.latest()
            if latest is not None and latest.sequence > message.sequence:
                self._flights.count_cleared(queue, 1)
                self.settle(queue, message)
                return
            self.make_way(queue, message)
        rare.put_backs += counts
        queue.counters.requeued += 1
        if rare.due_at <= self._core.now:
            rare.due_at = AT_ONCE
        if rare.due_at > self._core.now:
            if where == PUT_BACK_START:
                message.marks |= MARK_BACK_START  # when it is due
            self._leave_place(queue, message)
            self.saver.defer(queue, message, rare.due_at)
        elif where == PUT_BACK_START:
            queue.put_first(message)
        else:
            self._leave_place(queue, message)
            self.wait_last(queue, message)
        self._core.arm(queue)

    def _leave_place(self, queue: Queue, message: Message) -> None:
        """Save a copy of a message at the end of its queue, unless it must keep its position,
        because it has locked its key."""
        if not message.marks & MARK_KEYED or leave_place(self._core, queue, message):
            self.saver.save_again(queue, message)

    def make_way(self, queue: Queue, coming: Message) -> None:
        """Clear a cache's waiting messages for one that replaces them (contradiction 28).

        A single message is settled immediately, as its replacement may need the room.  There are
        more only if the queue has just become a cache.
        """
        if not queue.discipline.replaces:
            return
        waiting = queue.waiting_count()
        if waiting != 0:
            trash = self._flights.clear_waiting(queue)
            reindex(queue, coming)
            if waiting == 1:
                replaced = trash.take()
                assert replaced is not None
                self.dispose(queue, replaced)
            else:
                self._core.trash.append(trash)
        if queue.spilled:
            self.saver.clear_tails(queue, True, True)

    def mark_released(self, message: Message, put_back: int, due_at: float, counted: bool) -> None:
        """Record that a consumer has released a message; it is put back as by ``mark_put_back``.

        It counts as a put-back if any of its consumers counts it, and it is not sent before the
        latest of their delays is over.
        """
        first = not message.marks & MARK_BACK
        uncounted = not counted and (first or message.marks & MARK_UNCOUNTED != 0)
        self.mark_put_back(message, put_back)
        if uncounted:
            message.marks |= MARK_UNCOUNTED
        rare = message.rarely()
        rare.due_at = max(rare.due_at, due_at)

    def put_back_marked(self, queue: Queue, message: Message) -> None:
        """Put a message back where its marks say."""
        where = PUT_BACK_START if message.marks & MARK_BACK_START else PUT_BACK_END
        self.put_back(queue, message, where)

    def mark_put_back(self, message: Message, put_back: int) -> None:
        """Record that a message is put back when its last delivery is closed."""
        if put_back != PUT_BACK_NO:
            message.marks &= ~MARK_UNCOUNTED
            mark = MARK_BACK_START if put_back == PUT_BACK_START else MARK_BACK_END
            message.marks |= mark

    def _give_up(self, queue: Queue, message: Message, reason: str) -> None:
        """Move a message to the dead letter queue, or drop it if that is not possible.

        No handler is called, so a producer that still waits for its confirm gets a negative one
        here.
        """
        if message.marks & (MARK_WANTS | MARK_CONFIRMED) == MARK_WANTS:
            self.confirm(message, False, NACK_ERROR, "", None)
        target_name = queue.options.dead_letter
        hops = message.rarely().hops + 1
        if target_name is None or hops > self._core.limits.max_dead_letter_hops:
            self.drop(queue, message)
            return
        target = self._directory.open_queue(target_name[0], target_name[1], None)
        if target is None or target is queue or not target.discipline.stores:
            self.drop(queue, message)
            return
        replaced = self.replaced_in(target)
        more = 0 if replaced is None else -1
        more_bytes = 0 if replaced is None else -replaced.size
        problem = self.problem_of_queue(target, message.size, more, more_bytes)
        if problem not in (RESULT_OK, RESULT_BUSY) or (
            message.marks & (MARK_SAVED | MARK_SAVING)
            and target.disk_bytes + message.size + more_bytes > target.disk_cap
        ):
            self.drop(queue, message)
            return
        queue.counters.dead += 1
        self._core.counters.dead_lettered += 1
        letter = moved_letter(message, reason, queue, target, self._core.wires)
        letter.rarely().hops = hops
        self._flights.admit(target, letter)
        if not target.temporary:  # otherwise the storage does not know the queue
            self._save_letter(queue, message, target, letter, problem == RESULT_BUSY)
        self.settle(queue, message)
        self.make_way(target, letter)
        self.wait_last(target, letter)
        self._core.arm(target)
        self._core.schedule(target)

    def _save_letter(
        self, queue: Queue, message: Message, target: Queue, letter: Message, is_busy: bool
    ) -> None:
        """Have a dead letter saved, now or later, if its queue is durable or its message was saved.

        :param is_busy: whether the storage fails or is too busy.
        """
        letter.marks |= MARK_OWED
        rare = message.rarely()
        if message.marks & (MARK_SAVED | MARK_SAVING) or rare.old:
            self.saver.move(queue, message, target, letter)
            self.saver.save(target, letter)
        elif target.saves and is_busy:
            self.debts.add(target, letter)
        elif target.saves:
            self.saver.save(target, letter)
