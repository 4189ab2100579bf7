"""Messages of ZeroMQ inside the server: their wire form, runs and stored form.

A message keeps its frames as received.  To other protocols a message of one part is its body;
several parts are a packed list, ``application/x-zmq-multipart``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp_server.doors.letter import Letter
from tmqp_server.doors.names import exact_channel, foreign_name
from tmqp_server.doors.port import OwnBodies
from tmqp_server.engine.commands import (
    Push,
    PushExtras,
    PushRun,
    RunWire,
)
from tmqp_server.engine.model.message import Message
from tmqp_wires.common import kept
from tmqp_wires.zmtp.frames import (
    first_part,
    is_multipart,
    message_frames,
    pack_parts,
    parts_of,
    unpack_parts,
)

__all__ = [
    "DOOR",
    "MULTIPART",
    "NUMBER",
    "QUEUE",
    "ZmtpBodies",
    "ZmtpReply",
    "ZmtpRequest",
    "ZmtpRun",
    "frames_of",
    "letter_of",
    "size_of",
    "topic_of",
]

#: The door's name and number, kept with its messages.
DOOR: Final = "zmtp"
NUMBER: Final = 5
#: The queue of every channel.
QUEUE: Final = 0
#: The content type of several parts.
MULTIPART: Final = "application/x-zmq-multipart"
#: The bytes that a message takes besides its frames.
_MESSAGE_BYTES: Final = 64
#: The stored form of a message begins with one of these, or with their sum.
_SEVERAL: Final = 1
_ASKS: Final = 2


@final
class ZmtpRequest:
    """The wire form of a request: its frames without the envelope, which the asking session
    keeps."""

    __slots__ = ("message_id", "raw", "reply_to")

    def __init__(self, message_id: str, reply_to: str, raw: bytes) -> None:
        self.message_id = message_id
        self.reply_to = reply_to
        self.raw = raw


@final
class ZmtpReply:
    """The wire form of a reply: the id of its request, and the frames without an envelope."""

    __slots__ = ("asked", "raw")

    def __init__(self, asked: str, raw: bytes) -> None:
        self.asked = asked
        self.raw = raw


def size_of(raw: bytes) -> int:
    """The size of a message in bytes."""
    return _MESSAGE_BYTES + len(raw)


@final
class ZmtpRun(RunWire):
    """Consecutive messages.

    :param extras: those of each message, if they are pushed one by one.
    """

    __slots__ = ("extras", "ids", "raws")

    def __init__(self, ids: list[str], raws: list[bytes], extras: PushExtras | None) -> None:
        self.ids = ids
        self.raws = raws
        self.extras = extras

    def size(self) -> int:
        """The size of all messages in bytes."""
        return _MESSAGE_BYTES * len(self.raws) + sum(map(len, self.raws))

    def largest(self) -> int:
        """The size of the largest message in bytes."""
        return _MESSAGE_BYTES + max(map(len, self.raws))

    def pushes(self, run: PushRun) -> list[Push]:
        """The run as one push per message, with the same effect."""
        return [
            Push(
                run.session,
                name,
                run.channel,
                run.queue_id,
                False,
                False,
                size_of(raw),
                raw,
                self.extras,
            )
            for name, raw in zip(self.ids, self.raws, strict=True)
        ]

    def some(self, start: int, step: int, stop: int) -> list[bytes]:
        """The frames of some of the messages."""
        raws = self.raws
        return raws if stop - start == len(raws) and step == 1 else raws[start:stop:step]

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """The id, the size in bytes and the frames of each message."""
        return self.ids, [size_of(raw) for raw in self.raws], list(self.raws)


def letter_of(wire: object) -> Letter:
    """The letter of a message."""
    if isinstance(wire, (ZmtpRequest, ZmtpReply)):
        letter = letter_of(wire.raw)
        if isinstance(wire, ZmtpRequest):
            letter.reply_to = wire.reply_to
        else:
            letter.correlation_id = wire.asked
        return letter
    assert isinstance(wire, bytes), "this door keeps its own messages"
    if not is_multipart(wire):
        return Letter(first_part(wire))
    letter = Letter(pack_parts(parts_of(wire)))
    letter.content_type = MULTIPART
    return letter


def frames_of(letter: Letter) -> bytes:
    """The frames for another protocol's message: one part, unless its content type says that it has
    several."""
    if letter.content_type == MULTIPART:
        try:
            return message_frames(unpack_parts(letter.body))
        except ValueError:
            pass  # it only says so
    return message_frames((letter.body,))


def topic_of(letter: Letter) -> bytes:
    """The first part of another protocol's message."""
    return first_part(frames_of(letter))


class ZmtpBodies(OwnBodies):
    """The stored form of the door's messages: a byte for the kind of message, then the common
    form."""

    name = DOOR
    number = NUMBER

    def letter(self, wire: object) -> Letter:
        """The letter of a message."""
        return letter_of(wire)

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """The stored form of a message; see ``Door.stored``."""
        wire = message.wire
        asks = isinstance(wire, ZmtpRequest)
        letter = letter_of(wire)
        kind = (_SEVERAL if letter.content_type else 0) | (_ASKS if asks else 0)
        head = kept.stored_head(
            message.message_id.encode(), message.source.encode(), foreign_name(message.channel)
        )
        return bytes((kind,)) + head + letter.body, 1 + len(head), len(letter.body)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A message from its stored form; see ``Door.restored``.

        :raises ValueError: when it cannot be read.
        """
        if not body or body[0] > _SEVERAL | _ASKS:
            raise ValueError(f"{len(body)} bytes are not a kept message of ZeroMQ")
        found = kept.read(body[1:])
        name = found.message_id.decode("utf-8", "replace")
        source = found.source.decode("utf-8", "replace")
        parts: Sequence[bytes] = (found.body,)
        if body[0] & _SEVERAL:
            parts = unpack_parts(found.body)
        raw = message_frames(parts)
        wire = ZmtpRequest(name, source, raw) if body[0] & _ASKS else raw
        return wire, name, source, exact_channel(found.place), size_of(raw)
