"""Our server and our client as machines without I/O, for the cases of the conformance suite."""

from __future__ import annotations

import tomllib

from tests.project import ROOT
from tests.tmqp_server.outputs import sent
from tests.tmqp_server.world import World
from tmqp.limits import Limits
from tmqp.testing.conformance import Case
from tmqp_server.config import ServerConfig, read_config
from tmqp_server.doors.wires import LetterWires
from tmqp_server.wiring.assembly import build_broker, declare

__all__ = ["HubMachine"]

_CONFIGURATION = ROOT / "examples" / "interoperability.toml"


class HubMachine:
    """Our server in memory: hub, broker and native door."""

    def __init__(self, limits: Limits | None = None) -> None:
        table = tomllib.loads(_CONFIGURATION.read_text(encoding="utf-8"))
        table["routers"] = []
        config = ServerConfig(**read_config(table))
        self.world = World(limits=limits or Limits(), broker=build_broker(config))
        self.world.broker.know_wires(LetterWires(self.world.door.letters))
        declare(self.world.broker, config, self.world.now)
        self._open: set[int] = set()

    def open(self, case: Case, now: float) -> int:
        """A new connection."""
        self.world.now = now
        link = self.world.open_link()
        self._open.add(link.number)
        return link.number

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes arrive."""
        waits = self.world.hub.receive(number, data, now)
        while waits:
            waits = self.world.hub.go_on(number, now)

    def take(self, number: int) -> bytes:
        """What there is to send."""
        return sent(self.world.hub, number)

    def is_closed(self, number: int) -> bool:
        """Whether the door has closed."""
        return number not in self._open or bool(self.world.hub.close_reason(number))

    def end(self, number: int, now: float) -> None:
        """The peer sends no more."""
        self.world.hub.receive_eof(number, now)

    def lose(self, number: int, now: float) -> None:
        """The transport is gone."""
        self._open.discard(number)
        self.world.hub.forget(number, now)

    def next_deadline(self) -> float | None:
        """The nearest deadline."""
        hub = self.world.hub
        dues = [hub.session_deadline(number) for number in self._open]
        dues.append(hub.broker_deadline())
        return min((due for due in dues if due is not None), default=None)

    def on_deadline(self, now: float) -> None:
        """Do what is due."""
        self.world.now = now
        self.world.hub.on_broker_deadline(now)
        for number in sorted(self._open):
            self.world.hub.on_session_deadline(number, now)
