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
``awaits_copies``, they are part of the batch instead, and none is lost.

A delivery to several consumers is settled when the last of them answers.  If that is not this
batch, then its answer is in memory only, like every such answer.
"""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

from tmqp.constants import (
    PUT_BACK_NO,
    RESULT_BUSY,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp_server.engine.books import QUEUE_OPTIONS, batch_bytes
from tmqp_server.engine.commands import Acknowledge, Batch, Command, Push, Release, SessionCommand
from tmqp_server.engine.core import Core, PendingWrite
from tmqp_server.engine.delivery.feed_commits import target_of
from tmqp_server.engine.delivery.feed_copies import copy_of
from tmqp_server.engine.delivery.feed_rooms import FeedRooms
from tmqp_server.engine.delivery.intake import Intake, take_extras
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.saving import erasures_between
from tmqp_server.engine.delivery.workflow import Workflow
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.effects import Append, CommitBatch, Erase, Reply
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.limits import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.model.delivery import (
    ALLOW,
    HOOK_ACKNOWLEDGED,
    HOOK_RECEIVED,
    Decision,
)
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.handlers import saving
from tmqp_server.engine.model.message import (
    MARK_BACK,
    MARK_FED,
    MARK_HIGH,
    MARK_SAVED,
    MARK_SAVING,
    MARK_WANTS,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session

__all__ = ["Batches", "Item", "PendingBatch"]

_KEPT: Final = MARK_SAVED | MARK_SAVING

_Answer: TypeAlias = Acknowledge | Release


class Item:
    """One part of a batch, checked: a message to be pushed, or a delivery to be answered for.

    ``answer`` is None for a push, else it is that of ``consumer``: the client, or one of its
    branches.  ``kept`` says that the storage keeps the message with the batch, or forgets it;
    ``settles`` that the answer is the last one; ``fed``, that feeds copy it with the batch;
    ``from_disk``, that a message which is moved was on disk only.
    """

    __slots__ = (
        "queue", "message", "consumer", "answer", "decision", "kept", "settles", "fed", "from_disk",
    )  # fmt: skip

    def __init__(
        self,
        queue: Queue,
        message: Message,
        consumer: Session,
        answer: Command | None,
        decision: Decision,
    ) -> None:
        self.queue = queue
        self.message = message
        self.consumer = consumer
        self.answer = answer
        self.decision = decision
        self.kept = False
        self.settles = False
        self.fed = self.from_disk = False


class PendingBatch(PendingWrite):
    """A batch that the storage has not answered for, and who waits for that.

    ``size`` is that of the messages the storage is to keep, ``memory`` what the books are charged
    beyond the messages.  When it is safe, its first ``done`` items are finished.  ``is_finished``
    says that all are, and that the client waits for the copies that feeds made of them.
    """

    __slots__ = ("session", "request", "items", "size", "memory", "done", "is_finished")

    def __init__(self, session: Session, request: object) -> None:
        self.is_finished = False
        self.session = session
        self.request = request
        self.items: list[Item] = []
        self.size = 0
        self.memory = 0
        self.done = 0


class _Room:
    """What the pushes of a batch take of one queue, while it is checked."""

    __slots__ = ("pushes", "size")

    def __init__(self) -> None:
        self.pushes = 0
        self.size = 0


class Batches:
    """Carries out batches."""

    __slots__ = (
        "_core", "_directory", "_feeds", "_flights", "_intake", "_outcomes", "_unfinished",
        "_workflow",
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
        self._intake = intake
        self._flights = flights
        self._directory = directory
        self._outcomes = outcomes
        self._workflow = workflow
        self._feeds = FeedRooms(core, outcomes)
        #: Those that are safe and not finished, for that takes more than a step may.
        self._unfinished: deque[PendingBatch] = deque()

    def apply(self, command: Command, session: Session) -> None:
        """Do all of a batch, or nothing.

        Queues that the batch created by itself stay, even when it is refused in the end.
        """
        assert isinstance(command, Batch)
        core = self._core
        batch = PendingBatch(session, command.request)
        code = self._problem_of_whole(command, session)
        rooms: dict[int, _Room] = {}
        for each in command.commands:
            if code != RESULT_OK:
                break
            if isinstance(each, Push):
                code = self._check_push(batch, each, rooms)
            elif isinstance(each, (Acknowledge, Release)):
                code = self._check_answer(batch, each)
        if code == RESULT_OK:
            code = self._problem_of_room(batch, len(command.commands))
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

    # --- Checking --------------------------------------------------------------------------------

    def _problem_of_whole(self, batch: Batch, session: Session) -> int:
        core = self._core
        if core.takes_nodes or core.masters:
            return RESULT_NOT_IMPLEMENTED  # other servers of a cluster would see parts of it
        if len(batch.commands) > core.limits.max_batch_length:
            return core.reached("max_batch_length")
        size = 0
        for each in batch.commands:
            if not isinstance(each, SessionCommand) or _one_of(session, each.session) is None:
                return RESULT_UNACCEPTABLE
            if isinstance(each, (Push, Acknowledge)):
                size += each.size
            elif not isinstance(each, Release):
                return RESULT_UNACCEPTABLE
        return RESULT_OK if size <= core.limits.max_batch_bytes else core.reached("max_batch_bytes")

    def _check_push(self, batch: PendingBatch, push: Push, rooms: dict[int, _Room]) -> int:
        """0 when a push can be part of a batch; it is noted there then."""
        queue = self._directory.open_queue_of(push)
        if queue is None:
            return self._directory.problem
        room = rooms.setdefault(queue.key, _Room())
        code = self._outcomes.problem_of_queue(queue, push.size, room.pushes, room.size)
        if code != RESULT_OK:
            self._outcomes.count_refused(queue, code)
            return code
        code = self._intake.problem_of_deferral(queue, push, room.pushes, room.size)
        if code != RESULT_OK:
            self._outcomes.count_refused(queue, code)
            return code
        room.pushes += 1
        room.size += push.size
        message = self._message(queue, push, batch.session, queue.sequence + room.pushes)
        decision = self._receipt_of(queue, message)
        if not decision.allow:
            self._outcomes.count_refused(queue, RESULT_UNACCEPTABLE)
            return RESULT_UNACCEPTABLE
        if queue.options.ephemeral and queue.bounded and queue.is_over(message, False):
            return self._core.reached(QUEUE_OPTIONS)
        item = Item(queue, message, batch.session, None, decision)
        item.kept = self._outcomes.will_save(queue, message, decision)
        if item.kept:
            if queue.disk_bytes + room.size > queue.disk_cap:
                code = self._core.short_of(QUEUE_OPTIONS)
                self._outcomes.count_refused(queue, code)
                return code
            batch.size += push.size
        batch.items.append(item)
        if push.extras is not None and push.extras.awaits_copies:
            return self._check_copies(batch, queue, message, rooms)
        return RESULT_OK

    def _check_copies(
        self, batch: PendingBatch, queue: Queue, message: Message, rooms: dict[int, _Room]
    ) -> int:
        """0 when what feeds copy of a pushed message can be part of the batch; it is noted there
        then.

        Of a queue that is saved the message is copied later: nothing is lost meanwhile.
        """
        feeds = queue.feeds
        if feeds is None or queue.saves or queue.exclusive or not queue.discipline.sends:
            return RESULT_OK
        message.marks |= MARK_FED
        batch.items[-1].fed = True
        for feed in feeds:
            if not self._feeds.wants(queue, feed, message):
                feed.passed += 1
                continue
            code = self._check_copy(batch, feed, message, rooms)
            if code != RESULT_OK:
                return code
        return RESULT_OK

    def _check_copy(
        self, batch: PendingBatch, feed: Feed, message: Message, rooms: dict[int, _Room]
    ) -> int:
        target = target_of(feed)
        room = rooms.setdefault(target.key, _Room())
        code = self._outcomes.problem_of_queue(target, message.size, room.pushes, room.size)
        room.pushes += 1
        room.size += message.size
        if code == RESULT_OK and target.saves and target.disk_bytes + room.size > target.disk_cap:
            code = self._core.short_of(QUEUE_OPTIONS)
        if code != RESULT_OK:
            feed.skipped += 1
            return self._core.count_short(code)
        copy = copy_of(feed, message, self._core.now)
        copy.sequence = target.sequence + room.pushes
        decision = self._receipt_of(target, copy)
        item = Item(target, copy, batch.session, None, decision)
        item.kept = self._outcomes.will_save(target, copy, decision)
        if item.kept:
            batch.size += copy.size
        feed.copied += 1
        batch.items.append(item)
        return RESULT_OK

    def _receipt_of(self, queue: Queue, message: Message) -> Decision:
        """What the handler of a queue decides when a message comes in."""
        decision = queue.receipt_asked if message.marks & MARK_WANTS else queue.receipt
        if decision is None:
            decision = self._outcomes.ask(HOOK_RECEIVED, queue, message, None, None)
            if queue.saves:
                decision = saving(decision)
                assert decision is not None, "there was one"
        return decision

    def _message(self, queue: Queue, push: Push, session: Session, sequence: int) -> Message:
        marks = MARK_HIGH if push.high_priority else 0
        if push.wants_confirm:
            marks |= MARK_WANTS
        message = Message(
            push.message_id,
            session.origin,
            push.channel,
            push.queue_id,
            push.size,
            push.wire,
            marks,
            sequence,
        )
        now = self._core.now
        timeout_s = queue.message_timeout_s
        if push.extras is not None:
            timeout_s = take_extras(queue, message, push.extras, now)
        if timeout_s > 0.0 and queue.discipline.stores:
            message.rarely().expires_at = now + timeout_s
        return message

    def _check_answer(self, batch: PendingBatch, answer: _Answer) -> int:
        """0 when an answer to a delivery can be part of a batch; it is noted there then."""
        queue = self._directory.find_queue(answer.channel, answer.queue_id)
        if queue is None:
            return RESULT_NOT_FOUND
        session = _one_of(batch.session, answer.session)
        assert session is not None, "that was looked at first"
        message = queue.flight(answer.message_id)
        if message is None or not message.is_held_by(session):
            message = queue.duplicate_held_by(answer.message_id, session)
            if message is None:
                return RESULT_NOT_FOUND
        message.promise(session)
        decision = ALLOW
        if isinstance(answer, Acknowledge) and queue.hooks & HOOK_ACKNOWLEDGED:
            decision = self._outcomes.ask(HOOK_ACKNOWLEDGED, queue, message, session, answer)
        item = Item(queue, message, session, answer, decision)
        holders = message.holders
        is_last = message.holder is session or (holders is not None and len(holders) == 1)
        goes_back = message.marks & MARK_BACK or decision.put_back != PUT_BACK_NO
        goes_back = goes_back or isinstance(answer, Release)
        if is_last and not (goes_back and queue.discipline.stores):
            item.settles = True
            item.kept = message.marks & _KEPT != 0 and self._core.stores
        batch.items.append(item)
        return RESULT_OK

    def _problem_of_room(self, batch: PendingBatch, parts: int) -> int:
        """0 when there is memory for all of it, and the storage can take its part.

        What it settles makes room for what it pushes: or consumers that push what they make of
        messages could not continue when those fill the memory.
        """
        core = self._core
        answers = 0
        memory = 0
        kept = False
        for item in batch.items:
            size = item.message.size + MESSAGE_OVERHEAD_BYTES
            kept = kept or item.kept
            if item.answer is None:
                memory += size
            else:
                if isinstance(item.answer, Acknowledge):
                    answers += item.answer.size
                if item.settles:
                    memory -= size
        batch.memory = batch_bytes(parts, answers) if kept else 0
        if memory > 0 and not core.has_room(memory + batch.memory):
            return core.no_room()
        if not core.has_room_for_client(batch.memory):
            return core.no_room()
        if kept and not core.has_room_to_save(batch.size):
            return core.count_short(core.short_of_storage())
        return RESULT_OK

    # --- Doing -----------------------------------------------------------------------------------

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
        """Ask the storage to do its part."""
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
        """The storage has answered for a batch."""
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
        """A message that is pushed is safe, or is not."""
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
        """Let everybody see the batch, behind those that are not finished."""
        self._unfinished.append(batch)
        if len(self._unfinished) == 1:
            self.go_on()

    def has_work(self) -> bool:
        """Whether a batch is left that is safe and not finished."""
        return len(self._unfinished) > 0

    def go_on(self) -> None:
        """Finish batches, as far as the budget carries, and tell their clients."""
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
                return  # what the budget left to the pump is copied first
            self._unfinished.popleft()
            if fed:
                self._await_copies(batch)
            else:
                self._tell(batch, RESULT_OK)

    def _fed_by(self, batch: PendingBatch) -> list[Queue]:
        """The queues of a batch that keep nothing, and feed what is durable."""
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
        """Tell the client when what was asked so far is safe; nothing more of it is kept."""
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
            message.sequence = queue.sequence  # for others came meanwhile
        if queue.closed:
            # It was removed meanwhile, and this was in it.
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
        """The storage has forgotten a message, and need not be told to."""
        if message.marks & _KEPT:
            message.marks &= ~_KEPT
            self._flights.unstore(queue, message.size)

    def _give_up(self, batch: PendingBatch) -> None:
        """Let it be as if the batch had never been."""
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


def _one_of(client: Session, number: int) -> Session | None:
    """Whom of a client a command is of: the client, or one of its branches."""
    branches = client.branches or {}
    return client if number == client.number else branches.get(number)
