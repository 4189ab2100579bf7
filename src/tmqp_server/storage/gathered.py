"""Owns the portions of a journal's batch: what a commit brings, and what stood before or behind it.

They are made into messages when they are written, by the store's own thread.
"""

from __future__ import annotations

from array import array
from typing import Protocol

from tmqp.blocks import FLAG_DOOR_SHIFT, FLAG_HIGH, FLAG_WANTS, StoredMessage
from tmqp_server.engine.commands import Bundle
from tmqp_server.engine.model.message import Message
from tmqp_server.storage.port import Portion
from tmqp_server.storage.stored_runs import StoredRun

__all__ = ["BodyCodec", "Bundled", "Gathered", "Sealed"]


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

    __slots__ = ("_bundle", "_codec", "_expires_us", "_first", "_timestamp_us")

    def __init__(
        self,
        key: int,
        codec: dict[str, BodyCodec],
        bundle: Bundle,
        first: int,
        timestamp_us: int,
        expires_us: int,
    ) -> None:
        super().__init__(key)
        self._codec = codec
        self._bundle = bundle
        self._first = first
        self._timestamp_us = timestamp_us
        self._expires_us = expires_us

    def size(self) -> int:
        """How many bytes they take."""
        return self._bundle.size

    def messages(self) -> list[StoredMessage]:
        """The messages.

        :raises ValueError: when their door cannot read what it gave.
        """
        found: list[StoredMessage] = []
        sequence = self._first
        for parcel in self._bundle.parcels:
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
        for parcel in self._bundle.parcels:
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
            return super().within(first, last, high_priority)
        if high_priority != (bundle.high > 0):
            return []
        end = self._first + bundle.count - 1
        return list(range(max(first, self._first), min(last, end) + 1))
