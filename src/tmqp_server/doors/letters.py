"""Letters: messages in a neutral form, for doors that deliver messages of another door.

Theory of operation.  A message travels through the engine as its door received it (``wire``).  If
the consumer's door is of the same kind, it writes that form again and nothing is translated.  If
not, it asks :class:`Letters` for the message's :class:`Letter`, which the owner of the wire form
makes, and encodes that.  A TMQP frame is its own owner: :func:`letter_of_frame`.

``letter.py`` has the letter, ``letter_frames.py`` its conversion to a TMQP message.  It does no
I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol, final

from tmqp._compat import mypyc_attr
from tmqp.constants import TYPE_DIRECT_MESSAGE
from tmqp.frames import Frame
from tmqp.names import EXACT_MARK
from tmqp_server.doors.letter import REGULAR_PRIORITY, TOP_PRIORITY, Letter
from tmqp_server.doors.letter_frames import OF_DEAD_LETTERS, frame_of_letter, letter_of_frame
from tmqp_server.engine.effects import Forward
from tmqp_server.engine.model.message import Message

__all__ = ["GroupedWire", "LetterOwner", "Letters"]


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupedWire:
    """A wire form with the ``group`` key and the ``priority`` of its letter as attributes, so that
    no letter must be made to read them."""

    __slots__ = ("group", "priority")

    def __init__(self, group: str, priority: int) -> None:
        self.group = group
        self.priority = priority


class LetterOwner(Protocol):
    """A protocol as :class:`Letters` sees it: its door, or its codec where no door is open."""

    name: str
    number: int

    def letter(self, wire: object) -> Letter:
        """The contents of a message's ``wire``."""

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """See ``Door.restored``."""

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """See ``Door.with_headers``."""


@final
class Letters:
    """Finds the protocol that can read a message, by the name of the message's door.

    :param owners: all protocols whose messages may arrive or are stored.
    :param wall_clock_offset_s: seconds to add to the engine's time for Unix time.

    Attributes: ``conversions``, the number of letters that were made, by the name of the messages'
    door.
    """

    __slots__ = ("_kept_by", "_offset_s", "_owners", "conversions")

    def __init__(
        self, owners: Iterable[LetterOwner] = (), wall_clock_offset_s: float = 0.0
    ) -> None:
        self._offset_s = wall_clock_offset_s
        self.conversions: dict[str, int] = {}
        self._owners: dict[str, LetterOwner] = {}
        #: The same by number, which is stored with messages.
        self._kept_by: dict[int, LetterOwner] = {}
        for owner in owners:
            self.add(owner)

    def add(self, owner: LetterOwner) -> None:
        """Add a protocol; a door replaces the codec of the same name."""
        self._owners[owner.name] = owner
        self._kept_by[owner.number] = owner

    def of(self, message: Message, channel: str = "") -> Letter:
        """A message's letter, with *channel* as its address, or the channel's name as the producer
        wrote it if *channel* is empty.

        :raises LookupError: when this server does not know the message's protocol.
        """
        wire = message.wire
        letter = self.of_wire(wire, message.producer.door)
        if (
            message.high_priority
            and letter.priority == REGULAR_PRIORITY
            and not isinstance(wire, Frame)
        ):
            letter.priority = TOP_PRIORITY
        if not letter.expires_ms and message.expires_at < math.inf:
            letter.expires_ms = max(1, int((message.expires_at + self._offset_s) * 1_000))
        if letter.headers and not message.is_dead_letter:
            letter.headers = [
                pair for pair in letter.headers if pair[0].lower() not in OF_DEAD_LETTERS
            ]
        letter.message_id = message.message_id
        letter.source = message.source
        letter.channel = channel or message.channel.removeprefix(EXACT_MARK)
        letter.queue_id = message.queue_id
        return letter

    def of_wire(self, wire: object, door: str) -> Letter:
        """The letter of a wire form that arrived through the door of this name.

        :raises LookupError: when this server does not know the message's protocol.
        """
        self.conversions[door] = self.conversions.get(door, 0) + 1
        if isinstance(wire, Frame):
            return letter_of_frame(wire)
        owner = self._owners.get(door)
        if owner is None:
            raise LookupError(f"this server cannot read messages of the door {door!r}")
        return owner.letter(wire)

    def with_headers(
        self, wire: object, door: str, headers: list[tuple[str, str]]
    ) -> tuple[object, int]:
        """Replace the headers of a wire form that arrived through the door of this name; returns
        the new form and how many bytes larger it is.  If the door is unknown, the form is
        unchanged."""
        owner = self._owners.get(door)
        return (wire, 0) if owner is None else owner.with_headers(wire, headers)

    def frame_of(self, message: Message, channel: str = "") -> Frame:
        """A message as a TMQP message: the original one, or one made from its letter.

        :param channel: the real name of its channel, by which a TMQP consumer can acknowledge a
            message that was pushed to an exact name.
        :raises LookupError: when this server does not know the message's protocol.
        """
        wire = message.wire
        if isinstance(wire, Frame):
            return wire
        return frame_of_letter(self.of(message, channel), high_priority=message.high_priority)

    def frame_of_kept(self, door: int, body: bytes, *, high_priority: bool) -> Frame:
        """Read a stored message as a TMQP message.

        :param door: the number of the message's door.
        :raises LookupError: when this server does not know the message's protocol.
        :raises ValueError: when the stored bytes are not a valid message.
        """
        owner = self._kept_by.get(door)
        if owner is None:
            raise LookupError(f"this server cannot read messages of the door {door}")
        wire, message_id, source, channel, _ = owner.restored(body)
        letter = owner.letter(wire)
        letter.message_id = message_id
        letter.source = source
        letter.channel = channel.removeprefix(EXACT_MARK)
        return frame_of_letter(letter, high_priority=high_priority)

    def frame_forwarded(self, effect: Forward) -> Frame:
        """A direct message or its answer, as a TMQP message.

        :raises LookupError: when this server does not know the message's protocol.
        """
        wire = effect.wire
        if isinstance(wire, Frame):
            return wire
        letter = self.of_wire(wire, effect.door)
        return frame_of_letter(letter, TYPE_DIRECT_MESSAGE, high_priority=letter.high_priority)
