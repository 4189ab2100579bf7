"""Messages of goMS inside the server: their form, and what is kept."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.bodies import PlainBodies, bytes_around
from tmqp_server.doors.names import channel_of
from tmqp_server.engine.model.message import Message, SubscriptionFilter

__all__ = ["DOOR", "NUMBER", "QUEUE", "GomsBodies", "GomsMessage", "NotMine", "text_of"]

#: The door's name and number, kept with its messages.
DOOR: Final = "goms"
NUMBER: Final = 7
#: The queue of every channel.
QUEUE: Final = 0


@final
class GomsMessage:
    """The form that a message keeps: its data, who sent it where, and whether they want it back.

    :param around: what ``bytes_around`` says of it.
    """

    __slots__ = ("channel", "data", "echoes", "message_id", "size", "source")

    def __init__(
        self, message_id: str, source: str, channel: str, data: str, around: int, *, echoes: bool
    ) -> None:
        self.message_id = message_id
        self.source = source
        self.channel = channel
        self.data = data
        self.echoes = echoes
        #: The bytes that are kept of it.
        self.size = around + len(message_id) + len(_bytes_of(data))


@final
class NotMine(SubscriptionFilter):
    """Accepts what others have sent, and of a client's own what it wants back.

    :param source: the client.
    """

    def __init__(self, source: str) -> None:
        self._source = source

    def accepts(self, message: Message) -> bool:
        """Whether the client gets the message."""
        wire = message.wire
        if isinstance(wire, GomsMessage) and not wire.echoes:
            return wire.source != self._source
        return True

    def identity(self) -> object:
        """The client."""
        return DOOR, self._source

    def family(self) -> object:
        """They all look at the sender."""
        return FAMILY

    def key_of(self, message: Message) -> object:
        """The sender, if it does not want its message back."""
        wire = message.wire
        return wire.source if isinstance(wire, GomsMessage) and not wire.echoes else ""

    def is_counted(self) -> bool:
        """Every client has one of its own."""
        return False


def _bytes_of(data: str) -> bytes:
    """Data as they are sent and kept; what is no text in UTF-8 (half a pair) is a question mark."""
    return data.encode("utf-8", "replace")


def text_of(body: bytes) -> str:
    """The data of another protocol's message; what is not UTF-8 as a text of its bytes."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("latin-1")


class GomsBodies(PlainBodies):
    """What is kept of the door's messages."""

    name = DOOR
    number = NUMBER

    def body_of(self, wire: object) -> bytes:
        """The data of a message."""
        assert isinstance(wire, GomsMessage), "this door keeps its own messages"
        return _bytes_of(wire.data)

    def channel_of(self, wire: object) -> str:
        """Where a message was sent to."""
        assert isinstance(wire, GomsMessage), "this door keeps its own messages"
        return wire.channel

    def wire_of(self, name: str, source: str, place: bytes, body: bytes) -> tuple[object, str]:
        """A kept message again."""
        channel = channel_of(place)
        around = bytes_around(source, channel)
        wire = GomsMessage(name, source, channel, text_of(body), around, echoes=True)
        return wire, channel
