"""Dealing: divides a run among the consumers of a queue that gives each message to one of them.

Theory of operation.  Consumers take turns message by message (F90), so each gets every n-th message
of the run; a consumer without room drops out, and the others continue.  Nothing is changed here:
the caller carries the shares out, or divides the run if there are too many parts.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.flights import Flights
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.selection import EVERYBODY
from tmqp_server.engine.model.sessions import Subscription

__all__ = ["Deal", "Share", "deal"]

#: A run with more parts than this is not worth dealing.
_MOST_PARTS: Final = 8


class Share:
    """What one consumer gets: ``count`` messages, at ``start``, ``start + step`` and so on before
    ``stop``."""

    __slots__ = ("subscription", "start", "step", "stop", "count")

    def __init__(
        self, subscription: Subscription, start: int, step: int, stop: int, count: int
    ) -> None:
        self.subscription = subscription
        self.start = start
        self.step = step
        self.stop = stop
        self.count = count


class Deal:
    """The shares of a run.

    ``dealt`` is how many messages it distributes, ``turn`` the place of the consumer served last,
    ``skipped`` how often an earlier consumer was skipped.
    """

    __slots__ = ("shares", "dealt", "turn", "skipped")

    def __init__(self, turn: int) -> None:
        self.shares: list[Share] = []
        self.dealt = 0
        self.turn = turn
        self.skipped = 0


def deal(queue: Queue, count: int, wants: bool, flights: Flights, takers: int) -> Deal | None:
    """Distribute so many messages among the consumers that can take them now; None if there are too
    many parts.

    :param wants: whether they must be acknowledged, so that the number in flight to each consumer
        is limited.
    :param takers: a bit for each place of the ring whose filter accepts all these messages.
    """
    found = Deal(queue.turn)
    if queue.discipline.exclusive:
        return found if _in_turn(found, queue, count, wants, flights, takers) else None
    return found if _to_the_first(found, queue, count, wants, flights, takers) else None


def _in_turn(
    found: Deal, queue: Queue, count: int, wants: bool, flights: Flights, takers: int
) -> bool:
    audience = queue.audience
    members: list[Subscription] = []
    rooms: list[int] = []
    first = audience.next_ready(queue.turn, takers)
    member = first
    while member is not None and len(members) < count:
        members.append(member)
        rooms.append(_room(member, count, wants, flights))
        member = audience.next_ready(member.place, takers)
        if member is first:
            break
    parts = 0
    while members and found.dealt < count:
        parts += 1
        if parts > _MOST_PARTS:
            return False
        size = len(members)
        start = found.dealt
        stop = min(count, start + min(rooms) * size)
        for place in range(min(size, stop - start)):
            given = (stop - start - place + size - 1) // size
            found.shares.append(Share(members[place], start + place, size, stop, given))
            rooms[place] -= given
        found.turn = members[(stop - start - 1) % size].place
        found.dealt = stop
        members = [members[place] for place in range(size) if rooms[place] > 0]
        rooms = [room for room in rooms if room > 0]
    return True


def _to_the_first(
    found: Deal, queue: Queue, count: int, wants: bool, flights: Flights, takers: int
) -> bool:
    audience = queue.audience
    place = -1
    while found.dealt < count:
        member = audience.next_ready(place, takers)
        if member is None or member.place <= place:
            return True
        if len(found.shares) == _MOST_PARTS:
            return False
        place = member.place
        start = found.dealt
        given = min(_room(member, count, wants, flights), count - start)
        found.shares.append(Share(member, start, 1, start + given, given))
        if takers == EVERYBODY:
            found.skipped += place * given
        found.dealt += given
    return True


def _room(member: Subscription, count: int, wants: bool, flights: Flights) -> int:
    """How many of *count* messages a consumer can take."""
    room = count
    if member.credit >= 0:
        room = min(room, member.credit)
    if wants:
        room = min(room, flights.room(member.session))
        if member.window >= 0:
            room = min(room, member.left_in_window())
    return room
