"""Messages that say where they go: ``route = "first-frame"``, in memory."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.tmqp_server.doors.door_world import DoorWorld
from tests.tmqp_server.doors.zmtp.test_session import Socket, numbers, world_with
from tmqp.constants import STATUS_BROADCAST, STATUS_ROUND_ROBIN
from tmqp_server.doors.zmtp.door import ZmtpDoor
from tmqp_server.doors.zmtp.options import ZmtpLimits, ZmtpOptions
from tmqp_server.engine.commands import CreateQueue, Push
from tmqp_server.engine.options import QueueChanges

BROADCAST: Final = QueueChanges(status=STATUS_BROADCAST, request_acknowledge=False)


def routed(limits: ZmtpLimits | None = None, **options: Any) -> DoorWorld:
    return world_with(limits, route="first-frame", **options)


def refused(world: DoorWorld) -> int:
    door = world.door
    assert isinstance(door, ZmtpDoor)
    return door.context.refused


def in_flight(world: DoorWorld) -> int:
    return sum(queue.in_flight() for queue in world.broker.queues())


def pull_of(world: DoorWorld, channel: bytes) -> Socket:
    return Socket(world, "PULL", properties=(("X-Channel", channel),))


def test_each_message_goes_where_its_first_part_says_and_leaves_it_behind() -> None:
    world = routed()
    push = Socket(world, "PUSH")
    push.say(
        [b"jobs", b"1"],
        [b"jobs", b"2"],
        [b"Bills", b"3", b"", b"4"],
        [b"jobs", b"5"],
        [b"with space", b"6"],
    )
    assert pull_of(world, b"jobs").take() == [[b"1"], [b"2"], [b"5"]]
    assert pull_of(world, b"Bills").take() == [[b"3", b"", b"4"]]
    assert pull_of(world, b"bills").take() == []
    assert pull_of(world, b"with space").take() == [[b"6"]]
    assert refused(world) == 0
    assert not world.broker.has_queue("\x01zeromq.queue", 0)


def test_a_name_may_have_the_number_of_a_queue() -> None:
    world = routed()
    push = Socket(world, "PUSH")
    push.say([b"jobs;3", b"x"], [b"jobs;0", b"y"], [b"jobs;3", b"z"])
    pull = pull_of(world, b"jobs")
    assert sorted(pull.take()) == [[b"x"], [b"y"], [b"z"]]
    push.say(*[[b"jobs;3", b"%d" % number] for number in range(5)])
    assert pull.take() == numbers(0, 5)
    assert in_flight(world) == 0, "what has left is acknowledged in its own queue"


@pytest.mark.parametrize(
    "parts",
    [
        [b"a name alone"],
        [b"", b"x"],
        [b";1", b"x"],
        [b"jobs;", b"x"],
        [b"jobs;one", b"x"],
        [b"jobs;1;2", b"x"],
        [b"jobs;-1", b"x"],
        [b"jobs;65536", b"x"],
        [b"jobs;" + b"1" * 5_000, b"x"],
        [b"n" * 256, b"x"],
    ],
)
def test_a_name_that_cannot_be_one_takes_its_message_with_it(parts: list[bytes]) -> None:
    world = routed()
    push = Socket(world, "PUSH")
    push.say([b"jobs", b"before"], parts, [b"jobs", b"after"])
    assert pull_of(world, b"jobs").take() == [[b"before"], [b"after"]]
    assert refused(world) == 1
    assert push.client.closed == ""


@pytest.mark.parametrize("name", [b"\x01jobs", b"@name:x", b"a*", b"\xff\xfe", b"a\nb"])
def test_a_name_of_any_other_bytes_is_a_channel_of_its_own(name: bytes) -> None:
    world = routed()
    Socket(world, "PUSH").say([name, b"x"], [b"jobs", b"y"])
    assert pull_of(world, b"jobs").take() == [[b"y"]]
    subscriber = Socket(world, "SUB")
    subscriber.zmtp.subscribe(name)
    subscriber.flush()
    Socket(world, "PUB").say([name, b"z"])
    assert [b"z"] in [parts[1:] for parts in subscriber.take()]


def test_names_of_one_socket_are_bounded() -> None:
    world = routed(ZmtpLimits(max_names=2))
    push = Socket(world, "PUSH")
    push.say([b"a", b"1"], [b"b", b"2"], [b"c", b"3"], [b"a", b"4"])
    assert refused(world) == 1
    assert not world.broker.has_queue("\x01c", 0)
    assert pull_of(world, b"a").take() == [[b"1"], [b"4"]]
    Socket(world, "PUSH").say([b"c", b"5"])
    assert pull_of(world, b"c").take() == [[b"5"]]


def test_a_full_queue_lets_what_follows_wait_whatever_it_is_for() -> None:
    world = routed()
    push = Socket(world, "PUSH")
    changes = QueueChanges(status=STATUS_ROUND_ROBIN, message_limit=1, request_acknowledge=True)
    world.run(push.client.number, CreateQueue(push.client.number, None, "\x01full", 0, changes))
    push.say([b"full", b"1"], [b"full", b"2"], [b"other", b"3"])
    assert not push.client.reads
    assert pull_of(world, b"other").take() == []
    assert pull_of(world, b"full").take() == [[b"1"]]


def test_a_subscriber_names_channels_and_sees_their_names() -> None:
    world = routed()
    subscriber, publisher = Socket(world, "SUB"), Socket(world, "PUB")
    for name in (b"weather", b"News"):
        subscriber.zmtp.subscribe(name)
    subscriber.flush()
    publisher.say([b"weather", b"sun"], [b"News", b"a", b"b"], [b"news", b"x"], [b"weat", b"y"])
    assert subscriber.take() == [[b"weather", b"sun"], [b"News", b"a", b"b"]]
    subscriber.zmtp.cancel(b"weather")
    subscriber.flush()
    publisher.say([b"weather", b"rain"], [b"News", b"c"])
    assert subscriber.take() == [[b"News", b"c"]]


@pytest.mark.parametrize("prefix", [b"", b"news;1", b"n" * 256])
def test_a_subscription_that_is_no_name_gets_nothing(prefix: bytes) -> None:
    world = routed()
    subscriber = Socket(world, "SUB")
    subscriber.zmtp.subscribe(prefix)
    subscriber.zmtp.subscribe(b"news")
    subscriber.flush()
    Socket(world, "PUB").say([b"news", b"x"], [b"other", b"y"])
    assert subscriber.take() == [[b"news", b"x"]]
    assert refused(world) == 1


def test_a_channel_of_another_protocol_has_the_name_that_was_subscribed_to() -> None:
    """Libzmq drops what does not begin with a subscription."""
    world = routed()
    subscriber = Socket(world, "SUB")
    number = subscriber.client.number
    world.run(number, CreateQueue(number, None, "weather", 0, BROADCAST))
    subscriber.zmtp.subscribe(b"Weather")
    subscriber.flush()
    Socket(world, "PUB").say([b"WEATHER", b"sun"])
    assert subscriber.take() == [[b"Weather", b"sun"]]


def test_a_request_names_its_service() -> None:
    world = routed()
    asker = Socket(world, "DEALER")
    adder, other = [
        Socket(world, "REP", properties=(("X-Channel", name),)) for name in (b"add", b"other")
    ]
    asker.say([b"id", b"", b"add", b"1", b"2"], [b"id", b"", b"other;7", b"x"])
    ((token, empty, *parts),) = adder.take()
    assert (empty, parts) == (b"", [b"1", b"2"])
    adder.say([token, b"", b"3"])
    ((token, _, *parts),) = other.take()
    assert parts == [b"x"]
    other.say([token, b"", b"y"])
    assert asker.take() == [[b"id", b"", b"3"], [b"id", b"", b"y"]]
    assert in_flight(world) == 0


@pytest.mark.parametrize("parts", [[b"add"], [b"add;x", b"1"], [b"n" * 300, b"1"]])
def test_a_request_that_names_no_service_is_replied_to(parts: list[bytes]) -> None:
    world = routed()
    asker = Socket(world, "REQ")
    asker.say([b"", *parts])
    assert asker.take() == [[b"", b"TMQP-ERROR 400"]]
    assert refused(world) == 1


def test_a_pair_and_metadata_are_as_ever() -> None:
    world = routed(socket_type="PAIR")
    pair = Socket(world, "PAIR")
    pair.say([b"not a", b"name"])
    number = pair.client.number
    assert world.broker.has_queue("\x01zeromq.pair", 0)
    world.run(number, Push(number, "1", "\x01zeromq.pair.out", 0, False, False, 9, b"\0\1x", None))
    assert pair.take() == [[b"x"]]


def test_a_route_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="route must be endpoint or first-frame, not 'topic'"):
        ZmtpOptions(route="topic")
