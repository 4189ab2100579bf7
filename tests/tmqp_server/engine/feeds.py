"""Worlds whose queues feed each other, for tests: topics and their channels."""

from __future__ import annotations

from typing import cast

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import AddFeed, ListFeeds, PushExtras, RemoveFeed
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_server.engine.model.snapshots import FeedSnapshot
from tmqp_server.engine.options import QueueChanges

__all__ = [
    "LATER",
    "Begins",
    "each_waiting",
    "feed",
    "feeds_of",
    "kept_topic",
    "topic",
    "unfeed",
    "waiting_in",
]

LATER = PushExtras(delay_ms=2_000)


class Begins(SubscriptionFilter):
    """Accepts messages whose id begins so; raises where the id says so."""

    def __init__(self, text: str) -> None:
        self.text = text

    def accepts(self, message: Message) -> bool:
        if message.message_id.endswith("!"):
            raise ValueError(message.message_id)
        return message.message_id.startswith(self.text)


def _admin(world: World) -> int:
    if "admin" not in world.numbers:
        world.connect("admin")
    return world.numbers["admin"]


def feed(
    world: World, target: str, source: str = "t", chosen: SubscriptionFilter | None = None
) -> list[str]:
    """Let one queue feed another; each is queue 1 of its channel."""
    text = chosen.text if isinstance(chosen, Begins) else ""
    return world.step(AddFeed(_admin(world), "feed", source, 1, target, 1, chosen, "begins", text))


def unfeed(world: World, target: str, source: str = "t") -> list[str]:
    """Let it feed the other no longer."""
    return world.step(RemoveFeed(_admin(world), "unfeed", source, 1, target, 1))


def feeds_of(world: World, source: str = "t", queue_id: int = -1) -> list[FeedSnapshot]:
    """The feeds of a queue, or of all queues of a channel."""
    world.step(ListFeeds(_admin(world), "list", source, queue_id))
    (reply,) = world.last
    assert isinstance(reply, Reply)
    assert reply.code == 0
    return cast("list[FeedSnapshot]", reply.body)


def waiting_in(world: World, channel: str) -> list[str]:
    """What waits in queue 1 of a channel, in the order in which it would be sent."""
    queue = world.queue(channel)
    return [each.message_id for each in [*queue.high.messages(), *queue.regular.messages()]]


def each_waiting(world: World, *channels: str) -> list[list[str]]:
    """The same for several channels."""
    return [waiting_in(world, each) for each in channels]


def topic(
    *targets: str,
    limits: EngineLimits | None = None,
    source: QueueChanges | None = None,
    target: QueueChanges | None = None,
) -> World:
    """A queue of status push that feeds round robin queues."""
    world = World(limits)
    _make(world, targets, source, target)
    return world


def kept_topic(
    *targets: str,
    limits: EngineLimits | None = None,
    source: QueueChanges | None = None,
    target: QueueChanges | None = None,
) -> KeptWorld:
    """The same with a storage, and durable."""
    world = KeptWorld(limits)
    source = QueueChanges(status=STATUS_PUSH, durable=True) if source is None else source
    target = QueueChanges(status=STATUS_ROUND_ROBIN, durable=True) if target is None else target
    _make(world, targets, source, target)
    world.sync()
    return world


def _make(
    world: World,
    targets: tuple[str, ...],
    source: QueueChanges | None,
    target: QueueChanges | None,
) -> None:
    world.create(QueueChanges(status=STATUS_PUSH) if source is None else source, "t")
    for name in targets:
        changes = QueueChanges(status=STATUS_ROUND_ROBIN) if target is None else target
        world.create(changes, name)
        feed(world, name)
