"""The words of NSQ's scripts: commands of clients, and what servers answer."""

from __future__ import annotations

import json
from typing import Any, Final

from tmqp.testing.conformance.patterns import Bind
from tmqp.testing.conformance.steps import Hear, Open, Say
from tmqp_conformance.packs.units import Expect, Unit
from tmqp_conformance.packs.words import Request, Sized, dial, hear, say, sized
from tmqp_wires.nsq import FrameDecoder, writing
from tmqp_wires.nsq.events import ErrorReceived, Heartbeat, MessageReceived, Violation

__all__ = [
    "CHANNEL",
    "HEARTBEAT",
    "OK",
    "OTHER",
    "TOPIC",
    "NsqEar",
    "connect",
    "consumer",
    "error",
    "fin",
    "get",
    "http",
    "identify",
    "message",
    "mpub",
    "post",
    "pub",
    "published",
    "request",
    "sub",
]

#: Names that the server forgets with the last consumer, so that nothing is left behind.
TOPIC: Final = b"$t#ephemeral"
CHANNEL: Final = b"c#ephemeral"
OTHER: Final = b"d#ephemeral"
OK: Final = Expect("response", data=b"OK")
HEARTBEAT: Final = Expect("heartbeat")


class NsqEar:
    """Frames of nsqd: units ``response``, ``heartbeat``, ``error`` and ``message``."""

    def __init__(self) -> None:
        self.complaint = ""
        self._decoder = FrameDecoder()

    @property
    def held_bytes(self) -> int:
        """See :class:`tmqp_conformance.packs.units.Ear`."""
        return self._decoder.held_bytes

    def feed(self, data: bytes) -> list[Unit]:
        """See :class:`tmqp_conformance.packs.units.Ear`."""
        units = []
        for event in self._decoder.feed(data):
            if isinstance(event, Violation):
                self.complaint = f"the peer sent {event.text.decode('utf-8', 'replace')}"
            elif isinstance(event, Heartbeat):
                units.append(Unit("heartbeat"))
            elif isinstance(event, ErrorReceived):
                units.append(Unit("error", code=event.code, text=event.text))
            elif isinstance(event, MessageReceived):
                units.append(
                    Unit(
                        "message",
                        body=event.body,
                        attempts=event.attempts,
                        id=event.message_id,
                        timestamp_ns=event.timestamp_ns,
                    )
                )
            else:
                units.append(Unit("response", data=getattr(event, "data", b"")))
        return units


def error(code: bytes, text: object = None) -> Expect:
    """An error: its word, and its text where that matters to programs."""
    return Expect("error", code=code) if text is None else Expect("error", code=code, text=text)


def message(body: bytes, attempts: object = 1, word: str = "m", **fields: object) -> Expect:
    """A message, whose id is ``$m`` from then on."""
    return Expect("message", body=body, attempts=attempts, id=Bind(word), **fields)


def identify(**fields: Any) -> Sized:
    """IDENTIFY (N24)."""
    return sized(b"IDENTIFY", json.dumps(fields, separators=(",", ":")).encode())


def pub(body: bytes = b"x", topic: bytes = TOPIC) -> Sized:
    """PUB (N55)."""
    return sized(b"PUB " + topic, body)


def mpub(*bodies: bytes, topic: bytes = TOPIC) -> Sized:
    """MPUB (N57)."""
    whole = writing.mpub(b"", bodies)
    return sized(b"MPUB " + topic, whole.partition(b"\n")[2][4:])


def sub(channel: bytes = CHANNEL, topic: bytes = TOPIC) -> bytes:
    """SUB (N75)."""
    return b"SUB %s %s\n" % (topic, channel)


def fin(word: str = "m") -> bytes:
    """FIN of the message whose id is called that (N85)."""
    return f"FIN ${word}\n".encode()


def connect(line: str) -> list[Open | Say]:
    """Open a line to nsqd, and greet."""
    return [dial(line), say(line, writing.MAGIC)]


def consumer(
    line: str, rdy: int = 0, channel: bytes = CHANNEL, topic: bytes = TOPIC, **fields: Any
) -> list[Open | Say | Hear]:
    """A client that has subscribed and, if it is ready for messages, has said so."""
    steps: list[Open | Say | Hear] = [*connect(line)]
    if fields:
        steps += [say(line, identify(**fields)), hear(line, OK)]
    steps += [say(line, sub(channel, topic)), hear(line, OK)]
    if rdy:
        steps.append(say(line, b"RDY %d\n" % rdy))
    return steps


def published(line: str, *bodies: bytes, topic: bytes = TOPIC) -> list[Say | Hear]:
    """Publish messages one by one, each confirmed."""
    steps: list[Say | Hear] = []
    for body in bodies:
        steps += [say(line, pub(body, topic)), hear(line, OK)]
    return steps


def get(target: bytes) -> Request:
    """A GET."""
    return Request(b"GET", target)


def post(target: bytes, body: bytes = b"") -> Request:
    """A POST."""
    return Request(b"POST", target, body)


def http(code: int, body: object = None, **fields: object) -> Expect:
    """An answer of HTTP: status, body, and header fields."""
    more = {} if body is None else {"body": body}
    return Expect("http", code=code, **more, **fields)


def request(line: str, what: Request, answer: Expect) -> list[Say | Hear]:
    """Ask on an open line, and expect this answer."""
    return [say(line, what), hear(line, answer)]
