"""Messages that are read back from the storage."""

from __future__ import annotations

from typing import final

from tmqp_server.engine.commands import KeptMessage
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_CONFIRMED, MARK_HIGH, MARK_WANTS, Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.times import AT_ONCE, NEVER

__all__ = ["Returned"]


@final
class Returned:
    """Creates the messages of one answer of the storage again, for one queue and one priority.

    Their producers get no more confirms; messages of one client id and door share one producer.
    """

    __slots__ = ("_producers", "_queue", "_marks")

    def __init__(self, queue: Queue, high_priority: bool) -> None:
        self._queue = queue
        self._marks = MARK_CONFIRMED | MARK_HIGH if high_priority else MARK_CONFIRMED
        self._producers: dict[str, Origin] = {}

    def message(self, kept: KeptMessage, marks: int, now: float) -> Message:
        """Create a message as it was, with further marks."""
        queue = self._queue
        marks |= self._marks | kept.marks
        if kept.wants_confirm:
            marks |= MARK_WANTS
        message = Message(
            kept.message_id,
            self._producer(kept),
            queue.channel_name if kept.channel is None else kept.channel,
            queue.queue_id,
            kept.size,
            kept.wire,
            marks,
            kept.sequence,
        )
        if not kept.message_id:
            queue.expect_nameless()
        message.attempts = kept.attempts
        if kept.attempts == 0 and kept.sequence <= queue.suspect:
            message.attempts = 1
        if kept.put_backs or kept.hops or kept.expires_at != NEVER or kept.due_at > now:
            rare = message.rarely()
            rare.put_backs = kept.put_backs
            rare.hops = kept.hops
            rare.expires_at = kept.expires_at
            rare.due_at = kept.due_at if kept.due_at > now else AT_ONCE
        return message

    def _producer(self, kept: KeptMessage) -> Origin:
        producer = self._producers.get(kept.source)
        if producer is None or producer.door != kept.door:
            producer = Origin(0, kept.source, None, None, kept.door)
            producer.alive = False
            self._producers[kept.source] = producer
        return producer
