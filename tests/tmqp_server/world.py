"""A server in memory for tests: hub, broker and native door, with a clock the test holds."""

from __future__ import annotations

from itertools import count

from tests.tmqp_server.outputs import sent
from tmqp.limits import Limits
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import DeliveryHandler
from tmqp_server.engine.model.handlers import built_in_handlers
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.relaying import Relay
from tmqp_server.storage.journal import Journal

__all__ = ["BEGAN", "MemoryLink", "World"]

#: What the clock reads in the beginning, in seconds.
BEGAN = 1_000.0
_LARGE = Limits(max_payload_bytes=16_777_216)


class World:
    """A server without sockets; ``now`` is its clock, in seconds."""

    def __init__(
        self,
        options: BrokerOptions | None = None,
        limits: Limits = _LARGE,
        engine_limits: EngineLimits | None = None,
        handlers: dict[str, DeliveryHandler] | None = None,
        wall_clock_offset_s: float = 0.0,
        broker: Broker | None = None,
        *,
        guarded: bool = False,
        takes_custom: bool = False,
        relay: Relay | None = None,
    ) -> None:
        numbers = count(1)
        registry = built_in_handlers()
        for name, handler in (handlers or {}).items():
            registry.register(name, handler)
        self.broker = Broker(engine_limits, options, registry) if broker is None else broker
        self.door = NativeDoor(lambda: f"{next(numbers):032x}", limits, wall_clock_offset_s)
        # Gathers what is to be kept; nobody writes it.
        stores = options is not None and options.storage
        journal = Journal([self.door]) if stores else None
        self.hub = Hub(
            self.broker, 0, journal, guarded=guarded, takes_custom=takes_custom, relay=relay
        )
        self.began = BEGAN
        self.now = self.began
        self._sessions = 0

    def open_link(self, _number: int = 0) -> MemoryLink:
        """A new connection."""
        self._sessions += 1
        self.hub.open(self._sessions, self.door, self.now)
        return MemoryLink(self, self._sessions)

    def advance_to(self, at_s: float) -> None:
        """Let time pass until so many seconds after the beginning."""
        self._pass_until(self.began + at_s)

    def settle(self) -> None:
        """Let the broker finish what is due now."""
        self._pass_until(self.now)

    def _pass_until(self, until: float) -> None:
        while (due := self._next_due()) is not None and due <= until:
            self.now = max(self.now, due)
            self.hub.on_broker_deadline(self.now)
            for number in range(1, self._sessions + 1):
                self.hub.on_session_deadline(number, self.now)
        self.now = max(self.now, until)

    def _next_due(self) -> float | None:
        dues = [self.hub.session_deadline(number) for number in range(1, self._sessions + 1)]
        dues.append(self.hub.broker_deadline())
        return min((due for due in dues if due is not None), default=None)


class MemoryLink:
    """A connection to a :class:`World`; :class:`tmqp.testing.replay.Link`."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self.number = number
        self._closed = False

    @property
    def closed(self) -> bool:
        """The server has closed it, or this side has."""
        return self._closed or bool(self._world.hub.close_reason(self.number))

    def send(self, data: bytes) -> None:
        """The server reads these bytes, as one chunk."""
        self._world.hub.receive(self.number, data, self._world.now)
        self._world.settle()

    def receive(self) -> bytes:
        """What the server has sent and nobody has taken."""
        return sent(self._world.hub, self.number)

    def close(self) -> None:
        """The transport ends."""
        if not self._closed:
            self._closed = True
            self._world.hub.receive_eof(self.number, self._world.now)
            self._world.hub.forget(self.number, self._world.now)
            self._world.settle()
