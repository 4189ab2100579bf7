"""Messages through the native door: what consumers and producers see of them on the wire."""

from __future__ import annotations

import json

import pytest

from tests.tmqp_server.outputs import faults
from tests.tmqp_server.peers import Peer, ack, push
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp_server.doors.native.answers import acknowledge_frame
from tmqp_server.engine.model.delivery import Decision, DeliveryHandler, QueueFacts
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions


def queue_world(**options: object) -> World:
    """A world whose queues have these options."""
    queue = QueueOptions(**options)  # type: ignore[arg-type]
    return World(BrokerOptions(channel=ChannelOptions(queue=queue)))


# --- Deliveries ----------------------------------------------------------------------------------


def test_a_delivery_is_what_was_pushed_with_flags_hop_and_source_written_in() -> None:
    """F11, F76: F for the first receiver, A from the queue, one hop less, source filled in."""
    world = World()
    first, second = Peer(world, "first", ["c"]), Peer(world, "second", ["c"])
    producer = Peer(world, "me")
    sent = push(
        "C",
        9,
        "m",
        b"payload",
        headers=[("X", "y"), ("x", " kept ")],
        high_priority=True,
        pending_response=True,
        ttl=7,
    )
    producer.say(sent)
    (one,), (two,) = first.take(), second.take()
    assert one.raw[0] == 0x11 | 0x80 | 0x40
    assert two.raw[0] == 0x11 | 0x40
    assert one.raw[1] == two.raw[1] == 0x80 | 0x40 | 0x20 | 6
    assert one.raw[2:] == two.raw[2:] == sent.replace(source="me").raw[2:]


def test_a_source_that_is_given_leaves_the_bytes_as_they_came() -> None:
    """Even a length form larger than need be: nothing is built anew."""
    world = World()
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "me")
    raw = bytearray(push("c", 1, "m", b"abcd", source="me").raw)
    raw[7:8] = b"\xff" + (4).to_bytes(8, "little")
    producer.say(bytes(raw))
    data = consumer.link.receive()
    assert data == bytes((0x91, 0x40 | 15)) + bytes(raw[2:])


@pytest.mark.parametrize(("ttl", "seen"), [(31, 30), (16, 15), (1, 0)])
def test_each_hop_costs_one(ttl: int, seen: int) -> None:
    world = World()
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    producer.say(push("c", 1, "m", ttl=ttl))
    assert [frame.ttl for frame in consumer.take()] == [seen]
    producer.say(push("c", 1, "n", ttl=0), Frame.build(MessageType.PING, ttl=0))
    assert consumer.take() == []
    assert producer.take() == []


def test_a_redelivery_costs_no_further_hop_and_is_not_first() -> None:
    """F12, F87."""
    world = queue_world(acknowledge_timeout_ms=1_000, delivery_handler="putback-end")
    consumer = Peer(world, "consumer", ["c"])
    Peer(world, "p").say(push("c", 1, "m", ttl=5))
    (first,) = consumer.take()
    assert (first.ttl, first.first_acquirer) == (4, True)
    world.advance_to(3.5)
    redeliveries = consumer.take()
    assert len(redeliveries) == 3
    for again in redeliveries:
        assert (again.ttl, again.first_acquirer) == (4, False)
        assert again.raw[2:] == first.raw[2:]


def test_names_are_hidden_where_the_queue_hides_them() -> None:
    world = queue_world(hide_client_names=True, delivery_handler="ack-consumer")
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "secret")
    producer.say(push("c", 1, "m", b"x", headers=[("k", "v")], source="secret"))
    (delivery,) = consumer.take()
    assert delivery.source == ""
    assert b"secret" not in delivery.raw
    assert delivery.headers == [("k", "v")]
    consumer.say(ack(delivery, "because", source="consumer"))
    (answer,) = producer.take()
    assert answer.source == ""
    assert b"consumer" not in answer.raw
    assert answer.header("Nack-Reason") == "because"


def test_a_dead_letter_bears_its_new_address() -> None:
    """Contradiction 19: acknowledged there, it is settled there."""
    world = queue_world(delivery_handler="putback-end", put_back_limit=1, dead_letter=("dead", 7))
    consumer = Peer(world, "consumer", ["c"])
    undertaker = Peer(world, "undertaker", ["dead"])
    Peer(world, "p").say(push("c", 1, "m", b"body", headers=[("k", "v")], ttl=9))
    for _ in range(2):
        (delivery,) = consumer.take()
        consumer.say(ack(delivery, "no"))
    assert consumer.take() == []
    (letter,) = undertaker.take()
    assert (letter.target, letter.content_type) == ("dead", 7)
    assert (letter.message_id, letter.payload, letter.source) == ("m", b"body", "p")
    assert (letter.headers, letter.ttl) == ([("k", "v")], 8)
    undertaker.say(ack(letter))
    shown = json.loads(undertaker.ask(Operation.QUEUE_INFORMATION, "dead", b"\7\0").payload)
    assert shown["Acks"] == 1
    assert world.broker.statistics().in_flight == 0


def test_a_message_without_an_id_gets_one_and_its_r_flag_counts_for_nothing() -> None:
    """F41."""
    world = queue_world(delivery_handler="ack-received")
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    producer.say(push("c", 1, "", b"x", pending_response=True))
    (delivery,) = consumer.take()
    assert len(delivery.message_id) == 32
    assert not delivery.pending_response
    (confirm,) = producer.take()  # the handler tells every producer (F77)
    assert confirm.message_id == delivery.message_id


def test_a_push_can_say_what_its_queue_is_like() -> None:
    """F74; the headers stay on the message, and count only for a queue that is created."""
    world = World()
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    headers = [("Queue-Status", "paused"), ("Queue-Tag", "t"), ("Wait-For-Acknowledge", "1")]
    producer.say(push("c", 1, "m", headers=headers))
    assert consumer.take() == []
    shown = json.loads(producer.ask(Operation.QUEUE_INFORMATION, "c", b"\1\0").payload)
    assert (shown["Status"], shown["TagName"]) == ("paused", "t")
    assert (shown["WaitForAcknowledge"], shown["Messages"]) == (True, 1)
    producer.say(push("c", 1, "n", headers=[("Queue-Status", "push")]))
    assert consumer.take() == []
    producer.ask(
        Operation.UPDATE_QUEUE,
        "c",
        b"{}",
        headers=[("Queue-Id", "1"), ("Queue-Status", "push"), ("Wait-For-Acknowledge", "0")],
    )
    first, second = consumer.take()
    assert first.headers == headers
    assert second.message_id == "n"


def test_words_in_a_header_that_is_not_meant_are_left_alone() -> None:
    world = World()
    consumer = Peer(world, "consumer", ["c"])
    Peer(world, "p").say(push("c", 1, "m", headers=[("Note", "queue-status:nonsense")]))
    assert [frame.message_id for frame in consumer.take()] == ["m"]


# --- Pushes that fail ----------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize(
    ("channel", "headers", "payload", "code", "word"),
    [
        ("stopped", [], b"x", 401, "unauthorized"),
        ("bad name", [], b"x", 400, "bad-request"),
        ("limited", [], b"x" * 200, 482, "limit-exceeded"),
        ("new", [("Queue-Status", "nonsense")], b"x", 400, "bad-request"),
        ("new", [("Delivery-Handler", "nobody")], b"x", 406, "unacceptable"),
    ],
)
def test_a_push_that_fails_is_always_answered_and_nacked_when_asked(
    channel: str,
    headers: list[tuple[str, str]],
    payload: bytes,
    code: int,
    word: str,
    asked: bool,
) -> None:
    """F75 and contradiction 22: the Response's target is the channel."""
    world = queue_world(message_size_limit=100)
    peer = Peer(world, "me")
    peer.ask(
        Operation.CREATE_QUEUE, "stopped", headers=[("Queue-Id", "1"), ("Queue-Status", "stopped")]
    )
    peer.say(push(channel, 1, "m", payload, headers=headers, pending_acknowledge=asked))
    answers = peer.take()
    assert [a.type for a in answers] == [MessageType.RESPONSE] + [MessageType.ACKNOWLEDGE] * asked
    assert (answers[0].content_type, answers[0].target) == (code, channel)
    assert all(answer.message_id == "m" for answer in answers)
    if asked:
        assert (answers[1].target, answers[1].content_type) == (channel, 1)
        assert answers[1].headers == [("Nack-Reason", word)]
    assert peer.open


# --- Acknowledges --------------------------------------------------------------------------------


def test_a_confirm_made_here_has_the_form_of_the_original() -> None:
    """F78, byte for byte."""
    world = World()
    producer = Peer(world, "p")
    producer.say(push("Chan", 0x0102, "id1", b"x", pending_acknowledge=True))
    assert producer.link.receive() == bytes.fromhex("9310030004020100") + b"id1Chan"


def test_a_consumers_answer_is_passed_on_as_it_came_one_hop_older() -> None:
    """F79."""
    world = queue_world(delivery_handler="ack-consumer")
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    for extra in ([], [("Nack-Reason", "no \u00fc"), ("X", "y")], [("nack-reason", "")]):
        producer.say(push("c", 1, "m", b"x"))
        (delivery,) = consumer.take()
        answer = Frame.build(
            MessageType.ACKNOWLEDGE,
            "C",
            1,
            b"even a body",
            message_id="m",
            headers=extra,
            pending_response=True,
            ttl=9,
        )
        assert delivery.message_id == "m"
        consumer.say(answer)
        (passed,) = producer.take()
        assert passed.raw[1] & 0x1F == 8
        assert passed.raw[2:] == answer.replace(source="consumer").raw[2:]
        assert (passed.header("Nack-Reason") is None) is (extra == [])


def test_an_acknowledge_with_the_priority_flag_is_for_a_direct_message() -> None:
    """F116: it settles nothing here."""
    world = queue_world(delivery_handler="ack-consumer")
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    producer.say(push("c", 1, "m"))
    (delivery,) = consumer.take()
    consumer.say(ack(delivery, high_priority=True))
    assert producer.take() == []
    consumer.say(ack(delivery))
    assert len(producer.take()) == 1


def test_nobody_can_acknowledge_what_another_has() -> None:
    """G5 of the reliability cases, C61."""
    world = queue_world(
        delivery_handler="ack-consumer", wait_for_acknowledge=True, acknowledge_timeout_ms=60_000
    )
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    late = Peer(world, "late")
    producer.say(push("c", 1, "m"), push("c", 1, "n"))
    (delivery,) = consumer.take()
    late.ask(Operation.JOIN, "c")
    for thief in (late, producer):
        thief.say(ack(delivery), ack(delivery, "no"), ack(delivery, source=""))
    assert producer.take() == []
    assert consumer.take() == []  # the second still waits for the first
    assert world.broker.statistics().in_flight == 1
    consumer.say(ack(delivery))
    assert [answer.source for answer in producer.take()] == ["consumer"]


def test_acknowledges_that_match_nothing_are_harmless() -> None:
    world = World()
    consumer = Peer(world, "consumer", ["c"])
    for channel, queue_id, message_id in (
        ("c", 1, "m"),
        ("nowhere", 1, "m"),
        ("", 0, ""),
        ("c", 65_535, "x" * 255),
    ):
        consumer.say(ack(push(channel, queue_id, message_id)))
    assert consumer.open
    assert consumer.take() == []


class _Talkative(DeliveryHandler):
    """Refuses every message with what its payload says."""

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        assert isinstance(message.wire, Frame)
        return Decision(False, acknowledge=3, reason=REASONS[int(message.message_id)])


REASONS = [
    "a\r\nNack-Reason:forged\r\nX:y",
    "a\nb\rc\u2028d\x85e\x0bf",
    "\r\n",
    "",
    "x" * 70_000,
    "\u00fc" * 40_000,
    "lone \ud800 surrogate",
    " padded ",
]


@pytest.mark.parametrize("number", range(len(REASONS)))
def test_a_reason_of_user_code_can_neither_forge_a_header_nor_break_the_connection(
    number: int,
) -> None:
    world = World(
        BrokerOptions(channel=ChannelOptions(queue=QueueOptions(delivery_handler="talkative"))),
        handlers={"talkative": _Talkative()},
    )
    producer = Peer(world, "p")
    producer.say(push("c", 1, str(number), pending_acknowledge=True))
    (answer,) = producer.take()
    assert faults(world.hub) == {}
    ((key, value),) = answer.headers
    assert key == "Nack-Reason"
    assert (
        value
        == {
            0: "a Nack-Reason:forged X:y",
            1: "a b c d e f",
            2: "none",
            3: "none",
            4: "x" * 1_024,
            5: "\u00fc" * 512,
            6: "lone ? surrogate",
            7: " padded ",
        }[number]
    )


def test_a_code_without_a_name_is_nacked_as_an_error() -> None:
    nack = acknowledge_frame(push("c", 1, "m"), 999)
    assert nack.headers == [("Nack-Reason", "error")]


def test_a_message_that_times_out_is_nacked_with_its_own_reason() -> None:
    """F80, contradiction 21."""
    world = queue_world(delivery_handler="ack-consumer", acknowledge_timeout_ms=1_000)
    Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    producer.say(push("c", 1, "m"))
    world.advance_to(5)
    (answer,) = producer.take()
    assert answer.headers == [("Nack-Reason", "timeout")]


# --- Odd names -----------------------------------------------------------------------------------

NAMES = [
    "\r\n",
    "a\nb",
    "\0",
    "\u202e",
    "\ufeff",
    "x" * 255,
    "\u00df" * 127,
    "@name:x",
    "../../etc",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_message_id_passes_unharmed(name: str) -> None:
    world = queue_world(delivery_handler="ack-consumer")
    consumer = Peer(world, "consumer", ["c"])
    producer = Peer(world, "p")
    producer.say(push("c", 1, name, b"x", pending_acknowledge=True))
    (delivery,) = consumer.take()
    assert delivery.message_id == name
    consumer.say(ack(delivery))
    (answer,) = producer.take()
    assert answer.message_id == name


@pytest.mark.parametrize("size", [1, 254, 255])
def test_ids_of_every_length_find_room_in_every_answer(size: int) -> None:
    """The source is filled in beside a header block and names of the largest size."""
    world = queue_world(delivery_handler="ack-consumer")
    name = "n" * size
    consumer = Peer(world, name, ["c" * size])
    producer = Peer(world, "p" * size)
    block = [("k" * 200, "v" * (65_535 - 200 - 3))]
    producer.say(push("c" * size, 1, "m" * size, b"x", headers=block))
    (delivery,) = consumer.take()
    assert (delivery.source, delivery.headers) == ("p" * size, block)
    consumer.say(ack(delivery, "r" * (65_535 - len("Nack-Reason:\r\n"))))
    (answer,) = producer.take()
    assert answer.source == name
    assert len(answer.header("Nack-Reason") or "") == 65_521
