"""Feeding: copies the messages of a queue into the queues that it feeds.

Theory of operation.  A feed is a consumer that is a queue: it takes a message and acknowledges it
immediately.  The behaviour of a queue with feeds follows from its status, as for consumers:

* push: every feed and every consumer gets each message; if there are neither, messages are kept;
* broadcast: those that can take a message now get it, nothing waits;
* round robin (and first acquirer): consumers and feeds take turns, the feeds after the consumers.

A message that only feeds got is settled.  One that consumers have as well is marked (``MARK_FED``),
so that no feed gets it twice, whatever consumers do with it; when all consumers have left, it is
settled.

*Full.* A target without room is like a slow consumer: the next message waits in the source, with
all messages behind it.  The source tries again when a message has left the target, and in any case
a little later, because room may come from elsewhere.  Messages that a target never accepts, because
they are too large or the target is stopped, are skipped and counted.

*Deferred.* A deferred message is copied immediately, and each copy waits in its own queue;
consumers of the source get it when it is due.  If it cannot be copied immediately, it is copied
when it is due.

*Saved.* For a message that was accepted in the same step, the copy in the source, the copies in the
targets and the settlement are one step, and so one batch of the storage; its confirm waits for
that.  ``feed_commits.py`` moves messages that were saved in an earlier step.  A source in memory
does not wait for the storage: see ``debts.py``.

*Work.* A message is copied to all feeds of a queue in one step, and the budget is charged for all
copies before the first is made.  So the feeds of the targets copy in the same step only if the
budget allows it, and otherwise the pump continues later.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.awaited_copies import CopyingStep
from tmqp_server.engine.delivery.debts import owes_copies
from tmqp_server.engine.delivery.feed_commits import Commit, FeedCommits, target_of
from tmqp_server.engine.delivery.feed_copies import copy_of
from tmqp_server.engine.delivery.feed_port import FeedPort
from tmqp_server.engine.delivery.feed_rooms import FREE, FULL, FeedRooms
from tmqp_server.engine.delivery.feed_turns import FeedTurns, Turns
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.pump import Pump
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.delivery import (
    ALLOW,
    HOOK_CAN_RECEIVE,
    HOOK_CONSUMER_FAILED,
    HOOK_SAVE,
    Decision,
    combine,
)
from tmqp_server.engine.model.feeds import Feed, FeedTimer
from tmqp_server.engine.model.message import (
    MARK_AWAITS,
    MARK_FED,
    MARK_OWED,
    MARK_SAVED,
    MARK_SAVING,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import REFUSE

__all__ = ["Feeder"]

#: A stored message costs one more unit for so many bytes: 2 ** 10.
_UNIT_SHIFT: Final = 10
#: Units of work for a copy: entering a queue takes twice as long as leaving one.
_COPY_WORK: Final = 2
#: Targets that are checked for one unit of work: 2 ** 2.
_ASKED_SHIFT: Final = 2
#: How many queues, one after the other, a message passes in one step.
_MOST_DEPTH: Final = 8
#: How long until a queue that could not feed is tried again in any case, in seconds.
_RETRY_S: Final = 0.02
_KEPT: Final = MARK_SAVED | MARK_SAVING


class Feeder(FeedPort):
    """Sends the messages of queues that have feeds."""

    __slots__ = (
        "_commits",
        "_core",
        "_depth",
        "_flights",
        "_full",
        "_late",
        "_outcomes",
        "_rooms",
        "_sender",
        "_timer",
        "_turns",
        "_workflow",
    )

    def __init__(
        self,
        core: Core,
        flights: Flights,
        outcomes: Outcomes,
        sender: Sender,
        pump: Pump,
        workflow: Workflow,
    ) -> None:
        self._core = core
        self._flights = flights
        self._outcomes = outcomes
        self._sender = sender
        self._workflow = workflow
        self._rooms = FeedRooms(core, outcomes)
        self._turns = FeedTurns(core, self._rooms, sender)
        self._commits = FeedCommits(core, flights, outcomes, sender, pump, workflow)
        #: How many queues the current message has passed in this step.
        self._depth = 0
        #: Queues that could not feed, by key, and what lets them try again.
        self._late: dict[int, Queue] = {}
        #: The feed for which a queue waits, by the key of the queue: it is checked first.
        self._full: dict[int, Feed] = {}
        self._timer = FeedTimer()

    # --- Coming in -------------------------------------------------------------------------------

    def arrive(self, queue: Queue, message: Message, now: float) -> None:
        """Send a message that was accepted in this step now if possible; otherwise let it wait."""
        if self._is_free(queue) and self._is_ready(queue, message, True):
            self._pass_on(queue, message, now)
            if queue.waiting_count() and not queue.runnable:
                self.pump(queue, now, 0)  # a decision has put it back immediately
        else:
            self.wait(queue, message, now)

    def arrive_deferred(self, queue: Queue, message: Message, now: float) -> None:
        """The same for a message that is not due yet: feeds get it, consumers do not."""
        if not queue.exclusive and self._is_free(queue) and self._is_ready(queue, message, False):
            self._pass_on(queue, message, now)
            return
        self._outcomes.saver.defer(queue, message, message.rarely().due_at)
        self._core.arm(queue)

    def wait(self, queue: Queue, message: Message, now: float) -> None:
        """Let a message wait behind the others, and send what can be sent."""
        self._outcomes.make_way(queue, message)
        self._outcomes.wait_last(queue, message)
        if message.rare is not None:
            self._core.arm(queue)
        if not queue.runnable and not queue.waiting:
            self.pump(queue, now, 0)

    def _is_free(self, queue: Queue) -> bool:
        """Whether an arriving message need not wait for others."""
        return (
            queue.discipline.sends
            and queue.held is None
            and not (queue.high_count or queue.regular_count or queue.spilled)
            and not queue.runnable
            and not queue.committing
            and self._depth < _MOST_DEPTH
            and self._core.budget > (_copy_work(queue) if self._depth else 0)
        )

    # --- Going out -------------------------------------------------------------------------------

    def pump(self, queue: Queue, now: float, floor: int) -> None:
        """Send what waits until the budget is down to *floor*."""
        core = self._core
        while queue.high_count or queue.regular_count:
            if queue.spilled:
                core.refill(queue)
                if queue.high_tail is not None and not queue.high_count:
                    return  # the high-priority messages are being read back
            if queue.held is not None or not queue.discipline.sends or queue.closed:
                return
            if queue.committing:
                return
            if core.budget <= floor or self._depth >= _MOST_DEPTH:
                core.schedule(queue)
                return
            message = queue.look(False)
            assert message is not None, "one waits"
            rare = message.rare
            if rare is not None and rare.expires_at <= now:
                core.budget -= 1
                # It has expired in this tick, and the timer has not run yet.
                queue.take()
                if not self._outcomes.expire(queue, message):
                    queue.put_first(message)
                continue
            if not self._is_ready(queue, message, True):
                return
            if message.marks & _KEPT and self._must_commit(queue, message):
                if message.marks & MARK_SAVING:
                    self._try_later(queue)  # the storage is about to answer
                else:
                    self._commit(queue, now, floor)
                return
            queue.take()
            core.budget -= message.size >> _UNIT_SHIFT
            self._pass_on(queue, message, now)
        if queue.spilled:
            core.refill(queue)

    def _pass_on(self, queue: Queue, message: Message, now: float) -> None:
        """Send a message that is in no list any more and can be sent."""
        self._core.budget -= 1
        asked = self._rooms.asked
        decision = self._sender.begin(queue, message, now)
        if decision is None:
            return
        self._depth += 1
        if queue.exclusive:
            self._to_one(queue, message, decision, now, asked)
        else:
            self._to_all(queue, message, decision, now, asked)
        self._depth -= 1

    def _to_all(
        self, queue: Queue, message: Message, decision: Decision, now: float, asked: int
    ) -> None:
        """Send it to every feed that does not have it yet, and to every consumer."""
        was_fed = message.marks & MARK_FED != 0
        taken = 0
        if not was_fed:
            message.marks |= MARK_FED
            self._core.budget -= _copy_work(queue)
            step = None
            if message.marks & MARK_AWAITS:
                step = CopyingStep(self._core, queue, message)
            taken, decision = self._copy_to_all(queue, message, decision, now, asked)
            if step is not None:
                step.copied()
        sent = False
        if queue.audience.subscriptions:
            rare = message.rare
            if rare is not None and rare.due_at > now:
                if decision is not ALLOW:
                    self._outcomes.apply(queue, message, decision)
                self._outcomes.saver.defer(queue, message, rare.due_at)
                self._core.arm(queue)
                return
            sent, decision = self._sender.send_to_some(queue, message, decision, now, -1)
        if sent:
            self._flights.count_copies(queue, taken)
        elif taken:
            self._flights.sent(queue, message, taken, now)
        self._sender.conclude(queue, message, decision, sent or was_fed or taken > 0, now)

    def _copy_to_all(
        self, queue: Queue, message: Message, decision: Decision, now: float, asked: int
    ) -> tuple[int, Decision]:
        """Copy a message to all feeds; return how many took it, and all decisions combined."""
        feeds = queue.feeds
        assert feeds is not None, "the queue has feeds"
        taken = 0
        for feed in feeds:
            if not self._rooms.wants(queue, feed, message):
                feed.passed += 1
                continue
            took, decision = self._offer(queue, feed, message, decision, now, asked)
            taken += took
        return taken, decision

    def _offer(
        self,
        queue: Queue,
        feed: Feed,
        message: Message,
        decision: Decision,
        now: float,
        asked: int,
    ) -> tuple[int, Decision]:
        """Copy a message to a feed that wants it, if the handler allows it and the target has room.
        Return 1 if it was copied, otherwise 0, and all decisions combined."""
        outcomes = self._outcomes
        hooks = queue.hooks
        if hooks & HOOK_CAN_RECEIVE:
            answer = outcomes.ask(HOOK_CAN_RECEIVE, queue, message, feed.client, None)
            decision = combine(decision, answer)
            if not answer.allow:
                return 0, decision
        if self._rooms.room_in(feed, message, asked) != FREE:
            feed.skipped += 1
            self._flights.skip(queue, 1)
            if hooks & HOOK_CONSUMER_FAILED:
                answer = outcomes.ask(HOOK_CONSUMER_FAILED, queue, message, feed.client, None)
                decision = combine(decision, answer)
            return 0, decision
        self._copy(feed, message, now)
        rare = message.rare
        if rare is not None and rare.receivers >= 0:
            rare.receivers += 1
        return 1, self._commits.answer(queue, feed, message, decision)

    def _copy(self, feed: Feed, message: Message, now: float) -> None:
        """Copy a message into the target of a feed."""
        target = target_of(feed)
        if target.options.when_full != REFUSE:
            rare = message.rare
            deferred = rare is not None and rare.due_at > self._core.now
            self._outcomes.make_room(target, message.size, deferred)
        copy = copy_of(feed, message, now)
        target.sequence += 1
        copy.sequence = target.sequence
        if target.saves and not target.temporary:
            source = feed.source
            assert isinstance(source, Queue)
            if owes_copies(source, message):
                copy.marks |= MARK_OWED
            if not target.hooks & HOOK_SAVE:
                # There was room for all copies together, so each is not checked again.
                self._outcomes.saver.save(target, copy)
        feed.copied += 1
        core = self._core
        core.work += _COPY_WORK  # many copies may follow one command, and many commands may wait
        self._workflow.receive(target, copy, now)

    # --- In turn ---------------------------------------------------------------------------------

    def _to_one(
        self, queue: Queue, message: Message, decision: Decision, now: float, asked: int
    ) -> None:
        """Send it to the consumer or feed whose turn it is, or to the next that can take it."""
        feeds = queue.feeds
        assert feeds is not None, "the queue has feeds"
        core = self._core
        turns = Turns(queue)
        ring = queue.audience.ring
        sent = False
        steps = 0
        while steps < turns.count and not sent:
            place = turns.place(steps)
            steps += 1
            at = place - len(ring)
            if at < 0:
                if ring[place].stalled:
                    continue
                sent, decision = self._sender.send_to_some(
                    queue, message, decision, now, 1 << place
                )
            elif self._rooms.wants(queue, feeds[at], message):
                core.budget -= _COPY_WORK
                taken, decision = self._offer(queue, feeds[at], message, decision, now, asked)
                sent = taken > 0
                if sent:
                    self._flights.sent(queue, message, 1, now)
            if sent and queue.discipline.exclusive:
                queue.turn = place
        core.budget -= turns.work(steps)
        self._sender.conclude(queue, message, decision, sent, now)

    # --- Whether a message can be sent -----------------------------------------------------------

    def _is_ready(self, queue: Queue, message: Message, is_due: bool) -> bool:
        """Whether a message can be sent: all that are to get it can take it, or one of them if each
        message goes to one.  If not, the queue is tried again later."""
        audience = queue.audience
        self._rooms.ask()
        if queue.exclusive:
            if self._turns.next_taker(queue, message)[0]:
                return True
            if not queue.waiting:
                queue.waiting = True
                audience.line.append(queue)
            self._try_later(queue)
            return False
        if not queue.discipline.stores:
            return True
        if not message.marks & MARK_FED and not self._can_feed(queue, message):
            return False
        if is_due and audience.stalled and not queue.skips:
            if queue.waiting:
                self._try_later(queue)  # it is in another line
            else:
                queue.waiting = True
                audience.line.append(queue)
            return False
        return True

    def _can_feed(self, queue: Queue, message: Message) -> bool:
        """Whether all feeds that want a message have room for it."""
        feeds = queue.feeds
        assert feeds is not None, "the queue has feeds"
        full = self._full.pop(queue.key, None)
        if full is not None and full in feeds and self._is_full(queue, full, message):
            return False
        self._core.budget -= len(feeds) >> _ASKED_SHIFT
        saving = 0
        for feed in feeds:
            if self._is_full(queue, feed, message):
                return False
            saving += target_of(feed).saves
        if not self._rooms.has_room_for(queue, message, len(feeds), saving):
            self._try_later(queue)
            return False
        return True

    def _is_full(self, queue: Queue, feed: Feed, message: Message) -> bool:
        """Whether a queue has to wait until the target of a feed has room."""
        if self._rooms.room_in(feed, message) != FULL:
            return False
        if not self._rooms.wants(queue, feed, message):
            return False
        self._full[queue.key] = feed
        if not queue.waiting:
            queue.waiting = True
            target = target_of(feed)
            target.waiters.append(queue)
            target.heed()
        self._try_later(queue)
        return True

    # --- Again -----------------------------------------------------------------------------------

    def _try_later(self, queue: Queue) -> None:
        """Have a queue tried again a little later, in addition to other reasons."""
        self._late[queue.key] = queue
        self._core.wakeups.arm(self._timer, self._core.now + _RETRY_S)

    def wake(self, now: float) -> None:
        """Try queues again that could not feed."""
        core = self._core
        late, self._late = self._late, {}
        for queue in late.values():
            if queue.closed or queue.feeds is None:
                self._full.pop(queue.key, None)
                continue
            if core.budget <= 0:
                self._late[queue.key] = queue
                continue
            core.budget -= 1
            if not queue.runnable:
                self.pump(queue, now, 0)
        if self._late:
            core.wakeups.arm(self._timer, now + _RETRY_S)

    def release(self, queue: Queue) -> None:
        """Let the queues that wait for room in a queue continue soon, because a feed into it was
        removed."""
        waiters = queue.waiters
        for each in waiters:
            assert isinstance(each, Queue)
            each.waiting = False
            self._core.schedule(each)
        waiters.clear()
        queue.heed()

    # --- What was saved in an earlier step -------------------------------------------------------

    def _must_commit(self, queue: Queue, message: Message) -> bool:
        """Whether a saved message must be moved by a commit, so that it is not settled before its
        copies are saved, or copied again after a restart."""
        if queue.exclusive:
            feed = self._turns.next_taker(queue, message)[1]
            return feed is not None and _may_save(target_of(feed))
        if message.marks & MARK_FED:
            return False
        if queue.audience.subscriptions:
            return True
        assert queue.feeds is not None, "the queue has feeds"
        return any([_may_save(target_of(feed)) for feed in queue.feeds])

    def _commit(self, queue: Queue, now: float, floor: int) -> None:
        """Have waiting messages, from the first on, copied and settled by one commit."""
        core = self._core
        commit = Commit(queue)
        while (queue.high_count or queue.regular_count) and commit.has_room():
            message = queue.look(False)
            assert message is not None, "one waits"
            rare = message.rare
            if (
                message.marks & (_KEPT | MARK_FED) != MARK_SAVED
                or (rare is not None and rare.expires_at <= now)
                or core.budget <= floor
                or not self._is_ready(queue, message, True)
            ):
                break
            if commit.items and not core.has_room_to_move(message.size + MESSAGE_OVERHEAD_BYTES):
                break  # until the storage has answered, moved messages are counted twice
            takers = self._takers(queue, message)
            if queue.exclusive and not takers:
                break  # it is a consumer's turn
            queue.take()
            core.budget -= 1 + _COPY_WORK * len(takers)
            decision = self._sender.begin(queue, message, now)
            if decision is None:
                continue
            self._commits.stage(commit, message, decision)
            for feed in takers:
                self._commits.stage_copy(commit, feed, copy_of(feed, message, now))
        if commit.items:
            self._commits.begin(commit)
        elif core.budget <= floor:
            core.schedule(queue)

    def _takers(self, queue: Queue, message: Message) -> list[Feed]:
        """The feeds that get a message: all that want it and have room, or the one whose turn it
        is."""
        feeds = queue.feeds
        assert feeds is not None, "the queue has feeds"
        if queue.exclusive:
            feed = self._turns.next_taker(queue, message)[1]
            if feed is None:
                return []
            if queue.discipline.exclusive:
                queue.turn = len(queue.audience.ring) + feeds.index(feed)
            return [feed]
        found: list[Feed] = []
        for feed in feeds:
            if not self._rooms.wants(queue, feed, message):
                feed.passed += 1
            elif self._rooms.room_in(feed, message) != FREE:
                feed.skipped += 1
            else:
                found.append(feed)
        return found

    def synced(self, commit: Commit, ok: bool) -> None:
        """Handle the storage's answer about a commit."""
        self._commits.synced(commit, ok)
        if not ok:
            self._try_later(commit.queue)

    def has_work(self) -> bool:
        """Whether a saved commit is not finished."""
        return self._commits.has_work()

    def go_on(self, now: float) -> None:
        """Continue with what earlier steps had no budget for."""
        self._commits.go_on(now)


def _copy_work(queue: Queue) -> int:
    """The units of work for copying a message to all feeds of a queue."""
    return 0 if queue.feeds is None else _COPY_WORK * len(queue.feeds)


def _may_save(target: Queue) -> bool:
    """Whether the storage may be asked to save a message that enters a queue."""
    decision = target.receipt_asked
    return target.saves or decision is None or decision.save
