"""UseMessageId off: a message that came without an id stays without (F41)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.tmqp_server.peers import Peer, ack, push
from tests.tmqp_server.wires import wire
from tests.tmqp_server.world import World
from tmqp.address import Address
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp_server.config import ServerConfig
from tmqp_server.engine.model.delivery import (
    ALLOW,
    PUT_BACK_AT_END,
    Decision,
    DeliveryHandler,
    QueueFacts,
)
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueChanges, QueueOptions
from tmqp_server.wiring.running import running


def world_without(*, shares_decisions: bool = False, **options: Any) -> World:
    channel = ChannelOptions(queue=QueueOptions(use_message_id=False, **options))
    return World(BrokerOptions(channel=channel, shares_decisions=shares_decisions))


def nothing_left(world: World) -> bool:
    (queue,) = world.broker.queues()
    return queue.is_empty() and not queue.flights and queue.bytes == 0


def test_what_has_no_id_is_delivered_as_it_came_and_is_done_with_that() -> None:
    """Nobody can acknowledge it, so nobody is asked to, although the queue wants acknowledges."""
    world = world_without(acknowledge_timeout_ms=1_000, delivery_handler="putback-end")
    consumers = [Peer(world, f"c{number}", ["c"]) for number in range(2)]
    producer = Peer(world, "p")
    producer.say(push("c", 1, "", b"x", pending_response=True, pending_acknowledge=True))
    for place, consumer in enumerate(consumers):
        (delivery,) = consumer.take()
        assert (delivery.message_id, delivery.payload, delivery.source) == ("", b"x", "p")
        assert not delivery.pending_acknowledge
        assert not delivery.pending_response
        assert delivery.first_acquirer == (place == 0)
    assert nothing_left(world)
    world.advance_to(5.0)
    assert [peer.take() for peer in (*consumers, producer)] == [[], [], []]


def test_what_has_an_id_is_acknowledged_as_ever_in_the_same_queue() -> None:
    world = world_without(wait_for_acknowledge=True, delivery_handler="ack-consumer")
    consumer, producer = Peer(world, "c", ["c"]), Peer(world, "p")
    producer.say(push("c", 1, ""), push("c", 1, "m"), push("c", 1, ""))
    nameless, named = consumer.take()
    assert (nameless.message_id, named.message_id) == ("", "m")
    assert named.pending_acknowledge
    assert producer.take() == []
    consumer.say(ack(named))
    assert [frame.message_id for frame in consumer.take()] == [""], "the one that waited for it"
    assert [frame.message_id for frame in producer.take()] == ["m"]
    assert nothing_left(world)


@pytest.mark.parametrize("handler", ["ack-received", "ack-sent", "ack-ifsaved", "ack-consumer"])
def test_the_producer_of_what_has_no_id_is_told_nothing(handler: str) -> None:
    world = world_without(delivery_handler=handler)
    consumer, producer = Peer(world, "c", ["c"]), Peer(world, "p")
    producer.say(push("c", 1, "", pending_acknowledge=True))
    assert [frame.message_id for frame in consumer.take()] == [""]
    assert producer.take() == []
    assert nothing_left(world)


def test_an_acknowledge_without_an_id_is_of_nothing() -> None:
    world = world_without()
    consumer, producer = Peer(world, "c", ["c"]), Peer(world, "p")
    producer.say(push("c", 1, "m"), push("c", 1, ""))
    named, nameless = consumer.take()
    consumer.say(ack(nameless))
    (queue,) = world.broker.queues()
    assert (queue.counters.unknown_acks, list(queue.flights)) == (1, ["m"])
    consumer.say(ack(named))
    assert nothing_left(world)


@pytest.mark.parametrize("status", [1, 0, 2])
def test_in_every_order_of_sending(status: int) -> None:
    world = world_without(status=status)
    consumer, producer = Peer(world, "c", ["c"]), Peer(world, "p")
    for number in range(5):
        producer.say(push("c", 1, "", b"%d" % number))
    delivered = consumer.take()
    assert [frame.message_id for frame in delivered] == [""] * 5
    assert not any(frame.pending_acknowledge for frame in delivered)
    assert nothing_left(world)


def test_a_pulled_message_too() -> None:
    world = world_without(status=3)
    consumer, producer = Peer(world, "c"), Peer(world, "p")
    producer.say(push("c", 1, "", b"x"))
    assert consumer.ask(Operation.JOIN, "c").content_type == 0
    consumer.say(
        Frame.build(MessageType.PULL_REQUEST, "c", 1, message_id="pull", headers=[("Count", "1")])
    )
    pulled, end = consumer.take()
    assert (pulled.message_id, pulled.header("Request-Id"), pulled.payload) == ("", "pull", b"x")
    assert not pulled.pending_acknowledge
    assert end.header("No-Content") == "End"
    assert nothing_left(world)


def test_a_copy_without_an_id_of_its_own_too() -> None:
    """F82: copies are what they are in their own queues; one with an id keeps it."""
    world = world_without()
    consumer, producer = Peer(world, "c", ["c", "d"]), Peer(world, "p")
    producer.say(push("c", 1, "m", headers=[("CC", "d;1"), ("CC", "d;2;own")]))
    delivered = consumer.take()
    assert [(frame.target, frame.message_id) for frame in delivered] == [
        ("c", "m"),
        ("d", ""),
        ("d", "own"),
    ]


def test_with_the_option_on_again_what_waits_stays_as_it_came() -> None:
    """And is not waited for; what comes then gets an id."""
    world = world_without(status=5)
    producer = Peer(world, "p")
    producer.say(push("c", 1, ""))
    answer = producer.ask(
        Operation.UPDATE_QUEUE,
        "c",
        b'{"UseMessageId":true,"Status":1}',
        headers=[("Queue-Id", "1")],
    )
    assert answer.content_type == 0
    consumer = Peer(world, "c")
    consumer.say(Frame.build(MessageType.SERVER, "c", Operation.JOIN, message_id="join"))
    first = consumer.take()[0]
    assert (first.message_id, first.pending_acknowledge) == ("", False)
    producer.say(push("c", 1, ""))
    (second,) = consumer.take()
    assert (len(second.message_id), second.pending_acknowledge) == (32, True)
    consumer.say(ack(second))
    assert nothing_left(world)


@pytest.mark.anyio
async def test_it_survives_a_restart_as_it_came(tmp_path: Path) -> None:
    """In a durable queue; and nobody waits for it then."""
    config = ServerConfig(
        listen=(Address("127.0.0.1", 0),),
        data=str(tmp_path / "data"),
        queue=QueueChanges(durable=True, use_message_id=False),
    )
    with anyio.fail_after(20):
        async with running(config) as server, wire(server, "p") as producer:
            await producer.say(push("c", 1, "", b"x"), push("c", 1, "m"))
            while server.broker.statistics().messages < 2:  # noqa: ASYNC110
                await anyio.sleep(0.005)
        async with running(config) as server, wire(server, "c") as consumer:
            await consumer.say(Frame.build(MessageType.SERVER, "c", Operation.JOIN, message_id="j"))
            nameless, named = await consumer.hear(), await consumer.hear()
            assert (nameless.message_id, nameless.payload) == ("", b"x")
            assert not nameless.pending_acknowledge
            assert (named.message_id, named.pending_acknowledge) == ("m", True)


def test_nodes_cannot_speak_of_it() -> None:
    """F63: what is shared between nodes is known by its id."""
    world = world_without(status=5, shares_decisions=True)
    producer = Peer(world, "p")
    producer.say(push("c", 1, ""), push("c", 1, "m"), push("c", 1, ""))
    (queue,) = world.broker.queues()
    assert list(queue.shared) == ["m"]
    assert queue.waiting_count() == 3


class Unwilling(DeliveryHandler):
    """Puts every message back that was sent."""

    def end_send(self, queue: QueueFacts, message: Message) -> Decision:
        return PUT_BACK_AT_END if message.attempts else ALLOW


def test_a_dead_letter_without_an_id_is_not_waited_for_either() -> None:
    """Even where ids are made: a message that is on its way gets none any more."""
    queue = QueueOptions(
        use_message_id=False,
        put_back_limit=1,
        dead_letter=("dead", 1),
        delivery_handler="unwilling",
    )
    options = BrokerOptions(channel=ChannelOptions(queue=queue))
    world = World(options, handlers={"unwilling": Unwilling()})
    producer = Peer(world, "p")
    body = b'{"UseMessageId":true,"MessageDeliveryHandler":"allow-all"}'
    answer = producer.ask(Operation.CREATE_QUEUE, "dead", body, headers=[("Queue-Id", "1")])
    assert answer.content_type == 0
    mourner, consumer = Peer(world, "mourner", ["dead"]), Peer(world, "c", ["c"])
    producer.say(push("c", 1, "", b"x"))
    world.settle()
    assert {frame.message_id for frame in consumer.take()} == {""}
    (letter,) = mourner.take()
    assert (letter.target, letter.message_id, letter.payload) == ("dead", "", b"x")
    assert not letter.pending_acknowledge
    assert all(each.is_empty() and not each.flights for each in world.broker.queues())
    producer.say(push("dead", 1, "m"))
    (other,) = mourner.take()
    assert (other.message_id, other.pending_acknowledge) == ("m", True)


def test_with_the_option_on_an_id_is_made() -> None:
    world = World()
    consumer, producer = Peer(world, "c", ["c"]), Peer(world, "p")
    producer.say(push("c", 1, ""))
    assert len(consumer.take()[0].message_id) == 32
