"""``PackedPart``: messages that arrived one at a time, and wait together in one bytes object.

A waiting message of 100 bytes is four objects of 500 bytes in total: itself, its wire form, its id
and its bytes.  Deep in a queue, they are not needed for a long time.  So only the bytes are kept
there, with the few facts that the engine adds; the objects are created again when it is the
message's turn.
"""

from __future__ import annotations

from array import array
from typing import Final

from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import (
    MARK_CONFIRMED,
    MARK_HIGH,
    MARK_WANTS,
    Message,
    Wires,
)
from tmqp_server.engine.model.waiting_parts import WaitingPart

__all__ = ["MOST_PACKED", "PackedPart", "packed_form"]

#: A larger part would restore too many messages at once when it is its turn.
MOST_PACKED: Final = 64
#: For larger messages, the overhead of the objects is small, and their bytes would be copied.
_LARGEST_BYTES: Final = 4_096
_PLAIN_MARKS: Final = MARK_HIGH | MARK_WANTS | MARK_CONFIRMED


def packed_form(message: Message, wires: Wires) -> bytes | None:
    """The bytes as which *message* can wait; None if it was sent before, or if it cannot be
    restored completely from them."""
    if (
        message.rare is not None
        or message.attempts != 0
        or message.marks & ~_PLAIN_MARKS
        or message.size > _LARGEST_BYTES
    ):
        return None
    return wires.pack(message)


class PackedPart(WaitingPart):
    """Messages of one queue and priority, packed, in order of arrival."""

    __slots__ = (
        "_channels",
        "_is_complete",
        "_marks",
        "_packed",
        "_producers",
        "_queue_id",
        "_sequences",
        "_since",
        "_wires",
    )

    def __init__(self, queue_id: int, wires: Wires) -> None:
        super().__init__(None)
        self._queue_id = queue_id
        self._wires = wires
        self._is_complete = False
        self._packed: list[bytes] = []
        self._producers: list[Origin] = []
        self._channels: list[str] = []
        self._marks: list[int] = []
        # Not lists, which need an object of 24 or 32 bytes for each number.
        self._sequences = array("q")
        self._since = array("d")

    def take_in(self, message: Message, packed: bytes) -> bool:
        """Append a message; return False if this part is complete."""
        if self._is_complete or self.made is not None:
            return False
        self._packed.append(packed)
        self._producers.append(message.producer)
        self._channels.append(message.channel)
        self._marks.append(message.marks)
        self._sequences.append(message.sequence)
        self._since.append(message.sent_at)
        if len(self._packed) == MOST_PACKED:
            self.complete()
        return True

    def complete(self) -> None:
        """Accept no more messages, and join the bytes of all."""
        self._is_complete = True
        if len(self._packed) > 1:
            self._packed = [b"".join(self._packed)]

    def _make(self) -> list[Message]:
        """Restore the messages, with wire forms equal to the original ones."""
        ids, sizes, wires = self._wires.unpack(b"".join(self._packed))
        assert len(ids) == len(self._producers), "each is one message again"
        messages: list[Message] = []
        for place in range(len(ids)):
            message = Message(
                ids[place],
                self._producers[place],
                self._channels[place],
                self._queue_id,
                sizes[place],
                wires[place],
                self._marks[place],
                self._sequences[place],
            )
            message.sent_at = self._since[place]
            messages.append(message)
        self._packed = []
        self._producers = []
        self._channels = []
        return messages
