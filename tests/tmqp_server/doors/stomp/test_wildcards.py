"""Subscriptions of STOMP with wildcards: what is there, what comes, what goes."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.stomp.talk import Client, bodies, error, receipts, world_with
from tmqp_server.doors.stomp.options import StompLimits
from tmqp_server.engine.commands import RemoveChannel


def places(frames: list[object]) -> list[str]:
    return [each.get("destination") for each in frames]  # type: ignore[attr-defined]


def test_a_subscription_with_wildcards_joins_what_is_there_and_what_comes() -> None:
    world = world_with(StompLimits(max_matches=2))
    client, other = Client(world), Client(world)
    client.send(b"a", "/queue/w.a")
    client.send(b"no", "/queue/v.a")
    client.send(b"no", "/topic/w.a")
    frames = client.subscribe("/queue/w.>", ack="client-individual", receipt="s")
    assert sorted(each.command for each in frames) == ["MESSAGE", "RECEIPT"]
    (found,) = [each for each in frames if each.command == "MESSAGE"]
    assert (found.body, found.get("destination")) == (b"a", "/queue/w.a")
    client.written()
    other.send(b"B", "/queue/w.B.c")
    client.written()
    (found,) = client.hear()
    assert (found.body, found.get("destination")) == (b"B", "/queue/w.B.c")
    client.ack(found)
    other.send(b"too many", "/queue/w.d")
    client.written()
    assert client.hear() == []
    assert client.say("UNSUBSCRIBE", id="1") == []
    assert world.broker.statistics().in_flight == 0


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [("/topic/p.*", ["p.a"]), ("/topic/p.>", ["p.a", "p.a.b"]), ("/topic/*.a", ["p.a"])],
)
def test_topics_by_their_parts(pattern: str, wanted: list[str]) -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    for name in ("p.a", "p.a.b", "q"):
        other.subscribe(f"/topic/{name}", id=name)
    assert receipts(client.subscribe(pattern, receipt="s")) == ["s"]
    for name in ("p.a", "p.a.b", "q"):
        other.send(name.encode(), f"/topic/{name}")
    frames = client.hear()
    assert bodies(frames) == [name.encode() for name in wanted]
    assert places(list(frames)) == [f"/topic/{name}" for name in wanted]


def test_its_selector_and_its_window_hold_for_all_that_it_joins() -> None:
    client = Client(world_with())
    client.send(b"0", "/queue/w.a", n="1")
    headers = {"selector": "n = 1", "activemq.prefetchSize": "1"}
    found = client.subscribe("/queue/w.*,/queue/x", ack="client-individual", **headers)
    assert bodies(found) == [b"0"]
    client.send(b"no", "/queue/w.b", n="2")
    client.written()
    assert bodies(client.send(b"1", "/queue/w.b", n="1")) == [b"1"]
    assert bodies(client.send(b"2", "/queue/x", n="1")) == [b"2"]
    assert client.send(b"3", "/queue/x", n="1") == []


def test_a_queue_that_is_removed_does_not_end_it_and_one_that_is_made_again_is_joined() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    other.send(b"a", "/queue/w.a")
    assert bodies(client.subscribe("/queue/w.*")) == [b"a"]
    client.written()
    world.run(other.connection.number, RemoveChannel(other.connection.number, None, "\x01w.a"))
    assert not client.closed
    other.send(b"b", "/queue/w.a")
    client.written()
    assert bodies(client.hear()) == [b"b"]


@pytest.mark.parametrize(
    ("command", "headers", "text"),
    [
        ("SEND", {"destination": "/queue/a.*"}, "cannot be sent to wildcards"),
        ("SUBSCRIBE", {"destination": "/temp-queue/a.*", "id": "1"}, "have no wildcards"),
        ("SUBSCRIBE", {"destination": "/queue/a.>", "id": "1", "browser": "true"}, "for one queue"),
        (
            "SUBSCRIBE",
            {"destination": "/topic/a.>", "id": "1", "activemq.subscriptionName": "n"},
            "must have one topic",
        ),
    ],
)
def test_where_wildcards_make_no_sense(command: str, headers: dict[str, str], text: str) -> None:
    client = Client(world_with(), **{"client-id": "me"})
    assert text in error(client.say(command, **headers))
