"""Choosing: queues that give each message to one of the consumers whose filters accept it.

Theory of operation.  The pump of such a queue examines the messages in order.  If ready consumers
accept a message, the next of these in turn gets it.  If none can take it now, because they are busy
or no filter accepts it, the message is *parked* (``parking.py``) and costs nothing until a consumer
that accepts it becomes ready or joins: nothing is lost, and no consumer waits for a message that is
not for it.

Messages that are on disk only are examined when they have been fetched.  Parked messages use the
memory of the queue like other waiting messages; if they fill it, the messages behind them on disk
*starve*, which is counted.

If messages have keys, ``keyed_choosing.py`` decides about them.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.keyed_choosing import Choosing, KeyChooser
from tmqp_server.engine.delivery.outcomes import Outcomes
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.model.parking import ParkingList
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.selection import Selection

__all__ = ["Chooser"]

#: Lanes of one priority; when there are more, what comes next waits until one is empty.
_MOST_LANES: Final = 1_024
#: Filters that are tried, and lanes that are examined, for one unit of work: 2 ** 3, 2 ** 6.
_FILTERS_SHIFT: Final = 3
_LANES_SHIFT: Final = 6


class Chooser(Choosing):
    """Sends and parks the messages of queues that choose consumers by filter or key."""

    __slots__ = ("_keys",)

    def __init__(self, core: Core, outcomes: Outcomes, sender: Sender) -> None:
        super().__init__(core, outcomes, sender)
        self._keys = KeyChooser(core, outcomes, sender)

    def pump(self, queue: Queue, now: float, floor: int) -> None:
        """Send messages that ready consumers accept and park the others, until the budget is down
        to *floor*."""
        core = self._core
        audience = queue.audience
        while queue.high_count or queue.regular_count:
            if queue.spilled:
                core.refill(queue)
                if queue.high_tail is not None and not queue.high_count:
                    return  # the high-priority messages are being read back
            if queue.held is not None or queue.closed:
                return
            ready = audience.ready_places()
            if ready and core.budget <= floor:
                core.schedule(queue)
                return
            if not ready or not self._go_on(queue, ready, now):
                if not queue.waiting:
                    queue.waiting = True
                    audience.line.append(queue)
                if queue.spilled and queue.is_full():
                    queue.counters.starved += 1
                return
        if queue.spilled:
            core.refill(queue)

    def _go_on(self, queue: Queue, ready: int, now: float) -> bool:
        """Send or park one message; return False if all the remaining ones are parked."""
        if queue.keyed:
            return self._keys.go_on(queue, ready, now)
        selection = queue.audience.selection
        assert selection is not None, "there are filters"
        return self._choose(queue, True, selection, ready, now) or self._choose(
            queue, False, selection, ready, now
        )

    def _choose(
        self, queue: Queue, high: bool, selection: Selection, ready: int, now: float
    ) -> bool:
        """The same for one priority."""
        if not (queue.high_count if high else queue.regular_count):
            return False
        waiting = _parking_list(queue, high)
        waiting.follow(selection)
        core = self._core
        if not waiting.is_front_new():
            core.budget -= len(waiting.lanes) >> _LANES_SHIFT
            message = waiting.take_parked(selection, ready)
            if message is not None:
                takers = selection.takers(waiting.mask) & ready
                self._send(queue, waiting, message, takers, now)
                return True
        message = waiting.examine()
        if message is None:
            return False
        core.budget -= len(selection.slots) >> _FILTERS_SHIFT
        failures = selection.failures
        mask = selection.mask_of(message, waiting.mask, waiting.seen)
        if selection.failures != failures:
            self._outcomes.count_error(queue)
        takers = selection.takers(mask) & ready
        if takers:
            self._send(queue, waiting, message, takers, now)
            return True
        core.budget -= 1
        if len(waiting.lanes) >= _MOST_LANES and mask not in waiting.lanes:
            waiting.return_to_front(message)
            return False
        waiting.park(message, mask)
        return True


def _parking_list(queue: Queue, high: bool) -> ParkingList:
    """The list of a priority, converted so that messages can be parked."""
    waiting = queue.high if high else queue.regular
    if isinstance(waiting, ParkingList):
        return waiting
    parking = ParkingList(waiting)
    if high:
        queue.high = parking
    else:
        queue.regular = parking
    return parking
