"""Several doors at one hub: what came in by one leaves by every other."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.tmqp_server.outputs import faults, sent
from tests.tmqp_server.peers import Peer, ack, push
from tests.tmqp_server.toy_door import ToyBodies, ToyDoor, ToyWire, lines_of
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp_server.cluster.filters import PatternFilter
from tmqp_server.cluster.relay import ClusterRelay
from tmqp_server.doors.http.door import HttpDoor
from tmqp_server.doors.letter import Property
from tmqp_server.doors.letter_frames import letter_of_frame
from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import Acknowledge, CreateQueue, Push
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import QueueChanges

BODY = b"\x00\xff body"
HEADERS = [["Mine", "1"], ["Mine", "2"], ["CC", "elsewhere;1"]]
PROPERTIES: list[list[Any]] = [["n", "i", 5], ["d", "d", 0.5], ["yes", "z", True]]
FIELDS: dict[str, Any] = {
    "content_type": "text/plain",
    "correlation_id": "c1",
    "reply_to": "answers",
    "kind": "order",
    "priority": 7,
    "timestamp_ms": 1732000000123,
    "expires_ms": 1932000000123,
    "group_key": "g",
    "traceparent": "00-0af7-b7ad-01",
    "tracestate": "a=1",
}


class Toy:
    """A client of the toy door."""

    def __init__(self, world: World, name: str, door: ToyDoor | None = None) -> None:
        self._world = world
        if door is None:
            world.door.letters.add(ToyBodies())
            door = ToyDoor(world.door.letters)
        self.door = door
        world._sessions += 1
        self.number = world._sessions
        world.hub.open(self.number, door, world.now)
        self.say(do="connect", id=name)
        assert self.take() == [{"is": "accepted", "id": name}]

    def say(self, **asked: Any) -> None:
        data = json.dumps(asked).encode() + b"\n"
        self._world.hub.receive(self.number, data, self._world.now)
        self._world.settle()

    def push(self, channel: str, queue: int, name: str, body: bytes = BODY, **more: Any) -> None:
        text = base64.b64encode(body).decode()
        self.say(do="push", channel=channel, queue=queue, id=name, body=text, **more)

    def take(self) -> list[dict[str, Any]]:
        return lines_of(sent(self._world.hub, self.number))


def _full(frame: Frame) -> None:
    """Check that a TMQP message says all that the toy door's one did."""
    letter = letter_of_frame(frame)
    assert (frame.payload, frame.high_priority) == (BODY, True)
    for field, value in FIELDS.items():
        assert getattr(letter, field) == value
    assert letter.headers == [(key, value) for key, value in HEADERS]
    assert letter.properties == [Property(name, kind, value) for name, kind, value in PROPERTIES]


def test_a_message_of_another_door_is_delivered() -> None:
    world = World()
    consumers = [Peer(world, "consumer", ["c"]), Peer(world, "other", ["c"])]
    toy = Toy(world, "toy")
    toy.push("c", 1, "m1", headers=HEADERS, properties=PROPERTIES, **FIELDS)
    for consumer in consumers:
        (delivery,) = consumer.take()
        assert (delivery.type, delivery.target) == (MessageType.QUEUE_MESSAGE, "c")
        assert (delivery.message_id, delivery.source) == ("m1", "toy")
        assert delivery.ttl == 15
        _full(delivery)
    assert faults(world.hub) == {}


def test_a_tmqp_message_is_delivered_by_another_door() -> None:
    world = World()
    toy = Toy(world, "toy")
    toy.say(do="join", channel="c")
    producer = Peer(world, "producer")
    headers = [("Content-Type", "text/plain"), ("Type", "order"), ("n", "5"), ("Mine", "1")]
    headers.append(("Property-Types", "n=i"))
    toy.take()
    producer.say(push("c", 1, "m1", b"text", headers=headers, high_priority=True))
    (delivery,) = toy.take()
    assert delivery == {
        "is": "message",
        "id": "m1",
        "source": "producer",
        "channel": "c",
        "queue": 1,
        "answer": True,
        "content_type": "text/plain",
        "kind": "order",
        "priority": 9,
        "headers": [["Mine", "1"]],
        "properties": [["n", "i", 5]],
        "body": base64.b64encode(b"text").decode(),
    }


def test_a_letter_is_made_once_for_all_who_get_the_message_and_only_if_kinds_differ() -> None:
    world = World()
    first = Toy(world, "a")
    others = [Toy(world, name, first.door) for name in ("b", "c", "d")]
    for each in (first, *others):
        each.say(do="join", channel="c")
        each.take()
    Peer(world, "producer").say(push("c", 1, "m1"))
    # The first receiver's copy has another flag (F87): it is another effect.
    assert (first.door.encoded, first.door.translated) == (2, 2)
    others[0].push("c", 1, "m2")
    assert (first.door.encoded, first.door.translated) == (4, 2)


def test_two_doors_of_one_protocol_do_not_share_bytes() -> None:
    world = World()
    one = Toy(world, "one")
    two = Toy(world, "two", ToyDoor(world.door.letters, mark="dialect"))
    third = Toy(world, "third", two.door)
    for each in (one, two, third):
        each.say(do="join", channel="c")
        each.take()
    one.push("c", 1, "m1")
    found = [[line.get("mark") for line in each.take() if "mark" in line] for each in (two, third)]
    assert found == [["dialect"], ["dialect"]]
    assert [line.get("mark") for line in one.take()] == [None, None]


def test_runs_of_pushes_reach_other_doors() -> None:
    world = World()
    toy = Toy(world, "toy")
    peer = Peer(world, "consumer", ["c"])
    toy.say(do="join", channel="c")
    toy.take()
    producer = Peer(world, "producer")
    frames = [push("c", 1, f"m{each:03}", b"x" * each, source="producer") for each in range(50)]
    producer.say(*frames)
    assert [line["id"] for line in toy.take()] == [frame.message_id for frame in frames]
    assert len(peer.take()) == 50
    assert faults(world.hub) == {}


@pytest.mark.parametrize("status", ["push", "roundrobin"])
def test_an_acknowledgement_by_another_door_settles(status: str) -> None:
    world = World()
    admin = Peer(world, "admin")
    body = b'{"RequestAcknowledge":true}'
    headers = [("Queue-Id", "1"), ("Queue-Status", status)]
    assert admin.ask(Operation.CREATE_QUEUE, "c", body, headers=headers).content_type == 0
    toy = Toy(world, "toy")
    toy.say(do="join", channel="c")
    toy.take()
    producer = Peer(world, "producer")
    producer.say(push("c", 1, "m1", pending_acknowledge=True))
    (delivery,) = toy.take()
    assert delivery["answer"] is True
    toy.say(do="ack", channel="c", queue=1, id="m1")
    (confirm,) = producer.take()
    assert (confirm.type, confirm.message_id) == (MessageType.ACKNOWLEDGE, "m1")
    assert confirm.header("Nack-Reason") is None
    toy.say(do="leave", channel="c")
    toy.take()
    consumer = Peer(world, "consumer", ["c"])
    toy.push("c", 1, "m2")
    (delivered,) = consumer.take()
    assert delivered.pending_acknowledge
    consumer.say(ack(delivered))
    assert toy.take() == [{"is": "confirm", "id": "m2", "positive": True, "reason": ""}]
    assert faults(world.hub) == {}


@pytest.mark.parametrize("status", ["pull", "cache"])
def test_messages_of_other_doors_are_pulled(status: str) -> None:
    world = World()
    headers = [("Queue-Id", "1"), ("Queue-Status", status)]
    peer = Peer(world, "peer", ["c"])
    assert peer.ask(Operation.CREATE_QUEUE, "c", b"", headers=headers).content_type == 0
    toy = Toy(world, "toy")
    toy.say(do="join", channel="c")
    toy.push("c", 1, "m1", headers=HEADERS, properties=PROPERTIES, **FIELDS)
    toy.take()
    asked = [("Count", "1")]
    pull = Frame.build(MessageType.PULL_REQUEST, "c", 1, message_id="p", headers=asked)
    peer.say(pull)
    found = peer.take()[0]
    if status == "cache":
        assert (found.type, found.payload) == (MessageType.RESPONSE, BODY)
        peer.say(push("c", 1, "m2", b"native"))
    else:
        assert found.header("Request-Id") == "p"
        own = [pair for pair in found.headers if pair[0] not in ("Request-Id", "Count", "Index")]
        _full(Frame.build(18, "c", 1, found.payload, headers=own, high_priority=True))
        peer.say(push("c", 1, "m2", b"native"))
    toy.say(do="pull", channel="c", queue=1)
    pulled = toy.take()[0]
    assert (pulled["is"], pulled["id"]) == ("pulled", "m2")
    assert base64.b64decode(pulled["body"]) == b"native"
    assert faults(world.hub) == {}


def test_clients_of_different_doors_speak_to_each_other() -> None:
    world = World()
    toy = Toy(world, "toy")
    peer = Peer(world, "peer")
    text = base64.b64encode(b"hello").decode()
    toy.say(do="send", to="peer", id="d1", body=text, kind="greeting", queue=5)
    (direct,) = peer.take()
    assert (direct.type, direct.target, direct.source) == (
        MessageType.DIRECT_MESSAGE,
        "peer",
        "toy",
    )
    assert (direct.payload, direct.content_type, direct.message_id) == (b"hello", 5, "d1")
    assert direct.header("Type") == "greeting"
    peer.say(Frame.build(MessageType.DIRECT_MESSAGE, "toy", 7, b"hi", message_id="d2"))
    (answer,) = toy.take()
    assert (answer["is"], answer["source"], answer["number"]) == ("direct", "peer", 7)
    assert base64.b64decode(answer["body"]) == b"hi"
    assert faults(world.hub) == {}


def test_the_letters_of_a_dead_letter_bear_its_new_address() -> None:
    world = World()
    admin = Peer(world, "admin")
    changes = QueueChanges(
        delivery_handler="putback-start", put_back_limit=1, dead_letter=("dead", 7)
    )
    number = admin.link.number
    world.hub.perform(CreateQueue(number, None, "c", 1, changes), world.now)
    producer = Toy(world, "producer")
    consumer = Peer(world, "consumer", ["c"])
    native = Peer(world, "native", ["dead"])
    toy = Toy(world, "toy")
    toy.say(do="join", channel="dead")
    toy.take()
    producer.push("c", 1, "m1", kind="order")
    for _ in range(2):
        (delivery,) = consumer.take()
        consumer.say(ack(delivery, "error"))
    (dead,) = native.take()
    assert (dead.target, dead.content_type, dead.source) == ("dead", 7, "producer")
    assert dead.header("Type") == "order"
    (line,) = toy.take()
    assert (line["channel"], line["queue"], line["kind"]) == ("dead", 7, "order")
    assert faults(world.hub) == {}


def test_a_push_by_another_door_goes_to_the_masters_as_a_tmqp_message() -> None:
    letters = World().door.letters
    letters.add(ToyBodies())
    door: Door = ToyDoor(letters)
    head = {"source": "toy", "headers": HEADERS, "properties": PROPERTIES, **FIELDS}
    wire = ToyWire(head, BODY)
    push_ = Push(1, "m1", "c", 3, True, True, 9, wire)
    data = door.encode_for_node(push_)
    assert data is not None
    frame = _decoded(data)
    assert (frame.message_id, frame.source, frame.target) == ("m1", "toy", "c")
    assert (frame.content_type, frame.ttl, frame.pending_acknowledge) == (3, 15, True)
    _full(frame)
    # Not a header that the master would carry out.
    assert frame.header("CC") is None
    assert door.encode_for_node(Acknowledge(1, "m1", "c", 3)) is None
    everything = PatternFilter((), ())
    relay = ClusterRelay("n", "t", False, (), everything, everything)
    assert relay.meet(1, door, push_, 0.0) is None


def _decoded(data: bytes) -> Frame:
    world = World()
    wire, *_ = world.door.restored(data)
    assert isinstance(wire, Frame)
    return wire


def test_the_http_door_reads_letters_too() -> None:
    world = World()
    letters = world.door.letters
    letters.add(ToyBodies())
    door = HttpDoor(lambda: "id", letters=letters)
    assert door.context.letters is letters
    message = Message("m", Origin(1, "s", None, None, "http"), "c", 1, 1, push("c", 1, "m"), 0, 1)
    assert door.letter(message.wire).body == b"x"
    assert world.door.letter(message.wire).body == b"x"


def test_a_door_that_nobody_knows_hurts_its_own_message_only() -> None:
    world = World()
    consumer = Peer(world, "consumer", ["c"])
    toy = Toy(world, "toy")
    world.door.letters._owners.clear()
    toy.push("c", 1, "m1")
    assert consumer.take() == []
    assert isinstance(faults(world.hub)[0], LookupError)
    Peer(world, "producer").say(push("c", 1, "m2"))
    assert [frame.message_id for frame in consumer.take()] == ["m2"]


def test_names_differ_by_case_at_a_door_where_they_do() -> None:
    world = World()
    toys = [Toy(world, name) for name in ("one", "two", "three")]
    for toy, channel in zip(toys, ("Orders", "orders", "a b"), strict=True):
        toy.say(do="join", channel=channel)
        toy.take()
    producer = Peer(world, "producer")
    producer.say(push("ORDERS", 1, "n1"), push("%6forders", 1, "n2"), push("a%20B", 1, "n3"))
    assert [[line["channel"] for line in toy.take()] for toy in toys] == [["Orders"], [], ["a b"]]
    producer.say(push("%6Frders", 1, "n4"))
    assert [line["channel"] for line in toys[1].take()] == ["orders"]
    consumer = Peer(world, "consumer", ["%6FRDERS"])
    toys[0].push("orders", 1, "t1")
    (delivery,) = consumer.take()
    # By its real name a TMQP client can acknowledge it.
    assert (delivery.message_id, delivery.target) == ("t1", "%6Frders")
    assert [[line["is"] for line in toy.take()] for toy in toys] == [["confirm"], ["message"], []]
    headers = [("Queue-Id", "1"), ("Queue-Status", "pull")]
    body = b'{"RequestAcknowledge":true}'
    for toy, channel in zip(toys, ("Pulled", "pulled"), strict=False):
        toy.say(do="join", channel=channel)
        toy.take()
    assert producer.ask(Operation.CREATE_QUEUE, "%70ulled", body, headers=headers).content_type == 0
    toys[0].push("pulled", 1, "t2", confirm=False)
    assert producer.ask(Operation.JOIN, "%70ulled").content_type == 0
    count = [("Count", "1")]
    producer.say(
        Frame.build(MessageType.PULL_REQUEST, "%70ulled", 1, message_id="p", headers=count)
    )
    pulled = producer.take()[0]
    assert pulled.target == "%70ulled"
    assert world.hub.broker.statistics().in_flight == 5
    consumer.say(ack(delivery))
    producer.say(ack(pulled))
    toys[1].say(do="ack", channel="orders", queue=1, id="t1")
    assert world.hub.broker.statistics().in_flight == 3
    assert world.hub.broker.statistics().unknown_acks == 0


def test_a_session_may_write_something_of_its_own_before_each_delivery() -> None:
    world = World()
    peer = Peer(world, "peer", ["c"])
    plain = Toy(world, "plain")
    first = Toy(world, "first", ToyDoor(world.door.letters, per_session=True))
    for each in (plain, first):
        each.say(do="join", channel="c")
    producer = Peer(world, "producer")
    producer.say(push("c", 1, "m0", source="producer"))
    late = Toy(world, "late", first.door)
    late.say(do="join", channel="c")
    first.door.encoded = 0
    names = [f"m{each}" for each in range(1, 40)]
    for part in (names[:20], names[20:]):
        producer.say(*[push("c", 1, name, source="producer") for name in part])
    assert first.door.encoded == 39
    assert [frame.message_id for frame in peer.take()] == ["m0", *names]
    found = [line["id"] for line in plain.take() if line["is"] == "message"]
    assert found == ["m0", *names]
    for toy, expected in ((first, ["m0", *names]), (late, names)):
        lines = [line for line in toy.take() if line["is"] in ("head", "message")]
        assert [line["is"] for line in lines] == ["head", "message"] * len(expected)
        heads, messages = lines[::2], lines[1::2]
        assert [line["number"] for line in heads] == list(range(1, len(expected) + 1))
        assert [line["for"] for line in heads] == expected
        assert [line["id"] for line in messages] == expected
    world.hub.forget(first.number, world.now)
    world.hub.forget(late.number, world.now)
    assert not world.hub._outlets._apart
    assert faults(world.hub) == {}
