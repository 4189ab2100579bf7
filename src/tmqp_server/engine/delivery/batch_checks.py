"""The parts of batches, and the checks whether a batch can be carried out."""

from __future__ import annotations

from typing import Final, TypeAlias

from tmqp.constants import (
    PUT_BACK_NO,
    RESULT_NOT_FOUND,
    RESULT_NOT_IMPLEMENTED,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES, QUEUE_OPTIONS, batch_bytes
from tmqp_server.engine.commands import Acknowledge, Batch, Command, Push, Release, SessionCommand
from tmqp_server.engine.core import Core, PendingWrite
from tmqp_server.engine.delivery.feed_commits import target_of
from tmqp_server.engine.delivery.feed_copies import copy_of
from tmqp_server.engine.delivery.feed_rooms import FeedRooms
from tmqp_server.engine.delivery.intake import Intake, take_extras
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.directory import Directory
from tmqp_server.engine.model.delivery import ALLOW, HOOK_ACKNOWLEDGED, HOOK_RECEIVED, Decision
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

__all__ = ["KEPT", "BatchChecks", "Item", "PendingBatch"]

#: The storage has the message, or was asked to save it.
KEPT: Final = MARK_SAVED | MARK_SAVING

_Answer: TypeAlias = Acknowledge | Release


class Item:
    """A checked part of a batch: a message to push, or an answer to a delivery.

    ``answer`` is None for a push, otherwise the answer of ``consumer``: the client, or one of its
    branches.  ``kept`` means that the storage saves or erases the message with the batch;
    ``settles``, that the answer is the last one; ``fed``, that the feeds there are copy the message
    with the batch; ``from_disk``, that a moved message was on disk only.
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
    """A batch that the storage has not answered yet, and the request that waits for it.

    ``size`` is that of the messages to save, ``memory`` the charge in the books beyond the
    messages.  When the batch is saved, its first ``done`` items are finished.  ``is_finished``
    means that all are finished, and the client waits for the copies that feeds made.
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
    """What the pushes of a batch take in one queue, while the batch is checked."""

    __slots__ = ("pushes", "size")

    def __init__(self) -> None:
        self.pushes = 0
        self.size = 0


class BatchChecks:
    """Finds everything in a batch that must be refused, before any part is carried out."""

    __slots__ = ("_core", "_directory", "_feeds", "_intake", "_outcomes")

    def __init__(
        self, core: Core, directory: Directory, outcomes: Outcomes, intake: Intake
    ) -> None:
        self._core = core
        self._directory = directory
        self._outcomes = outcomes
        self._intake = intake
        self._feeds = FeedRooms(core, outcomes)

    def problem_of(self, command: Batch, batch: PendingBatch) -> int:
        """Return 0 if all of a batch can be carried out, otherwise the result code to answer; its
        parts are added to *batch*, up to the first that cannot."""
        code = self._problem_of_whole(command, batch.session)
        rooms: dict[int, _Room] = {}
        for each in command.commands:
            if code != RESULT_OK:
                break
            if isinstance(each, Push):
                code = self.check_push(batch, each, rooms)
            elif isinstance(each, (Acknowledge, Release)):
                code = self._check_answer(batch, each)
        if code == RESULT_OK:
            code = self.problem_of_room(batch, len(command.commands))
        return code

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

    def check_push(self, batch: PendingBatch, push: Push, rooms: dict[int, _Room]) -> int:
        """Return 0 if a push can be part of a batch, and add it; otherwise the result code to
        answer."""
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
        """Return 0 if the copies of a pushed message can be part of the batch, and add them;
        otherwise the result code to answer.

        A durable queue's message is copied later: nothing is lost meanwhile.  A feed that is added
        while the batch is saved copies its messages afterwards, and the batch does not wait for it:
        if it did, a write that failed then would void in words what has been done.
        """
        if queue.saves or queue.exclusive or not queue.discipline.sends:
            return RESULT_OK
        batch.items[-1].fed = True
        feeds = queue.feeds
        if feeds is None:
            return RESULT_OK
        message.marks |= MARK_FED
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
        """The decision of a queue's handler about a push."""
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
        """Return 0 if an answer to a delivery can be part of a batch, and add it; otherwise the
        result code to answer."""
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
            item.kept = message.marks & KEPT != 0 and self._core.stores
        batch.items.append(item)
        return RESULT_OK

    def problem_of_room(self, batch: PendingBatch, parts: int) -> int:
        """Return 0 if there is memory for the whole batch and the storage can take its part;
        otherwise the result code to answer.

        Messages that the batch settles make room for those that it pushes.  Otherwise consumers
        that push results could not continue when the memory is full.
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


def _one_of(client: Session, number: int) -> Session | None:
    """The client or the branch of it with this number; None if neither."""
    branches = client.branches or {}
    return client if number == client.number else branches.get(number)
