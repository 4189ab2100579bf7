"""Destinations of STOMP as channels.

A queue ``N`` is the channel of that name, so that other protocols share it; a destination that does
not begin with a slash is a queue, as for ActiveMQ.  The others have names
of their own, ``topic://N`` and so on, since a queue and a topic of one name are different things.
A temporary destination has the name of its connection in its channel's, for others to write to it:
the client calls it ``/temp-queue/N``, and others ``/remote-temp-queue/CONNECTION/N``.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.names import DoorNames

__all__ = ["Place", "place_of", "seen_by_others"]

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
    """A destination: the ``channel`` that it is, whether it ``is_topic`` and ``is_temporary``, and
    whether it is the client's ``own``, who makes it."""

    __slots__ = ("channel", "is_temporary", "is_topic", "own")

    def __init__(self, channel: str, *, is_topic: bool, is_temporary: bool, own: bool) -> None:
        self.channel = channel
        self.is_topic = is_topic
        self.is_temporary = is_temporary
        self.own = own


def place_of(destination: str, connection: str, names: DoorNames) -> Place:
    """What a destination means.

    :param connection: the name of the client's connection.
    :raises ValueError: for what is none that is served; the text says why.
    """
    if destination and not destination.startswith("/"):
        return place_of(_QUEUE + destination, connection, names)
    for prefix in (_QUEUE, _TOPIC):
        if destination.startswith(prefix):
            name = destination[len(prefix) :]
            _check(name, destination)
            is_topic = prefix == _TOPIC
            said = f"topic://{name}" if is_topic else name
            channel = names.exact_channel(said.encode())
            return Place(channel, is_topic=is_topic, is_temporary=False, own=True)
    for table, own in ((_TEMPORARY, True), (_REMOTE, False)):
        for prefix, scheme in table.items():
            if destination.startswith(prefix):
                name = destination[len(prefix) :]
                _check(name, destination)
                said = f"{scheme}{connection}/{name}" if own else scheme + name
                channel = names.exact_channel(said.encode())
                is_topic = scheme.startswith("temp-topic")
                return Place(channel, is_topic=is_topic, is_temporary=True, own=own)
    raise ValueError(
        f"there is no destination {destination[:64]!r}: it begins with /queue/, /topic/,"
        " /temp-queue/ or /temp-topic/"
    )


def _check(name: str, destination: str) -> None:
    """Refuse what has another meaning at ActiveMQ.

    :raises ValueError: for it.
    """
    if not name:
        raise ValueError(f"the destination {destination!r} has no name")
    if "," in name:
        raise ValueError(f"several destinations at once are not served: {destination[:64]!r}")
    if "?" in name:
        raise ValueError(f"options of a destination belong in headers: {destination[:64]!r}")
    parts = name.split(".")
    if "*" in parts or ">" in parts:
        raise ValueError(f"destinations with wildcards are not served: {destination[:64]!r}")


def seen_by_others(destination: str, connection: str) -> str:
    """A temporary destination of a connection as others name it; any other as it is."""
    for prefix in _TEMPORARY:
        if destination.startswith(prefix):
            name = destination[len(prefix) :]
            return f"/remote-{prefix[1:]}{connection}/{name}"
    return destination
