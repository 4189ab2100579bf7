"""Looking into a queue over the native door: the block that comes, and what is refused."""

from __future__ import annotations

import pytest

from tests.tmqp_server.peers import Peer, push
from tests.tmqp_server.world import World
from tmqp.blocks import (
    FLAG_DOOR_SHIFT,
    FLAG_HIGH,
    FLAG_IN_FLIGHT,
    FLAG_TRANSIENT,
    FLAG_WANTS,
    split_blocks,
)
from tmqp.constants import Operation
from tmqp.extensions import ExtensionOperation

QUEUE = [("Queue-Id", "1")]
BROWSE = ExtensionOperation.BROWSE
OFFSET_S = 1_000_000.0


def ready(**options: str) -> tuple[World, Peer]:
    world = World(wall_clock_offset_s=OFFSET_S)
    peer = Peer(world, "me")
    headers = [*QUEUE, ("Queue-Status", options.pop("status", "pull"))]
    body = options.pop("body", "").encode()
    assert peer.ask(Operation.CREATE_QUEUE, "c", body, headers=headers).content_type == 0
    return world, peer


def test_messages_come_as_a_block_with_what_is_known_of_them() -> None:
    world, peer = ready(status="round-robin", body='{"MessageTimeout":90000}')
    consumer = Peer(world, "consumer", ["c"])
    peer.say(push("c", 1, "out", b"abc", headers=[("A", "1")], source="me"))
    assert len(consumer.take()) == 1
    consumer.ask(Operation.LEAVE, "c")
    peer.say(push("c", 1, "high", high_priority=True, pending_acknowledge=True))
    peer.say(push("c", 1, "late", headers=[("Delay", "60000")]))
    peer.take()
    answer = peer.ask(BROWSE, "C", headers=QUEUE)
    assert answer.content_type == 0
    (block,) = split_blocks(answer.payload)
    out, high, late = block.messages()
    assert out.payload == b"abc"
    assert [out.sequence, high.sequence, late.sequence] == [1, 2, 3]
    native = 1 << FLAG_DOOR_SHIFT | FLAG_TRANSIENT
    assert out.flags == native | FLAG_IN_FLIGHT
    assert high.flags == native | FLAG_HIGH | FLAG_WANTS
    assert late.flags == native
    assert (out.attempts, high.attempts) == (1, 0)
    assert (out.due_us, high.due_us) == (0, 0)
    assert late.due_us == int((world.now + OFFSET_S + 60.0) * 1_000_000)
    assert high.expires_us == int((world.now + OFFSET_S + 90.0) * 1_000_000)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], [1, 2, 3, 4]),
        ([("From", "3")], [3, 4]),
        ([("Limit", "2")], [1, 2]),
        ([("From", "2"), ("Limit", "1")], [2]),
        ([("Max-Bytes", "1")], [1]),
        ([("State", "deferred")], [4]),
        ([("State", " Waiting , in-flight")], [1, 2, 3]),
        ([("Message-Id", "m1")], [1]),
        ([("Message-Id", "m9")], []),
        ([("State", "in-flight")], []),
        ([("Filter", "kind=a")], [2, 4]),
        ([("Filter", "kind=a"), ("State", "waiting")], [2]),
        ([("Filter", "x3"), ("Filter-Language", "prefix")], [3]),
    ],
)
def test_headers_choose(headers: list[tuple[str, str]], expected: list[int]) -> None:
    _, peer = ready()
    for number in range(1, 5):
        more = [("Kind", "ba"[number % 2 == 0])]
        more += [("Delay", "60000")] if number == 4 else []
        peer.say(push("c", 1, f"m{number}", b"x%d" % number, headers=more))
    answer = peer.ask(BROWSE, "c", headers=[*QUEUE, *headers])
    assert answer.content_type == 0
    found = [each.sequence for block in split_blocks(answer.payload) for each in block.messages()]
    assert found == expected


@pytest.mark.parametrize(
    ("target", "headers", "code"),
    [
        ("c", [], 406),
        ("none", QUEUE, 404),
        ("c", [("Queue-Id", "7")], 404),
        ("c", [*QUEUE, ("From", "x")], 400),
        ("c", [*QUEUE, ("Limit", "-1")], 400),
        ("c", [*QUEUE, ("State", "gone")], 400),
        ("c", [*QUEUE, ("Filter", "=x")], 400),
        ("c", [*QUEUE, ("Filter-Language", "prefix")], 400),
    ],
)
def test_what_makes_no_sense_is_refused(
    target: str, headers: list[tuple[str, str]], code: int
) -> None:
    _, peer = ready()
    assert peer.ask(BROWSE, target, headers=headers).content_type == code


def test_producers_are_hidden() -> None:
    _, peer = ready(body='{"HideClientNames":true}')
    peer.say(push("c", 1, "m", source="me"))
    answer = peer.ask(BROWSE, "c", headers=QUEUE)
    (stored,) = split_blocks(answer.payload)[0].messages()
    assert b"me" not in stored.body[: stored.payload_offset].replace(b"m\0", b"")
