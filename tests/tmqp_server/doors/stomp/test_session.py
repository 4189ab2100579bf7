"""Conversations of STOMP clients: CONNECT, SEND and SUBSCRIBE."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.stomp.talk import (
    A,
    Client,
    bodies,
    error,
    receipts,
    world_with,
)
from tmqp_server.doors.port import SERVER_STOPS
from tmqp_server.doors.stomp.options import StompLimits
from tmqp_wires.stomp import StompFrame
from tmqp_wires.stomp.frames import V1_0, V1_1, VERSIONS

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
        (
            b"CONNECT\naccept-version:9\n\n\0",
            "none of the client's versions",
            "a STOMP client's greeting",
        ),
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
    client.world.hub.close(client.connection.number, "it is too slow", client.world.now)
    assert error(client.hear()) == "it is too slow"


def test_a_server_that_stops_says_nothing_for_stompit_ends_its_program_at_an_error() -> None:
    client = Client(world_with())
    client.world.hub.close(client.connection.number, SERVER_STOPS, client.world.now)
    assert client.hear() == []
    assert client.closed == SERVER_STOPS


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
    own = {"content-length", "timestamp", "destination", "message-id", "subscription"}
    own |= {"priority", "expires"}
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
    found = [[(m.get("subscription"), m.body) for m in c.hear()] for c in (one, two)]
    for heard in found:
        assert [body for name, body in heard if name == "t"] == [b"1", b"2", b"3", b"4"]
    queued = [[body for name, body in heard if name == "q"] for heard in found]
    assert queued == [[b"1", b"3"], [b"2", b"4"]]


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


def test_a_name_without_a_slash_is_a_queue() -> None:
    client = Client(world_with())
    client.send(b"x", "a", priority="12")
    (message,) = client.subscribe("/queue/a")
    assert (message.body, message.get("priority")) == (b"x", "9")
    assert (message.get("expires"), message.get("destination")) == ("0", "/queue/a")


def test_what_comes_first_is_what_is_urgent() -> None:
    client = Client(world_with())
    for priority in ("4", "9", "0"):
        client.send(priority.encode(), priority=priority)
    found = client.subscribe()
    assert bodies(found) == [b"9", b"4", b"0"]
    assert [each.get("priority") for each in found] == ["9", "4", "0"]


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
    ({"destination": "/queues/a"}, "begins with /queue/"),
    ({"destination": "/queue/"}, "has no name"),
    ({"destination": "/queue/a," * 32 + "b"}, "at most 32 others"),
    ({"destination": "/queue/a,"}, "has no name"),
    ({"destination": "/queue/a.*"}, "wildcards"),
    ({"destination": "/topic/>"}, "wildcards"),
    ({"destination": "/queue/a?x=1"}, "options of a destination"),
    ({"destination": "/remote-temp-queue/x/y"}, "not possible for this destination"),
    ({"destination": A, "priority": "high"}, "from 0 to 9"),
    ({"destination": A, "expires": "soon"}, "expires is not a time"),
    ({"destination": A, "AMQ_SCHEDULED_DELAY": "-1"}, "not a number of milliseconds"),
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
    ({"destination": "/topic/a", "id": "1", "browser": "true"}, "a browser is for one queue"),
    ({"destination": "/queue/a,b", "id": "1", "browser": "true"}, "a browser is for one queue"),
    ({"destination": A, "id": "1", "activemq.retroactive": "true"}, "retroactive is not served"),
    (
        {"destination": "/topic/a", "id": "1", "activemq.subscriptionName": "n"},
        "needs the client-id",
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
    assert "with this id exists already" in error(client.subscribe("/queue/b"))
    other = Client(client.world)
    assert "no such subscription" in error(other.say("UNSUBSCRIBE", id="9"))
    third = Client(client.world)
    assert "id is missing" in error(third.say("UNSUBSCRIBE"))


@pytest.mark.parametrize(
    ("priorities", "order"),
    [(True, [b"9", b"7", b"4", b"1", b"0"]), (False, [b"9", b"7", b"1", b"4", b"0"])],
)
def test_the_order_of_priorities(priorities: bool, order: list[bytes]) -> None:
    client = Client(world_with(priorities=priorities))
    for priority in "19407":
        client.send(priority.encode(), priority=priority)
    assert bodies(client.subscribe()) == order


def test_an_exclusive_subscription_gets_all_and_the_next_takes_over() -> None:
    clients = [Client(world_with()) for _ in range(1)]
    clients += [Client(clients[0].world) for _ in range(2)]
    clients[0].subscribe()
    for client in clients[1:]:
        client.subscribe(**{"activemq.exclusive": "true"})
    for number in range(3):
        clients[0].send(b"%d" % number)
    assert [bodies(each.hear()) for each in clients] == [[], [b"0", b"1", b"2"], []]
    clients[1].say("UNSUBSCRIBE", id="1")
    clients[0].send(b"3")
    assert [bodies(each.hear()) for each in clients] == [[], [], [b"0", b"1", b"2", b"3"]]
    clients[2].written()
    clients[2].connection.leave()
    assert bodies(clients[0].send(b"4")) == [b"4"]


def test_what_is_false_is_not_asked_for() -> None:
    client = Client(world_with())
    headers = {"browser": "false", "activemq.exclusive": "false", "selector": " "}
    assert receipts(client.subscribe(receipt="s", **headers)) == ["s"]
