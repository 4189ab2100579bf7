"""Copies by the header CC: where they go, what they look like, what is left out."""

from __future__ import annotations

import pytest

from tests.docs.broker import Client, World
from tmqp import Frame, MessageType, Operation
from tmqp_server.doors.native.copies import MAX_COPIES, copy_addresses
from tmqp_server.doors.native.parameters import BadRequestError


def push(*headers: tuple[str, str], message_id: str = "m", **flags: bool) -> Frame:
    return Frame.build(
        MessageType.QUEUE_MESSAGE,
        "ch",
        5,
        b"body",
        message_id=message_id,
        headers=headers,
        **flags,  # type: ignore[arg-type]
    )


def listener(*channels: str) -> Client:
    client = World().connect("me")
    for channel in ("ch", *channels):
        assert client.ask(Operation.JOIN, channel) == [0]
    client.take()
    return client


@pytest.mark.parametrize(
    ("value", "channel", "queue_id", "message_id"),
    [
        ("other;9;given", "other", 9, "given"),
        (" other ; 9 ; given ", "other", 9, "given"),
        ("other;9", "other", 9, None),
        ("other", "other", 5, None),
        ("other;;given", "other", 5, "given"),
        ("other;9;", "other", 9, None),
        ("other;65535;a;b", "other", 65_535, "a;b"),
        ("other;0", "other", 0, None),
        ("other;9;" + "i" * 255, "other", 9, "i" * 255),
    ],
)
def test_where_a_copy_goes(value: str, channel: str, queue_id: int, message_id: str | None) -> None:
    client = listener("other")
    client.send(push(("CC", value)))
    original, copy = client.deliveries()
    assert (original.target, original.content_type, original.message_id) == ("ch", 5, "m")
    assert (copy.target, copy.content_type) == (channel, queue_id)
    if message_id is None:
        assert len(copy.message_id) == 32
    else:
        assert copy.message_id == message_id


@pytest.mark.parametrize(
    "value",
    [
        "",
        ";9",
        "other;x",
        "other;-1",
        "other;65536",
        "other;\u0663",
        "other;1.5",
        "other;000001",
        "o" * 256,
        "other;9;" + "\u00e9" * 128,
        "a b",
        "a*",
    ],
)
def test_a_copy_that_cannot_be_is_left_out_and_nobody_is_told(value: str) -> None:
    client = listener("other")
    client.send(push(("CC", value), ("CC", "other"), pending_acknowledge=True))
    frames = client.take()
    assert [frame.target for frame in frames if frame.type == MessageType.QUEUE_MESSAGE] == [
        "ch",
        "other",
    ]
    assert all(frame.type != MessageType.RESPONSE for frame in frames)
    assert client.alive()


def test_what_a_copy_looks_like() -> None:
    client = listener("other")
    client.send(push(("cc", "other;1;copy"), ("X", "y"), ("CC", "nowhere;1;n"), high_priority=True))
    original, copy = client.deliveries()
    assert original.headers == [("cc", "other;1;copy"), ("X", "y"), ("CC", "nowhere;1;n")]
    assert original.ttl == 15
    expected = Frame.build(
        MessageType.QUEUE_MESSAGE,
        "other",
        1,
        b"body",
        message_id="copy",
        source="me",
        headers=[("X", "y")],
        first_acquirer=True,
        high_priority=True,
        pending_acknowledge=True,
    )
    assert copy == expected


def test_without_other_headers_a_copy_has_none() -> None:
    client = listener("other")
    client.send(push(("CC", "other")))
    _, copy = client.deliveries()
    assert not copy.has_header


def test_a_message_without_an_id_is_copied_too() -> None:
    client = listener("other")
    client.send(push(("CC", "other"), message_id=""))
    ids = [frame.message_id for frame in client.deliveries()]
    assert len(set(ids)) == 2
    assert all(len(each) == 32 for each in ids)


def test_acknowledges_of_copies_bear_their_id() -> None:
    client = listener("other")
    client.send(push(("CC", "other;1;copy"), pending_acknowledge=True))
    told = [frame for frame in client.take() if frame.type == MessageType.ACKNOWLEDGE]
    assert [(frame.message_id, frame.target, frame.content_type) for frame in told] == [
        ("m", "ch", 5),
        ("copy", "other", 1),
    ]


def test_refusals_of_copies_are_not_told() -> None:
    client = listener()
    client.create_queue("full", 1, Queue_Status="stopped")
    client.take()
    client.send(push(("CC", "full;1;copy"), pending_acknowledge=True))
    assert [frame.message_id for frame in client.take()] == ["m", "m"]


def test_copies_go_out_when_the_original_is_refused() -> None:
    client = listener("other")
    client.create_queue("ch", 5, Queue_Status="stopped")
    client.take()
    client.send(push(("CC", "other;1;copy")))
    assert [frame.message_id for frame in client.take()] == ["m", "copy"]


def test_at_the_bound_all_copies_are_made_and_one_above_none() -> None:
    client = listener()
    client.send(push(*[("CC", f"ch;{number}") for number in range(MAX_COPIES)]))
    assert len(client.deliveries()) == 1 + MAX_COPIES
    too_many = [("CC", f"ch;{number}") for number in range(MAX_COPIES + 1)]
    client.send(push(*too_many, pending_acknowledge=True))
    response, nack = client.take()
    assert (response.type, response.content_type) == (MessageType.RESPONSE, 482)
    assert nack.header("Nack-Reason") == "limit-exceeded"
    with pytest.raises(BadRequestError, match="33 copies were requested, the limit is 32"):
        copy_addresses(push(*too_many))


def test_a_header_that_only_looks_like_it() -> None:
    assert copy_addresses(push(("X", "CC:other"), ("Acc", "other"), ("X-CC", "other"))) == []
    assert copy_addresses(push(("cC", " other "))) == [" other "]
