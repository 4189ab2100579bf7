"""The bodies of answers: information about channels, queues, nodes, clients and routers.

Names are read in any case and missing numbers are zero, as the original client reads them; only the
name or id of the channel, queue, client or router is required.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tmqp.constants import STATUS_INFORMATION_WORDS, QueueStatus, RouteMethod
from tmqp.models._kinds import INT32, INT64, LIMIT31, UINT16, UINT31, UINT63
from tmqp.models._model import (
    MAX_LIST_BYTES,
    Model,
    address,
    extension,
    flag,
    integer,
    integers,
    numbered,
    status_word,
    text,
)

__all__ = [
    "ChannelInformation",
    "ClientInformation",
    "NodeInformation",
    "QueueInformation",
    "RouterInformation",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInformation(Model):
    """One channel; answer of 605 and item of the answer of 606 (F52, F67).

    ``allowed_queues`` is None if every queue id is allowed.  A limit of 0 means no limit.  The
    properties from ``lifetime`` on are extensions of this implementation, None if unknown;
    ``owner`` is the client with which the channel ends.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES  # 65,536 queue ids twice need 786 KB

    name: str = field(metadata=text("Name"))
    queues: tuple[int, ...] = field(default=(), metadata=integers("Queues", UINT16))
    allow_multiple_queues: bool = field(default=False, metadata=flag("AllowMultipleQueues"))
    allowed_queues: tuple[int, ...] | None = field(
        default=None, metadata=integers("AllowedQueues", UINT16)
    )
    only_first_acquirer: bool = field(default=False, metadata=flag("OnlyFirstAcquirer"))
    request_acknowledge: bool = field(default=False, metadata=flag("RequestAcknowledge"))
    acknowledge_timeout_ms: int = field(default=0, metadata=integer("AcknowledgeTimeout", INT32))
    message_timeout_ms: int = field(default=0, metadata=integer("MessageTimeout", INT32))
    use_message_id: bool = field(default=True, metadata=flag("UseMessageId"))
    wait_for_acknowledge: bool = field(default=False, metadata=flag("WaitForAcknowledge"))
    hide_client_names: bool = field(default=False, metadata=flag("HideClientNames"))
    active_clients: int = field(default=0, metadata=integer("ActiveClients", INT32))
    client_limit: int = field(default=0, metadata=integer("ClientLimit", INT32))
    queue_limit: int = field(default=0, metadata=integer("QueueLimit", INT32))
    destroy_when_empty: bool = field(default=False, metadata=flag("DestroyWhenEmpty"))
    lifetime: str | None = field(default=None, metadata=extension(text("Lifetime")))
    idle_timeout_ms: int | None = field(
        default=None, metadata=extension(integer("IdleTimeout", UINT31))
    )
    owner_only: bool | None = field(default=None, metadata=extension(flag("OwnerOnly")))
    single_consumer: bool | None = field(default=None, metadata=extension(flag("SingleConsumer")))
    owner: str | None = field(default=None, metadata=extension(text("Owner")))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInformation(Model):
    """One queue; answer of 615 and item of the answer of 616 (F57, F68).

    ``messages`` does not include those of high priority.  The two times are milliseconds since
    1970, 0 for never.  A limit of 0 means no limit.  The properties from ``durable`` on are
    extensions of this implementation, None if unknown: ``spilled_messages`` are only on disk,
    ``dropped_messages`` found no room or could no longer be read, ``released_messages`` counts the
    deliveries that consumers returned, ``deferred_messages`` are not due yet.
    ``displaced_messages`` were removed to make room for others, ``dead_messages`` were moved to a
    dead letter queue, ``refused_messages`` were pushes that the queue did not accept.
    ``skipped_deliveries`` counts the messages that a slow consumer of a broadcast queue, or of a
    push queue with ``skip_slow_consumers``, missed.  ``disk_bytes`` is the size of the unsettled
    messages on disk.  ``put_back_limit`` is None for the default, 20, and -1 for no limit.
    """

    channel: str = field(metadata=text("Channel"))
    tag_name: str | None = field(default=None, metadata=text("TagName"))
    id: int = field(metadata=integer("Id", UINT16))
    priority_messages: int = field(default=0, metadata=integer("PriorityMessages", INT32))
    messages: int = field(default=0, metadata=integer("Messages", INT32))
    status: QueueStatus | None = field(
        default=None, metadata=status_word("Status", STATUS_INFORMATION_WORDS)
    )
    only_first_acquirer: bool = field(default=False, metadata=flag("OnlyFirstAcquirer"))
    request_acknowledge: bool = field(default=False, metadata=flag("RequestAcknowledge"))
    acknowledge_timeout_ms: int = field(default=0, metadata=integer("AcknowledgeTimeout", INT32))
    message_timeout_ms: int = field(default=0, metadata=integer("MessageTimeout", INT32))
    use_message_id: bool = field(default=True, metadata=flag("UseMessageId"))
    wait_for_acknowledge: bool = field(default=False, metadata=flag("WaitForAcknowledge"))
    hide_client_names: bool = field(default=False, metadata=flag("HideClientNames"))
    received_messages: int = field(default=0, metadata=integer("ReceivedMessages", INT64))
    sent_messages: int = field(default=0, metadata=integer("SentMessages", INT64))
    deliveries: int = field(default=0, metadata=integer("Deliveries", INT64))
    negative_acks: int = field(default=0, metadata=integer("NegativeAcks", INT64))
    acks: int = field(default=0, metadata=integer("Acks", INT64))
    timeout_messages: int = field(default=0, metadata=integer("TimeoutMessages", INT64))
    saved_messages: int = field(default=0, metadata=integer("SavedMessages", INT64))
    removed_messages: int = field(default=0, metadata=integer("RemovedMessages", INT64))
    errors: int = field(default=0, metadata=integer("Errors", INT64))
    last_message_received_ms: int = field(default=0, metadata=integer("LastMessageReceived", INT64))
    last_message_sent_ms: int = field(default=0, metadata=integer("LastMessageSent", INT64))
    message_limit: int = field(default=0, metadata=integer("MessageLimit", INT32))
    message_size_limit: int = field(default=0, metadata=integer("MessageSizeLimit", INT64))
    durable: bool | None = field(default=None, metadata=extension(flag("Durable")))
    overflow: bool | None = field(default=None, metadata=extension(flag("Overflow")))
    ephemeral: bool | None = field(default=None, metadata=extension(flag("Ephemeral")))
    memory_limit: int | None = field(
        default=None, metadata=extension(integer("MemoryLimit", UINT31))
    )
    spilled_messages: int | None = field(
        default=None, metadata=extension(integer("SpilledMessages", INT64))
    )
    dropped_messages: int | None = field(
        default=None, metadata=extension(integer("DroppedMessages", INT64))
    )
    released_messages: int | None = field(
        default=None, metadata=extension(integer("ReleasedMessages", INT64))
    )
    displaced_messages: int | None = field(
        default=None, metadata=extension(integer("DisplacedMessages", INT64))
    )
    dead_messages: int | None = field(
        default=None, metadata=extension(integer("DeadMessages", INT64))
    )
    deferred_messages: int | None = field(
        default=None, metadata=extension(integer("DeferredMessages", INT64))
    )
    refused_messages: int | None = field(
        default=None, metadata=extension(integer("RefusedMessages", INT64))
    )
    skipped_deliveries: int | None = field(
        default=None, metadata=extension(integer("SkippedDeliveries", INT64))
    )
    bytes_limit: int | None = field(default=None, metadata=extension(integer("BytesLimit", UINT63)))
    disk_limit_bytes: int | None = field(
        default=None, metadata=extension(integer("DiskLimitBytes", UINT63))
    )
    disk_bytes: int | None = field(default=None, metadata=extension(integer("DiskBytes", INT64)))
    when_full: str | None = field(default=None, metadata=extension(text("WhenFull")))
    group_keys: str | None = field(default=None, metadata=extension(text("GroupKeys")))
    priorities: str | None = field(default=None, metadata=extension(text("Priorities")))
    skip_slow_consumers: bool | None = field(
        default=None, metadata=extension(flag("SkipSlowConsumers"))
    )
    expired_to_dead_letter: bool | None = field(
        default=None, metadata=extension(flag("ExpiredToDeadLetter"))
    )
    dead_letter_queue: str | None = field(
        default=None, metadata=extension(address("DeadLetterQueue"))
    )
    put_back_limit: int | None = field(
        default=None, metadata=extension(integer("PutBackLimit", LIMIT31))
    )
    retain_bytes: int | None = field(
        default=None, metadata=extension(integer("RetainBytes", UINT63))
    )
    retain_time_ms: int | None = field(
        default=None, metadata=extension(integer("RetainTime", UINT63))
    )
    retain_for_readers: bool | None = field(
        default=None, metadata=extension(flag("RetainForReaders"))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInformation(Model):
    """One node of a cluster; item of the answer of 621 (F59, F69).

    A server of a group with one log has a ``role`` (``leader``, ``standby``, ``claiming``), the
    number of the leader's claim (``epoch``), the last entry of the log that it has (``applied``),
    and the number of entries that it lacks (``behind``); its ``host`` is its address for clients.
    """

    id: str | None = field(default=None, metadata=text("Id"))
    name: str | None = field(default=None, metadata=text("Name"))
    host: str | None = field(default=None, metadata=text("Host"))
    slave: bool = field(default=False, metadata=flag("Slave"))
    connected: bool = field(default=False, metadata=flag("Connected"))
    lifetime_ms: int = field(default=0, metadata=integer("Lifetime", INT64))
    role: str | None = field(default=None, metadata=extension(text("Role")))
    shard: int | None = field(default=None, metadata=extension(integer("Shard", LIMIT31)))
    epoch: int | None = field(default=None, metadata=extension(integer("Epoch", UINT63)))
    applied: int | None = field(default=None, metadata=extension(integer("Applied", UINT63)))
    behind: int | None = field(default=None, metadata=extension(integer("Behind", UINT63)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInformation(Model):
    """One client; item of the answers of 607 and 631 (F52, F59, F69).

    ``online_ms`` counts from connecting (631) or from joining the channel (607).
    """

    id: str = field(metadata=text("Id"))
    name: str | None = field(default=None, metadata=text("Name"))
    type: str | None = field(default=None, metadata=text("Type"))
    online_ms: int = field(default=0, metadata=integer("Online", INT64))
    is_authenticated: bool = field(default=False, metadata=flag("IsAuthenticated"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterInformation(Model):
    """One router; item of the answer of 651 (F60, F69).

    ``method`` is a :class:`tmqp.constants.RouteMethod` if the number is one of these; the original
    server also accepts and reports any other number (F60), which is then a plain integer.
    """

    name: str = field(metadata=text("Name"))
    is_enabled: bool = field(default=False, metadata=flag("IsEnabled"))
    method: int = field(
        default=RouteMethod.DISTRIBUTE, metadata=numbered("Method", RouteMethod, strict=False)
    )
