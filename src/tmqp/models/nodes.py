"""The bodies about decisions between nodes (F63) and about the server itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from tmqp.models._kinds import UINT16, UINT63
from tmqp.models._model import Model, flag, integer, text

__all__ = ["NodeDecision", "ServerInformation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDecision(Model):
    """A queue of another node has settled a message; the body of 641.

    ``acknowledged`` says whether the consumer accepted it.
    """

    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    message_id: str = field(metadata=text("MessageId"))
    acknowledged: bool = field(default=True, metadata=flag("Acknowledged"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInformation(Model):
    """Information about the server that answers; the answer of 703, an extension.

    ``time_ms`` is its clock in milliseconds since 1970, as in its other answers.  ``memory_bytes``
    is the part of ``max_memory_bytes`` that messages, and everything that clients created, take.
    """

    version: str = field(metadata=text("Version"))
    time_ms: int = field(default=0, metadata=integer("Time", UINT63))
    clients: int = field(default=0, metadata=integer("Clients", UINT63))
    max_clients: int = field(default=0, metadata=integer("MaxClients", UINT63))
    memory_bytes: int = field(default=0, metadata=integer("Memory", UINT63))
    max_memory_bytes: int = field(default=0, metadata=integer("MaxMemory", UINT63))
