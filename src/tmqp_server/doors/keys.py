"""Keys of messages: which of them belong together, by what their producers say.

The key of a TMQP message is its header ``Group-Key``; that of a message of another protocol is the
group key of its letter (``letters.py``).  It is pure.
"""

from __future__ import annotations

from tmqp.extensions import HEADER_GROUP_KEY
from tmqp.frames import Frame
from tmqp_server.doors.letters import Letters
from tmqp_server.engine.model.message import KeyReader, Message

__all__ = ["LetterKeys"]


class LetterKeys(KeyReader):
    """Reads keys for the engine.

    :param letters: reads what came in by doors of other kinds.
    """

    def __init__(self, letters: Letters) -> None:
        self._letters = letters

    def key_of(self, message: Message) -> str:
        """The key of *message*, empty if it has none.

        :raises LookupError: for a message of another protocol that nobody reads.
        """
        wire = message.wire
        if not isinstance(wire, Frame):
            return self._letters.of_wire(wire, message.producer.door).group_key
        if not wire.has_header:
            return ""
        return wire.header(HEADER_GROUP_KEY) or ""
