"""Gives the engine what it needs to know of messages: keys, priorities, filters, headers of dead
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
#: Its parts: the version, the ids of the trace and of its parent, flags, and more in later
#: versions.
_TRACE: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_NO_TRACE: Final = "0" * 32

# Here, not in the doors of JMS, because a stored feed may have a selector although no such door is
# open.
LANGUAGES.update(SELECTORS)


class LetterWires(Wires):
    """Reads keys, priorities and traces of messages of all protocols.

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
        """The bytes of a frame, if they contain the message's id and are as long as its size; else
        None."""
        wire = message.wire
        if not isinstance(wire, Frame):
            return None
        message_id = message.message_id
        if not message_id or wire.message_id != message_id or len(wire.raw) != message.size:
            return None
        return wire.raw

    def unpack(self, packed: bytes) -> tuple[list[str], list[int], list[object]]:
        """Decode packed frames, all of which are within the default limits."""
        return contents_of(FrameDecoder().feed(packed))

    def trace_of(self, message: Message) -> str:
        """The trace id in the ``traceparent`` of *message* (W3C Trace Context); empty if there is
        no valid one."""
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
        """The filter with this text.

        :raises FilterError: when the filter is invalid.
        """
        chosen = filter_of(language, text)
        read_by(chosen, self._letters)
        return chosen

    def with_reason(self, message: Message, reason: str, queue_name: str) -> tuple[object, int]:
        """Add the headers of a dead letter; returns the new wire form, and how many bytes larger it
        is.

        They describe the first move: a dead letter that is moved again keeps them.  Headers of the
        same names from a producer are removed.  A message that this server cannot read or write
        stays unchanged, because the move must not fail.
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
