"""A door of another protocol for tests: a line of JSON for each request, answer and delivery.

Requests: ``{"do": "connect", "id": ...}``, ``join``, ``leave``, ``push``, ``pull``, ``ack``,
``nack`` and ``send`` (to another client); ``open`` and ``close`` for a ``branch``, counted from 1,
which may then ``join``, ``leave``, ``ack`` and ``nack``; ``tls`` changes to TLS, after the answer
and before anything else is said.  Over UDP each datagram is whole lines, and each line that is sent
is one datagram.  A message's contents are the keys of
:data:`FIELDS`, ``headers``, ``properties`` and ``body`` in base64.  Its wire form is its own:
nothing of TMQP.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from tmqp_server.doors.kinds import DoorContext, DoorKind
from tmqp_server.doors.letter import Letter, Property
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.port import Door, DoorSession
from tmqp_server.engine.commands import (
    BY_ID,
    Acknowledge,
    CloseBranch,
    Command,
    Connect,
    Disconnect,
    Join,
    Leave,
    OpenBranch,
    Pull,
    Push,
    PushExtras,
    SendDirect,
    branch_number,
    index_of,
)
from tmqp_server.engine.effects import (
    Accept,
    AnswerPull,
    BranchClosed,
    BranchOpened,
    CloseSession,
    Confirm,
    Deliver,
    DeliverPulled,
    Effect,
    EndPull,
    Forward,
    Inform,
    Left,
    Refuse,
    Reply,
)
from tmqp_server.engine.model.message import Message

__all__ = ["FIELDS", "ToyBodies", "ToyDoor", "ToyKind", "ToySession", "ToyWire", "lines_of"]

#: Attributes of a letter that are keys of a message here.
FIELDS = (
    "content_type",
    "correlation_id",
    "reply_to",
    "kind",
    "priority",
    "timestamp_ms",
    "expires_ms",
    "group_key",
    "traceparent",
    "tracestate",
)
_DEFAULTS = Letter(b"")


class ToyWire:
    """A message as this door keeps it."""

    def __init__(self, head: dict[str, Any], body: bytes) -> None:
        self.head = head
        self.body = body


def _kept_head(head: dict[str, Any]) -> bytes:
    """What is kept of a message before its body."""
    return json.dumps(head).encode() + b"\n"


class ToyBodies:
    """What is kept of the door's messages: a line of JSON, then the body."""

    name = "toy"
    number = 250

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        wire = message.wire
        assert isinstance(wire, ToyWire), "nobody else's message is kept by this door"
        head = _kept_head({**wire.head, "id": message.message_id})
        return head + wire.body, len(head), len(wire.body)

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        raise ValueError("this door has no transactions")

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        line, _, payload = body.partition(b"\n")
        head = json.loads(line)
        wire = ToyWire(head, payload)
        return wire, head["id"], head["source"], head["channel"], len(body)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        assert isinstance(wire, ToyWire), "nobody else's message is written by this door"
        head = {**wire.head, "headers": [list(pair) for pair in headers]}
        return ToyWire(head, wire.body), len(json.dumps(head)) - len(json.dumps(wire.head))

    def letter(self, wire: object) -> Letter:
        assert isinstance(wire, ToyWire), "nobody else's message is read by this door"
        head = wire.head
        letter = Letter(
            wire.body,
            head.get("id", ""),
            head.get("source", ""),
            head.get("to", head.get("channel", "")),
            head.get("queue", 0),
        )
        for field in FIELDS:
            if field in head:
                setattr(letter, field, head[field])
        letter.headers = [(key, value) for key, value in head.get("headers", [])]
        for name, kind, value in head.get("properties", []):
            letter.properties.append(Property(name, kind, value))
        return letter


def _message_line(what: str, letter: Letter, **more: object) -> bytes:
    line: dict[str, Any] = {"is": what, "id": letter.message_id, "source": letter.source, **more}
    for field in FIELDS:
        if getattr(letter, field) != getattr(_DEFAULTS, field):
            line[field] = getattr(letter, field)
    if letter.headers:
        line["headers"] = [list(pair) for pair in letter.headers]
    if letter.properties:
        line["properties"] = [[each.name, each.kind, each.value] for each in letter.properties]
    line["body"] = base64.b64encode(letter.body).decode()
    return _line(line)


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def lines_of(data: bytes) -> list[dict[str, Any]]:
    """What a session has sent."""
    return [json.loads(line) for line in data.splitlines()]


class ToyDoor(Door):
    """Opens sessions; ``encoded`` and ``translated`` count what it was asked for."""

    name = ToyBodies.name
    number = ToyBodies.number

    def __init__(
        self,
        letters: Letters,
        mark: str = "",
        *,
        per_session: bool = False,
        datagrams: bool = False,
        names: DoorNames | None = None,
    ) -> None:
        self.names = DoorNames() if names is None else names
        self.per_session = per_session
        self.datagrams = datagrams
        self.letters = letters
        self.mark = mark
        self.encoded = 0
        self.translated = 0
        self._bodies = ToyBodies()

    def open(self, session: int, now: float) -> ToySession:
        return ToyDatagrams(self, session) if self.datagrams else ToySession(self, session)

    def letter_of(self, message: Message) -> Letter:
        """Its own messages are read without anybody's help."""
        if not isinstance(message.wire, ToyWire):
            self.translated += 1
        return self.letters.of(message)

    def encode_delivery(self, effect: Deliver) -> bytes:
        self.encoded += 1
        letter = self.letter_of(effect.message)
        if effect.hide_source:
            letter.source = ""
        more: dict[str, object] = {"mark": self.mark} if self.mark else {}
        return _message_line(
            "message",
            letter,
            channel=self.names.foreign_name(effect.channel).decode(),
            queue=effect.message.queue_id,
            answer=effect.wants_acknowledge,
            **more,
        )

    def encode_forward(self, effect: Forward) -> bytes:
        letter = self.letters.of_wire(effect.wire, effect.door)
        return _message_line("direct", letter, number=letter.queue_id)

    def encode_event(self, effect: Inform) -> bytes:
        raise AssertionError("nobody subscribes to events here")

    def letter(self, wire: object) -> Letter:
        return self._bodies.letter(wire)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        return self._bodies.with_headers(wire, headers)

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        return self._bodies.stored(message)

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        return self._bodies.unpacked(data)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        return self._bodies.restored(body)


class ToyKind(DoorKind):
    """The protocol, for a server to serve."""

    name = ToyBodies.name
    number = ToyBodies.number
    default_port = 0
    has_datagrams = True

    def bodies(self) -> ToyBodies:
        return ToyBodies()

    def open(self, context: DoorContext) -> ToyDoor:
        if context.limits:
            raise ValueError("it has no limits")
        return ToyDoor(context.letters, datagrams=context.datagrams, names=context.names)


class ToySession(DoorSession):
    """One connection."""

    def __init__(self, door: ToyDoor, number: int) -> None:
        super().__init__()
        self._door = door
        self._number = number
        self._buffer = b""
        self._out = bytearray()
        self._client_id = ""
        self._connected = False
        self._delivered = 0
        self._asking = number

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        commands: list[Command] = []
        for line in lines:
            asked = json.loads(line)
            branch = asked.get("branch", 0)
            self._asking = branch_number(self._number, branch) if branch else self._number
            if self.wants_tls:
                return [*commands, *self.close("something came in the clear behind tls", now)]
            if asked["do"] == "tls":
                self.wants_tls = self.wants_written = True
                self._say({"is": "tls"})
            else:
                commands.append(getattr(self, f"_{asked.pop('do')}")(asked))
        return commands

    def _channel(self, asked: dict[str, Any]) -> str:
        """Names differ by case here."""
        return self._door.names.exact_channel(asked["channel"].encode())

    def secured(self, now: float) -> Sequence[Command]:
        self._say({"is": "secure"})
        return []

    def _connect(self, asked: dict[str, Any]) -> Command:
        self._client_id = asked["id"]
        return Connect(self._number, None, self._client_id, door=self._door.name)

    def _join(self, asked: dict[str, Any]) -> Command:
        return Join(self._asking, "join", self._channel(asked))

    def _leave(self, asked: dict[str, Any]) -> Command:
        return Leave(self._asking, "leave", self._channel(asked))

    def _open(self, asked: dict[str, Any]) -> Command:
        return OpenBranch(self._number, "open", self._asking)

    def _close(self, asked: dict[str, Any]) -> Command:
        return CloseBranch(self._number, "close", self._asking)

    def _pull(self, asked: dict[str, Any]) -> Command:
        return Pull(
            self._number, "pull", self._channel(asked), asked["queue"], asked.get("count", 1)
        )

    def _wire(self, asked: dict[str, Any]) -> ToyWire:
        body = base64.b64decode(asked.pop("body", ""))
        return ToyWire({**asked, "source": self._client_id}, body)

    def _push(self, asked: dict[str, Any]) -> Command:
        wire = self._wire(asked)
        ttl_ms, delay_ms = asked.get("ttl_ms", 0), asked.get("delay_ms", 0)
        extras = PushExtras(None, ttl_ms, delay_ms) if ttl_ms or delay_ms else None
        high = asked.get("priority", 4) > 4
        size = len(_kept_head(wire.head)) + len(wire.body)
        place = (self._channel(asked), asked["queue"])
        wants = asked.get("confirm", True)
        return Push(self._number, asked["id"], *place, high, wants, size, wire, extras)

    def _send(self, asked: dict[str, Any]) -> Command:
        wire = self._wire(asked)
        who = (BY_ID, asked["to"], False)
        return SendDirect(self._number, *who, len(wire.body), wire, "send", asked["id"], 0)

    def _ack(self, asked: dict[str, Any]) -> Command:
        return Acknowledge(self._asking, asked["id"], self._channel(asked), asked["queue"])

    def _nack(self, asked: dict[str, Any]) -> Command:
        place = (self._channel(asked), asked["queue"])
        return Acknowledge(self._asking, asked["id"], *place, False, asked["reason"])

    def receive_eof(self, now: float) -> Sequence[Command]:
        return self.close("the peer has ended the connection", now)

    def close(self, reason: str, now: float) -> Sequence[Command]:
        self.closed = True
        self.close_reason = self.close_reason or reason
        if not self._connected:
            return []
        self._connected = False
        return [Disconnect(self._number)]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        if isinstance(effect, Accept):
            self._connected = True
            self._say({"is": "accepted", "id": effect.client_id})
        elif isinstance(effect, Refuse):
            self._say({"is": "refused", "code": effect.code})
            return self.close("refused", now)
        elif isinstance(effect, Confirm):
            confirm = {"is": "confirm", "id": effect.message_id, "positive": effect.positive}
            self._say({**confirm, "reason": effect.reason})
        elif isinstance(effect, Reply):
            what = effect.request if isinstance(effect.request, str) else "push"
            self._say({"is": "reply", "to": what, "code": effect.code})
        elif isinstance(effect, BranchOpened):
            self._say({"is": "opened", "branch": index_of(effect.branch)})
        elif isinstance(effect, BranchClosed):
            self._say({"is": "closed", "branch": index_of(effect.branch)})
        elif isinstance(effect, Left):
            self._say({"is": "left", "branch": index_of(effect.session)})
        elif isinstance(effect, (DeliverPulled, AnswerPull)):
            letter = self._door.letter_of(effect.message)
            self._out += _message_line("pulled", letter, queue=effect.message.queue_id)
        elif isinstance(effect, EndPull):
            self._say({"is": "end", "reason": effect.reason})
        elif isinstance(effect, CloseSession):
            return self.close(effect.reason, now)
        self.outbound_bytes = len(self._out)
        return []

    def _say(self, value: dict[str, Any]) -> None:
        self._out += _line(value)
        self.outbound_bytes = len(self._out)

    def deliver(self, data: bytes) -> None:
        self._out += data
        self.outbound_bytes = len(self._out)

    def deliver_own(self, effect: Deliver, shared: bytes, number: int) -> None:
        self._delivered += 1
        head = {"is": "head", "number": self._delivered, "for": effect.message.message_id}
        if number != self._number:
            head["branch"] = index_of(number)
        self._say(head)
        self.deliver(shared)

    def data_to_send(self) -> bytes:
        data = bytes(self._out)
        self._out.clear()
        self.outbound_bytes = 0
        return data

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, now: float) -> Sequence[Command]:
        return []


class ToyDatagrams(ToySession):
    """One source of datagrams; the first one that makes no sense ends its session."""

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        try:
            for line in data.splitlines():
                json.loads(line)
        except ValueError:
            return self.close("no line of JSON", now)
        return super().receive(data.rstrip(b"\n") + b"\n", now)

    def next_to_send(self) -> bytes:
        line, newline, rest = bytes(self._out).partition(b"\n")
        self._out = bytearray(rest)
        self.outbound_bytes = len(rest)
        return line + newline

    def close(self, reason: str, now: float) -> Sequence[Command]:
        if self._connected:
            self._say({"is": "bye", "reason": reason})
        return super().close(reason, now)
