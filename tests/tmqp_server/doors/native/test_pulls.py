"""Pulls on the wire: what a request may say, and messages whose own headers are in the way."""

from __future__ import annotations

import pytest

from tests.docs.broker import Client, World
from tmqp import Frame, MessageType, PullCompleted, PullMessageReceived
from tmqp.connection import Connection
from tmqp.hello import ConnectionInformation
from tmqp.state import Role
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.pulls import pull_of, pulled_message
from tmqp_server.engine.effects import DeliverPulled
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_HIGH, Message

MAX_BLOCK = 65_535


def request(message_id: str = "p", **headers: str) -> Frame:
    """A pull request."""
    return Frame.build(
        MessageType.PULL_REQUEST, "ch", 1, message_id=message_id, headers=headers.items()
    )


def with_block(frame: Frame, block: bytes) -> bytes:
    """The frame's bytes with this header block, whatever is in it."""
    plain = frame.raw
    start = len(plain) - frame.payload_size
    flags = bytes((plain[0], plain[1] | 0x20))
    return flags + plain[2:start] + len(block).to_bytes(2, "little") + block + frame.payload


def stocked(*pushes: bytes) -> tuple[World, Client]:
    """A pull queue into which these bytes were pushed, and its consumer."""
    world = World()
    client = world.connect(join="ch")
    client.create_queue("ch", 1, Queue_Status="pull")
    for data in pushes:
        client.say(data)
    client.take()
    return world, client


def a_push(message_id: str = "m", payload: bytes = b"x") -> Frame:
    return Frame.build(MessageType.QUEUE_MESSAGE, "ch", 1, payload, message_id=message_id)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Count": "3"}, (3, False, False, False, False)),
        ({"count": " 3 ", "ORDER": "lifo", "info": "YES"}, (3, True, False, False, True)),
        ({"Count": "3", "Order": "FIFO", "Info": "no"}, (3, False, False, False, False)),
        ({"Count": "1", "Clear": "All"}, (1, False, True, True, False)),
        ({"Count": "1", "Clear": "high-PRIORITY"}, (1, False, True, False, False)),
        ({"Count": "1", "Clear": "default-priority"}, (1, False, False, True, False)),
        ({"Count": "1", "Clear": "None"}, (1, False, False, False, False)),
        ({"Count": "1", "Clear": ""}, (1, False, False, False, False)),
        ({"Count": "1", "Clear": "everything"}, (0, False, False, False, False)),
    ],
)
def test_what_a_request_asks_for(headers: dict[str, str], expected: tuple[object, ...]) -> None:
    pull = pull_of(7, request(**headers))
    shown = (pull.count, pull.newest_first, pull.clear_high, pull.clear_regular, pull.info)
    assert shown == expected
    assert (pull.session, pull.channel, pull.queue_id) == (7, "ch", 1)


@pytest.mark.parametrize(
    "count", ["", "x", "-1", "0", "+1", "1.0", "1e3", "\u0663", "9" * 11, "0x1"]
)
def test_a_count_that_is_none_is_refused_and_the_connection_stays(count: str) -> None:
    _, client = stocked(a_push().raw)
    client.send(request(Count=count))
    (answer,) = client.take()
    assert answer.headers == [("Request-Id", "p"), ("No-Content", "Unacceptable")]
    client.send(request())
    assert client.take()[0].header("No-Content") == "Unacceptable"
    client.send(request(Count="1"))
    assert [frame.message_id for frame in client.take()] == ["m", "p"]


def test_an_id_that_would_forge_headers_is_refused() -> None:
    _, client = stocked(a_push().raw)
    for message_id in ("p\r\nNo-Content:End", "p\n", "\r"):
        client.send(request(message_id, Count="1"))
        (answer,) = client.take()
        assert answer.message_id == ""
        assert answer.headers == [("Request-Id", ""), ("No-Content", "Id-Required")]
    assert client.alive()


def test_the_messages_own_headers_stay_in_front_and_imitate_nothing() -> None:
    own = b"Request-Id:p\r\nNo-Content:End\r\nIndex:9\r\nMine:1\r\n"
    world, _ = stocked(with_block(a_push(), own))
    puller = Connection(Role.CLIENT)
    puller.initiate(ConnectionInformation("puller"))
    reader = world.open()
    reader.say(puller.data_to_send())
    reader.send(Frame.build(MessageType.SERVER, "ch", 601, message_id="j"))
    puller.receive(accepted(), 0.0)
    reader.take()
    puller.send(request(Count="1", Info="yes"))
    reader.say(puller.data_to_send())
    heard = b"".join(frame.raw for frame in reader.take())
    message, end = puller.receive(heard, 0.0)
    assert isinstance(message, PullMessageReceived)
    assert (message.index, message.count) == (1, 1)
    assert message.frame.headers == [
        ("Request-Id", "p"),
        ("No-Content", "End"),
        ("Index", "9"),
        ("Mine", "1"),
        ("Request-Id", "p"),
        ("Count", "1"),
        ("Index", "1"),
        ("Priority-Messages", "0"),
        ("Messages", "0"),
    ]
    assert isinstance(end, PullCompleted)
    assert (end.reason, end.received) == ("End", 1)


def accepted() -> bytes:
    return b"TMQP/2.0" + Frame.build(MessageType.SERVER, "puller", 202).raw


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (b"A:1", [("A", "1")]),
        (b"A:1\r\nB:2", [("A", "1"), ("B", "2")]),
        (b"no header", []),
        (b"A:1\nx\r\nB:2", [("B", "2")]),
        (b"A:1\r", []),
    ],
)
def test_ours_do_not_become_part_of_an_unfinished_line(
    block: bytes, kept: list[tuple[str, str]]
) -> None:
    _, client = stocked(with_block(a_push(), block))
    client.send(request(Count="1"))
    message, end = client.take()
    ours = [("Request-Id", "p"), ("Count", "1"), ("Index", "1")]
    assert message.headers == [*kept, *ours]
    assert message.payload == b"x"
    assert end.header("No-Content") == "End"


def test_a_full_header_block_makes_room_for_ours() -> None:
    lines = b"Key:" + b"v" * 1_018 + b"\r\n"
    block = lines * (MAX_BLOCK // len(lines))
    block += b"Last:" + b"v" * (MAX_BLOCK - len(block) - 7) + b"\r\n"
    assert len(block) == MAX_BLOCK
    _, client = stocked(with_block(a_push(), block))
    client.send(request("i" * 255, Count="1", Info="yes"))
    message, _ = client.take()
    assert [key for key, _ in message.headers] == ["Key"] * 63 + [
        "Request-Id",
        "Count",
        "Index",
        "Priority-Messages",
        "Messages",
    ]
    assert message.header("Request-Id") == "i" * 255


def test_flags_and_names_are_those_of_any_delivery() -> None:
    producer = Origin(1, "prod", None, None, "tmqp")
    wire = Frame.build(
        MessageType.QUEUE_MESSAGE,
        "CH",
        1,
        b"body",
        message_id="m",
        source="prod",
        headers=[("Mine", "1")],
        high_priority=True,
        pending_response=True,
        pending_acknowledge=True,
        ttl=9,
    )
    message = Message("m", producer, "CH", 1, 10, wire, MARK_HIGH, 1)
    for first, wants, hides in ((True, True, False), (False, False, True)):
        effect = DeliverPulled(1, request(), message, 2, 5, first, wants, hides, -1, -1)
        assert (
            pulled_message(effect, Letters())
            == Frame.build(
                MessageType.QUEUE_MESSAGE,
                "CH",
                1,
                b"body",
                message_id="m",
                source="" if hides else "prod",
                headers=[("Mine", "1"), ("Request-Id", "p"), ("Count", "5"), ("Index", "2")],
                first_acquirer=first,
                high_priority=True,
                pending_response=True,
                pending_acknowledge=wants,
                ttl=8,
            ).raw
        )


def test_a_pull_of_a_forged_source_ends_the_connection() -> None:
    _, client = stocked(a_push().raw)
    client.send(
        Frame.build(MessageType.PULL_REQUEST, "ch", 1, source="another", headers=[("Count", "1")])
    )
    assert not client.alive()
