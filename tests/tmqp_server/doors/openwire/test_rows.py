"""Messages and answers of OpenWire that come in a row, and messages to topics that keep copies."""

from __future__ import annotations

from tests.tmqp_server.doors.openwire.talk import (
    Client,
    Q,
    T,
    dispatches,
    error,
    fine,
    kept,
    texts,
    world_with,
)
from tmqp_server.doors.openwire.session import OpenwireSession
from tmqp_server.engine.limits import EngineLimits
from tmqp_wires.openwire.commands import Response
from tmqp_wires.openwire.messages import ACK_STANDARD, MessageAck


def session_of(client: Client) -> OpenwireSession:
    found = client.world.hub._sessions[client.connection.number]
    assert isinstance(found, OpenwireSession)
    return found


def test_messages_in_one_chunk_are_pushed_together_and_answered_one_by_one() -> None:
    world = world_with()
    consumer, producer = Client(world), Client(world)
    consumer.consume()
    messages = [producer.message(f"{number}") for number in range(50)]
    for each in messages:
        each.response_required = True
    answers = producer.tell(*messages)
    assert [type(each) for each in answers] == [Response] * 50
    assert texts(consumer.hear()) == [f"{number}" for number in range(50)]
    assert not session_of(producer)._rows.notes.divided


def test_answers_in_one_chunk_are_taken_together() -> None:
    world = world_with()
    consumer, producer = Client(world), Client(world)
    consumer.consume()
    producer.tell(*[producer.message(f"{number}") for number in range(20)])
    found = dispatches(consumer.hear())
    acks = []
    for each in found:
        assert each.message is not None
        name = each.message.message_id
        acks.append(MessageAck(ACK_STANDARD, each.consumer, each.destination, None, name, 1))
    consumer.tell(*acks)
    assert kept(world) == 0


def test_groups_in_one_chunk_stay_with_their_consumers() -> None:
    world = world_with()
    first, second, producer = Client(world), Client(world), Client(world)
    first.consume()
    second.consume()
    messages = [producer.message(f"{n}", group_id=f"g{n % 2}") for n in range(10)]
    producer.tell(*messages)
    shares = [texts(each.hear()) for each in (first, second)]
    assert sorted(shares) == [["0", "2", "4", "6", "8"], ["1", "3", "5", "7", "9"]]


def test_a_persistent_message_to_a_topic_is_answered_in_a_cluster_too() -> None:
    world = world_with()
    subscriber, producer = Client(world), Client(world)
    subscriber.consume(T)
    world.broker._core.takes_nodes = True
    assert fine(producer.send("1", T))
    assert texts(subscriber.hear()) == ["1"]


def test_a_message_to_a_topic_that_is_refused() -> None:
    world = world_with(engine=EngineLimits(max_message_bytes=1_000))
    producer = Client(world)
    assert fine(producer.send("small", T))
    assert error(producer.send("x" * 1_000, T)) == "ResourceAllocationException"
    assert fine(producer.send("small", Q))
