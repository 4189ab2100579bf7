"""Owns the portions of a journal's batch: what a commit brings, and what stood before or behind it.

They are made into messages when they are written, by the store's own thread.
"""

from __future__ import annotations

from array import array
from struct import Struct, error
from typing import Final, Protocol

from tmqp.blocks import FLAG_DOOR_SHIFT, FLAG_HIGH, FLAG_WANTS, StoredMessage
from tmqp_server.engine.commands import Bundle, Parcel
from tmqp_server.engine.model.message import Message
from tmqp_server.storage.port import Portion, StagedBody
from tmqp_server.storage.stored_runs import StoredRun

__all__ = ["BodyCodec", "Bundled", "Gathered", "Sealed", "SetAside"]

#: A parcel of a body that is put aside: the length of the door's name, messages, those of high
#: priority, and the lengths of data, sizes and offsets.
_PARCEL: Final = Struct("<HIIIII")


class BodyCodec(Protocol):
    """A door as the journal sees it."""

    name: str
    #: Kept with every message; never given to another door.
    number: int

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """What is kept of a message, and where in it the payload begins and how long it is."""

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """The messages of a parcel: what is kept of each, its payload as in :meth:`stored`, and
        whether it has high priority.

        :raises ValueError: when it cannot be read.
        """

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """The message again: its wire form, id, source, channel as spelt, and size.

        :raises Exception: when it cannot be read.
        """


class Gathered(Portion):
    """A portion of the journal's, which knows its sequences."""

    __slots__ = ()

    def within(self, first: int, last: int, high_priority: bool) -> list[int]:
        """The sequences of its messages of a priority, from *first* to *last*."""
        wanted = FLAG_HIGH if high_priority else 0
        return [
            each.sequence
            for each in self.messages()
            if first <= each.sequence <= last and each.flags & FLAG_HIGH == wanted
        ]


class Sealed(Gathered):
    """Messages that came before a commit into the same queue, or behind it."""

    __slots__ = ("_messages",)

    def __init__(self, key: int, messages: list[StoredMessage]) -> None:
        super().__init__(key)
        self._messages = messages

    def messages(self) -> list[StoredMessage]:
        """The messages."""
        return self._messages

    def size(self) -> int:
        """How many bytes they take."""
        return sum([len(each.body) for each in self._messages])


class Bundled(Gathered):
    """What a commit pushes into a queue, or a part of it."""

    __slots__ = ("_bundle", "_codec", "_expires_us", "_first", "_parcels", "_timestamp_us")

    def __init__(
        self,
        key: int,
        codec: dict[str, BodyCodec],
        bundle: Bundle,
        first: int,
        timestamp_us: int,
        expires_us: int,
    ) -> None:
        super().__init__(key, bundle.staging)
        self._codec = codec
        self._bundle = bundle
        self._parcels = bundle.parcels
        self._first = first
        self._timestamp_us = timestamp_us
        self._expires_us = expires_us

    def size(self) -> int:
        """How many bytes they take."""
        return self._bundle.size

    def load(self, body: bytes) -> None:
        """Take what was put aside of the bundle; an empty body lets it go.

        :raises ValueError: when it is not what was put aside.
        """
        self._parcels = _parcels_of(body)

    def messages(self) -> list[StoredMessage]:
        """The messages.

        :raises ValueError: when their door cannot read what it gave.
        """
        found: list[StoredMessage] = []
        sequence = self._first
        for parcel in self._parcels:
            door = self._codec[parcel.door]
            # Their producer was promised that they are kept: a handler is to treat them so.
            flags = door.number << FLAG_DOOR_SHIFT | FLAG_WANTS
            for body, payload_offset, payload_size, high in door.unpacked(parcel.data):
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
        if sequence != self._first + self._bundle.count:
            raise ValueError("a parcel does not hold what it says")
        return found

    def runs(self) -> list[StoredRun]:
        """One of each parcel, if their door said how the messages lie in all of them."""
        found: list[StoredRun] = []
        sequence = self._first
        for parcel in self._parcels:
            if not parcel.sizes:
                return []
            flags = self._codec[parcel.door].number << FLAG_DOOR_SHIFT | FLAG_WANTS
            found.append(
                StoredRun(
                    sequence,
                    parcel.count,
                    self._timestamp_us,
                    flags | FLAG_HIGH if parcel.high else flags,
                    0,
                    parcel.data,
                    array("I", parcel.sizes).tolist(),
                    array("I", parcel.offsets).tolist(),
                    self._expires_us,
                )
            )
            sequence += parcel.count
        return found

    def within(self, first: int, last: int, high_priority: bool) -> list[int]:
        """As :meth:`Gathered.within`; nothing is made of a million messages to find it."""
        bundle = self._bundle
        if 0 < bundle.high < bundle.count:
            if not bundle.highs:
                return super().within(first, last, high_priority)
            return [
                self._first + place
                for place in range(bundle.count)
                if first <= self._first + place <= last
                and bool(bundle.highs[place]) == high_priority
            ]
        if high_priority != (bundle.high > 0):
            return []
        end = self._first + bundle.count - 1
        return list(range(max(first, self._first), min(last, end) + 1))


class SetAside(StagedBody):
    """A bundle of a transaction that is put aside until its commit."""

    __slots__ = ("_parcels", "_size")

    def __init__(self, codec: dict[str, BodyCodec], bundle: Bundle) -> None:
        self._parcels = bundle.parcels
        self._size = bundle.size
        if 0 < bundle.high < bundle.count:
            bundle.highs = _highs_of(codec, bundle)

    def size(self) -> int:
        """How many bytes it takes, about."""
        return self._size

    def body(self) -> bytes:
        """Its parcels, one behind the other."""
        parts: list[bytes] = []
        for parcel in self._parcels:
            door = parcel.door.encode()
            lengths = (len(parcel.data), len(parcel.sizes), len(parcel.offsets))
            parts.append(_PARCEL.pack(len(door), parcel.count, parcel.high, *lengths))
            parts += (door, parcel.data, parcel.sizes, parcel.offsets)
        return b"".join(parts)


def _highs_of(codec: dict[str, BodyCodec], bundle: Bundle) -> bytes:
    """Of each message of a bundle, whether it has high priority."""
    highs: list[bool] = []
    try:
        for parcel in bundle.parcels:
            highs += [each[3] for each in codec[parcel.door].unpacked(parcel.data)]
    except ValueError:
        highs = []  # the commit says so
    return bytes(highs)


def _parcels_of(body: bytes) -> list[Parcel]:
    """The parcels of a body that was put aside.

    :raises ValueError: when it is none.
    """
    found: list[Parcel] = []
    at = 0
    try:
        while at < len(body):
            door_size, count, high, *lengths = _PARCEL.unpack_from(body, at)
            at += _PARCEL.size
            pieces: list[bytes] = []
            for length in (door_size, *lengths):
                pieces.append(body[at : at + length])
                at += length
            door, data, sizes, offsets = pieces
            parcel = Parcel(
                door.decode(), "", 0, data, count, high, len(data), 0, None, sizes, offsets
            )
            found.append(parcel)
    except error as reason:
        raise ValueError(f"what was put aside cannot be read: {reason}") from None
    if at != len(body):
        raise ValueError("what was put aside is cut off")
    return found
