"""Destinations of STOMP as channels.

A queue ``N`` is the channel of that name, so that other protocols share it; a destination that does
not begin with a slash is a queue, as for ActiveMQ.  The others have the channels ``topic://N`` and
so on, because a queue and a topic may have the same name.  The channel of a temporary destination
has the name of its connection, so that others can send to it: the client calls it
``/temp-queue/N``, others ``/remote-temp-queue/CONNECTION/N``.

A destination with commas means several.  For subscriptions, one with ``*`` or ``>`` between its
dots means all destinations that match.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.jms.patterns import MAX_COMPOSITE, TOPIC_SCHEME, has_wildcards
from tmqp_server.doors.names import DoorNames

__all__ = ["Place", "path_of", "place_of", "places_of", "seen_by_others"]

_QUEUE: Final = "/queue/"
_TOPIC: Final = "/topic/"
_TEMPORARY: Final[dict[str, str]] = {
    "/temp-queue/": "temp-queue://",
    "/temp-topic/": "temp-topic://",
}
_REMOTE: Final[dict[str, str]] = {
    "/remote-temp-queue/": "temp-queue://",
    "/remote-temp-topic/": "temp-topic://",
}


@final
class Place:
    """A destination: its ``channel``, whether it ``is_topic`` and ``is_temporary``, and whether the
    client may create it (``own``).  ``pattern`` is its name if that has wildcards, else empty."""

    __slots__ = ("channel", "destination", "is_temporary", "is_topic", "own", "pattern")

    def __init__(
        self, destination: str, channel: str, *, is_topic: bool, is_temporary: bool, own: bool
    ) -> None:
        self.destination = destination
        self.channel = channel
        self.is_topic = is_topic
        self.is_temporary = is_temporary
        self.own = own
        name = destination.split("/", 2)[-1]
        self.pattern = name if has_wildcards(name) else ""


def places_of(destination: str, connection: str, names: DoorNames) -> list[Place]:
    """The places of a destination; several if it has commas.

    Each part may have a prefix, as in ``/queue/A,/topic/B``; a part without one has that of the
    previous part.

    :param connection: the name of the client's connection.
    :raises ValueError: for a destination that is not supported; the text says why.
    """
    if "," not in destination:
        return [place_of(destination, connection, names)]
    parts = destination.split(",")
    if len(parts) > MAX_COMPOSITE:
        raise ValueError(f"a destination can name at most {MAX_COMPOSITE} others")
    found: dict[str, Place] = {}
    kind = _QUEUE
    for part in parts:
        name = part.strip()
        if name.startswith("/"):
            kind = "/".join(name.split("/")[:2]) + "/"
        else:
            name = kind + name
        place = place_of(name, connection, names)
        found.setdefault(place.channel, place)
    return list(found.values())


def place_of(destination: str, connection: str, names: DoorNames) -> Place:
    """The place of a single destination.

    :param connection: the name of the client's connection.
    :raises ValueError: for a destination that is not supported; the text says why.
    """
    if destination and not destination.startswith("/"):
        destination = _QUEUE + destination
    for prefix in (_QUEUE, _TOPIC):
        if destination.startswith(prefix):
            name = destination[len(prefix) :]
            _check(name, destination)
            is_topic = prefix == _TOPIC
            said = TOPIC_SCHEME + name if is_topic else name
            channel = names.exact_channel(said.encode())
            return Place(destination, channel, is_topic=is_topic, is_temporary=False, own=True)
    for table, own in ((_TEMPORARY, True), (_REMOTE, False)):
        for prefix, scheme in table.items():
            if destination.startswith(prefix):
                name = destination[len(prefix) :]
                _check(name, destination)
                said = f"{scheme}{connection}/{name}" if own else scheme + name
                channel = names.exact_channel(said.encode())
                is_topic = scheme.startswith("temp-topic")
                return Place(destination, channel, is_topic=is_topic, is_temporary=True, own=own)
    raise ValueError(
        f"there is no destination {destination[:64]!r}: it begins with /queue/, /topic/,"
        " /temp-queue/ or /temp-topic/"
    )


def _check(name: str, destination: str) -> None:
    """Refuse names that are empty, or have a different meaning in ActiveMQ.

    :raises ValueError: for such a name; the text says why.
    """
    if not name:
        raise ValueError(f"the destination {destination!r} has no name")
    if "?" in name:
        raise ValueError(f"options of a destination belong in headers: {destination[:64]!r}")
    if has_wildcards(name) and not destination.startswith((_QUEUE, _TOPIC)):
        raise ValueError(f"temporary destinations have no wildcards: {destination[:64]!r}")


def seen_by_others(destination: str, connection: str) -> str:
    """The name that other clients use for a connection's temporary destination; other destinations
    are unchanged."""
    for prefix in _TEMPORARY:
        if destination.startswith(prefix):
            name = destination[len(prefix) :]
            return f"/remote-{prefix[1:]}{connection}/{name}"
    return destination


def path_of(channel: str) -> str:
    """The destination for a channel, by the channel's name in other protocols."""
    if channel.startswith("/"):
        return channel
    for prefix, scheme in ((_TOPIC, TOPIC_SCHEME), *_REMOTE.items()):
        if channel.startswith(scheme):
            return prefix + channel[len(scheme) :]
    return _QUEUE + channel
