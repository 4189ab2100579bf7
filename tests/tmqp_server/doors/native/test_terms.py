"""What consumers say about what they have, on the wire: that they give it back."""

from __future__ import annotations

import pytest

from tests.tmqp_server.outputs import faults
from tests.tmqp_server.peers import Peer, ack, operation, push
from tests.tmqp_server.world import World
from tmqp.constants import STATUS_ROUND_ROBIN, MessageType, Operation
from tmqp.extensions import OP_EXTEND, OP_GRANT_CREDIT, OP_LAPSED, OP_SET_TERMS
from tmqp.frames import Frame
from tmqp.models import QueueInformation
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions


def queue_world(**options: object) -> World:
    """A world whose queues have these options."""
    queue = QueueOptions(**options)  # type: ignore[arg-type]
    return World(BrokerOptions(channel=ChannelOptions(queue=queue)))


def back(delivery: Frame, *headers: tuple[str, str], pending_response: bool = False) -> Frame:
    """A release of a delivery."""
    return Frame.build(
        MessageType.ACKNOWLEDGE,
        delivery.target,
        delivery.content_type,
        message_id=delivery.message_id,
        headers=[("Nack-Reason", "release"), *headers],
        pending_response=pending_response,
    )


@pytest.mark.parametrize(("word", "expected"), [("front", "m"), ("End", "n")])
def test_a_delivery_is_given_back(word: str, expected: str) -> None:
    world = queue_world(wait_for_acknowledge=True)
    consumer = Peer(world, "consumer", ["c"])
    Peer(world, "p").say(push("c", 1, "m"), push("c", 1, "n"))
    (delivery,) = consumer.take()
    consumer.say(back(delivery, ("Put-Back", word)))
    assert [frame.message_id for frame in consumer.take()] == [expected]


def test_it_comes_again_after_its_delay_and_need_not_count() -> None:
    world = queue_world(put_back_limit=1)
    consumer = Peer(world, "consumer", ["c"])
    Peer(world, "p").say(push("c", 1, "m"))
    for _ in range(5):
        (delivery,) = consumer.take()
        consumer.say(back(delivery, ("Put-Back", "end"), ("Delay", "750"), ("Counted", "0")))
        world.advance_to(world.now - world.began + 0.7)
        assert consumer.take() == []
        world.advance_to(world.now - world.began + 0.1)
    (delivery,) = consumer.take()
    assert not delivery.first_acquirer
    for counted in (1, 2):
        consumer.say(back(delivery, ("Put-Back", "end")))
        assert len(consumer.take()) == 2 - counted


def test_a_negative_acknowledge_with_this_reason_alone_is_a_negative_acknowledge() -> None:
    world = queue_world(delivery_handler="ack-consumer")
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    producer.say(push("c", 1, "m", pending_acknowledge=True))
    (delivery,) = consumer.take()
    consumer.say(ack(delivery, "release"))
    assert [frame.header("Nack-Reason") for frame in producer.take()] == ["release"]
    assert consumer.take() == []


def test_the_producer_hears_nothing_of_it() -> None:
    world = queue_world(delivery_handler="ack-consumer")
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    producer.say(push("c", 1, "m", pending_acknowledge=True))
    (delivery,) = consumer.take()
    consumer.say(back(delivery, ("Put-Back", "end")))
    assert producer.take() == []
    (again,) = consumer.take()
    consumer.say(ack(again))
    (answer,) = producer.take()
    assert answer.header("Nack-Reason") is None


@pytest.mark.parametrize(
    "headers",
    [
        [("Put-Back", "middle")],
        [("Put-Back", "")],
        [("Put-Back", "end"), ("Delay", "soon")],
        [("Put-Back", "end"), ("Delay", "-1")],
        [("Put-Back", "end"), ("Counted", "no")],
    ],
)
def test_what_makes_no_sense_is_no_answer(headers: list[tuple[str, str]]) -> None:
    world = World()
    consumer = Peer(world, "consumer", ["c"])
    Peer(world, "p").say(push("c", 1, "m"))
    (delivery,) = consumer.take()
    consumer.say(back(delivery, *headers))
    assert consumer.take() == []
    consumer.say(back(delivery, *headers, pending_response=True))
    (answer,) = consumer.take()
    assert (answer.type, answer.content_type) == (MessageType.RESPONSE, 400)
    consumer.say(back(delivery, ("Put-Back", "front")))
    assert [frame.message_id for frame in consumer.take()] == ["m"]
    assert faults(world.hub) == {}


def test_who_asks_is_told_of_an_answer_for_nothing() -> None:
    world = queue_world(send_only_first_acquirer=True)
    consumer = Peer(world, "consumer", ["c"])
    other = Peer(world, "other", ["c"])
    Peer(world, "p").say(push("c", 1, "m"))
    (delivery,) = consumer.take()
    late = ack(delivery, pending_response=True)
    codes: list[int] = []
    for peer, frame in (
        (other, late),
        (other, back(delivery, ("Put-Back", "end"), pending_response=True)),
        (consumer, late),
        (consumer, late),
        (consumer, ack(delivery, "no", pending_response=True)),
        (consumer, back(delivery, ("Put-Back", "end"), pending_response=True)),
        (consumer, ack(delivery)),
    ):
        peer.say(frame)
        answers = peer.take()
        assert all(answer.type == MessageType.RESPONSE for answer in answers)
        assert all(answer.message_id == "m" for answer in answers)
        codes += [answer.content_type for answer in answers] or [0]
    assert codes == [403, 403, 0, 404, 404, 404, 0]


def test_the_queue_tells_how_many_were_given_back() -> None:
    world = queue_world(put_back_limit=-1)
    consumer = Peer(world, "consumer", ["c"])
    Peer(world, "p").say(push("c", 1, "m"))
    for _ in range(3):
        (delivery,) = consumer.take()
        consumer.say(back(delivery, ("Put-Back", "end")))
    consumer.take()
    consumer.say(
        Frame.build(
            MessageType.SERVER,
            "c",
            Operation.QUEUE_INFORMATION,
            message_id="i",
            headers=[("Queue-Id", "1")],
            pending_response=True,
        )
    )
    (answer,) = consumer.take()
    shown = QueueInformation.from_json(answer.payload)
    assert (shown.released_messages, shown.put_back_limit) == (3, -1)
    assert (shown.acks, shown.negative_acks, shown.deliveries) == (0, 0, 4)


def test_releases_stand_in_a_row_with_other_answers() -> None:
    """In one chunk: the positive ones go together, and all of it comes in order."""
    world = queue_world()
    consumer = Peer(world, "consumer", ["c"])
    Peer(world, "p").say(*[push("c", 1, f"m{number}") for number in range(9)])
    frames = consumer.take()
    answers = [ack(frame) for frame in frames]
    answers[3] = back(frames[3], ("Put-Back", "end"))
    answers[6] = back(frames[6], ("Put-Back", "front"))
    consumer.say(*answers)
    assert [frame.message_id for frame in consumer.take()] == ["m3", "m6"]
    (queue,) = world.hub.broker.queues()
    assert (queue.counters.acks, queue.counters.released) == (7, 2)


# --- Terms ---------------------------------------------------------------------------------------


def asks(operation: int, *headers: tuple[str, str]) -> Frame:
    """An operation on the channel c that is to be answered."""
    return Frame.build(
        MessageType.SERVER, "c", operation, message_id="o", headers=headers, pending_response=True
    )


def codes(peer: Peer) -> list[int]:
    """The answers to a peer's operations; deliveries stay away."""
    return [frame.content_type for frame in peer.take() if frame.type == MessageType.RESPONSE]


def ids(peer: Peer) -> list[str]:
    """The messages that have come."""
    return [frame.message_id for frame in peer.take() if frame.type == MessageType.QUEUE_MESSAGE]


def test_a_window_is_kept_to_the_message() -> None:
    world = queue_world()
    consumer = Peer(world, "consumer")
    consumer.say(asks(Operation.JOIN, ("Window", "2")))
    assert codes(consumer) == [0]
    Peer(world, "p").say(*[push("c", 1, f"m{number}") for number in range(4)])
    first, second = consumer.take()
    consumer.say(ack(second))
    (third,) = consumer.take()
    assert third.message_id == "m2"
    consumer.say(asks(OP_SET_TERMS, ("Window", "1")), ack(first))
    assert codes(consumer) == [0]
    consumer.say(ack(third))
    assert ids(consumer) == ["m3"]


def test_credit_is_granted_and_used_up() -> None:
    world = queue_world()
    consumer = Peer(world, "consumer")
    consumer.say(asks(Operation.JOIN, ("Credit", "1")))
    Peer(world, "p").say(*[push("c", 1, f"m{number}") for number in range(5)])
    assert ids(consumer) == ["m0"]
    consumer.say(asks(OP_GRANT_CREDIT, ("Credit", "2")))
    assert ids(consumer) == ["m1", "m2"]
    consumer.say(asks(OP_GRANT_CREDIT, ("Credit", "-1")))
    assert ids(consumer) == ["m3", "m4"]


@pytest.mark.parametrize(
    ("word", "expected"), [("front", ["m0", "m1", "m2"]), ("end", ["m2", "m0", "m1"])]
)
@pytest.mark.parametrize("goes", ["leaves", "is gone"])
def test_what_a_leaving_consumer_has_goes_back_at_once(
    word: str, expected: list[str], goes: str
) -> None:
    world = queue_world()
    leaving = Peer(world, "leaving")
    leaving.say(asks(Operation.JOIN, ("Window", "2"), ("Return", word)))
    Peer(world, "p").say(*[push("c", 1, f"m{number}") for number in range(3)])
    if goes == "leaves":
        leaving.say(asks(Operation.LEAVE))
    else:
        leaving.link.close()
    other = Peer(world, "other")
    other.say(asks(Operation.JOIN))
    assert ids(other) == expected


def test_a_time_out_of_ones_own() -> None:
    world = queue_world(acknowledge_timeout_ms=1_000, delivery_handler="putback-end")
    patient, hasty = Peer(world, "patient"), Peer(world, "hasty")
    patient.say(asks(Operation.JOIN, ("Acknowledge-Timeout", "3000")))
    hasty.say(asks(Operation.JOIN, ("Acknowledge-Timeout", "500")))
    Peer(world, "p").say(push("c", 1, "m"))
    patient.take(), hasty.take()
    (queue,) = world.hub.broker.queues()
    seen = []
    for at_s in (0.45, 0.55, 1.1, 2.95, 3.05):
        world.advance_to(at_s)
        seen.append(queue.counters.ack_timeouts)
    assert seen == [0, 1, 1, 1, 2]
    assert ids(patient) == ids(hasty) == ["m"]


def test_without_a_time_out_it_waits_while_the_consumer_is_there() -> None:
    world = queue_world(acknowledge_timeout_ms=1_000)
    patient = Peer(world, "patient")
    patient.say(asks(Operation.JOIN, ("Acknowledge-Timeout", "-1")))
    Peer(world, "p").say(push("c", 1, "m"))
    world.advance_to(20.0)
    patient.link.close()
    other = Peer(world, "other", ["c"])
    world.advance_to(20.9)
    assert ids(other) == []
    world.advance_to(21.1)
    assert ids(other) == ["m"]


def test_the_highest_priority_comes_first() -> None:
    world = queue_world(status=STATUS_ROUND_ROBIN)
    peers = [Peer(world, name) for name in ("low", "high", "higher")]
    for peer, priority in zip(peers, ("0", "1", "1"), strict=True):
        peer.say(asks(Operation.JOIN, ("Consumer-Priority", priority), ("Window", "2")))
    producer = Peer(world, "p")
    for number in range(6):
        producer.say(push("c", 1, f"m{number}"))
    assert [ids(peer) for peer in peers] == [["m4", "m5"], ["m0", "m2"], ["m1", "m3"]]


def test_an_exclusive_consumer_gets_all_until_it_leaves_or_wants_no_more() -> None:
    world = queue_world(status=STATUS_ROUND_ROBIN)
    peers = [Peer(world, name) for name in ("any", "first", "second")]
    for peer, exclusive in zip(peers, ("0", "1", "1"), strict=True):
        peer.say(asks(Operation.JOIN, ("Exclusive", exclusive)))
    producer = Peer(world, "p")
    pushes = iter([push("c", 1, f"m{number}") for number in range(9)])
    producer.say(next(pushes), next(pushes))
    assert [ids(peer) for peer in peers] == [[], ["m0", "m1"], []]
    peers[1].say(asks(OP_SET_TERMS, ("Exclusive", "0")))
    producer.say(next(pushes))
    peers[1].say(asks(OP_SET_TERMS, ("Exclusive", "1")))
    producer.say(next(pushes))
    assert [ids(peer) for peer in peers] == [[], ["m3"], ["m2"]]
    peers[1].link.close()
    producer.say(next(pushes))
    peers[2].say(asks(Operation.LEAVE))
    producer.say(next(pushes))
    assert [ids(peer) for peer in (peers[0], peers[2])] == [["m5"], ["m4"]]


def test_terms_in_a_run_of_messages() -> None:
    """The same when the messages come in one chunk, and are dealt together."""
    world = queue_world(status=STATUS_ROUND_ROBIN, acknowledge_timeout_ms=5_000)
    peers = [Peer(world, name) for name in ("one", "two", "three")]
    terms: list[list[tuple[str, str]]] = [
        [("Window", "1")],
        [("Window", "3"), ("Acknowledge-Timeout", "1000"), ("Return", "front")],
        [("Credit", "2")],
    ]
    for peer, headers in zip(peers, terms, strict=True):
        peer.say(asks(Operation.JOIN, *headers))
        codes(peer)
    Peer(world, "p").say(*[push("c", 1, f"m{number}") for number in range(9)])
    assert [ids(peer) for peer in peers] == [["m0"], ["m1", "m3", "m5"], ["m2", "m4"]]
    (queue,) = world.hub.broker.queues()
    assert (len(queue.flights), queue.in_flight(), queue.waiting_count()) == (3, 6, 3)
    world.advance_to(1.1)
    assert queue.counters.ack_timeouts == 3
    assert ids(peers[1]) == ["m6", "m7", "m8"]
    peers[1].link.close()
    world.settle()
    assert queue.look(False) is not None
    assert [message.message_id for message in queue.regular.messages()] == ["m6", "m7", "m8"]


def test_more_time_for_a_delivery() -> None:
    world = queue_world(acknowledge_timeout_ms=1_000, send_only_first_acquirer=True)
    consumer = Peer(world, "consumer", ["c"])
    other = Peer(world, "other", ["c"])
    Peer(world, "p").say(push("c", 1, "m"), push("c", 1, "n"))
    consumer.take()
    more = asks(OP_EXTEND, ("Queue-Id", "1"), ("Message-Id", "m"), ("Timeout", "2000"))
    world.advance_to(0.9)
    consumer.say(more)
    other.say(more)
    assert (codes(consumer), codes(other)) == ([0], [403])
    (queue,) = world.hub.broker.queues()
    seen = []
    for at_s in (0.95, 1.05, 2.85, 2.95):
        world.advance_to(at_s)
        seen.append(queue.counters.ack_timeouts)
    assert seen == [0, 1, 1, 2]
    consumer.say(more)
    assert codes(consumer) == [404]


@pytest.mark.parametrize(
    ("operation", "headers", "code"),
    [
        (Operation.JOIN, [("Window", "-2")], 400),
        (Operation.JOIN, [("Window", "many")], 400),
        (Operation.JOIN, [("Credit", "-3")], 400),
        (Operation.JOIN, [("Acknowledge-Timeout", "3600001")], 482),
        (Operation.JOIN, [("Return", "never")], 400),
        (Operation.JOIN, [("Consumer-Priority", "128")], 400),
        (Operation.JOIN, [("Consumer-Priority", "-1")], 400),
        (Operation.JOIN, [("Exclusive", "2")], 400),
        (Operation.JOIN, [("Unknown", "kept for others")], 0),
        (OP_SET_TERMS, [], 400),
        (OP_SET_TERMS, [("Credit", "1")], 400),
        (OP_SET_TERMS, [("Window", "1")], 404),
        (OP_GRANT_CREDIT, [], 400),
        (OP_GRANT_CREDIT, [("Credit", "1")], 404),
        (OP_EXTEND, [("Queue-Id", "1"), ("Timeout", "5")], 400),
        (OP_EXTEND, [("Queue-Id", "1"), ("Message-Id", "m")], 400),
        (OP_EXTEND, [("Message-Id", "m"), ("Timeout", "5")], 406),
        (OP_EXTEND, [("Queue-Id", "1"), ("Message-Id", "m"), ("Timeout", "0")], 400),
        (OP_EXTEND, [("Queue-Id", "1"), ("Message-Id", "m"), ("Timeout", "3600001")], 482),
        (OP_EXTEND, [("Queue-Id", "1"), ("Message-Id", "m"), ("Timeout", "5")], 404),
    ],
)
def test_what_cannot_be_is_answered(
    operation: int, headers: list[tuple[str, str]], code: int
) -> None:
    world = World()
    consumer = Peer(world, "consumer")
    consumer.say(asks(operation, *headers))
    assert codes(consumer) == [code]
    assert faults(world.hub) == {}


def test_who_asks_for_it_is_told_when_a_delivery_is_its_own_no_more() -> None:
    world = queue_world(acknowledge_timeout_ms=1_000, delivery_handler="retry-timeouts")
    told, other = Peer(world, "told"), Peer(world, "other", ["c"])
    told.say(operation(Operation.JOIN, "C", headers=[("Tell-Lapsed", "1")]))
    told.take()
    Peer(world, "p").say(push("c", 1, "m"))
    assert [len(each.take()) for each in (told, other)] == [1, 1]
    world.advance_to(world.now - world.began + 1.1)
    lapse, again = told.take()
    assert (lapse.type, lapse.content_type, lapse.target) == (MessageType.SERVER, OP_LAPSED, "c")
    assert (lapse.message_id, lapse.header("Queue-Id")) == ("m", "1")
    assert lapse.header("Reason") == "timed-out"
    assert again.message_id == "m"
    assert [frame.message_id for frame in other.take()] == ["m"]


def test_the_word_for_it_is_a_number() -> None:
    world = queue_world()
    peer = Peer(world, "peer")
    peer.say(operation(Operation.JOIN, "c", headers=[("Tell-Lapsed", "yes")]))
    (answer,) = peer.take()
    assert answer.content_type == 400
