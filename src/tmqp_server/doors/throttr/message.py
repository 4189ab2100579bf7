"""Messages of Throttr's channels inside the server: their wire form and stored form."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.bodies import PlainBodies, bytes_around
from tmqp_server.doors.names import exact_channel
from tmqp_server.engine.model.message import Message, SubscriptionFilter

__all__ = ["DOOR", "NUMBER", "QUEUE", "FromOthers", "ThrottrBodies", "ThrottrMessage"]

#: The door's name and number, kept with its messages.
DOOR: Final = "throttr"
NUMBER: Final = 6
#: The queue of every channel.
QUEUE: Final = 0
_FAMILY: Final = f"{DOOR}-source"


@final
class ThrottrMessage:
    """The wire form of a message: its payload, its channel as Throttr names it, and its sender."""

    __slots__ = ("channel", "message_id", "payload", "source")

    def __init__(self, message_id: str, source: str, channel: bytes, payload: bytes) -> None:
        self.message_id = message_id
        self.source = source
        self.channel = channel
        self.payload = payload

    @property
    def size(self) -> int:
        """The size of its stored form in bytes."""
        around = bytes_around(self.source, exact_channel(self.channel))
        return len(self.message_id) + around + len(self.payload)


@final
class FromOthers(SubscriptionFilter):
    """Accepts messages of other clients: in the dialect 7.1, publishers do not get their own.

    :param source: the client's id.
    """

    def __init__(self, source: str) -> None:
        self._source = source

    def accepts(self, message: Message) -> bool:
        """Whether the client gets the message."""
        wire = message.wire
        return not (isinstance(wire, ThrottrMessage) and wire.source == self._source)

    def identity(self) -> object:
        """The client, with the door's name."""
        return DOOR, self._source

    def family(self) -> object:
        """The family of all filters that look only at the publisher."""
        return _FAMILY

    def key_of(self, message: Message) -> object:
        """The publisher of a message of this door; else empty."""
        wire = message.wire
        return wire.source if isinstance(wire, ThrottrMessage) else ""

    def is_counted(self) -> bool:
        """No: every subscriber has a filter of its own."""
        return False


class ThrottrBodies(PlainBodies):
    """The stored form of the door's messages."""

    name = DOOR
    number = NUMBER

    def body_of(self, wire: object) -> bytes:
        """The payload of a message."""
        assert isinstance(wire, ThrottrMessage), "this door keeps its own messages"
        return wire.payload

    def channel_of(self, wire: object) -> str:
        """The channel that a message was sent to."""
        assert isinstance(wire, ThrottrMessage), "this door keeps its own messages"
        return exact_channel(wire.channel)

    def wire_of(self, name: str, source: str, place: bytes, body: bytes) -> tuple[object, str]:
        """A message from its stored form; see ``Door.restored``."""
        return ThrottrMessage(name, source, place, body), exact_channel(place)
