"""The engine's facts: what happened to which client, channel, queue or message; one small record
for each kind.

The engine reports a fact with the effect ``Notify`` at the moment it becomes true, so the order of
effects is the order of events: a client is reported as connected before it is accepted (F36), a
channel as removed before the operation is answered (F51), a message as produced before it is
delivered (F103).  The engine reports only kinds whose bit is set in the broker's mask;
``MessageProduced`` is initially off, because it would cost as much as the message itself.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import EventName
from tmqp_server.engine.records import Record

__all__ = [
    "ALL_EVENTS",
    "CHANNEL_CREATED",
    "CHANNEL_REMOVED",
    "CLIENT_CONNECTED",
    "CLIENT_DISCONNECTED",
    "CLIENT_JOINED",
    "CLIENT_LEFT",
    "LIFECYCLE_EVENTS",
    "MESSAGE_PRODUCED",
    "NODE_CONNECTED",
    "NODE_DISCONNECTED",
    "NO_EVENTS",
    "QUEUE_CREATED",
    "QUEUE_REMOVED",
    "QUEUE_UPDATED",
    "SERVER_EVENTS",
    "ChannelFact",
    "ClientFact",
    "Fact",
    "MessageFact",
    "NodeFact",
    "QueueFact",
    "SubscriptionFact",
    "event_name",
]

CLIENT_CONNECTED: Final = 1
CLIENT_DISCONNECTED: Final = 2
CLIENT_JOINED: Final = 4
CLIENT_LEFT: Final = 8
CHANNEL_CREATED: Final = 16
CHANNEL_REMOVED: Final = 32
QUEUE_CREATED: Final = 64
QUEUE_UPDATED: Final = 128
QUEUE_REMOVED: Final = 256
MESSAGE_PRODUCED: Final = 512
NODE_CONNECTED: Final = 1024
NODE_DISCONNECTED: Final = 2048

NO_EVENTS: Final = 0
#: Everything except messages produced.
LIFECYCLE_EVENTS: Final = 3583
#: The events that are not about a particular channel: 1 + 2 + 16 + 32 + 1024 + 2048.
SERVER_EVENTS: Final = 3123
ALL_EVENTS: Final = 4095

# The specification's names ("Event Types"), by the number of the bit.
_NAMES: Final[tuple[str, ...]] = (
    EventName.CLIENT_CONNECTED.value,
    EventName.CLIENT_DISCONNECTED.value,
    EventName.CLIENT_JOINED.value,
    EventName.CLIENT_LEFT.value,
    EventName.CHANNEL_CREATED.value,
    EventName.CHANNEL_REMOVED.value,
    EventName.QUEUE_CREATED.value,
    EventName.QUEUE_UPDATED.value,
    EventName.QUEUE_REMOVED.value,
    EventName.MESSAGE_PRODUCED.value,
    EventName.NODE_CONNECTED.value,
    EventName.NODE_DISCONNECTED.value,
)


def event_name(event: int) -> str:
    """The specification's name of one event bit (``tmqp.constants.EventName``)."""
    return _NAMES[event.bit_length() - 1]


class Fact(Record):
    """The subject of an event; each kind of event has one of the classes below."""

    __slots__ = ()


class ClientFact(Fact):
    """A client connected or disconnected (F130: ClientEvent)."""

    __slots__ = ("client_id", "name", "client_type")

    def __init__(self, client_id: str, name: str | None, client_type: str | None) -> None:
        self.client_id = client_id
        self.name = name
        self.client_type = client_type


class ChannelFact(Fact):
    """A channel was created or removed (F130: ChannelEvent)."""

    __slots__ = ("name", "active_clients", "client_limit")

    def __init__(self, name: str, active_clients: int, client_limit: int) -> None:
        self.name = name
        self.active_clients = active_clients
        self.client_limit = client_limit


class SubscriptionFact(Fact):
    """A client joined or left a channel (F130: SubscriptionEvent)."""

    __slots__ = ("channel", "client_id", "client_name", "client_type")

    def __init__(
        self, channel: str, client_id: str, client_name: str | None, client_type: str | None
    ) -> None:
        self.channel = channel
        self.client_id = client_id
        self.client_name = client_name
        self.client_type = client_type


class QueueFact(Fact):
    """A queue was created, updated or removed (F130: QueueEvent); a removed queue has the status
    stopped (F93)."""

    __slots__ = ("channel", "queue_id", "tag", "status", "priority_messages", "messages")

    def __init__(
        self,
        channel: str,
        queue_id: int,
        tag: str | None,
        status: int,
        priority_messages: int,
        messages: int,
    ) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.tag = tag
        self.status = status
        self.priority_messages = priority_messages
        self.messages = messages


class MessageFact(Fact):
    """A message was produced (F130: MessageEvent); ``channel`` has the producer's spelling."""

    __slots__ = (
        "channel",
        "queue_id",
        "message_id",
        "saved",
        "producer_id",
        "producer_name",
        "producer_type",
    )

    def __init__(
        self,
        channel: str,
        queue_id: int,
        message_id: str,
        saved: bool,
        producer_id: str,
        producer_name: str | None,
        producer_type: str | None,
    ) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.message_id = message_id
        self.saved = saved
        self.producer_id = producer_id
        self.producer_name = producer_name
        self.producer_type = producer_type


class NodeFact(Fact):
    """A node connected or disconnected (F131); ``slave`` is as in ``NodeSnapshot``."""

    __slots__ = ("node_id", "name", "host", "slave")

    def __init__(self, node_id: str, name: str | None, host: str, slave: bool) -> None:
        self.node_id = node_id
        self.name = name
        self.host = host
        self.slave = slave
