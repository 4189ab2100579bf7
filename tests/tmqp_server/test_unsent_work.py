"""Work that is not sent is counted: what was refused after it was done once stopped the server."""

from __future__ import annotations

from itertools import count

from tests.tmqp_server.peers import greeting, operation
from tmqp.constants import Operation
from tmqp.limits import Limits
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    Connect,
    CreateChannel,
    CreateQueue,
    ListChannels,
    RemoveChannel,
)
from tmqp_server.engine.effects import Effect, Reply
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import ChannelChanges
from tmqp_server.hub.hub import Hub

#: A list of these takes more than Limits.max_payload_bytes below.
CHANNELS = 4_000


def crowded() -> tuple[Hub, Broker]:
    """A server with so many channels, and a client with the number 1."""
    numbers = count(1)
    broker = Broker()
    hub = Hub(broker, 262_144)
    hub.open(1, NativeDoor(lambda: f"{next(numbers)}", Limits()), 0.0)
    hub.receive(1, greeting("me"), 0.0)
    for number in range(CHANNELS):
        broker.step(CreateChannel(1, None, f"channel-{number}"), 0.0)
    hub.take_outbound()
    broker.take_work()
    return hub, broker


def test_a_list_that_cannot_be_sent_is_not_collected() -> None:
    """2,000 of them in 22 kB stopped the server for 40 s."""
    hub, broker = crowded()
    command = ListChannels(1, "r")
    command.most_items = CHANNELS - 1
    (reply,) = broker.step(command, 0.0)
    assert isinstance(reply, Reply)
    assert (reply.code, reply.body) == (482, None)
    assert broker.take_work() == 1
    data = b"".join(operation(Operation.CHANNEL_LIST).raw for _ in range(900))
    assert not hub.receive(1, data, 0.0), "900 units of work are no portion"


def test_work_makes_a_portion_although_nothing_is_sent() -> None:
    hub, _ = crowded()
    # Each compares 4,000 names, and finds none.
    data = b"".join(operation(Operation.CHANNEL_LIST, "*x*").raw for _ in range(20))
    more = hub.receive(1, data, 0.0)
    turns = 1
    while more:
        hub.take_outbound()
        more = hub.go_on(1, 0.0)
        turns += 1
    assert turns == 5


def test_what_makes_no_sense_is_work_too() -> None:
    """The door answered it by itself, a whole chunk in one step."""
    hub, _ = crowded()
    assert hub.receive(1, operation(9_999).raw * 1_500, 0.0)
    ((_, first),) = hub.take_outbound()
    assert not hub.go_on(1, 0.0)
    ((_, second),) = hub.take_outbound()
    assert len(first) == 2 * len(second)


def test_many_removals_of_a_channel_share_the_list_of_its_queues() -> None:
    """Each had a copy: thousands of requests with 65,535 queues each took gigabytes."""
    broker = Broker(EngineLimits(max_queues_per_channel=5_000))
    broker.step(Connect(1, None, "me"), 0.0)
    changes = ChannelChanges(allow_multiple_queues=True)
    for number in range(5_000):
        broker.step(CreateQueue(1, None, "wide", number, None, changes), 0.0)
    said: list[Effect] = []
    for _ in range(3):
        said += broker.step(RemoveChannel(1, "r", "wide"), 0.0)
    assert not any(isinstance(each, Reply) for each in said)
    held = {id(each.channel.leaving) for each in broker._core.removals}
    assert len(held) == 1
    while (due := broker.next_deadline()) is not None and due <= 0.0:
        said += broker.on_deadline(0.0)
    assert [each.code for each in said if isinstance(each, Reply)] == [0, 0, 0]
    assert broker.statistics().channels == 0
