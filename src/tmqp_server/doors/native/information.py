"""Writes the JSON bodies of answers and events from the engine's snapshots and facts.

F65-F69 for answers, F129 and F130 for events.
"""

from __future__ import annotations

from tmqp import __version__, models
from tmqp.constants import TYPE_EVENT, HeaderName
from tmqp.frames import Frame
from tmqp.models import Model
from tmqp_server.doors.facts import model_of_event
from tmqp_server.engine.effects import Inform
from tmqp_server.engine.events import ChannelFact, MessageFact, QueueFact, event_name
from tmqp_server.engine.model.nodes import NodeSnapshot
from tmqp_server.engine.model.snapshots import CursorSnapshot, ServerSnapshot

__all__ = ["AnswerTooLargeError", "event_frame", "rendered"]


class AnswerTooLargeError(Exception):
    """The answer would be larger than a message may be."""


def rendered(body: object, wall_clock_offset_s: float, most_bytes: int) -> bytes:
    """The payload of an answer: empty for None, bytes unchanged, anything else as JSON.

    :param wall_clock_offset_s: what to add to the engine's times to get Unix time.
    :param most_bytes: the largest payload; a list is not written beyond it.
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
        from tmqp_server.doors.native.listing import written_cursors  # noqa: PLC0415 - as below

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
    # It loads every model of the protocol, which a server need not do before it can start.
    from tmqp_server.doors.native.listing import written  # noqa: PLC0415 - see above

    data = written(item, offset_s)
    return _model(item, offset_s).to_json() if data is None else data


def _model(item: object, offset_s: float) -> Model:
    if isinstance(item, ServerSnapshot):
        from tmqp_server.doors.native.listing import unix_ms  # noqa: PLC0415 - as above

        return models.ServerInformation(
            version=__version__,
            time_ms=unix_ms(item.now, offset_s),
            clients=item.sessions,
            max_clients=item.max_sessions,
            memory_bytes=item.total_bytes,
            max_memory_bytes=item.max_total_bytes,
        )
    assert isinstance(item, NodeSnapshot), f"no model renders {item!r}"
    return models.NodeInformation(
        id=item.node_id,
        name=item.name,
        host=item.host,
        slave=item.slave,
        connected=item.connected,
        lifetime_ms=item.lifetime_ms,
        role=item.role or None,
        shard=0 if item.role else None,
        epoch=item.epoch if item.role else None,
        applied=item.applied if item.role else None,
        behind=item.behind if item.role else None,
    )


def event_frame(effect: Inform) -> Frame:
    """An event's message: its name as source, the queue as content type of MessageProduced.

    In the form of the specification, it also has headers, and both spellings of ActiveClients.
    """
    fact = effect.fact
    body = model_of_event(fact, effect.event).to_json()
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
