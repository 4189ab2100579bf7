"""A hub in memory for scripts of bytes and times, and the client's end of a connection to it."""

from __future__ import annotations

from typing import Self

from tests.tmqp_server.outputs import faults
from tmqp_server.doors.port import Door
from tmqp_server.engine.broker import Broker
from tmqp_server.hub.hub import Hub

__all__ = ["HubStage", "StagePeer"]


class HubStage:
    """A server without sockets; ``now`` is its clock.

    ``sent`` is all that each session was sent; ``ended`` says why the server ended it.
    """

    def __init__(self, broker: Broker, hub: Hub, now: float = 1_000.0) -> None:
        self.broker = broker
        self.hub = hub
        self.now = now
        self.sent: dict[int, bytearray] = {}
        self.ended: dict[int, str] = {}

    def connect(self, door: Door, peer: str = "") -> int:
        """The number of a new connection."""
        number = len(self.sent) + 1
        self.hub.open(number, door, self.now, peer)
        self.sent[number] = bytearray()
        self.settle()
        return number

    def feed(self, number: int, data: bytes) -> None:
        """A session reads a chunk."""
        if number in self.ended or not data:
            return
        more = self.hub.receive(number, data, self.now)
        self.settle()
        while more and not self.hub.is_waiting(number):
            more = self.hub.go_on(number, self.now)
            self.settle()

    def settle(self) -> None:
        """Let the broker finish what is due, and take what is sent."""
        while (due := self.hub.broker_deadline()) is not None and due <= self.now:
            self.hub.on_broker_deadline(self.now)
        while outbound := self.hub.take_outbound():
            for number, data in outbound:
                self.sent[number] += data
                if not data:
                    self.end(number, self.hub.close_reason(number))
        for number in list(self.hub.awaited):
            self.hub.written(number, self.now)  # the peer's kernel takes everything
        for number in list(self.hub.woken):
            self.hub.woken.pop(number, None)
            self.hub.go_on(number, self.now)
            self.settle()
        assert faults(self.hub) == {}

    def end(self, number: int, reason: str = "the transport broke") -> None:
        """A connection is over."""
        if number not in self.ended:
            self.ended[number] = reason
            self.hub.forget(number, self.now)

    def sleep(self, seconds: float) -> None:
        """Let time pass, deadline by deadline."""
        until = self.now + seconds
        while True:
            dues = [self.hub.session_deadline(number) for number in self.sent]
            dues.append(self.hub.broker_deadline())
            due = min((each for each in dues if each is not None), default=None)
            if due is None or due > until:
                break
            self.now = max(self.now, due)
            for number in list(self.sent):
                deadline = self.hub.session_deadline(number)
                if deadline is not None and deadline <= self.now:
                    self.hub.on_session_deadline(number, self.now)
            self.settle()
        self.now = until


class StagePeer:
    """The client's end of a connection."""

    def __init__(self, stage: HubStage, number: int) -> None:
        self.stage = stage
        self.number = number
        self._read = 0

    def say(self, *parts: bytes) -> Self:
        """Send, as one chunk."""
        self.stage.feed(self.number, b"".join(parts))
        return self

    def raw(self) -> bytes:
        """What was received and not read."""
        return bytes(self.stage.sent[self.number][self._read :])

    def take(self) -> bytes:
        """The same, which is read now."""
        data = self.raw()
        self._read += len(data)
        return data

    @property
    def over(self) -> str:
        """Why the server ended the connection; empty while it is open."""
        return self.stage.ended.get(self.number, "")

    def hang_up(self) -> None:
        """The client closes the connection."""
        if not self.over:
            self.stage.hub.receive_eof(self.number, self.stage.now)
            self.stage.settle()
            self.stage.end(self.number)
