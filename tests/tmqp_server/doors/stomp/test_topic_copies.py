"""The receipt of a SEND to a topic whose durable subscriptions have it on disk."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.stomp.talk import Client, bodies, error, receipts, world_with
from tmqp_server.doors.stomp.door import StompDoor


@pytest.mark.parametrize("in_cluster", [False, True])
def test_a_receipt_of_a_topic_comes_with_and_without_batches(in_cluster: bool) -> None:
    world = world_with()
    assert isinstance(world.door, StompDoor)
    copies = world.door.context.copies
    copies.asked = True
    subscriber, producer = Client(world), Client(world)
    subscriber.subscribe("/topic/t")
    world.broker._core.takes_nodes = in_cluster
    for text in ("1", "2"):
        assert receipts(producer.send(text.encode(), "/topic/t,/queue/q", receipt=text)) == [text]
    assert bodies(subscriber.hear()) == [b"1", b"2"]
    assert copies.asked is not in_cluster


def test_a_message_to_a_topic_that_is_refused() -> None:
    world = world_with()
    assert isinstance(world.door, StompDoor)
    world.door.context.copies.asked = True
    client = Client(world)
    too_long = "/topic/" + "t" * 1_000
    assert "SEND to '/topic/ttt" in error(client.send(b"x", too_long, receipt="1"))
