"""Messages of goMS inside the server: their form, and what is kept."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.bodies import PlainBodies
from tmqp_server.doors.names import channel_of
from tmqp_server.engine.model.message import Message, SubscriptionFilter

__all__ = ["DOOR", "NUMBER", "QUEUE", "GomsBodies", "GomsMessage", "NotMine", "text_of"]

#: The door's name and number, kept with its messages.
DOOR: Final = "goms"
NUMBER: Final = 7
#: The queue of every channel.
QUEUE: Final = 0
#: What a message costs beside its data.
_MESSAGE_BYTES: Final = 64


@final
class GomsMessage:
    """The form that a message keeps: its data, who sent it, and whether they want it back."""

    __slots__ = ("data", "echoes", "message_id", "source", "topic")

    def __init__(
        self, message_id: str, source: str, topic: str, data: str, *, echoes: bool
    ) -> None:
        self.message_id = message_id
        self.source = source
        self.topic = topic
        self.data = data
        self.echoes = echoes

    @property
    def size(self) -> int:
        """What it costs, in bytes."""
        return _MESSAGE_BYTES + len(self.data)


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
        return wire.data.encode("utf-8", "replace")

    def wire_of(self, name: str, source: str, place: bytes, body: bytes) -> tuple[object, str, int]:
        """A kept message again."""
        topic = place.decode("utf-8", "replace")
        wire = GomsMessage(name, source, topic, text_of(body), echoes=True)
        return wire, channel_of(place), wire.size
