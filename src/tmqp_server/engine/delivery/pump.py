"""The pump: sends waiting messages to consumers that can take them, in portions that fit into a
step.

Theory of operation.  ``pump`` drains one queue until it is empty, must wait, or the portion is used
up.  A queue that waits is always pumped again:

=====================  ============================================================================
it waits for           and is pumped again by
=====================  ============================================================================
an acknowledgement     the acknowledgement or its timeout (``queue.held``, F96)
a feed's target        a message that leaves it (``queue.waiters``), or a while later
messages on disk only  ``Fetched`` (``queue.spilled``)
its audience           a join, an Unblock, a Grant, an answer: the audience's ``line`` is *awake*
a status that sends    the update of its options
the rest of a portion  the next ``on_deadline``, which is immediate: the queue is *runnable*
=====================  ============================================================================

``go_on`` processes awake lines, runnable queues and trash within one budget; queues take turns with
a bounded share, so that a queue with a million messages does not delay the others.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.choosing import Chooser
from tmqp_server.engine.delivery.feed_port import FeedPort
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.queues import Queue

__all__ = ["Pump"]

#: Work units a runnable queue gets in one turn.
_SHARE: Final = 100
#: A stored message costs one more unit for so many bytes: 2 ** 10.
_UNIT_SHIFT: Final = 10


class Pump:
    """Sends the waiting messages of queues."""

    __slots__ = ("_chooser", "_core", "_flights", "_outcomes", "_sender", "feeder")

    def __init__(self, core: Core, flights: Flights, outcomes: Outcomes, sender: Sender) -> None:
        self._core = core
        self._flights = flights
        self._outcomes = outcomes
        self._sender = sender
        self._chooser = Chooser(core, outcomes, sender)
        #: Moves the messages of queues that have feeds.
        self.feeder = FeedPort()

    def pump(self, queue: Queue, now: float, floor: int = 0) -> None:
        """Send the waiting messages of *queue* until the budget is down to *floor*."""
        if not (queue.high_count or queue.regular_count):
            self._drain(queue, now, floor)  # which fetches what is on disk
            return
        head = queue.look(False)
        since = 0.0 if head is None or head.attempts else head.sent_at
        counters = queue.counters
        before = counters.sent - counters.redelivered
        self._drain(queue, now, floor)
        sent = counters.sent - counters.redelivered - before
        if sent and since > 0.0 and head is not None:
            # The others have waited at most as long as the first of them.
            self._core.tally.waited(head, now - since, sent, now)

    def _drain(self, queue: Queue, now: float, floor: int) -> None:
        core = self._core
        if queue.feeds is not None:
            self.feeder.pump(queue, now, floor)
            return
        if queue.chooses():
            self._chooser.pump(queue, now, floor)
            return
        while queue.high_count or queue.regular_count:
            if queue.spilled:
                core.refill(queue)
                if queue.high_tail is not None and not queue.high_count:
                    return  # the high-priority messages are being read back
            if queue.held is not None or not queue.discipline.sends or queue.closed:
                return
            if not queue.can_send():
                if not queue.waiting:
                    queue.waiting = True
                    queue.audience.line.append(queue)
                return
            if core.budget <= floor:
                core.schedule(queue)
                return
            message = queue.take()
            rare = message.rare
            if rare is not None and rare.expires_at <= now:
                core.budget -= 1
                # It has expired in this tick, and the timer has not run yet.
                if not self._outcomes.expire(queue, message):
                    queue.put_first(message)
                continue
            # A step may fill consumers' buffers, which they can report only after it.
            core.budget -= message.size >> _UNIT_SHIFT
            self._sender.send(queue, message, now)
        if queue.spilled:
            core.refill(queue)

    def resume(self, queue: Queue, now: float) -> None:
        """Send the waiting messages, unless the queue is scheduled anyway."""
        if not queue.runnable:
            self.pump(queue, now)

    def wake_waiting(self, now: float) -> None:
        """Try the queues again whose audience can take messages now."""
        core = self._core
        awake = core.awake
        while awake and core.budget > 0:
            line = awake[0]
            if not line:
                awake.popleft()
                continue
            queue = line.popleft()
            assert isinstance(queue, Queue)
            queue.waiting = False
            core.budget -= 1
            if not queue.runnable:
                self.pump(queue, now)

    def go_on(self, now: float) -> None:
        """Continue with what earlier steps had no budget for."""
        core = self._core
        # Cleared messages count against the limits until they are disposed of, so some go each
        # time.
        self._dispose(max(core.budget - _SHARE, 0))
        self.wake_waiting(now)
        runnable = core.runnable
        while runnable and core.budget > 0:
            queue = runnable.popleft()
            queue.runnable = False
            self.pump(queue, now, max(core.budget - _SHARE, 0))
        self._dispose(0)

    def has_work(self) -> bool:
        """Whether work is left for ``go_on``: for this one, or that of pulls and removals."""
        core = self._core
        return bool(core.runnable or core.awake or core.pulls or core.trash or core.removals)

    def _dispose(self, floor: int) -> None:
        """Settle cleared messages until the budget is down to *floor*."""
        core = self._core
        trash = core.trash
        while trash and core.budget > floor:
            heap = trash[0]
            queue = heap.queue
            assert isinstance(queue, Queue)
            message = heap.take()
            if message is not None:
                self._outcomes.dispose(queue, message)
                continue
            core.budget -= 1
            shelved = heap.take_shelved()
            if shelved is None:
                trash.popleft()
            else:
                self._flights.dispose_shelved(queue, shelved)
