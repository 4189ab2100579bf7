"""Events that a client has missed: the last ones are kept, each with an id, for clients that
return.

Theory of operation.  An event is encoded once for all streams of the door, and gets its id there.
So that this also happens while no client follows it, the door has a *keeper*: a session without a
connection, which subscribes to whatever a client has followed.  A client that returns names the
last id that it has seen, subscribes again, so that its rights are checked, and gets the kept events
after that id.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, final

from tmqp_server.admin.api.unconnected import FIRST_UNCONNECTED, Unconnected
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.http.bodies import DOOR_NAME
from tmqp_server.doors.http.recall import EventRecall
from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import Command, Connect, Disconnect, SubscribeEvent
from tmqp_server.engine.effects import (
    Accept,
    CloseSession,
    Effect,
    EventsEnded,
    Inform,
    Refuse,
)
from tmqp_server.engine.events import MessageFact

__all__ = ["KEEPER", "EventKeeper", "KeptEvents"]

#: The number of the keeper's session; those of consumers are larger.
KEEPER: Final = FIRST_UNCONNECTED
#: How many events are kept, and how many subscriptions the keeper has at most.
_KEPT: Final = 1_000
_MOST_PLACES: Final = 256

#: An event, its channel as the subscriber spells it, and the queue.
_Place = tuple[int, str, int | None]


@final
class EventKeeper(Unconnected):
    """The session that follows events for clients that are away."""

    def __init__(self, kept: KeptEvents) -> None:
        super().__init__()
        self._kept = kept

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Note that the keeper is connected, or that it no longer follows something."""
        if isinstance(effect, Accept):
            self._kept.connected = True
        elif isinstance(effect, (CloseSession, Refuse)):
            self._kept.lose()
        elif isinstance(effect, EventsEnded):
            self._kept.ended(effect.event, effect.channel)
        return ()

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Disconnect, because the server stops."""
        return [Disconnect(KEEPER)]


@final
class KeptEvents(EventRecall):
    """The last events of one door.

    :param world: the server.

    Attributes: ``connected``, whether the keeper is; ``door``, the door whose events these are, to
    be set before the first event.
    """

    door: Door

    def __init__(self, world: AdminWorld) -> None:
        self.connected = False
        self._opened = False
        self._lost = False
        self._world = world
        self._epoch = ""
        self._count = 0
        self._events: deque[tuple[int, int, str, int | None, bytes]] = deque(maxlen=_KEPT)
        #: What clients have followed, and whether the keeper follows it; the latest last.
        self._places: OrderedDict[_Place, bool] = OrderedDict()
        self._dropped: list[_Place] = []
        world.beats.append(self._beat)

    # -- what happens ----------------------------------------------------------------------------

    def number(self, effect: Inform, data: bytes) -> bytes:
        """Keep an event, and return it with its id."""
        if not self._epoch:
            self._epoch = self._world.random_bytes(4).hex()
        self._count += 1
        data = b"id: %b-%d\n%b" % (self._epoch.encode(), self._count, data)
        fact = effect.fact
        queue_id = fact.queue_id if isinstance(fact, MessageFact) else None
        self._events.append((self._count, effect.event, effect.channel, queue_id, data))
        return data

    def ended(self, event: int, channel: str) -> None:
        """Stop following these events: their subject was removed."""
        for place in [each for each in self._places if each[:2] == (event, channel)]:
            del self._places[place]

    def lose(self) -> None:
        """Note that the keeper is no longer a client; another one replaces it."""
        self.connected = False
        self._lost = True
        for place in self._places:
            self._places[place] = False

    # -- who follows -----------------------------------------------------------------------------

    def followed(self, kinds: Sequence[int], channel: str, queue_id: int | None) -> None:
        """Keep following these events for a client that follows them now, while it is away."""
        for kind in kinds:
            place = (kind, channel, queue_id)
            self._places[place] = self._places.get(place, False)
            self._places.move_to_end(place)
        while len(self._places) > _MOST_PLACES:
            place, subscribed = self._places.popitem(last=False)
            if subscribed:
                self._dropped.append(place)

    def missed(
        self, last: str, kinds: Sequence[int], channel: str, queue_id: int | None
    ) -> tuple[bool, list[bytes]]:
        """Return whether nothing is missing, and the kept events after an id."""
        epoch, _, number = last.rpartition("-")
        known = epoch == self._epoch and number.isascii() and number.isdecimal()
        seen = int(number[:18]) if known else 0
        oldest = self._events[0][0] if self._events else self._count + 1
        found = [
            data
            for count, event, about, queue, data in self._events
            if count > seen
            and event in kinds
            and about in ("", channel)
            and (queue_id is None or queue is None or queue == queue_id)
        ]
        return known and seen + 1 >= oldest, found

    # -- the keeper ------------------------------------------------------------------------------

    def _beat(self, now: float) -> None:
        """Let the keeper follow what clients have begun to follow; called between turns."""
        turn = self._world.turn
        wanted = [place for place, subscribed in self._places.items() if not subscribed]
        if turn is None or self._world.draining or not (wanted or self._dropped):
            return
        if self._lost:
            self._lost = self._opened = False
            turn.hub.forget(KEEPER, now)
        if not self._opened:
            self._opened = True
            turn.hub.open(KEEPER, self.door, now)
            name = f"events-{self._world.random_bytes(4).hex()}"
            turn.perform([Connect(KEEPER, None, name, "events", DOOR_NAME)], now)
        if not self.connected:
            return
        commands: list[Command] = []
        for event, channel, queue_id in self._dropped:
            commands.append(SubscribeEvent(KEEPER, None, event, channel, queue_id, wanted=False))
        self._dropped.clear()
        for place in wanted:
            self._places[place] = True
            commands.append(SubscribeEvent(KEEPER, None, *place))
        turn.perform(commands, now)
