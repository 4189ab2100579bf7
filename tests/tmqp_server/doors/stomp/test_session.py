"""Conversations of STOMP clients with a server in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.tmqp_server.doors.door_world import DoorClient, DoorWorld
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.message import StompBodies
from tmqp_server.doors.stomp.options import StompLimits, StompOptions
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import ClearMessages, RemoveChannel, UpdateQueue
from tmqp_server.engine.options import QueueChanges
from tmqp_wires.stomp import ClientConnection, StompFrame
from tmqp_wires.stomp.frames import V1_0, V1_1, VERSIONS

A = "/queue/a"
#: Headers by their names as Python spells them.
NAMES = {"reply_to": "reply-to", "receipt_id": "receipt-id", "message_id": "message-id"}


def world_with(limits: StompLimits | None = None, **options: Any) -> DoorWorld:
    """A server with a door of STOMP."""
    chosen = StompOptions(**options)
    return DoorWorld(
        lambda new_id, letters: StompDoor(new_id, limits, chosen, letters), StompBodies()
    )


class Client:
    """A client that is let in."""

    def __init__(
        self, world: DoorWorld, versions: Sequence[str] = VERSIONS, **headers: str
    ) -> None:
        self.world = world
        self.connection: DoorClient = world.client()
        self.stomp = ClientConnection(world.now)
        self.stomp.send_connect(list(headers.items()), versions)
        (self.connected,) = self.flush()

    def flush(self) -> list[StompFrame]:
        """Send what is queued, and read."""
        self.connection.say(self.stomp.data_to_send())
        return self.hear()

    def hear(self) -> list[StompFrame]:
        """What has come since the last time."""
        events = self.stomp.receive(self.connection.hear(), self.world.now)
        found = [each for each in events if isinstance(each, StompFrame)]
        assert len(found) == len(events)
        return found

    def say(self, command: str, body: bytes = b"", **headers: str) -> list[StompFrame]:
        """Send one frame, and read."""
        named = [(NAMES.get(name, name), value) for name, value in headers.items()]
        self.stomp.send(command, named, body)
        return self.flush()

    def send(self, body: bytes, destination: str = A, **headers: str) -> list[StompFrame]:
        return self.say("SEND", body, destination=destination, **headers)

    def subscribe(self, destination: str = A, **headers: str) -> list[StompFrame]:
        return self.say("SUBSCRIBE", **{"destination": destination, "id": "1", **headers})

    def ack(self, message: StompFrame, **headers: str) -> list[StompFrame]:
        return self.say("ACK", id=message.get("ack"), **headers)

    def nack(self, message: StompFrame, **headers: str) -> list[StompFrame]:
        return self.say("NACK", id=message.get("ack"), **headers)

    def written(self) -> None:
        """All that was sent has left the server."""
        self.world.hub.written(self.connection.number, self.world.now)
        self.world.hub.go_on(self.connection.number, self.world.now)
        self.world.settle()

    @property
    def closed(self) -> str:
        return self.connection.closed


def bodies(frames: list[StompFrame]) -> list[bytes]:
    assert all(each.command == "MESSAGE" for each in frames), frames
    return [each.body for each in frames]


def receipts(frames: list[StompFrame]) -> list[str]:
    assert all(each.command == "RECEIPT" for each in frames), frames
    return [each.get("receipt-id") for each in frames]


def error(frames: list[StompFrame]) -> str:
    (frame,) = frames
    assert frame.command == "ERROR", frame
    assert frame.get("content-length") == str(len(frame.body))
    return frame.get("message")


def in_flight(broker: Broker) -> int:
    return broker.statistics().in_flight


# --- CONNECT -------------------------------------------------------------------------------------


@pytest.mark.parametrize("versions", [(V1_0,), (V1_1,), VERSIONS])
def test_a_client_is_let_in_and_says_goodbye(versions: tuple[str, ...]) -> None:
    client = Client(world_with(), versions)
    assert client.connected.get("version") == versions[0] == client.stomp.version
    assert client.connected.get("server") == "tmqp"
    assert client.connected.get("session")
    assert receipts(client.say("DISCONNECT", receipt="r")) == ["r"]
    assert client.closed == "the client has disconnected"
    assert client.world.broker.statistics().sessions == 0


def test_goodbye_without_a_receipt() -> None:
    client = Client(world_with())
    assert client.say("DISCONNECT") == []
    assert client.closed


@pytest.mark.parametrize(
    ("data", "message", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "there is no command 'GET / HTTP/1.1'", "an HTTP request"),
        (b"SEND\n\nx\0", "SEND came before CONNECT", "SEND"),
        (b"CONNECT\naccept-version:9\n\n\0", "none of the versions", "a STOMP client's greeting"),
        (b"\x16\x03\x01" + bytes(20), "there is no command", "a TLS handshake"),
    ],
)
def test_strangers_are_told_why(data: bytes, message: str, reason: str) -> None:
    world = world_with()
    stranger = world.client()
    stranger.say(data)
    answer = stranger.hear()
    assert answer.startswith(b"ERROR\nmessage:" + message.encode())
    assert b"\nversion:1.0,1.1,1.2\n" in answer
    assert reason in stranger.closed
    assert world.broker.statistics().sessions == 0


def test_who_says_nothing_is_closed() -> None:
    world = world_with(StompLimits(connect_s=5.0))
    stranger = world.client()
    world.settle(4.9)
    assert not stranger.closed
    world.settle(5.0)
    assert "no CONNECT came in time" in stranger.closed
    assert b"no CONNECT" in stranger.hear()


def test_a_client_id_is_for_one_at_a_time() -> None:
    world = world_with()
    first = Client(world, **{"client-id": "mine"})
    second = Client(world, **{"client-id": "mine"})
    assert second.connected.command == "ERROR"
    assert "'mine' is in use" in second.connected.get("message")
    first.say("DISCONNECT")
    world.hub.forget(first.connection.number, world.now)
    third = Client(world, **{"client-id": "mine"})
    assert third.connected.command == "CONNECTED"


def test_heart_beats_are_sent_and_their_absence_ends_the_connection() -> None:
    world = world_with()
    client = world.client()
    client.say(b"CONNECT\naccept-version:1.2\nheart-beat:2000,4000\n\n\0")
    assert b"\nheart-beat:1000,1000\n" in client.hear()
    world.settle(3.9)
    client.say(b"\n")
    world.settle(7.8)
    assert set(client.hear()) == {10}
    world.settle(8.0)
    assert "nothing was heard for 4 seconds" in client.closed


def test_the_server_says_why_it_closes() -> None:
    client = Client(world_with())
    client.world.hub.close(client.connection.number, "the server stops", client.world.now)
    assert error(client.hear()) == "the server stops"


# --- SEND and SUBSCRIBE --------------------------------------------------------------------------


def test_what_is_sent_waits_for_a_subscriber() -> None:
    client = Client(world_with())
    assert client.send(b"one") == []
    assert receipts(client.send(b"two", receipt="2", persistent="true")) == ["2"]
    first, second, receipt = client.subscribe(receipt="s", ack="client")
    assert receipts([receipt]) == ["s"]
    assert bodies([first, second]) == [b"one", b"two"]
    assert first.get("destination") == A
    assert first.get("subscription") == "1"
    assert second.get("persistent") == "true"
    assert second.get("content-length") == "3"
    assert second.get("timestamp").isdigit()
    assert first.get("message-id") != second.get("message-id")
    for name in ("receipt", "redelivered", "transaction"):
        assert second.find(name) is None


def test_headers_go_on_as_they_were_and_those_of_the_server_are_its_own() -> None:
    client = Client(world_with())
    said = [
        ("destination", A),
        ("a:b", "c\\d\re\nf"),
        ("a:b", "again"),
        ("message-id", "mine"),
        ("subscription", "7"),
        ("timestamp", "1"),
        ("JMSXUserID", "root"),
        ("priority", "4"),
        ("expires", "0"),
    ]
    client.stomp.send("SEND", said, b"x")
    client.flush()
    message, _ = client.subscribe(receipt="s")
    own = ("content-length", "timestamp", "destination", "message-id", "subscription")
    assert [each for each in message.headers if each[0] not in own] == said[1:3]
    assert message.get("message-id") != "mine"
    assert message.get("subscription") == "1"


@pytest.mark.parametrize("version", [V1_0, V1_1])
def test_an_older_client_reads_what_a_newer_one_has_written(version: str) -> None:
    world = world_with()
    client, older = Client(world), Client(world, (version,))
    client.stomp.send("SEND", [("destination", A), ("a:b", "c\\d"), ("e", "f:g\r")], b"x\n\ny")
    client.flush()
    message, _ = older.subscribe(receipt="s")
    found = {name: value.strip(" ") for name, value in message.headers}
    assert found["a b" if version == V1_0 else "a:b"] == "c\\d"
    assert found["e"] == "f:g"
    assert message.body == b"x\n\ny"
    assert message.find("ack") is None


def test_two_subscribers_share_a_queue_and_each_gets_all_of_a_topic() -> None:
    world = world_with()
    one, two, producer = (Client(world) for _ in range(3))
    for each in (one, two):
        each.subscribe("/queue/a", id="q")
        each.subscribe("/topic/a", id="t")
    for body in (b"1", b"2", b"3", b"4"):
        producer.send(body)
        producer.send(body, "/topic/a")
    found = [[(each.get("subscription"), each.body) for each in c.hear()] for c in (one, two)]
    for each in found:
        assert [body for name, body in each if name == "t"] == [b"1", b"2", b"3", b"4"]
    assert [[b for n, b in each if n == "q"] for each in found] == [[b"1", b"3"], [b"2", b"4"]]


def test_several_subscriptions_of_one_connection_are_told_apart() -> None:
    client = Client(world_with())
    client.subscribe("/topic/t", id="x")
    client.subscribe("/topic/t", id="y")
    client.subscribe("/queue/t", id="z")
    found = client.send(b"1", "/topic/t") + client.send(b"2", "/queue/t")
    assert [(each.get("subscription"), each.body) for each in found] == [
        ("x", b"1"),
        ("y", b"1"),
        ("z", b"2"),
    ]
    assert receipts(client.say("UNSUBSCRIBE", id="x", receipt="u")) == ["u"]
    assert [each.get("subscription") for each in client.send(b"3", "/topic/t")] == ["y"]


def test_a_client_of_1_0_needs_no_id() -> None:
    client = Client(world_with(), (V1_0,))
    assert receipts(client.say("SUBSCRIBE", destination=A, receipt="s")) == ["s"]
    (message,) = client.send(b"x")
    assert message.find("subscription") is None
    assert receipts(client.say("UNSUBSCRIBE", destination=A, receipt="u")) == ["u"]
    assert client.send(b"y") == []


def test_what_comes_first_is_what_is_urgent() -> None:
    client = Client(world_with())
    for priority in ("4", "9", "0"):
        client.send(priority.encode(), priority=priority)
    found = client.subscribe()
    assert bodies(found) == [b"9", b"4", b"0"]
    assert [each.get("priority") for each in found] == ["9", "", "0"]


def test_a_message_expires() -> None:
    client = Client(world_with())
    world = client.world
    unix_ms = int(world.now * 1000)
    client.send(b"short", expires=str(unix_ms + 500))
    client.send(b"long", expires=str(unix_ms + 60_000))
    assert receipts(client.send(b"late", expires="1", receipt="r")) == ["r"]
    world.settle(1.0)
    (message,) = client.subscribe()
    assert message.body == b"long"
    assert message.get("expires") == str(unix_ms + 60_000)


def test_a_message_is_delayed() -> None:
    client = Client(world_with())
    client.subscribe()
    assert client.send(b"x", AMQ_SCHEDULED_DELAY="2000") == []
    client.world.settle(1.9)
    assert client.hear() == []
    client.world.settle(2.1)
    (message,) = client.hear()
    assert message.find("AMQ_SCHEDULED_DELAY") is None


def test_a_client_that_does_not_want_its_own() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    client.subscribe("/topic/t", **{"activemq.noLocal": "true"})
    assert client.send(b"mine", "/topic/t") == []
    other.send(b"another's", "/topic/t")
    assert bodies(client.hear()) == [b"another's"]


def test_a_selector_chooses_and_what_nobody_chooses_waits() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    wanted = "colour = 'red' AND JMSPriority > 4"
    client.subscribe(selector=wanted)
    found: list[StompFrame] = []
    for number, (colour, priority) in enumerate((("red", "4"), ("red", "5"), ("blue", "9"))):
        found += client.send(b"%d" % number, colour=colour, priority=priority)
    assert bodies(found) == [b"1"]
    assert bodies(other.subscribe(selector="colour <> 'red'")) == [b"2"]
    assert bodies(other.subscribe(id="2")) == [b"0"]


def test_a_selector_of_a_topic_and_of_others_messages() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    client.subscribe("/topic/t", selector="n IS NOT NULL", **{"activemq.noLocal": "true"})
    client.send(b"mine", "/topic/t", n="1")
    other.send(b"without", "/topic/t")
    other.send(b"with", "/topic/t", n="1")
    assert bodies(client.hear()) == [b"with"]


def test_consumers_of_a_higher_priority_come_first() -> None:
    world = world_with()
    low, high = Client(world), Client(world)
    low.subscribe()
    high.subscribe(ack="client", **{"activemq.priority": "9", "activemq.prefetchSize": "1"})
    for body in (b"1", b"2"):
        low.send(body)
    assert bodies(high.hear()) == [b"1"]
    assert low.world.broker.statistics().messages == 0


WRONG_SENDS: list[tuple[dict[str, str], str]] = [
    ({"destination": ""}, "there is no destination ''"),
    ({"destination": "queue/a"}, "begins with /queue/"),
    ({"destination": "/queue/"}, "has no name"),
    ({"destination": "/queue/a,b"}, "several destinations"),
    ({"destination": "/queue/a.*"}, "wildcards"),
    ({"destination": "/topic/>"}, "wildcards"),
    ({"destination": "/queue/a?x=1"}, "options of a destination"),
    ({"destination": "/remote-temp-queue/x/y"}, "not possible for this destination"),
    ({"destination": A, "priority": "10"}, "from 0 to 9"),
    ({"destination": A, "expires": "soon"}, "expires is no time"),
    ({"destination": A, "AMQ_SCHEDULED_DELAY": "-1"}, "no number of milliseconds"),
    ({"destination": A, "AMQ_SCHEDULED_CRON": "* * * * *"}, "AMQ_SCHEDULED_CRON is not served"),
    ({"destination": A, "transaction": "t"}, "there is no transaction 't'"),
]


@pytest.mark.parametrize(("headers", "text"), WRONG_SENDS, ids=[text for _, text in WRONG_SENDS])
@pytest.mark.parametrize("receipt", [False, True])
def test_a_send_that_cannot_be_carried_out(
    headers: dict[str, str], text: str, receipt: bool
) -> None:
    client = Client(world_with())
    client.send(b"before")
    more = {"receipt": "r"} if receipt else {}
    frames = client.say("SEND", b"x", **headers, **more)
    assert text in error(frames)
    assert frames[0].get("receipt-id") == ("r" if receipt else "")
    assert text in client.closed
    assert client.world.broker.statistics().messages == 1


WRONG_SUBSCRIBES: list[tuple[dict[str, str], str]] = [
    ({"id": "1"}, "there is no destination ''"),
    ({"destination": A}, "the header id is missing"),
    ({"destination": A, "id": "1", "ack": "maybe"}, "client-individual, not 'maybe'"),
    ({"destination": A, "id": "1", "selector": "a ="}, "its end where a value should be"),
    ({"destination": A, "id": "1", "selector": "a" * 1_025}, "at most 1024 bytes"),
    ({"destination": A, "id": "1", "browser": "true"}, "browser is not served"),
    (
        {"destination": "/topic/a", "id": "1", "activemq.subscriptionName": "n"},
        "activemq.subscriptionName is not served",
    ),
    ({"destination": A, "id": "1", "activemq.prefetchSize": "0"}, "from 1 to"),
    ({"destination": A, "id": "1", "activemq.priority": "-1"}, "from 0 to 127"),
    ({"destination": "/remote-temp-queue/x/y", "id": "1"}, "there is no such destination"),
]


@pytest.mark.parametrize(
    ("headers", "text"), WRONG_SUBSCRIBES, ids=[text for _, text in WRONG_SUBSCRIBES]
)
def test_a_subscribe_that_cannot_be_carried_out(headers: dict[str, str], text: str) -> None:
    client = Client(world_with())
    frames = client.say("SUBSCRIBE", **headers, receipt="s")
    assert text in error(frames)
    assert frames[0].get("receipt-id") == "s"
    assert client.closed


def test_an_id_is_for_one_subscription() -> None:
    client = Client(world_with())
    client.subscribe()
    assert "with this id already" in error(client.subscribe("/queue/b"))
    other = Client(client.world)
    assert "no such subscription" in error(other.say("UNSUBSCRIBE", id="9"))
    third = Client(client.world)
    assert "id is missing" in error(third.say("UNSUBSCRIBE"))


def test_what_is_false_is_not_asked_for() -> None:
    client = Client(world_with())
    headers = {"browser": "false", "activemq.exclusive": "false", "selector": " "}
    assert receipts(client.subscribe(receipt="s", **headers)) == ["s"]


# --- ACK and NACK --------------------------------------------------------------------------------


def subscribed(
    world: DoorWorld, mode: str, count: int, versions: Sequence[str] = VERSIONS, **headers: str
) -> tuple[Client, list[StompFrame]]:
    """A client that has so many messages in hand."""
    client = Client(world, versions)
    client.subscribe(ack=mode, **headers)
    found: list[StompFrame] = []
    for number in range(count):
        found += client.send(b"%d" % number)
    return client, found


def test_an_ack_of_the_mode_client_counts_for_all_before_it() -> None:
    client, found = subscribed(world_with(), "client", 4)
    broker = client.world.broker
    assert in_flight(broker) == 4
    assert receipts(client.ack(found[2], receipt="a")) == ["a"]
    assert in_flight(broker) == 1
    assert client.ack(found[0]) == [], "it counts for nothing, and is no fault"
    client.ack(found[3])
    assert in_flight(broker) == 0


def test_an_ack_of_the_mode_client_individual_counts_for_itself() -> None:
    client, found = subscribed(world_with(), "client-individual", 3)
    client.ack(found[1])
    client.connection.leave()
    other = Client(client.world)
    again = other.subscribe(ack="client-individual")
    assert bodies(again) == [b"0", b"2"]
    assert [each.get("redelivered") for each in again] == ["true", "true"]


@pytest.mark.parametrize("version", [V1_0, V1_1])
def test_older_versions_name_the_message(version: str) -> None:
    client, found = subscribed(world_with(), "client", 3, (version,))
    named = {"subscription": "1"} if version == V1_1 else {}
    client.say("ACK", message_id=found[1].get("message-id"), **named)
    assert in_flight(client.world.broker) == 1
    client.say("ACK", message_id="another's", **named)
    client.say("ACK", message_id=found[2].get("message-id"), subscription="9")
    assert in_flight(client.world.broker) == 1
    assert "message-id is missing" in error(client.say("ACK"))


def test_auto_is_acknowledged_when_it_has_left() -> None:
    client, found = subscribed(world_with(), "auto", 2)
    assert len(found) == 2
    assert [each.find("ack") for each in found] == [None, None]
    assert in_flight(client.world.broker) == 2
    client.written()
    assert in_flight(client.world.broker) == 0


@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_no_more_than_the_prefetch_is_in_hand(mode: str) -> None:
    world = world_with(prefetch=3)
    client, found = subscribed(world, mode, 5)
    assert bodies(found) == [b"0", b"1", b"2"]
    assert bodies(client.ack(found[0])) == [b"3"]
    _, found = subscribed(world_with(prefetch=3), mode, 3, **{"activemq.prefetchSize": "1"})
    assert len(found) == 1


@pytest.mark.parametrize("text", ["", "1", "x-1", "1-x", "9-1", "1-9", "1-0"])
def test_an_ack_of_nothing_that_was_sent(text: str) -> None:
    client, _ = subscribed(world_with(), "client", 1)
    assert "no MESSAGE has had the ack" in error(client.say("ACK", id=text))


def test_an_ack_after_unsubscribe_counts_for_nothing() -> None:
    client, found = subscribed(world_with(), "client", 2)
    client.say("UNSUBSCRIBE", id="1")
    assert client.ack(found[0]) == []
    assert client.world.broker.statistics().messages == 2


def test_an_ack_of_a_topic_is_no_fault() -> None:
    client = Client(world_with())
    client.subscribe("/topic/t", ack="client")
    (message,) = client.send(b"x", "/topic/t")
    assert receipts(client.ack(message, receipt="a")) == ["a"]
    assert receipts(client.nack(message, receipt="n")) == ["n"]


def test_a_refused_message_comes_again_and_ends_among_the_dead_letters() -> None:
    client, found = subscribed(world_with(redeliveries=2), "client-individual", 1)
    dead = Client(client.world)
    for _ in range(2):
        found = client.nack(found[0])
        assert bodies(found) == [b"0"]
        assert found[0].get("redelivered") == "true"
    assert client.nack(found[0]) == []
    (letter,) = dead.subscribe("/queue/ActiveMQ.DLQ")
    assert letter.body == b"0"


def test_leaving_does_not_count_as_refusing() -> None:
    world = world_with(redeliveries=1)
    for _ in range(4):
        client = Client(world)
        assert bodies(client.subscribe(ack="client") or client.send(b"x")) == [b"x"]
        client.connection.leave()
    assert world.broker.statistics().messages == 1
    client = Client(world)
    for _ in range(4):
        assert bodies(client.subscribe(ack="client")) == [b"x"]
        client.say("UNSUBSCRIBE", id="1")
    assert world.broker.statistics().messages == 1


def test_a_nack_of_the_mode_client_counts_for_all_before_it() -> None:
    client, found = subscribed(world_with(), "client", 3)
    assert bodies(client.nack(found[1])) == [b"0", b"1"]
    assert in_flight(client.world.broker) == 3


# --- transactions --------------------------------------------------------------------------------


def test_what_is_sent_in_a_transaction_is_seen_when_it_is_committed() -> None:
    world = world_with()
    client, other = Client(world), Client(world)
    other.subscribe()
    assert receipts(client.say("BEGIN", transaction="t", receipt="b")) == ["b"]
    assert receipts(client.send(b"1", transaction="t", receipt="1")) == ["1"]
    client.send(b"2", transaction="t")
    client.send(b"outside")
    assert bodies(other.hear()) == [b"outside"]
    assert receipts(client.say("COMMIT", transaction="t", receipt="c")) == ["c"]
    assert bodies(other.hear()) == [b"1", b"2"]
    assert "no such transaction" in error(client.say("COMMIT", transaction="t"))


def test_a_transaction_that_is_aborted_sends_nothing_and_has_its_messages_in_hand_again() -> None:
    client, found = subscribed(world_with(), "client", 3)
    client.say("BEGIN", transaction="t")
    client.send(b"never", "/queue/b", transaction="t")
    client.ack(found[1], transaction="t")
    assert receipts(client.say("ABORT", transaction="t", receipt="a")) == ["a"]
    assert in_flight(client.world.broker) == 3
    client.ack(found[2])
    assert in_flight(client.world.broker) == 0
    assert client.subscribe("/queue/b", id="2") == []


def test_answers_of_a_transaction_take_effect_with_its_messages() -> None:
    client, found = subscribed(world_with(), "client-individual", 3)
    client.say("BEGIN", transaction="t")
    client.send(b"answer", "/queue/b", transaction="t")
    client.ack(found[0], transaction="t")
    client.nack(found[1], transaction="t")
    assert in_flight(client.world.broker) == 3
    assert client.ack(found[0]) == [], "it is answered for"
    frames = client.say("COMMIT", transaction="t", receipt="c")
    assert sorted(each.command for each in frames) == ["MESSAGE", "RECEIPT"]
    assert in_flight(client.world.broker) == 2
    assert bodies(client.subscribe("/queue/b", id="2")) == [b"answer"]


def test_a_transaction_outlives_a_subscription_whose_messages_it_answers() -> None:
    client, found = subscribed(world_with(), "client", 1)
    for name in ("commit", "abort"):
        client.say("BEGIN", transaction=name)
        client.ack(found[0], transaction=name)
        client.send(b"sent", "/queue/b", transaction=name)
        client.say("UNSUBSCRIBE", id="1")
        assert receipts(client.say(name.upper(), transaction=name, receipt="r")) == ["r"]
        found = client.subscribe(ack="client")
        assert bodies(found) == [b"0"]
    assert bodies(client.subscribe("/queue/b", id="2")) == [b"sent"]


def test_a_transaction_of_a_client_that_has_gone_comes_to_nothing() -> None:
    client, found = subscribed(world_with(), "client", 2)
    client.say("BEGIN", transaction="t")
    client.ack(found[1], transaction="t")
    client.connection.leave()
    assert bodies(Client(client.world).subscribe(ack="client")) == [b"0", b"1"]


def test_a_transaction_that_cannot_be_committed_does_nothing() -> None:
    client, found = subscribed(world_with(), "client", 1)
    world = client.world
    world.run(
        client.connection.number,
        UpdateQueue(client.connection.number, None, "\x01a", 0, QueueChanges(message_limit=2)),
    )
    client.say("BEGIN", transaction="t")
    client.ack(found[0], transaction="t")
    for number in range(3):
        client.send(b"%d" % number, transaction="t")
    frames = client.say("COMMIT", transaction="t", receipt="c")
    assert "nothing of it was done: a limit is reached" in error(frames)
    assert frames[0].get("receipt-id") == "c"
    assert world.broker.statistics().messages == 1, "what was in hand"


def test_an_empty_transaction() -> None:
    client = Client(world_with())
    client.say("BEGIN", transaction="t")
    assert receipts(client.say("COMMIT", transaction="t", receipt="c")) == ["c"]


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([("BEGIN", {})], "transaction is missing"),
        ([("BEGIN", {"transaction": "t"})] * 2, "has begun already"),
        ([("ABORT", {"transaction": "t"})], "no such transaction"),
        ([("COMMIT", {})], "no such transaction"),
    ],
)
def test_a_transaction_that_is_not_there(
    frames: list[tuple[str, dict[str, str]]], text: str
) -> None:
    client = Client(world_with())
    for command, headers in frames[:-1]:
        client.say(command, **headers)
    command, headers = frames[-1]
    assert text in error(client.say(command, **headers))


# --- temporary destinations ----------------------------------------------------------------------


def test_a_reply_to_a_temporary_queue() -> None:
    world = world_with()
    asker, worker = Client(world), Client(world)
    asker.subscribe("/temp-queue/answers", id="a")
    worker.subscribe("/queue/work", id="w")
    asker.send(b"6*7", "/queue/work", reply_to="/temp-queue/answers")
    (request,) = worker.hear()
    assert request.get("reply-to").startswith("/remote-temp-queue/")
    worker.send(b"42", request.get("reply-to"))
    (reply,) = asker.hear()
    assert (reply.body, reply.get("destination")) == (b"42", "/temp-queue/answers")
    asker.connection.leave()
    assert "not possible" in error(worker.send(b"late", request.get("reply-to")))


def test_a_reply_may_come_before_its_queue_is_subscribed_to() -> None:
    world = world_with()
    asker, worker = Client(world), Client(world)
    worker.subscribe("/queue/work", id="w")
    asker.send(b"6*7", "/queue/work", reply_to="/temp-queue/answers")
    (request,) = worker.hear()
    worker.send(b"42", request.get("reply-to"))
    assert bodies(asker.subscribe("/temp-queue/answers")) == [b"42"]


def test_only_its_owner_consumes_a_temporary_destination() -> None:
    world = world_with()
    owner, other = Client(world), Client(world)
    owner.subscribe("/temp-topic/t", id="t")
    assert bodies(owner.send(b"mine", "/temp-topic/t")) == [b"mine"]
    name = owner.connected.get("session")
    assert "not allowed" in error(other.subscribe(f"/remote-temp-topic/{name}/t"))


def test_two_clients_have_temporary_queues_of_one_name() -> None:
    world = world_with()
    one, two = Client(world), Client(world)
    for client in (one, two):
        client.subscribe("/temp-queue/q")
    assert bodies(one.send(b"1", "/temp-queue/q")) == [b"1"]
    assert two.hear() == []


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


def test_nothing_is_done_behind_a_frame_that_is_refused() -> None:
    client = Client(world_with())
    client.stomp.send("SEND", [("destination", A), ("receipt", "1")], b"x")
    client.stomp.send("SEND", [("destination", "nowhere"), ("receipt", "2")], b"x")
    client.stomp.send("SEND", [("destination", A), ("receipt", "3")], b"x")
    first, second = client.flush()
    assert receipts([first]) == ["1"]
    assert "there is no destination" in error([second])
    assert client.world.broker.statistics().messages == 1


def full(client: Client) -> None:
    """Let its queue take one message, which is there."""
    client.send(b"first")
    number = client.connection.number
    command = UpdateQueue(number, None, "\x01a", 0, QueueChanges(message_limit=1))
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
