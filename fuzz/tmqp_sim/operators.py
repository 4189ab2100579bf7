"""The operator: somebody inside the server who declares queues and changes them.

It comes in by a door of its own, which has no bytes: what it asks are commands, and answers are
noted.  So it shows as well that the broker serves doors it has never heard of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.commands import (
    AddBinding,
    ClearMessages,
    Command,
    Connect,
    CreateQueue,
    CreateRouter,
    Drain,
    Grant,
    Join,
    UpdateChannel,
    UpdateQueue,
)
from tmqp_server.engine.effects import Deliver, DeliverPulled, Effect, Forward, Inform, Reply
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import (
    ASKS_RESPONSE,
    TO_URL,
    BindingOptions,
    ChannelChanges,
    QueueChanges,
)
from tmqp_sim.history import Place
from tmqp_sim.raw import ROUTERS
from tmqp_sim.stage import Stage

#: The event handler of channels that have one, and where programs are that a router calls.
HANDLER: Final = "sim"
PREFIX: Final = "http://sim/"

__all__ = ["HANDLER", "PREFIX", "Operator", "OperatorDoor", "OperatorSession", "changes_of"]

#: The numbers of the operator's sessions lie beyond those of links.
_FIRST_NUMBER: Final = 1_000_000


class OperatorSession(DoorSession):
    """The operator's connection: commands in, answers out, no bytes."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.queued: list[Command] = []
        self.codes: list[int] = []
        self.delivered = 0

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """The commands that were queued; the bytes only say that there are some."""
        commands, self.queued = self.queued, []
        return commands

    def receive_eof(self, now: float) -> Sequence[Command]:
        """Never comes."""
        return ()

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Note the answers."""
        if isinstance(effect, Reply):
            self.codes.append(effect.code)
        elif isinstance(effect, DeliverPulled):
            self.delivered += 1
        return ()

    def deliver(self, data: bytes) -> None:
        """Count what is delivered."""
        self.delivered += 1

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """The server stops."""
        return ()

    def data_to_send(self) -> bytes:
        """Nothing."""
        return b""

    def next_deadline(self) -> float | None:
        """It waits for nothing."""
        return None

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Never comes."""
        return ()


class OperatorDoor(Door):
    """The protocol without bytes."""

    name = "operator"
    number = 99

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """It pushes nothing that is kept."""
        raise AssertionError("the operator pushes nothing")

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """The same."""
        raise AssertionError("the operator pushes nothing")

    def open(self, session: int, now: float) -> OperatorSession:
        """A connection."""
        return OperatorSession(session)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """What it says does not matter."""
        return effect.message.message_id.encode()

    def encode_forward(self, effect: Forward) -> bytes:
        """The same."""
        return b"forward"

    def encode_event(self, effect: Inform) -> bytes:
        """The same."""
        return b"event"


def changes_of(place: Place) -> QueueChanges:
    """The options of a place, all that matter."""
    return QueueChanges(
        status=place.status,
        request_acknowledge=place.acks,
        acknowledge_timeout_ms=round(place.ack_timeout_s * 1000),
        message_timeout_ms=round(place.expiry_s * 1000),
        wait_for_acknowledge=place.waits,
        message_limit=place.message_limit,
        put_back_limit=place.put_back_limit,
        dead_letter=place.dead_letter,
        delivery_handler=place.handler,
        durable=place.durable,
        overflow=place.overflow,
        memory_limit=place.memory_limit,
        disk_limit_bytes=place.disk_limit_bytes,
        group_keys=place.keys,
        priorities=place.priorities,
        skip_slow_consumers=place.skips,
    )


class Operator:
    """Declares the places in each life of the server, and does what the plan says to them."""

    def __init__(self, simulation: Stage, *, tells: bool) -> None:
        self.simulation = simulation
        self.number = 0
        self.session: OperatorSession | None = None
        #: Channels tell an event handler what happens in them.
        self._tells = tells

    def begin(self) -> None:
        """A life has begun: connect, declare the places; those on disk are there already."""
        simulation = self.simulation
        hub = simulation.server.hub
        self.number = _FIRST_NUMBER + simulation.server.lives
        hub.open(self.number, OperatorDoor(), simulation.server.now)
        session = hub._sessions[self.number]
        assert isinstance(session, OperatorSession)
        self.session = session
        if hub.gate is not None:
            hub.gate.trust(self.number)
        self.ask(Connect(self.number, None, "operator", door="operator"))
        for place in simulation.places.values():
            self.ask(self._creation(place))
        for place in simulation.places.values():
            if self._tells:
                changes = ChannelChanges(event_handler=HANDLER)
                self.ask(UpdateChannel(self.number, "update", place.channel, changes))
            if place.single:
                self.let_one_take(place.channel, True)
        for router in ROUTERS:
            self.ask(CreateRouter(self.number, "router", router, 0))
            binding = BindingOptions("b", TO_URL, f"{PREFIX}x", 1, 0, ASKS_RESPONSE, 0)
            self.ask(AddBinding(self.number, "binding", router, binding))
        if any(session.codes) and simulation.server.lives == 1:
            raise AssertionError(f"the places cannot be made: {session.codes}")

    def _creation(self, place: Place) -> CreateQueue:
        return CreateQueue(
            self.number,
            "create",
            place.channel,
            place.queue_id,
            changes_of(place),
            ChannelChanges(destroy_when_empty=place.fleeting),
        )

    def ask(self, command: Command) -> None:
        """Have the broker do something now."""
        assert self.session is not None
        self.session.queued.append(command)
        hub = self.simulation.server.hub
        now = self.simulation.server.now
        more = hub.receive(self.number, b"!", now)
        while more:
            more = hub.go_on(self.number, now)
        self.simulation.server.settle()

    def set_router_enabled(self, enabled: bool) -> None:
        """Switch the routers of the callers off, and on again."""
        server = self.simulation.server
        if server.up and not server.asleep:
            for router in ROUTERS:
                server.turn.set_router_enabled(router, enabled, server.now)
            server.attend()

    # -- what plans ask for ---------------------------------------------------------------------

    def change_status(self, place: Place, status: int) -> None:
        """Pause a queue, or let it continue."""
        changes = QueueChanges(status=status)
        self.ask(UpdateQueue(self.number, "update", place.channel, place.queue_id, changes))

    def let_one_take(self, channel: str, single: bool) -> None:
        """Let one consumer of a channel take everything, or all of them in turn."""
        for place in self.simulation.places.values():
            if place.channel == channel:
                place.single = single
        changes = ChannelChanges(single_consumer=single)
        self.ask(UpdateChannel(self.number, "update", channel, changes))

    def clear(self, place: Place) -> None:
        """Remove what waits in a queue."""
        self.ask(ClearMessages(self.number, "clear", place.channel, place.queue_id, True, True))

    def join(self, place: Place, credit: int) -> None:
        """Take deliveries of a place, so many."""
        self.ask(Join(self.number, "join", place.channel, credit))

    def drain(self, stops: bool) -> None:
        """Have the server drain, and end then or not."""
        self.ask(Drain(self.number, "drain", stops))

    def grant(self, place: Place, credit: int) -> None:
        """Take so many more."""
        self.ask(Grant(self.number, place.channel, credit))
