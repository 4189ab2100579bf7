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
    """The form of a message that has its ``group`` and its ``priority`` at hand, the group key and
    the priority of its letter: for these no letter need be made."""

    __slots__ = ("group", "priority")

    def __init__(self, group: str, priority: int) -> None:
        self.group = group
        self.priority = priority


class LetterOwner(Protocol):
    """A protocol as :class:`Letters` sees it: its door, or its codec where no door is open."""

    name: str
    number: int

    def letter(self, wire: object) -> Letter:
        """The contents of what the protocol keeps as a message's ``wire``."""

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """See ``Door.restored``."""

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """A message's ``wire`` with these text headers in the place of its own, and how many bytes
        larger it is; as it is, and 0, where the protocol has none."""


@final
class Letters:
    """Finds who can read a message, by the name of the door that it came through.

    :param owners: all protocols whose messages may come in, or were kept.
    :param wall_clock_offset_s: seconds to add to the engine's time for Unix time.

    Attributes: ``conversions``, how many letters were made, by the door of the messages.
    """

    __slots__ = ("_kept_by", "_offset_s", "_owners", "conversions")

    def __init__(
        self, owners: Iterable[LetterOwner] = (), wall_clock_offset_s: float = 0.0
    ) -> None:
        self._offset_s = wall_clock_offset_s
        self.conversions: dict[str, int] = {}
        self._owners: dict[str, LetterOwner] = {}
        #: The same by number, which is kept with what they keep.
        self._kept_by: dict[int, LetterOwner] = {}
        for owner in owners:
            self.add(owner)

    def add(self, owner: LetterOwner) -> None:
        """Add a protocol; a door replaces the codec of the same name."""
        self._owners[owner.name] = owner
        self._kept_by[owner.number] = owner

    def of(self, message: Message, channel: str = "") -> Letter:
        """A message's letter, with its present address: *channel*, or the producer's spelling.

        :raises LookupError: when nobody here reads its form.
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
        """The letter of what came through the door of this name.

        :raises LookupError: when nobody here reads its form.
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
        """What came through the door of this name with these headers in the place of its own, and
        how many bytes larger it is; as it is where nobody here can write them."""
        owner = self._owners.get(door)
        return (wire, 0) if owner is None else owner.with_headers(wire, headers)

    def frame_of(self, message: Message, channel: str = "") -> Frame:
        """A message as the TMQP message that it is or that says the same.

        :param channel: the real name of its channel, by which a TMQP consumer can acknowledge a
            message that was pushed to an exact name.
        :raises LookupError: when nobody here reads its form.
        """
        wire = message.wire
        if isinstance(wire, Frame):
            return wire
        return frame_of_letter(self.of(message, channel), high_priority=message.high_priority)

    def frame_of_kept(self, door: int, body: bytes, *, high_priority: bool) -> Frame:
        """A message as it is kept, as the TMQP message that says the same.

        :param door: the number of the door that it came through.
        :raises LookupError: when nobody here reads its form.
        :raises ValueError: when it cannot be read.
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
        """What a client said to another one, as the TMQP message that it is or that says the same.

        :raises LookupError: when nobody here reads its form.
        """
        wire = effect.wire
        if isinstance(wire, Frame):
            return wire
        letter = self.of_wire(wire, effect.door)
        return frame_of_letter(letter, TYPE_DIRECT_MESSAGE, high_priority=letter.high_priority)
