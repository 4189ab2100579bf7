"""The bodies of requests: options of queues and channels, and bindings of routers.

Options are read with the exact names (F71).  Any option may be missing, which means that the
server's value applies; only UseMessageId is always present (F56, F70), because the original cannot
omit it.  Negative timeouts and limits have no meaning and are refused.

*An option of a queue or a channel is declared only here*: its names, its type, its default, and its
meaning.  The command line, the server's configuration, its engine's records, its stores and the
documents derive from these declarations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tmqp.constants import BindingInteraction, BindingType, QueueStatus, RouteMethod
from tmqp.extensions import (
    KEYS_NONE,
    KEYS_STICKY,
    KEYS_STRICT,
    LIFETIME_CONSUMERS,
    LIFETIME_OWNER,
    PRIORITIES_TEN,
    PRIORITIES_TWO,
    WHEN_FULL_DEAD_LETTER,
    WHEN_FULL_DROP_OLDEST,
    WHEN_FULL_REFUSE,
)
from tmqp.models._kinds import INT32, LIMIT31, UINT16, UINT31, UINT63
from tmqp.models._model import (
    Model,
    address,
    extension,
    flag,
    integer,
    integers,
    numbered,
    option,
    status_number,
    text,
)

__all__ = ["BindingInformation", "ChannelOptions", "QueueOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions(Model):
    """ChannelQueueOptions of the specification: the body of requests to create or update a queue
    (F54, F56).

    None means "not given"; only ``use_message_id`` is True if not given (F56).  The options from
    ``message_size_limit`` (in bytes) on are extensions of this implementation.
    """

    ignores_case: ClassVar[bool] = False

    send_only_first_acquirer: bool | None = field(
        default=None,
        metadata=option(
            flag("SendOnlyFirstAcquirer"),
            False,
            "Send each message to one consumer, the first that can take it.",
        ),
    )
    request_acknowledge: bool | None = field(
        default=None,
        metadata=option(flag("RequestAcknowledge"), True, "Ask consumers to acknowledge messages."),
    )
    acknowledge_timeout_ms: int | None = field(
        default=None,
        metadata=option(
            integer("AcknowledgeTimeout", UINT31),
            15_000,
            "How long a consumer may take to acknowledge; 0: the server's limit.",
        ),
    )
    message_timeout_ms: int | None = field(
        default=None,
        metadata=option(
            integer("MessageTimeout", UINT31),
            0,
            "How long a message may wait in the queue; 0: for ever.",
        ),
    )
    use_message_id: bool = field(
        default=True,
        metadata=option(flag("UseMessageId"), True, "Give an id to messages without one."),
    )
    wait_for_acknowledge: bool | None = field(
        default=None,
        metadata=option(
            flag("WaitForAcknowledge"),
            False,
            "Send the next message only after the previous one is acknowledged.",
        ),
    )
    hide_client_names: bool | None = field(
        default=None,
        metadata=option(flag("HideClientNames"), False, "Hide the producer's id from consumers."),
    )
    status: QueueStatus | None = field(
        default=None,
        metadata=option(
            status_number("Status"), QueueStatus.PUSH, "How the queue delivers messages."
        ),
    )
    message_delivery_handler: str | None = field(
        default=None,
        metadata=option(
            text("MessageDeliveryHandler"),
            "ack-if-asked",
            "The delivery handler that decides about its messages.",
            own="delivery_handler",
        ),
    )
    message_limit: int | None = field(
        default=None,
        metadata=option(
            integer("MessageLimit", UINT31), 0, "How many messages may wait; 0: the server's limit."
        ),
    )
    message_size_limit: int | None = field(
        default=None,
        metadata=option(
            extension(integer("MessageSizeLimit", UINT31)),
            0,
            "The largest message in bytes; 0: the server's limit.",
        ),
    )
    bytes_limit: int | None = field(
        default=None,
        metadata=option(
            extension(integer("BytesLimit", UINT63)),
            0,
            "How many bytes of messages may be in memory, waiting and in flight; 0: the server's"
            " limit.",
        ),
    )
    disk_limit_bytes: int | None = field(
        default=None,
        metadata=option(
            extension(integer("DiskLimitBytes", UINT63)),
            0,
            "How many bytes of messages that are not settled may be on disk; 0: no limit.",
        ),
    )
    when_full: str | None = field(
        default=None,
        metadata=option(
            extension(text("WhenFull")),
            WHEN_FULL_REFUSE,
            "What happens when a queue is full: `refuse` the push, or `drop-oldest` or "
            "`dead-letter` the oldest messages.",
            words=(WHEN_FULL_REFUSE, WHEN_FULL_DROP_OLDEST, WHEN_FULL_DEAD_LETTER),
        ),
    )
    group_keys: str | None = field(
        default=None,
        metadata=option(
            extension(text("GroupKeys")),
            KEYS_NONE,
            "How round robin treats messages with the same key: `none`, like all others; `sticky`,"
            " all go to one consumer; `strict`, one is processed at a time.",
            words=(KEYS_NONE, KEYS_STICKY, KEYS_STRICT),
        ),
    )
    priorities: str | None = field(
        default=None,
        metadata=option(
            extension(text("Priorities")),
            PRIORITIES_TWO,
            "How many priorities order the queue: `two`, high before the rest; `ten`, from 9 down"
            " to 0.",
            words=(PRIORITIES_TWO, PRIORITIES_TEN),
        ),
    )
    skip_slow_consumers: bool | None = field(
        default=None,
        metadata=option(
            extension(flag("SkipSlowConsumers")),
            False,
            "Push queues: let a consumer that reads too slowly miss messages, so that the others do"
            " not wait for it.",
        ),
    )
    expired_to_dead_letter: bool | None = field(
        default=None,
        metadata=option(
            extension(flag("ExpiredToDeadLetter")),
            False,
            "Move messages that expire to the dead letter queue.",
        ),
    )
    dead_letter_queue: str | None = field(
        default=None,
        metadata=option(
            extension(address("DeadLetterQueue")),
            None,
            "The queue for messages that were put back too often, expired or made way in a full"
            " queue; without one they are dropped.",
            own="dead_letter",
        ),
    )
    put_back_limit: int | None = field(
        default=None,
        metadata=option(
            extension(integer("PutBackLimit", LIMIT31)),
            20,
            "How often a message is put back before it is given up; 0: the server's limit;"
            " -1: no limit.",
        ),
    )
    durable: bool | None = field(
        default=None,
        metadata=option(
            extension(flag("Durable")),
            False,
            "Write every message to disk; the server needs a data directory (--data).",
        ),
    )
    overflow: bool | None = field(
        default=None,
        metadata=option(
            extension(flag("Overflow")),
            False,
            "Keep messages on disk that do not fit into memory.",
        ),
    )
    ephemeral: bool | None = field(
        default=None,
        metadata=option(
            extension(flag("Ephemeral")),
            False,
            "Never use the disk; drop messages that do not fit into memory.",
        ),
    )
    memory_limit: int | None = field(
        default=None,
        metadata=option(
            extension(integer("MemoryLimit", UINT31)),
            0,
            "How many waiting messages of a priority, and how many deferred ones, stay in memory;"
            " 0: the server's limit.",
        ),
    )
    retain_bytes: int | None = field(
        default=None,
        metadata=option(
            extension(integer("RetainBytes", UINT63)),
            0,
            "How many bytes of settled messages to keep for readers; 0: none.",
        ),
    )
    retain_time_ms: int | None = field(
        default=None,
        metadata=option(
            extension(integer("RetainTime", UINT63)),
            0,
            "How long to keep settled messages for readers; 0: not at all.",
            older="retain_ms",
        ),
    )
    retain_for_readers: bool | None = field(
        default=None,
        metadata=option(
            extension(flag("RetainForReaders")),
            False,
            "Keep messages until every cursor has passed them.",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOptions(QueueOptions):
    """The body of requests to create or update a channel: its own options, and the initial options
    of its queues (F20, F50, F70).

    The event handler's key is written as ``ChannelEventHandler``, the only name the original
    client and server know; the specification's ``EventHandler`` is read too.
    """

    allow_multiple_queues: bool | None = field(
        default=None,
        metadata=option(
            flag("AllowMultipleQueues"), True, "Allow more than one queue in the channel."
        ),
    )
    allowed_queues: tuple[int, ...] | None = field(
        default=None,
        metadata=option(
            integers("AllowedQueues", UINT16),
            None,
            "The ids that its queues may have; by default any.",
        ),
    )
    event_handler: str | None = field(
        default=None,
        metadata=option(
            text("ChannelEventHandler", "EventHandler"),
            "",
            "The event handler of the channel.",
        ),
    )
    authenticator: str | None = field(
        default=None,
        metadata=option(
            text("Authenticator"), "", "The authenticator that decides about the channel."
        ),
    )
    client_limit: int | None = field(
        default=None,
        metadata=option(
            integer("ClientLimit", UINT31), 0, "How many clients may join; 0: no limit."
        ),
    )
    queue_limit: int | None = field(
        default=None,
        metadata=option(
            integer("QueueLimit", UINT31), 0, "How many queues; 0: the server's limit."
        ),
    )
    destroy_when_empty: bool | None = field(
        default=None,
        metadata=option(
            flag("DestroyWhenEmpty"),
            False,
            "Remove empty queues, and the channel with the last one, while no client has joined.",
        ),
    )
    lifetime: str | None = field(
        default=None,
        metadata=option(
            extension(text("Lifetime")),
            "",
            "When the channel ends: `owner`, with the connection of the client that created it; "
            "`consumers`, when the last client leaves it; empty: never.",
            words=("", LIFETIME_OWNER, LIFETIME_CONSUMERS),
        ),
    )
    idle_timeout_ms: int | None = field(
        default=None,
        metadata=option(
            extension(integer("IdleTimeout", UINT31)),
            0,
            "Remove the channel after this time without use; 0: never.",
        ),
    )
    owner_only: bool | None = field(
        default=None,
        metadata=option(
            extension(flag("OwnerOnly")),
            False,
            "Let only the client that created the channel consume from it.",
        ),
    )
    single_consumer: bool | None = field(
        default=None,
        metadata=option(
            extension(flag("SingleConsumer")),
            False,
            "If messages go to one consumer each, send all to the same one while the others stand "
            "by.",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingInformation(Model):
    """A binding of a router: the body of a request to add it, and item of the list of bindings
    (F60, F121).

    ``target`` is a channel (queue binding), a direct message's target (direct), a URL (HTTP) or a
    tag filter (tag).  ``content_type`` is the queue id, or replaces the message's own content type;
    None keeps it.  Bindings are tried from the highest priority to the lowest (F122).
    """

    name: str = field(metadata=text("Name"))
    target: str | None = field(default=None, metadata=text("Target"))
    content_type: int | None = field(default=None, metadata=integer("ContentType", UINT16))
    priority: int = field(default=0, metadata=integer("Priority", INT32))
    interaction: BindingInteraction = field(
        default=BindingInteraction.NONE, metadata=numbered("Interaction", BindingInteraction)
    )
    binding_type: BindingType = field(
        default=BindingType.DIRECT, metadata=numbered("BindingType", BindingType)
    )
    method: RouteMethod = field(
        default=RouteMethod.DISTRIBUTE, metadata=numbered("Method", RouteMethod)
    )
