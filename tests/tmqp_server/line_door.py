"""A door for tests of what stands around doors: a chunk is a line of words."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.commands import Command, Connect, Disconnect, Join, ListClients, Push
from tmqp_server.engine.effects import Accept, CloseSession, Deliver, Effect, Forward, Inform
from tmqp_server.engine.model.message import Message

__all__ = ["LineDoor", "LineSession"]


class LineDoor(Door):
    """Opens sessions and remembers them; a delivery is a line.

    ``fault`` makes it fail to encode; ``due`` is the deadline its sessions begin with.
    """

    number = 250

    def __init__(self, name: str = "line") -> None:
        self.name = name
        self.encoded: list[Message] = []
        self.sessions: dict[int, LineSession] = {}
        self.fault = False
        self.due: float | None = 1e12

    def open(self, session: int, now: float) -> LineSession:
        self.sessions[session] = LineSession(session, self.due)
        return self.sessions[session]

    def encode_delivery(self, effect: Deliver) -> bytes:
        if self.fault:
            raise ValueError("cannot be encoded")
        self.encoded.append(effect.message)
        return f"{self.name}:{effect.message.message_id}\n".encode()

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        body = f"{message.message_id} {message.source} {message.channel}".encode()
        return body, 0, len(body)

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """Bodies in lines; an id that begins with ``!`` has high priority."""
        lines = data.split(b"\n")
        return [(line, 0, len(line), line.startswith(b"!")) for line in lines]

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        message_id, source, channel = body.decode().split(" ")
        return None, message_id, source, channel, 1

    def encode_forward(self, effect: Forward) -> bytes:
        raise AssertionError("a line session says nothing to others")

    def encode_for_node(self, command: Command) -> bytes | None:
        return f"{type(command).__name__}".encode() if isinstance(command, Push) else None

    def encode_event(self, effect: Inform) -> bytes:
        raise AssertionError("a line session listens to no events")


class LineSession(DoorSession):
    """Understands: connect NAME, takeover NAME, join CHANNEL, push CHANNEL ID, list, bye; and of
    itself stop (read no more until the next answer or deadline), tell (when all is written), tls.

    ``said`` is what it was given to send, ``pieces`` the deliveries as they were handed over.
    ``fault`` names what fails: apply, close, deliver,
    receive, deadline or send.  ``due`` is its deadline, which is over once it
    was ``served``, unless the session is ``stubborn``.  ``told`` is when it was told that all was
    written; then it says ``parting``.
    """

    def __init__(self, number: int, due: float | None) -> None:
        super().__init__()
        self._number = number
        self.said: list[object] = []
        self.pieces: list[bytes] = []
        self.early: list[str] = []
        self.fault = ""
        self.due = due
        self.deadlines: list[float] = []
        self.served = anyio.Event()
        self.stubborn = False
        self.told: list[float] = []
        self.parting = b""
        self.secured_at: list[float] = []

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        self._fail("receive")
        commands: list[Command] = []
        for line in data.decode().split("; "):
            verb, _, rest = line.partition(" ")
            commands += self._commands(verb, rest.split())
        return commands

    def _commands(self, verb: str, words: list[str]) -> list[Command]:
        if verb == "connect":
            self.early = words[1:]
            return [Connect(self._number, None, words[0])]
        if verb == "takeover":
            return [Connect(self._number, None, words[0], take_over=True)]
        if verb == "join":
            return [Join(self._number, verb, words[0])]
        if verb == "push":
            size = len(f"line:{words[1]}\n")
            return [Push(self._number, words[1], words[0], 0, False, False, size, None)]
        if verb == "list":
            return [ListClients(self._number, verb)]
        if verb in ("stop", "tell", "tls"):
            self.reads = self.reads and verb != "stop"
            self.wants_written = self.wants_written or verb != "stop"
            self.wants_tls = self.wants_tls or verb == "tls"
            return []
        assert verb == "bye"
        return [Disconnect(self._number)]

    def receive_eof(self, now: float) -> Sequence[Command]:
        self.close_reason = "end"
        return [Disconnect(self._number)]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        self._fail("apply")
        self._read_again()
        self.said.append(effect)
        self.outbound_bytes += 100
        if isinstance(effect, CloseSession):
            self.close_reason = effect.reason
            return [Disconnect(self._number)]
        if isinstance(effect, Accept):
            return [Join(self._number, "early", channel) for channel in self.early]
        return []

    def _read_again(self) -> None:
        if not self.reads:
            self.reads = self.hurried = True

    def written(self, now: float) -> Sequence[Command]:
        self.told.append(now)
        if self.parting:
            self.deliver(self.parting)
            self.wants_written = True
        return []

    def secured(self, now: float) -> Sequence[Command]:
        self._fail("secured")
        self.secured_at.append(now)
        return [ListClients(self._number, "secured")]

    def deliver(self, data: bytes) -> None:
        self._fail("deliver")
        self.pieces.append(data)
        self.said.extend(data.splitlines())
        self.outbound_bytes += len(data)

    def close(self, reason: str, now: float) -> Sequence[Command]:
        self._fail("close")
        self.close_reason = reason
        return [Disconnect(self._number)]

    def data_to_send(self) -> bytes:
        self._fail("send")
        sent, self.outbound_bytes = self.outbound_bytes, 0
        return b"." * sent

    def next_deadline(self) -> float | None:
        return self.due

    def on_deadline(self, now: float) -> Sequence[Command]:
        if not self.stubborn:
            self.due = None
        self.deadlines.append(now)
        self._read_again()
        self.served.set()
        self._fail("deadline")
        return []

    def _fail(self, where: str) -> None:
        if self.fault == where:
            raise ValueError(f"a fault of the door: {where}")

    def words(self) -> list[str]:
        """What was said, deliveries as their text and effects by name."""
        said, self.said = self.said, []
        return [w.decode() if isinstance(w, bytes) else type(w).__name__ for w in said]
