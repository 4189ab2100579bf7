"""``KeyedList``: waiting messages of one priority, in a queue in which some wait for others of
their key.

Theory of operation.  It is a ``ParkingList`` with two further kinds of lanes.  ``owned`` lanes have
messages for one consumer, by its number; *held* messages wait for a key or a bucket, by its name,
that is in use.  When that is free, the lane is *freed*: its messages are examined again, the oldest
first, before all messages that were not examined yet.

A message that is put back returns to its position, by the stamp that it got when it was first
examined, so that the messages of a key keep their order.  Messages without a key go before all
others, as elsewhere.
"""

from __future__ import annotations

import heapq
from collections import deque

from tmqp_server.engine.model.keys import KeyTable, Owner
from tmqp_server.engine.model.lanes import Lane
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.parking import ParkingList
from tmqp_server.engine.model.selection import Selection
from tmqp_server.engine.model.waiting import WaitingList

__all__ = ["KeyedList"]


class KeyedList(ParkingList):
    """Messages of one priority, of which some wait for others.

    ``rest`` is the rest of the freed lane that the examined message comes from.
    """

    __slots__ = ("owned", "held", "freed", "rest", "table")

    def __init__(self, plain: WaitingList, table: KeyTable) -> None:
        super().__init__(plain)
        self.owned: dict[int, Lane] = {}
        self.held: dict[object, Lane] = {}
        #: A heap, as ``older``.
        self.freed: list[tuple[int, Lane]] = []
        self.rest: Lane | None = None
        #: The table that its lanes were made for.
        self.table = table
        if isinstance(plain, ParkingList):
            self.lanes = plain.lanes
            self.front = plain.front
            self.older = plain.older
            self.levels = plain.levels
            self.epoch = plain.epoch
            self._last = plain._last
            self._first = plain._first

    def turn_to(self, table: KeyTable) -> None:
        """Have all messages examined again if the table of keys was replaced."""
        if self.table is table:
            return
        self.table = table
        for lane in [*self.owned.values(), *self.held.values()]:
            self._look_again(lane)
        self.owned = {}
        self.held = {}

    def _look_again(self, lane: Lane) -> None:
        lane.mask = 0
        lane.seen = 0
        if lane.stamps:
            heapq.heappush(self.older, (lane.stamps[0], lane))

    # --- Examining -------------------------------------------------------------------------------

    def examine(self) -> Message | None:
        """Take out the next message that must be examined, or return None; the caller must send or
        park it."""
        self.rest = None
        front = self.front
        while self.freed:
            self._tombstones -= front.shed(False)
            next_one = self.freed[0][0]
            if (front.stamps and front.stamps[0] < next_one) or self.is_outranked(next_one):
                break
            first, lane = heapq.heappop(self.freed)
            self._tombstones -= lane.shed(False)
            if lane.stamps and lane.stamps[0] != first:
                heapq.heappush(self.freed, (lane.stamps[0], lane))  # its first messages have gone
            elif lane.stamps:
                self.mask = 0
                self.seen = 0
                self.stamp = first
                self.rest = lane
                return lane.take()
        return super().examine()

    def is_front_new(self) -> bool:
        """Whether a message was put back, so that it must be examined first."""
        return bool(self.front.stamps)

    def return_to_front(self, message: Message) -> None:
        """Have the message examined again after the lanes, because there are too many of them."""
        lane = Lane(0, 0)
        lane.put(self.stamp, message)
        self._look_again(lane)

    def take_of(self, selection: Selection, ready: int, owners: list[Owner]) -> Owner | None:
        """Find the oldest message that a ready consumer would take: if it is for one owner alone,
        return this owner; None if it is for several consumers, or if there is none.

        Take it with ``take_owned``, or with ``take_parked``.
        """
        best: Lane | None = None
        found: Owner | None = None
        for mask, lane in self.lanes.items():
            if selection.takers(mask) & ready:
                self._tombstones -= lane.shed(False)
                if lane.stamps and (best is None or lane.stamps[0] < best.stamps[0]):
                    best = lane
        for owner in owners:
            own = self.owned.get(owner.number)
            if own is None or not ready >> owner.subscription.place & 1:
                continue
            self._tombstones -= own.shed(False)
            if own.stamps and (best is None or own.stamps[0] < best.stamps[0]):
                best = own
                found = owner
        if best is not None and found is not None and self.is_outranked(best.stamps[0]):
            return None
        return found

    def take_owned(self, owner: Owner) -> Message:
        """Take out the oldest message for an owner; there must be one."""
        lane = self.owned[owner.number]
        self.stamp = lane.stamps[0]
        message = lane.take()
        if not lane.stamps:
            del self.owned[owner.number]
        return message

    def own(self, owner: Owner, message: Message) -> None:
        """Let the examined message wait for this owner alone."""
        lane = self.owned.get(owner.number)
        if lane is None:
            lane = Lane(0, 0)
            self.owned[owner.number] = lane
        lane.put(self.stamp, message)

    def disown(self, owner: Owner) -> None:
        """Have all messages examined again that waited for this owner alone."""
        lane = self.owned.pop(owner.number, None)
        if lane is not None:
            self._look_again(lane)

    def has_room_to_hold(self, name: object, most: int) -> bool:
        """Whether the examined message can wait for this name; *most* is the limit of lanes."""
        return self.rest is not None or name in self.held or len(self.held) < most

    def hold(self, name: object, message: Message) -> None:
        """Let the examined message, and the rest of its lane, wait until this name is free."""
        lane = self.rest
        if lane is None:
            lane = Lane(0, 0)
        lane.put(self.stamp, message)
        self.rest = lane
        self.hold_rest(name)

    def hold_rest(self, name: object) -> None:
        """Let the rest of the examined message's lane wait until this name is free."""
        lane = self.rest
        self.rest = None
        if lane is None or not lane.stamps:
            return
        there = self.held.get(name)
        if there is None:
            self.held[name] = lane
            return
        for stamp, message in zip(lane.stamps, lane.messages, strict=True):
            there.put(stamp, message)

    def free_rest(self) -> None:
        """Have the rest of the examined message's lane examined next."""
        lane = self.rest
        self.rest = None
        if lane is not None and lane.stamps:
            heapq.heappush(self.freed, (lane.stamps[0], lane))

    def free(self, name: object) -> bool:
        """Free the messages that wait for this name; return whether there are any."""
        lane = self.held.pop(name, None)
        if lane is None or not lane.stamps:
            return False
        heapq.heappush(self.freed, (lane.stamps[0], lane))
        return True

    # --- As one list -----------------------------------------------------------------------------

    def put_first(self, message: Message) -> None:
        """Let *message* wait at its earlier position, or as the first."""
        grip = self.table.grips.get(message)
        if grip is None:
            super().put_first(message)
            return
        if self.levels is None:
            self.front.put(grip.stamp, message)
        else:
            self.levels.put(grip.stamp, message)
        self._put(message)

    def _parts(self) -> list[Lane]:
        lanes = super()._parts()
        if self.owned or self.held or self.freed:
            lanes += self.owned.values()
            lanes += self.held.values()
            lanes += [lane for _, lane in self.freed]
        return lanes

    def _forget_empty(self) -> None:
        super()._forget_empty()
        self.owned = {number: lane for number, lane in self.owned.items() if lane.stamps}
        self.held = {name: lane for name, lane in self.held.items() if lane.stamps}
        self.freed = [(lane.stamps[0], lane) for _, lane in self.freed if lane.stamps]
        heapq.heapify(self.freed)

    def detach(self) -> list[deque[Message]]:
        """Take out everything at once, tombstones included."""
        found = super().detach()
        self.owned = {}
        self.held = {}
        self.freed = []
        return found
