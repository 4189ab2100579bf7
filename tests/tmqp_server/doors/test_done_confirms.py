"""Producers of JMS and STOMP whose messages were acknowledged before the disk had them."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.door_world import DoorWorld
from tests.tmqp_server.doors.openwire.talk import Client as OpenwireClient
from tests.tmqp_server.doors.openwire.talk import Q, dispatches, fine
from tests.tmqp_server.doors.stomp.talk import A, receipts
from tests.tmqp_server.doors.stomp.talk import Client as StompClient
from tmqp_server.config import ServerConfig, parse_config
from tmqp_server.doors.openwire.door import OpenwireDoor
from tmqp_server.doors.openwire.message import OpenwireBodies
from tmqp_server.doors.registry import DoorRegistry
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.message import StompBodies
from tmqp_server.wiring.doors import Doors

GROUP = '[replication]\nlog = "etcd://a:2379/g"\nnode = "a"\n'


def stomp(*, early: bool) -> DoorWorld:
    return DoorWorld(
        lambda new_id, letters: StompDoor(
            new_id, letters=letters, durable=True, done_confirms=early
        ),
        StompBodies(),
        stores=True,
    )


def openwire(*, early: bool) -> DoorWorld:
    return DoorWorld(
        lambda new_id, letters: OpenwireDoor(
            new_id, letters=letters, durable=True, done_confirms=early
        ),
        OpenwireBodies(),
        stores=True,
    )


@pytest.mark.parametrize("early", [False, True])
def test_a_receipt_of_stomp_when_the_message_is_done(early: bool) -> None:
    world = stomp(early=early)
    producer, consumer = StompClient(world), StompClient(world)
    consumer.subscribe(A, ack="client-individual")
    assert producer.send(b"1", A, receipt="1") == []
    (message,) = consumer.hear()
    consumer.ack(message)
    assert receipts(producer.hear()) == (["1"] if early else [])
    world.save()
    assert receipts(producer.hear()) == ([] if early else ["1"])


@pytest.mark.parametrize("early", [False, True])
def test_a_response_of_openwire_when_the_message_is_done(early: bool) -> None:
    world = openwire(early=early)
    producer, consumer = OpenwireClient(world), OpenwireClient(world)
    consumer.consume(Q, prefetch=10)
    consumer.hear()
    assert producer.send("1") == []
    consumer.ack(*dispatches(consumer.hear()))
    assert fine(producer.hear()) is early
    world.save()
    assert fine(producer.hear()) is not early


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("protocol", ["stomp", "openwire"])
def test_the_log_of_a_group_confirms_whatever_the_door_says(protocol: str, early: bool) -> None:
    options = "" if early else "options = { done_confirms = false }\n"
    table = f'[[doors]]\nprotocol = "{protocol}"\n{options}'
    for more, expected in ((GROUP, False), ("", early)):
        config = ServerConfig(**parse_config(f'data = "d"\n{more}{table}'))
        (opened,) = Doors(config, DoorRegistry(), lambda: "id", 0.0).further
        door = opened.door
        assert isinstance(door, (StompDoor, OpenwireDoor))
        said = door.context.shapes.extras(False, False, 0, 0)
        assert said.done_confirms is expected
        assert not door.context.shapes.extras(True, False, 0, 0).done_confirms, "copies count"
