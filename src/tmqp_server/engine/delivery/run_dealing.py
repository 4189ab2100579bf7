"""Carries out a run in a queue that gives each message to one consumer, or lets it wait for one.

It is used for runs of producers (``push_runs.py``) and for runs that feeds copy (``feed_runs.py``).
Each consumer gets its share in one ``DeliverRun`` (``dealing.py``), messages that no consumer can
take now wait in line, and if the queue is durable, one ``AppendRun`` requests all of them from the
storage.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import DECIDE_ACK_NEGATIVE
from tmqp_server.engine.commands import PushRun
from tmqp_server.engine.core import Core, PendingRun
from tmqp_server.engine.delivery.dealing import Deal, deal
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.effects import AppendRun, ConfirmRun, DeliverRun
from tmqp_server.engine.events import MESSAGE_PRODUCED
from tmqp_server.engine.flights import Flights, waits_plainly
from tmqp_server.engine.model.client import Client, Origin
from tmqp_server.engine.model.delivery import HOOK_SAVE, Decision
from tmqp_server.engine.model.message import (
    MARK_CONFIRMED,
    MARK_HIGH,
    MARK_SAVING,
    MARK_TIMED,
    MARK_TOGETHER,
    MARK_WANTS,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.selection import EVERYBODY

__all__ = ["RunDealer", "marks_of"]

#: Fewer messages wait separately, because a part takes memory, too.
_LEAST_PART: Final = 8


class RunDealer:
    """Distributes runs among the consumers of a queue, or lets them wait."""

    __slots__ = ("_core", "_flights", "_workflow")

    def __init__(self, core: Core, flights: Flights, workflow: Workflow) -> None:
        self._core = core
        self._flights = flights
        self._workflow = workflow

    def goes_to_one(self, queue: Queue, run: PushRun) -> bool:
        """Whether each message goes to one consumer, and any consumer may get it."""
        return queue.single or (queue.keyed and queue.direct and run.wire.is_keyless())

    def can_be_dealt(self, queue: Queue) -> bool:
        """Whether each message would go to one consumer immediately, or wait for one."""
        core = self._core
        return (
            not queue.options.hide_client_names
            and (queue.saves or not queue.bounded)
            and not core.shares_decisions
            and not core.notices.mask & MESSAGE_PRODUCED
            and queue.discipline.sends
            and queue.held is None
            and not queue.waits
            and not queue.runnable
            and not queue.fleeting
            and not queue.spilled
            and queue.message_timeout_s == 0.0
            and (queue.waiting or not (queue.high_count or queue.regular_count))
        )

    def lines_up(self, queue: Queue) -> bool:
        """Whether each message would only wait in memory."""
        core = self._core
        return (
            waits_plainly(queue)
            and not core.shares_decisions
            and not core.notices.mask & MESSAGE_PRODUCED
            and not queue.runnable
            and not (queue.discipline.sends and queue.can_send())
        )

    def line_up(
        self, queue: Queue, run: PushRun, origin: Origin, marks: int, told: bool, now: float
    ) -> None:
        """Let all messages wait, and confirm them if *told*."""
        core = self._core
        count = run.count
        if run.wire.keeps() and count >= _LEAST_PART:
            self._flights.line_up_whole(queue, run, origin, marks)
        else:
            self._flights.line_up_run(queue, run, run.wire.contents(), 0, origin, marks)
        if told:
            core.tally.count_confirms(count)
            ids = run.wire.message_ids()
            core.out.append(ConfirmRun(origin.number, ids, run.channel, run.queue_id))
        queue.sequence += count
        queue.counters.count_dealt(count, 0, queue.options.request_acknowledge, now)
        self._workflow.go_on(queue, now)

    def can_keep(self, queue: Queue, run: PushRun, decision: Decision) -> bool:
        """Whether the storage would be asked to save each message, without calling a handler."""
        return (
            decision.allow
            and decision.acknowledge != DECIDE_ACK_NEGATIVE
            and not queue.hooks & HOOK_SAVE
            and queue.high_tail is None
            and queue.regular_tail is None
            and queue.bytes + run.size < queue.memory_bytes
            and queue.disk_bytes + run.size <= queue.disk_cap
            and self._core.has_room_to_save(run.size)
        )

    def plan(self, queue: Queue, run: PushRun, takers: int) -> Deal | None:
        """The distribution of a run among *takers*, a mask of places; None if it must be divided.
        Nothing is changed."""
        count = run.count
        wants = queue.options.request_acknowledge
        if queue.waiting_count():
            found: Deal | None = Deal(queue.turn)
        else:
            found = deal(queue, count, wants, self._flights, takers)
        if found is not None and found.dealt < count and takers != EVERYBODY:
            return None  # messages that no consumer can take are parked
        if found is not None and queue.saves:
            waiting = queue.high_count if run.high_priority else queue.regular_count
            if not wants or waiting + count - found.dealt > queue.memory_limit:
                return None  # each separately, or on disk only
        return found

    def carry_out(
        self,
        queue: Queue,
        run: PushRun,
        found: Deal,
        contents: tuple[list[str], list[int], list[object]],
        origin: Origin,
        marks: int,
        told: ConfirmRun | None,
        now: float,
    ) -> bool:
        """Send each message to the consumer whose turn it is; those that no consumer can take wait.

        *told* is the confirm that the producer gets before.  If one of them would be a duplicate,
        return False and do nothing.
        """
        flights = self._flights
        count = run.count
        messages: list[Message] = []
        if found.dealt and queue.options.request_acknowledge:
            holders = _holders(found)
            taken = flights.take_off_run(queue, run, contents, holders, origin, marks, now)
            if taken is None:
                return False
            messages = taken
            _hold_shares(flights, queue, found, contents[0])
        if found.dealt < count:
            messages += flights.line_up_run(queue, run, contents, found.dealt, origin, marks)
        if queue.saves:
            self.keep(queue, run, origin, messages)
        if told is not None:
            self._core.tally.count_confirms(count)
            self._core.out.append(told)
        self._hand_out(queue, run, found, origin, now)
        if found.dealt < count:
            self._workflow.go_on(queue, now)
        return True

    def keep(self, queue: Queue, run: PushRun, origin: Origin, messages: list[Message]) -> None:
        """Ask the storage to save the messages of a run, as ``Saver`` does for one."""
        self._flights.store(queue, run.size)
        self.append(queue, run, origin, messages)

    def append(self, queue: Queue, run: PushRun, origin: Origin, messages: list[Message]) -> None:
        """The same for messages that the caller counts as on disk, or that need not be counted."""
        core = self._core
        core.last_ticket += 1
        ticket = core.last_ticket
        first = queue.sequence + 1
        core.tickets[ticket] = PendingRun(messages, queue, origin, run.size, first)
        core.unsynced_bytes += run.size
        queue.appended = queue.sequence + run.count
        core.out.append(AppendRun(ticket, run, messages, queue.channel_name, queue.key, first))

    def _hand_out(
        self, queue: Queue, run: PushRun, found: Deal, origin: Origin, now: float
    ) -> None:
        """Emit the deliveries of all shares, and count them."""
        flights = self._flights
        wants = queue.options.request_acknowledge
        out = self._core.out
        name = queue.channel_name
        sequence = queue.sequence + 1
        queue.sequence += run.count
        queue.turn = found.turn
        flights.skip(queue, found.skipped)
        queue.counters.count_dealt(run.count, found.dealt, wants, now)
        for share in found.shares:
            subscription = share.subscription
            out.append(
                DeliverRun(
                    subscription.alone,
                    run,
                    origin,
                    sequence,
                    name,
                    True,
                    wants,
                    share.start,
                    share.step,
                    share.stop,
                )
            )
            subscription.session.delivered += share.count
            if wants:
                flights.hold_run(subscription.session, share.count)
            if subscription.credit >= 0:
                subscription.credit -= share.count
                if subscription.credit == 0:
                    queue.audience.recount(subscription)


def marks_of(queue: Queue, run: PushRun, confirms: bool) -> int:
    """The initial marks of each message of a run."""
    marks = MARK_HIGH if run.high_priority else 0
    if run.wants_confirm:
        marks |= MARK_WANTS
    if confirms:
        marks |= MARK_CONFIRMED
    if queue.saves:
        marks |= MARK_SAVING | MARK_TOGETHER if confirms else MARK_SAVING
    return marks


def _holders(found: Deal) -> list[Client]:
    """The consumer of each message that is dealt, in order."""
    holders: list[Client] = [found.shares[0].subscription.session] * found.dealt
    for share in found.shares:
        client: Client = share.subscription.session
        holders[share.start : share.stop : share.step] = [client] * share.count
    return holders


def _hold_shares(flights: Flights, queue: Queue, found: Deal, ids: list[str]) -> None:
    """Record the dealt messages with consumers that have terms."""
    for share in found.shares:
        subscription = share.subscription
        if subscription.holds is None:
            continue
        timed: list[Message] = []
        for message_id in ids[share.start : share.stop : share.step]:
            message = queue.flights[message_id]
            subscription.hold(queue, message)
            if message.marks & MARK_TIMED:
                timed.append(message)
        if timed:
            flights.retime_run(queue, timed)
