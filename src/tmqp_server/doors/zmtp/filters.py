"""The filters of SUB sockets: messages whose first part begins with one of their prefixes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.zmtp.message import DOOR, topic_of
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_wires.zmtp.frames import first_part

__all__ = ["TopicFilter"]

#: Longer first parts are not remembered.
_LONGEST_KEY: Final = 256
_FAMILY: Final = f"{DOOR}-topic"


@final
class TopicFilter(SubscriptionFilter):
    """Accepts messages whose first part begins with one of some prefixes.

    :param prefixes: the prefixes.
    :param letters: reads messages that arrived through doors of other protocols.
    """

    def __init__(self, prefixes: Iterable[bytes], letters: Letters) -> None:
        self._prefixes = tuple(sorted(prefixes))
        self._letters = letters

    def _topic(self, message: Message) -> bytes:
        wire = message.wire
        if isinstance(wire, bytes) and message.producer.door == DOOR:
            return first_part(wire)
        return topic_of(self._letters.of(message))

    def accepts(self, message: Message) -> bool:
        """Whether the first part begins with one of the prefixes."""
        return self._topic(message).startswith(self._prefixes)

    def identity(self) -> object:
        """The prefixes."""
        return _FAMILY, self._prefixes

    def family(self) -> object:
        """The family of all filters that look only at the first part."""
        return _FAMILY

    def key_of(self, message: Message) -> object:
        """The first part; None if it is long."""
        topic = self._topic(message)
        return topic if len(topic) <= _LONGEST_KEY else None
