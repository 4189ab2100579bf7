"""Snapshots: what is told about channels, queues, clients and the whole."""

from __future__ import annotations

import pytest

from tests.tmqp_server.engine.world import World
from tmqp.constants import STATUS_BROADCAST
from tmqp_server.engine.books import MESSAGE_OVERHEAD_BYTES
from tmqp_server.engine.commands import (
    Block,
    Command,
    CreateChannel,
    DescribeChannel,
    DescribeQueue,
    ListChannels,
    ListClients,
    ListConsumers,
    ListQueues,
    PushExtras,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.channel_names import matches
from tmqp_server.engine.model.snapshots import ChannelSnapshot, ClientSnapshot, QueueSnapshot
from tmqp_server.engine.options import ChannelChanges, QueueChanges


def ask(world: World, command: Command) -> object:
    world.step(command)
    (reply,) = world.last
    assert isinstance(reply, Reply)
    assert reply.code == 0
    return reply.body


def test_a_channel() -> None:
    world = World()
    world.connect("admin")
    number = world.numbers["admin"]
    assert world.step(DescribeChannel(number, "r", "cho")) == ["admin r: 404"]
    changes = ChannelChanges(allowed_queues=(1, 2), client_limit=5, queue=QueueChanges(status=3))
    world.step(CreateChannel(number, "r", "Cho", changes))
    world.create(channel="cho", queue_id=2)
    world.create(channel="cho", queue_id=1)
    world.join("a", "cho")
    body = ask(world, DescribeChannel(number, "r", "CHO"))
    assert isinstance(body, ChannelSnapshot)
    assert (body.name, body.queues, body.active_clients) == ("Cho", (2, 1), 1)
    assert (body.options.allowed_queues, body.options.client_limit) == ((1, 2), 5)
    assert body.options.queue.status == 3


def test_channels_by_filter() -> None:
    world = World()
    world.connect("admin")
    number = world.numbers["admin"]
    for name in ("Alpha", "beta", "alphabet"):
        world.step(CreateChannel(number, None, name))
    found = {}
    for pattern in ("", "*", "*PHA*", "alpha*", "*bet", "BETA", "a*a"):
        body = ask(world, ListChannels(number, "r", pattern))
        assert isinstance(body, list)
        found[pattern] = [each.name for each in body]
    assert found == {
        "": ["Alpha", "beta", "alphabet"],
        "*": ["Alpha", "beta", "alphabet"],
        "*PHA*": ["Alpha", "alphabet"],
        "alpha*": ["alphabet"],
        "*bet": ["alphabet"],
        "BETA": ["beta"],
        "a*a": [],
    }


@pytest.mark.parametrize(
    ("text", "pattern", "passes"),
    [
        ("abc", "ABC", True),
        ("abc", "ab", False),
        ("abc", "*B*", True),
        ("abc", "*C", False),
        ("abc", "*c", True),
        ("abc", "A*", False),
        ("abc", "a*", True),
        ("a*c", "a*c", True),
        # A star inside was an ordinary character; the specification lets it stand for any text.
        ("abc", "a*c", True),
        ("abc", "A*c", False),
        ("ac", "a*c", True),
        ("a", "a*a", False),
        ("orders.eu.new", "orders.*.new", True),
        ("orders.eu.old", "orders.*.new", False),
        ("orders.eu.new", "*EU*new*", True),
        ("orders.eu.new", "*new*eu*", False),
        ("orders.eu.new", "*eu*new", True),
        ("abc", "a" + "*" * 600, False),
        ("anything", "**", True),
        ("", "x", False),
        ("", "*", True),
    ],
)
def test_the_filter_rule(text: str, pattern: str, passes: bool) -> None:
    assert matches(text, pattern) == passes


def test_a_queue_as_it_was_seen() -> None:
    """Two deliveries, one answer of each kind (a recorded exchange shows these counters)."""
    world = World()
    world.create()
    world.join("a")
    world.push("m1")
    world.now += 1
    world.push("m2")
    world.ack("a", "m1")
    world.nack("a", "m2", "x")
    number = world.numbers["admin"]
    body = ask(world, DescribeQueue(number, "r", "CH", 1))
    assert isinstance(body, QueueSnapshot)
    assert (body.received_messages, body.sent_messages, body.deliveries) == (2, 2, 2)
    assert (body.negative_acks, body.acks, body.removed_messages) == (1, 1, 2)
    assert (body.priority_messages, body.messages, body.timeout_messages) == (0, 0, 0)
    assert (body.saved_messages, body.errors) == (0, 0)
    assert (body.last_message_received_s, body.last_message_sent_s) == (101.0, 101.0)
    assert world.step(DescribeQueue(number, "r", "ch", 2)) == ["admin r: 404"]
    assert world.step(DescribeQueue(number, "r", "nope", 1)) == ["admin r: 404"]


def test_queues_in_the_order_of_creation() -> None:
    world = World()
    for queue_id in (5, 1, 3):
        world.create(queue_id=queue_id)
    number = world.numbers["admin"]
    body = ask(world, ListQueues(number, "r", "ch"))
    assert isinstance(body, list)
    assert [each.queue_id for each in body] == [5, 1, 3]
    assert [each.last_message_sent_s for each in body] == [None] * 3
    assert world.step(ListQueues(number, "r", "nope")) == ["admin r: 404"]


def test_the_counters_of_a_snapshot_balance() -> None:
    world = World()
    world.create(QueueChanges(message_timeout_ms=1000, delivery_handler="putback-end"))
    world.push("h", high=True)
    world.push("r")
    world.push("d", extras=PushExtras(delay_ms=60_000))
    world.wait(2)
    world.push("w")
    world.join("a")
    world.push("m")
    world.nack("a", "m")
    number = world.numbers["admin"]
    body = ask(world, DescribeQueue(number, "r", "ch", 1))
    assert isinstance(body, QueueSnapshot)
    places = body.priority_messages + body.messages + body.deferred + body.in_flight
    settled = body.done + body.expired + body.dead + body.cleared + body.dropped
    assert body.accepted == places + settled == 5
    assert (body.in_flight, body.deferred, body.expired, body.requeued) == (2, 1, 2, 1)
    assert body.bytes == 30


def test_clients() -> None:
    world = World()
    world.connect("a", "b")
    world.now += 2.5
    world.join("b")
    world.join("a")
    world.now += 0.25
    number = world.numbers["a"]
    body = ask(world, ListConsumers(number, "r", "CH"))
    assert isinstance(body, list)
    assert [(each.client_id, each.online_ms) for each in body] == [("b", 250), ("a", 250)]
    assert world.step(ListConsumers(number, "r", "nope")) == ["a r: 404"]
    assert world.broker.statistics().channels == 1
    body = ask(world, ListClients(number, "r"))
    assert isinstance(body, list)
    assert [(each.client_id, each.online_ms) for each in body] == [("a", 2750), ("b", 2750)]
    assert (body[0].name, body[0].client_type, body[0].is_authenticated) == (
        "a-name",
        "a-type",
        False,
    )
    body = ask(world, ListClients(number, "r", "B-TYPE"))
    assert isinstance(body, list)
    assert [each.client_id for each in body] == ["b"]


def test_counters_of_a_client() -> None:
    world = World()
    world.join("a")
    world.join("b")
    for number in range(3):
        world.push(f"m{number}")
    world.create(QueueChanges(status=STATUS_BROADCAST), queue_id=2)
    world.step(Block(world.numbers["b"]))
    world.push("x", queue_id=2)
    world.ack("a", "m0")
    world.nack("a", "m1")
    world.ack("a", "nope")
    world.push("own", producer="a", queue_id=2)

    def look(name: str) -> ClientSnapshot:
        body = ask(world, ListClients(world.numbers["a"], "r", f"{name}-type"))
        assert isinstance(body, list)
        (found,) = body
        assert isinstance(found, ClientSnapshot)
        return found

    seen = look("a")
    assert (seen.delivered, seen.pushed, seen.subscriptions, seen.in_flight) == (5, 1, 1, 3)
    assert (seen.acknowledged, seen.negative_acks, seen.unknown_acks) == (2, 1, 1)
    assert (look("b").delivered, look("b").blocked) == (3, True)
    world.leave("a")
    assert look("a").delivered == 5
    world.wait(16)
    assert look("a").ack_timeouts == 3
    assert look("p").pushed == 4


def test_the_whole() -> None:
    world = World()
    world.create()
    world.create(queue_id=2)
    world.push("m1")
    world.join("a")
    world.push("m2", queue_id=2, extras=PushExtras(delay_ms=1000))
    numbers = world.broker.statistics()
    assert (numbers.sessions, numbers.channels, numbers.queues) == (3, 1, 2)
    memory = 2 * (10 + MESSAGE_OVERHEAD_BYTES)
    assert (numbers.messages, numbers.in_flight, numbers.bytes) == (1, 1, memory)
    assert (numbers.unsynced, numbers.dead_lettered, numbers.confirms_skipped) == (0, 0, 0)
    assert repr(numbers).startswith("BrokerStatistics(sessions=3, channels=1, queues=2,")
