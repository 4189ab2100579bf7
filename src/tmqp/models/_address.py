"""What a property holds that names a queue."""

from __future__ import annotations

from typing import Final

from tmqp.constants import MAX_QUEUE_ID
from tmqp.names import fault_of_name

__all__ = ["UNFIT", "AddressKind"]

#: Stands for a value that a property cannot hold.
UNFIT: Final = object()
_MAX_CHARACTERS: Final = 65_535


class AddressKind:
    """A queue: the channel, a semicolon and the queue's id; empty for none."""

    __slots__ = ()

    expected = "the name of a channel, a semicolon and the id of a queue, or empty for none"

    def read(self, value: object) -> object:
        if not isinstance(value, str):
            return UNFIT
        if not value:
            return value
        channel, _, queue_id = value.rpartition(";")
        digits = queue_id.isascii() and queue_id.isdigit() and len(queue_id) <= 5
        if not channel or len(channel) > _MAX_CHARACTERS or not digits:
            return UNFIT
        if int(queue_id) > MAX_QUEUE_ID or fault_of_name(channel):
            return UNFIT
        return str(value)

    def write(self, value: str) -> object:
        return value
