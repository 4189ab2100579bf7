"""Snapshots for monitoring: more facts about a client than lists of the protocol have."""

from __future__ import annotations

from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.sessions import Session, Subscription
from tmqp_server.engine.model.snapshots import ClientSnapshot
from tmqp_server.engine.records import Record

__all__ = [
    "ClientDetails",
    "SubscriptionSnapshot",
    "SurveyedClient",
]


class SurveyedClient(Record):
    """One client, and its further properties (F29)."""

    __slots__ = ("client", "properties")

    def __init__(self, session: Session, now: float) -> None:
        self.client = ClientSnapshot(session, session.connected_at, now)
        self.properties: dict[str, str] = dict(session.properties or {})


class SubscriptionSnapshot(Record):
    """A channel that a client has joined: ``credit`` and ``window`` are -1 for no limit, ``held``
    is the number of unanswered deliveries, None if it is not counted."""

    __slots__ = (
        "channel",
        "queues",
        "credit",
        "window",
        "held",
        "ack_timeout_s",
        "priority",
        "filtered",
        "joined_ms",
    )

    def __init__(self, channel: Channel, subscription: Subscription, now: float) -> None:
        self.channel: str = channel.name
        self.queues: tuple[int, ...] = tuple(channel.queues)
        self.credit: int = subscription.credit
        self.window: int = subscription.window
        holds = subscription.holds
        self.held: int | None = None if holds is None else len(holds)
        self.ack_timeout_s: float = subscription.ack_timeout_s
        self.priority: int = subscription.priority
        self.filtered: bool = subscription.filter is not None
        self.joined_ms: int = max(int((now - subscription.joined_at) * 1_000), 0)


class ClientDetails(Record):
    """One client, and the channels that it and its branches have joined, as far as they may be
    shown."""

    __slots__ = ("client", "subscriptions")

    def __init__(self, client: SurveyedClient, subscriptions: list[SubscriptionSnapshot]) -> None:
        self.client = client
        self.subscriptions = subscriptions
