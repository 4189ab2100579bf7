"""``Trash``: cleared messages of a queue, which are freed in portions."""

from __future__ import annotations

from collections import deque

from tmqp_server.engine.model.deferrals import Deferral
from tmqp_server.engine.model.delivery import QueueFacts
from tmqp_server.engine.model.message import MARK_GONE, Message
from tmqp_server.engine.model.waiting_parts import WaitingPart

__all__ = ["Trash"]


class Trash:
    """Cleared messages of a queue, which are disposed of in portions."""

    __slots__ = ("queue", "lists", "parts", "deferred", "shelved", "in_hand", "timed")

    def __init__(self, queue: QueueFacts) -> None:
        self.queue = queue
        self.lists: list[deque[Message]] = []
        self.parts: deque[WaitingPart] = deque()
        self.deferred: list[list[Deferral]] = []
        self.shelved: list[dict[int, Deferral]] = []
        self.in_hand: dict[str, Message] = {}
        self.timed: dict[str, Message] = {}

    def take(self) -> Message | None:
        """The next message to dispose of, or None when nothing is left."""
        lists = self.lists
        while lists or self.parts:
            if not lists:
                lists.append(deque(self.parts.popleft().messages()))
            messages = lists[0]
            while messages:
                message = messages.popleft()
                if not message.marks & MARK_GONE:  # a tombstone was settled when it expired
                    return message
            del lists[0]
        for entries in self.deferred:
            if entries:
                return entries.pop().message
        if self.in_hand:
            return self.in_hand.popitem()[1]
        if self.timed:
            return self.timed.popitem()[1]
        return None

    def take_shelved(self) -> Deferral | None:
        """The next message to dispose of that was on disk only, or None when nothing is left."""
        for entries in self.shelved:
            if entries:
                return entries.popitem()[1]
        return None
