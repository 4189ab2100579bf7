"""Messages of Simple MQ inside the server: their wire form, runs and stored form."""

from __future__ import annotations

import json
from typing import Final, final

from tmqp_server.doors.bodies import PlainBodies
from tmqp_server.doors.names import exact_channel
from tmqp_server.engine.commands import Push, PushExtras, PushRun, RunWire

__all__ = [
    "DOOR",
    "NUMBER",
    "QUEUE",
    "SmqBodies",
    "SmqMessage",
    "SmqRun",
    "line_of",
]

#: The door's name and number, kept with its messages.
DOOR: Final = "smq"
NUMBER: Final = 8
#: The queue of every channel.
QUEUE: Final = 0


@final
class SmqMessage:
    """The wire form of a message: its body, and the channel that it was sent to."""

    __slots__ = ("body", "channel")

    def __init__(self, channel: str, body: bytes) -> None:
        self.channel = channel
        self.body = body


@final
class SmqRun(RunWire):
    """Consecutive messages.

    :param around: the result of ``bytes_around``, the same for each message.
    :param extras: those of each message, if they are pushed one by one.
    """

    __slots__ = ("_around", "_bodies", "_contents", "_extras", "_ids", "channel")

    def __init__(
        self,
        ids: list[str],
        channel: str,
        bodies: list[bytes],
        around: int,
        extras: PushExtras | None,
    ) -> None:
        self.channel = channel
        self._ids = ids
        self._bodies = bodies
        self._around = around
        self._extras = extras
        self._contents: tuple[list[str], list[int], list[object]] | None = None

    def size(self) -> int:
        """The size of all messages in their stored form."""
        around = self._around * len(self._ids)
        return around + sum(map(len, self._ids)) + sum(map(len, self._bodies))

    def largest(self) -> int:
        """The size of the largest message, or a few bytes more."""
        return self._around + max(map(len, self._ids)) + max(map(len, self._bodies))

    def pushes(self, run: PushRun) -> list[Push]:
        """The run as one push per message, with the same effect."""
        return self.singly(run.session)

    def singly(self, session: int) -> list[Push]:
        """One push per message, for a session."""
        ids, sizes, wires = self.contents()
        channel, extras = self.channel, self._extras
        return [
            Push(session, name, channel, QUEUE, False, False, size, wire, extras)
            for name, size, wire in zip(ids, sizes, wires, strict=True)
        ]

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """The id, the size in bytes and the wire form of each message."""
        if self._contents is None:
            around, channel = self._around, self.channel
            sizes: list[int] = []
            wires: list[object] = []
            for name, body in zip(self._ids, self._bodies, strict=True):
                sizes.append(around + len(name) + len(body))
                wires.append(SmqMessage(channel, body))
            self._contents = self._ids, sizes, wires
        return self._contents

    def lines(self, start: int, step: int, stop: int) -> bytes:
        """Some of the messages as lines for delivery."""
        bodies = self._bodies
        if start or step != 1 or stop != len(bodies):
            bodies = bodies[start:stop:step]
        return b"\n".join(bodies) + b"\n"


def line_of(body: bytes) -> bytes:
    """The line of another protocol's message.

    Because a newline ends the line, a body with newlines is written as JSON without them: JSON is
    compacted, other text becomes a JSON string, and bytes that are not UTF-8 a string of one
    character for each byte.
    """
    if b"\n" not in body:
        return body + b"\n"
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("latin-1")
        return json.dumps(text).encode() + b"\n"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


class SmqBodies(PlainBodies):
    """The stored form of the door's messages."""

    name = DOOR
    number = NUMBER

    def body_of(self, wire: object) -> bytes:
        """The body of a message."""
        assert isinstance(wire, SmqMessage), "this door keeps its own messages"
        return wire.body

    def channel_of(self, wire: object) -> str:
        """The channel that a message was sent to."""
        assert isinstance(wire, SmqMessage), "this door keeps its own messages"
        return wire.channel

    def wire_of(self, name: str, source: str, place: bytes, body: bytes) -> tuple[object, str]:
        """A message from its stored form; see ``Door.restored``."""
        channel = exact_channel(place)
        return SmqMessage(channel, body), channel
