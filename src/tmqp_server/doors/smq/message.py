"""Messages of Simple MQ inside the server: their form, many of them as one, what is kept."""

from __future__ import annotations

import json
from typing import Final, final

from tmqp_server.doors.bodies import PlainBodies, bytes_around
from tmqp_server.doors.names import exact_channel
from tmqp_server.engine.commands import Push, PushRun, RunWire

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
    """The form that a message keeps: its line, and where it was sent to, to send it again.

    :param around: what ``bytes_around`` says of it.
    """

    __slots__ = ("channel", "line", "message_id", "size")

    def __init__(self, message_id: str, channel: str, line: bytes, around: int) -> None:
        self.message_id = message_id
        self.channel = channel
        self.line = line
        #: The bytes that are kept of it: the line ends in a newline, which is not.
        self.size = around + len(message_id) + len(line) - 1

    def push(self, session: int) -> Push:
        """The command that sends it."""
        return Push(session, self.message_id, self.channel, QUEUE, False, False, self.size, self)


@final
class SmqRun(RunWire):
    """Messages that came in a row."""

    __slots__ = ("messages",)

    def __init__(self, messages: list[SmqMessage]) -> None:
        self.messages = messages

    def size(self) -> int:
        """What all of them cost."""
        total = 0
        for message in self.messages:
            total += message.size
        return total

    def largest(self) -> int:
        """What the largest costs."""
        most = 0
        for message in self.messages:
            most = max(most, message.size)
        return most

    def pushes(self, run: PushRun) -> list[Push]:
        """The same as single pushes."""
        found: list[Push] = []
        for message in self.messages:
            found.append(message.push(run.session))
        return found

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """Of each message its id, what it costs, and itself."""
        ids: list[str] = []
        sizes: list[int] = []
        wires: list[object] = []
        for message in self.messages:
            ids.append(message.message_id)
            sizes.append(message.size)
            wires.append(message)
        return ids, sizes, wires


def line_of(body: bytes) -> bytes:
    """The line of another protocol's message.

    A newline would end the line: JSON is written without any, other text as a text of JSON, and
    bytes that are not UTF-8 as a text whose characters are the bytes.
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
    """What is kept of the door's messages."""

    name = DOOR
    number = NUMBER

    def body_of(self, wire: object) -> bytes:
        """The body of a message."""
        assert isinstance(wire, SmqMessage), "this door keeps its own messages"
        return wire.line[:-1]

    def channel_of(self, wire: object) -> str:
        """Where a message was sent to."""
        assert isinstance(wire, SmqMessage), "this door keeps its own messages"
        return wire.channel

    def wire_of(self, name: str, source: str, place: bytes, body: bytes) -> tuple[object, str]:
        """A kept message again."""
        channel = exact_channel(place)
        wire = SmqMessage(name, channel, body + b"\n", bytes_around(source, channel))
        return wire, channel
