"""Conversations of STOMP clients: order, limits, full queues, and what administrators do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tmqp_server.doors.door_world import DoorWorld
from tests.tmqp_server.doors.stomp.talk import (
    A,
    Client,
    bodies,
    error,
    in_flight,
    receipts,
    subscribed,
    world_with,
)
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.message import StompBodies
from tmqp_server.doors.stomp.options import StompLimits, StompOptions
from tmqp_server.engine.commands import ClearMessages, RemoveChannel, UpdateQueue
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import QueueChanges

# --- order, limits, and what others do -----------------------------------------------------------


def test_receipts_leave_in_the_order_of_their_frames() -> None:
    client = Client(world_with())
    for name in ("1", "2"):
        client.stomp.send("SEND", [("destination", A), ("receipt", name)], b"x")
    client.stomp.send("SUBSCRIBE", [("destination", "/queue/b"), ("id", "1"), ("receipt", "3")])
    client.stomp.send("BEGIN", [("transaction", "t"), ("receipt", "4")])
    client.stomp.send("DISCONNECT", [("receipt", "5")])
    assert receipts(client.flush()) == ["1", "2", "3", "4", "5"]
    assert client.closed


def test_frames_in_a_row_do_what_each_does_by_itself() -> None:
    world = world_with()
    client = Client(world)
    client.subscribe(ack="client-individual")
    client.subscribe("/queue/b", id="b", ack="client-individual")
    places = [A, A, A, "/queue/b", A, A, "/topic/t", A]
    for number, place in enumerate(places):
        headers = [("destination", place), ("receipt", str(number))]
        client.stomp.send("SEND", [*headers, ("priority", "9" if number == 4 else "4")], b"x")
    frames = client.flush()
    messages = [each for each in frames if each.command == "MESSAGE"]
    others = [each for each in frames if each.command != "MESSAGE"]
    assert receipts(others) == [str(number) for number in range(len(places))]
    assert [each.get("destination") for each in messages] == [p for p in places if p != "/topic/t"]
    for each in messages:
        client.stomp.send("ACK", [("id", each.get("ack"))])
    assert client.flush() == []
    assert world.broker.statistics().messages == in_flight(world.broker) == 0


def test_a_row_that_finds_no_room_is_refused_from_where_it_ends() -> None:
    client = Client(world_with(send_wait_ms=0))
    full(client, 3)
    for number in range(4):
        client.stomp.send("SEND", [("destination", A), ("receipt", str(number))], b"x")
    *done, refused = client.flush()
    assert receipts(done) == ["0", "1"]
    assert "a limit is reached" in error([refused])
    assert refused.get("receipt-id") == "2"
    assert client.world.broker.statistics().messages == 3


def test_nothing_is_done_behind_a_frame_that_is_refused() -> None:
    client = Client(world_with())
    client.stomp.send("SEND", [("destination", A), ("receipt", "1")], b"x")
    client.stomp.send("SEND", [("destination", "/nowhere"), ("receipt", "2")], b"x")
    client.stomp.send("SEND", [("destination", A), ("receipt", "3")], b"x")
    first, second = client.flush()
    assert receipts([first]) == ["1"]
    assert "there is no destination" in error([second])
    assert client.world.broker.statistics().messages == 1


def full(client: Client, limit: int = 1) -> None:
    """Let its queue take so many messages, one of which is there."""
    client.send(b"first")
    number = client.connection.number
    command = UpdateQueue(number, None, "\x01a", 0, QueueChanges(message_limit=limit))
    client.world.run(number, command)


def test_a_send_waits_for_room() -> None:
    client = Client(world_with(send_wait_ms=5_000))
    full(client)
    assert client.send(b"second", receipt="r") == []
    assert not client.connection.reads
    other = Client(client.world)
    assert bodies(other.subscribe()) == [b"first"]
    other.written()
    assert bodies(other.hear()) == [b"second"]
    assert receipts(client.hear()) == ["r"]
    assert client.connection.reads


@pytest.mark.parametrize("receipt", [{}, {"receipt": "r"}])
def test_a_send_that_finds_no_room_is_refused(receipt: dict[str, str]) -> None:
    client = Client(world_with(send_wait_ms=5_000))
    full(client)
    assert client.send(b"second", **receipt) == []
    client.world.settle(5.1)
    frames = client.hear()
    assert "a limit is reached" in error(frames)
    assert frames[0].get("receipt-id") == receipt.get("receipt", "")
    assert client.closed


def test_a_client_whose_destination_is_removed_is_told() -> None:
    client = Client(world_with())
    client.subscribe()
    number = client.connection.number
    client.world.run(number, RemoveChannel(number, None, "\x01a"))
    assert "was removed" in error(client.hear())


def test_an_ack_of_what_an_administrator_has_cleared_is_no_fault() -> None:
    client, found = subscribed(world_with(), "client", 1)
    number = client.connection.number
    clear = ClearMessages(number, None, "\x01a", 0, True, True, True)
    client.world.run(number, clear)
    assert receipts(client.ack(found[0], receipt="a")) == ["a"]


def test_each_limit_of_a_client() -> None:
    limits = StompLimits(
        max_subscriptions=1,
        max_prefetch=5,
        max_transactions=1,
        max_transaction_frames=1,
        max_temporary=1,
    )
    world = world_with(limits)
    client = Client(world)
    client.subscribe()
    assert "at most 1 subscriptions" in error(client.subscribe(id="2"))
    client = Client(world)
    assert "from 1 to 5" in error(client.subscribe(**{"activemq.prefetchSize": "6"}))
    client = Client(world)
    client.say("BEGIN", transaction="t")
    assert "at most 1 open transactions" in error(client.say("BEGIN", transaction="u"))
    client = Client(world)
    client.say("BEGIN", transaction="t")
    client.send(b"x", transaction="t")
    assert "at most 1 frames" in error(client.send(b"x", transaction="t"))
    client = Client(world)
    client.subscribe("/temp-queue/a")
    assert "at most 1 temporary" in error(client.send(b"x", "/temp-queue/b"))
    world = world_with(StompLimits(max_transaction_bytes=500))
    client = Client(world)
    client.say("BEGIN", transaction="t")
    assert "at most 500 bytes" in error(client.send(b"x" * 500, transaction="t"))


def test_a_subscription_for_which_the_broker_has_no_room() -> None:
    limits = EngineLimits(max_branches_per_session=1)
    world = DoorWorld(
        lambda new_id, letters: StompDoor(new_id, letters=letters), StompBodies(), limits
    )
    client = Client(world)
    assert receipts(client.subscribe(receipt="s")) == ["s"]
    frames = client.subscribe("/queue/b", id="2", receipt="t")
    assert "SUBSCRIBE to '/queue/b': a limit is reached" in error(frames)
    assert frames[0].get("receipt-id") == "t"
    assert world.broker.statistics().sessions == 0


def test_a_client_with_too_many_receipts_to_come_is_not_read() -> None:
    client = Client(world_with(StompLimits(max_unanswered=2), send_wait_ms=-1))
    full(client)
    for name in ("1", "2"):
        client.stomp.send("SEND", [("destination", A), ("receipt", name)], b"x")
    assert client.flush() == []
    session = client.world.hub._sessions[client.connection.number]
    assert not session.reads
    other = Client(client.world)
    other.subscribe()
    for _ in range(3):
        other.written()
    assert receipts(client.hear()) == ["1", "2"]
    assert session.reads


@pytest.mark.parametrize(
    "wrong",
    [{"prefetch": 0}, {"heart_beat_ms": -1}, {"send_wait_ms": -2}, {"redeliveries": 0}],
    ids=str,
)
def test_options_that_cannot_be_used(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        StompOptions(**wrong)
