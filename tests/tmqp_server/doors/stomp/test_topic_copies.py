"""The receipt of a SEND to a topic whose durable subscriptions have it on disk."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.door_world import DoorWorld
from tests.tmqp_server.doors.stomp.talk import Client, bodies, error, receipts, world_with
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.message import StompBodies


@pytest.mark.parametrize("in_cluster", [False, True])
def test_a_receipt_of_a_topic_comes_when_its_durable_subscription_has_it(in_cluster: bool) -> None:
    world = DoorWorld(
        lambda new_id, letters: StompDoor(new_id, letters=letters, durable=True),
        StompBodies(),
        stores=True,
    )
    subscriber, producer = Client(world, **{"client-id": "me"}), Client(world)
    subscriber.subscribe("/topic/t", **{"activemq.subscriptionName": "news"})
    world.save()
    world.broker._core.takes_nodes = in_cluster
    assert producer.send(b"1", "/topic/t,/queue/q", receipt="1") == []
    assert bodies(subscriber.hear()) == [b"1"]
    world.save()
    assert receipts(producer.hear()) == ["1"]
    assert producer.send(b"2", "/topic/t", receipt="2") == []
    world.save(fails=True)
    assert "not accepted" in error(producer.hear())


def test_a_message_to_a_topic_that_is_refused() -> None:
    client = Client(world_with())
    too_long = "/topic/" + "t" * 1_000
    assert "SEND to '/topic/ttt" in error(client.send(b"x", too_long, receipt="1"))
