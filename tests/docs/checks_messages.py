"""The checks of the cases about messages and queues."""

from __future__ import annotations

from tests.docs.broker import Client, World
from tests.docs.cases import case, queue_information
from tests.tmqp_server.engine.kept import KeptWorld
from tmqp import Frame, MessageType, Operation
from tmqp.constants import STATUS_PULL
from tmqp_server import Decision, QueueChanges
from tmqp_server.engine.model.delivery import combine

__all__: list[str] = []


@case(18)
def key_of_copies() -> None:
    client = World().connect(join="ch")
    for key in ("cc", "CC", "Cc"):
        client.push("ch", 1, "m", headers=[(key, f"ch;2;{key}")])
        assert [frame.message_id for frame in client.deliveries()] == ["m", key]
    client.push("ch", 1, "many", headers=[("CC", "ch")] * 33)
    assert [frame.content_type for frame in client.take()] == [482]


@case(19)
def address_of_copies() -> None:
    world = World()
    client = world.connect(join="ch")
    client.ask(Operation.JOIN, "other")
    client.push("ch", 1, "m", headers=[("CC", "other;7;copy"), ("CC", "other;8")])
    frames = client.deliveries()
    assert [(frame.target, frame.content_type) for frame in frames] == [
        ("ch", 1),
        ("other", 7),
        ("other", 8),
    ]
    assert len({frame.message_id for frame in frames}) == 3
    for frame in frames:
        client.acknowledge(frame)
        told = queue_information(frame.target, frame.content_type, world)
        assert told["Acks"] == 1


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


def pulling(*messages: str, status: str = "pull") -> tuple[World, Client]:
    """A world with a pull queue that holds these, and a client that has joined."""
    world = World()
    client = world.connect(join="ch")
    client.create_queue("ch", 1, Queue_Status=status)
    for message in messages:
        client.push("ch", 1, message, high_priority=message.startswith("h"))
    client.take()
    return world, client


def pull(client: Client, channel: str = "ch", queue_id: int = 1, **headers: str) -> list[Frame]:
    """What answers a pull with the id "p"."""
    pairs = list(headers.items())
    kind = MessageType.PULL_REQUEST
    client.send(Frame.build(kind, channel, queue_id, message_id="p", headers=pairs))
    return client.take()


@case(23)
def count_of_a_pull() -> None:
    _, client = pulling("m1", "m2")
    *frames, end = pull(client, Count="5")
    shown = [(frame.header("Count"), frame.header("Index")) for frame in frames]
    assert shown == [("2", "1"), ("2", "2")]
    assert end.headers == [("Request-Id", "p"), ("No-Content", "End")]


@case(24)
def refused_pulls() -> None:
    _, client = pulling()
    for channel, queue_id, word in (("other", 1, "No-Channel"), ("ch", 9, "No-Queue")):
        (answer,) = pull(client, channel, queue_id, Count="1")
        assert answer.headers == [("Request-Id", "p"), ("No-Content", word)]
        assert (answer.type, answer.message_id) == (MessageType.QUEUE_MESSAGE, "p")
    client.send(Frame.build(MessageType.PULL_REQUEST, "ch", 1, headers=[("Count", "1")]))
    assert [frame.header("No-Content") for frame in client.take()] == ["Id-Required"]
    assert client.ask(Operation.CHANNEL_INFORMATION, "other") == [404]


@case(25)
def what_a_pull_leaves() -> None:
    world, client = pulling("m1", "m2", "m3")
    assert [frame.message_id for frame in pull(client, Count="1")] == ["m1", "p"]
    assert queue_information("ch", 1, world)["Messages"] == 2


@case(26)
def pulls_of_strangers() -> None:
    world, _ = pulling("m1")
    (answer,) = pull(world.connect("stranger"), Count="1")
    assert answer.header("No-Content") == "Unauthorized"
    assert queue_information("ch", 1, world)["Messages"] == 1


@case(27)
def clear_in_a_pull() -> None:
    for clear, count, left in (
        ("all", 9, (0, 0)),
        ("ALL", 1, (0, 0)),
        ("high-priority", 1, (0, 2)),
        ("Default-Priority", 1, (1, 0)),
        ("none", 1, (1, 2)),
    ):
        world, client = pulling("m1", "m2", "h1", "h2")
        pull(client, Count=str(count), Clear=clear)
        told = queue_information("ch", 1, world)
        assert (told["PriorityMessages"], told["Messages"]) == left


@case(28)
def cache_queues() -> None:
    world, client = pulling("m1", "m2", status="cache")
    assert queue_information("ch", 1, world)["Messages"] == 1
    for _ in range(2):
        (answer,) = pull(client)
        shown = (answer.type, answer.message_id, answer.target, answer.content_type, answer.payload)
        assert shown == (MessageType.RESPONSE, "p", "c", 0, b"m2")
    (refusal,) = pull(world.connect("stranger"))
    assert (refusal.type, refusal.content_type) == (MessageType.RESPONSE, 401)
    _, client = pulling(status="cache")
    assert [frame.content_type for frame in pull(client)] == [404]


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


@case(79)
def a_restart_does_not_start_the_time_anew() -> None:
    world = KeptWorld()
    world.create(QueueChanges(durable=True, status=STATUS_PULL, message_timeout_ms=5_000))
    world.push("m")
    world.sync()
    world.wait(3)
    world.crash()
    world.sync()
    assert world.books()["messages"] == 1
    world.wait(2)
    assert "messages" not in world.books()
