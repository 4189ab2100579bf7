"""A hub with the doors of NSQ, for scripts of bytes and times."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import h11

from tests.tmqp_server.doors.hub_stage import HubStage, StagePeer
from tmqp.address import Address
from tmqp.limits import Limits
from tmqp_server.doors.kinds import DoorContext
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.port import Door
from tmqp_server.doors.registry import DoorRegistry
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub

__all__ = ["OFFSET_S", "Answer", "Peer", "Stage"]

#: What the clock of the world reads when that of the engine reads 0.
OFFSET_S = 1_795_000_000.0


class Answer:
    """One answer as a client reads it; its fields in order, without the date."""

    def __init__(self, event: h11.Response, body: bytes) -> None:
        self.status = event.status_code
        pairs = [(key.decode(), value.decode()) for key, value in event.headers.raw_items()]
        self.fields = {key: value for key, value in pairs if key != "Date"}
        self.body = body

    def __repr__(self) -> str:
        return f"<{self.status} {self.body!r}>"


class Stage(HubStage):
    """A server in memory that serves the protocols of NSQ.

    :param options: the options of doors, by protocol; ``limits`` the same of their limits.
    """

    def __init__(
        self,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        limits: Mapping[str, Mapping[str, Any]] | None = None,
        engine_limits: EngineLimits | None = None,
        *,
        guarded: bool = False,
    ) -> None:
        self._numbers = count(1)
        broker = Broker(engine_limits, BrokerOptions())
        super().__init__(broker, Hub(broker, 0, None, guarded=guarded))
        self.letters = Letters((), OFFSET_S)
        self.native = NativeDoor(self.new_id, Limits(), OFFSET_S, self.letters)
        self.registry = DoorRegistry()
        self.doors: dict[str, Door] = {"tmqp": self.native}
        for kind in self.registry:
            if kind.number:
                native = kind.name == self.native.name
                self.letters.add(self.native if native else kind.bodies())
        for kind in self.registry:
            if kind.name.startswith("nsq"):
                context = DoorContext(
                    self.new_id,
                    OFFSET_S,
                    self.letters,
                    Limits(),
                    (limits or {}).get(kind.name, {}),
                    self.native,
                    options={"broadcast_address": "127.0.0.1", **(options or {}).get(kind.name, {})}
                    if kind.name in _TOLD
                    else (options or {}).get(kind.name, {}),
                    addresses=[Address(port=kind.default_port)],
                    hostname="vm",
                )
                self.doors[kind.name] = kind.open(context)

    def new_id(self) -> str:
        """An id that nobody else has."""
        return f"{next(self._numbers):032x}"

    def dial(self, protocol: str, *first: bytes, peer: str = "") -> Peer:
        """A new connection, and the first bytes of its client."""
        peer = peer or f"127.0.0.1:{40_001 + len(self.sent)}"
        return Peer(self, self.connect(self.doors[protocol], peer)).say(*first)

    def ask(
        self,
        protocol: str,
        method: str,
        target: str,
        body: bytes | None = None,
        *fields: tuple[str, str],
    ) -> Answer:
        """Send a request on a connection of its own, and read the answer."""
        return self.dial(protocol).ask(method, target, body, *fields)


_TOLD = ("nsqlookupd", "nsqd-http")


class Peer(StagePeer):
    """The client's end of a connection."""

    def units(self) -> list[bytes | str]:
        """The answers of a lookupd; ``EOF`` at the end."""
        data, found = self.take(), []
        while data:
            size = int.from_bytes(data[:4], "big")
            found.append(data[4 : 4 + size])
            assert len(found[-1]) == size, "an answer is complete"
            data = data[4 + size :]
        return [*found, *(["EOF"] if self.over else [])]

    def ask(
        self, method: str, target: str, body: bytes | None = None, *fields: tuple[str, str]
    ) -> Answer:
        """Send a request and read its answer, the last one of this connection."""
        lines = [f"{method} {target} HTTP/1.1", "Host: here", "Connection: close"]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{key}: {value}" for key, value in fields]
        self.say("\r\n".join([*lines, "", ""]).encode(), body or b"")
        return self.answer(method)

    def answer(self, method: str) -> Answer:
        """Read the answer to a request."""
        data = self.take()
        machine = h11.Connection(h11.CLIENT)
        machine.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        machine.send(h11.EndOfMessage())
        machine.receive_data(data)
        head, body = None, b""
        while True:
            event = machine.next_event()
            if isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                assert event is not h11.NEED_DATA, f"no whole answer to {method}: {data!r}"
        assert head is not None, "an answer has a head"
        return Answer(head, body)
