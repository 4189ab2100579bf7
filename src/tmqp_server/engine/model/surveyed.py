"""Snapshots for those who watch a server: more of a queue, and of a client, than lists of the
protocol show."""

from __future__ import annotations

from tmqp_server.engine.model.channels import Channel
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session, Subscription
from tmqp_server.engine.model.snapshots import ClientSnapshot, QueueSnapshot
from tmqp_server.engine.records import Record

__all__ = [
    "ClientDetails",
    "SubscriptionSnapshot",
    "SurveyedClient",
    "SurveyedQueue",
    "oldest_age",
]


def oldest_age(queue: Queue, now: float) -> float:
    """For how many seconds the first messages of both priorities have waited in memory; 0 if none
    does."""
    since = now
    if queue.high_count:
        high = queue.high.look(False)
        if high.sent_at > 0.0:
            since = high.sent_at
    if queue.regular_count:
        regular = queue.regular.look(False)
        if 0.0 < regular.sent_at < since:
            since = regular.sent_at
    return max(now - since, 0.0)


class SurveyedQueue(Record):
    """One queue, with how many consumers its channel has, and how long the oldest message waits."""

    __slots__ = ("queue", "consumers", "oldest_age_s")

    def __init__(self, queue: Queue, now: float) -> None:
        self.queue = QueueSnapshot(queue)
        self.consumers: int = len(queue.audience.subscriptions)
        self.oldest_age_s = oldest_age(queue, now)


class SurveyedClient(Record):
    """One client, and its further properties (F29)."""

    __slots__ = ("client", "properties")

    def __init__(self, session: Session, now: float) -> None:
        self.client = ClientSnapshot(session, session.connected_at, now)
        self.properties: dict[str, str] = dict(session.properties or {})


class SubscriptionSnapshot(Record):
    """What a client has joined: ``credit`` and ``window`` are -1 for no bound, ``held`` is what it
    has unanswered, None if nobody counts that."""

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
    """One client, and what it and its branches have joined, as far as that may be shown."""

    __slots__ = ("client", "subscriptions")

    def __init__(self, client: SurveyedClient, subscriptions: list[SubscriptionSnapshot]) -> None:
        self.client = client
        self.subscriptions = subscriptions
