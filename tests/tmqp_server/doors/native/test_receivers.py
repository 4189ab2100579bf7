"""The number of consumers that a pushed message went to, told in its acknowledge."""

from __future__ import annotations

import pytest

from tests.tmqp_server.peers import Peer, ack, push
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame

QUEUE = [("Queue-Id", "1")]
COUNTED = [("Receivers", "yes")]


def ready(consumers: int, status: str, **more: str) -> tuple[World, Peer, list[Peer]]:
    """A producer, so many consumers, and a queue of that status."""
    world = World()
    producer = Peer(world, "producer")
    headers = [*QUEUE, ("Queue-Status", status)]
    headers += [(name.replace("_", "-"), value) for name, value in more.items()]
    assert producer.ask(Operation.CREATE_QUEUE, "c", headers=headers).content_type == 0
    return world, producer, [Peer(world, f"consumer{number}", ["c"]) for number in range(consumers)]


def answer(producer: Peer, frame: Frame | None = None) -> Frame:
    """The one acknowledge that a push gets."""
    if frame is None:
        frame = push("c", 1, "m", headers=COUNTED, pending_acknowledge=True)
    producer.say(frame)
    (answer,) = producer.take()
    assert answer.type == MessageType.ACKNOWLEDGE
    return answer


@pytest.mark.parametrize("consumers", [0, 1, 3])
@pytest.mark.parametrize(
    ("status", "expected"),
    [("broadcast", 3), ("push", 3), ("round-robin", 1), ("pull", 0), ("paused", 0)],
)
def test_the_number_of_receivers(consumers: int, status: str, expected: int) -> None:
    _, producer, peers = ready(consumers, status)
    found = answer(producer).header("Receivers")
    assert found == str(min(consumers, expected))
    assert sum(len(peer.take()) for peer in peers) == int(found)


def test_it_is_told_only_when_asked() -> None:
    _, producer, _ = ready(1, "push")
    for headers in ([], [("Receivers", "no")], [("Receivers", "1")], [("Other-Receivers", "yes")]):
        frame = push("c", 1, f"m{headers}", headers=headers, pending_acknowledge=True)
        assert answer(producer, frame).header("Receivers") is None
    frame = push("c", 1, "m", headers=[("receivers", "YES")], pending_acknowledge=True)
    assert answer(producer, frame).header("Receivers") == "1"


def test_a_message_that_waits_or_is_deferred_has_none() -> None:
    _, producer, _ = ready(2, "push")
    late = [*COUNTED, ("Delay", "1000")]
    frame = push("c", 1, "late", headers=late, pending_acknowledge=True)
    assert answer(producer, frame).header("Receivers") == "0"


def test_it_is_told_with_the_acknowledge_of_a_consumer_too() -> None:
    _, producer, (first, second) = ready(2, "push", Delivery_Handler="ack-consumer")
    producer.say(push("c", 1, "m", headers=COUNTED, pending_acknowledge=True))
    assert producer.take() == []
    (delivery,) = first.take()
    mine = [("Receivers", "77"), ("Mine", "x")]
    first.say(ack(delivery, source="consumer0").replace(more_headers=mine))
    (told,) = producer.take()
    assert told.source == "consumer0"
    assert list(told.headers) == [("Mine", "x"), ("Receivers", "2")]
    assert second.take() != []


def test_a_refused_push_has_no_receivers() -> None:
    _, producer, _ = ready(1, "stopped")
    producer.say(push("c", 1, "m", headers=COUNTED, pending_acknowledge=True))
    assert [frame.header("Receivers") for frame in producer.take()] == [None, None]


def test_who_wants_no_acknowledge_gets_none() -> None:
    _, producer, (consumer,) = ready(1, "push")
    producer.say(push("c", 1, "m", headers=COUNTED))
    assert producer.take() == []
    assert [frame.message_id for frame in consumer.take()] == ["m"]
