"""Messages of NSQ inside the server: their wire form, ids, runs and stored form.

The wire form of a message is the frame of its first delivery, so most deliveries are exactly these
bytes.  Its size is that of the stored form, so it counts the same before and after a restart.  An
id is 16 hexadecimal digits: six random digits for each door, and ten that count from the time in
milliseconds, so that no id is used again after a restart.  The first digit is 8 or more; ids that
are made for messages of other protocols begin with 0 (``door``).
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.letter import Letter
from tmqp_server.doors.names import exact_channel
from tmqp_server.doors.port import OwnBodies
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Push,
    PushExtras,
    PushRun,
    RunWire,
)
from tmqp_server.engine.model.message import Message
from tmqp_wires.nsq import stored
from tmqp_wires.nsq.writing import (
    FRAME_MESSAGE,
    MESSAGE_HEAD_BYTES,
    MESSAGE_ID_AT,
    MESSAGE_TIME_AT,
    message_frame,
)

__all__ = [
    "DOOR",
    "NUMBER",
    "NsqAnswers",
    "NsqBodies",
    "NsqIds",
    "NsqRun",
    "body_of",
    "id_of",
    "size_of",
    "source_of",
]

#: The door's name and number, kept with its messages.
DOOR: Final = "nsq"
NUMBER: Final = 2

_PREFIX_DIGITS: Final = 6
_COUNTED: Final = 1 << 40
_LAST_DIGITS: Final = [f"{number:02x}" for number in range(256)]
_FIRST_ATTEMPT: Final = b"\x00\x01"
_MAX_SOURCE: Final = 255
#: Bytes of a stored message besides its source and its body.
_KEPT_HEAD_BYTES: Final[int] = stored.HEAD_BYTES
#: The topic of a message whose queue has the topic's name.
_NO_TOPIC: Final = b""


@final
class NsqIds:
    """Makes ids that are unique across doors and restarts.

    :param drawn: random hexadecimal digits; six of them are used.
    :param unix_s: the time, in seconds since 1970.
    """

    __slots__ = ("_next", "_prefix", "_row", "_row_at")

    def __init__(self, drawn: str, unix_s: float) -> None:
        first = int(drawn[0], 16) | 8
        self._prefix = f"{first:x}{drawn[1:_PREFIX_DIGITS]}"
        self._next: int = int(unix_s * 1000) % _COUNTED
        #: All digits but the last two of the ids of a row of 256, and the number of that row.
        self._row = ""
        self._row_at: int = -1

    def new(self) -> str:
        """A new id."""
        number = self._next
        self._next = (number + 1) % _COUNTED
        row = number >> 8
        if row != self._row_at:
            self._row_at = row
            self._row = f"{self._prefix}{row:08x}"
        return self._row + _LAST_DIGITS[number & 0xFF]

    def several(self, count: int) -> list[str]:
        """*count* new ids, in order."""
        found: list[str] = []
        for _ in range(count):
            found.append(self.new())
        return found


def id_of(frame: bytes) -> str:
    """The id in a message's frame."""
    return frame[MESSAGE_ID_AT:MESSAGE_HEAD_BYTES].decode("ascii")


def body_of(frame: bytes) -> bytes:
    """The body in a message's frame."""
    return frame[MESSAGE_HEAD_BYTES:]


def source_of(client_id: str) -> bytes:
    """The stored form of a producer's id: UTF-8, cut to at most 255 bytes at a character's end."""
    source = client_id.encode()
    if len(source) > _MAX_SOURCE:
        source = source[:_MAX_SOURCE].decode("utf-8", "ignore").encode()
    return source


def size_of(source: bytes, body: bytes) -> int:
    """The size of a message: the bytes of its stored form."""
    return _KEPT_HEAD_BYTES + len(source) + len(body)


@final
class NsqRun(RunWire):
    """Messages that were published together: their ids and their frames.

    :param extras: those of each message, if they are pushed one by one.

    Attributes: ``head``, the stored form of a message before its body, with a placeholder for the
    id.
    """

    __slots__ = ("bodies", "extras", "frames", "head", "ids")

    def __init__(
        self,
        ids: list[str],
        bodies: list[bytes],
        timestamp_ns: int,
        source: bytes,
        extras: PushExtras | None = None,
    ) -> None:
        same = FRAME_MESSAGE.to_bytes(4, "big") + timestamp_ns.to_bytes(8, "big", signed=True)
        same += _FIRST_ATTEMPT
        frames: list[bytes] = []
        for place in range(len(ids)):
            body = bodies[place]
            size = MESSAGE_HEAD_BYTES - 4 + len(body)
            frames.append(
                b"".join((size.to_bytes(4, "big"), same, ids[place].encode("ascii"), body))
            )
        self.ids = ids
        self.extras = extras
        self.bodies = bodies
        self.frames = frames
        self.head = stored.stored_head(timestamp_ns, b"0" * 16, _NO_TOPIC, source)

    def size(self) -> int:
        """The total size of the messages in their stored form."""
        total = len(self.head) * len(self.bodies)
        for body in self.bodies:
            total += len(body)
        return total

    def largest(self) -> int:
        """The size of the largest message in its stored form."""
        most = 0
        for body in self.bodies:
            most = max(most, len(body))
        return len(self.head) + most

    def pushes(self, run: PushRun) -> list[Push]:
        """The run as one push per message, with the same effect."""
        found: list[Push] = []
        head = len(self.head)
        for place in range(len(self.ids)):
            found.append(
                Push(
                    run.session,
                    self.ids[place],
                    run.channel,
                    run.queue_id,
                    run.high_priority,
                    run.wants_confirm,
                    head + len(self.bodies[place]),
                    self.frames[place],
                    self.extras,
                )
            )
        return found

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """The id, the size in bytes and the frame of each message."""
        sizes: list[int] = []
        wires: list[object] = []
        head = len(self.head)
        for place in range(len(self.frames)):
            sizes.append(head + len(self.bodies[place]))
            wires.append(self.frames[place])
        return self.ids, sizes, wires

    def stored(self) -> tuple[bytes, list[int], list[int]] | None:
        """The stored forms of all messages in one piece, with their sizes and payload offsets."""
        head = self.head
        before, behind = head[: stored.ID_AT], head[stored.ID_AT + 16 :]
        parts: list[bytes] = []
        sizes: list[int] = []
        for place in range(len(self.ids)):
            body = self.bodies[place]
            parts += (before, self.ids[place].encode("ascii"), behind, body)
            sizes.append(len(head) + len(body))
        return b"".join(parts), sizes, [len(head)]


@final
class NsqAnswers(RunWire):
    """Consecutive FIN commands."""

    def acknowledges(self, run: AcknowledgeRun) -> list[Acknowledge]:
        """The run as one acknowledgement per message."""
        found: list[Acknowledge] = []
        for name in run.message_ids:
            found.append(
                Acknowledge(run.session, name, run.channel, run.queue_id, True, "", None, 0, name)
            )
        return found


class NsqBodies(OwnBodies):
    """The stored form of the door's messages.  It needs none of the packages for snappy."""

    name = DOOR
    number = NUMBER

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """The stored form of a message, as ``tmqp_wires.nsq.stored`` writes it."""
        frame = message.wire
        assert isinstance(frame, bytes), "this door keeps frames"
        source = source_of(message.producer.client_id)
        body_bytes = len(frame) - MESSAGE_HEAD_BYTES
        return stored.stored_frame(frame, source), _KEPT_HEAD_BYTES + len(source), body_bytes

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A message from its stored form; see ``Door.restored``.

        :raises ValueError: when it cannot be read.
        """
        found = stored.read(body)
        frame = message_frame(found.timestamp_ns, 1, found.message_id, found.body)
        return (
            frame,
            found.message_id.decode("ascii"),
            found.source.decode("utf-8", "replace"),
            exact_channel(found.topic) if found.topic else "",
            len(body),
        )

    def letter(self, wire: object) -> Letter:
        """The letter of a message: its body, its id and the time of publication."""
        assert isinstance(wire, bytes), "this door keeps frames"
        letter = Letter(body_of(wire), id_of(wire))
        letter.timestamp_ms = (
            int.from_bytes(wire[MESSAGE_TIME_AT : MESSAGE_TIME_AT + 8], "big") // 1_000_000
        )
        return letter
