"""``ParkingList``: waiting messages in a queue in which not every consumer may take each of them.

Theory of operation.  With filters, the first message may be for a consumer that is absent, and
later ones for a consumer that is ready.  So each message is *examined* once: which consumers accept
it? If none of them can take it now, it is *parked* in the lane of these consumers (see
``selection.py``), and a consumer that becomes ready takes the oldest message of its lanes, without
examining the others.

The list has this order: ``front``, the messages that were put back before all others; the lanes;
``older``, the lanes that must be examined again, because of a new filter; then the messages that
were not examined yet.  *Stamps* increase in this order.  They are the order of arrival, except for
messages that were put back.

Code that does not distinguish consumers (pulls, expiry, clearing) sees one list, in order.

With priorities, ``levels`` has the messages that were not examined yet instead (``levels.py``), and
those that are put back.  Then a message goes before all of a lower level, including parked ones.
"""

from __future__ import annotations

import heapq
from collections import deque

from tmqp_server.engine.model.lanes import Lane
from tmqp_server.engine.model.levels import NO_STAMP, LevelGauge, Levels, lowest_first
from tmqp_server.engine.model.message import MARK_FAILED, MARK_GONE, Message
from tmqp_server.engine.model.selection import Selection
from tmqp_server.engine.model.waiting import WaitingList
from tmqp_server.engine.model.waiting_parts import WaitingPart

__all__ = ["ParkingList", "with_levels"]


class ParkingList(WaitingList):
    """Messages of one priority, some of which are parked by the consumers that would take them.

    ``examine`` and ``take_parked`` take out one message, the examined one; then call
    ``park``, ``leave`` or ``return_to_front``.  ``stamp``, ``mask`` and ``seen`` are about it.
    """

    __slots__ = (
        "lanes",
        "front",
        "older",
        "levels",
        "epoch",
        "stamp",
        "mask",
        "seen",
        "_last",
        "_first",
    )

    def __init__(self, plain: WaitingList) -> None:
        super().__init__()
        self.count = plain.count
        self._messages = plain._messages
        self._later = plain._later
        self._has_parts = plain._has_parts
        self._tombstones = plain._tombstones
        self._wheel = plain._wheel
        self.lanes: dict[int, Lane] = {}
        self.front = Lane(0, 0)
        #: A heap of lanes by the stamps of their first messages, which may have left since.
        self.older: list[tuple[int, Lane]] = []
        #: None if priorities have never counted.
        self.levels: Levels | None = None
        #: The last filter that the lanes take into account.
        self.epoch = 0
        self.stamp = 0
        self.mask = 0
        self.seen = 0
        self._last = 0
        self._first = 0

    # --- Examining -------------------------------------------------------------------------------

    def follow(self, selection: Selection) -> None:
        """Have the parked messages examined again if there are new filters."""
        if self.epoch == selection.epoch:
            return
        for lane in self.lanes.values():
            if lane.stamps:
                heapq.heappush(self.older, (lane.stamps[0], lane))
        self.lanes = {}
        self.epoch = selection.epoch

    def examine(self) -> Message | None:
        """Take out the next message that must be examined, or return None."""
        self.mask = 0
        self.seen = 0
        front = self.front
        if front.messages:
            self._tombstones -= front.shed(False)
            if front.messages:
                self.stamp = front.stamps[0]
                return front.take()
        levels = self.levels
        while self.older and (levels is None or not self.is_outranked(self.older[0][0])):
            first, lane = heapq.heappop(self.older)
            self._tombstones -= lane.shed(False)
            if lane.stamps and lane.stamps[0] != first:
                heapq.heappush(self.older, (lane.stamps[0], lane))  # its first messages have gone
            elif lane.stamps:
                self.stamp = first
                self.mask = lane.mask
                self.seen = lane.seen
                message = lane.take()
                if lane.stamps:
                    heapq.heappush(self.older, (lane.stamps[0], lane))
                return message
        if self._has_parts:
            self._refill()
        while self._messages:
            message = self._messages.popleft()
            if self._has_parts and not self._messages:
                self._refill()
            if not message.marks & MARK_GONE:
                self._last += 1
                self.stamp = self._last
                return message
            self._tombstones -= 1
        if levels is None:
            return None
        self._tombstones -= levels.shed()
        self.stamp = levels.first_stamp()
        return None if self.stamp == NO_STAMP else levels.take()

    def is_outranked(self, stamp: int) -> bool:
        """Whether a message that was not examined goes before the one with this stamp."""
        levels = self.levels
        if levels is None:
            return False
        self._tombstones -= levels.shed()
        first = levels.first_stamp()
        return first != NO_STAMP and first < stamp

    def is_front_new(self) -> bool:
        """Whether a message was put back before all others, so that it must be examined first."""
        stamps = self.front.stamps
        return bool(stamps) and stamps[0] < 0

    def return_to_front(self, message: Message) -> None:
        """Have the examined message examined again after the lanes, because there are too many of
        them."""
        self.front.put(self.stamp, message)

    def park(self, message: Message, mask: int) -> None:
        """Park the examined message in the lane of the consumers that accept it."""
        lane = self.lanes.get(mask)
        if lane is None:
            lane = Lane(mask, self.epoch)
            self.lanes[mask] = lane
        lane.put(self.stamp, message)

    def leave(self, message: Message) -> None:
        """Note that the examined message leaves the list."""
        self.count -= 1
        if message.rare is not None:
            self._stop_expiry(message)

    def take_parked(self, selection: Selection, ready: int) -> Message | None:
        """Take out the oldest parked message that a ready consumer would take, or return None;
        ``mask`` has the filters that accept it."""
        best: Lane | None = None
        empty: list[int] = []
        for mask, lane in self.lanes.items():
            if not selection.takers(mask) & ready:
                continue
            self._tombstones -= lane.shed(False)
            if not lane.stamps:
                empty.append(mask)
            elif best is None or lane.stamps[0] < best.stamps[0]:
                best = lane
        for mask in empty:
            del self.lanes[mask]
        if best is None or self.is_outranked(best.stamps[0]):
            return None
        self.stamp = best.stamps[0]
        self.mask = best.mask
        self.seen = self.epoch
        message = best.take()
        if not best.stamps:
            del self.lanes[best.mask]
        return message

    # --- As one list -----------------------------------------------------------------------------

    def put_last(self, message: Message) -> None:
        """Append *message*, or append it to its level."""
        levels = self.levels
        if levels is None:
            super().put_last(message)
            return
        levels.put_last(message)
        self._put(message)

    def put_first(self, message: Message) -> None:
        """Put *message* first, or first in its level."""
        levels = self.levels
        if levels is None:
            self._first -= 1
            self.front.stamps.appendleft(self._first)
            self.front.messages.appendleft(message)
        else:
            levels.put_first(message)
        self._put(message)

    def turn_levels(self, gauge: LevelGauge | None) -> None:
        """Let priorities count for further messages, or no longer."""
        if self.levels is None:
            self.levels = Levels()
        self.levels.gauge = gauge

    def _parts(self) -> list[Lane]:
        lanes = [self.front, *self.lanes.values(), *[lane for _, lane in self.older]]
        return lanes if self.levels is None else lanes + self.levels.lanes()

    def _end(self, newest: bool) -> Lane | None:
        """The lane with the first or last message of all lanes; None if they have no message."""
        best: Lane | None = None
        at = -1 if newest else 0
        for lane in self._parts():
            self._tombstones -= lane.shed(newest)
            if lane.stamps and (best is None or (lane.stamps[at] > best.stamps[at]) == newest):
                best = lane
        return best

    def take(self) -> Message:
        """Remove and return the first message; there must be one."""
        lane = self._end(False)
        if lane is None or (self.levels is not None and self._has_plain()):
            return super().take()
        message = lane.take()
        self.leave(message)
        return message

    def take_oldest(self) -> Message:
        """Remove and return the message of the lowest level that has waited longest."""
        if self.levels is None or self._has_plain():
            return self.take()
        for lane in self._parts():
            self._tombstones -= len(lane.keep_only(MARK_GONE))
        found = lowest_first(self._parts())
        assert found is not None, "there is one"
        message = found[0].take_at(found[1])
        self.leave(message)
        return message

    def take_newest(self) -> Message:
        """Remove and return the last message; there must be one."""
        lane = self._end(True)
        if lane is None or (self._has_plain() and not self._ends_in_levels()):
            return super().take_newest()
        message = lane.take_newest()
        self.leave(message)
        return message

    def look(self, newest: bool) -> Message:
        """The first message, or the last; there must be one."""
        lane = self._end(newest)
        if lane is None:
            return super().look(newest)
        if newest:
            is_plain = self._has_plain() and not self._ends_in_levels()
        else:
            is_plain = self.levels is not None and self._has_plain()
        return super().look(newest) if is_plain else lane.messages[-1 if newest else 0]

    def _ends_in_levels(self) -> bool:
        return self.levels is not None and bool(self.levels.lanes())

    def _has_plain(self) -> bool:
        """Whether there are messages that were not examined yet, outside the levels."""
        while self._has_parts:
            last = self._last_part()
            if last is not None and not last[-1].marks & MARK_GONE:
                return True
            if last is not None:
                last.pop()
                self._tombstones -= 1
        messages = self._messages
        while messages and messages[-1].marks & MARK_GONE:
            messages.pop()
            self._tombstones -= 1
        return bool(messages)

    def messages(self) -> list[Message]:
        """The waiting messages, in order."""
        return [*self._parked(), *super().messages()]

    def holds(self, message: Message) -> bool:
        """Whether a message is in this list, parked or not."""
        if super().holds(message):
            return True
        for lane in self._parts():
            if message in lane.messages:
                return not message.marks & MARK_GONE
        return False

    def snapshot(self) -> list[WaitingPart]:
        """A copy of everything at this moment, with tombstones, lane by lane."""
        found = [WaitingPart(list(lane.messages)) for lane in self._parts()]
        return found + super().snapshot()

    def _parked(self) -> list[Message]:
        found: list[tuple[int, Message]] = []
        for lane in self._parts():
            for stamp, message in zip(lane.stamps, lane.messages, strict=True):
                if not message.marks & MARK_GONE:
                    found.append((stamp, message))
        found.sort(key=_stamp_of)
        return [message for _, message in found]

    def tidy(self) -> None:
        """Drop tombstones from the front, and from everywhere when they are too many."""
        if self._has_too_many_tombstones():
            for lane in self._parts():
                self._tombstones -= len(lane.keep_only(MARK_GONE))
            self._forget_empty()
            self._drop_tombstones()

    def parked(self) -> int:
        """The number of examined messages, tombstones included."""
        return sum([len(lane.messages) for lane in self._parts()])

    def take_failed(self) -> list[Message]:
        """Remove all tombstones and all messages that could not be saved; return the latter."""
        failed: list[Message] = []
        for lane in self._parts():
            for message in lane.keep_only(MARK_FAILED | MARK_GONE):
                if not message.marks & MARK_GONE:
                    failed.append(message)
                    self._stop_expiry(message)
        self._forget_empty()
        self.count -= len(failed)
        failed.sort(key=_sequence_of)
        return failed + super().take_failed()

    def _forget_empty(self) -> None:
        self.lanes = {mask: lane for mask, lane in self.lanes.items() if lane.stamps}
        self.older = [(lane.stamps[0], lane) for _, lane in self.older if lane.stamps]
        heapq.heapify(self.older)

    def sent_before(self) -> list[Message]:
        """The waiting messages that have been sent or put back before."""
        parked = [each for each in self._parked() if each.attempts or each.put_backs]
        return parked + super().sent_before()

    def detach(self) -> list[deque[Message]]:
        """Remove and return everything at once, tombstones included."""
        found = [lane.messages for lane in self._parts() if lane.messages]
        self.lanes = {}
        self.front = Lane(0, 0)
        self.older = []
        if self.levels is not None:
            self.levels.clear()
        return found + super().detach()


def with_levels(waiting: WaitingList, gauge: LevelGauge | None) -> ParkingList:
    """The same list with or without priorities, with all its messages."""
    found = waiting if isinstance(waiting, ParkingList) else ParkingList(waiting)
    found.turn_levels(gauge)
    return found


def _stamp_of(entry: tuple[int, Message]) -> int:
    return entry[0]


def _sequence_of(message: Message) -> int:
    return message.sequence
