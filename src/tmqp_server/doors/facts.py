"""The contents of events, as the models of the protocol: the JSON is the same at every door."""

from __future__ import annotations

from tmqp import models
from tmqp.constants import QueueStatus
from tmqp.models import Model
from tmqp_server.engine.events import (
    ALL_EVENTS,
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

__all__ = ["events_by_name", "model_of_event"]


def events_by_name() -> dict[str, int]:
    """The bits of all events, by their names."""
    events: dict[str, int] = {}
    event = 1
    while event <= ALL_EVENTS:
        events[event_name(event)] = event
        event *= 2
    return events


def model_of_event(fact: Fact, event: int) -> Model:
    """The model for the body of an event (F130)."""
    if isinstance(fact, MessageFact):
        return models.MessageEvent(
            channel=fact.channel,
            queue=fact.queue_id,
            id=fact.message_id,
            saved=fact.saved,
            producer_id=fact.producer_id,
            producer_name=fact.producer_name,
            producer_type=fact.producer_type,
        )
    if isinstance(fact, ClientFact):
        return models.ClientEvent(id=fact.client_id, name=fact.name, type=fact.client_type)
    if isinstance(fact, ChannelFact):
        return models.ChannelEvent(
            name=fact.name, active_clients=fact.active_clients, client_limit=fact.client_limit
        )
    if isinstance(fact, SubscriptionFact):
        return models.SubscriptionEvent(
            channel=fact.channel,
            client_id=fact.client_id,
            client_name=fact.client_name,
            client_type=fact.client_type,
        )
    if isinstance(fact, NodeFact):
        return models.NodeInformation(
            id=fact.node_id,
            name=fact.name,
            host=fact.host,
            slave=fact.slave,
            connected=event == NODE_CONNECTED,
        )
    assert isinstance(fact, QueueFact), f"no model renders {fact!r}"
    return models.QueueEvent(
        channel=fact.channel,
        id=fact.queue_id,
        tag=fact.tag,
        status=QueueStatus(fact.status),
        priority_messages=fact.priority_messages,
        messages=fact.messages,
    )
