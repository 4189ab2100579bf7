"""Whether there is room for a message: in its queue, in memory, on the disk."""

from __future__ import annotations

from tmqp.constants import (
    RESULT_BUSY,
    RESULT_OK,
    RESULT_UNAUTHORIZED,
)
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES, QUEUE_OPTIONS
from tmqp_server.engine.core import Core
from tmqp_server.engine.model.message import MARK_SAVED, MARK_SAVING, Message
from tmqp_server.engine.model.queues import Queue

__all__ = ["Rooms"]


class Rooms:
    """Checks whether there is room; what makes room is in ``outcomes.py``."""

    __slots__ = ("_core",)

    def __init__(self, core: Core) -> None:
        self._core = core

    def problem_of_push(
        self, queue: Queue, size: int, has_disk: bool, replaced: Message | None
    ) -> int:
        """0 if a message of *size* bytes can enter, else the result code to answer (F75).

        With *has_disk*, the queue's disk limit is ignored.  *replaced* makes way for the message.
        """
        more = more_bytes = 0
        if replaced is not None:
            more, more_bytes = -1, -replaced.size
        problem = self.problem_of_queue(queue, size, more, more_bytes, has_disk)
        if problem == RESULT_OK:
            memory = size + more_bytes + (more + 1) * MESSAGE_OVERHEAD_BYTES
            if self._core.total_bytes + memory > self._core.most_bytes:
                problem = self._core.short_of("max_total_bytes", RESULT_BUSY)
        return problem

    def problem_of_queue(
        self, queue: Queue, size: int, more: int, more_bytes: int, has_disk: bool = False
    ) -> int:
        """The same without the server's memory: a moved message is charged already, and a batch is
        checked as a whole.

        *more* messages of *more_bytes* bytes will enter before it.
        """
        core = self._core
        limits = core.limits
        if queue.discipline.refuses:
            return RESULT_UNAUTHORIZED
        options = queue.options
        if 0 < options.message_size_limit < size:
            return core.short_of(QUEUE_OPTIONS)
        if size > limits.max_message_bytes:
            return core.short_of("max_message_bytes")
        if not queue.discipline.replaces:
            waiting = queue.waiting_count() + queue.spilled + len(queue.deferred)
            waiting += queue.withheld + more
            if 0 < options.message_limit <= waiting:
                return core.short_of(QUEUE_OPTIONS)
        if queue.count + more >= limits.max_messages_per_queue:
            return core.short_of("max_messages_per_queue")
        size += more_bytes
        if queue.bytes + size > queue.byte_cap:
            return core.short_of("max_queue_bytes")
        return self._problem_of_storage(queue, size, has_disk)

    def _problem_of_storage(self, queue: Queue, size: int, has_disk: bool) -> int:
        """503 if a message must go to a storage that fails or is too busy; 482 if the queue's disk
        limit is reached; otherwise 0."""
        if not queue.must_save():
            return RESULT_OK
        if not self._core.has_room_to_save(size):
            return self._core.short_of_storage()
        if has_disk or queue.disk_bytes + size <= queue.disk_cap:
            return RESULT_OK
        return self._core.short_of(QUEUE_OPTIONS)

    def replaced_in(self, queue: Queue) -> Message | None:
        """The message of a cache that makes way for the next one in the same step; None if there is
        none, or if its room is not enough for a durable one."""
        if not queue.discipline.replaces or queue.waiting_count() != 1 or queue.spilled:
            return None
        latest = queue.latest()
        assert latest is not None, "one waits"
        kept = latest.marks & (MARK_SAVED | MARK_SAVING)
        return latest if kept or not queue.saves else None
