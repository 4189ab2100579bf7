"""Moves messages from one queue to another, for operators.

Theory of operation.  A move is a batch of two parts (``batches.py``): the copy is pushed, and the
original is settled.  The storage does both or neither, with one ticket.  Until it has answered,
both are *withheld*: the message is in no list of its queue, and cannot be sent, pulled, cleared or
expired.  If the move cannot be saved, the message waits again, before the others of its priority;
one that was on disk only waits after those in memory, where it belongs.
"""

from __future__ import annotations

from tmqp.constants import (
    RESULT_BUSY,
    RESULT_NOT_IMPLEMENTED,
    RESULT_OK,
    RESULT_UNACCEPTABLE,
)
from tmqp_server.engine.commands import Command, KeptMessage, MoveMessage
from tmqp_server.engine.delivery.batch_checks import Item, PendingBatch
from tmqp_server.engine.delivery.batches import Batches
from tmqp_server.engine.delivery.deferring import tell_cancelled
from tmqp_server.engine.delivery.returning import Returned
from tmqp_server.engine.effects import Erase
from tmqp_server.engine.flights.keying import let_go
from tmqp_server.engine.model.delivery import ALLOW
from tmqp_server.engine.model.message import (
    MARK_GONE,
    MARK_KEYED,
    MARK_SAVED,
    MARK_SAVING,
    Message,
)
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session

__all__ = ["Moves"]


class Moves(Batches):
    """Carries out batches and moves."""

    __slots__ = ()

    def move(
        self,
        command: MoveMessage,
        session: Session,
        queue: Queue,
        message: Message | None,
        kept: KeptMessage | None,
        high_priority: bool,
    ) -> None:
        """Move a message that waits in *queue*: in memory, or *kept* on disk only."""
        core = self._core
        batch = PendingBatch(session, command.request)
        code = self._problem_of_move(batch, command, queue, message)
        if code == RESULT_OK:
            if message is None:
                assert kept is not None, "one of the two"
                marks = 0 if kept.transient else MARK_SAVED
                message = Returned(queue, high_priority).message(kept, marks, core.now)
            item = Item(queue, message, session, command, ALLOW)
            item.settles = True
            item.from_disk = kept is not None
            item.kept = core.stores and message.marks & MARK_SAVED != 0
            batch.items.append(item)
            code = self._checks.problem_of_room(batch, len(batch.items))
        if code != RESULT_OK:
            core.reply(session, command.request, code)
            return
        assert message is not None, "it was found"
        if kept is None:
            queue.withdraw(message)
            message.marks |= MARK_GONE  # a list drops tombstones when it reaches them
            queue.tidy()
        else:
            self._take_from_disk(queue, kept, high_priority)
        self._flights.withhold(queue, 1)
        core.release_pull(queue)
        if queue.spilled:
            core.refill(queue)
        self._withhold(batch)
        if any([each.kept for each in batch.items]):
            self._commit(batch)
        else:
            self._finish(batch)

    def _problem_of_move(
        self, batch: PendingBatch, command: MoveMessage, queue: Queue, message: Message | None
    ) -> int:
        """Return 0 if a message can be moved, and make its copy the first part of the batch;
        otherwise the result code to answer."""
        core = self._core
        if core.takes_nodes or core.masters:
            return RESULT_NOT_IMPLEMENTED  # other servers of a cluster would see parts of it
        if message is not None and message.marks & MARK_SAVING:
            return RESULT_BUSY  # the storage will answer about it soon
        code = self._checks.check_push(batch, command.push, {})
        if code == RESULT_OK and batch.items[0].queue is queue:
            return RESULT_UNACCEPTABLE
        return code

    def _take_from_disk(self, queue: Queue, kept: KeptMessage, high_priority: bool) -> None:
        """Take a message off the disk as a fetch does, but without putting it into a list."""
        flights = self._flights
        tail = queue.high_tail if high_priority else queue.regular_tail
        assert tail is not None, "it was found there"
        tail.skip[kept.sequence] = None  # a portion with it may be arriving
        flights.take_from_disk(queue, tail, 1, kept.size)
        if kept.transient:
            flights.unstore(queue, kept.size)
            self._core.out.append(Erase(0, queue.key, kept.sequence))
        flights.bring_back(queue, kept.size)
        flights.close_tail(queue, tail, high_priority)

    def _take_answer(self, item: Item, answer: Command, session: Session) -> None:
        if isinstance(answer, MoveMessage):
            self._moved(item)
        else:
            super()._take_answer(item, answer, session)

    def _moved(self, item: Item) -> None:
        """Settle the moved message, which counts as cleared: its copy has arrived."""
        queue = item.queue
        message = item.message
        self._flights.withhold(queue, -1)
        self._flights.count_cleared(queue, 1)
        if item.kept:
            self._forgotten(queue, message)
        if not queue.closed:
            self._outcomes.dequeued(queue, message)
        tell_cancelled(self._outcomes, message)
        self._outcomes.settle(queue, message)

    def _give_back(self, item: Item) -> None:
        answer = item.answer
        if not isinstance(answer, MoveMessage):
            super()._give_back(item)
            return
        queue = item.queue
        message = item.message
        self._flights.withhold(queue, -1)
        if queue.closed:
            # The queue was removed meanwhile, with this message.
            self._flights.count_cleared(queue, 1)
            self._outcomes.settle(queue, message)
            return
        if item.from_disk:
            queue.put_last(message)
        else:
            if message.marks & MARK_KEYED:
                let_go(self._core, queue, message, True)
            queue.put_first(_again(message))
        self._core.arm(queue)
        self._core.schedule(queue)


def _again(message: Message) -> Message:
    """The message as it was before the move: the moved object stays in its list as a tombstone
    until the list is tidied."""
    found = Message(
        message.message_id,
        message.producer,
        message.channel,
        message.queue_id,
        message.size,
        message.wire,
        message.marks & ~(MARK_GONE | MARK_KEYED),
        message.sequence,
    )
    found.attempts = message.attempts
    found.sent_at = message.sent_at
    found.rare = message.rare
    return found
