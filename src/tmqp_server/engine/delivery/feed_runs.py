"""Runs through feeds: consecutive pushes are copied as a run, if possible.

Theory of operation.  A source that only feeds, and in which nothing waits, settles each message
immediately: its feeds take it.  So a run is copied as a whole into each target, which distributes
it to its consumers or lets it wait as if a producer had pushed it (``run_dealing.py``).  The
counters are the same as after separate pushes with their copies; the output of one target is sent
before that of the next.

Either all targets accept the whole run, or the run is divided and its pushes are handled one by
one: if a feed has a filter, a target has no room for all messages, a producer must be notified, a
handler must be called, a message has its own timeout or delay, or the copies would be too many for
a step.  Nothing is changed before that is known.

*Durable.* A durable source has the run saved and erased by one effect each, in one batch with the
copies; the confirms wait for that.  Copies of a source in memory are owed (``debts.py``).
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import DECIDE_ACK_NONE
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import PushRun
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.dealing import Deal
from tmqp_server.engine.delivery.feed_commits import target_of
from tmqp_server.engine.delivery.run_dealing import RunDealer, marks_of
from tmqp_server.engine.effects import ConfirmRun, EraseRun
from tmqp_server.engine.events import MESSAGE_PRODUCED
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.delivery import (
    ACKNOWLEDGE,
    ALLOW,
    HOOK_ACKNOWLEDGED,
    SEND_HOOKS,
)
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.message import (
    MARK_CONFIRMED,
    MARK_COPY,
    MARK_GONE,
    MARK_HIGH,
    MARK_OWED,
    MARK_SAVING,
    MARK_WANTS,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.selection import EVERYBODY
from tmqp_server.engine.model.sessions import Session

__all__ = ["FeedRuns"]

#: The most copies of a run in one step: some milliseconds.
_MOST_COPIES: Final = 8_192
#: Copies in a run for one unit of work: 2 ** 3.
_COPIES_SHIFT: Final = 3


class _Passage:
    """A run on its way into one target: the run of copies, and their distribution."""

    __slots__ = ("deal", "feed", "run", "target")

    def __init__(self, feed: Feed, target: Queue, run: PushRun, deal: Deal) -> None:
        self.feed = feed
        self.target = target
        self.run = run
        self.deal = deal


class FeedRuns:
    """Carries out runs that are pushed into queues with feeds."""

    __slots__ = ("_core", "_dealer", "_flights")

    def __init__(self, core: Core, flights: Flights, dealer: RunDealer) -> None:
        self._core = core
        self._dealer = dealer
        self._flights = flights

    def push(self, queue: Queue, session: Session, run: PushRun, now: float) -> bool:
        """Copy a run, for which the source has room, into all targets; if it has to be divided,
        return False and do nothing."""
        feeds = queue.feeds
        assert feeds is not None, "the queue has feeds"
        decision = queue.receipt_asked if run.wants_confirm else queue.receipt
        if decision is None or not self._is_free(queue, run):
            return False
        confirms = decision is ACKNOWLEDGE
        if queue.saves:
            if not self._dealer.can_keep(queue, run, decision):
                return False
            confirms = decision.acknowledge != DECIDE_ACK_NONE
        elif not confirms and decision is not ALLOW:
            return False
        passages = self._passages(feeds, run)
        if passages is None or not self._has_room(queue, run, passages):
            return False
        contents = run.wire.contents()
        if len(passages) > 1 and not self._are_apart(passages, contents[0]):
            return False
        return self._carry_out(queue, session, run, passages, contents, confirms, now)

    def _is_free(self, queue: Queue, run: PushRun) -> bool:
        """Whether nothing waits before the messages, only feeds get them, and no handler must be
        called."""
        core = self._core
        feeds = queue.feeds
        assert feeds is not None, "the queue has feeds"
        return (
            queue.discipline.sends
            and not queue.exclusive
            and not queue.nameless
            and not queue.hooks & (SEND_HOOKS | HOOK_ACKNOWLEDGED)
            and not queue.audience.subscriptions
            and queue.held is None
            and not (queue.high_count or queue.regular_count or queue.spilled)
            and not queue.runnable
            and not queue.committing
            and not queue.fleeting
            and queue.message_timeout_s == 0.0
            and (queue.saves or not queue.bounded)
            and run.count * len(feeds) <= _MOST_COPIES
            and not core.shares_decisions
            and not core.notices.mask & MESSAGE_PRODUCED
        )

    def _passages(self, feeds: list[Feed], run: PushRun) -> list[_Passage] | None:
        """How the run gets into each target; None if a target does not take all of it together."""
        found: list[_Passage] = []
        for feed in feeds:
            target = target_of(feed)
            if feed.filter is not None or not self._takes_all(target, run):
                return None
            copied = PushRun(
                run.session,
                target.channel_name,
                target.queue_id,
                run.high_priority,
                run.wants_confirm,
                run.count,
                run.size,
                run.largest,
                run.wire,
                run.notes,
                True,
            )
            deal = self._dealer.plan(target, copied, EVERYBODY)
            if deal is None:
                return None
            found.append(_Passage(feed, target, copied, deal))
        return found

    def _takes_all(self, target: Queue, run: PushRun) -> bool:
        """Whether a target has room for all copies, and takes them without further checks."""
        decision = target.receipt_asked if run.wants_confirm else target.receipt
        if decision is None or not self._dealer.goes_to_one(target, run) or target.audience.filters:
            return False
        if not self._dealer.can_be_dealt(target):
            return False
        if target.saves:
            if target.temporary or not self._dealer.can_keep(target, run, decision):
                return False
        elif decision is not ACKNOWLEDGE and decision is not ALLOW:
            return False
        return (
            run.largest <= target.size_cap
            and target.count + target.spilled + run.count <= target.count_cap
            and target.bytes + run.size <= target.byte_cap
        )

    def _has_room(self, queue: Queue, run: PushRun, passages: list[_Passage]) -> bool:
        """Whether there is memory for all copies, and the storage can take those that it saves."""
        core = self._core
        memory = run.size + (run.count + 1) * MESSAGE_OVERHEAD_BYTES
        saving = 1 if queue.saves else 0
        for passage in passages:
            saving += passage.target.saves
        return core.has_room(memory * (len(passages) + 1)) and (
            not saving or core.has_room_to_save(run.size * saving)
        )

    def _are_apart(self, passages: list[_Passage], ids: list[str]) -> bool:
        """Whether no consumer gets copies from two targets, so that its room can be counted for
        each separately, and no copy would be a duplicate."""
        if len(set(ids)) < len(ids):
            return False
        seen: dict[int, None] = {}
        for passage in passages:
            for share in passage.deal.shares:
                number = share.subscription.session.number
                if number in seen:
                    return False
            for share in passage.deal.shares:
                seen[share.subscription.session.number] = None
            target = passage.target
            if target.duplicates:
                return False
            if passage.deal.dealt and target.in_flight():
                for message_id in ids:
                    if target.flight(message_id) is not None:
                        return False
        return True

    def _carry_out(
        self,
        queue: Queue,
        session: Session,
        run: PushRun,
        passages: list[_Passage],
        contents: tuple[list[str], list[int], list[object]],
        confirms: bool,
        now: float,
    ) -> bool:
        core = self._core
        origin = session.origin
        count = run.count
        told: ConfirmRun | None = None
        if confirms and not queue.saves:
            told = ConfirmRun(session.number, contents[0], run.channel, run.queue_id)
        first = True
        for passage in passages:
            target = passage.target
            marks = MARK_CONFIRMED | MARK_COPY
            marks |= MARK_HIGH if run.high_priority else 0
            marks |= MARK_WANTS if run.wants_confirm else 0
            if target.saves:
                marks |= MARK_SAVING if queue.saves else MARK_SAVING | MARK_OWED
            if not self._dealer.carry_out(
                target, passage.run, passage.deal, contents, origin, marks, told, now
            ):
                assert first, "the others were looked at"
                return False
            first = False
            told = None
            passage.feed.copied += count
        if queue.saves:
            self._keep(queue, run, origin, contents, confirms)
        queue.sequence += count
        session.pushed += count
        queue.counters.count_run(count, len(passages), False, now)
        copies = count * len(passages)
        core.work += copies >> _COPIES_SHIFT
        return True

    def _keep(
        self,
        queue: Queue,
        run: PushRun,
        origin: Origin,
        contents: tuple[list[str], list[int], list[object]],
        confirms: bool,
    ) -> None:
        """Have a durable source's messages saved and erased in one batch, for which their confirms
        wait."""
        marks = marks_of(queue, run, confirms) | MARK_GONE
        messages: list[Message] = []
        ids, sizes, wires = contents
        sequence = queue.sequence
        for place in range(run.count):
            sequence += 1
            message = Message(
                ids[place],
                origin,
                run.channel,
                run.queue_id,
                sizes[place],
                wires[place],
                marks,
                sequence,
            )
            message.attempts = 1
            messages.append(message)
        first = queue.sequence + 1
        self._dealer.append(queue, run, origin, messages)
        self._core.out.append(EraseRun(queue.key, list(range(first, sequence + 1))))
