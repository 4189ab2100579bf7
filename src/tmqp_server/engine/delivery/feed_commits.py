"""Feeding from a durable source: copies and settlement are one change, done or not done.

Theory of operation.  A message that was saved in an earlier step must not be lost.  If it were
settled in a batch of the storage that fails, together with its copies, it would be lost; if the
copies were saved but it were not settled, a restart would copy it again.  So one effect,
``CommitBatch``, with one ticket, requests both from the storage, for as many consecutive messages
as a portion has.  Until the storage answers, the messages in the source and the copies in the
targets are *withheld*: they are not visible, and the source sends nothing else.  Then the copies
arrive and the messages are settled; or, if that could not be saved, everything is as before and is
retried.

A message for consumers as well is not settled but saved again, marked as fed (``MARK_FED``): after
a restart consumers get it, and feeds do not.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tmqp.constants import RESULT_UNACCEPTABLE
from tmqp_server.engine.books import batch_bytes
from tmqp_server.engine.commands import Acknowledge
from tmqp_server.engine.core import Core, PendingWrite
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.pump import Pump
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.effects import Append, CommitBatch, Erase
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.delivery import (
    HOOK_ACKNOWLEDGED,
    HOOK_CONSUMER_RECEIVED,
    HOOK_RECEIVED,
    Decision,
    combine,
)
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.handlers import saving
from tmqp_server.engine.model.message import (
    MARK_FED,
    MARK_SAVED,
    MARK_SAVING,
    MARK_WANTS,
    Message,
)
from tmqp_server.engine.model.queues import Queue

__all__ = ["Commit", "FeedCommits", "target_of"]

#: Copies, and bytes of copies, after which a commit takes no more messages.
_MOST_COPIES: Final = 256
_MOST_BYTES: Final = 1_048_576
#: Units of work for a copy that arrives.
_COPY_WORK: Final = 2
_KEPT: Final = MARK_SAVED | MARK_SAVING


def target_of(feed: Feed) -> Queue:
    """The target queue of a feed."""
    target = feed.target
    assert isinstance(target, Queue), "what feeds copy into is a queue"
    return target


class _Copy:
    """A withheld copy; ``kept`` means that the storage saves it with the commit."""

    __slots__ = ("feed", "target", "message", "decision", "kept")

    def __init__(self, feed: Feed, target: Queue, message: Message, decision: Decision) -> None:
        self.feed = feed
        self.target = target
        self.message = message
        self.decision = decision
        self.kept = False


class _Moved:
    """A withheld message with its copies.  One that ``stays`` goes to consumers as well; ``stored``
    is the sequence under which the storage had it before."""

    __slots__ = ("message", "decision", "copies", "stays", "stored")

    def __init__(self, message: Message, decision: Decision, stays: bool) -> None:
        self.message = message
        self.decision = decision
        self.copies: list[_Copy] = []
        self.stays = stays
        self.stored = 0


class Commit(PendingWrite):
    """Messages of one queue, in order, that are moved together.

    ``weight`` is the bytes of the copies, ``size`` those of what the storage is to save, ``memory``
    the charge in the books beyond the messages.  When the commit is saved, its first ``done`` items
    are finished.
    """

    __slots__ = ("queue", "items", "copies", "weight", "size", "memory", "done")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.items: list[_Moved] = []
        self.copies = 0
        self.weight = 0
        self.size = 0
        self.memory = 0
        self.done = 0

    def has_room(self) -> bool:
        """Whether there is room for another message."""
        return self.copies < _MOST_COPIES and self.weight < _MOST_BYTES


class FeedCommits:
    """Carries out commits of queues that have feeds."""

    __slots__ = ("_core", "_flights", "_outcomes", "_pump", "_sender", "_unfinished", "_workflow")

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
        self._pump = pump
        self._workflow = workflow
        #: Saved commits that are not finished, because that takes more than one step.
        self._unfinished: deque[Commit] = deque()

    # --- Gathering -------------------------------------------------------------------------------

    def stage(self, commit: Commit, message: Message, decision: Decision) -> None:
        """Withhold a message, which is in no list any more."""
        queue = commit.queue
        stays = not queue.exclusive and len(queue.audience.subscriptions) > 0
        commit.items.append(_Moved(message, decision, stays))
        self._flights.withhold(queue, 1)

    def stage_copy(self, commit: Commit, feed: Feed, message: Message) -> None:
        """Withhold a copy of the last message, unless the handler of the target refuses it."""
        target = target_of(feed)
        outcomes = self._outcomes
        decision = target.receipt_asked if message.marks & MARK_WANTS else target.receipt
        if decision is None:
            decision = outcomes.ask(HOOK_RECEIVED, target, message, None, None)
            if target.saves:
                decision = saving(decision)
                assert decision is not None, "there was one"
        if not decision.allow:
            outcomes.count_refused(target, RESULT_UNACCEPTABLE)
            feed.skipped += 1
            return
        copy = _Copy(feed, target, message, decision)
        copy.kept = outcomes.will_save(target, message, decision)
        self._flights.take_in(target, message, self._core.now)
        self._flights.withhold(target, 1)
        commit.copies += 1
        commit.weight += message.size
        commit.items[-1].copies.append(copy)

    # --- Asking ----------------------------------------------------------------------------------

    def begin(self, commit: Commit) -> None:
        """Ask the storage for the whole commit."""
        core = self._core
        queue = commit.queue
        queue.committing = True
        appended: list[Append] = []
        erased: list[Erase] = []
        for item in commit.items:
            message = item.message
            for copy in item.copies:
                if copy.kept:
                    target = copy.target
                    appended.append(self._append(target, copy.message))
                    copy.message.sequence = copy.message.rarely().stored
                    commit.size += message.size
            rare = message.rarely()
            item.stored = rare.stored
            if rare.old:
                erased.append(Erase(0, rare.old_key, rare.old))
            if rare.stored:
                erased.append(Erase(0, queue.key, rare.stored))
            if item.stays:
                message.marks |= MARK_FED
                appended.append(self._append(queue, message))
                commit.size += message.size
        commit.memory = batch_bytes(len(appended) + len(erased), 0)
        core.unsynced_bytes += commit.size
        core.charge(commit.memory)
        core.last_ticket += 1
        core.tickets[core.last_ticket] = commit
        effect = CommitBatch(appended, erased, core.now)
        effect.ticket = core.last_ticket
        core.out.append(effect)

    def _append(self, queue: Queue, message: Message) -> Append:
        """Request that a message is saved, and count it if it was not stored before."""
        if not message.marks & _KEPT:
            self._flights.store(queue, message.size)
        return _appended(queue, message)

    def _forget(self, queue: Queue, message: Message) -> None:
        """Record that the commit has erased a message in the storage."""
        if message.marks & _KEPT:
            message.marks &= ~_KEPT
            self._flights.unstore(queue, message.size)

    def synced(self, commit: Commit, ok: bool) -> None:
        """Handle the storage's answer about a commit."""
        core = self._core
        core.unsynced_bytes -= commit.size
        core.refund(commit.memory)
        for item in commit.items:
            message = item.message
            for copy in item.copies:
                if copy.kept:
                    self._answered(copy.target, copy.message, ok)
            if item.stays:
                self._answered(commit.queue, message, ok)
            if ok and message.rarely().old_key:
                self._forget_old(commit.queue, message)
            if not ok:
                message.marks = (message.marks & ~MARK_FED) | MARK_SAVED
                message.rarely().stored = item.stored
        if not ok:
            self._give_up(commit)
            return
        self._unfinished.append(commit)
        if len(self._unfinished) == 1:
            self.go_on(core.now)

    def _answered(self, queue: Queue, message: Message, ok: bool) -> None:
        """Record whether an appended message was saved."""
        message.marks &= ~MARK_SAVING
        if not ok:
            message.rarely().stored = 0
            if not message.marks & MARK_SAVED:
                self._flights.unstore(queue, message.size)
            return
        if not message.marks & MARK_SAVED:
            message.marks |= MARK_SAVED
            self._flights.save(queue, 1)
        self._core.became_safe(queue, message.rarely().stored)

    def _forget_old(self, queue: Queue, message: Message) -> None:
        """Record that the older copy of a message was settled as well."""
        rare = message.rarely()
        if rare.old:
            rare.old = 0
            if rare.old_key != queue.key:
                self._core.release_claim(rare.old_key)

    # --- Finishing -------------------------------------------------------------------------------

    def has_work(self) -> bool:
        """Whether a saved commit is not finished."""
        return len(self._unfinished) > 0

    def go_on(self, now: float) -> None:
        """Finish commits within the budget."""
        core = self._core
        while self._unfinished:
            commit = self._unfinished[0]
            while commit.done < len(commit.items):
                if core.budget <= 0:
                    return
                item = commit.items[commit.done]
                commit.done += 1
                core.budget -= 1 + _COPY_WORK * len(item.copies)
                core.work += len(item.copies)
                self._finish(commit.queue, item, now)
            self._unfinished.popleft()
            self._end(commit)

    def _finish(self, queue: Queue, item: _Moved, now: float) -> None:
        """Let the copies of a message arrive, and settle it unless it stays."""
        decision = item.decision
        message = item.message
        for copy in item.copies:
            self._enter(copy, now)
            if not queue.closed:
                decision = self.answer(queue, copy.feed, message, decision)
        if item.stays:
            self._flights.count_copies(queue, len(item.copies))
            return  # it stays withheld until all are finished, so that they keep their order
        self._flights.withhold(queue, -1)
        if queue.closed:
            # The queue was removed meanwhile, with this message.
            self._flights.count_cleared(queue, 1)
            self._forget(queue, message)
            self._outcomes.settle(queue, message)
        else:
            self._forget(queue, message)
            if item.copies:
                self._flights.sent(queue, message, len(item.copies), now)
            self._sender.conclude(queue, message, decision, len(item.copies) > 0, now)

    def _enter(self, copy: _Copy, now: float) -> None:
        target = copy.target
        message = copy.message
        self._flights.withhold(target, -1)
        if not copy.kept:
            target.sequence += 1
            message.sequence = target.sequence
        if target.closed:
            self._flights.count_cleared(target, 1)
            self._forget(target, message)
            self._outcomes.settle(target, message)
            return
        copy.feed.copied += 1
        self._workflow.receive_safe(target, message, copy.decision, now)

    def answer(self, queue: Queue, feed: Feed, message: Message, decision: Decision) -> Decision:
        """Ask the handler about a message that a feed has taken and acknowledged."""
        outcomes = self._outcomes
        hooks = queue.hooks
        if hooks & HOOK_CONSUMER_RECEIVED:
            answer = outcomes.ask(HOOK_CONSUMER_RECEIVED, queue, message, feed.client, None)
            decision = combine(decision, answer)
        if hooks & HOOK_ACKNOWLEDGED:
            ack = Acknowledge(
                0, message.message_id, queue.channel_name, queue.queue_id, True, "", None, 0
            )
            answer = outcomes.ask(HOOK_ACKNOWLEDGED, queue, message, feed.client, ack)
            outcomes.apply_answer(queue, message, answer, feed.client, ack)
        return decision

    def _give_up(self, commit: Commit) -> None:
        """Undo a commit that could not be saved."""
        for item in commit.items:
            for copy in item.copies:
                self._flights.withhold(copy.target, -1)
                self._flights.take_back(copy.target, 1)
                self._flights.let_go(copy.target, copy.message)
        for item in reversed(commit.items):
            self._put_back(commit.queue, item.message)
        commit.queue.committing = False

    def _end(self, commit: Commit) -> None:
        """Let the source continue."""
        queue = commit.queue
        queue.committing = False
        for item in reversed(commit.items):
            if item.stays:
                self._put_back(queue, item.message)
        if not queue.closed:
            self._core.arm(queue)
            self._pump.resume(queue, self._core.now)

    def _put_back(self, queue: Queue, message: Message) -> None:
        self._flights.withhold(queue, -1)
        if queue.closed:
            self._flights.count_cleared(queue, 1)
            self._outcomes.settle(queue, message)
            return
        queue.put_first(message)


def _appended(queue: Queue, message: Message) -> Append:
    """The request to save a message under the next sequence of its queue."""
    queue.sequence += 1
    sequence = queue.sequence
    queue.appended = sequence
    rare = message.rarely()
    message.marks |= MARK_SAVING
    rare.stored = sequence
    rare.ticket = 0
    tail = queue.tail_of(message)
    if tail is not None:
        tail.skip[sequence] = None
    return Append(0, message, queue.channel_name, queue.queue_id, queue.key, sequence, False, 0, 0)
