"""Conversations of Simple MQ with a server in memory: the document's, and what the facts tell."""

from __future__ import annotations

import pytest

from tests.tmqp_server.doors.door_world import DoorWorld
from tmqp_server.doors.smq.door import SmqDoor
from tmqp_server.doors.smq.message import SmqBodies, line_of
from tmqp_server.doors.smq.options import SmqLimits, SmqOptions
from tmqp_server.doors.smq.session import SmqSession
from tmqp_server.engine.commands import ClearMessages
from tmqp_server.engine.limits import EngineLimits


def world_with(
    options: SmqOptions | None = None,
    limits: SmqLimits | None = None,
    engine_limits: EngineLimits | None = None,
) -> DoorWorld:
    """A server with a door of Simple MQ."""
    return DoorWorld(
        lambda new_id, letters: SmqDoor(new_id, limits, options, letters),
        SmqBodies(),
        engine_limits,
    )


def test_the_documents_example() -> None:
    world = world_with()
    producer, consumer = world.client(), world.client()
    producer.say(b'M:users:{"id":1,"name":"Vagner"}\n')
    assert producer.hear() == b""
    consumer.say(b"C:users\n")
    assert consumer.hear() == b'{"id":1,"name":"Vagner"}\n'
    producer.say(b"S\n")
    assert producer.hear() == b'{"users":1}\n'
    consumer.say(b"D:users:1\n")
    producer.say(b"S::\n")
    assert producer.hear() == b'{"users":0}\n'


def test_statistics_of_nothing_are_an_empty_object() -> None:
    client = world_with().client()
    client.say(b"S:\n")
    assert client.hear() == b"{}\n"


def test_an_unknown_letter_is_answered_and_hurts_nothing() -> None:
    client = world_with().client()
    client.say(b"X:users\nM:q:1\nS\n")
    assert client.hear() == b'UNKNOWN_TYPE\n{"q":1}\n'


def test_each_consumer_receives_different_messages() -> None:
    world = world_with()
    producer, first, second = world.client(), world.client(), world.client()
    first.say(b"C:q:\n")
    second.say(b"C:q:\n")
    producer.say(b"M:q:0\nM:q:1\nM:q:2\nM:q:3\n")
    assert (first.hear(), second.hear()) == (b"0\n2\n", b"1\n3\n")


def test_ten_thousand_pipelined_messages_arrive_whole_and_in_order() -> None:
    world = world_with()
    producer, consumer = world.client(), world.client()
    consumer.say(b"C:q\n")
    data = b"".join([b'M:q:{"number":%d}\n' % number for number in range(10_000)])
    producer.say(*[data[at : at + 65_536 // 7] for at in range(0, len(data), 65_536 // 7)])
    expected = b"".join([b'{"number":%d}\n' % number for number in range(10_000)])
    assert consumer.hear() == expected
    consumer.say(b"D:q:9999\n")
    producer.say(b"S\n")
    assert producer.hear() == b'{"q":1}\n'


@pytest.mark.parametrize(("loses", "left"), [(False, 1), (True, 0)])
def test_what_a_leaving_consumer_had_not_done(loses: bool, left: int) -> None:
    world = world_with(SmqOptions(lose_unfinished=loses))
    producer, consumer, other = world.client(), world.client(), world.client()
    consumer.say(b"C:q\n")
    producer.say(b"M:q:1\nM:q:2\n")
    assert consumer.hear() == b"1\n2\n"
    consumer.say(b"D:q:1\n")
    consumer.leave()
    other.say(b"C:q\n")
    assert other.hear() == b"2\n" * left


def test_the_oldest_are_done_first_and_never_more_than_there_are() -> None:
    world = world_with()
    producer, consumer, other = world.client(), world.client(), world.client()
    consumer.say(b"C:q\n")
    producer.say(b"M:q:1\nM:q:2\nM:q:3\n")
    consumer.say(b"D:q:2\n")
    consumer.leave()
    other.say(b"C:q\n", b"D:q:1000\nD:q:1000\n")
    producer.say(b"S\n")
    assert (other.hear(), producer.hear()) == (b"3\n", b'{"q":0}\n')


def test_a_client_may_count_for_all_its_queues() -> None:
    world = world_with()
    producer, consumer = world.client(), world.client()
    consumer.say(b"C:one\nC:two\n")
    producer.say(b"M:one:1\nM:two:2\nM:one:3\n")
    consumer.say(b"D:other:3\n")
    producer.say(b"S\n")
    assert producer.hear() == b'{"one":0,"two":0}\n'


def test_who_consumes_nothing_counts_for_nobody() -> None:
    world = world_with()
    producer, consumer = world.client(), world.client()
    consumer.say(b"C:q\n")
    producer.say(b"M:q:1\nD:q:1\nS\n")
    assert producer.hear() == b'{"q":1}\n'


def test_a_queue_consumed_twice_gives_each_message_once() -> None:
    world = world_with()
    producer, consumer = world.client(), world.client()
    consumer.say(b"C:q\nC:q:\n")
    producer.say(b"M:q:1\n")
    assert consumer.hear() == b"1\n"


def test_names_of_queues_differ_by_case_and_may_be_odd() -> None:
    world = world_with()
    client = world.client()
    client.say(b"M:Jobs:1\nM:jobs:2\nM::3\nM:a b@c;d*:4\nM:\xc3\xa9\xff:5\nS\n")
    assert (
        client.hear().decode()
        == '{"Jobs":1,"jobs":1,"":1,"a b@c;d*":1,"é\N{REPLACEMENT CHARACTER}":1}\n'
    )
    client.say(b"C:jobs\nC:\nC:a b@c;d*\n")
    assert client.hear() == b"2\n3\n4\n"


def test_statistics_come_alone_in_their_piece() -> None:
    door = SmqDoor(lambda: "0" * 32)
    session = SmqSession(door.context, 1)
    session.deliver(b"1\n")
    session._answers.finish(session._answers.open(), b"{}\n")
    assert [session.next_to_send(), session.next_to_send(), session.next_to_send()] == [
        b"1\n",
        b"{}\n",
        b"",
    ]


def test_unended_lines_of_the_document_count_after_a_silence() -> None:
    world = world_with()
    producer, consumer, collector = world.client(), world.client(), world.client()
    producer.say(b"M:users:1\n")
    consumer.say(b"C:users")
    collector.say(b"S")
    assert (consumer.hear(), collector.hear()) == (b"", b"")
    world.settle(0.2)
    assert consumer.hear() == b"1\n"
    assert collector.hear() == b'{"users":1}\n'


def test_a_line_that_is_too_long_ends_the_connection_and_says_why() -> None:
    world = world_with(limits=SmqLimits(max_line_bytes=100))
    client = world.client()
    client.say(b"M:q:1\n" + b"GET /" + b"x" * 200)
    assert "more than 100 bytes" in client.closed


def test_what_a_full_queue_does_not_take_waits_for_room() -> None:
    world = world_with(engine_limits=EngineLimits(max_messages_per_queue=3))
    producer, consumer = world.client(), world.client()
    producer.say(b"".join([b"M:q:%d\n" % number for number in range(10)]))
    assert not producer.reads
    consumer.say(b"C:q\n")
    heard = consumer.hear()
    for step in range(1, 12):
        consumer.say(b"D:q:3\n")
        world.settle(step * 0.1)
        heard += consumer.hear()
    assert heard == b"".join([b"%d\n" % number for number in range(10)])
    assert producer.reads


def test_a_producer_that_waits_too_long_for_room_is_told_by_the_end() -> None:
    world = world_with(
        limits=SmqLimits(max_wait_s=2.0), engine_limits=EngineLimits(max_messages_per_queue=1)
    )
    producer = world.client()
    producer.say(b"M:q:1\nM:q:2\n")
    world.settle(1.5)
    assert producer.closed == ""
    world.settle(3.0)
    assert producer.closed == "there was no room for a message (1 bytes)"


def test_a_message_that_fits_at_no_time_ends_the_connection_at_once() -> None:
    world = world_with(engine_limits=EngineLimits(max_queue_bytes=200))
    producer = world.client()
    producer.say(b"M:q:" + b"x" * 300 + b"\n")
    assert "no room" in producer.closed


@pytest.mark.parametrize("chunks", [1, 2])
def test_a_small_message_does_not_overtake_a_large_one_that_waits_for_room(chunks: int) -> None:
    """It used to: what was refused was offered again, and what came behind it may have fitted."""
    world = world_with(engine_limits=EngineLimits(max_queue_bytes=500))
    producer, consumer = world.client(), world.client()
    first, large, small = b"1" * 200, b"2" * 300, b"3"
    lines = [b"M:q:%s\n" % body for body in (first, large, small)]
    producer.say(*(lines if chunks > 1 else [b"".join(lines)]))
    consumer.say(b"C:q\n")
    assert consumer.hear() == first + b"\n"
    consumer.say(b"D:q:1\n")
    world.settle(0.2)
    assert consumer.hear() == large + b"\n" + small + b"\n"


def test_messages_to_several_queues_keep_their_order_in_each() -> None:
    world = world_with()
    producer, consumer = world.client(), world.client()
    consumer.say(b"C:a\nC:b\n")
    producer.say(b"M:a:1\nM:a:2\nM:b:3\nM:b:4\nM:a:5\nM:a:6\n")
    assert consumer.hear() == b"1\n2\n3\n4\n5\n6\n"
    consumer.say(b"D:a:4\nD:b:1\n")
    producer.say(b"S\n")
    assert producer.hear() == b'{"a":0,"b":1}\n'


def test_a_consumer_that_counts_nothing_has_an_end() -> None:
    world = world_with(limits=SmqLimits(max_in_hand=2))
    producer, consumer = world.client(), world.client()
    consumer.say(b"C:q\n")
    producer.say(b"M:q:1\nM:q:2\nM:q:3\n")
    assert consumer.hear() == b"1\n2\n"
    consumer.say(b"D:q:1\n")
    assert consumer.hear() == b"3\n"


def test_statistics_name_no_more_queues_than_are_remembered() -> None:
    world = world_with(limits=SmqLimits(max_queues=2))
    client = world.client()
    client.say(b"M:a:1\nM:b:1\nM:c:1\nS\nC:c\n")
    assert client.hear() == b'1\n{"a":1,"b":1}\n'


def test_half_a_line_at_the_end_is_none() -> None:
    world = world_with()
    producer, collector = world.client(), world.client()
    producer.say(b"M:q:1\nM:q:2")
    producer.leave()
    collector.say(b"S\n")
    assert collector.hear() == b'{"q":1}\n'


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b'{"a":1}', b'{"a":1}\n'),
        (b'{\n "a": 1\n}', b'{"a":1}\n'),
        (b"two\nlines", b'"two\\nlines"\n'),
        (b"\xff\n", b'"\\u00ff\\n"\n'),
        (b"[" * 5_000 + b"\n", None),
    ],
)
def test_what_others_send_is_one_line(body: bytes, line: bytes | None) -> None:
    made = line_of(body)
    assert made.count(b"\n") == 1
    assert line is None or made == line


def test_what_was_cleared_is_not_counted_as_done() -> None:
    world = world_with()
    producer, consumer = world.client(), world.client()
    consumer.say(b"C:q\n")
    producer.say(b"M:q:1\nM:q:2\n")
    assert consumer.hear() == b"1\n2\n"
    name = consumer_channel(world)
    world.run(consumer.number, ClearMessages(consumer.number, None, name, 0, True, True, True))
    producer.say(b"M:q:3\nM:q:4\n")
    assert consumer.hear() == b"3\n4\n"
    consumer.say(b"D:q:1\n")
    producer.say(b"S\n")
    assert producer.hear() == b'{"q":1}\n', "the third is done, and neither of the first two"


def consumer_channel(world: DoorWorld) -> str:
    """The channel of the only queue."""
    (queue,) = world.broker.queues()
    return queue.channel_name
