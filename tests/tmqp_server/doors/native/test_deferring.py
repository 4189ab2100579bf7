"""The headers by which a push says when its message may be delivered, and Cancel."""

from __future__ import annotations

import pytest

from tests.tmqp_server.peers import Peer, operation, push
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.extensions import ExtensionOperation
from tmqp.frames import Frame

QUEUE = [("Queue-Id", "1")]


def ready() -> tuple[World, Peer, Peer]:
    """A producer, a consumer that has joined channel ``c``, and its queue 1."""
    world = World()
    producer = Peer(world, "producer")
    consumer = Peer(world, "consumer", ["c"])
    assert producer.ask(Operation.CREATE_QUEUE, "c", headers=QUEUE).content_type == 0
    return world, producer, consumer


def wait(world: World, seconds: float) -> None:
    world.advance_to(world.now - world.began + seconds)


def unix_ms(world: World) -> int:
    return int((world.now + world.door.wall_clock_offset_s) * 1_000)


def ids(peer: Peer) -> list[str]:
    return [each.message_id for each in peer.take() if each.type == MessageType.QUEUE_MESSAGE]


def refusal(peer: Peer, frame: Frame) -> int:
    peer.say(frame)
    (answer,) = peer.take()
    assert answer.type == MessageType.RESPONSE
    return answer.content_type


@pytest.mark.parametrize("name", ["Delay", "delay", "DELAY"])
def test_a_message_with_a_delay_comes_later(name: str) -> None:
    world, producer, consumer = ready()
    producer.say(push("c", 1, "late", headers=[(name, "2000")]), push("c", 1, "soon"))
    assert ids(consumer) == ["soon"]
    wait(world, 1.9)
    assert ids(consumer) == []
    wait(world, 0.2)
    assert ids(consumer) == ["late"]


def test_a_message_waits_for_a_time_of_the_servers_clock() -> None:
    world, producer, consumer = ready()
    at = unix_ms(world)
    for message_id, when in (("past", at - 5_000), ("now", at), ("later", at + 2_000)):
        producer.say(push("c", 1, message_id, headers=[("Deliver-At", str(when))]))
    assert ids(consumer) == ["past", "now"]
    wait(world, 2.1)
    assert ids(consumer) == ["later"]


def test_a_message_has_a_timeout_of_its_own() -> None:
    world, producer, _ = ready()
    pushing = [*QUEUE, ("Queue-Status", "push")]
    assert producer.ask(Operation.CREATE_QUEUE, "other", headers=pushing).content_type == 0
    producer.say(push("other", 1, "short", headers=[("Message-Timeout", "500")]))
    producer.say(push("other", 1, "long"))
    wait(world, 1.0)
    late = Peer(world, "late")
    late.say(operation(Operation.JOIN, "other"))
    assert ids(late) == ["long"]


def test_a_message_may_expire_before_it_is_due() -> None:
    world, producer, consumer = ready()
    headers = [("Delay", "2000"), ("Message-Timeout", "1000")]
    producer.say(push("c", 1, "never", headers=headers))
    wait(world, 5.0)
    assert ids(consumer) == []


@pytest.mark.parametrize(
    "headers",
    [
        [("Delay", "soon")],
        [("Delay", "-1")],
        [("Delay", "1.5")],
        [("Delay", "")],
        [("Deliver-At", "tomorrow")],
        [("Message-Timeout", "x")],
        [("Delay", "1"), ("Deliver-At", "1")],
        [("Delay", "9" * 25)],
    ],
)
def test_headers_that_make_no_sense_are_refused(headers: list[tuple[str, str]]) -> None:
    _, producer, consumer = ready()
    assert refusal(producer, push("c", 1, "m", headers=headers)) == 400
    assert ids(consumer) == []


def test_a_delay_past_the_limit_is_refused() -> None:
    _, producer, _ = ready()
    assert refusal(producer, push("c", 1, "m", headers=[("Delay", str(10**12))])) == 482
    assert refusal(producer, push("c", 1, "m", headers=[("Deliver-At", str(10**18))])) == 482


def test_headers_that_only_look_like_it_change_nothing() -> None:
    _, producer, consumer = ready()
    producer.say(push("c", 1, "m1", headers=[("Reply-Delay", "2000"), ("x", "Delay: 7")]))
    assert ids(consumer) == ["m1"]


def test_a_delivery_has_the_headers_of_the_push() -> None:
    world, producer, consumer = ready()
    producer.say(push("c", 1, "late", headers=[("Delay", "1000"), ("Mine", "x")]))
    wait(world, 1.1)
    (frame,) = consumer.take()
    assert list(frame.headers) == [("Delay", "1000"), ("Mine", "x")]


def test_copies_are_deferred_too() -> None:
    world, producer, consumer = ready()
    producer.say(push("other", 1, "m", headers=[("CC", "c;1;copy"), ("Delay", "1000")]))
    assert ids(consumer) == []
    wait(world, 1.1)
    assert ids(consumer) == ["copy"]


def test_a_deferred_message_is_cancelled_by_its_id() -> None:
    world, producer, consumer = ready()
    producer.say(push("c", 1, "late", headers=[("Delay", "1000")]))
    cancel = ExtensionOperation.CANCEL_MESSAGE
    wanted = [*QUEUE, ("Message-Id", "late")]
    assert producer.ask(cancel, "C", headers=wanted).content_type == 0
    assert producer.ask(cancel, "c", headers=wanted).content_type == 404
    assert producer.ask(cancel, "none", headers=wanted).content_type == 404
    assert producer.ask(cancel, "c", headers=QUEUE).content_type == 400
    assert producer.ask(cancel, "c", headers=wanted[1:]).content_type == 406
    wait(world, 2.0)
    assert ids(consumer) == []


def test_a_waiting_message_is_removed_by_its_id() -> None:
    world, producer, _ = ready()
    producer.ask(Operation.CREATE_QUEUE, "d", headers=[*QUEUE, ("Queue-Status", "pull")])
    producer.say(push("d", 1, "m1"))
    remove = ExtensionOperation.REMOVE_MESSAGE
    wanted = [*QUEUE, ("Message-Id", "m1")]
    assert producer.ask(ExtensionOperation.CANCEL_MESSAGE, "d", headers=wanted).content_type == 404
    assert producer.ask(remove, "D", headers=wanted).content_type == 0
    assert producer.ask(remove, "d", headers=wanted).content_type == 404
    assert producer.ask(remove, "none", headers=wanted).content_type == 404
    assert producer.ask(remove, "d", headers=QUEUE).content_type == 400
    wait(world, 0.1)


def test_who_asks_for_no_response_gets_none() -> None:
    _, producer, _ = ready()
    producer.say(push("c", 1, "late", headers=[("Delay", "1000")]))
    cancel = ExtensionOperation.CANCEL_MESSAGE
    headers = [*QUEUE, ("Message-Id", "late")]
    producer.say(operation(cancel, "c", headers=headers, pending_response=False))
    assert producer.take() == []
    assert producer.ask(cancel, "c", headers=headers).content_type == 404
