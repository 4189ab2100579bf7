"""What NSQ's clients may rely on, as it was recorded with the original: one test for each case.

Where the original is late by design (timeouts are found by a scan, lone messages wait for a
buffer), the door is exact; docs/doors/nsq.md lists such differences.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.tmqp_server.doors.nsq.server import Client, Server, name_of
from tmqp.constants import STATUS_PAUSED, STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions
from tmqp_server.doors.nsq.topics import HANDLER, QUEUE
from tmqp_server.engine.commands import RemoveChannel, UpdateQueue
from tmqp_server.engine.options import QueueChanges
from tmqp_wires.nsq import writing
from tmqp_wires.nsq.events import ErrorReceived, Heartbeat, MessageReceived, ResponseReceived

OK: Final = ResponseReceived(b"OK")


def waiting(server: Server, topic: str, channel: str = "") -> int:
    """How many messages wait in a topic or channel."""
    found = server.queue(topic, channel)
    assert found is not None, (topic, channel)
    return found.messages


def set_status(server: Server, topic: str, channel: str, status: int) -> None:
    name = name_of(topic, channel)
    changes = QueueChanges(status=status)
    server.perform(UpdateQueue(server.operator, None, name, QUEUE, changes))


def test_the_first_channel_gets_the_backlog_and_later_ones_only_what_is_new() -> None:
    server = Server()
    server.publish("t", b"a", b"b")
    assert waiting(server, "t") == 2
    first = server.subscriber("t", "x")
    assert (waiting(server, "t"), waiting(server, "t", "x")) == (0, 2)
    second = server.subscriber("t", "y")
    assert waiting(server, "t", "y") == 0
    server.publish("t", b"c")
    assert (waiting(server, "t", "x"), waiting(server, "t", "y")) == (3, 1)
    first.send(writing.rdy(10))
    second.send(writing.rdy(10))
    assert first.messages() == [(1, b"a"), (1, b"b"), (1, b"c")]
    assert second.messages() == [(1, b"c")]


@pytest.mark.parametrize("bodies", [[b"b"], [b"b", b"c"]])
def test_a_topic_that_was_deleted_is_made_again_as_topics_are_by_a_producer_that_knew_it(
    bodies: list[bytes],
) -> None:
    server = Server()
    producer = server.connect()
    producer.send(writing.pub(b"t", b"a"))
    server.perform(RemoveChannel(server.operator, None, name_of("t")))
    producer.send(writing.mpub(b"t", bodies) if len(bodies) > 1 else writing.pub(b"t", *bodies))
    assert producer.take() == [OK, OK]
    assert waiting(server, "t") == len(bodies)
    found = server.queue("t")
    assert found is not None
    assert (found.options.status, found.options.delivery_handler) == (STATUS_PUSH, HANDLER)
    assert found.options.memory_limit == NsqOptions().mem_queue_size


@pytest.mark.parametrize("fields", [{}, {"output_buffer_timeout": -1}, {"output_buffer_size": -1}])
@pytest.mark.parametrize("rdy", [1, 10])
def test_a_lone_message_is_sent_at_once(fields: dict[str, Any], rdy: int) -> None:
    server = Server()
    client = server.subscriber("t", "x", rdy, **fields)
    server.publish("t", b"m")
    assert client.messages() == [(1, b"m")]


def test_a_silent_client_gets_two_heartbeats_and_is_closed() -> None:
    server = Server()
    client = server.subscriber("t", "x", 1, heartbeat_interval=1000)
    server.pass_s(0.99)
    assert client.take() == []
    server.pass_s(0.01)
    assert client.take() == [Heartbeat()]
    server.pass_s(0.99)
    assert not client.closed
    server.pass_s(0.01)
    assert client.take() == [Heartbeat()]
    assert client.closed


def test_any_command_is_a_sign_of_life() -> None:
    server = Server()
    client = server.subscriber("t", "x", 1, heartbeat_interval=1000)
    for _ in range(5):
        server.pass_s(1.5)
        client.send(writing.NOP)
    assert not client.closed
    server.pass_s(2.0)
    assert client.closed


def test_who_wants_no_heartbeats_gets_none_and_stays() -> None:
    server = Server()
    client = server.connect()
    client.send(writing.identify({"heartbeat_interval": -1}))
    client.take()
    server.pass_s(100_000)
    assert client.take() == []
    assert not client.closed


@pytest.mark.parametrize(("first", "second"), [(-1, 1000), (1000, 3000), (3000, 1000), (1000, 0)])
def test_the_last_identify_decides_about_heartbeats(first: int, second: int) -> None:
    """The original keeps the first one's heartbeats and has the second one's patience."""
    server = Server()
    client = server.connect()
    client.send(writing.identify({"heartbeat_interval": first}))
    client.send(writing.identify({"heartbeat_interval": second}))
    client.take()
    interval_s = (second or 30_000) / 1000
    server.pass_s(interval_s - 0.01)
    assert client.take() == []
    server.pass_s(0.01)
    assert client.take() == [Heartbeat()]
    server.pass_s(interval_s - 0.01)
    assert not client.closed
    server.pass_s(0.01)
    assert client.closed


def test_a_client_that_wants_heartbeats_no_longer_gets_none_and_cannot_subscribe() -> None:
    server = Server()
    client = server.connect()
    client.send(writing.identify({"heartbeat_interval": 1000}))
    client.send(writing.identify({"heartbeat_interval": -1}))
    client.take()
    server.pass_s(100_000)
    assert client.take() == []
    client.send(writing.sub(b"t", b"x"))
    (error,) = client.take()
    assert error == ErrorReceived(b"E_INVALID", b"cannot SUB with heartbeats disabled")


def test_the_last_identify_decides_about_the_time_for_a_message() -> None:
    server = Server()
    client = server.connect()
    for timeout_ms in (60_000, 1_000):
        client.send(writing.identify({"feature_negotiation": True, "msg_timeout": timeout_ms}))
    client.send(writing.sub(b"t", b"x") + writing.rdy(1))
    client.take()
    server.publish("t", b"m")
    assert client.messages() == [(1, b"m")]
    server.pass_s(1.0)
    assert client.messages() == [(2, b"m")]


def test_heartbeats_come_from_the_connection_on() -> None:
    server = Server()
    client = server.connect()
    client.send(writing.NOP)
    server.pass_s(30)
    assert client.take() == [Heartbeat()]


def test_ephemeral_channels_go_with_their_last_consumer_and_topics_with_their_last_channel() -> (
    None
):
    server = Server()
    client = server.subscriber("t", "e#ephemeral")
    second = server.subscriber("t", "e#ephemeral")
    client.close()
    assert server.queue("t", "e#ephemeral") is not None
    second.close()
    assert server.queue("t", "e#ephemeral") is None
    assert server.queue("t") is not None
    third = server.subscriber("t#ephemeral", "e#ephemeral", 1)
    server.publish("t#ephemeral", b"a")
    assert third.messages() == [(1, b"a")]
    third.close()
    assert server.queue("t#ephemeral") is None
    server.publish("u#ephemeral", b"x", b"x", b"x")
    assert waiting(server, "u#ephemeral") == 3


def test_a_paused_channel_takes_messages_and_a_paused_topic_keeps_them() -> None:
    server = Server()
    client = server.subscriber("t", "x", 5)
    set_status(server, "t", "x", STATUS_PAUSED)
    server.publish("t", b"a")
    assert client.take() == []
    assert (waiting(server, "t"), waiting(server, "t", "x")) == (0, 1)
    set_status(server, "t", "x", STATUS_ROUND_ROBIN)
    server.settle()
    assert client.messages() == [(1, b"a")]
    set_status(server, "t", "", STATUS_PAUSED)
    server.publish("t", b"b")
    assert client.take() == []
    assert (waiting(server, "t"), waiting(server, "t", "x")) == (1, 0)
    set_status(server, "t", "", STATUS_PUSH)
    server.settle()
    assert client.messages() == [(1, b"b")]


def test_deferred_and_requeued_messages_come_exactly_when_they_are_due() -> None:
    server = Server()
    client = server.subscriber("t", "x", 5)
    producer = server.connect()
    producer.send(writing.dpub(b"t", 500, b"d"))
    assert producer.take() == [OK]
    server.pass_s(0.499)
    assert client.take() == []
    server.pass_s(0.001)
    message = client.message()
    assert message.attempts == 1
    client.send(writing.req(message.message_id, 700))
    server.pass_s(0.69)
    assert client.take() == []
    server.pass_s(0.011)
    assert client.message() == MessageReceived(message.timestamp_ns, 2, message.message_id, b"d")
    client.send(writing.touch(message.message_id))
    client.send(writing.req(message.message_id, 99_999_999_999))  # clamped, not refused (N89)
    assert client.take() == []
    for _ in range(3_599):
        server.pass_s(1)
        client.send(writing.NOP)
    client.take()
    server.pass_s(1)
    assert client.message().attempts == 3


def test_a_deferred_message_passes_a_topic_and_waits_in_each_channel() -> None:
    server = Server()
    first, second = server.subscriber("t", "x", 1), server.subscriber("t", "y", 1)
    producer = server.connect()
    producer.send(writing.dpub(b"t", 1_000, b"d"), writing.pub(b"t", b"now"))
    assert first.messages() == second.messages() == [(1, b"now")]
    for client in (first, second):
        client.send(writing.rdy(5))
    server.pass_s(1)
    assert first.messages() == second.messages() == [(1, b"d")]


def test_removing_a_channel_or_a_topic_closes_consumers_without_a_word() -> None:
    server = Server()
    client = server.subscriber("t", "x", 1)
    server.perform(RemoveChannel(server.operator, None, name_of("t", "x")))
    assert client.take() == []
    assert client.closed


def test_after_cls_no_message_comes_and_what_is_in_flight_can_be_answered() -> None:
    server = Server()
    server.publish("t", b"a", b"b")
    client = server.subscriber("t", "x", 1)
    message = client.message()
    client.send(writing.CLS)
    assert client.take() == [ResponseReceived(b"CLOSE_WAIT")]
    client.send(writing.fin(message.message_id), writing.rdy(5))
    assert client.take() == []
    assert waiting(server, "t", "x") == 1
    assert not client.closed


def test_ready_is_a_window() -> None:
    server = Server()
    server.publish("t", *[b"%d" % number for number in range(6)])
    client = server.subscriber("t", "x", 3)
    events = client.take()
    assert [event.body for event in events if isinstance(event, MessageReceived)] == [
        b"0",
        b"1",
        b"2",
    ]
    client.send(writing.rdy(1))
    assert client.take() == []
    client.send(writing.rdy(4))
    assert client.messages() == [(1, b"3")]
    client.send(writing.rdy(0))
    assert isinstance(events[0], MessageReceived)
    client.send(writing.fin(events[0].message_id))
    assert client.take() == []


def test_a_sample_is_about_as_large_as_asked_and_the_rest_is_gone() -> None:
    server = Server()
    client = server.subscriber("t", "x", 2_000, sample_rate=10)
    server.publish("t", *[b"m"] * 1_000)
    got = len(client.take())
    assert 70 <= got <= 150
    queue = server.queue("t", "x")
    assert queue is not None
    assert (queue.messages, queue.in_flight, queue.done) == (0, got, 1_000 - got)


def test_more_consumers_than_a_channel_may_have_are_refused() -> None:
    server = Server(max_channel_consumers=1)
    server.subscriber("t", "x")
    second = server.connect()
    second.send(writing.sub(b"t", b"x"))
    text = b"SUB failed consumers for t:x exceeds limit of 1"
    assert second.take() == [ErrorReceived(b"E_SUB_FAILED", text)]
    assert second.closed


@pytest.mark.parametrize("exists", [False, True])
def test_sub_while_memory_is_full_was_answered_with_a_number(exists: bool) -> None:
    server = Server()
    clients = [server.connect(), server.connect()]
    for client in clients:
        client.send(writing.pub(b"other", b"in"))
        assert client.take() == [OK]
    if exists:
        server.subscriber("t", "x").close()
    size = 2 * server.broker.limits.max_total_bytes  # with what is reserved for clients
    server.broker.charge(size)
    clients[0].send(writing.sub(b"t", b"x"))
    assert clients[0].take() == [ErrorReceived(b"E_SUB_FAILED", b"SUB failed busy")]
    assert clients[0].closed
    server.broker.charge(-size)
    clients[1].send(writing.sub(b"t", b"x"))
    assert clients[1].take() == [OK]


def test_the_flow_of_messages() -> None:
    """The exchange of the recorded flow: FIN, REQ 0, a timeout, an answer of another client."""
    server = Server()
    client = server.subscriber("t", "c", msg_timeout=1000)
    server.publish("t", b"one", b"two", b"three")
    assert client.take() == []
    client.send(writing.rdy(1))
    one = client.message()
    assert (one.attempts, one.body) == (1, b"one")
    assert one.timestamp_ns == int((server.now + 1_795_000_000) * 1e9)
    client.send(writing.fin(one.message_id))
    two = client.message()
    client.send(writing.fin(one.message_id))
    why = b"FIN %s failed ID not in flight" % one.message_id
    assert client.take() == [ErrorReceived(b"E_FIN_FAILED", why)]
    client.send(writing.req(two.message_id, 0))
    three = client.message()
    assert (three.attempts, three.body) == (1, b"three")
    server.pass_s(0.999)
    assert client.take() == []
    server.pass_s(0.001)
    again = client.message()
    assert (again.attempts, again.body, again.message_id) == (2, b"two", two.message_id)
    other = server.subscriber("t", "c")
    other.send(writing.fin(again.message_id))
    why = b"FIN %s failed client does not own message" % again.message_id
    assert other.take() == [ErrorReceived(b"E_FIN_FAILED", why)]
    other.send(writing.rdy(10))
    assert other.messages() == [(2, b"three")]
    client.close()
    assert other.messages() == [(3, b"two")]


def test_touch_extends_but_not_beyond_the_longest_time() -> None:
    server = Server(max_msg_timeout_ms=3_000, msg_timeout_ms=2_000)
    server.publish("t", b"m")
    client = server.subscriber("t", "x", 1, msg_timeout=2_000)
    name = client.message().message_id
    for _ in range(3):
        server.pass_s(0.7)
        client.send(writing.touch(name))
    server.pass_s(0.899)
    assert client.take() == []
    server.pass_s(0.001)
    assert client.messages() == [(2, b"m")]


def test_answers_in_a_row_each_get_their_own_error() -> None:
    server = Server()
    server.publish("t", b"a", b"b", b"c")
    client = server.subscriber("t", "x", 3)
    names = [event.message_id for event in client.take() if isinstance(event, MessageReceived)]
    unknown = b"fedcba9876543210"
    client.send(b"".join([writing.fin(name) for name in (names[0], unknown, names[1], names[0])]))
    assert [event.text for event in client.take() if isinstance(event, ErrorReceived)] == [
        b"FIN %s failed ID not in flight" % unknown,
        b"FIN %s failed ID not in flight" % names[0],
    ]
    assert not client.closed
    client.send(writing.req(unknown, 0), writing.touch(unknown))
    errors = [event.code for event in client.take() if isinstance(event, ErrorReceived)]
    assert errors == [b"E_REQ_FAILED", b"E_TOUCH_FAILED"]


def test_many_publications_are_answered_in_order_and_an_error_comes_last() -> None:
    server = Server()
    client = server.connect()
    client.send(
        writing.pub(b"t", b"1")
        + writing.pub(b"t", b"2")
        + writing.mpub(b"t", [b"3", b"4"])
        + writing.pub(b"u", b"5")
        + b"PUB t\n\0\0\0\0"
        + writing.pub(b"t", b"never")
    )
    events = client.take()
    assert events[:-1] == [OK] * 4
    text = b"PUB invalid message body size 0"
    assert events[-1] == ErrorReceived(b"E_BAD_MESSAGE", text)
    assert client.closed
    assert (waiting(server, "t"), waiting(server, "u")) == (4, 1)


def test_a_topic_that_was_removed_is_made_again_in_the_same_shape() -> None:
    server = Server()
    client = server.connect()
    client.send(writing.pub(b"t", b"1"), writing.mpub(b"t", [b"2", b"3"]))
    before = server.queue("t")
    server.perform(RemoveChannel(server.operator, None, name_of("t")))
    client.send(writing.pub(b"t", b"4"))
    after = server.queue("t")
    assert before is not None
    assert after is not None
    assert (before.messages, after.messages) == (3, 1)
    assert after.options.memory_limit == before.options.memory_limit == 10_000
    assert after.options.delivery_handler == HANDLER


def test_a_full_queue_refuses_with_an_error() -> None:
    server = Server()
    client = server.connect()
    client.send(writing.pub(b"t", b"x"))
    changes = QueueChanges(message_limit=2)
    server.perform(UpdateQueue(server.operator, None, name_of("t"), QUEUE, changes))
    client.send(writing.mpub(b"t", [b"1", b"2", b"3"]))
    events = client.take()
    assert events[0] == OK
    assert isinstance(events[1], ErrorReceived)
    assert events[1].code == b"E_MPUB_FAILED"
    assert len(events) == 2
    assert client.closed


def test_names_that_differ_by_case_are_different_topics() -> None:
    server = Server()
    clients = {
        name: server.subscriber(name, "x", 9) for name in ("OneToOne", "oneToOne", "OnetoOne")
    }
    for name in clients:
        server.publish(name, name.encode())
    for name, client in clients.items():
        assert client.messages() == [(1, name.encode())]


def test_messages_go_round_the_consumers_that_are_ready() -> None:
    server = Server()
    clients: list[Client] = [server.subscriber("t", "x", 2) for _ in range(3)]
    server.publish("t", *[b"%d" % number for number in range(8)])
    got = [client.messages() for client in clients]
    assert sorted(body for each in got for _, body in each) == [b"%d" % n for n in range(6)]
    assert [len(each) for each in got] == [2, 2, 2]


def test_attempts_have_an_end_where_the_server_is_told_one() -> None:
    server = Server(max_attempts=2, dead_letter="dead")
    letters = server.subscriber("dead", "x", 5)
    client = server.subscriber("t", "x", 5)
    server.publish("t", b"m")
    for attempt in (1, 2):
        message = client.message()
        assert message.attempts == attempt
        client.send(writing.req(message.message_id, 0))
    assert client.take() == []
    assert [body for _, body in letters.messages()] == [b"m"]


def test_early_commands_wait_for_their_turn_and_a_greeting_must_come() -> None:
    server = Server(NsqLimits(greeting_timeout_s=5))
    silent = server.connect(b"  V")
    server.pass_s(5)
    assert silent.closed
    assert silent.take() == []


def test_a_web_browser_is_told_what_this_is() -> None:
    client = Server().connect(b"")
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert client.raw().startswith(b"HTTP/1.1 400 ")
    assert client.closed
    assert "an HTTP request" in client.server.hub.close_reason(client.number)
