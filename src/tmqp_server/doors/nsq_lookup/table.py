"""The registrations of a lookupd: which producer has which topic and channel (N136 to N147).

Everything is in memory only, as in the original: an nsqd registers its topics again when it
reconnects.  Times are arguments, in seconds of one clock.  Lists are sorted; the original's have no
order.

A topic that was registered stays known without producers, until it is deleted; ephemeral names are
removed with their last producer (N140).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from tmqp_server.doors.tables import check_positive
from tmqp_wires.nsq.lookup import Announce
from tmqp_wires.nsq.names import is_ephemeral

__all__ = ["CLIENT", "LookupLimits", "LookupTable", "Producer", "Registration", "TableFullError"]

#: The topic of the registration that each producer has from its IDENTIFY on; no topic is empty.
CLIENT: Final = b""

_NEVER: Final = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupLimits:
    """How much a lookupd keeps, and for how long.

    :raises ValueError: when a value is not positive.
    """

    max_registrations: int = 100_000
    """Topics and channels in the directory; another one is refused."""

    max_entries: int = 1_000_000
    """Registrations of all producers together; another one is refused."""

    inactive_producer_timeout_s: float = 300.0
    """Seconds of silence after which a producer is left out of answers (N147)."""

    tombstone_lifetime_s: float = 45.0
    """Seconds for which a tombstone hides a producer of a topic (N147)."""

    def __post_init__(self) -> None:
        check_positive(self)


class TableFullError(Exception):
    """A limit of the table is reached."""


@final
class Producer:
    """A connected nsqd.

    Attributes: ``number``, that of its connection; ``peer``, its address; ``about``, its IDENTIFY;
    ``seen_s``, when it last sent something.
    """

    __slots__ = ("about", "number", "peer", "seen_s")

    def __init__(self, number: int, peer: str, about: Announce, now: float) -> None:
        self.number = number
        self.peer = peer
        self.about = about
        self.seen_s = now

    @property
    def node(self) -> str:
        """Its name for tombstones: its address and HTTP port."""
        return f"{self.about.broadcast_address}:{self.about.http_port}"


@final
class Registration:
    """The producers of one topic or channel.

    Attributes: ``tombstones``, by producer when it got a tombstone, negative for never.
    """

    __slots__ = ("tombstones",)

    def __init__(self) -> None:
        self.tombstones: dict[Producer, float] = {}


@final
class LookupTable:
    """All registrations of one lookupd.

    Attributes: ``producers``, by the number of their connection; ``topics``, the registrations by
    topic; ``channels``, by topic and channel.
    """

    __slots__ = ("_entries", "_known", "_of", "channels", "limits", "producers", "topics")

    def __init__(self, limits: LookupLimits | None = None) -> None:
        self.limits = LookupLimits() if limits is None else limits
        self.producers: dict[int, Producer] = {}
        self.topics: dict[bytes, Registration] = {}
        self.channels: dict[bytes, dict[bytes, Registration]] = {}
        #: The registrations of each producer, so that removing it needs no search.
        self._of: dict[Producer, dict[tuple[bytes, bytes], None]] = {}
        self._entries = 0
        self._known = 0

    # -- producers ------------------------------------------------------------------------------

    def identify(self, number: int, peer: str, about: Announce, now: float) -> None:
        """Add a producer that has identified itself."""
        producer = Producer(number, peer, about, now)
        self.producers[number] = producer
        self._of[producer] = {}

    def ping(self, number: int, now: float) -> None:
        """Note that a producer is alive."""
        producer = self.producers.get(number)
        if producer is not None:
            producer.seen_s = now

    def leave(self, number: int) -> None:
        """Remove a producer whose connection has ended, with its registrations (N141)."""
        producer = self.producers.pop(number, None)
        if producer is None:
            return
        for topic, channel in list(self._of[producer]):
            self._drop(producer, topic, channel)
        del self._of[producer]

    def register(self, number: int, topic: bytes, channel: bytes) -> None:
        """Register a producer for a topic, or for a channel and its topic (N139).

        :raises TableFullError: when the table is full; nothing is registered then.
        """
        producer = self.producers[number]
        wanted = [(topic, b"")] + ([(topic, channel)] if channel else [])
        own = self._of[producer]
        self._make_room(wanted, len([each for each in wanted if each not in own]))
        for place in wanted:
            registration = self._registration(*place)
            if producer not in registration.tombstones:
                registration.tombstones[producer] = _NEVER
                own[place] = None
                self._entries += 1

    def unregister(self, number: int, topic: bytes, channel: bytes) -> None:
        """Unregister a producer from a channel, or from a topic and all its channels (N140)."""
        producer = self.producers[number]
        if channel:
            self._drop(producer, topic, channel)
            return
        for name in list(self.channels.get(topic, {})):
            self._drop(producer, topic, name)
        self._drop(producer, topic, b"")

    def _drop(self, producer: Producer, topic: bytes, channel: bytes) -> None:
        own = self._of[producer]
        if (topic, channel) not in own:
            return
        del own[topic, channel]
        self._entries -= 1
        registration = self._registration(topic, channel)
        del registration.tombstones[producer]
        if registration.tombstones or not is_ephemeral(channel or topic):
            return
        if channel:
            self.delete_channel(topic, channel)
        else:
            self._forget(self.topics.pop(topic, None), (topic, b""))

    # -- topics and channels ----------------------------------------------------------------------

    def create(self, topic: bytes, channel: bytes = b"") -> None:
        """Add a topic, or a channel and its topic, without a producer.

        :raises TableFullError: when the table is full.
        """
        wanted = [(topic, b"")] + ([(topic, channel)] if channel else [])
        self._make_room(wanted, 0)
        for place in wanted:
            self._registration(*place)

    def delete_topic(self, topic: bytes) -> None:
        """Remove a topic and its channels."""
        for channel in list(self.channels.get(topic, {})):
            self.delete_channel(topic, channel)
        self._forget(self.topics.pop(topic, None), (topic, b""))

    def delete_channel(self, topic: bytes, channel: bytes) -> bool:
        """Remove a channel; False if it was not known."""
        found = self.channels.get(topic)
        if found is None or channel not in found:
            return False
        self._forget(found.pop(channel), (topic, channel))
        if not found:
            del self.channels[topic]
        return True

    def tombstone(self, topic: bytes, node: str, now: float) -> None:
        """Hide a producer of a topic for a while: its topic is about to be deleted there."""
        registration = self.topics.get(topic)
        if registration is None:
            return
        for producer in registration.tombstones:
            if producer.node == node:
                registration.tombstones[producer] = now

    def _registration(self, topic: bytes, channel: bytes) -> Registration:
        of = self.channels.setdefault(topic, {}) if channel else self.topics
        name = channel or topic
        found = of.get(name)
        if found is None:
            found = of[name] = Registration()
            self._known += 1
        return found

    def _make_room(self, wanted: list[tuple[bytes, bytes]], entries: int) -> None:
        """Check that the limits allow the new registrations among *wanted*, and so many new
        entries.

        :raises TableFullError: when they do not.
        """
        new = len([place for place in wanted if not self._is_known(*place)])
        most = self.limits.max_registrations
        if new and self._known + new > most:
            raise TableFullError(f"at most {most} topics and channels are kept")
        if entries and self._entries + entries > self.limits.max_entries:
            raise TableFullError(f"at most {self.limits.max_entries} registrations are kept")

    def _is_known(self, topic: bytes, channel: bytes) -> bool:
        return channel in self.channels.get(topic, {}) if channel else topic in self.topics

    def _forget(self, registration: Registration | None, place: tuple[bytes, bytes]) -> None:
        """Forget the producers of a removed registration."""
        if registration is None:
            return
        self._known -= 1
        for producer in registration.tombstones:
            del self._of[producer][place]
        self._entries -= len(registration.tombstones)

    # -- questions ------------------------------------------------------------------------------

    def topic_names(self) -> list[bytes]:
        """All topics, sorted."""
        return sorted(self.topics)

    def channel_names(self, topic: bytes) -> list[bytes]:
        """The channels of a topic, sorted; empty for an unknown topic."""
        return sorted(self.channels.get(topic, ()))

    def producers_of(self, topic: bytes, now: float) -> list[Producer] | None:
        """The producers of a topic that are alive and not hidden; None for an unknown topic."""
        registration = self.topics.get(topic)
        if registration is None:
            return None
        return [
            producer
            for producer, since in registration.tombstones.items()
            if self._is_active(producer, now) and not self._is_hidden(since, now)
        ]

    def active(self, now: float) -> list[Producer]:
        """All producers that are alive."""
        return [each for each in self.producers.values() if self._is_active(each, now)]

    def topics_of(self, producer: Producer, now: float) -> list[tuple[bytes, bool]]:
        """The topics of a producer, each with whether the producer is hidden for it."""
        topics = sorted([topic for topic, channel in self._of[producer] if not channel])
        return [
            (topic, self._is_hidden(self.topics[topic].tombstones[producer], now))
            for topic in topics
        ]

    def _is_active(self, producer: Producer, now: float) -> bool:
        return now - producer.seen_s <= self.limits.inactive_producer_timeout_s

    def _is_hidden(self, since: float, now: float) -> bool:
        return since >= 0.0 and now - since < self.limits.tombstone_lifetime_s
