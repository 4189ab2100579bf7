"""Messages of NSQ inside the server: their form, their ids, many of them as one, what is kept.

The form that a message keeps is the frame of its first delivery, so most deliveries are these very
bytes.  An id is 16 hexadecimal digits: six that are drawn once for a door and ten that count, from
the time in milliseconds on, so no id comes again after a restart.  The first digit is 8 or more;
ids that are made for messages of other protocols begin with 0 (``door``).
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.letters import Letter
from tmqp_server.doors.names import exact_channel, foreign_name
from tmqp_server.doors.port import OwnBodies
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Push,
    PushRun,
    RunWire,
)
from tmqp_server.engine.model.message import Message
from tmqp_wires.nsq import stored
from tmqp_wires.nsq.writing import FRAME_MESSAGE, MESSAGE_HEAD_BYTES, message_frame

__all__ = ["DOOR", "NUMBER", "NsqAnswers", "NsqBodies", "NsqIds", "NsqRun", "body_of", "id_of"]

#: The door's name and number, kept with its messages.
DOOR: Final = "nsq"
NUMBER: Final = 2

_PREFIX_DIGITS: Final = 6
_COUNTED: Final = 1 << 40
_ID_AT: Final = 18
_TIME_AT: Final = 8
_FIRST_ATTEMPT: Final = b"\x00\x01"


@final
class NsqIds:
    """Makes ids that no other door makes, nor this one after a restart.

    :param drawn: hexadecimal digits that nobody else has.
    :param unix_s: the time, in seconds since 1970.
    """

    __slots__ = ("_next", "_prefix")

    def __init__(self, drawn: str, unix_s: float) -> None:
        first = int(drawn[0], 16) | 8
        self._prefix = f"{first:x}{drawn[1:_PREFIX_DIGITS]}"
        self._next: int = int(unix_s * 1000) % _COUNTED

    def new(self) -> str:
        """An id."""
        number = self._next
        self._next = (number + 1) % _COUNTED
        return "%s%010x" % (self._prefix, number)  # noqa: UP031 - compiled it is the quickest

    def several(self, count: int) -> list[str]:
        """So many ids, in order."""
        found: list[str] = []
        prefix = self._prefix
        number = self._next
        for _ in range(count):
            found.append("%s%010x" % (prefix, number))  # noqa: UP031 - as above
            number = (number + 1) % _COUNTED
        self._next = number
        return found


def id_of(frame: bytes) -> str:
    """The id in a message's frame."""
    return frame[_ID_AT:MESSAGE_HEAD_BYTES].decode("ascii")


def body_of(frame: bytes) -> bytes:
    """The body in a message's frame."""
    return frame[MESSAGE_HEAD_BYTES:]


@final
class NsqRun(RunWire):
    """Messages that came as one: their ids and their frames.

    :param head: what is kept of each before its id is put in, up to the body.
    """

    __slots__ = ("bodies", "frames", "head", "ids")

    def __init__(
        self, ids: list[str], bodies: list[bytes], timestamp_ns: int, topic: bytes, source: bytes
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
        self.bodies = bodies
        self.frames = frames
        self.head = stored.stored_head(timestamp_ns, b"0" * 16, topic, source)

    def size(self) -> int:
        """Bytes of all frames."""
        total = 0
        for frame in self.frames:
            total += len(frame)
        return total

    def largest(self) -> int:
        """Bytes of the largest frame."""
        most = 0
        for frame in self.frames:
            most = max(most, len(frame))
        return most

    def pushes(self, run: PushRun) -> list[Push]:
        """The same as single pushes."""
        found: list[Push] = []
        for place in range(len(self.ids)):
            frame = self.frames[place]
            found.append(
                Push(
                    run.session,
                    self.ids[place],
                    run.channel,
                    run.queue_id,
                    run.high_priority,
                    run.wants_confirm,
                    len(frame),
                    frame,
                    None,
                )
            )
        return found

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """Of each message its id, its bytes and its frame."""
        sizes: list[int] = []
        wires: list[object] = []
        for frame in self.frames:
            sizes.append(len(frame))
            wires.append(frame)
        return self.ids, sizes, wires

    def stored(self) -> tuple[bytes, list[int], list[int]] | None:
        """What is kept of all, one after another."""
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
    """FIN commands in a row."""

    def acknowledges(self, run: AcknowledgeRun) -> list[Acknowledge]:
        """The same as single answers."""
        found: list[Acknowledge] = []
        for name in run.message_ids:
            found.append(
                Acknowledge(run.session, name, run.channel, run.queue_id, True, "", None, 0, name)
            )
        return found


class NsqBodies(OwnBodies):
    """What is kept of the door's messages; it needs no package that the door needs."""

    name = DOOR
    number = NUMBER

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """What is kept of a message: ``tmqp_wires.nsq.stored``."""
        frame = message.wire
        assert isinstance(frame, bytes), "this door keeps frames"
        timestamp_ns = int.from_bytes(frame[_TIME_AT : _TIME_AT + 8], "big", signed=True)
        name = frame[_ID_AT:MESSAGE_HEAD_BYTES]
        topic = foreign_name(message.channel)
        head = stored.stored_head(timestamp_ns, name, topic, message.source.encode()[:255])
        return head + body_of(frame), len(head), len(frame) - MESSAGE_HEAD_BYTES

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A kept message again.

        :raises ValueError: when it cannot be read.
        """
        found = stored.read(body)
        frame = message_frame(found.timestamp_ns, 1, found.message_id, found.body)
        return (
            frame,
            found.message_id.decode("ascii"),
            found.source.decode("utf-8", "replace"),
            exact_channel(found.topic),
            len(frame),
        )

    def letter(self, wire: object) -> Letter:
        """What a message says: a body, and when it was published."""
        assert isinstance(wire, bytes), "this door keeps frames"
        letter = Letter(body_of(wire), id_of(wire))
        letter.timestamp_ms = int.from_bytes(wire[_TIME_AT : _TIME_AT + 8], "big") // 1_000_000
        return letter
