"""The stored form of a message whose protocol gives it only a body and a place.

The stored form is a head, followed by the body as it was sent.  The head has the version of the
form, the sizes of the id, the source and the place in two bytes each, and these three.  The body
extends to the end.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

__all__ = ["HEAD_BYTES", "StoredMessage", "read", "stored_head"]

_VERSION: Final = 1
_HEAD: Final = Struct(">BHHH")
#: The bytes of the stored form besides the id, the source, the place and the body.
HEAD_BYTES: Final = _HEAD.size


@final
class StoredMessage:
    """A message read from its stored form.  ``place`` is where it was sent to, ``source`` who sent
    it."""

    __slots__ = ("body", "message_id", "place", "source")

    def __init__(self, message_id: bytes, source: bytes, place: bytes, body: bytes) -> None:
        self.message_id = message_id
        self.source = source
        self.place = place
        self.body = body

    def __repr__(self) -> str:
        return f"StoredMessage({self.message_id!r}, {self.source!r}, {self.place!r}, {self.body!r})"


def stored_head(message_id: bytes, source: bytes, place: bytes) -> bytes:
    """The head, which is stored in front of the body.

    :raises ValueError: when the id, the source or the place has more than 65,535 bytes.
    """
    sizes = (len(message_id), len(source), len(place))
    if max(sizes) > 0xFFFF:
        raise ValueError("id, source and place have at most 65,535 bytes")
    return _HEAD.pack(_VERSION, *sizes) + message_id + source + place


def read(data: bytes) -> StoredMessage:
    """Read a message from its stored form.

    :raises ValueError: when it cannot be read.
    """
    if len(data) < _HEAD.size:
        raise ValueError(f"{len(data)} bytes are not a kept message")
    version, id_size, source_size, place_size = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"version {version} of a kept message is unknown")
    source_at = _HEAD.size + id_size
    place_at = source_at + source_size
    body_at = place_at + place_size
    if body_at > len(data):
        raise ValueError(f"a kept message of {len(data)} bytes ends in its head")
    return StoredMessage(
        data[_HEAD.size : source_at],
        data[source_at:place_at],
        data[place_at:body_at],
        data[body_at:],
    )
