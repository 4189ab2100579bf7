"""A message's way through the broker: pushed, acknowledged, timed out, expired, cleared.

Theory of operation.  ``receive`` accepts a message and sends it immediately if nothing prevents
that; otherwise it waits and the pump sends it later.  ``acknowledge`` and ``time_out`` close
deliveries.  All deliveries of one send pass are decided together: when the last of them is closed,
the message is put back if any decision requires that, and is settled otherwise.  So a message is
never waiting and in flight at the same time, and three consumers that refuse it cost one put-back,
not three.

*Release.* A consumer may release a delivery: then the message is put back without the handler, when
the last consumer that has it has answered.

*Disconnected consumers.* Deliveries stay in flight when their consumer disconnects, until their
acknowledgement timeout (F99), because the client may reconnect.  At the timeout the handler decides
as usual.  But if no consumer answered, all consumers that had the message have disconnected, and
the handler neither puts it back nor notifies the producer of a failure, then it is put back at the
front: no consumer could have processed it, so it must not be lost.
"""

from __future__ import annotations

from tmqp.constants import (
    DECIDE_ACK_NEGATIVE,
    PUT_BACK_NO,
    PUT_BACK_START,
    RESULT_FORBIDDEN,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp_server.engine.commands import Acknowledge, Extend, Release
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.done_confirms import confirm_done
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.pump import Pump
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.delivery.sharing import reindex, share
from tmqp_server.engine.delivery.shelving import read_ahead
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.events import MESSAGE_PRODUCED
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import (
    ALLOW,
    HOOK_ACKNOWLEDGED,
    HOOK_RECEIVED,
    HOOK_TIMED_OUT,
    SAVE,
    Decision,
)
from tmqp_server.engine.model.handlers import saving
from tmqp_server.engine.model.message import (
    MARK_ANSWERED,
    MARK_BACK,
    MARK_BACK_START,
    MARK_DECIDED,
    MARK_DONE_CONFIRMS,
    MARK_SAVING,
    MARK_SILENT,
    MARK_TIMED,
    MARK_UNTOLD,
    MARK_WANTS,
    Message,
    Timing,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session, Subscription
from tmqp_server.engine.model.timed import due_of, set_due, timing_of
from tmqp_server.engine.model.times import AT_ONCE, NEVER

__all__ = ["Workflow"]


class Workflow:
    """Handles messages from the push to the settlement."""

    __slots__ = ("_core", "_flights", "_outcomes", "_pump", "_sender")

    def __init__(
        self, core: Core, flights: Flights, outcomes: Outcomes, sender: Sender, pump: Pump
    ) -> None:
        self._core = core
        self._flights = flights
        self._outcomes = outcomes
        self._sender = sender
        self._pump = pump

    # --- Pushed ----------------------------------------------------------------------------------

    def receive(self, queue: Queue, message: Message, now: float) -> None:
        """Accept a message for which the queue has room."""
        outcomes = self._outcomes
        decision = queue.receipt_asked if message.marks & MARK_WANTS else queue.receipt
        if decision is None:
            decision = outcomes.ask(HOOK_RECEIVED, queue, message, None, None)
            if queue.saves:
                decision = saving(decision)
                assert decision is not None
        if queue.bounded and decision.allow and queue.is_over(message, False):
            self._receive_over(queue, message, decision, now)
            return
        if decision is not ALLOW:
            outcomes.apply(queue, message, decision)
            if not decision.allow:
                self._refused(queue, message, decision, now)
                return
        self._flights.take_in(queue, message, now)
        if self._core.shares_decisions:
            share(queue, message)
        if self._core.notices.mask & MESSAGE_PRODUCED:
            self._produced(queue, message)
        rare = message.rare
        if rare is not None and rare.due_at > now:
            if queue.feeds is not None:
                self._pump.feeder.arrive_deferred(queue, message, now)
                return
            self._outcomes.saver.defer(queue, message, rare.due_at)
            self._core.arm(queue)
            return
        self._arrive(queue, message, now)

    def _receive_over(self, queue: Queue, message: Message, decision: Decision, now: float) -> None:
        """The same for a queue that has no room in memory for the message.

        If the message goes to disk, the storage is asked before the producer is notified, so that a
        positive confirm waits for the answer.
        """
        outcomes = self._outcomes
        rare = message.rare
        self._flights.take_in(queue, message, now)
        if rare is not None and rare.due_at > now:
            outcomes.apply(queue, message, decision)
            if self._core.shares_decisions:
                share(queue, message)
            if self._core.notices.mask & MESSAGE_PRODUCED:
                self._produced(queue, message)
            outcomes.saver.defer(queue, message, rare.due_at)
            self._core.arm(queue)
            self._pump.resume(queue, now)
            return
        if queue.options.ephemeral:
            outcomes.wait_last(queue, message)
        else:
            if decision.save:
                outcomes.apply(queue, message, SAVE)
            outcomes.wait_last(queue, message)
            outcomes.apply(queue, message, decision)
        if self._core.notices.mask & MESSAGE_PRODUCED:
            self._produced(queue, message)
        self._pump.resume(queue, now)

    def receive_safe(self, queue: Queue, message: Message, decision: Decision, now: float) -> None:
        """Accept a message of a batch, whose room was reserved and whose copy, if any, is saved.

        The handler has decided before; nothing may be refused any more.
        """
        outcomes = self._outcomes
        outcomes.apply(queue, message, decision)
        if self._core.notices.mask & MESSAGE_PRODUCED:
            self._produced(queue, message)
        rare = message.rare
        if rare is not None and rare.expires_at <= now and outcomes.expire(queue, message):
            return
        if rare is not None and rare.due_at > now:
            self._outcomes.saver.defer(queue, message, rare.due_at)
            self._core.arm(queue)
        elif queue.options.ephemeral and queue.is_over(message, True):
            queue.put_last(message)  # its place was reserved
            self._pump.resume(queue, now)
        else:
            self._enter(queue, message, now)

    def _enter(self, queue: Queue, message: Message, now: float) -> None:
        """Let a message that was accepted earlier be sent when it is its turn."""
        if queue.feeds is not None:
            self._pump.feeder.wait(queue, message, now)
        else:
            self._arrive(queue, message, now)

    def _arrive(self, queue: Queue, message: Message, now: float) -> None:
        """Send a message now if none waits and a consumer can take it; otherwise let it wait."""
        if queue.feeds is not None:
            self._pump.feeder.arrive(queue, message, now)
            return
        discipline = queue.discipline
        if queue.high_count or queue.regular_count or queue.spilled:
            self._outcomes.make_way(queue, message)
            if not self._flights.line_up_packed(queue, message):
                self._outcomes.wait_last(queue, message)
            if not queue.runnable and (not queue.waiting or queue.chooses()):
                self._pump.pump(queue, now)
        elif not discipline.stores or (
            discipline.sends and queue.held is None and not queue.runnable and queue.can_send()
        ):
            self._sender.send(queue, message, now)
            if queue.waiting_count() != 0:
                self._pump.pump(queue, now)  # a decision has put it back immediately
            elif queue.fleeting and message.attempts == 0:
                # A broadcast that no consumer got was never in the queue.
                self._core.emptied.pop(queue.key, None)
            return
        else:
            self._outcomes.wait_last(queue, message)
            if discipline.sends and queue.held is None:
                self._pump.pump(queue, now)
        if message.rare is not None:
            self._core.arm(queue)

    def _refused(self, queue: Queue, message: Message, decision: Decision, now: float) -> None:
        """Handle a push that the handler does not allow: forget it, or let it wait if it is put
        back."""
        outcomes = self._outcomes
        if decision.put_back == PUT_BACK_NO or not queue.discipline.stores:
            self._flights.receive(queue, 1, now)
            outcomes.count_refused(queue, RESULT_UNACCEPTABLE)
            outcomes.dequeued(queue, message)
            outcomes.forget(queue, message)
            return
        self._flights.take_in(queue, message, now)
        if self._core.shares_decisions:
            share(queue, message)
        outcomes.make_way(queue, message)
        if decision.put_back == PUT_BACK_START:
            queue.put_first(message)
        else:
            outcomes.wait_last(queue, message)
        if not queue.runnable:
            self._pump.pump(queue, now)
        self._core.arm(queue)

    def _produced(self, queue: Queue, message: Message) -> None:
        """Report a message that was produced; if it is being saved, when the storage has answered
        (F130)."""
        if message.marks & MARK_SAVING:
            message.marks |= MARK_UNTOLD
        else:
            self._core.notify_message(queue, message)

    # --- Answered for ----------------------------------------------------------------------------

    def acknowledge(self, queue: Queue, session: Session, command: Acknowledge, now: float) -> None:
        """Handle a consumer's answer (F95)."""
        if not queue.hooks & HOOK_ACKNOWLEDGED and self._flights.answer_in_place(
            queue, session, command.message_id, command.positive, None
        ):
            if queue.high_count or queue.regular_count or queue.parked:
                self.go_on(queue, now)
        else:
            self.take_answer(queue, session, command.message_id, command.positive, command, now)

    def take_answer(
        self,
        queue: Queue,
        session: Session,
        message_id: str,
        positive: bool,
        command: Acknowledge | None,
        now: float,
        request: object = None,
    ) -> None:
        """The same; *command* may be None if the handler is not called; then *request* is the
        request to answer."""
        message = self._flights.answer(queue, session, message_id, positive)
        if message is None:
            if command is not None:
                request = command.request
            self.refuse_answer(queue, session, message_id, request)
            return
        if queue.hooks & HOOK_ACKNOWLEDGED and command is not None:
            outcomes = self._outcomes
            decision = outcomes.ask(HOOK_ACKNOWLEDGED, queue, message, session, command)
            if decision is not ALLOW:
                outcomes.apply_answer(queue, message, decision, session, command)
                outcomes.mark_put_back(message, decision.put_back)
        if message.holder is None and not message.holders:
            self._close(queue, message, now)
        elif queue.held is message and not message.marks & MARK_BACK:
            # The first answer releases the queue (F96), unless the message is put back to the
            # front.
            self._flights.release_queue(queue)
        self.go_on(queue, now)

    def judge(self, queue: Queue, message: Message, now: float) -> None:
        """Continue after an answer that came in a batch: it was recorded before, and so was whether
        the message is put back."""
        if message.holder is None and not message.holders:
            self._close(queue, message, now)
        elif queue.held is message and not message.marks & MARK_BACK:
            self._flights.release_queue(queue)
        self.go_on(queue, now)

    def release(self, queue: Queue, session: Session, command: Release, now: float) -> None:
        """Handle a release, without calling the handler."""
        message = self._flights.held_by(queue, session, command.message_id)
        if message is None:
            self.refuse_answer(queue, session, command.message_id, command.request)
            return
        self._flights.release(queue, message, session)
        self.mark_released(message, command, now)
        if message.holder is None and not message.holders:
            self._close(queue, message, now)
        self.go_on(queue, now)

    def mark_released(self, message: Message, command: Release, now: float) -> None:
        """Record how a consumer has released a message."""
        due_at = AT_ONCE
        if command.delay_ms > 0:
            due_at = now + min(command.delay_ms, self._core.limits.max_delay_ms) / 1000
        self._outcomes.mark_released(message, command.put_back, due_at, command.counted)

    def take_back(self, subscription: Subscription, now: float) -> None:
        """Handle the unanswered deliveries of a subscription that has ended: they are put back
        immediately, or time out.

        All of them are handled before anything is sent again, so they keep their order.  There are
        at most as many as a session may have in flight.
        """
        holds = subscription.holds
        assert holds is not None, "it has terms"
        subscription.holds = None
        client = subscription.session
        where = subscription.returns
        messages = list(holds)
        if where == PUT_BACK_START:
            messages.reverse()
        touched: dict[int, Queue] = {}
        for message in messages:
            queue = holds[message]
            assert isinstance(queue, Queue)
            if where == PUT_BACK_NO:
                self._let_time_out(queue, message, client, now)
                continue
            if not message.is_held_by(client):
                # A batch answers for it: if that fails, its time has begun.
                self._let_time_out(queue, message, client, now)
                continue
            touched[queue.key] = queue
            self._flights.release(queue, message, client)
            self._outcomes.mark_released(message, where, AT_ONCE, subscription.counts)
            if message.holder is None and not message.holders:
                self._close(queue, message, now)
        for queue in touched.values():
            self.go_on(queue, now)

    def _let_time_out(self, queue: Queue, message: Message, client: Client, now: float) -> None:
        """Start the queue's timeout for a consumer that had none as long as it was joined."""
        timing = None if message.rare is None else message.rare.timing
        if timing is not None and timing.get(client.number, now) == NEVER:
            timing.set(client.number, now + queue.ack_timeout_s)
            self._flights.retime(queue, message)

    def miss(self, queue: Queue, count: int) -> None:
        """Count deliveries that a door did not pass on."""
        self._flights.miss(queue, count)

    def extend(self, queue: Queue, session: Session, command: Extend, now: float) -> int:
        """Change a consumer's time to answer; return the result code."""
        message = self._flights.held_by(queue, session, command.message_id)
        if message is None:
            return _code_of_nothing(queue, command.message_id)
        due = now + command.timeout_ms / 1000
        if command.most_ms:
            due = min(due, message.sent_at + command.most_ms / 1000)
        set_due(message, session, due)
        self._flights.retime(queue, message)
        return RESULT_OK

    def refuse_answer(
        self, queue: Queue | None, session: Session, message_id: str, request: object
    ) -> None:
        """Answer, if there is a *request*, that the session does not have the message."""
        if request is not None:
            code = RESULT_NOT_FOUND if queue is None else _code_of_nothing(queue, message_id)
            self._core.out.append(Reply(session.number, request, code))

    def go_on(self, queue: Queue, now: float) -> None:
        """Let a queue, and the pulls that wait for it, continue after an answer."""
        if (queue.high_count or queue.regular_count) and not queue.runnable:
            self._pump.pump(queue, now)
        if queue.parked:
            self._core.release_pull(queue)

    def _close(self, queue: Queue, message: Message, now: float) -> None:
        """Close a sending whose last delivery was closed: the message is put back or settled."""
        self._flights.land(queue, message)
        marks = message.marks
        if marks & MARK_BACK and queue.discipline.stores:
            self._outcomes.put_back_marked(queue, message)
        elif marks & MARK_ANSWERED:
            if marks & MARK_DONE_CONFIRMS:
                confirm_done(self._core, queue, message)
            self._outcomes.finish(queue, message)
        else:
            self._outcomes.drop(queue, message)

    # --- Time ------------------------------------------------------------------------------------

    def wake(self, queue: Queue, now: float) -> None:
        """Do what is due in a queue, within the budget."""
        core = self._core
        if queue.closed:
            return
        for message in queue.overdue(now, core.budget):
            core.budget -= 1
            self.time_out(queue, message, now)
        while queue.timed is not None and core.budget > 0:
            timed = queue.timed.overdue(now, queue.ack_timeout_s)
            if timed is None:
                break
            core.budget -= 1
            self.time_out(queue, timed, now)
        if core.budget > 0:
            self._expire_due(queue, now)
        while core.budget > 0:
            deferred = self._flights.take_deferred(queue, now)
            if deferred is None:
                break
            core.budget -= 1
            rare = deferred.rarely()
            rare.due_at = AT_ONCE
            if deferred.marks & MARK_DECIDED:
                self._outcomes.settle_elsewhere(queue, deferred, True)
                continue
            if rare.expires_at <= now and self._outcomes.expire(queue, deferred):
                continue
            if deferred.marks & MARK_BACK:
                deferred.marks &= ~MARK_BACK
                if queue.discipline.stores:
                    self._outcomes.make_way(queue, deferred)
                    queue.put_first(deferred)
                    self._pump.resume(queue, now)
                    continue
            self._enter(queue, deferred, now)
        if not queue.runnable:
            self._pump.pump(queue, now)
        core.release_pull(queue)
        self._flights.shrink(queue)
        if queue.deferred.shelf is not None:
            read_ahead(core, queue)
        core.arm(queue)
        if queue.spilled:
            core.refill(queue)

    def time_out(self, queue: Queue, message: Message, now: float) -> None:
        """Handle a timeout: no consumer that still has the message answered in time (F94, F99)."""
        if message.rare is not None and message.rare.settling is not None:
            self._spare(queue, message, message.rare.settling, now)
        holders: list[Client] = []
        if message.holder is not None:
            holders.append(message.holder)
        elif message.holders is not None:
            holders.extend(message.holders.values())
        timing: Timing | None = None
        if message.marks & MARK_TIMED:
            timing = timing_of(message)
            timeout_s = queue.ack_timeout_s
            holders = [each for each in holders if due_of(message, timing, each, timeout_s) <= now]
        all_gone = True
        told = False
        outcomes = self._outcomes
        for client in holders:
            self._flights.time_out(queue, message, client)
            if client.alive:
                all_gone = False
            if queue.hooks & HOOK_TIMED_OUT:
                decision = outcomes.ask(HOOK_TIMED_OUT, queue, message, client, None)
                if decision is not ALLOW:
                    outcomes.apply_silence(queue, message, decision)
                    outcomes.mark_put_back(message, decision.put_back)
                    told = told or decision.acknowledge == DECIDE_ACK_NEGATIVE
        if timing is not None:
            if told or not all_gone:
                message.marks |= MARK_SILENT
            told = message.marks & MARK_SILENT != 0
            if message.holder is not None or message.holders:
                # The other consumers have their own time.
                if queue.held is message and not message.marks & MARK_BACK:
                    self._flights.release_queue(queue)
                self._flights.retime(queue, message)
                return
        if all_gone and not told and not message.marks & (MARK_BACK | MARK_ANSWERED):
            message.marks |= MARK_BACK_START
        self._close(queue, message, now)

    def _spare(self, queue: Queue, message: Message, settling: dict[int, None], now: float) -> None:
        """Give more time to consumers whose answers are in unfinished batches."""
        holders = message.holders
        for number in settling:
            client = message.holder if holders is None else holders.get(number)
            if client is not None and client.number == number:
                timing = None if message.rare is None else message.rare.timing
                due = message.sent_at + queue.ack_timeout_s
                if timing is not None:
                    due = timing.get(number, due)
                if due <= now:
                    set_due(message, client, now + queue.ack_timeout_s)

    def _expire_due(self, queue: Queue, now: float) -> None:
        """Settle waiting messages that have expired (F97)."""
        core = self._core
        expired = queue.take_expired(now, core.budget)
        if not expired:
            return
        for message in expired:
            core.budget -= 1
            if not self._outcomes.expire(queue, message):
                queue.keep(message)
        queue.tidy()

    # --- Cleared ---------------------------------------------------------------------------------

    def clear(self, queue: Queue, high_priority: bool, regular: bool, in_flight: bool) -> None:
        """Clear messages of a queue; they are disposed of in portions (F58, F92)."""
        if queue.spilled:
            self._outcomes.saver.clear_tails(queue, high_priority, regular)
            if queue.fleeting:
                self._core.note_emptied(queue)
        trash = self._flights.clear(queue, high_priority, regular, in_flight)
        self._core.trash.append(trash)
        reindex(queue)
        self._core.release_pull(queue)

    def reconfigured(self, queue: Queue, was: int, now: float) -> None:
        """Apply changed options to stored messages and those in flight (F92)."""
        if queue.discipline.refuses and queue.options.status != was:
            self.clear(queue, True, True, True)
        if not queue.waits:
            self._flights.release_queue(queue)
        if queue.discipline.replaces and queue.options.status != was:
            self._keep_latest(queue)
        if not queue.runnable:
            self._pump.pump(queue, now)
        self._core.release_pull(queue)
        self._core.arm(queue)
        self._core.refill(queue)

    def _keep_latest(self, queue: Queue) -> None:
        """Clear all waiting messages except the newest (F112)."""
        latest = queue.latest()
        if latest is None or queue.waiting_count() == 1:
            return
        queue.take_newest(not latest.high_priority)
        self._outcomes.make_way(queue, latest)
        queue.put_last(latest)


def _code_of_nothing(queue: Queue, message_id: str) -> int:
    """The result code for a session that does not have this message; others may have it."""
    if queue.flight(message_id) is not None or message_id in queue.duplicates:
        return RESULT_FORBIDDEN
    return RESULT_NOT_FOUND
