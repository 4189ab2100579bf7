"""Owns the JSON bodies of answers and events: the engine's snapshots and facts as models.

F65-F69 for answers, F129 and F130 for events.
"""

from __future__ import annotations

from tmqp.constants import (
    TYPE_EVENT,
    HeaderName,
    QueueStatus,
)
from tmqp.frames import Frame
from tmqp.models import (
    ChannelEvent,
    ClientEvent,
    MessageEvent,
    Model,
    NodeInformation,
    QueueEvent,
    SubscriptionEvent,
)
from tmqp_server.doors.native.listing import written, written_cursors
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
from tmqp_server.engine.model.snapshots import CursorSnapshot, NodeSnapshot

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
        payload = _json(body, wall_clock_offset_s)
        if len(payload) > most_bytes:
            raise AnswerTooLargeError
        return payload
    if body and isinstance(body[0], CursorSnapshot):
        cursors: list[CursorSnapshot] = []
        for item in body:
            assert isinstance(item, CursorSnapshot), "a list has one kind of items"
            cursors.append(item)
        data = written_cursors(cursors, most_bytes)
        if data is None:
            raise AnswerTooLargeError
        return data
    items: list[bytes] = []
    size = 2
    for item in body:
        items.append(_json(item, wall_clock_offset_s))
        size += len(items[-1]) + 1
        if size - 1 > most_bytes:  # the last item has no comma behind it
            raise AnswerTooLargeError
    return b"[" + b",".join(items) + b"]"


def _json(item: object, offset_s: float) -> bytes:
    data = written(item, offset_s)
    return _model(item).to_json() if data is None else data


def _model(item: object) -> Model:
    assert isinstance(item, NodeSnapshot), f"no model renders {item!r}"
    return NodeInformation(
        id=item.node_id,
        name=item.name,
        host=item.host,
        slave=item.slave,
        connected=item.connected,
        lifetime_ms=item.lifetime_ms,
    )


def event_frame(effect: Inform) -> Frame:
    """An event's message: its name as source, the queue as content type of MessageProduced.

    In the form of the specification it has headers as well, and both names of ActiveClients.
    """
    fact = effect.fact
    body = _event(fact, effect.event).to_json()
    headers: list[tuple[str, str]] = []
    if effect.specified:
        if effect.channel:
            headers.append((HeaderName.CHANNEL_NAME, effect.channel))
        if isinstance(fact, (MessageFact, QueueFact)):
            headers.append((HeaderName.QUEUE_ID, str(fact.queue_id)))
        if isinstance(fact, ChannelFact):
            body = body[:-1] + b',"ActiveClient":%d}' % fact.active_clients
    return Frame.build(
        TYPE_EVENT,
        effect.channel,
        fact.queue_id if isinstance(fact, MessageFact) else 0,
        body,
        source=event_name(effect.event),
        headers=headers,
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
