"""Owns the checks of the cases about messages and queues."""

from __future__ import annotations

from tests.docs.broker import World
from tests.docs.cases import case, queue_information
from tmqp import (
    MessageType,
)
from tmqp_server.engine.delivery import Decision, combine

__all__: list[str] = []


@case(20)
def acknowledge_to_the_producer() -> None:
    for handler, asked, expected in (
        ("", False, 0),
        ("", True, 1),
        ("ack-received", False, 1),
        ("allow-all", True, 0),
    ):
        client = World().connect()
        client.create_queue("ch", 1, Delivery_Handler=handler)
        client.take()
        client.push("ch", 1, "m", pending_acknowledge=asked)
        assert [frame.type for frame in client.take()] == [MessageType.ACKNOWLEDGE] * expected


@case(21)
def reason_of_a_timeout() -> None:
    world = World()
    producer = world.connect("p")
    producer.create_queue("ch", 1, b'{"AcknowledgeTimeout":1000}', Delivery_Handler="ack-consumer")
    world.connect("c", join="ch")
    producer.take()
    producer.push("ch", 1, "m")
    assert producer.take() == []
    world.pass_time(1.0)
    assert [frame.header("Nack-Reason") for frame in producer.take()] == ["timeout"]


@case(22)
def failed_pushes() -> None:
    client = World().connect()
    client.create_queue("ch", 1, Queue_Status="stopped")
    client.take()
    client.push("ch", 1, "m1")
    client.push("ch", 1, "m2", pending_acknowledge=True)
    frames = client.take()
    shown = [(frame.type, frame.message_id, frame.content_type) for frame in frames]
    assert shown == [
        (MessageType.RESPONSE, "m1", 401),
        (MessageType.RESPONSE, "m2", 401),
        (MessageType.ACKNOWLEDGE, "m2", 1),
    ]
    assert frames[2].header("Nack-Reason") == "unauthorized"
    assert [frame.target for frame in frames] == ["ch"] * 3


@case(28)
def cache_keeps_the_latest() -> None:
    world = World()
    client = world.connect()
    client.create_queue("ch", 1, Queue_Status="cache")
    client.push("ch", 1, "m1")
    client.push("ch", 1, "m2")
    assert queue_information("ch", 1, world)["Messages"] == 1


@case(29)
def put_backs_end() -> None:
    world = World()
    client = world.connect(join="ch")
    client.create_queue("ch", 1, Delivery_Handler="putback-start")
    client.take()
    client.push("ch", 1, "m")
    times = 0
    deliveries = client.deliveries()
    while deliveries:
        times += 1
        assert times < 100
        client.acknowledge(deliveries[0], "again")
        deliveries = client.deliveries()
    assert times == 21
    assert queue_information("ch", 1, world)["Messages"] == 0


@case(45)
def redelivery_to_the_first_acquirer() -> None:
    world = World()
    first = world.connect("a", join="ch")
    second = world.connect("b", join="ch")
    first.create_queue("ch", 1, b'{"SendOnlyFirstAcquirer":true}', Delivery_Handler="putback-start")
    first.take()
    first.push("ch", 1, "m")
    (delivery,) = first.deliveries()
    assert delivery.first_acquirer
    first.acknowledge(delivery, "no")
    (again,) = first.deliveries()
    assert not again.first_acquirer
    assert second.deliveries() == []


@case(61)
def acknowledges_that_match_nothing() -> None:
    world = World()
    consumer = world.connect("c", join="ch")
    stranger = world.connect("s")
    consumer.create_queue("ch", 1, Wait_For_Acknowledge="1")
    consumer.take()
    consumer.push("ch", 1, "m1")
    consumer.push("ch", 1, "m2")
    (delivery,) = consumer.deliveries()
    stranger.acknowledge(delivery)
    assert consumer.deliveries() == []
    assert queue_information("ch", 1, world)["Acks"] == 1
    consumer.acknowledge(delivery)
    assert [frame.message_id for frame in consumer.deliveries()] == ["m2"]


@case(62)
def start_of_the_acknowledge_time() -> None:
    world = World()
    consumer = world.connect("c", join="ch")
    consumer.create_queue("ch", 1, b'{"AcknowledgeTimeout":1000}', Wait_For_Acknowledge="1")
    consumer.push("ch", 1, "m1")
    consumer.push("ch", 1, "m2")
    world.pass_time(1.0)
    assert consumer.received() == ["m1", "m2"]
    world.pass_time(0.9)
    assert queue_information("ch", 1, world)["NegativeAcks"] == 1
    world.pass_time(0.1)
    assert queue_information("ch", 1, world)["NegativeAcks"] == 2


@case(63)
def several_decisions() -> None:
    keep, back = Decision(), Decision(put_back=1)
    assert combine(back, keep).put_back == combine(keep, back).put_back == 1
    world = World()
    consumers = [world.connect(name, join="ch") for name in "ab"]
    consumers[0].create_queue("ch", 1, Delivery_Handler="putback-start")
    for consumer in consumers:
        consumer.take()
    consumers[0].push("ch", 1, "m")
    deliveries = [consumer.deliveries()[0] for consumer in consumers]
    consumers[0].acknowledge(deliveries[0], "no")
    consumers[1].acknowledge(deliveries[1])
    assert [len(consumer.deliveries()) for consumer in consumers] == [1, 1]


@case(64)
def consumers_that_are_gone() -> None:
    world = World()
    producer = world.connect("p")
    producer.create_queue("ch", 1, b'{"AcknowledgeTimeout":1000}', Delivery_Handler="allow-all")
    consumer = world.connect("c", join="ch")
    producer.push("ch", 1, "m")
    assert consumer.received() == ["m"]
    world.vanish(consumer)
    later = world.connect("later", join="ch")
    assert later.received() == []
    world.pass_time(1.0)
    assert later.received() == ["m"]


@case(65)
def slow_consumers() -> None:
    for status, quick_gets in (("push", []), ("round", ["m"]), ("broadcast", ["m"])):
        world = World()
        quick = world.connect("quick", join="ch")
        slow = world.connect("slow", join="ch")
        quick.create_queue("ch", 1, Queue_Status=status)
        quick.take()
        world.hub.block(slow.number, 0.0)
        quick.push("ch", 1, "m")
        assert quick.received() == quick_gets
        assert slow.received() == []
        world.hub.unblock(slow.number, 0.0)
        world.flush()
        if status == "push":
            assert (quick.received(), slow.received()) == (["m"], ["m"])


@case(66)
def high_priority_goes_first() -> None:
    world = World()
    consumer = world.connect("c", join="ch")
    consumer.create_queue("ch", 1, Wait_For_Acknowledge="true")
    consumer.take()
    for name, high in (("n1", False), ("n2", False), ("hp", True)):
        consumer.push("ch", 1, name, high_priority=high)
    order = []
    for _ in range(3):
        (delivery,) = consumer.deliveries()
        order.append(delivery.message_id)
        consumer.acknowledge(delivery)
    assert order == ["n1", "hp", "n2"]
