"""Requests to the storage that it has not answered yet."""

from __future__ import annotations

from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.tails import Tail

__all__ = [
    "PendingChange",
    "PendingFetch",
    "PendingRead",
    "PendingRun",
    "PendingSave",
    "PendingWrite",
]


class PendingWrite:
    """A write that the storage has not answered yet."""

    __slots__ = ()


class PendingSave(PendingWrite):
    """A message, and the queue that it was in.

    A message with a ``tail`` is in no list of its queue: it is released when the storage has it.
    """

    __slots__ = ("message", "queue", "sequence", "tail", "transient")

    def __init__(self, message: Message, queue: Queue, sequence: int, transient: bool) -> None:
        self.message = message
        self.queue = queue
        self.sequence = sequence
        self.tail: Tail | None = None
        self.transient = transient


class PendingRun(PendingWrite):
    """Messages of a run, of one producer, and the queue that they were in; ``size`` is their total
    size.

    They are stored under ``first`` and the following sequences.  A message that was requested again
    since has its own ticket.
    """

    __slots__ = ("messages", "queue", "producer", "size", "first")

    def __init__(
        self, messages: list[Message], queue: Queue, producer: Origin, size: int, first: int
    ) -> None:
        self.messages = messages
        self.queue = queue
        self.producer = producer
        self.size = size
        self.first = first


class PendingChange(PendingWrite):
    """A change of the topology, the reply that waits for it, and its charge in the books."""

    __slots__ = ("reply", "memory")

    def __init__(self, memory: int) -> None:
        self.reply: Reply | None = None
        self.memory = memory


class PendingRead:
    """Stored messages of one priority of a queue that were requested."""

    __slots__ = ("queue", "high_priority")

    def __init__(self, queue: Queue, high_priority: bool) -> None:
        self.queue = queue
        self.high_priority = high_priority


class PendingFetch(PendingRead):
    """A portion of a tail that was requested."""

    __slots__ = ("tail",)

    def __init__(self, queue: Queue, tail: Tail, high_priority: bool) -> None:
        super().__init__(queue, high_priority)
        self.tail = tail
