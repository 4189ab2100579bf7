"""Batches: pushes, acknowledgements and releases of a client that take effect together or not at
all.

Theory of operation.  *Checks first.* Everything that can be refused is refused before anything is
done: queues are found, their room is reserved, delivery handlers are called, and the messages that
the client acknowledges must be in flight to it.  A delivery that is part of a batch is *promised*:
until the batch is decided, it does not time out and cannot be answered in another way.

*One ticket.* Everything that the storage must store and erase is one effect, ``CommitBatch``.  The
storage does all of it or nothing, even if the process is killed.  Until it answers, the pushed
messages are *withheld*: they are counted and have their sequence, but are not visible.  Then they
enter their queues, the answers are applied, and the client is notified.  A batch without work for
the storage is done immediately.  If a step cannot finish a batch, the next steps continue with it
before they begin another.

*Failure.* If a batch cannot be saved, all of it is void: the messages were never pushed, the
deliveries are in flight to the client as before, with their timeouts, and the client gets 503.

Messages in memory (of queues that are not durable) are part of the whole as long as the server
runs; a killed server loses them as usual.

*Copies.* The feeds of a source that stores nothing, such as a broadcast, copy its messages when the
batch is finished, and the client is notified when the storage has answered a further ticket, after
these copies.  A server that is killed between the two tickets loses them.  For a push that
``awaits_copies``, they are part of the batch instead, and none is lost; the copies of feeds that
are added while the batch is saved are made when it is finished, and the client does not wait.

A delivery to several consumers is settled when the last of them answers.  If that is not this
batch, then its answer is in memory only, like every such answer.
"""

from __future__ import annotations

from collections import deque

from tmqp.constants import RESULT_BUSY, RESULT_OK
from tmqp_server.engine.books import batch_bytes
from tmqp_server.engine.commands import Acknowledge, Batch, Command, Release
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.batch_checks import KEPT, BatchChecks, Item, PendingBatch
from tmqp_server.engine.delivery.feed_commits import target_of
from tmqp_server.engine.delivery.intake import Intake
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.saving import erasures_between
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import Append, CommitBatch, Erase, Reply
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.delivery import ALLOW
from tmqp_server.engine.model.message import MARK_SAVED, MARK_SAVING, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session

__all__ = ["Batches"]


class Batches:
    """Carries out batches."""

    __slots__ = (
        "_checks", "_core", "_flights", "_outcomes", "_unfinished", "_workflow",
    )  # fmt: skip

    def __init__(
        self,
        core: Core,
        flights: Flights,
        directory: Directory,
        outcomes: Outcomes,
        workflow: Workflow,
        intake: Intake,
    ) -> None:
        self._core = core
        self._checks = BatchChecks(core, directory, outcomes, intake)
        self._flights = flights
        self._outcomes = outcomes
        self._workflow = workflow
        #: Saved batches that are not finished, because that takes more than one step.
        self._unfinished: deque[PendingBatch] = deque()

    def apply(self, command: Command, session: Session) -> None:
        """Carry out a whole batch, or nothing of it.

        Queues that the batch created automatically stay, even if it is refused.
        """
        assert isinstance(command, Batch)
        core = self._core
        batch = PendingBatch(session, command.request)
        code = self._checks.problem_of(command, batch)
        if code != RESULT_OK:
            for item in batch.items:
                if item.answer is not None:
                    item.message.break_promise(item.consumer)
            core.reply(session, command.request, code)
            return
        self._withhold(batch)
        if any([item.kept for item in batch.items]):
            self._commit(batch)
        else:
            self._finish(batch)

    def _withhold(self, batch: PendingBatch) -> None:
        """Take the pushed messages into the books."""
        for item in batch.items:
            if item.answer is None:
                if item.kept:
                    item.queue.sequence = item.message.sequence
                self._flights.take_in(item.queue, item.message, self._core.now)
                self._flights.withhold(item.queue, 1)
                batch.session.pushed += 1

    def _commit(self, batch: PendingBatch) -> None:
        """Ask the storage to carry out its part."""
        core = self._core
        appended: list[Append] = []
        erased: list[Erase] = []
        for item in batch.items:
            queue = item.queue
            message = item.message
            if not item.kept:
                continue
            if item.answer is None:
                sequence = message.sequence
                message.marks |= MARK_SAVING
                message.rarely().stored = sequence
                self._flights.store(queue, message.size)
                queue.appended = sequence
                tail = queue.tail_of(message)
                if tail is not None:
                    tail.skip[sequence] = None
                name = queue.channel_name
                appended.append(
                    Append(0, message, name, queue.queue_id, queue.key, sequence, False, 0, 0)
                )
                continue
            rare = message.rarely()
            if rare.old:
                erased.append(Erase(0, rare.old_key, rare.old))
            erased.extend(erasures_between(message))
            if rare.stored:
                erased.append(Erase(0, queue.key, rare.stored))
        core.unsynced_bytes += batch.size
        self._ask(batch, CommitBatch(appended, erased, core.now))

    def _ask(self, batch: PendingBatch, effect: CommitBatch) -> None:
        core = self._core
        core.charge(batch.memory)
        core.last_ticket += 1
        core.tickets[core.last_ticket] = batch
        effect.ticket = core.last_ticket
        core.out.append(effect)

    def synced(self, batch: PendingBatch, ok: bool) -> None:
        """Handle the storage's answer about a batch."""
        core = self._core
        core.refund(batch.memory)
        if batch.is_finished:
            self._tell(batch, RESULT_OK if ok else RESULT_BUSY)
            return
        core.unsynced_bytes -= batch.size
        for item in batch.items:
            if item.kept and item.answer is None:
                self._answered(item, ok)
        if ok:
            self._finish(batch)
        else:
            self._give_up(batch)

    def _answered(self, item: Item, ok: bool) -> None:
        """Record whether a pushed message was saved."""
        message = item.message
        message.marks &= ~MARK_SAVING
        if not ok:
            message.rarely().stored = 0
            self._flights.unstore(item.queue, message.size)
            return
        message.marks |= MARK_SAVED
        self._flights.save(item.queue, 1)
        self._core.became_safe(item.queue, message.sequence)

    def _finish(self, batch: PendingBatch) -> None:
        """Make the batch visible, after those that are not finished."""
        self._unfinished.append(batch)
        if len(self._unfinished) == 1:
            self.go_on()

    def has_work(self) -> bool:
        """Whether a saved batch is not finished."""
        return len(self._unfinished) > 0

    def go_on(self) -> None:
        """Finish batches within the budget, and answer their clients."""
        core = self._core
        while self._unfinished:
            batch = self._unfinished[0]
            while batch.done < len(batch.items):
                if core.budget <= 0:
                    return
                core.budget -= 1
                item = batch.items[batch.done]
                batch.done += 1
                if item.answer is None:
                    self._push(item)
                else:
                    self._take_answer(item, item.answer, item.consumer)
            fed = self._fed_by(batch)
            if any([queue.high_count or queue.regular_count for queue in fed]):
                return  # the pump first copies what the budget left to it
            self._unfinished.popleft()
            if fed:
                self._await_copies(batch)
            else:
                self._tell(batch, RESULT_OK)

    def _fed_by(self, batch: PendingBatch) -> list[Queue]:
        """The queues of a batch that store nothing and feed durable queues."""
        found: list[Queue] = []
        if not self._core.stores:
            return found
        for item in batch.items:
            queue = item.queue
            feeds = queue.feeds
            if feeds is None or item.fed or queue.discipline.stores or queue.closed:
                continue
            saves = any([target_of(feed).saves for feed in feeds])
            if saves and item.answer is None and queue not in found:
                found.append(queue)
        return found

    def _await_copies(self, batch: PendingBatch) -> None:
        """Have the client answered when all requests so far are saved; the items of the batch are
        dropped."""
        batch.is_finished = True
        self._core.work += len(batch.items)
        batch.items = []
        batch.done = batch.size = 0
        batch.memory = batch_bytes(0, 0)
        self._ask(batch, CommitBatch([], [], self._core.now))

    def _push(self, item: Item) -> None:
        queue = item.queue
        message = item.message
        self._flights.withhold(queue, -1)
        if not item.kept:
            queue.sequence += 1
            message.sequence = queue.sequence  # because others arrived meanwhile
        if queue.closed:
            # The queue was removed meanwhile, with this message.
            self._flights.count_cleared(queue, 1)
            self._forgotten(queue, message)
            self._outcomes.settle(queue, message)
        else:
            self._workflow.receive_safe(queue, message, item.decision, self._core.now)

    def _take_answer(self, item: Item, answer: Command, session: Session) -> None:
        queue = item.queue
        message = item.message
        message.break_promise(session)
        if queue.flight(message.flight_key) is not message or not message.is_held_by(session):
            return  # it was cleared meanwhile
        if item.kept and not message.rarely().old:
            self._forgotten(queue, message)
        now = self._core.now
        if isinstance(answer, Release):
            self._flights.release(queue, message, session)
            self._workflow.mark_released(message, answer, now)
        else:
            assert isinstance(answer, Acknowledge)
            self._flights.answer_for(queue, message, session, answer.positive)
            if item.decision is not ALLOW:
                outcomes = self._outcomes
                outcomes.apply_answer(queue, message, item.decision, session, answer)
                outcomes.mark_put_back(message, item.decision.put_back)
        self._workflow.judge(queue, message, now)

    def _forgotten(self, queue: Queue, message: Message) -> None:
        """Record that the batch has erased a message in the storage."""
        if message.marks & KEPT:
            message.marks &= ~KEPT
            self._flights.unstore(queue, message.size)

    def _give_up(self, batch: PendingBatch) -> None:
        """Undo the batch."""
        for item in batch.items:
            if item.answer is None:
                self._flights.withhold(item.queue, -1)
                self._flights.take_back(item.queue, 1)
                self._flights.let_go(item.queue, item.message)
            else:
                self._give_back(item)
        self._tell(batch, RESULT_BUSY)

    def _give_back(self, item: Item) -> None:
        item.message.break_promise(item.consumer)

    def _tell(self, batch: PendingBatch, code: int) -> None:
        self._core.work += len(batch.items)
        if batch.request is not None and batch.session.alive:
            self._core.out.append(Reply(batch.session.number, batch.request, code))
