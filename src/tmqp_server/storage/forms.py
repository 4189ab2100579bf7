"""Converts messages to their stored form and back: times, counts, flags, and the door's body.

The door's body is the expensive part, and does not depend on what happens to the message.  So it
may be made some messages later (``_bare_form``): a message that is settled before that, for example
one that feeds have copied in one step, costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.blocks import FLAG_DOOR_SHIFT, FLAG_HIGH, FLAG_TRANSIENT, FLAG_WANTS, StoredMessage
from tmqp_server.engine.commands import KeptMessage
from tmqp_server.engine.model.message import MARK_HIGH, MARK_WANTS, Message
from tmqp_server.engine.model.times import AT_ONCE, NEVER
from tmqp_server.storage.gathered import (
    BodyCodec,
    flags_of_feeds,
    marks_of_feeds,
    names_its_queue,
)
from tmqp_server.storage.port import UnknownDoorError

__all__ = ["LAST", "MAX_COUNT", "StoredForms"]

#: Attempts, put-backs and hops are counted up to this number.
MAX_COUNT: Final = 65_535
#: No sequence and no time is larger.
LAST: Final = 2**63 - 1
_SECOND_US: Final = 1_000_000
#: Messages of which it is not made yet what their doors keep of them: few, so that it never takes
#: long, and more than a step leaves behind that passes a message on.
_MOST_BARE: Final = 64


class StoredForms:
    """Converts messages to their stored form and back.

    :param doors: all protocols whose messages may be stored.
    :param wall_clock_offset_s: seconds to add to the engine's time to get Unix time.
    """

    def __init__(self, doors: Sequence[BodyCodec], wall_clock_offset_s: float) -> None:
        self._by_name = {door.name: door for door in doors}
        self._by_number = {door.number: door for door in doors}
        self._flags_of = {door.name: door.number << FLAG_DOOR_SHIFT for door in doors}
        self._offset_s = wall_clock_offset_s
        #: Forms that have no body yet, and the messages of which it will be made.
        self._bare: dict[StoredMessage, Message] = {}

    def _flags(self, message: Message) -> int:
        flags = self._flags_of[message.producer.door]
        marks = message.marks
        if marks & MARK_HIGH:
            flags |= FLAG_HIGH
        if marks & MARK_WANTS:
            flags |= FLAG_WANTS
        return flags | flags_of_feeds(marks)

    def _stored(
        self, message: Message, sequence: int, flags: int, timestamp_us: int, now: float
    ) -> StoredMessage:
        """The stored form of a message."""
        kept = self._head(message, sequence, flags, timestamp_us, now)
        self._make_body(kept, message)
        return kept

    def _bare_form(
        self, message: Message, sequence: int, flags: int, timestamp_us: int, now: float
    ) -> StoredMessage:
        """The stored form without its body, which :meth:`_make_bodies` adds unless it is forgotten
        before.
        """
        if len(self._bare) >= _MOST_BARE:
            self._make_bodies()
        kept = self._head(message, sequence, flags, timestamp_us, now)
        self._bare[kept] = message
        return kept

    def _forget_form(self, kept: StoredMessage) -> None:
        """Forget a form without body: its message is settled and need not be written."""
        self._bare.pop(kept, None)

    def _make_bodies(self) -> None:
        """Make the missing bodies of messages that have not been settled."""
        for kept, message in self._bare.items():
            self._make_body(kept, message)
        self._bare.clear()

    def _make_body(self, kept: StoredMessage, message: Message) -> None:
        body, payload_offset, payload_size = self._by_name[message.producer.door].stored(message)
        kept.body = body
        kept.payload_offset = payload_offset
        kept.payload_size = payload_size

    def _head(
        self, message: Message, sequence: int, flags: int, timestamp_us: int, now: float
    ) -> StoredMessage:
        """The stored form of a message, still without its body."""
        rare = message.rare
        expires_us = due_us = put_backs = hops = 0
        if rare is not None:
            put_backs = min(rare.put_backs, MAX_COUNT)
            hops = min(rare.hops, MAX_COUNT)
            expires_us = self._expiry_us(rare.expires_at)
            if rare.due_at > now:
                due_us = self._unix_us(rare.due_at)
        return StoredMessage(
            sequence,
            timestamp_us,
            expires_us,
            due_us,
            flags,
            min(message.attempts, MAX_COUNT),
            put_backs,
            hops,
            0,
            0,
            b"",
        )

    def kept(self, stored: StoredMessage, now: float) -> KeptMessage:
        """Convert a stored message to a message that the engine restores.

        :raises UnknownDoorError: when this server does not know its door.
        :raises Exception: when its door cannot read it.
        """
        flags = stored.flags
        number = (flags >> FLAG_DOOR_SHIFT) & 0xFF
        door = self._by_number.get(number)
        if door is None:
            raise UnknownDoorError(number)
        wire, message_id, source, channel, size = door.restored(stored.body)
        offset_s = self._offset_s
        return KeptMessage(
            stored.sequence,
            message_id,
            source,
            door.name,
            channel or None if names_its_queue(stored) else None,
            size,
            wire,
            flags & FLAG_WANTS != 0,
            flags & FLAG_TRANSIENT != 0,
            stored.attempts,
            stored.put_backs,
            stored.hops,
            stored.expires_us / _SECOND_US - offset_s if stored.expires_us else NEVER,
            stored.due_us / _SECOND_US - offset_s if stored.due_us else AT_ONCE,
            marks_of_feeds(flags),
        )

    def monotonic_s(self, unix_us: int) -> float:
        """Convert a stored time to the engine's time."""
        return unix_us / _SECOND_US - self._offset_s

    def _expiry_us(self, expires_at: float) -> int:
        """Convert an expiry to its stored form: 0 means never, so any other time is at least 1;
        times too late for the field become its largest value.
        """
        return 0 if expires_at == NEVER else min(max(1, self._unix_us(expires_at)), LAST)

    def _unix_us(self, at: float) -> int:
        return int((at + self._offset_s) * _SECOND_US)
