"""What tests of transactions in the engine share: a world, message sets, short ways to ask."""

from __future__ import annotations

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.test_spilling import delivered
from tests.tmqp_server.engine.world import World
from tmqp.constants import (
    STATUS_PUSH,
)
from tmqp_server.engine.commands import (
    CommitTransaction,
    ListTransactions,
    MessageSet,
    OpenTransaction,
    PushTransaction,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import DeliveryHandler
from tmqp_server.engine.model.snapshots import TransactionSnapshot
from tmqp_server.engine.options import QueueChanges

DURABLE = QueueChanges(durable=True, status=STATUS_PUSH)


def ready(
    limits: EngineLimits | None = None,
    changes: QueueChanges = DURABLE,
    handlers: dict[str, DeliveryHandler] | None = None,
) -> KeptWorld:
    """A world with queue 1 of channel ``ch`` and a client ``t``."""
    world = KeptWorld(limits, handlers)
    world.create(changes)
    world.connect("t")
    world.sync()
    return world


def message_set(
    *ids: str, queue_id: int = 1, channel: str = "ch", changes: QueueChanges | None = None
) -> MessageSet:
    data = "\n".join([f"{each} t {channel}" for each in ids]).encode()
    high = sum([each.startswith("!") for each in ids])
    return MessageSet("", channel, queue_id, data, len(ids), high, 10 * len(ids), 10, changes)


def t(world: World) -> int:
    return world.numbers["t"]


def answer(world: World) -> TransactionSnapshot:
    """What was told last."""
    (reply,) = [each for each in world.last if isinstance(each, Reply)]
    assert isinstance(reply.body, TransactionSnapshot)
    return reply.body


def opened(world: World, epoch: int = 1, part: int | None = None, **more: int) -> int:
    assert world.step(OpenTransaction(t(world), "open", "app", epoch, part, **more)) == [
        "t open: 0 with body"
    ]
    assert answer(world).state == "open"
    return answer(world).number


def push(world: World, number: int, *message_sets: MessageSet) -> list[str]:
    return world.step(PushTransaction(t(world), "push", "app", number, list(message_sets)))


def commit(world: World, epoch: int, *numbers: int, counts: list[int] | None = None) -> list[str]:
    named = list(numbers)
    return world.step(
        CommitTransaction(t(world), "commit", "app", epoch, named, counts or [-1] * len(named))
    )


def committed(world: KeptWorld, epoch: int, *ids: str) -> None:
    """Push and commit, and let it be safe."""
    number = opened(world, epoch)
    push(world, number, message_set(*ids))
    (word,) = commit(world, epoch, number)
    assert word.startswith("CommitStored")
    assert world.write() != []


def listed(world: World, filter: str = "*") -> list[tuple[str, int, str]]:
    world.step(ListTransactions(t(world), "list", filter))
    (reply,) = [each for each in world.last if isinstance(each, Reply)]
    assert isinstance(reply.body, list)
    return [(each.application, each.epoch, each.state) for each in reply.body]


def all_of(world: KeptWorld, name: str = "a") -> list[str]:
    """Everything that comes to a new consumer, acknowledged."""
    got: list[str] = []
    words = world.join(name) + world.sync()
    while new := delivered(words):
        got += new
        words = [word for each in new for word in world.ack(name, each)] + world.sync()
    return got
