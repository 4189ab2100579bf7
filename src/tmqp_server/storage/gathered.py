"""The portions of a journal's batch: the messages of a commit, and those around it.

The store's own thread converts them to messages when it writes them.
"""

from __future__ import annotations

from array import array
from struct import Struct, error
from typing import Final, Protocol

from tmqp.blocks import (
    FLAG_COPY,
    FLAG_DOOR_SHIFT,
    FLAG_FED,
    FLAG_HIGH,
    FLAG_WANTS,
    StoredMessage,
)
from tmqp_server.engine.commands import MessageSet, Segment
from tmqp_server.engine.model.message import MARK_COPY, MARK_FED, Message
from tmqp_server.storage.port import Portion, StagedBody
from tmqp_server.storage.stored_runs import StoredRun

__all__ = [
    "BodyCodec",
    "CommittedSegment",
    "Gathered",
    "Sealed",
    "SetAside",
    "flags_of_feeds",
    "marks_of_feeds",
    "names_its_queue",
]

#: A message set of a staged body: the length of the door's name, messages, those of high
#: priority, and the lengths of data, sizes and offsets.
_MESSAGE_SET: Final = Struct("<HIIIII")


class BodyCodec(Protocol):
    """What the journal knows of a door."""

    name: str
    #: Stored with every message; never reused for another door.
    number: int

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """The stored body of a message, and where in it the payload begins and how long it is."""

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """The messages of a set: for each its stored body, the payload as in :meth:`stored`, and
        whether it has high priority.

        :raises ValueError: when the set cannot be read.
        """

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """Restore a message from its stored body: its wire form, id, source, channel as spelt, and
        size.

        :raises Exception: when the body cannot be read.
        """


class Gathered(Portion):
    """A portion made by the journal, which knows its messages' sequences."""

    __slots__ = ()

    def within(self, first: int, last: int, high_priority: bool) -> list[int]:
        """The sequences of its messages with a priority, from *first* to *last*."""
        wanted = FLAG_HIGH if high_priority else 0
        return [
            each.sequence
            for each in self.messages()
            if first <= each.sequence <= last and each.flags & FLAG_HIGH == wanted
        ]


class Sealed(Gathered):
    """Messages that were appended to a queue before a commit, or between two commits."""

    __slots__ = ("_messages",)

    def __init__(self, key: int, messages: list[StoredMessage]) -> None:
        super().__init__(key)
        self._messages = messages

    def messages(self) -> list[StoredMessage]:
        """The messages."""
        return self._messages

    def size(self) -> int:
        """The size of all bodies in bytes."""
        return sum([len(each.body) for each in self._messages])


class CommittedSegment(Gathered):
    """The messages that a commit pushes into a queue, or a part of them."""

    __slots__ = ("_segment", "_codec", "_expires_us", "_first", "_message_sets", "_timestamp_us")

    def __init__(
        self,
        key: int,
        codec: dict[str, BodyCodec],
        segment: Segment,
        first: int,
        timestamp_us: int,
        expires_us: int,
    ) -> None:
        super().__init__(key, segment.staging)
        self._codec = codec
        self._segment = segment
        self._message_sets = segment.message_sets
        self._first = first
        self._timestamp_us = timestamp_us
        self._expires_us = expires_us

    def size(self) -> int:
        """The size of all messages in bytes."""
        return self._segment.size

    def load(self, body: bytes) -> None:
        """Take the segment's staged body; an empty body releases it.

        :raises ValueError: when it is not the body that was staged.
        """
        self._message_sets = _message_sets_of(body)

    def messages(self) -> list[StoredMessage]:
        """The messages.

        :raises ValueError: when their door cannot read a message set.
        """
        found: list[StoredMessage] = []
        sequence = self._first
        for message_set in self._message_sets:
            door = self._codec[message_set.door]
            # Their producer was promised that they are kept: a handler is to treat them so.
            flags = door.number << FLAG_DOOR_SHIFT | FLAG_WANTS
            for body, payload_offset, payload_size, high in door.unpacked(message_set.data):
                found.append(
                    StoredMessage(
                        sequence,
                        self._timestamp_us,
                        self._expires_us,
                        0,
                        flags | FLAG_HIGH if high else flags,
                        0,
                        0,
                        0,
                        payload_offset,
                        payload_size,
                        body,
                    )
                )
                sequence += 1
        if sequence != self._first + self._segment.count:
            raise ValueError("a message set does not match its head")
        return found

    def runs(self) -> list[StoredRun]:
        """One run for each message set, if all sets say where their messages begin; else none."""
        found: list[StoredRun] = []
        sequence = self._first
        for message_set in self._message_sets:
            if not message_set.sizes:
                return []
            flags = self._codec[message_set.door].number << FLAG_DOOR_SHIFT | FLAG_WANTS
            found.append(
                StoredRun(
                    sequence,
                    message_set.count,
                    self._timestamp_us,
                    flags | FLAG_HIGH if message_set.high else flags,
                    0,
                    message_set.data,
                    array("I", message_set.sizes).tolist(),
                    array("I", message_set.offsets).tolist(),
                    self._expires_us,
                )
            )
            sequence += message_set.count
        return found

    def within(self, first: int, last: int, high_priority: bool) -> list[int]:
        """As :meth:`Gathered.within`, but without creating the messages, of which there may be a
        million.
        """
        segment = self._segment
        if 0 < segment.high < segment.count:
            if not segment.highs:
                return super().within(first, last, high_priority)
            return [
                self._first + place
                for place in range(segment.count)
                if first <= self._first + place <= last
                and bool(segment.highs[place]) == high_priority
            ]
        if high_priority != (segment.high > 0):
            return []
        end = self._first + segment.count - 1
        return list(range(max(first, self._first), min(last, end) + 1))


class SetAside(StagedBody):
    """A segment of a transaction, staged until its commit."""

    __slots__ = ("_message_sets", "_size")

    def __init__(self, codec: dict[str, BodyCodec], segment: Segment) -> None:
        self._message_sets = segment.message_sets
        self._size = segment.size
        if 0 < segment.high < segment.count:
            segment.highs = _highs_of(codec, segment)

    def size(self) -> int:
        """Its approximate size in bytes."""
        return self._size

    def body(self) -> bytes:
        """The message sets as one body."""
        parts: list[bytes] = []
        for message_set in self._message_sets:
            door = message_set.door.encode()
            lengths = (len(message_set.data), len(message_set.sizes), len(message_set.offsets))
            parts.append(
                _MESSAGE_SET.pack(len(door), message_set.count, message_set.high, *lengths)
            )
            parts += (door, message_set.data, message_set.sizes, message_set.offsets)
        return b"".join(parts)


def _highs_of(codec: dict[str, BodyCodec], segment: Segment) -> bytes:
    """For each message of a segment, whether it has high priority; empty if they cannot be read."""
    highs: list[bool] = []
    try:
        for message_set in segment.message_sets:
            highs += [each[3] for each in codec[message_set.door].unpacked(message_set.data)]
    except ValueError:
        highs = []  # the commit says so
    return bytes(highs)


def _message_sets_of(body: bytes) -> list[MessageSet]:
    """Read the message sets of a staged body.

    :raises ValueError: when the body is not valid.
    """
    found: list[MessageSet] = []
    at = 0
    try:
        while at < len(body):
            door_size, count, high, *lengths = _MESSAGE_SET.unpack_from(body, at)
            at += _MESSAGE_SET.size
            pieces: list[bytes] = []
            for length in (door_size, *lengths):
                pieces.append(body[at : at + length])
                at += length
            door, data, sizes, offsets = pieces
            message_set = MessageSet(
                door.decode(), "", 0, data, count, high, len(data), 0, None, sizes, offsets
            )
            found.append(message_set)
    except error as reason:
        raise ValueError(f"staged messages cannot be read: {reason}") from None
    if at != len(body):
        raise ValueError("staged messages are cut off")
    return found


def flags_of_feeds(marks: int) -> int:
    """The flags that store the marks about feeds."""
    flags = 0
    if marks & MARK_COPY:
        flags |= FLAG_COPY
    if marks & MARK_FED:
        flags |= FLAG_FED
    return flags


def marks_of_feeds(flags: int) -> int:
    """The marks about feeds that flags store."""
    marks = 0
    if flags & FLAG_COPY:
        marks |= MARK_COPY
    if flags & FLAG_FED:
        marks |= MARK_FED
    return marks


def names_its_queue(stored: StoredMessage) -> bool:
    """Whether the body of a message names its queue; a dead letter or a copy made by a feed names
    another queue.
    """
    return stored.hops == 0 and not stored.flags & FLAG_COPY
