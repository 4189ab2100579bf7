"""Commands in a row that are checked once: what they come to is what each by itself would."""

from __future__ import annotations

import pytest

from tests.tmqp_server.guarded import GuardedWorld
from tests.tmqp_server.peers import Peer, push
from tmqp import Frame, MessageType
from tmqp_server.access.gate import Question, Verdict
from tmqp_server.access.rights import ANSWER, PUSH
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Acknowledge, Command, Connect, Leave, Push
from tmqp_server.hub.rows import is_row, row_of, singly


def push_of(channel: str, number: int = 0, queue_id: int = 1) -> Push:
    return Push(1, f"m{number}", channel, queue_id, False, False, 5, None)


def answer_of(channel: str) -> Acknowledge:
    return Acknowledge(1, "m", channel, 1, True, "", None, 5)


@pytest.fixture
def broker() -> Broker:
    """With a client named ``one`` and a queue in the channel ``there``."""
    broker = Broker()
    broker.step(Connect(1, None, "one"), 0.0)
    broker.step(push_of("there"), 0.0)
    return broker


def test_pushes_into_a_queue_that_is_there_are_a_row(broker: Broker) -> None:
    row: list[Command] = [push_of("there", number) for number in range(4)]
    for end in (
        push_of("there", queue_id=2),
        push_of("other"),
        answer_of("there"),
        Leave(1, "", "c"),
    ):
        assert row_of(broker, [*row, end, *row], 1) == row[1:]
    assert row_of(broker, row, 3) == row[3:]


def test_the_first_push_into_a_new_queue_is_by_itself(broker: Broker) -> None:
    row = [push_of("new"), push_of("new")]
    assert row_of(broker, row, 0) == row[:1]
    broker.step(row[0], 0.0)
    assert row_of(broker, row, 0) == row


def test_answers_about_a_channel_are_a_row_but_not_those_to_a_client(broker: Broker) -> None:
    row = [answer_of("there"), answer_of("there"), answer_of("other")]
    assert row_of(broker, row, 0) == row[:2]
    row = [answer_of("one"), answer_of("one")]
    assert row_of(broker, row, 0) == row[:1]


def test_any_other_command_is_by_itself(broker: Broker) -> None:
    assert row_of(broker, [Leave(1, "", "c"), Leave(1, "", "c")], 0) != []
    assert len(row_of(broker, [Leave(1, "", "c"), Leave(1, "", "c")], 0)) == 1
    assert is_row(broker, Leave(1, "", "c"))
    assert singly([push_of("c"), Leave(1, "", "c")], 1) != []


def rights(world: GuardedWorld) -> list[str]:
    return [question.right for question in world.asked]


def chunk(count: int) -> list[Frame]:
    return [push("c", 1, f"m{number}", source="client1") for number in range(count)]


@pytest.mark.parametrize("keep_s", [0.0, 60.0])
def test_a_chunk_of_pushes_is_asked_about_as_one_push_would_be(keep_s: float) -> None:
    """An answer that holds is asked for once; one for this once is asked for each message."""
    world = GuardedWorld(lambda _: Verdict(True, keep_s))
    producer = Peer(world, "client1")
    producer.say(*chunk(40))
    producer.say(*chunk(40))
    assert rights(world).count(PUSH) == (1 if keep_s else 80)
    (queue,) = world.broker.queues()
    assert queue.counters.received == 80


def test_a_refused_chunk_is_refused_message_by_message() -> None:
    world = GuardedWorld(lambda question: Verdict(question.right != PUSH, 60.0))
    producer = Peer(world, "client1")
    producer.say(*chunk(40))
    assert rights(world) == [PUSH]
    assert len([each for each in producer.take() if each.type == MessageType.RESPONSE]) == 40
    assert world.broker.queues() == []


def test_answers_to_a_client_are_asked_about() -> None:
    """A client may have the name of no channel: then the answers are for it (F116)."""

    def decide(question: Question) -> Verdict:
        return Verdict(question.right != ANSWER)

    world = GuardedWorld(decide)
    Peer(world, "b")
    sender = Peer(world, "client1")
    sender.say(
        *[
            Frame.build(MessageType.ACKNOWLEDGE, "b", 1, message_id=f"m{number}", source="client1")
            for number in range(5)
        ]
    )
    assert rights(world) == [ANSWER] * 5
