"""Time in the engine: expiry and wake-ups without a timer for every message.

Theory of operation.  The engine has no clock: each step gets ``now`` and the world asks for the
next deadline.  Three structures keep that cheap.

*Acknowledgement timeouts* need no structure of their own: a queue's messages in flight are in the
order in which they were sent and share one timeout, so the oldest is always the next
(``queues.py``).

*Expiry* is an ``ExpiryWheel`` in each list of waiting messages: messages by the tick in which they
expire.  A message enters when it starts to wait and is removed when it stops, so the wheel has only
waiting messages; they expire within one tick of their deadline and never early (C8).

*Wake-ups*: each queue that waits for a time has one entry in one heap, for the earliest of its
times.  A queue that must be woken earlier gets a second entry; the first is skipped when its time
comes.
"""

from __future__ import annotations

import heapq
from typing import Final

from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.times import NEVER

__all__ = ["TICK_S", "ExpiryWheel", "HoldTimer", "Sleeper", "Wakeups"]

#: Expired messages are removed within this many seconds (the original: 1 s, F97).  A power of two,
#: so that no rounding makes a tick early.
TICK_S: Final = 0.125
#: Stale entries are swept out beyond this number and twice the number of valid ones.
_SPARE_ENTRIES: Final = 256


class ExpiryWheel:
    """Messages by the tick in which they expire."""

    __slots__ = ("_order", "_ticks")

    def __init__(self) -> None:
        self._ticks: dict[int, dict[int, Message]] = {}
        # A heap of ticks; one that _ticks no longer has is skipped.
        self._order: list[int] = []

    def add(self, message: Message, expires_at: float) -> None:
        """Have *message* expire in the tick that ends at or after *expires_at*."""
        tick = int(expires_at / TICK_S) + 1
        bucket = self._ticks.get(tick)
        if bucket is None:
            bucket = {}
            self._ticks[tick] = bucket
            if len(self._order) > 64 and len(self._order) > 2 * len(self._ticks):
                self._order = sorted(self._ticks)
            else:
                heapq.heappush(self._order, tick)
        bucket[message.sequence] = message

    def remove(self, message: Message, expires_at: float) -> None:
        """Remove *message*; it must be in the wheel."""
        tick = int(expires_at / TICK_S) + 1
        bucket = self._ticks[tick]
        del bucket[message.sequence]
        if not bucket:
            del self._ticks[tick]

    def next_due(self) -> float:
        """When the next message expires, or NEVER."""
        order = self._order
        while order:
            tick = order[0]
            if tick in self._ticks:
                return tick * TICK_S
            heapq.heappop(order)
        return NEVER

    def take_due(self, now: float, limit: int) -> list[Message]:
        """Remove and return up to *limit* messages that have expired, earliest tick first."""
        due: list[Message] = []
        while len(due) < limit and self.next_due() <= now:
            tick = self._order[0]
            bucket = self._ticks[tick]
            wanted = limit - len(due)
            if len(bucket) <= wanted:
                due.extend(bucket.values())
                del self._ticks[tick]
                continue
            for sequence in list(bucket)[:wanted]:
                due.append(bucket.pop(sequence))
        return due


class Sleeper:
    """An object that can be woken; it remembers when."""

    __slots__ = ("wake_at",)

    def __init__(self) -> None:
        self.wake_at = NEVER


class HoldTimer(Sleeper):
    """Wakes the table of held pushes."""

    __slots__ = ()


class Wakeups:
    """The objects to wake, the earliest first; at the same time, in the order of requests."""

    __slots__ = ("_armed", "_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Sleeper]] = []
        self._count = 0
        #: The number of sleepers that will be woken.
        self._armed = 0

    def __len__(self) -> int:
        return len(self._heap)

    def arm(self, sleeper: Sleeper, when: float) -> None:
        """Wake *sleeper* at *when*, unless it will be woken earlier anyway."""
        if when >= sleeper.wake_at:
            return
        if sleeper.wake_at == NEVER:
            self._armed += 1
        sleeper.wake_at = when
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, sleeper))
        if len(self._heap) > 2 * self._armed + _SPARE_ENTRIES:
            self._sweep()

    def disarm(self, sleeper: Sleeper) -> None:
        """Do not wake *sleeper*."""
        if sleeper.wake_at != NEVER:
            sleeper.wake_at = NEVER
            self._armed -= 1

    def _sweep(self) -> None:
        """Drop stale entries, whose time may be years away."""
        self._heap = [entry for entry in self._heap if entry[2].wake_at == entry[0]]
        heapq.heapify(self._heap)

    def next_due(self) -> float:
        """When the next sleeper must be woken, or NEVER."""
        heap = self._heap
        while heap:
            when, _, sleeper = heap[0]
            if sleeper.wake_at == when:
                return when
            heapq.heappop(heap)
        return NEVER

    def take_due(self, now: float) -> Sleeper | None:
        """The next sleeper whose time is over, now awake, or None."""
        if self.next_due() > now:
            return None
        sleeper = heapq.heappop(self._heap)[2]
        sleeper.wake_at = NEVER
        self._armed -= 1
        return sleeper
