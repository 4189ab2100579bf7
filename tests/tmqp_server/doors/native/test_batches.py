"""Batches through hub and native door: what a body may hold, and what is answered."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.native.test_transactions import ready
from tests.tmqp_server.hub.test_reading_hub import written
from tests.tmqp_server.peers import Peer, ack, operation, push
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.extensions import OP_APPLY_BATCH
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.doors.native.batches import MAX_BATCH_FRAMES, batch_command
from tmqp_server.doors.native.parameters import BadRequestError
from tmqp_server.storage.port import StoreBatch


def apply(peer: Peer, *frames: Frame | bytes) -> list[int]:
    """A batch; the codes of what is answered at once."""
    body = b"".join([each.raw if isinstance(each, Frame) else each for each in frames])
    peer.say(operation(OP_APPLY_BATCH, "", body))
    return [each.content_type for each in peer.take() if each.type == MessageType.RESPONSE]


def write(world: World, ok: bool = True) -> StoreBatch:
    """Let what was gathered be written, or not."""
    journal = world.hub.journal
    assert journal is not None
    writing = journal.take()
    synced = journal.finished(writing, ok)
    assert synced is not None
    world.hub.perform(synced, world.now)
    return writing.batch


def consuming() -> tuple[World, Peer, Frame]:
    """A client that has a message of ``c``/1 in its hands."""
    world, peer = ready()
    peer.say(operation(Operation.JOIN, "c"), push("c", 1, "in", source="me"))
    written(world)
    (delivery,) = [each for each in peer.take() if each.type == MessageType.QUEUE_MESSAGE]
    return world, peer, delivery


def test_messages_and_answers_stand_in_one_write() -> None:
    world, peer, delivery = consuming()
    assert apply(peer, push("d", 1, "m1", source="me"), ack(delivery), push("c", 1, "m2")) == []
    batch = write(world)
    assert sorted(len(each) for each in batch.appended.values()) == [1, 1]
    assert [each for each in batch.settled.values() if each] == [[1]]
    answers = peer.take()
    assert [(each.type, each.content_type) for each in answers] == [
        (MessageType.QUEUE_MESSAGE, 1),
        (MessageType.RESPONSE, 0),
    ]
    assert (answers[0].message_id, answers[0].source) == ("m2", "me")


def test_a_failed_write_leaves_all_as_it_was() -> None:
    world, peer, delivery = consuming()
    assert apply(peer, push("d", 1, "m1"), ack(delivery)) == []
    write(world, ok=False)
    assert [each.content_type for each in peer.take()] == [503]
    journal = world.hub.journal
    assert journal is not None
    assert journal.is_empty  # nothing is owed to the next write
    assert apply(peer, ack(delivery)) == []
    assert [each for each in write(world).settled.values() if each] == [[1]]
    assert [each.content_type for each in peer.take()] == [0]


def test_a_negative_answer() -> None:
    world, peer, delivery = consuming()
    assert apply(peer, ack(delivery, "broken")) == []
    write(world)
    assert [each.content_type for each in peer.take()] == [0]


def test_a_message_that_is_given_back() -> None:
    world, peer, _ = consuming()
    back = Frame.build(
        MessageType.ACKNOWLEDGE, "c", 1, message_id="in",
        headers=[("Nack-Reason", "release"), ("Put-Back", "front")],
    ).raw  # fmt: skip
    assert apply(peer, push("d", 1, "m1"), back) == []
    write(world)
    answers = peer.take()
    assert {each.type for each in answers} == {MessageType.QUEUE_MESSAGE, MessageType.RESPONSE}
    nonsense = Frame.build(
        MessageType.ACKNOWLEDGE, "c", 1, message_id="in",
        headers=[("Nack-Reason", "release"), ("Put-Back", "aside")],
    )  # fmt: skip
    assert apply(peer, nonsense) == [400]


def test_an_answer_that_nobody_waits_for() -> None:
    _, peer = ready()
    body = push("memory", 1, "m1", source="me").raw
    peer.say(operation(OP_APPLY_BATCH, "", body, pending_response=False))
    assert peer.take() == []


def test_a_message_without_an_id_is_given_one() -> None:
    world, peer = ready()
    assert apply(peer, push("c", 1, "")) == []
    (kept,) = [each for each in write(world).appended.values() if each]
    (frame,) = [kept[0].body]
    assert b"me" in frame
    assert [each.content_type for each in peer.take()] == [0]


@pytest.mark.parametrize(
    ("code", "frames"),
    [
        (400, [b"\x10"]),
        (400, [b"\xff" * 40]),
        (400, [push("c", 1, "m", source="other")]),
        (400, [operation(Operation.JOIN, "c")]),
        (400, [ack(push("c", 1, "m"), high_priority=True)]),
        (400, [push("c", 1, "m", headers=[("Queue-Status", "nonsense")])]),
        (404, [push("c", 1, "a"), ack(push("c", 1, "nothing"))]),
        (501, [push("c", 1, "m", headers=[("CC", "d")])]),
        (482, [push("c", 1, f"{number}", b"") for number in range(1_001)]),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_what_is_refused_does_nothing(code: int, frames: list[Frame | bytes]) -> None:
    world, peer = ready()
    assert apply(peer, *frames) == [code]
    journal = world.hub.journal
    assert journal is not None
    assert journal.is_empty
    assert peer.take() == []


def test_a_body_of_very_many_tiny_messages_is_given_up_early() -> None:
    body = push("c", 1, "m", b"").raw * (2 * MAX_BATCH_FRAMES)
    made = 0

    def new_id() -> str:
        nonlocal made
        made += 1
        return f"{made}"

    with pytest.raises(BadRequestError) as caught:
        batch_command(1, operation(OP_APPLY_BATCH, "", body), "me", new_id, Limits(), 0.0)
    assert (caught.value.code, made) == (482, 0)
