"""Destinations of OpenWire as channels.

A queue ``N`` is the channel ``N``, a topic ``N`` the channel ``topic://N``, and temporary ones are
``temp-queue://N`` and ``temp-topic://N``; their names begin with that of their connection.  A name
with commas means several destinations, each of which may begin with ``queue://`` or ``topic://``.
``*`` and ``>`` between the dots of a name are wildcards, for consumers.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.names import EXACT_MARK
from tmqp_server.doors.jms.patterns import TOPIC_SCHEME, has_wildcards
from tmqp_server.doors.names import DoorNames
from tmqp_wires.openwire.ids import QUEUE, TEMP_QUEUE, TEMP_TOPIC, TOPIC, Destination

__all__ = [
    "ADVISORY",
    "TEMPORARY_SCHEMES",
    "JmsPlace",
    "channel_name",
    "destination_of",
    "parts_of",
    "place_of",
    "plain_name",
]

#: Topics of this beginning tell about the broker itself.
ADVISORY: Final = "ActiveMQ.Advisory."
_SCHEMES: Final[dict[int, str]] = {
    QUEUE: "",
    TOPIC: TOPIC_SCHEME,
    TEMP_QUEUE: "temp-queue://",
    TEMP_TOPIC: "temp-topic://",
}
#: Channels of temporary destinations begin so.
TEMPORARY_SCHEMES: Final = (_SCHEMES[TEMP_QUEUE], _SCHEMES[TEMP_TOPIC])
_TYPES: Final = (
    ("queue://", QUEUE),
    *[(_SCHEMES[kind], kind) for kind in (TOPIC, TEMP_QUEUE, TEMP_TOPIC)],
)
#: How STOMP clients write destinations.
_STOMP: Final = (
    ("/queue/", QUEUE),
    ("/topic/", TOPIC),
    ("/remote-temp-queue/", TEMP_QUEUE),
    ("/remote-temp-topic/", TEMP_TOPIC),
)


@final
class JmsPlace:
    """A single destination with its ``channel``.  ``is_pattern`` says that its name has
    wildcards."""

    __slots__ = ("channel", "destination", "is_pattern", "is_temporary", "is_topic")

    def __init__(self, channel: str, destination: Destination) -> None:
        self.channel = channel
        self.destination = destination
        self.is_pattern = has_wildcards(destination.name)
        self.is_topic = destination.is_topic
        self.is_temporary = destination.is_temporary


def parts_of(destination: Destination) -> list[Destination]:
    """The single destinations that a destination means, without the options after question
    marks."""
    found: list[Destination] = []
    for part in destination.name.split(","):
        name = part.strip().partition("?")[0]
        kind = destination.type
        for scheme, meant in _TYPES:
            if name.startswith(scheme):
                name, kind = name[len(scheme) :], meant
                break
        if name:
            found.append(Destination(kind, name))
    return found


def place_of(destination: Destination, names: DoorNames) -> JmsPlace:
    """The place of a single destination."""
    said = _SCHEMES[destination.type] + destination.name
    return JmsPlace(names.exact_channel(said.encode("utf-8", "replace")), destination)


def destination_of(name: str) -> Destination:
    """The destination of a channel, by the channel's name in other protocols; STOMP's prefixes are
    also read."""
    for table in (_TYPES, _STOMP):
        for scheme, kind in table:
            if name.startswith(scheme):
                return Destination(kind, name[len(scheme) :])
    return Destination(QUEUE, name)


def channel_name(destination: Destination) -> str:
    """The name that clients of other protocols use for the channel of a destination."""
    return _SCHEMES[destination.type] + destination.name


def plain_name(channel: str) -> str:
    """A channel's name without the mark of exact names."""
    return channel.removeprefix(EXACT_MARK)
