"""Owns the bodies that ask for something: options of queues and channels, and bindings of routers.

Options are read with the exact names (F71).  Everything in them may be missing, which means "as the
server has it"; only UseMessageId is always there (F56, F70): the original cannot leave it out.
Timeouts and limits that are negative mean nothing, and are refused rather than guessed at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tmqp.constants import BindingInteraction, BindingType, QueueStatus, RouteMethod
from tmqp.models._model import (
    INT32,
    UINT16,
    UINT31,
    UINT63,
    Model,
    extension,
    flag,
    integer,
    integers,
    numbered,
    status_number,
    text,
)

__all__ = ["BindingInformation", "ChannelOptions", "QueueOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions(Model):
    """ChannelQueueOptions of the specification: body of creating and updating a queue (F54, F56).

    None means "not given".  ``use_message_id`` alone is True when not given (F56).  From
    ``message_size_limit`` (bytes) on they are extensions of this implementation.
    """

    ignores_case: ClassVar[bool] = False

    send_only_first_acquirer: bool | None = field(
        default=None, metadata=flag("SendOnlyFirstAcquirer")
    )
    request_acknowledge: bool | None = field(default=None, metadata=flag("RequestAcknowledge"))
    acknowledge_timeout_ms: int | None = field(
        default=None, metadata=integer("AcknowledgeTimeout", UINT31)
    )
    message_timeout_ms: int | None = field(default=None, metadata=integer("MessageTimeout", UINT31))
    use_message_id: bool = field(default=True, metadata=flag("UseMessageId"))
    wait_for_acknowledge: bool | None = field(default=None, metadata=flag("WaitForAcknowledge"))
    hide_client_names: bool | None = field(default=None, metadata=flag("HideClientNames"))
    status: QueueStatus | None = field(default=None, metadata=status_number("Status"))
    message_delivery_handler: str | None = field(
        default=None, metadata=text("MessageDeliveryHandler")
    )
    message_limit: int | None = field(default=None, metadata=integer("MessageLimit", UINT31))
    message_size_limit: int | None = field(
        default=None, metadata=extension(integer("MessageSizeLimit", UINT31))
    )
    put_back_limit: int | None = field(
        default=None, metadata=extension(integer("PutBackLimit", UINT31))
    )
    durable: bool | None = field(default=None, metadata=extension(flag("Durable")))
    overflow: bool | None = field(default=None, metadata=extension(flag("Overflow")))
    ephemeral: bool | None = field(default=None, metadata=extension(flag("Ephemeral")))
    memory_limit: int | None = field(
        default=None, metadata=extension(integer("MemoryLimit", UINT31))
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
class ChannelOptions(QueueOptions):
    """Body of creating or updating a channel: its own options and those its queues start with
    (F20, F50, F70).

    The event handler's key is written as ``ChannelEventHandler``, the only name the original
    client and server know; the specification's ``EventHandler`` is read too.
    """

    allow_multiple_queues: bool | None = field(default=None, metadata=flag("AllowMultipleQueues"))
    allowed_queues: tuple[int, ...] | None = field(
        default=None, metadata=integers("AllowedQueues", UINT16)
    )
    event_handler: str | None = field(
        default=None, metadata=text("ChannelEventHandler", "EventHandler")
    )
    authenticator: str | None = field(default=None, metadata=text("Authenticator"))
    client_limit: int | None = field(default=None, metadata=integer("ClientLimit", UINT31))
    queue_limit: int | None = field(default=None, metadata=integer("QueueLimit", UINT31))
    destroy_when_empty: bool | None = field(default=None, metadata=flag("DestroyWhenEmpty"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingInformation(Model):
    """A binding of a router: body of adding one, and item of the list of them (F60, F121).

    ``target`` is a channel (queue binding), a direct message's target (direct), a URL (HTTP) or a
    tag filter (tag).  ``content_type`` is the queue id, or replaces the message's own content type;
    None leaves it as it is.  The highest priority comes first (F122).
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
