"""Transactions through hub and native door: what a block may hold, and what is answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.tmqp_server.guarded import stage
from tests.tmqp_server.hub.test_reading_hub import written
from tests.tmqp_server.peers import Peer, operation, push
from tests.tmqp_server.world import World
from tmqp.blocks import FLAG_DOOR_SHIFT, FLAG_HIGH, FLAG_WANTS
from tmqp.codec import FrameDecoder
from tmqp.constants import MessageType, Operation
from tmqp.extensions import (
    OP_ABORT_TRANSACTION,
    OP_COMMIT_TRANSACTION,
    OP_LIST_TRANSACTIONS,
    OP_OPEN_TRANSACTION,
    OP_PUSH_TRANSACTION,
)
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.access import rights
from tmqp_server.access.gate import Verdict
from tmqp_server.access.needs import NO_QUEUE
from tmqp_server.doors.native.transactions import unpacked
from tmqp_server.engine.options import BrokerOptions

EPOCH = [("Epoch", "1")]
DURABLE = b'{"Durable":true,"Status":1}'


def ready() -> tuple[World, Peer]:
    """A world that stores, with the durable queue ``c``/1, and a client."""
    world = World(BrokerOptions(storage=True), Limits(max_payload_bytes=100_000))
    peer = Peer(world, "me")
    for channel in ("c", "d"):
        headers = [("Queue-Id", "1")]
        peer.say(operation(Operation.CREATE_QUEUE, channel, DURABLE, headers=headers))
        written(world)
    assert [answer.content_type for answer in peer.take()] == [0, 0]
    return world, peer


def ask(
    peer: Peer, number: int, target: str = "app", payload: bytes = b"", *headers: tuple[str, str]
) -> tuple[int, Any]:
    """An operation, and its code and body."""
    peer.say(operation(number, target, payload, headers=list(headers)))
    (answer,) = peer.take()
    return answer.content_type, json.loads(answer.payload) if answer.payload else None


def opened(peer: Peer) -> str:
    code, body = ask(peer, OP_OPEN_TRANSACTION, "app", b"", *EPOCH)
    assert (code, body["State"]) == (0, "open")
    return str(body["Id"])


def stage_block(peer: Peer, number: str, *frames: Frame | bytes) -> tuple[int, Any]:
    block = b"".join([each.raw if isinstance(each, Frame) else each for each in frames])
    return ask(peer, OP_PUSH_TRANSACTION, "app", block, ("Transaction", number))


def test_the_way_through_and_every_property_of_the_answers() -> None:
    world, peer = ready()
    headers = [*EPOCH, ("Part", "3"), ("Attempt", "2"), ("Timeout", "5000")]
    assert ask(peer, OP_OPEN_TRANSACTION, "app", b"", *headers) == (
        0,
        {
            "Id": 1, "Application": "app", "Epoch": 1, "Part": 3, "Attempt": 2, "State": "open",
            "Count": 0, "Bytes": 0, "Time": 1_005_000,
        },
    )  # fmt: skip
    first, second = push("c", 1, "m1", source="me"), push("c", 1, "m2", source="me")
    code, body = stage_block(peer, "1", first, second)
    assert (code, body["Count"], body["Bytes"]) == (0, 2, len(first.raw + second.raw))
    peer.say(operation(OP_COMMIT_TRANSACTION, "app", b'[{"Id":1,"Count":2}]', headers=EPOCH))
    assert peer.take() == []
    written(world)
    (answer,) = peer.take()
    assert answer.content_type == 0
    body = json.loads(answer.payload)
    assert (body["Id"], body["State"], body["Count"], body["Time"]) == (
        0, "committed", 2, 1_000_000,
    )  # fmt: skip
    assert ask(peer, OP_COMMIT_TRANSACTION, "app", b"[1]", *EPOCH)[1]["Count"] == 0
    (code, listed) = ask(peer, OP_LIST_TRANSACTIONS, "")
    assert [(each["Application"], each["Epoch"], each["State"]) for each in listed] == [
        ("app", 1, "committed")
    ]
    assert listed[0]["Part"] is None


def test_what_is_kept_is_what_was_pushed() -> None:
    world, peer = ready()
    number = opened(peer)
    frames = [
        push("c", 1, "m1", b"one", source="me"),
        push("d", 1, "m2", b"two", source="me", headers=[("k", "v")]),
        push("c", 1, "m3", b"three", source="me", high_priority=True, pending_acknowledge=True),
        push("c", 1, "m4", b"", source=""),
        push("c", 1, "", b"x", source="me"),
    ]
    assert stage_block(peer, number, *frames)[1]["Count"] == 5
    peer.say(operation(OP_COMMIT_TRANSACTION, "app", f"[{number}]".encode(), headers=EPOCH))
    journal = world.hub.journal
    assert journal is not None
    batch = journal.take().batch
    kept = {portion.key: portion.messages() for portion in batch.portions}
    assert [each.sequence for each in kept[1]] == [1, 2, 3, 4]
    assert [each.sequence for each in kept[2]] == [1]
    assert kept[1][0].body == frames[0].raw
    assert [each.payload for each in kept[1]] == [b"one", b"three", b"", b"x"]
    assert kept[2][0].body == frames[1].raw
    door = 1 << FLAG_DOOR_SHIFT | FLAG_WANTS
    assert [each.flags for each in kept[1]] == [door, door | FLAG_HIGH, door, door]
    restored = [FrameDecoder().feed(each.body)[0] for each in kept[1]]
    assert [each.source for each in restored] == ["me"] * 4
    assert [each.message_id for each in restored[:3]] == ["m1", "m3", "m4"]
    assert len(restored[3].message_id) == 32, "an id is made for one that has none"


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([push("c", 1, "m", source="other")], 400),
        ([Frame.build(MessageType.DIRECT_MESSAGE, "c", 1, message_id="m", source="me")], 400),
        ([push("c", 1, "m", source="me").raw[:-1]], 400),
        ([b"\xff" * 20], 400),
        ([push("c", 1, "m", source="me", headers=[("CC", "d")])], 501),
        ([push("c", 1, "m", source="me", headers=[("Queue-Status", "odd")])], 0),
        ([push("new", 1, "m", source="me", headers=[("Queue-Status", "odd")])], 400),
        ([push("new", 1, "m", source="me")], None),
        ([], 0),
    ],
)
def test_what_a_block_may_hold(frames: list[Frame | bytes], code: int | None) -> None:
    world, peer = ready()
    number = opened(peer)
    good = push("c", 1, "good", source="me")
    if code is None:  # the queue is made, and is not durable
        peer.say(
            operation(
                OP_PUSH_TRANSACTION,
                "app",
                b"".join([each.raw if isinstance(each, Frame) else each for each in frames]),
                headers=[("Transaction", number)],
            )
        )
        written(world)
        (answer,) = peer.take()
        assert answer.content_type == 406
        return
    if code == 0 and frames:
        frames = [good, *frames]  # what the first one says of the queue counts
    assert stage_block(peer, number, *frames)[0] == code
    again, _ = stage_block(peer, number, good)
    assert again == (409 if code else 0), "one that could not be read has broken it"
    _, listed = ask(peer, OP_LIST_TRANSACTIONS, "a*")
    assert [each["State"] for each in listed] == ["broken" if code else "open"]


@pytest.mark.parametrize(
    ("number", "payload", "headers"),
    [
        (OP_OPEN_TRANSACTION, b"", []),
        (OP_OPEN_TRANSACTION, b"", [("Epoch", "-1")]),
        (OP_OPEN_TRANSACTION, b"", [("Epoch", "9" * 19)]),
        (OP_OPEN_TRANSACTION, b"", [*EPOCH, ("Part", "x")]),
        (OP_PUSH_TRANSACTION, b"", []),
        (OP_COMMIT_TRANSACTION, b"[]", []),
        (OP_COMMIT_TRANSACTION, b"{}", EPOCH),
        (OP_COMMIT_TRANSACTION, b"[true]", EPOCH),
        (OP_COMMIT_TRANSACTION, b'["1"]', EPOCH),
        (OP_COMMIT_TRANSACTION, b"[-1]", EPOCH),
        (OP_COMMIT_TRANSACTION, b'[{"Count":1}]', EPOCH),
        (OP_COMMIT_TRANSACTION, b'[{"Id":1,"Count":null}]', EPOCH),
        (OP_COMMIT_TRANSACTION, b"[1", EPOCH),
        (OP_ABORT_TRANSACTION, b"", []),
    ],
)
def test_what_makes_no_sense_is_refused(
    number: int, payload: bytes, headers: list[tuple[str, str]]
) -> None:
    _, peer = ready()
    assert ask(peer, number, "app", payload, *headers) == (400, None)


def test_bytes_that_were_never_staged_are_not_unpacked() -> None:
    with pytest.raises(ValueError, match="6 bytes were staged: the last message is cut off"):
        unpacked(push("c", 1, "m").raw[:6])


# --- Rights --------------------------------------------------------------------------------------


def test_a_push_is_asked_about_for_the_application_and_for_each_queue() -> None:
    world, me, _ = stage()
    world.policy = lambda question: Verdict(question.subject != "d", 60.0)
    block = push("c", 1, "a", source="me").raw + push("d", 2, "b", source="me").raw

    def codes(payload: bytes) -> list[int]:
        me.say(operation(OP_PUSH_TRANSACTION, "app", payload, headers=[("Transaction", "7")]))
        return [answer.content_type for answer in me.take()]

    assert codes(block) == [401]
    assert [(each.right, each.subject, each.queue_id) for each in world.asked] == [
        (rights.TRANSACT, "app", NO_QUEUE),
        (rights.PUSH, "c", 1),
        (rights.PUSH, "d", 2),
    ]
    world.asked.clear()
    assert codes(block) == [401]
    assert codes(push("c", 1, "a", source="me").raw) == [404], "there is no such transaction"
    assert world.asked == [], "the answers are kept"
