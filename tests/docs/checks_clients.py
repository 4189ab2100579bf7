"""The checks of the cases about clients that speak to each other, and about events."""

from __future__ import annotations

import json
from typing import Any

from tests.docs.broker import Client, World, hello
from tests.docs.cases import case, queue_information
from tests.tmqp_server.outputs import calls
from tmqp import ConnectionInformation, Frame, MessageType, Operation
from tmqp_server.engine.commands import HttpAnswered
from tmqp_server.engine.options import BrokerOptions

__all__: list[str] = []


def named(world: World, client_id: str, name: str, kind: str = "") -> Client:
    """A connected client with a name and a type."""
    client = world.open()
    client.say(hello("", ConnectionInformation(client_id, name, kind).encode()))
    client.take()
    return client


def direct(client: Client, target: str, content_type: int = 9, **more: Any) -> None:
    """Send a direct message with the id d."""
    more.setdefault("message_id", "d")
    client.send(Frame.build(MessageType.DIRECT_MESSAGE, target, content_type, b"x", **more))


def subscribe(client: Client, name: str, channel: str = "", queue_id: int | None = None) -> None:
    """Subscribe to an event, with the id e and without R."""
    headers = [("Channel-Name", channel)] if channel else []
    if queue_id is not None:
        headers.append(("Queue-Id", str(queue_id)))
    client.send(Frame.build(MessageType.EVENT, name, 1, message_id="e", headers=headers))


@case(36)
def names_in_targets() -> None:
    world = World()
    receiver = named(world, "a", "X", "T")
    sender = world.connect("b")
    for target in ("a", "@name:X", "@type:T"):
        direct(sender, target)
        (frame,) = receiver.take()
        assert (frame.target, frame.source, frame.ttl) == (target, "b", 15)
    for target in ('@name:"X"', "@name:x", "@NAME:X", "@type:t"):
        direct(sender, target)
    assert receiver.take() == []


@case(35)
def acknowledges_of_direct_messages() -> None:
    world = World()
    sender, receiver = world.connect("a"), world.connect("b")
    sender.take()
    for high in (True, False):
        direct(sender, "b", pending_acknowledge=True)
        receiver.send(
            Frame.build(MessageType.ACKNOWLEDGE, "a", 9, message_id="d", high_priority=high)
        )
        (frame,) = sender.take()
        assert (frame.type, frame.message_id) == (MessageType.ACKNOWLEDGE, "d")
        assert (frame.source, frame.high_priority, frame.ttl) == ("b", high, 15)


@case(67)
def direct_messages_that_fail() -> None:
    client = World().connect("a")
    client.take()
    for target, flags, expected in (
        ("nobody", {}, ["404"]),
        ("nobody", {"pending_acknowledge": True}, ["404", "not-found"]),
        ("@name:nobody", {}, []),
        ("@name:nobody", {"pending_response": True}, ["404"]),
        ("@type:nobody", {"pending_acknowledge": True}, ["not-found"]),
    ):
        direct(client, target, **flags)
        frames = client.take()
        assert [frame.header("Nack-Reason") or str(frame.content_type) for frame in frames] == (
            expected
        )
        assert all(frame.message_id == "d" for frame in frames)


@case(68)
def receivers_that_read_slowly() -> None:
    world = World()
    slow, sender = named(world, "slow", "X"), world.connect("b")
    subscribe(slow, "ClientConnected")
    direct(slow, "b", message_id="r", pending_response=True)
    world.hub.block(slow.number, world.now)
    slow.take()
    sender.take()
    direct(sender, "slow")
    direct(sender, "@name:X", pending_response=True)
    assert [frame.content_type for frame in sender.take()] == [503, 503]
    quick = named(world, "quick", "X")
    direct(sender, "@name:X", pending_response=True)
    assert [frame.message_id for frame in quick.take()] == ["d"]
    sender.send(Frame.build(MessageType.RESPONSE, "slow", 0, message_id="r"))
    assert [frame.message_id for frame in slow.take()] == ["r"]
    statistics = world.hub.broker.statistics()
    assert (statistics.directs_skipped, statistics.events_skipped) == (3, 1)


@case(72)
def answers_that_nobody_asked_for() -> None:
    world = World()
    asker, asked, other = world.connect("a"), world.connect("b"), world.connect("c")
    direct(asker, "b", pending_response=True)
    answer = Frame.build(MessageType.RESPONSE, "a", 0, message_id="d")
    acknowledge = Frame.build(MessageType.ACKNOWLEDGE, "a", 9, message_id="d", high_priority=True)
    asker.take()
    for client in (other, world.connect("e")):
        client.send(answer)
        client.send(acknowledge)
    asked.send(Frame.build(MessageType.RESPONSE, "a", 0, message_id="another"))
    assert asker.take() == []
    for frame in (acknowledge, answer):
        asked.send(frame)
        asked.send(frame)
    kinds = [frame.type for frame in asker.take()]
    assert kinds == [MessageType.ACKNOWLEDGE, MessageType.RESPONSE]
    direct(asker, "b")
    asked.send(answer)
    assert asker.take() == []


@case(73)
def request_id_of_a_producer() -> None:
    world = World()
    producer, consumer = world.connect("a"), world.connect("b", join="q")
    headers = [("One", "1"), ("request-ID", "r"), ("Two", "Request-Id"), ("Request-Id", "s")]
    push = Frame.build(MessageType.QUEUE_MESSAGE, "q", 1, b"x", message_id="m", headers=headers)
    consumer.take()
    producer.send(push)
    (frame,) = consumer.take()
    assert frame.headers == [("One", "1"), ("Two", "Request-Id")]
    assert (frame.payload, frame.message_id, frame.source) == (b"x", "m", "a")


@case(30)
def shape_of_event_messages() -> None:
    world = World()
    listener, other = world.connect("a"), world.connect("b")
    other.create_queue("Ch", 258, Queue_Status="round-robin")
    listener.take()
    subscribe(listener, "MessageProduced", "cH", 258)
    subscribe(listener, "ClientConnected")
    subscribe(listener, "QueueUpdated", "cH")
    answers = [(frame.type, frame.content_type, frame.target) for frame in listener.take()]
    assert answers == [(MessageType.RESPONSE, 0, "a")] * 3
    other.push("CH", 258, "m")
    named(world, "n", "N")
    headers = [("Queue-Id", "258")]
    assert other.ask(Operation.UPDATE_QUEUE, "Ch", b"{}", headers) == [0]
    produced, connected, updated = listener.take()
    for frame in (produced, connected, updated):
        assert (frame.type, frame.message_id, frame.headers) == (MessageType.EVENT, "", [])
        assert frame.ttl == 16
    assert (produced.source, produced.target, produced.content_type) == (
        *("MessageProduced", "cH"),
        258,
    )
    assert (connected.source, connected.target, connected.content_type) == (
        *("ClientConnected", ""),
        0,
    )
    assert (updated.source, updated.target, updated.content_type) == ("QueueUpdated", "cH", 0)
    assert json.loads(produced.payload)["Channel"] == "CH"
    assert json.loads(connected.payload) == {"Id": "n", "Name": "N", "Type": None, "Node": None}
    assert json.loads(updated.payload)["Status"] == "RoundRobin"


@case(33)
def subscribing_to_an_unknown_event() -> None:
    client = World().connect("a")
    client.take()
    for name in ("Nothing", "clientconnected", "NodeJoined"):
        subscribe(client, name)
    assert [frame.content_type for frame in client.take()] == [404] * 3
    subscribe(client, "QueueCreated", "nowhere")
    subscribe(client, "QueueCreated")
    assert [frame.content_type for frame in client.take()] == [1, 1]


@case(40)
def delivery_by_tag_bindings() -> None:
    world = World()
    client = world.connect("a", join="Ch")
    client.create_queue("Ch", 3, Queue_Tag="red-1", Queue_Status="push")
    assert client.ask(Operation.CREATE_ROUTER, "r") == [0]
    body = b'{"Name":"b","Target":"red*","BindingType":3}'
    assert client.ask(Operation.ADD_BINDING, "r", body) == [0]
    client.take()
    client.send(
        Frame.build(MessageType.ROUTER, "r", 9, b"x", message_id="m", pending_acknowledge=True)
    )
    acknowledge, delivery = sorted(client.take(), key=lambda frame: -frame.type)
    assert (acknowledge.type, acknowledge.message_id) == (MessageType.ACKNOWLEDGE, "m")
    assert (acknowledge.target, acknowledge.header("Nack-Reason")) == ("r", None)
    assert (delivery.type, delivery.target) == (MessageType.QUEUE_MESSAGE, "Ch")
    assert (delivery.content_type, delivery.source, delivery.payload) == (3, "a", b"x")


@case(69)
def a_route_method_that_is_none() -> None:
    client = World().connect("a")
    for word, code in (("3", 400), ("-1", 400), ("x", 400), ("2", 0)):
        headers = [("Route-Method", word)]
        assert client.ask(Operation.CREATE_ROUTER, "r", headers=headers) == [code]


@case(70)
def what_an_http_binding_does() -> None:
    def binding(name: str, target: str, kind: int = 2) -> bytes:
        return json.dumps({"Name": name, "Target": target, "BindingType": kind}).encode()

    cautious = World().connect("a")
    assert cautious.ask(Operation.ADD_BINDING, "r", binding("h", "http://h/in/x")) == [501]
    world = World(options=BrokerOptions(http_prefixes=("http://h/in/",)))
    client = world.connect("a")
    client.ask(Operation.CREATE_ROUTER, "r", headers=[("Route-Method", "2")])
    for target, code in (
        ("http://h/out", 401),
        ("http://h/in/../out", 400),
        ("http://h/in/x", 0),
    ):
        assert client.ask(Operation.ADD_BINDING, "r", binding("h", target)) == [code]
    client.ask(Operation.ADD_BINDING, "r", binding("q", "ch", kind=1))
    client.create_queue("ch", 0)
    client.take()
    for status in (200, 500):
        client.send(Frame.build(MessageType.ROUTER, "r", message_id="m", pending_response=True))
        assert client.take() == []
        (call,) = calls(world.hub)
        assert (call.method, call.url) == ("POST", "http://h/in/x")
        world.hub.perform(HttpAnswered(call.ticket, status), world.now)
        world.flush()
        assert [frame.content_type for frame in client.take()] == [0]
    assert queue_information("ch", 0, world)["Messages"] == 1
