"""Destinations that mean several, browsers, and durable subscriptions of STOMP."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.door_world import DoorWorld
from tests.tmqp_server.doors.stomp.talk import (
    A,
    Client,
    bodies,
    error,
    in_flight,
    receipts,
    world_with,
)
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.stomp.browsing import _PAGE
from tmqp_server.doors.stomp.message import headers_of
from tmqp_wires.stomp.frames import V1_1

TOPIC = "/topic/prices"
NAME = "activemq.subscriptionName"


# --- several destinations ------------------------------------------------------------------------


def test_a_message_goes_to_all_that_its_destination_means() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    other.subscribe("/topic/t")
    sent = client.send(b"x", "/queue/a, b,/topic/t,/queue/a", receipt="r")
    assert receipts(sent) == ["r"]
    assert bodies(other.hear()) == [b"x"]
    found = [client.subscribe(f"/queue/{name}", id=name)[0] for name in ("a", "b")]
    assert bodies(found) == [b"x", b"x"]
    assert found[0].get("message-id") != found[1].get("message-id")


def test_a_receipt_comes_when_all_have_the_message() -> None:
    client = Client(world_with())
    client.say("BEGIN", transaction="t")
    assert receipts(client.send(b"x", "/queue/a,/queue/b", transaction="t", receipt="1")) == ["1"]
    assert client.subscribe("/queue/a,b") == []
    *found, receipt = client.say("COMMIT", transaction="t", receipt="2")
    assert receipts([receipt]) == ["2"]
    assert bodies(found) == [b"x", b"x"]


def test_a_subscription_to_several_names_where_each_message_came_from() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    assert receipts(client.subscribe("/queue/a,/topic/t", ack="client", receipt="s")) == ["s"]
    other.send(b"1", "/queue/a")
    other.send(b"2", "/topic/t")
    other.send(b"3", "/queue/a")
    first, second, third = client.hear()
    assert bodies([first, second, third]) == [b"1", b"2", b"3"]
    places = [each.get("destination") for each in (first, second, third)]
    assert places == ["/queue/a", "/topic/t", "/queue/a"]
    assert in_flight(world.broker) == 2
    client.ack(third)
    assert in_flight(world.broker) == 0


def test_names_that_differ_by_case_are_two_of_several() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    client.subscribe("/queue/jobs,/queue/Jobs", ack="client-individual")
    other.send(b"1", "/queue/Jobs")
    other.send(b"2", "/queue/jobs")
    found = client.hear()
    assert [each.get("destination") for each in found] == ["/queue/Jobs", "/queue/jobs"]
    for each in found:
        client.ack(each)
    assert in_flight(world.broker) == 0


def test_acknowledges_of_two_queues_were_one_answer() -> None:
    """Answers in a row were joined whatever their channels."""
    world = world_with()
    client, other = Client(world), Client(world)
    client.subscribe("/queue/a,/queue/b", ack="client-individual")
    other.send(b"1", "/queue/a")
    other.send(b"2", "/queue/b")
    for each in client.hear():
        client.stomp.send("ACK", [("id", each.get("ack"))])
    assert client.flush() == []
    assert in_flight(world.broker) == 0


# --- browsers ------------------------------------------------------------------------------------


def browse(client: Client, **headers: str) -> list[bytes]:
    """What a browser sees, until its end."""
    seen = client.subscribe(id="b", browser="true", **headers)
    while not seen or seen[-1].get("browser") != "end":
        client.written()
        more = client.hear()
        assert more
        seen += more
    assert seen[-1].get("subscription") == "b"
    assert seen[-1].get("destination") == A
    assert {each.get("browser") for each in seen[:-1]} <= {"true"}
    client.say("UNSUBSCRIBE", id="b")
    return bodies(seen[:-1])


def test_a_browser_sees_what_is_there_and_changes_nothing() -> None:
    world = world_with()
    client = Client(world)
    assert browse(client) == [], "of a queue that is not there"
    for number in range(3):
        client.send(b"%d" % number, n=str(number))
    assert browse(client) == [b"0", b"1", b"2"]
    assert browse(client, selector="n > 0") == [b"1", b"2"]
    client.subscribe(ack="client", **{"activemq.prefetchSize": "1"})
    assert browse(Client(world)) == [b"0", b"1", b"2"], "also what a consumer has"


def test_a_browser_is_given_a_queue_in_portions() -> None:
    client = Client(world_with())
    count = 2 * _PAGE + 7
    for number in range(count):
        client.stomp.send("SEND", [("destination", A)], b"%d" % number)
    client.flush()
    first = client.subscribe(id="b", browser="true")
    assert len(first) == _PAGE, "the next ones wait until these have left"
    client.say("UNSUBSCRIBE", id="b")
    client.written()
    assert client.hear() == [], "it has ended"
    assert len(browse(client)) == count


def test_browsers_look_one_after_the_other() -> None:
    client = Client(world_with())
    client.send(b"x")
    client.stomp.send("SUBSCRIBE", [("destination", A), ("id", "1"), ("browser", "true")])
    client.stomp.send("SUBSCRIBE", [("destination", A), ("id", "2"), ("browser", "true")])
    seen = client.flush()
    for _ in range(4):
        client.written()
        seen += client.hear()
    told = [(each.get("subscription"), each.get("browser")) for each in seen]
    assert told == [("1", "true"), ("1", "end"), ("2", "true"), ("2", "end")]


# --- durable subscriptions -----------------------------------------------------------------------


def watcher(world: DoorWorld, **headers: str) -> Client:
    """A client that has a durable subscription."""
    client = Client(world, **{"client-id": "me"})
    told = client.subscribe(TOPIC, ack="client", receipt="s", **{NAME: "news", **headers})
    assert receipts(told[-1:]) == ["s"]
    client.kept = bodies(told[:-1])  # type: ignore[attr-defined]  # what came before the receipt
    return client


def away(client: Client) -> None:
    """The client leaves."""
    client.say("DISCONNECT")
    client.world.hub.forget(client.connection.number, client.world.now)


def kept(client: Client) -> list[bytes]:
    """What a watcher was sent at once."""
    found: list[bytes] = client.kept  # type: ignore[attr-defined]
    return found


def test_a_durable_subscription_keeps_a_topic_while_its_client_is_away() -> None:
    world = world_with()
    producer = Client(world)
    producer.send(b"before", TOPIC)
    first = watcher(world)
    assert kept(first) == []
    producer.send(b"1", TOPIC)
    (message,) = first.hear()
    assert message.body == b"1"
    assert message.get("destination") == TOPIC
    first.ack(message)
    away(first)
    producer.send(b"2", TOPIC)
    producer.send(b"3", TOPIC)
    second = watcher(world)
    assert kept(second) == [b"2", b"3"]
    away(second)
    assert kept(watcher(world)) == [b"2", b"3"], "nobody has acknowledged them"


def test_a_durable_subscription_is_there_as_long_as_it_is_not_removed() -> None:
    world = world_with()
    producer, client = Client(world), watcher(world)
    assert receipts(client.say("UNSUBSCRIBE", id="1", receipt="1")) == ["1"]
    producer.send(b"x", TOPIC)
    told = client.subscribe(TOPIC, receipt="2", **{NAME: "news"})
    assert bodies(told[:1]) == [b"x"]
    client.say("UNSUBSCRIBE", id="1")
    assert receipts(client.say("UNSUBSCRIBE", id="1", receipt="3", **{NAME: "news"})) == ["3"]
    producer.send(b"y", TOPIC)
    assert receipts(client.subscribe(TOPIC, receipt="4", **{NAME: "news"})) == ["4"]
    assert "there is no such destination" in error(client.say("UNSUBSCRIBE", **{NAME: "other"}))


def test_another_selector_or_topic_is_another_subscription() -> None:
    world = world_with()
    producer = Client(world)
    away(watcher(world))
    producer.send(b"all", TOPIC, n="1")
    client = watcher(world, selector="n > 1")
    assert kept(client) == [], "the old one has gone with its messages"
    producer.send(b"one", TOPIC, n="1")
    producer.send(b"two", TOPIC, n="2")
    assert bodies(client.hear()) == [b"two"]
    away(client)
    other = Client(world, **{"client-id": "me"})
    assert receipts(other.subscribe("/topic/o", receipt="s", **{NAME: "news"})) == ["s"]
    producer.send(b"two", TOPIC, n="2")
    producer.send(b"other", "/topic/o")
    assert bodies(other.hear()) == [b"other"]


@pytest.mark.parametrize(
    ("destination", "headers", "text"),
    [
        (TOPIC, {"id": "2"}, "in use"),
        (A, {NAME: "other", "id": "2"}, "must have one topic"),
        ("/topic/a,b", {NAME: "other", "id": "2"}, "must have one topic"),
        ("/temp-topic/a", {NAME: "other", "id": "2"}, "must have one topic"),
        (TOPIC, {NAME: "other", "id": "2", "activemq.noLocal": "true"}, "noLocal is not served"),
        (TOPIC, {NAME: "other", "id": "2", "browser": "true"}, "a browser is for one queue"),
        (TOPIC, {NAME: "other", "id": "2", "selector": "a ="}, "its end"),
    ],
)
def test_a_durable_subscription_that_cannot_be(
    destination: str, headers: dict[str, str], text: str
) -> None:
    client = watcher(world_with())
    assert text in error(client.subscribe(destination, **{NAME: "news", **headers}))


def test_a_durable_subscription_in_use_is_not_removed() -> None:
    client = watcher(world_with())
    assert "in use" in error(client.say("UNSUBSCRIBE", id="1", **{NAME: "news"}))


def test_older_versions_and_other_names_of_the_header() -> None:
    world = world_with()
    producer = Client(world)
    for header in ("durable-subscription-name", "durable-subscriber-name"):
        client = Client(world, (V1_1,), **{"client-id": "you"})
        client.subscribe(TOPIC, **{header: "n"})
        away(client)
    producer.send(b"x", TOPIC)
    client = Client(world, (V1_1,), **{"client-id": "you"})
    assert bodies(client.subscribe(TOPIC, **{"durable-subscription-name": "n"})) == [b"x"]


@pytest.mark.parametrize(
    ("channel", "destination"),
    [
        ("answers", "/queue/answers"),
        ("topic://news", "/topic/news"),
        ("temp-queue://ID:c-1:7", "/remote-temp-queue/ID:c-1:7"),
        ("temp-topic://x/1", "/remote-temp-topic/x/1"),
        ("/queue/answers", "/queue/answers"),
    ],
)
def test_the_reply_to_of_another_protocol_was_no_destination(
    channel: str, destination: str
) -> None:
    letter = Letter(b"x")
    letter.reply_to = channel
    assert dict(headers_of(letter))["reply-to"] == destination
