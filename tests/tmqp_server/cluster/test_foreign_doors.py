"""What servers of a cluster tell each other about messages of other protocols."""

from __future__ import annotations

from itertools import count

import pytest

from tests.tmqp_server.cluster.net import Net
from tests.tmqp_server.cluster.test_exact_names import Toy
from tests.tmqp_server.outputs import sent
from tests.tmqp_server.peers import Peer, ack
from tests.tmqp_server.world import World
from tmqp.constants import OP_UPDATE_QUEUE, MessageType
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.door import NsqDoor
from tmqp_server.doors.nsq.message import NsqBodies
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions
from tmqp_wires.nsq.writing import MAGIC, dpub, fin, pub, rdy, sub

PAIR = {"a": ["b"], "b": ["a"]}
_MESSAGE = 2
_drawn = count(1)


class Nsq:
    """A client of NSQ."""

    def __init__(self, world: World, *said: bytes) -> None:
        letters = Letters([world.door, NsqBodies()])
        context = NsqContext(lambda: f"{next(_drawn):032x}", NsqLimits(), NsqOptions())
        self._world = world
        self._number = world.open_link().number + 2_000
        world.hub.open(
            self._number, NsqDoor(context, letters), world.now, f"10.0.0.1:{self._number}"
        )
        self.say(MAGIC, *said)

    def say(self, *parts: bytes) -> None:
        self._world.hub.receive(self._number, b"".join(parts), self._world.now)
        self._world.settle()

    def take(self) -> list[tuple[bytes, bytes]]:
        """The messages it was sent: id and body."""
        data, found = sent(self._world.hub, self._number), []
        self._world.hub.written(self._number, self._world.now)  # the answer to SUB leaves by itself
        data += sent(self._world.hub, self._number)
        while data:
            size = int.from_bytes(data[:4], "big")
            if data[7] == _MESSAGE:
                found.append((data[18:34], data[34 : 4 + size]))
            data = data[4 + size :]
        return found

    def bodies(self) -> list[bytes]:
        """The bodies of these, each of which is finished."""
        found = self.take()
        for name, _ in found:
            self.say(fin(name))
        return [body for _, body in found]


def held(world: World) -> dict[str, int]:
    """The messages of each queue, by its channel's real name."""
    return {queue.channel_name: queue.live() for queue in world.broker.queues()}


def test_a_decision_about_an_exact_name_took_a_message_from_another_spelling() -> None:
    net = Net(PAIR, share=True)
    # Each server has seen another spelling first, so the real names are not the same.
    for name, spellings in (("a", ("OneToOne", "oneToOne")), ("b", ("oneToOne", "OneToOne"))):
        maker = Toy(net[name], f"maker-{name}", *spellings)
        for spelling in spellings:
            maker.say(do="leave", channel=spelling)
    producer, consumer = Toy(net["a"], "producer"), Toy(net["a"], "consumer")
    for spelling in ("OneToOne", "oneToOne"):
        producer.say(do="push", channel=spelling, queue=1, id="same")
    consumer.say(do="join", channel="OneToOne")
    consumer.say(do="ack", channel="OneToOne", queue=1, id="same")
    net.settle()
    assert held(net["a"]) == {"OneToOne": 0, "one%54o%4Fne": 1}
    assert held(net["b"]) == {"%4Fne%54o%4Fne": 0, "oneToOne": 1}


def test_topics_that_differ_by_case_are_decided_about_apart() -> None:
    net = Net(PAIR, share=True)
    topics = (b"OneToOne", b"oneToOne")
    near = [Nsq(net["a"], sub(topic, b"c")) for topic in topics]
    far = [Nsq(net["b"], sub(topic, b"c")) for topic in reversed(topics)]
    producer = Nsq(net["a"])
    producer.say(*[pub(topic, b"to " + topic) for topic in topics])
    net.settle()
    assert sum(held(net["b"]).values()) == 2, "each server feeds its own channels"
    near[0].say(rdy(10))
    assert near[0].bodies() == [b"to OneToOne"]
    net.settle()
    for each in far:
        each.say(rdy(10))
    assert [each.bodies() for each in far] == [[b"to oneToOne"], []]
    net.settle()
    near[1].say(rdy(10))
    assert near[1].bodies() == []
    assert sum([*held(net["a"]).values(), *held(net["b"]).values()]) == 0


def test_a_topic_lost_its_backlog_when_another_server_had_a_channel() -> None:
    net = Net({"slave": ["master"], "master": []}, share=True)
    near = Nsq(net["slave"], sub(b"t", b"c"), rdy(1))
    Nsq(net["slave"], pub(b"t", b"m"))
    net.settle()
    assert near.bodies() == [b"m"]
    net.settle()
    assert Nsq(net["master"], sub(b"t", b"archive"), rdy(1)).bodies() == [b"m"]


def test_a_message_that_feeds_wait_for_stays_whatever_another_server_did_with_it() -> None:
    net = Net(PAIR, share=True)
    # The channel's consumer holds the first message, so its queue, for one message, is full.
    near = Nsq(net["a"], sub(b"t", b"c"))
    near.say(rdy(0))
    maker = Peer(net["a"], "maker")
    changed = maker.ask(OP_UPDATE_QUEUE, "t:c", b'{"MessageLimit":1}', headers=[("Queue-Id", "0")])
    assert changed.content_type == 0
    far = Peer(net["b"], "far", ["t"])
    Nsq(net["a"], pub(b"t", b"1"), pub(b"t", b"2"))
    net.settle()
    deliveries = [each for each in far.take() if each.type == MessageType.QUEUE_MESSAGE]
    assert [each.payload for each in deliveries] == [b"1", b"2"]
    far.say(*[ack(each) for each in deliveries])
    net.settle()
    near.say(rdy(1))
    assert near.bodies() == [b"1"]
    net.advance(0.1)
    assert near.bodies() == [b"2"]


@pytest.mark.parametrize("delay_ms", [500, 0])
def test_a_deferred_message_was_delivered_at_once_by_the_master(delay_ms: int) -> None:
    net = Net({"slave": ["master"], "master": []})
    far = Peer(net["master"], "far", ["t"])
    Nsq(net["slave"], dpub(b"t", delay_ms, b"m"))
    net.settle()

    def taken() -> list[bytes]:
        return [each.payload for each in far.take() if each.type == MessageType.QUEUE_MESSAGE]

    assert taken() == ([] if delay_ms else [b"m"])
    net.advance(0.6)
    assert taken() == ([b"m"] if delay_ms else [])
