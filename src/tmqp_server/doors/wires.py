"""Answers the engine's questions about messages: keys, priorities, filters, headers of dead
letters.

The key of a TMQP message is its header ``Group-Key``, its priority the header ``Priority``; a
message of another protocol has those of its letter (``letters.py``).  A dead letter has headers
with the reason, unless its protocol has no headers.  It does no I/O.
"""

from __future__ import annotations

import re
from typing import Final

from tmqp.codec import FrameDecoder
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_DEAD_LETTER_ATTEMPTS,
    HEADER_DEAD_LETTER_QUEUE,
    HEADER_DEAD_LETTER_REASON,
    HEADER_GROUP_KEY,
    HEADER_PRIORITY,
)
from tmqp.frames import Frame
from tmqp_server.doors.contents import contents_of
from tmqp_server.doors.letter import REGULAR_PRIORITY, TOP_PRIORITY
from tmqp_server.doors.letter_frames import OF_DEAD_LETTERS
from tmqp_server.doors.letters import GroupedWire, Letters
from tmqp_server.doors.rewriting import rewritten, writable_headers
from tmqp_server.doors.selecting import LANGUAGES, filter_of, read_by
from tmqp_server.doors.selector import SELECTORS
from tmqp_server.engine.model.message import Message, SubscriptionFilter, Wires

__all__ = ["LetterWires"]

_TRACEPARENT: Final = "traceparent"
#: What it says: a version, the id of the trace, that of its part, flags, and later versions more.
_TRACE: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_NO_TRACE: Final = "0" * 32

# Here, and not by the doors of JMS: a stored feed may have a selector although no such door is on.
LANGUAGES.update(SELECTORS)


class LetterWires(Wires):
    """Knows what messages say.

    :param letters: reads messages that arrived through doors of other protocols.
    """

    def __init__(self, letters: Letters) -> None:
        self._letters = letters

    def key_of(self, message: Message) -> str:
        """The key of *message*, empty if it has none.

        :raises LookupError: when this server does not know the message's protocol.
        """
        wire = message.wire
        if isinstance(wire, GroupedWire):
            return wire.group
        if not isinstance(wire, Frame):
            return self._letters.of_wire(wire, message.producer.door).group_key
        if not wire.has_header:
            return ""
        return wire.header(HEADER_GROUP_KEY) or ""

    def priority_of(self, message: Message) -> int:
        """The priority of *message*, 0 to 9.

        :raises LookupError: when this server does not know the message's protocol.
        """
        wire = message.wire
        if isinstance(wire, GroupedWire):
            return wire.priority
        usual = TOP_PRIORITY if message.high_priority else REGULAR_PRIORITY
        if isinstance(wire, Frame):
            said = wire.header(HEADER_PRIORITY) if wire.has_header else None
            return int(said) if said is not None and said.isdecimal() else usual
        priority = self._letters.of_wire(wire, message.producer.door).priority
        return usual if priority == REGULAR_PRIORITY else priority

    def pack(self, message: Message) -> bytes | None:
        """A frame as its bytes, if nothing but these tells its message's id."""
        wire = message.wire
        if not isinstance(wire, Frame):
            return None
        message_id = message.message_id
        if not message_id or wire.message_id != message_id or len(wire.raw) != message.size:
            return None
        return wire.raw

    def unpack(self, packed: bytes) -> tuple[list[str], list[int], list[object]]:
        """Those frames again; none is larger than any decoder takes."""
        return contents_of(FrameDecoder().feed(packed))

    def trace_of(self, message: Message) -> str:
        """The id of the trace that *message* is part of, as its ``traceparent`` says (W3C Trace
        Context); empty if it says nothing that can be read."""
        wire = message.wire
        try:
            if isinstance(wire, Frame):
                said = wire.header(_TRACEPARENT) if wire.has_header else None
            else:
                said = self._letters.of_wire(wire, message.producer.door).traceparent
        except LookupError:
            return ""
        found = _TRACE.fullmatch(said or "")
        return "" if found is None or found[1] == _NO_TRACE else found[1]

    def filter_of(self, language: str, text: str) -> SubscriptionFilter:
        """A filter as it was written down.

        :raises FilterError: when it cannot be understood.
        """
        chosen = filter_of(language, text)
        read_by(chosen, self._letters)
        return chosen

    def with_reason(self, message: Message, reason: str, queue_name: str) -> tuple[object, int]:
        """The wire form with the headers of a dead letter, and how many bytes larger it is.

        They say what happened first: those of one that is moved on stay.  What a producer has
        written under their names does not.  A message that nobody reads, or that cannot be written
        again, stays as it is: its move must not fail for that.
        """
        try:
            return self._headed(message, reason, queue_name)
        except (LookupError, LocalProtocolError):
            return message.wire, 0

    def _headed(self, message: Message, reason: str, queue_name: str) -> tuple[object, int]:
        headers = [
            (HEADER_DEAD_LETTER_REASON, reason),
            (HEADER_DEAD_LETTER_QUEUE, queue_name),
            (HEADER_DEAD_LETTER_ATTEMPTS, str(message.attempts)),
        ]
        wire = message.wire
        if isinstance(wire, Frame):
            said = writable_headers(wire) if wire.has_header else []
        else:
            said = self._letters.of_wire(wire, message.producer.door).headers
        others = [pair for pair in said if pair[0].lower() not in OF_DEAD_LETTERS]
        if message.is_dead_letter and len(others) < len(said):
            return wire, 0
        if not isinstance(wire, Frame):
            return self._letters.with_headers(wire, message.producer.door, [*others, *headers])
        asked = wire.pending_acknowledge
        try:
            frame = rewritten(wire, [*others, *headers], pending_acknowledge=asked)
        except LocalProtocolError:  # there is no room for more
            frame = rewritten(wire, others, pending_acknowledge=asked)
        return frame, len(frame.raw) - len(wire.raw)
