"""Runs: consecutive pushes, or acknowledgements, for one queue, handled together if possible.

Theory of operation.  A queue that keeps nothing and does not wait (a broadcast, or any queue
without acknowledgements whose consumers take everything immediately) only has to count each
message.  So a door may pass messages that differ only in parts that the door alone reads as one
``PushRun``, and :class:`RunIntake` accepts all of them together if each would be sent immediately:
one or two ``DeliverRun`` send them, and the counters are the same as after separate pushes.  If the
only consumer must acknowledge, each message is also registered as in flight; if the queue is
durable, one ``AppendRun`` with one ticket saves them, whose ``Synced`` releases one ``ConfirmRun``
(rule 1).

If each message goes to one consumer (round robin, first acquirer), the run is *dealt*
(``dealing.py``): each consumer gets its share in one ``DeliverRun``, and messages that no consumer
can take now are put in line together.

If consumers have filters, the same applies to a run of messages that are equal for the filters:
consumers that accept the first message get all.

A run may be *mixed*: its messages are for several queues of one channel, or have both priorities.
It is handled as a whole if each message is sent to all consumers, or to the only one, which must
acknowledge it, and divided otherwise.

If a single message might need separate handling (because a limit is near, a producer must be
notified, a handler must be called, or a consumer is slow), the run is *divided*: its pushes are
carried out one by one.

Acknowledgements (``AcknowledgeRun``) are always handled one by one; their common parts, the
consumer and the queue, are looked up once, or when another queue begins, and one ``EraseRun``
settles the saved messages in the storage.
"""

from __future__ import annotations

from typing import Final, final

from tmqp._compat import mypyc_attr
from tmqp.constants import DECIDE_ACK_NONE
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import AcknowledgeRun, PushRun
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.feed_runs import FeedRuns
from tmqp_server.engine.delivery.run_dealing import RunDealer, marks_of
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.effects import ConfirmRun, DeliverRun, EraseRun
from tmqp_server.engine.events import MESSAGE_PRODUCED
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.delivery import (
    ACKNOWLEDGE,
    ALLOW,
    HOOK_ACKNOWLEDGED,
    Decision,
)
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.recipients import Recipients
from tmqp_server.engine.model.selection import EVERYBODY
from tmqp_server.engine.model.sessions import Session

__all__ = ["RunIntake"]

#: The contents of a run that nothing needs to read.
_NO_CONTENTS: Final[tuple[list[str], list[int], list[object]]] = ([], [], [])


@mypyc_attr(acyclic=True)
@final
class _Share:
    """The number of messages of a mixed run that go into one of its queues."""

    __slots__ = ("pushes", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.pushes = 0


class RunIntake:
    """Handles runs."""

    __slots__ = ("_core", "_dealer", "_feeds", "_flights", "_workflow")

    def __init__(self, core: Core, flights: Flights, workflow: Workflow) -> None:
        self._core = core
        self._flights = flights
        self._workflow = workflow
        self._dealer = dealer = RunDealer(core, flights, workflow)
        self._feeds = FeedRuns(core, flights, dealer)

    def push(self, run: PushRun, now: float) -> bool:
        """Carry out a run as a whole; if that is not possible, return False and do nothing.

        The result is the same as that of separate pushes.  Each message would be settled before the
        next one enters, so there must be room only for the largest.
        """
        if run.is_mixed:
            return self._push_mixed(run, now)
        core = self._core
        session = core.sessions.get(run.session)
        channel = core.channels.find(run.channel)
        queue = None if channel is None else channel.queues.get(run.queue_id)
        if session is None or queue is None:
            return False
        decision = _receipt(queue, run)
        if not self._has_room(queue, run):
            return False
        if queue.feeds is not None:
            return self._feeds.push(queue, session, run, now)
        to_one = self._dealer.goes_to_one(queue, run)
        if not (self._dealer.can_be_dealt(queue) if to_one else self._goes_through(queue)):
            return self._line_up(queue, session, run, now)
        audience = queue.audience
        mask = self._mask_of(queue, session, run) if audience.filters else 0
        if mask < 0:
            return False
        confirms = decision is ACKNOWLEDGE
        if queue.saves:
            if decision is None or not self._dealer.can_keep(queue, run, decision):
                return False
            confirms = decision.acknowledge != DECIDE_ACK_NONE
        elif confirms:
            if session.number in audience.subscriptions:
                return False  # each confirm must come before the producer's own delivery
        elif decision is not ALLOW:
            return False
        if to_one:
            return self._deal(queue, session, run, mask, confirms, now)
        if audience.stale:
            audience.refresh()
        chosen = audience.chosen_by(mask) if audience.filters else None
        numbers = audience.everyone if chosen is None else chosen.numbers
        if queue.options.request_acknowledge and numbers:
            only = audience.only if chosen is None else chosen.only()
            if only is None or not self._track(queue, session, only, run, confirms, now):
                return False
        elif queue.saves:
            return False
        elif confirms:
            self._confirm(session, run, run.wire.message_ids())
        if chosen is None:
            self._send(queue, session, run, now)
        else:
            self._send_chosen(queue, session, run, chosen, now)
        session.pushed += run.count
        return True

    def _line_up(self, queue: Queue, session: Session, run: PushRun, now: float) -> bool:
        """Let all messages of a run wait; if each needs separate handling, return False and do
        nothing."""
        decision = _receipt(queue, run)
        confirms = decision is ACKNOWLEDGE
        if not (confirms or decision is ALLOW) or not self._dealer.lines_up(queue):
            return False
        if not self._has_room_for_all(queue, run):
            return False
        marks = marks_of(queue, run, confirms)
        self._dealer.line_up(queue, run, session.origin, marks, confirms, now)
        session.pushed += run.count
        return True

    def _push_mixed(self, run: PushRun, now: float) -> bool:
        """The same for a run that goes into several queues or has both priorities.

        All queues of a channel have the same consumers, and each message is sent to all of them
        immediately, so the order is that of arrival.  The queues must have the same confirms and
        acknowledgements.
        """
        core = self._core
        session = core.sessions.get(run.session)
        channel = core.channels.find(run.channel)
        if session is None or channel is None or channel.audience.filters:
            return False
        audience = channel.audience
        if audience.stale:
            audience.refresh()
        shares = _shares_of(channel, run)
        if shares is None:
            return False
        first = shares[0].queue
        wants = first.options.request_acknowledge
        receipt = _receipt(first, run)
        confirms = receipt is ACKNOWLEDGE
        if not (confirms or receipt is ALLOW):
            return False
        for share in shares:
            queue = share.queue
            # Each message must be sent to all immediately, and none may have to be saved.
            if (
                queue.options.request_acknowledge != wants
                or _receipt(queue, run) is not receipt
                or queue.feeds is not None
                or queue.single
                or queue.saves
                or not self._has_room(queue, run)
                or not self._goes_through(queue)
            ):
                return False
        if confirms and session.number in audience.subscriptions:
            return False  # each confirm must come before the producer's own delivery
        if wants and audience.everyone:
            if not self._track_mixed(shares, session, audience.only, run, confirms, now):
                return False
        elif confirms:
            self._confirm(session, run, run.wire.message_ids())
        consumers = len(audience.everyone)
        deaf = audience.deaf
        for share in shares:
            queue, count = share.queue, share.pushes
            run.sequences[queue.queue_id] = queue.sequence + 1
            queue.sequence += count
            queue.counters.count_run(count, consumers, wants, now)
            if deaf:
                self._flights.skip(queue, count * deaf)
        self._send_out(first, session, run, audience.first, audience.rest, wants)
        if consumers:
            audience.fanouts += run.count
        session.pushed += run.count
        return True

    def _track_mixed(
        self,
        shares: list[_Share],
        session: Session,
        only: Client | None,
        run: PushRun,
        confirms: bool,
        now: float,
    ) -> bool:
        """Like ``_track``, for a mixed run into queues that are not durable."""
        if only is None or run.count >= self._flights.room(only):
            return False
        queues: dict[int, Queue] = {}
        for share in shares:
            queue = share.queue
            if queue.message_timeout_s > 0.0 and queue.discipline.stores:
                return False
            queues[queue.queue_id] = queue
        contents = run.wire.contents()
        marks = marks_of(queues[run.queue_id], run, confirms)
        origin = session.origin
        if not self._flights.take_off_mixed(queues, run, contents, only, origin, marks, now):
            return False
        if confirms:
            self._confirm(session, run, contents[0])
        return True

    def _confirm(self, session: Session, run: PushRun, ids: list[str]) -> None:
        """Send the producer the confirms of all messages."""
        core = self._core
        core.tally.count_confirms(run.count)
        core.out.append(ConfirmRun(session.number, ids, run.channel, run.queue_id, run.queues))

    def _mask_of(self, queue: Queue, session: Session, run: PushRun) -> int:
        """The mask of all messages of a run by the consumers' filters; -1 if each must be examined
        separately, or if others wait before them."""
        selection = queue.audience.selection
        assert selection is not None, "there are filters"
        if selection.family is None or queue.high_count or queue.regular_count:
            return -1
        wire = run.wire.sample(selection.family)
        if wire is None:
            return -1
        sample = Message("", session.origin, run.channel, run.queue_id, run.largest, wire, 0, 0)
        return selection.mask_of_all(sample)

    def _has_room(self, queue: Queue, run: PushRun) -> bool:
        """Whether there is room for each message, with the earlier ones that may still be there."""
        if queue.options.request_acknowledge or queue.single:
            return self._has_room_for_all(queue, run)
        return run.largest <= queue.size_cap and self._has_room_for(queue, 1, run.largest)

    def _has_room_for_all(self, queue: Queue, run: PushRun) -> bool:
        return run.largest <= queue.size_cap and self._has_room_for(queue, run.count, run.size)

    def _has_room_for(self, queue: Queue, count: int, size: int) -> bool:
        """Whether there is room for so many more messages of so many bytes in total."""
        core = self._core
        return (
            queue.count + queue.spilled + count <= queue.count_cap
            and queue.bytes + size <= queue.byte_cap
            and core.total_bytes + size + count * MESSAGE_OVERHEAD_BYTES <= core.most_bytes
        )

    def _goes_through(self, queue: Queue) -> bool:
        """Whether each message would be sent to all consumers immediately."""
        core = self._core
        audience = queue.audience
        discipline = queue.discipline
        return (
            queue.plain
            and (audience.stalled == 0 or queue.skips)
            and audience.metered == 0
            and not queue.options.hide_client_names
            and (queue.saves or not queue.bounded)
            and not core.shares_decisions
            and not core.notices.mask & MESSAGE_PRODUCED
            and not (queue.high_count or queue.regular_count or queue.spilled)
            and (
                not discipline.stores
                or (
                    discipline.sends
                    and queue.held is None
                    and not queue.waits
                    and not queue.runnable
                    and audience.stalled < len(audience.subscriptions)
                )
            )
        )

    def _track(
        self,
        queue: Queue,
        session: Session,
        only: Client,
        run: PushRun,
        confirms: bool,
        now: float,
    ) -> bool:
        """Record each message of a run as in flight to the only consumer; ask the storage to save
        them if their queue is durable, otherwise confirm them.

        If one of them would be a duplicate, or exceed the consumer's window, return False and do
        nothing.
        """
        if queue.message_timeout_s > 0.0 and queue.discipline.stores:
            return False
        flights = self._flights
        if run.count >= flights.room(only):
            return False
        contents = run.wire.contents()
        marks = marks_of(queue, run, confirms)
        messages = flights.take_off_run(
            queue, run, contents, [only] * run.count, session.origin, marks, now
        )
        if messages is None:
            return False
        flights.hold_run(only, run.count)
        if queue.saves:
            self._dealer.keep(queue, run, session.origin, messages)
        elif confirms:
            self._confirm(session, run, contents[0])
        return True

    def _send(self, queue: Queue, session: Session, run: PushRun, now: float) -> None:
        """Do what Intake, Workflow and Sender do for each message, and Outcomes at its end."""
        audience = queue.audience
        if audience.deaf:
            self._flights.skip(queue, run.count * audience.deaf)
        self._send_to(queue, session, run, audience.first, audience.rest, now)
        if audience.everyone:
            audience.fanouts += run.count

    def _send_chosen(
        self, queue: Queue, session: Session, run: PushRun, chosen: Recipients, now: float
    ) -> None:
        """The same if not all consumers want the messages."""
        if chosen.missed:
            self._flights.skip(queue, run.count * chosen.missed)
        self._send_to(queue, session, run, chosen.first, chosen.rest, now)
        for client in chosen.clients.values():
            client.delivered += run.count

    def _send_to(
        self,
        queue: Queue,
        session: Session,
        run: PushRun,
        first: list[int],
        rest: list[int],
        now: float,
    ) -> None:
        count = run.count
        queue.sequence += count
        wants = queue.options.request_acknowledge
        queue.counters.count_run(count, len(first) + len(rest), wants, now)
        self._send_out(queue, session, run, first, rest, wants)

    def _send_out(
        self,
        queue: Queue,
        session: Session,
        run: PushRun,
        first: list[int],
        rest: list[int],
        wants: bool,
    ) -> None:
        """Emit the deliveries; the queue's counters and sequence include the messages already."""
        if not first:
            return
        out = self._core.out
        count = run.count
        sequence = queue.sequence - count + 1
        name = queue.channel_name
        origin = session.origin
        out.append(DeliverRun(first, run, origin, sequence, name, True, wants, 0, 1, count))
        if rest:
            out.append(DeliverRun(rest, run, origin, sequence, name, False, wants, 0, 1, count))

    def _deal(
        self, queue: Queue, session: Session, run: PushRun, mask: int, confirms: bool, now: float
    ) -> bool:
        """Send each message to the consumer whose turn it is; those that no consumer can take wait.

        If one of them would be a duplicate, or would have to wait on disk, return False and do
        nothing.
        """
        takers = EVERYBODY
        selection = queue.audience.selection
        if selection is not None and queue.audience.filters:
            queue.audience.ready_places()  # which forms the ring
            takers = selection.takers(mask)
        found = self._dealer.plan(queue, run, takers)
        if found is None:
            return False
        contents = _NO_CONTENTS
        told: ConfirmRun | None = None
        if queue.options.request_acknowledge or confirms or found.dealt < run.count:
            contents = run.wire.contents()
            if confirms and not queue.saves:
                told = ConfirmRun(session.number, contents[0], run.channel, run.queue_id)
        marks = marks_of(queue, run, confirms)
        origin = session.origin
        if not self._dealer.carry_out(queue, run, found, contents, origin, marks, told, now):
            return False
        session.pushed += run.count
        return True

    # --- Answers ---------------------------------------------------------------------------------

    def acknowledge(self, run: AcknowledgeRun, now: float, budget: int, most_effects: int) -> bool:
        """Carry out acknowledgements, each with this budget: all of them, or up to one after which
        an audience can take messages again, or after which there are *most_effects* effects.

        If each must be examined separately, return False and do nothing.
        """
        core = self._core
        session = core.sessions.get(run.session)
        channel = core.channels.find(run.channel)
        if session is None or channel is None or session.node:
            return False
        flights = self._flights
        workflow = self._workflow
        ids = run.message_ids
        queues = run.queues
        at = run.at
        queue_id = queues[at] if queues else run.queue_id
        queue = channel.queues.get(queue_id)
        if queue is None or queue.hooks & HOOK_ACKNOWLEDGED:
            return False
        erased: list[int] = []
        while at < len(ids):
            if queues and queues[at] != queue_id:
                queue_id = queues[at]
                other = channel.queues.get(queue_id)
                if other is None or other.hooks & HOOK_ACKNOWLEDGED:
                    break  # the next call begins with this acknowledgement
                if erased:
                    core.out.append(EraseRun(queue.key, erased))
                    erased = []
                queue = other
            core.budget = budget
            if flights.answer_in_place(queue, session, ids[at], True, erased):
                if queue.high_count or queue.regular_count or queue.parked:
                    workflow.go_on(queue, now)
            else:
                request = ids[at] if run.answers else None
                workflow.take_answer(queue, session, ids[at], True, None, now, request)
            at += 1
            if core.awake or len(core.out) >= most_effects:
                break
        run.at = at
        if erased:
            core.out.append(EraseRun(queue.key, erased))
        return True


def _shares_of(channel: Channel, run: PushRun) -> list[_Share] | None:
    """The queues of a mixed run, that of its first message first; None if a queue is missing."""
    queues = channel.queues
    shares: list[_Share] = []
    by_queue: dict[int, _Share] = {}
    for queue_id in run.queues:
        share = by_queue.get(queue_id)
        if share is None:
            queue = queues.get(queue_id)
            if queue is None:
                return None
            share = by_queue[queue_id] = _Share(queue)
            shares.append(share)
        share.pushes += 1
    if not shares:
        only = queues.get(run.queue_id)
        if only is None:
            return None
        shares.append(_Share(only))
        shares[0].pushes = run.count
    return shares


def _receipt(queue: Queue, run: PushRun) -> Decision | None:
    """The decision about each message of a run; None if the handler must be called."""
    return queue.receipt_asked if run.wants_confirm else queue.receipt
