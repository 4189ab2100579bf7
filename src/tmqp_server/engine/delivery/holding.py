"""Pushes that wait for room instead of being refused.

Theory of operation.  A push may say how long it waits (``PushExtras.wait_ms``).  If there is no
room for it, because its queue or the memory is full, or because the storage has too much to do, it
is *held* instead of being refused with 482 or 503, and so are the following commands of its
connection: the hub keeps them and reads no more, so the data waits in the producer's kernel.  A
connection has at most one held push.  A push that never fits, because it is larger than its queue
allows, is refused immediately.

The held pushes for one queue are in one line, in order of arrival.  The first is tried again when a
message has left the queue (``Queue.expected``), and in any case a little later, because room also
comes from elsewhere: from another queue, from the storage, from changed options.  A push that does
not wait may be faster.

A held push ends with an answer like any other push, or with its time: then it is refused as if it
had not waited.  ``PushDecided`` tells the hub that its connection continues.  The end of the
connection ends it silently.

Only this module changes the table of held pushes.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.constants import RESULT_BUSY, RESULT_LIMIT_EXCEEDED
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import Push, connection_of
from tmqp_server.engine.core import Core
from tmqp_server.engine.effects import PushDecided
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.times import NEVER

__all__ = ["HeldPush", "Holding"]

#: How long until a line is tried again although nothing has left its queue, in seconds.
_RETRY_S: Final = 0.05
#: Ends a series of steps (``Broker.steps``).
_A_PORTION: Final = 1_000


@final
class HeldPush:
    """A waiting push, the number of its connection, and its queue.

    ``due`` is when its time is over; ``stays`` means that it still waits after an attempt.
    """

    __slots__ = ("due", "memory", "number", "push", "queue", "stays")

    def __init__(self, push: Push, number: int, queue: Queue, due: float, memory: int) -> None:
        self.push = push
        self.number = number
        self.queue = queue
        self.due = due
        self.memory = memory
        self.stays = True


@final
class Holding:
    """The table of held pushes."""

    __slots__ = ("_core", "_held", "_left", "_lines", "_next_due", "_retry_at", "_trying")

    def __init__(self, core: Core) -> None:
        self._core = core
        #: By connection.
        self._held: dict[int, HeldPush] = {}
        #: By the key of the queue: the pushes that wait for it, by connection, in order.
        self._lines: dict[int, dict[int, HeldPush]] = {}
        #: Not later than the earliest ``HeldPush.due``.
        self._next_due = NEVER
        #: When all lines are tried again.
        self._retry_at = NEVER
        self._trying: HeldPush | None = None
        #: Those for which the last step had no budget: they are tried first.
        self._left: list[HeldPush] = []

    def __len__(self) -> int:
        return len(self._held)

    def holds(self, connection: int) -> bool:
        """Whether a push of a connection, or of one of its branches, is held."""
        return len(self._held) > 0 and connection in self._held

    def charged(self) -> int:
        """What all of them take, in bytes."""
        return sum([held.memory for held in self._held.values()])

    def hold(self, push: Push, session: Session, queue: Queue, problem: int, now: float) -> bool:
        """Hold a push that was not accepted because of this *problem*; return False if it must be
        refused."""
        extras = push.extras
        if extras is None or extras.wait_ms == 0:
            return False
        if problem != RESULT_LIMIT_EXCEEDED and problem != RESULT_BUSY:
            return False
        size = push.size
        if size > queue.size_cap or size > queue.byte_cap or queue.count_cap <= 0:
            return False  # it never fits
        if queue.is_too_large_for_disk(size):
            return False
        held = self._trying
        if held is not None and held.push is push:
            held.stays = now < held.due
            return held.stays
        number = connection_of(push.session)
        core = self._core
        memory = size + MESSAGE_OVERHEAD_BYTES
        if number in self._held or session.node or not core.has_room_for_client(memory):
            return False
        due = NEVER if extras.wait_ms < 0 else now + extras.wait_ms / 1000
        self._add(HeldPush(push, number, queue, due, memory))
        # No later command of the same batch may be carried out before it.
        core.work += _A_PORTION
        return True

    def _add(self, held: HeldPush) -> None:
        core = self._core
        queue = held.queue
        core.charge(held.memory)
        self._held[held.number] = held
        line = self._lines.get(queue.key)
        if line is None:
            line = self._lines[queue.key] = {}
        line[held.number] = held
        queue.expect(len(line))
        self._next_due = min(self._next_due, held.due)
        self._retry_at = min(self._retry_at, core.now + _RETRY_S)
        core.wakeups.arm(core.hold_timer, min(self._retry_at, held.due))

    def _remove(self, held: HeldPush) -> None:
        queue = held.queue
        self._core.refund(held.memory)
        del self._held[held.number]
        line = self._lines[queue.key]
        del line[held.number]
        queue.expect(len(line))
        if not line:
            del self._lines[queue.key]

    def forget(self, session: Session) -> None:
        """Drop the held push of a connection, or of its branch, that has ended."""
        held = self._held.get(connection_of(session.number))
        if held is not None and held.push.session == session.number:
            self._remove(held)
            if session.parent is not None:
                self._core.out.append(PushDecided(held.number))

    # --- Again -----------------------------------------------------------------------------------

    def due(self, now: float) -> list[HeldPush]:
        """The pushes to try: those whose time is over, and the first of each line whose queue a
        message has left; from time to time the first of every line.

        For each of them, the caller must call :meth:`begin`, push it, and call :meth:`end`; finally
        :meth:`rest`.
        """
        core = self._core
        left, self._left = self._left, []
        if left:
            return left
        found: dict[int, HeldPush] = {}
        if now >= self._next_due:
            self._next_due = NEVER
            for held in self._held.values():
                if held.due <= now:
                    found[held.number] = held
                else:
                    self._next_due = min(self._next_due, held.due)
        freed, core.freed = core.freed, {}
        if now >= self._retry_at:
            self._retry_at = NEVER
            freed = dict.fromkeys(self._lines)
        for key in freed:
            line = self._lines.get(key)
            if line is not None:
                first = next(iter(line.values()))
                found[first.number] = first
        return list(found.values())

    def begin(self, held: HeldPush) -> bool:
        """Begin an attempt; return False if the push does not wait any more."""
        if self._held.get(held.number) is not held:
            return False
        core = self._core
        core.budget -= 1
        core.refund(held.memory)  # otherwise its own charge would be in its way
        held.stays = False
        self._trying = held
        return True

    def end(self, held: HeldPush) -> HeldPush | None:
        """End an attempt; if the push waits no more, return the next one of its line."""
        self._trying = None
        core = self._core
        core.charge(held.memory)
        if held.stays:
            return None
        line = self._lines[held.queue.key]
        self._remove(held)
        core.out.append(PushDecided(held.number))
        return next(iter(line.values())) if line else None

    def rest(self, left: list[HeldPush]) -> None:
        """End the round; *left* are the pushes for which the budget was not enough."""
        if not self._held:
            return
        core = self._core
        self._left = left
        self._retry_at = min(self._retry_at, core.now + _RETRY_S)
        due = core.now if left else min(self._retry_at, self._next_due)
        core.wakeups.arm(core.hold_timer, due)
