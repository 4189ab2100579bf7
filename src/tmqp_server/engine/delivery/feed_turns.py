"""The turns of feeds and consumers in queues that give each message to one: round robin, first
acquirer.

The places are those of the consumers, in the order of their audience's ring, followed by those of
the feeds.  The next turn is that of the place after the last one.  Consumers of a higher priority
come first; feeds have the priority 0.  While one consumer is exclusive, no other place has a turn.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.feed_rooms import FREE, FeedRooms
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue

__all__ = ["FeedTurns", "Turns"]

#: Places that are examined for one unit of work: 2 ** 4.
_PLACES_SHIFT: Final = 4


class Turns:
    """The places of one queue in the order of their turns; there are ``count``."""

    __slots__ = ("_ranked", "_start", "count")

    def __init__(self, queue: Queue) -> None:
        audience = queue.audience
        sole = audience.sole_taker()  # which forms the ring
        feeds = queue.feeds
        assert feeds is not None, "the queue has feeds"
        self.count = len(audience.ring) + len(feeds)
        self._start = 0
        if queue.discipline.exclusive and queue.turn + 1 < self.count:
            self._start = queue.turn + 1
        self._ranked: list[int] | None = None
        if sole is not None:
            self.count = 1
            self._ranked = [sole.place]
        elif audience.tiers:
            ring = audience.ring
            by_priority: dict[int, list[int]] = {}
            for step in range(self.count):
                place = self.place(step)
                priority = ring[place].priority if place < len(ring) else 0
                by_priority.setdefault(priority, []).append(place)
            ranked: list[int] = []
            for priority in sorted(by_priority, reverse=True):
                ranked += by_priority[priority]
            self._ranked = ranked

    def place(self, step: int) -> int:
        """The place whose turn it is after *step* others."""
        if self._ranked is not None:
            return self._ranked[step]
        place = self._start + step
        return place if place < self.count else place - self.count

    def work(self, steps: int) -> int:
        """The units of work for examining so many places."""
        return (steps if self._ranked is None else self.count) >> _PLACES_SHIFT


class FeedTurns:
    """Finds the next consumer or feed in turn."""

    __slots__ = ("_core", "_rooms", "_sender")

    def __init__(self, core: Core, rooms: FeedRooms, sender: Sender) -> None:
        self._core = core
        self._rooms = rooms
        self._sender = sender

    def next_taker(self, queue: Queue, message: Message) -> tuple[bool, Feed | None]:
        """Whether any place in turn can take a message; and the feed, if the place is a feed's."""
        feeds = queue.feeds
        assert feeds is not None, "the queue has feeds"
        turns = Turns(queue)
        ring = queue.audience.ring
        found, taker = False, None
        steps = 0
        while steps < turns.count and not found:
            place = turns.place(steps)
            steps += 1
            if place < len(ring):
                subscription = ring[place]
                found = not subscription.stalled and self._sender.passes(
                    queue, subscription, message
                )
                continue
            feed = feeds[place - len(ring)]
            found = self._rooms.room_in(feed, message) == FREE and self._rooms.wants(
                queue, feed, message
            )
            taker = feed if found else None
        self._core.budget -= turns.work(steps)
        return found, taker
