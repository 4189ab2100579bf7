"""Messages of goMS inside the server: their form, and what is kept."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.letters import Letter
from tmqp_server.doors.names import channel_of, foreign_name
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_wires.common import kept

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


class GomsBodies:
    """What is kept of the door's messages."""

    name = DOOR
    number = NUMBER

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """What is kept of a message: ``tmqp_wires.common.kept``."""
        wire = message.wire
        assert isinstance(wire, GomsMessage), "this door keeps its own messages"
        head = kept.stored_head(
            message.message_id.encode(), message.source.encode(), foreign_name(message.channel)
        )
        body = wire.data.encode("utf-8", "replace")
        return head + body, len(head), len(body)

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """GoMS has no message sets.

        :raises ValueError: always.
        """
        raise ValueError("goMS has no transactions")

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A kept message again.

        :raises ValueError: when it cannot be read.
        """
        found = kept.read(body)
        name = found.message_id.decode("utf-8", "replace")
        source = found.source.decode("utf-8", "replace")
        topic = found.place.decode("utf-8", "replace")
        wire = GomsMessage(name, source, topic, text_of(found.body), echoes=True)
        return wire, name, source, channel_of(found.place), wire.size

    def letter(self, wire: object) -> Letter:
        """What a message says: its data."""
        assert isinstance(wire, GomsMessage), "this door keeps its own messages"
        return Letter(wire.data.encode("utf-8", "replace"), wire.message_id)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """Messages of goMS have no headers."""
        return wire, 0
