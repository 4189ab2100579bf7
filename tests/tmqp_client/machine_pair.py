"""The client's machine and a server's connection, back to back, without any I/O."""

from __future__ import annotations

import itertools
from typing import Any

from tmqp import Connection, ConnectionInformation, Frame, Limits, MessageReceived, Role
from tmqp_client import ClientLimits
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Outcome
from tmqp_client._core.pending import Pending

__all__ = ["LIMITS", "Pair", "only"]

LIMITS = ClientLimits(
    protocol=Limits(ping_interval_s=20.0, handshake_timeout_s=10.0),
    max_outstanding=5,
    consumer_messages=4,
    consumer_bytes=100_000,
    overflow_factor=2.0,
    outbound_bytes=1_000,
    unclaimed_messages=2,
)


class Pair:
    """A machine and the server it talks to."""

    def __init__(
        self, limits: ClientLimits = LIMITS, *, accept: bool = True, max_sends: int = 0
    ) -> None:
        counter = itertools.count(1)
        self.machine = ClientMachine(
            ConnectionInformation("c1"), limits, lambda: f"id{next(counter)}", max_sends
        )
        self.events: list[Any] = []
        self.server = Connection(Role.SERVER)
        self.start(0.0, accept=accept)

    def start(self, now: float, *, accept: bool = True) -> list[Outcome]:
        self.server = Connection(Role.SERVER, now=now)
        self.machine.start(now)
        self.to_server(now)
        if not accept:
            return []
        self.server.accept("c1")
        return self.to_client(now)

    def to_server(self, now: float = 0.0) -> list[Any]:
        events = self.server.receive(self.machine.data_to_send(), now)
        self.events += events
        return list(events)

    def to_client(self, now: float = 0.0) -> list[Outcome]:
        return self.machine.receive(self.server.data_to_send(), now)

    def say(self, *frames: Frame, now: float = 0.0) -> list[Outcome]:
        for frame in frames:
            self.server.send(frame)
        return self.to_client(now)

    def asked(self, now: float = 0.0) -> list[Frame]:
        return [event.frame for event in self.to_server(now) if isinstance(event, MessageReceived)]

    def push(self, payload: bytes = b"x", now: float = 0.0, **how: Any) -> Pending:
        how.setdefault("confirm", True)
        return self.machine.push("orders", 1, payload, (), now, **how)


def only(outcomes: list[Outcome], kind: type) -> list[Any]:
    return [outcome for outcome in outcomes if isinstance(outcome, kind)]
