"""Names whose case counts, in a cluster, and clients that would forge them."""

from __future__ import annotations

import json

import pytest

from tests.tmqp_server.cluster.net import Net
from tests.tmqp_server.outputs import sent
from tests.tmqp_server.peers import Peer, operation, push
from tests.tmqp_server.toy_door import ToyBodies, ToyDoor, lines_of
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.extensions import OP_APPLY_BATCH
from tmqp.frames import Frame
from tmqp.names import EXACT_MARK
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.rewriting import without_exact_name


class Toy:
    """A client of a protocol whose names differ by case."""

    def __init__(self, world: World, name: str, *channels: str) -> None:
        letters = Letters([world.door, ToyBodies()])
        self._world = world
        self._number = world.open_link().number + 1_000
        world.hub.open(self._number, ToyDoor(letters), world.now)
        self.say(do="connect", id=name)
        for channel in channels:
            self.say(do="join", channel=channel)
        self.take()

    def say(self, **asked: object) -> None:
        line = json.dumps(asked).encode() + b"\n"
        self._world.hub.receive(self._number, line, self._world.now)
        self._world.settle()

    def take(self) -> list[str]:
        """The ids of the messages it was sent."""
        said = lines_of(sent(self._world.hub, self._number))
        return [line["id"] for line in said if line["is"] == "message"]


def channels_of(world: World) -> list[str]:
    return sorted({queue.channel_name for queue in world.broker.queues()})


def test_an_exact_name_keeps_its_case_at_the_master() -> None:
    net = Net({"slave": ["master"], "master": []})
    producer = Toy(net["slave"], "producer")
    upper, lower = Toy(net["master"], "u", "Orders"), Toy(net["master"], "l", "orders")
    for number, name in enumerate(("Orders", "orders", "ORDERS")):
        producer.say(do="push", channel=name, queue=1, id=f"m{number}")
    net.settle()
    assert (upper.take(), lower.take()) == (["m0"], ["m1"])
    assert channels_of(net["master"]) == ["%4F%52%44%45%52%53", "%6Frders", "Orders"]
    native = Peer(net["master"], "native", ["Orders"])
    producer.say(do="push", channel="Orders", queue=1, id="m3")
    net.settle()
    (frame,) = [each for each in native.take() if each.type == MessageType.QUEUE_MESSAGE]
    assert (frame.target, frame.headers) == ("Orders", []), "nothing tells how it came"


def test_a_client_of_a_slave_cannot_forge_an_exact_name_at_the_master() -> None:
    net = Net({"slave": ["master"], "master": []})
    far = Peer(net["master"], "far", ["orders"])
    Toy(net["master"], "toy", "ORDERS")
    near = Peer(net["slave"], "near")
    near.say(push("orders", 1, "m", headers=[("exact-name", "1"), ("Kind", "x")]))
    net.settle()
    (frame,) = [each for each in far.take() if each.type == MessageType.QUEUE_MESSAGE]
    assert frame.headers == [("Kind", "x")]
    assert channels_of(net["master"]) == ["orders"], "it is the one of TMQP clients"


def test_a_message_keeps_what_it_asks_for_when_the_header_is_taken_away() -> None:
    frame = push("c", 1, "m", headers=[("Exact-Name", "1")], pending_acknowledge=True, ttl=3)
    clean = without_exact_name(frame)
    assert (clean.headers, clean.pending_acknowledge, clean.ttl) == ([], True, 3)
    plain = push("c", 1, "m", b"exact-name", headers=[("Kind", "Exact-Name")])
    assert without_exact_name(plain) is plain


# --- One server ----------------------------------------------------------------------------------


def forged(name: str = "Orders") -> str:
    return EXACT_MARK + name


def requests() -> list[Frame]:
    created = [("Queue-Id", "1")]
    return [
        operation(Operation.JOIN, forged()),
        operation(Operation.CREATE_CHANNEL, forged()),
        operation(Operation.CREATE_QUEUE, forged(), headers=created),
        operation(Operation.REMOVE_CHANNEL, forged()),
        push(forged(), 1, "m", pending_response=True),
        operation(OP_APPLY_BATCH, "", push(forged(), 1, "m").raw),
    ]


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("there", [False, True])
def test_a_name_that_begins_with_the_mark_of_exact_names_is_refused_with_400(
    index: int, there: bool
) -> None:
    world = World()
    if there:
        Toy(world, "toy", "Orders")
    peer = Peer(world, "p")
    peer.say(requests()[index])
    said = peer.take()
    assert [each.content_type for each in said if each.type == MessageType.RESPONSE] == [400]
    assert world.broker.statistics().messages == 0
    assert world.broker.statistics().channels == int(there)


def test_pushes_in_a_row_to_such_a_name_are_refused_one_by_one() -> None:
    world = World()
    toy = Toy(world, "toy", "Orders")
    peer = Peer(world, "p")
    peer.take()
    frames = [push(forged(), 1, f"m{n}", source="p", pending_acknowledge=True) for n in range(20)]
    peer.say(*frames, push("Orders", 1, "good", source="p"))
    refused = [each for each in peer.take() if each.type == MessageType.ACKNOWLEDGE]
    assert [each.message_id for each in refused] == [f"m{n}" for n in range(20)]
    assert toy.take() == ["good"]


def test_a_copy_to_such_a_name_is_not_made() -> None:
    world = World()
    toy = Toy(world, "toy", "Orders")
    peer = Peer(world, "p")
    peer.say(push("other", 1, "m", headers=[("CC", f"{forged()};1")]))
    assert toy.take() == []


def test_a_pull_from_such_a_name_finds_nothing() -> None:
    world = World()
    peer = Peer(world, "p")
    peer.take()
    peer.say(Frame.build(MessageType.PULL_REQUEST, forged(), 1, b"", message_id="r"))
    (end,) = peer.take()
    assert end.header("No-Content")
