"""Conversations of goMS with a server in memory, in both dialects."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.door_world import DoorClient, DoorWorld
from tmqp_server.doors.goms.door import GomsDoor
from tmqp_server.doors.goms.message import GomsBodies, text_of
from tmqp_server.doors.goms.options import GomsLimits, GomsOptions
from tmqp_server.engine.commands import RemoveChannel

TOPICS = GomsOptions(topics=("some", "topics", "news"))
OLD, NEW = "type", "messagetype"


def world(options: GomsOptions = TOPICS, *, datagrams: bool = False) -> DoorWorld:
    return DoorWorld(
        lambda new_id, letters: GomsDoor(
            new_id, GomsLimits(), options, letters, datagrams=datagrams
        ),
        GomsBodies(),
    )


def registered(place: DoorWorld, key: str, *topics: str) -> DoorClient:
    client = place.client()
    client.say(line(key, "register", topics))
    return client


def line(key: str, kind: str, topics: tuple[str, ...] = (), data: str = "") -> bytes:
    named = ",".join([f'"{topic}"' for topic in topics])
    return f'{{"{key}":"{kind}","topics":[{named}],"data":"{data}"}}\n'.encode()


def test_the_documents_example() -> None:
    place = world()
    client, other = place.client(), registered(place, OLD, "some")
    client.say(b'{\n"type": "register",\n"topics": [\n "some",\n "topics"\n]\n}\n')
    assert client.hear() == b""
    client.say(
        b'{\n"type": "send",\n"topics": [\n "some",\n "topics"\n],\n'
        b'"data": "This will be the data to send."\n}\n'
    )
    message = b'{"type":"message","data":"This will be the data to send."}\n'
    assert other.hear() == message
    assert client.hear() == message * 2, "a receiver on two topics gets two messages"
    client.say(
        b'{\n"type": "logout",\n"topics": [\n "some"\n]\n}\n', line(OLD, "send", ("topics",))
    )
    assert client.hear() == b'{"type":"message"}\n'
    client.say(b'{\n"type": "close"\n}\n')
    assert client.closed == "the client closed"


def test_the_newer_dialect() -> None:
    place = world()
    client, other = registered(place, NEW, "news"), registered(place, NEW, "news", "some")
    client.say(line(NEW, "send", ("news",), "<b>&"))
    assert other.hear() == b'{"messagetype":"message","topics":["news"],"data":"<b>&"}\n'
    assert client.hear() == b"", "a sender does not get its own message"


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (OLD, b'{"type":"error","error-code":"001001","error":"nope,nix"}\n'),
        (NEW, b'{"messagetype":"error","errorcode":"001001","error":"nope,nix"}\n'),
    ],
)
def test_unknown_topics_are_named_and_the_others_registered(key: str, error: bytes) -> None:
    place = world()
    client = registered(place, key, "nope", "NEWS", "nix")
    assert client.hear() == error
    registered(place, key, "news").say(line(key, "send", ("news",), "x"))
    assert b'"data":"x"' in client.hear()


@pytest.mark.parametrize(
    ("key", "error"),
    [(OLD, b""), (NEW, b'{"messagetype":"error","errorcode":"001002","error":"news"}\n')],
)
def test_registering_twice_brings_no_message_twice(key: str, error: bytes) -> None:
    place = world()
    client = registered(place, key, "news")
    client.say(line(key, "register", ("news",)))
    assert client.hear() == error
    registered(place, key, "news").say(line(key, "send", ("news",), "x"))
    assert client.hear().count(b"\n") == 1


@pytest.mark.parametrize(
    ("echo", "key", "count"),
    [("yes", NEW, 1), ("no", OLD, 0), ("dialect", OLD, 1), ("dialect", NEW, 0)],
)
def test_a_sender_gets_its_own_message_as_configured(echo: str, key: str, count: int) -> None:
    client = registered(world(GomsOptions(topics=("news",), echo=echo)), key, "news")
    client.say(line(key, "send", ("news",), "x"))
    assert client.hear().count(b"\n") == count


@pytest.mark.parametrize(("key", "count"), [(OLD, 0), (NEW, 1)])
def test_who_is_not_registered_sends_nothing_in_the_documents_dialect(key: str, count: int) -> None:
    place = world()
    listener = registered(place, key, "news")
    place.client().say(line(key, "send", ("news", "unknown"), "x"))
    assert listener.hear().count(b"\n") == count


def test_a_logout_without_topics_leaves_all() -> None:
    place = world()
    client = registered(place, OLD, "news", "some")
    client.say(b'{"type":"logout"}\n')
    registered(place, OLD, "news").say(line(OLD, "send", ("news",), "x"))
    assert client.hear() == b""


def test_unknown_topics_of_a_logout_are_ignored() -> None:
    place = world()
    client = registered(place, OLD, "news")
    client.say(line(OLD, "logout", ("unknown",)), line(OLD, "send", ("news",), "x"))
    assert client.hear() == b'{"type":"message","data":"x"}\n'


def test_ten_thousand_pipelined_messages_arrive_in_order() -> None:
    place = world()
    sender, receiver = registered(place, NEW, "news"), registered(place, NEW, "news")
    data = b"".join([line(NEW, "send", ("news",), str(number)) for number in range(10_000)])
    sender.say(*[data[at : at + 9_999] for at in range(0, len(data), 9_999)])
    expected = [f'"data":"{number}"'.encode() for number in range(10_000)]
    lines = receiver.hear().splitlines()
    assert len(lines) == 10_000
    assert all(part in each for part, each in zip(expected, lines, strict=True))


def test_a_client_that_leaves_in_the_middle_of_a_line_sends_nothing() -> None:
    place = world()
    receiver, sender = registered(place, OLD, "news"), registered(place, OLD, "news")
    sender.say(line(OLD, "send", ("news",), "half")[:-5])
    sender.leave()
    assert receiver.hear() == b""


def test_a_removed_topic_can_be_registered_again() -> None:
    place = world()
    client = registered(place, NEW, "news")
    place.run(client.number, RemoveChannel(client.number, None, "news"))
    client.say(line(NEW, "register", ("news",)))
    assert client.hear() == b"", "001002 would say that it is registered"


def test_a_message_that_is_too_long_ends_the_connection() -> None:
    place = DoorWorld(
        lambda new_id, letters: GomsDoor(
            new_id, GomsLimits(max_message_bytes=100), TOPICS, letters
        ),
        GomsBodies(),
    )
    client = registered(place, OLD, "news")
    client.say(b"x" * 101)
    assert "more than 100 bytes" in client.closed


def test_a_datagram_is_a_message_and_each_answer_one() -> None:
    place = world(datagrams=True)
    client = place.client()
    client.say(b'{"type":"register","topics":["news","nope"]}')
    client.say(b'{"type":"send","topics":["news"],"data":"x"}')
    assert client.pieces() == [
        b'{"type":"error","error-code":"001001","error":"nope"}\n',
        b'{"type":"message","data":"x"}\n',
    ]


def test_data_that_are_no_text_are_passed_on() -> None:
    assert text_of(b"\xff\x00") == "ÿ\0"
    assert text_of("ü".encode()) == "ü"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"echo": "maybe"}, "yes, no or dialect"), ({"topics": ("News",)}, "lower case")],
)
def test_options_that_cannot_be_used(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GomsOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [OLD, NEW])
def test_a_hundred_clients_are_registered_and_get_a_message(key: str) -> None:
    """Each has a filter of its own, of which a channel had 64 at most: the others were refused."""
    place = world()
    clients = [registered(place, key, "news") for _ in range(100)]
    assert [client.hear() for client in clients] == [b""] * 100
    clients[99].say(line(key, "send", ("news",), "x"))
    heard = [client.hear() for client in clients]
    assert all(b'"data":"x"' in each for each in heard[:99])
    assert (b'"x"' in heard[99]) == (key == OLD)
    for client in clients[:50]:
        client.leave()
    clients[99].say(line(key, "send", ("news",), "y"))
    assert sum(b'"y"' in client.hear() for client in clients[50:]) == 49 + (key == OLD)


@pytest.mark.parametrize(("mine", "theirs"), [(OLD, NEW), (NEW, OLD), (NEW, NEW), (OLD, OLD)])
def test_messages_in_a_row_come_as_single_ones_do(mine: str, theirs: str) -> None:
    heard = []
    for together in (True, False):
        place = world()
        sender, other = registered(place, mine, "news"), registered(place, theirs, "news", "some")
        lines = [line(mine, "send", ("news",), f"<{number}>") for number in range(20)]
        lines.insert(9, line(mine, "send", ("some", "news"), ""))
        sender.say(*([b"".join(lines)] if together else lines))
        heard.append((sender.hear(), other.hear()))
    assert heard[0] == heard[1]
    assert heard[0][1].count(b"\n") == 21 + (mine == NEW)


def test_messages_in_a_row_go_through_the_broker_as_one() -> None:
    place = world()
    sender, other = registered(place, NEW, "news"), registered(place, NEW, "news")
    sender.say(line(NEW, "send", ("news",), "x") * 100)
    (piece,) = other.pieces()
    assert piece.count(b"\n") == 100
    (queue,) = place.broker.queues()
    assert queue.counters.received == 100
    assert queue.counters.skipped == 0


@pytest.mark.parametrize("key", [OLD, NEW])
def test_ten_thousand_registrations_in_a_row_are_one(key: str) -> None:
    place = world()
    client = place.client()
    client.say(line(key, "register", ("news",)) * 10_000)
    assert client.hear().count(b"001002") == (9_999 if key == NEW else 0)
    registered(place, key, "news").say(line(key, "send", ("news",), "x"))
    assert client.hear().count(b"\n") == 1
