"""Owns the JSON bodies of answers and events: the engine's snapshots and facts as models.

F65-F69 for answers, F129 and F130 for events.
"""

from __future__ import annotations

from tmqp.constants import TYPE_EVENT, BindingInteraction, BindingType, QueueStatus, RouteMethod
from tmqp.frames import Frame
from tmqp.models import (
    BindingInformation,
    ChannelEvent,
    ChannelInformation,
    ClientEvent,
    ClientInformation,
    CursorInformation,
    MessageEvent,
    Model,
    NodeInformation,
    OffsetsInformation,
    QueueEvent,
    QueueInformation,
    RouterInformation,
    SubscriptionEvent,
)
from tmqp_server.engine.effects import Inform
from tmqp_server.engine.events import (
    NODE_CONNECTED,
    ChannelFact,
    ClientFact,
    Fact,
    MessageFact,
    NodeFact,
    QueueFact,
    SubscriptionFact,
    event_name,
)
from tmqp_server.engine.router_commands import BindingOptions
from tmqp_server.engine.snapshots import (
    ChannelSnapshot,
    ClientSnapshot,
    CursorSnapshot,
    NodeSnapshot,
    OffsetsSnapshot,
    QueueSnapshot,
    RouterSnapshot,
)

__all__ = ["AnswerTooLargeError", "event_frame", "rendered"]


class AnswerTooLargeError(Exception):
    """The answer would be larger than a message may be."""


def rendered(body: object, wall_clock_offset_s: float, most_bytes: int) -> bytes:
    """The payload of an answer: empty for None, bytes as they are, else a JSON object or array.

    :param wall_clock_offset_s: what to add to the engine's times to get Unix time.
    :param most_bytes: the largest payload; a list is not worked out beyond it.
    :raises AnswerTooLargeError: when it would be larger.
    """
    if body is None:
        return b""
    if isinstance(body, bytes):
        if len(body) > most_bytes:
            raise AnswerTooLargeError
        return body
    if not isinstance(body, (list, tuple)):
        payload = _model(body, wall_clock_offset_s).to_json()
        if len(payload) > most_bytes:
            raise AnswerTooLargeError
        return payload
    items: list[bytes] = []
    size = 2
    for item in body:
        items.append(_model(item, wall_clock_offset_s).to_json())
        size += len(items[-1]) + 1
        if size - 1 > most_bytes:  # the last item has no comma behind it
            raise AnswerTooLargeError
    return b"[" + b",".join(items) + b"]"


def _model(item: object, offset_s: float) -> Model:
    if isinstance(item, QueueSnapshot):
        return _queue(item, offset_s)
    if isinstance(item, ChannelSnapshot):
        return _channel(item)
    if isinstance(item, RouterSnapshot):
        return RouterInformation(name=item.name, is_enabled=item.enabled, method=item.method)
    if isinstance(item, BindingOptions):
        return BindingInformation(
            name=item.name,
            target=item.target,
            content_type=item.content_type,
            priority=item.priority,
            interaction=BindingInteraction(item.interaction),
            binding_type=BindingType(item.kind),
            method=RouteMethod(item.method),
        )
    if isinstance(item, NodeSnapshot):
        return NodeInformation(
            id=item.node_id,
            name=item.name,
            host=item.host,
            slave=item.slave,
            connected=item.connected,
            lifetime_ms=item.lifetime_ms,
        )
    if isinstance(item, OffsetsSnapshot):
        return OffsetsInformation(
            channel=item.channel,
            queue=item.queue_id,
            incarnation=item.incarnation,
            earliest=item.earliest,
            latest=item.latest,
            count=item.count,
            bytes=item.bytes,
            oldest_ms=item.oldest_us // 1_000,
        )
    if isinstance(item, CursorSnapshot):
        return CursorInformation(
            name=item.name,
            channel=item.channel,
            queue=item.queue_id,
            incarnation=item.incarnation,
            sequence=item.sequence,
        )
    assert isinstance(item, ClientSnapshot), f"no model renders {item!r}"
    return ClientInformation(
        id=item.client_id,
        name=item.name,
        type=item.client_type,
        online_ms=item.online_ms,
        is_authenticated=item.is_authenticated,
    )


def _channel(item: ChannelSnapshot) -> ChannelInformation:
    options = item.options
    queue = options.queue
    return ChannelInformation(
        name=item.name,
        queues=item.queues,
        allow_multiple_queues=options.allow_multiple_queues,
        allowed_queues=options.allowed_queues,
        only_first_acquirer=queue.send_only_first_acquirer,
        request_acknowledge=queue.request_acknowledge,
        acknowledge_timeout_ms=queue.acknowledge_timeout_ms,
        message_timeout_ms=queue.message_timeout_ms,
        use_message_id=queue.use_message_id,
        wait_for_acknowledge=queue.wait_for_acknowledge,
        hide_client_names=queue.hide_client_names,
        active_clients=item.active_clients,
        client_limit=options.client_limit,
        queue_limit=options.queue_limit,
        destroy_when_empty=options.destroy_when_empty,
    )


def _queue(item: QueueSnapshot, offset_s: float) -> QueueInformation:
    options = item.options
    return QueueInformation(
        channel=item.channel,
        tag_name=options.tag,
        id=item.queue_id,
        priority_messages=item.priority_messages,
        messages=item.messages,
        status=QueueStatus(options.status),
        only_first_acquirer=options.send_only_first_acquirer,
        request_acknowledge=options.request_acknowledge,
        acknowledge_timeout_ms=options.acknowledge_timeout_ms,
        message_timeout_ms=options.message_timeout_ms,
        use_message_id=options.use_message_id,
        wait_for_acknowledge=options.wait_for_acknowledge,
        hide_client_names=options.hide_client_names,
        received_messages=item.received_messages,
        sent_messages=item.sent_messages,
        deliveries=item.deliveries,
        negative_acks=item.negative_acks,
        acks=item.acks,
        timeout_messages=item.timeout_messages,
        saved_messages=item.saved_messages,
        removed_messages=item.removed_messages,
        errors=item.errors,
        last_message_received_ms=_unix_ms(item.last_message_received_s, offset_s),
        last_message_sent_ms=_unix_ms(item.last_message_sent_s, offset_s),
        message_limit=options.message_limit,
        message_size_limit=options.message_size_limit,
        durable=options.durable or None,
        overflow=options.overflow or None,
        ephemeral=options.ephemeral or None,
        memory_limit=options.memory_limit or None,
        spilled_messages=item.spilled or None,
        dropped_messages=item.overflowed + item.damaged or None,
        retain_bytes=options.retain_bytes or None,
        retain_time_ms=options.retain_ms or None,
        retain_for_readers=options.retain_for_readers or None,
    )


def event_frame(effect: Inform) -> Frame:
    """An event's message: its name as source, the queue as content type of MessageProduced."""
    fact = effect.fact
    return Frame.build(
        TYPE_EVENT,
        effect.channel,
        fact.queue_id if isinstance(fact, MessageFact) else 0,
        _event(fact, effect.event).to_json(),
        source=event_name(effect.event),
    )


def _event(fact: Fact, event: int) -> Model:
    if isinstance(fact, MessageFact):
        return MessageEvent(
            channel=fact.channel,
            queue=fact.queue_id,
            id=fact.message_id,
            saved=fact.saved,
            producer_id=fact.producer_id,
            producer_name=fact.producer_name,
            producer_type=fact.producer_type,
        )
    if isinstance(fact, ClientFact):
        return ClientEvent(id=fact.client_id, name=fact.name, type=fact.client_type)
    if isinstance(fact, ChannelFact):
        return ChannelEvent(
            name=fact.name, active_clients=fact.active_clients, client_limit=fact.client_limit
        )
    if isinstance(fact, SubscriptionFact):
        return SubscriptionEvent(
            channel=fact.channel,
            client_id=fact.client_id,
            client_name=fact.client_name,
            client_type=fact.client_type,
        )
    if isinstance(fact, NodeFact):
        return NodeInformation(
            id=fact.node_id,
            name=fact.name,
            host=fact.host,
            slave=fact.slave,
            connected=event == NODE_CONNECTED,
        )
    assert isinstance(fact, QueueFact), f"no model renders {fact!r}"
    return QueueEvent(
        channel=fact.channel,
        id=fact.queue_id,
        tag=fact.tag,
        status=QueueStatus(fact.status),
        priority_messages=fact.priority_messages,
        messages=fact.messages,
    )


def _unix_ms(seconds: float | None, offset_s: float) -> int:
    """A time of the engine as Unix milliseconds, 0 for never (F68)."""
    return 0 if seconds is None else int((seconds + offset_s) * 1000)
