"""The bodies of event messages, and the model of each event (specification, "Event Types").

``node`` is the node where it happened; the specification does not know it and the original server
writes null (F130).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from tmqp.constants import STATUS_EVENT_WORDS, EventName, QueueStatus
from tmqp.models._kinds import INT32, UINT16
from tmqp.models._model import Model, flag, integer, status_word, text
from tmqp.models.information import NodeInformation

__all__ = [
    "EVENT_MODELS",
    "ChannelEvent",
    "ClientEvent",
    "MessageEvent",
    "QueueEvent",
    "SubscriptionEvent",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEvent(Model):
    """A client connected or disconnected."""

    id: str = field(metadata=text("Id"))
    name: str | None = field(default=None, metadata=text("Name"))
    type: str | None = field(default=None, metadata=text("Type"))
    node: str | None = field(default=None, metadata=text("Node"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelEvent(Model):
    """A channel was created or removed.

    ``ActiveClients`` is written as the original server does; the specification's ``ActiveClient``
    is read too (F130).
    """

    name: str = field(metadata=text("Name"))
    active_clients: int = field(default=0, metadata=integer("ActiveClients", INT32, "ActiveClient"))
    client_limit: int = field(default=0, metadata=integer("ClientLimit", INT32))
    node: str | None = field(default=None, metadata=text("Node"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionEvent(Model):
    """A client joined or left a channel."""

    channel: str = field(metadata=text("Channel"))
    client_id: str = field(metadata=text("ClientId"))
    client_name: str | None = field(default=None, metadata=text("ClientName"))
    client_type: str | None = field(default=None, metadata=text("ClientType"))
    node: str | None = field(default=None, metadata=text("Node"))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEvent(Model):
    """A queue was created, updated or removed; a removed one is reported as stopped (F93)."""

    channel: str = field(metadata=text("Channel"))
    id: int = field(metadata=integer("Id", UINT16))
    tag: str | None = field(default=None, metadata=text("Tag"))
    status: QueueStatus | None = field(
        default=None, metadata=status_word("Status", STATUS_EVENT_WORDS)
    )
    priority_messages: int = field(default=0, metadata=integer("PriorityMessages", INT32))
    messages: int = field(default=0, metadata=integer("Messages", INT32))
    node: str | None = field(default=None, metadata=text("Node"))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEvent(Model):
    """A message was produced into a queue; ``channel`` is spelt as the producer did (F130)."""

    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    id: str | None = field(default=None, metadata=text("Id"))
    saved: bool = field(default=False, metadata=flag("Saved"))
    producer_id: str | None = field(default=None, metadata=text("ProducerId"))
    producer_name: str | None = field(default=None, metadata=text("ProducerName"))
    producer_type: str | None = field(default=None, metadata=text("ProducerType"))


#: The model of each event's body.  The specification has none for the two events about nodes; here
#: it is the node as the list of nodes has it.
EVENT_MODELS: Final[Mapping[str, type[Model]]] = MappingProxyType(
    {
        EventName.CLIENT_CONNECTED: ClientEvent,
        EventName.CLIENT_DISCONNECTED: ClientEvent,
        EventName.CLIENT_JOINED: SubscriptionEvent,
        EventName.CLIENT_LEFT: SubscriptionEvent,
        EventName.CHANNEL_CREATED: ChannelEvent,
        EventName.CHANNEL_REMOVED: ChannelEvent,
        EventName.QUEUE_CREATED: QueueEvent,
        EventName.QUEUE_UPDATED: QueueEvent,
        EventName.QUEUE_REMOVED: QueueEvent,
        EventName.MESSAGE_PRODUCED: MessageEvent,
        EventName.NODE_CONNECTED: NodeInformation,
        EventName.NODE_DISCONNECTED: NodeInformation,
    }
)
