"""Deliveries with their own timeouts: from a consumer's terms, or extended.

A queue's other messages in flight are in the order of their timeouts, because all have the queue's
timeout.  These are separate, with a heap that knows the next one.  An entry of the heap may be out
of date, because the message was settled or its time was changed; it is dropped when it comes to the
top.
"""

from __future__ import annotations

import heapq
from typing import Final

from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.message import MARK_TIMED, Message, Timing
from tmqp_server.engine.model.times import NEVER

__all__ = ["TimedFlights", "due_of", "set_due", "timing_of"]

#: Stale entries that are tolerated.
_SOME: Final = 64


class TimedFlights:
    """Messages in flight with consumers that have their own times; each has a ``Timing``.

    ``messages`` has the same keys as a queue's ``flights``.
    """

    __slots__ = ("messages", "_heap")

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self._heap: list[tuple[float, int, Message]] = []

    def put(self, message: Message, timeout_s: float) -> float:
        """Update and return a message's earliest time; *timeout_s* is for consumers without their
        own time."""
        timing = timing_of(message)
        due = NEVER
        holder = message.holder
        if holder is not None:
            due = due_of(message, timing, holder, timeout_s)
        elif message.holders is not None:
            for client in message.holders.values():
                due = min(due, due_of(message, timing, client, timeout_s))
        if due != timing.due:
            timing.due = due
            if due != NEVER:
                heapq.heappush(self._heap, (due, message.sequence, message))
        if len(self._heap) > 2 * len(self.messages) + _SOME:
            self._compact()
        return due

    def _compact(self) -> None:
        """Drop the entries that are out of date."""
        heap: list[tuple[float, int, Message]] = []
        for message in self.messages.values():
            due = timing_of(message).due
            if due != NEVER:
                heap.append((due, message.sequence, message))
        heapq.heapify(heap)
        self._heap = heap

    def change_timeout(self, timeout_s: float) -> None:
        """Apply a new timeout of the queue, which counts for consumers without their own time."""
        for message in self.messages.values():
            self.put(message, timeout_s)

    def next_due(self) -> float:
        """The earliest time; it may be too early if consumers have answered."""
        heap = self._heap
        while heap:
            due, _, message = heap[0]
            rare = message.rare
            if rare is not None and rare.timing is not None and rare.timing.due == due:
                return due
            heapq.heappop(heap)
        return NEVER

    def overdue(self, now: float, timeout_s: float) -> Message | None:
        """A message for which a consumer's time is over; None if there is none."""
        while self.next_due() <= now:
            due, _, message = self._heap[0]
            # The consumer whose time it was may have answered.
            if self.put(message, timeout_s) == due:
                return message
        return None


def timing_of(message: Message) -> Timing:
    """The ``Timing`` of a message that has one."""
    rare = message.rare
    timing = None if rare is None else rare.timing
    assert timing is not None, "it has times"
    return timing


def due_of(message: Message, timing: Timing, client: Client, timeout_s: float) -> float:
    """When a consumer must have answered."""
    return timing.get(client.number, message.sent_at + timeout_s)


def set_due(message: Message, client: Client, due: float) -> None:
    """Set when a consumer must have answered a message that is in flight, or will be."""
    rare = message.rarely()
    if rare.timing is None:
        message.marks |= MARK_TIMED
        rare.timing = Timing(client.number, due)
    else:
        rare.timing.set(client.number, due)
