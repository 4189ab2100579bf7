"""Temporary channels: with their owner, with their last consumer, unused for a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tmqp_server.engine.kept import KeptWorld
from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import STATUS_PULL
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    CommitCursor,
    Connect,
    CreateChannel,
    CreateQueue,
    Disconnect,
    PushExtras,
    ReadRange,
    RemoveChannel,
    UpdateChannel,
    UpdateQueue,
)
from tmqp_server.engine.effects import StoredChange
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import (
    WITH_CONSUMERS,
    WITH_OWNER,
    BrokerOptions,
    ChannelChanges,
    ChannelOptions,
    QueueChanges,
)

OWNED = ChannelChanges(lifetime=WITH_OWNER)
PRIVATE = ChannelChanges(lifetime=WITH_OWNER, owner_only=True)
SHARED = ChannelChanges(lifetime=WITH_CONSUMERS)
IDLE = ChannelChanges(idle_timeout_ms=10_000)


def create(world: World, rules: ChannelChanges, channel: str = "ch", by: str = "a") -> list[str]:
    """Let a client create a channel."""
    if by not in world.numbers:
        world.connect(by)
    return world.step(CreateChannel(world.numbers[by], "create", channel, rules))


def channels(world: World) -> list[str]:
    return [each.name for each in world.broker._core.channels.by_key.values()]


# --- With the owner ------------------------------------------------------------------------------


def test_a_channel_goes_with_the_connection_that_created_it() -> None:
    world = World()
    create(world, OWNED)
    create(world, ChannelChanges(), "kept")
    world.push("m1")
    assert world.join("b") == ["b <- m1 FA", "b join: 0"]
    assert world.disconnect("a") == ["b left ch"]
    assert channels(world) == ["kept"]
    world.finish()
    assert world.broker._core.message_bytes == 0


def test_a_queue_may_be_created_with_its_channel() -> None:
    world = World()
    world.connect("a")
    number = world.numbers["a"]
    assert world.step(CreateQueue(number, "create", "ch", 1, None, PRIVATE)) == ["a create: 0"]
    assert world.join("b") == ["b join: 403"]
    world.disconnect("a")
    assert channels(world) == []


def test_who_takes_over_a_client_id_does_not_inherit() -> None:
    world = World()
    create(world, OWNED)
    world.names[9] = "again"
    assert world.step(Connect(9, "hello", "a", take_over=True)) == ["close a", "again accepted"]
    assert channels(world) == []


def test_a_node_owns_nothing() -> None:
    world = World(options=queue_defaults(takes_nodes=True))
    world.names[9] = "node"
    world.step(Connect(9, "hello", "node", node=True))
    assert world.step(CreateChannel(9, "create", "ch", OWNED)) == ["node create: 406"]
    assert world.step(CreateQueue(9, "create", "ch", 1, None, OWNED)) == ["node create: 406"]
    assert channels(world) == []


def test_only_the_owner_consumes() -> None:
    world = World()
    create(world, PRIVATE)
    pulls = QueueChanges(status=STATUS_PULL)
    world.step(CreateQueue(world.numbers["a"], "create", "ch", 1, pulls))
    world.push("m1", producer="b")
    assert world.join("b") == ["b join: 403"]
    assert world.pull("b") == ["b pull Unauthorized"]
    assert world.join("a") == ["a join: 0"]
    assert world.pull("a") == ["a pull 1/1 m1 FA", "a pull End"]


def test_a_client_may_own_so_many() -> None:
    world = World(EngineLimits(max_owned_channels_per_session=2))
    for name in ("one", "two"):
        assert create(world, OWNED, name) == ["a create: 0"]
    assert create(world, OWNED, "three") == ["a create: 482"]
    assert create(world, SHARED, "three") == ["a create: 0"]
    world.step(RemoveChannel(world.numbers["a"], "remove", "one"))
    assert create(world, OWNED, "four") == ["a create: 0"]
    world.disconnect("a")
    world.finish()
    assert channels(world) == ["three"]


def test_what_somebody_else_removed_and_made_again_is_not_the_owners() -> None:
    world = World()
    create(world, OWNED)
    create(world, OWNED, "other")
    world.connect("b")
    world.step(RemoveChannel(world.numbers["b"], "remove", "ch"))
    create(world, OWNED, "ch", "b")
    world.disconnect("a")
    assert channels(world) == ["ch"]
    world.disconnect("b")
    assert channels(world) == []


def test_many_queues_go_in_portions() -> None:
    world = World(EngineLimits(max_queues_per_channel=3_000))
    create(world, OWNED)
    create(world, OWNED, "other")
    number = world.numbers["a"]
    for queue_id in range(2_500):
        world.broker.step(CreateQueue(number, None, "ch", queue_id), world.now)
    world.broker.step(Disconnect(number), world.now)
    assert len(world.broker.queues()) == 1_500
    while channels(world):
        world.broker.on_deadline(world.now)
    assert not world.broker._core.removals


# --- With the last consumer ----------------------------------------------------------------------


def test_a_channel_goes_with_its_last_consumer_and_its_messages() -> None:
    world = World()
    create(world, SHARED)
    world.push("m1")
    world.disconnect("a")
    assert channels(world) == ["ch"]
    world.join("b")
    world.join("c")
    world.push("m2")
    world.leave("b")
    assert channels(world) == ["ch"]
    world.disconnect("c")
    assert channels(world) == []


def test_a_push_says_what_the_channel_that_it_creates_ends_with() -> None:
    world = World()
    world.push("m1", extras=PushExtras(channel_changes=SHARED))
    assert world.join("a") == ["a <- m1 FA", "a join: 0"]
    world.push("m2", extras=PushExtras(channel_changes=ChannelChanges()))
    world.leave("a")
    assert channels(world) == []


@pytest.mark.parametrize(
    ("rules", "code"), [(OWNED, 406), (PRIVATE, 406), (ChannelChanges(client_limit=-1), 400)]
)
def test_a_push_creates_no_channel_that_cannot_be(rules: ChannelChanges, code: int) -> None:
    world = World()
    said = world.push("m1", extras=PushExtras(channel_changes=rules))
    assert said == [f"p wire of m1: {code}"]
    assert channels(world) == []


# --- Unused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0.0, 1.0, 9.9])
def test_an_unused_channel_goes_between_once_and_twice_its_time(at: float) -> None:
    world = World()
    create(world, IDLE)
    world.wait(at)
    world.push("m1")
    world.wait(9.999)
    assert channels(world) == ["ch"]
    world.wait(10.01)
    assert channels(world) == []
    assert world.broker.next_deadline() is None


def test_each_use_keeps_a_channel() -> None:
    world = World()
    create(world, IDLE)
    world.create(QueueChanges(status=STATUS_PULL))
    world.push("m1")
    world.wait(9)
    world.join("b")
    world.wait(60)
    assert channels(world) == ["ch"]  # while it is joined
    world.leave("b")
    for _ in range(5):
        world.wait(9.5)
        assert world.pull("b") == ["b pull Unauthorized"]
    for queue_id in range(2, 7):
        world.wait(9.5)
        world.create(queue_id=queue_id)
    assert channels(world) == ["ch"]
    world.wait(21)
    assert channels(world) == []


def test_the_time_may_be_changed() -> None:
    world = World()
    create(world, IDLE)
    number = world.numbers["a"]
    assert world.step(
        UpdateChannel(number, "update", "ch", ChannelChanges(idle_timeout_ms=2_000))
    ) == ["a update: 0"]
    world.wait(2)
    assert channels(world) == []
    create(world, IDLE)
    world.step(UpdateChannel(number, "update", "ch", ChannelChanges(idle_timeout_ms=0)))
    world.wait(100)
    assert channels(world) == ["ch"]
    assert world.broker.next_deadline() is None


def test_a_stored_channel_is_watched_after_a_restart() -> None:
    world = KeptWorld()
    create(world, IDLE)
    world.push("m1")
    world.sync()
    world.crash()
    world.wait(9)
    assert channels(world) == ["ch"]
    world.wait(11)
    assert channels(world) == []
    world.sync()
    world.crash()
    assert channels(world) == []


# --- Never stored --------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [OWNED, SHARED])
def test_nothing_of_a_temporary_channel_is_stored(rules: ChannelChanges) -> None:
    world = KeptWorld()
    told: list[str] = []
    steps: tuple[Callable[[], list[str]], ...] = (
        lambda: create(world, rules),
        lambda: world.create(QueueChanges(delivery_handler="ack-when-saved")),
        lambda: world.update(QueueChanges(message_limit=5)),
        lambda: world.push("m1", wants=True),
        lambda: world.join("b"),
        lambda: world.step(
            UpdateChannel(world.numbers["a"], "update", "ch", ChannelChanges(idle_timeout_ms=5_000))
        ),
        lambda: world.leave("b"),
        lambda: world.disconnect("a"),
    )
    for step in steps:
        told += step()
        assert not any(isinstance(each, StoredChange) for each in world.last)
    assert "append" not in " ".join(told)
    assert channels(world) == []
    create(world, rules, by="c")
    world.crash()
    assert channels(world) == []


@pytest.mark.parametrize(
    "changes",
    [QueueChanges(durable=True), QueueChanges(overflow=True), QueueChanges(retain_bytes=1)],
)
def test_a_queue_on_disk_is_refused_in_a_temporary_channel(changes: QueueChanges) -> None:
    world = KeptWorld()
    kept = ChannelChanges(lifetime=WITH_OWNER, queue=changes)
    assert create(world, kept) == ["a create: 400"]
    number = world.numbers["a"]
    command = CreateQueue(number, "create", "ch", 1, changes, OWNED)
    assert world.step(command) == ["a create: 400"]
    assert channels(world) == []
    create(world, OWNED)
    assert world.step(CreateQueue(number, "create", "ch", 1, changes)) == ["a create: 400"]
    world.step(CreateQueue(number, "create", "ch", 1))
    assert world.step(UpdateQueue(number, "update", "ch", 1, changes)) == ["a update: 400"]
    assert world.step(UpdateChannel(number, "update", "ch", ChannelChanges(queue=changes))) == [
        "a update: 400"
    ]


def test_there_is_nothing_to_read_in_a_temporary_channel() -> None:
    world = KeptWorld()
    create(world, PRIVATE)
    world.connect("b")
    world.push("m1")
    for name, code in (("a", 406), ("b", 403)):
        number = world.numbers[name]
        place = ("ch", 1)
        assert world.step(ReadRange(number, "read", *place, 1, 5)) == [f"{name} read: {code}"]
        assert world.step(CommitCursor(number, "commit", *place, "c", 1)) == [
            f"{name} commit: {code}"
        ]


# --- What means nothing --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (ChannelChanges(lifetime="session"), 400),
        (ChannelChanges(owner_only=True), 400),
        (ChannelChanges(owner_only=True, lifetime=WITH_CONSUMERS), 400),
        (ChannelChanges(idle_timeout_ms=-1), 400),
        (ChannelChanges(idle_timeout_ms=999), 482),
    ],
)
def test_options_that_mean_nothing_are_refused(rules: ChannelChanges, code: int) -> None:
    world = World()
    assert create(world, rules) == [f"a create: {code}"]


@pytest.mark.parametrize("rules", [OWNED, PRIVATE, SHARED])
def test_what_a_channel_ends_with_is_not_changed(rules: ChannelChanges) -> None:
    world = World()
    create(world, ChannelChanges())
    create(world, rules, "temporary")
    number = world.numbers["a"]
    assert world.step(UpdateChannel(number, "update", "ch", rules)) == ["a update: 406"]
    back = ChannelChanges(lifetime="", owner_only=False)
    assert world.step(UpdateChannel(number, "update", "temporary", back)) == ["a update: 406"]


def test_no_owner_no_default() -> None:
    options = BrokerOptions(channel=ChannelOptions(lifetime=WITH_OWNER))
    with pytest.raises(ValueError, match="have no owner"):
        Broker(options=options)


def test_all_channels_may_go_with_their_consumers() -> None:
    world = World(options=BrokerOptions(channel=ChannelOptions(lifetime=WITH_CONSUMERS)))
    world.join("a")
    assert channels(world) == ["ch"]
    world.leave("a")
    assert channels(world) == []


def test_a_dead_letter_in_a_temporary_channel_is_not_stored() -> None:
    world = KeptWorld()
    create(world, OWNED, "dead")
    changes = QueueChanges(
        durable=True, put_back_limit=1, dead_letter=("dead", 1), delivery_handler="putback-end"
    )
    assert world.create(changes) == ["StoreChannel 1", "StoreQueue 2"]
    world.sync()
    world.push("m1")
    world.sync()
    world.join("b")
    for _ in range(2):
        world.nack("b", "m1")
    world.finish()
    assert world.books("dead")["accepted"] == 1
    world.sync()
    world.crash()
    assert channels(world) == ["ch"]
    assert world.queue().live() == 0
