"""Conversations of ZeroMQ sockets with a server in memory: what libzmq cannot show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tmqp_server.doors.door_world import DoorClient, DoorWorld
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.zmtp.door import ZmtpDoor
from tmqp_server.doors.zmtp.message import MULTIPART, ZmtpBodies, frames_of
from tmqp_server.doors.zmtp.options import ZmtpLimits, ZmtpOptions
from tmqp_server.engine.commands import ClearMessages, RemoveChannel, UpdateQueue
from tmqp_server.engine.effects import Confirm
from tmqp_server.engine.model.message import MARK_WANTS
from tmqp_server.engine.options import QueueChanges
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.events import Event, MessageReceived, PeerError, PeerReady
from tmqp_wires.zmtp.frames import message_frames, pack_parts

QUEUE = "\x01zeromq.queue"
SERVICE = "\x01zeromq.service"


def world_with(limits: ZmtpLimits | None = None, **options: Any) -> DoorWorld:
    """A server with a door of ZeroMQ."""
    chosen = ZmtpOptions(**options)
    return DoorWorld(
        lambda new_id, letters: ZmtpDoor(new_id, limits, chosen, letters), ZmtpBodies()
    )


class Socket:
    """A socket that is connected to it."""

    def __init__(self, world: DoorWorld, socket_type: str, **config: Any) -> None:
        self._world = world
        self.client: DoorClient = world.client()
        self.zmtp = ZmtpConnection(ZmtpConfig(socket_type=socket_type, **config), world.now)
        self.events: list[Event] = []
        for _ in range(4):
            self._hear(self.client.hear())
            self.flush()

    def _hear(self, data: bytes) -> None:
        self.events += self.zmtp.receive(data, self._world.now)

    def flush(self) -> None:
        data = self.zmtp.data_to_send()
        if data:
            self.client.say(data)

    def say(self, *messages: list[bytes]) -> None:
        """Send messages, as one chunk."""
        for parts in messages:
            self.zmtp.send_message(parts)
        self.flush()

    def take(self, *, written: bool = True) -> list[list[bytes]]:
        """What has come; the server learns that it has left it."""
        hub = self._world.hub
        self._hear(self.client.hear())
        session = hub._sessions.get(self.client.number)
        if written and session is not None and session.wants_written:
            hub.written(self.client.number, self._world.now)
            hub.go_on(self.client.number, self._world.now)
            self._world.settle()
        found = [event.parts for event in self.events if isinstance(event, MessageReceived)]
        self.events = [each for each in self.events if not isinstance(each, MessageReceived)]
        return found


def counted(world: DoorWorld) -> tuple[int, int]:
    """What subscribers have missed, and what they were sent."""
    (channel,) = world.hub.broker._core.channels.by_key.values()
    counters = channel.queues[0].counters
    return counters.skipped, counters.deliveries - counters.missed


def numbers(first: int, end: int) -> list[list[bytes]]:
    return [[b"%d" % number] for number in range(first, end)]


def limit(world: DoorWorld, socket: Socket, count: int) -> None:
    """Let the queue have so many messages."""
    changes = QueueChanges(message_limit=count)
    world.run(socket.client.number, UpdateQueue(socket.client.number, None, QUEUE, 0, changes))


def go_on(world: DoorWorld) -> None:
    """Let happen what is due, and what has waited for it."""
    for _ in range(100):
        world.settle(world.now - 0.0)
        woken = list(world.hub.woken)
        world.hub.woken.clear()
        for number in woken:
            world.hub.go_on(number, world.now)
        if not woken:
            return


def test_a_push_that_finds_no_room_waits_and_what_follows_with_it() -> None:
    world = world_with()
    push = Socket(world, "PUSH")
    limit(world, push, 3)
    push.say(*numbers(0, 10))
    assert not push.client.reads, "nothing more is read"
    pull = Socket(world, "PULL")
    found: list[list[bytes]] = []
    for _ in range(20):
        found += pull.take()
        go_on(world)
    assert found == numbers(0, 10)
    assert world.hub.reads(push.client.number)
    push.say(*numbers(10, 12))
    assert pull.take() == numbers(10, 12)


def test_what_a_socket_that_waits_says_later_stays_behind() -> None:
    world = world_with()
    push = Socket(world, "PUSH")
    limit(world, push, 1)
    push.say(*numbers(0, 2))
    push.say(*numbers(2, 4))
    pull = Socket(world, "PULL")
    found: list[list[bytes]] = []
    for _ in range(10):
        found += pull.take()
        go_on(world)
    assert found == numbers(0, 4)


def test_a_socket_that_waits_is_not_taken_for_dead() -> None:
    world = world_with()
    push = Socket(world, "PUSH")
    push.client.say(b"\x04\x07\x04PING\x00\x0f")  # give up after 1.5 s without a word
    limit(world, push, 1)
    push.say(*numbers(0, 2))
    world.settle(world.now - 1_000.0 + 1_010.0)
    assert push.client.closed == ""


def test_a_message_that_fits_at_no_time_is_dropped_and_counted() -> None:
    world = world_with()
    push = Socket(world, "PUSH")
    changes = QueueChanges(message_size_limit=1_000)
    world.run(push.client.number, UpdateQueue(push.client.number, None, QUEUE, 0, changes))
    push.say([bytes(2_000)], [b"small"])
    pull = Socket(world, "PULL")
    assert pull.take() == [[b"small"]]
    door = world.door
    assert isinstance(door, ZmtpDoor)
    assert door.context.refused == 1


def test_a_pull_socket_has_what_its_mark_allows_until_it_has_left() -> None:
    world = world_with(ZmtpLimits(high_water_mark=3))
    push, pull = Socket(world, "PUSH"), Socket(world, "PULL")
    push.say(*numbers(0, 5))
    assert pull.take(written=False) == numbers(0, 3)
    assert pull.take() == []
    assert pull.take() == numbers(3, 5)


def test_what_has_not_left_goes_to_another() -> None:
    world = world_with()
    push, first = Socket(world, "PUSH"), Socket(world, "PULL")
    push.say(*numbers(0, 3))
    first.client.leave()
    assert Socket(world, "PULL").take() == numbers(0, 3)


def _leaves(world: DoorWorld, number: int) -> None:
    world.hub.receive_eof(number, world.now)


def _is_closed(world: DoorWorld, number: int) -> None:
    world.hub.close(number, "enough", world.now)


def _is_cut(world: DoorWorld, number: int) -> None:
    world.hub.forget(number, world.now)


def _falls_silent(world: DoorWorld, number: int) -> None:
    world.hub.on_session_deadline(number, world.now + 9.0)


@pytest.mark.parametrize("ends", [_leaves, _is_closed, _is_cut, _falls_silent])
def test_what_has_left_is_done_though_its_socket_goes_at_once(
    ends: Callable[[DoorWorld, int], None],
) -> None:
    """Its acknowledges wait when the connection ends: the session's end came before them, and
    another socket got the messages a second time (seed 18668)."""
    world = world_with(ZmtpLimits(heartbeat_timeout_s=3.0), heartbeat_ms=1_000)
    push, first = Socket(world, "PUSH"), Socket(world, "PULL")
    world.hub.on_session_deadline(first.client.number, world.now + 1.0)  # asks for a sign of life
    push.say(*numbers(0, 3))
    first.client.hear()
    world.hub.written(first.client.number, world.now)
    ends(world, first.client.number)
    world.settle()
    assert world.hub.broker.statistics().sessions == 1
    assert Socket(world, "PULL").take() == []


def test_what_a_push_socket_sent_while_the_server_drained_was_lost() -> None:
    """It is told nothing, so it cannot send again (seed 14921)."""
    world = world_with()
    push = Socket(world, "PUSH")
    push.say([b"before"])
    world.hub.drain(world.now)
    push.say([b"one"])
    push.say([b"two"], [b"three"])
    (channel,) = world.hub.broker._core.channels.by_key.values()
    assert len(list(channel.queues[0].regular.messages())) == 4


def of_size(size: int) -> list[bytes]:
    """A message whose frame has so many bytes."""
    return [bytes(size - 2)]


@pytest.mark.parametrize(
    ("waiting", "begun"),
    [
        (0, 3),
        (1, 3),
        (99, 3),
        (100, 2),
        (101, 2),
        (200, 1),
        (300, 0),
    ],
)
def test_what_a_socket_got_in_part_came_to_another_as_well(waiting: int, begun: int) -> None:
    """Of three messages of 100 bytes some have left when the connection ends."""
    world = world_with()
    push, first = Socket(world, "PUSH"), Socket(world, "PULL")
    push.say(of_size(100), of_size(100), of_size(100))
    first.client.hear()
    hub = world.hub
    kept_back = hub.take_back(first.client.number, waiting, world.now)
    assert kept_back == (3 - begun) * 100
    hub.forget(first.client.number, world.now)
    world.settle()
    assert Socket(world, "PULL").take() == [of_size(100)] * (3 - begun)


def test_what_was_not_handed_over_is_kept_back_too() -> None:
    world = world_with()
    push, first = Socket(world, "PUSH"), Socket(world, "PULL")
    push.say(of_size(100))
    first.client.hear()
    push.say(of_size(100))
    assert world.hub.take_back(first.client.number, 100, world.now) == 100
    assert first.client.hear() == b""
    push.say(of_size(100))
    assert first.client.hear() == b"", "nothing is sent behind what was kept back"
    world.hub.forget(first.client.number, world.now)
    world.settle()
    assert Socket(world, "PULL").take() == [of_size(100)] * 3


def test_a_subscriber_that_reads_lost_messages_since_something_always_waited() -> None:
    world = world_with(ZmtpLimits(high_water_mark=2))
    subscriber, publisher = Socket(world, "SUB"), Socket(world, "PUB")
    subscriber.zmtp.subscribe(b"")
    subscriber.flush()
    for _ in range(6):
        publisher.say(of_size(100))
        subscriber.client.hear()
        world.hub.awaited[subscriber.client.number] = None  # as it is when it is written
        world.hub.left(subscriber.client.number, 50)  # the last one has left in half
    assert counted(world) == (0, 6)


def test_a_slow_subscriber_misses_messages_and_nobody_else_does() -> None:
    world = world_with(ZmtpLimits(high_water_mark=2))
    slow, quick = Socket(world, "SUB"), Socket(world, "SUB")
    for each in (slow, quick):
        each.zmtp.subscribe(b"")
        each.flush()
    publisher = Socket(world, "PUB")
    for number in range(6):
        publisher.say([b"%d" % number])
        assert quick.take() == [[b"%d" % number]]
        slow.client.hear() if number == 1 else None  # it is handed over, and does not leave
    assert counted(world) == (0, 12), "they are counted once the socket takes something again"
    assert slow.take() == []
    assert counted(world) == (4, 8)
    publisher.say([b"6"])
    assert slow.take() == quick.take() == [[b"6"]]
    assert counted(world) == (4, 10), "once"


def test_what_a_subscriber_missed_that_leaves_is_counted() -> None:
    world = world_with(ZmtpLimits(high_water_mark=1))
    slow, publisher = Socket(world, "SUB"), Socket(world, "PUB")
    slow.zmtp.subscribe(b"")
    slow.flush()
    for number in range(3):
        publisher.say([b"%d" % number])
        slow.client.hear()
    slow.client.leave()
    assert counted(world) == (2, 1)


def test_subscriptions_are_counted() -> None:
    world = world_with()
    subscriber, publisher = Socket(world, "SUB"), Socket(world, "PUB")
    subscriber.zmtp.subscribe(b"A")
    subscriber.zmtp.subscribe(b"A")
    subscriber.zmtp.cancel(b"A")
    subscriber.zmtp.cancel(b"other")
    subscriber.flush()
    publisher.say([b"A1"], [b"B1"])
    assert subscriber.take() == [[b"A1"]]
    subscriber.zmtp.cancel(b"A")
    subscriber.flush()
    publisher.say([b"A2"])
    assert subscriber.take() == []
    subscriber.zmtp.subscribe(b"")
    subscriber.flush()
    publisher.say([b"A3", b"part"])
    assert subscriber.take() == [[b"A3", b"part"]]


@pytest.mark.parametrize(
    ("limits", "prefixes", "reason"),
    [
        (ZmtpLimits(max_subscriptions=2), [b"a", b"b", b"c"], "more than 2 subscriptions"),
        (ZmtpLimits(max_subscription_bytes=5), [b"abc", b"abcd"], "more than 5 bytes"),
    ],
)
def test_subscriptions_are_bounded(limits: ZmtpLimits, prefixes: list[bytes], reason: str) -> None:
    world = world_with(limits)
    subscriber = Socket(world, "SUB")
    for prefix in prefixes:
        subscriber.zmtp.subscribe(prefix)
    subscriber.flush()
    assert reason in subscriber.client.closed


def test_a_refused_request_is_replied_to() -> None:
    world = world_with()
    asker = Socket(world, "REQ")
    changes = QueueChanges(message_size_limit=100)
    number = asker.client.number
    world.run(number, UpdateQueue(number, None, SERVICE, 0, changes))
    asker.say([b"envelope", b"", bytes(1_000)])
    assert asker.take() == [[b"envelope", b"", b"TMQP-ERROR 482"]]


def test_who_had_asked_waited_for_ever_when_the_disk_lost_the_request() -> None:
    world = world_with()
    asker = Socket(world, "REQ")
    number = asker.client.number
    asker.say([b"envelope", b"", b"question"])
    (queue,) = [each for each in world.broker.queues() if each.channel_name == "zeromq.service"]
    (request,) = queue.regular.messages()
    assert request.marks & MARK_WANTS
    session = world.hub._sessions[number]
    for positive in (True, False, False):  # only the first refusal is told
        name = request.message_id
        lost = Confirm(number, name, SERVICE, 0, positive, "busy", True, "", None)
        assert session.apply(lost, world.now) == ()
    assert asker.take() == [[b"envelope", b"", b"TMQP-ERROR 503"]]


def test_a_probe_is_ignored() -> None:
    world = world_with()
    asker, worker = Socket(world, "DEALER"), Socket(world, "REP")
    asker.say([b""], [b"id", b""], [b"", b"real"])
    assert [parts[2:] for parts in worker.take()] == [[b"real"]]


def test_an_open_request_too_many_forgets_the_oldest() -> None:
    world = world_with(ZmtpLimits(max_open_requests=1))
    asker, worker = Socket(world, "DEALER"), Socket(world, "ROUTER")
    asker.say([b"one", b"", b"1"], [b"two", b"", b"2"])
    for parts in worker.take():
        worker.say(parts)
    assert asker.take() == [[b"", b"1"], [b"two", b"", b"2"]]


def test_a_reply_to_nothing_is_dropped() -> None:
    world = world_with()
    worker = Socket(world, "REP")
    worker.say([b"no such", b"", b"reply"], [b"no envelope"])
    assert worker.client.closed == ""
    door = world.door
    assert isinstance(door, ZmtpDoor)
    assert door.context.refused == 2


def test_an_identity_that_is_in_use_counts_for_one() -> None:
    world = world_with()
    first, second = [Socket(world, "DEALER", identity=b"me") for _ in range(2)]
    assert world.broker.has_client("zmtp:me")
    for each in (first, second):
        (ready,) = each.events
        assert isinstance(ready, PeerReady)


def test_two_types_that_do_not_talk_are_refused_for_good() -> None:
    world = world_with(socket_type="PULL")
    refused = Socket(world, "SUB").events[-1]
    assert isinstance(refused, PeerError)
    assert refused.reason == "a PULL socket does not talk to a SUB socket"


def test_a_pair_needs_an_endpoint_of_its_own_and_is_alone_there() -> None:
    (refused,) = Socket(world_with(), "PAIR").events
    assert isinstance(refused, PeerError)
    world = world_with(socket_type="PAIR")
    first, second = Socket(world, "PAIR"), Socket(world, "PAIR")
    assert second.client.closed == "a PAIR socket is connected already"
    first.client.leave()
    assert Socket(world, "PAIR").client.closed == ""


def test_a_channel_that_is_removed_lets_its_sockets_come_again() -> None:
    world = world_with()
    pull = Socket(world, "PULL")
    world.run(pull.client.number, RemoveChannel(pull.client.number, None, QUEUE))
    assert "was removed" in pull.client.closed


def test_who_speaks_another_protocol_is_told_apart() -> None:
    world = world_with()
    client = world.client()
    client.say(b"GET / HTTP/1.1\r\n\r\n")
    assert client.closed == "the peer sent an HTTP request: no greeting of ZMTP 2.0 or later"


def test_a_part_too_large_ends_it_before_it_has_come() -> None:
    world = world_with(ZmtpLimits(max_part_bytes=100))
    push = Socket(world, "PUSH")
    push.client.say(b"\x02" + (101).to_bytes(8, "big"))
    assert "101 bytes, 100 at most" in push.client.closed


def test_a_peer_that_says_nothing_is_given_up() -> None:
    world = world_with(ZmtpLimits(handshake_s=5.0))
    client = world.client()
    world.settle(6.0)
    assert "within 5 seconds" in client.closed


def test_another_protocols_list_of_parts_may_only_say_that_it_is_one() -> None:
    letter = Letter(b"\0\0\0\1")
    letter.content_type = MULTIPART
    assert frames_of(letter) == message_frames((b"\0\0\0\1",))
    letter.body = pack_parts([b"a", b""])
    assert frames_of(letter) == message_frames((b"a", b""))


def test_a_kept_message_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="not a kept message"):
        ZmtpBodies().restored(b"\x07")
    with pytest.raises(ValueError, match="not from this door"):
        ZmtpBodies().unpacked(b"x")


def test_a_queue_that_is_cleared_is_room_too() -> None:
    world = world_with()
    push = Socket(world, "PUSH")
    limit(world, push, 1)
    push.say(*numbers(0, 2))
    number = push.client.number
    world.run(number, ClearMessages(number, None, QUEUE, 0, True, True))
    for _ in range(5):
        go_on(world)
        world.now += 0.1
    assert push.client.reads
    assert Socket(world, "PULL").take() == numbers(1, 2)
