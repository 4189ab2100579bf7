"""Connections of NSQ: layers, TLS, AUTH, rights, what waits, and messages of other protocols."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.tmqp_server.doors.nsq.server import EPOCH_S, Server, features, name_of
from tests.tmqp_wires.nsq.test_layers import SNAPPY_OK, deflate, snappy
from tmqp.constants import TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp_server.access.gate import AUTHENTICATE, Question
from tmqp_server.access.rights import FEED, PUSH
from tmqp_server.doors.nsq.message import NsqBodies, NsqIds, NsqRun, size_of, source_of
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions
from tmqp_server.doors.nsq.topics import QUEUE
from tmqp_server.doors.nsq_world import NsqNames
from tmqp_server.doors.tables import record_of_options
from tmqp_server.engine.commands import Connect, Push
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_wires.nsq import writing
from tmqp_wires.nsq.events import ErrorReceived, Heartbeat, MessageReceived, ResponseReceived
from tmqp_wires.nsq.stored import stored_head
from tmqp_wires.nsq.writing import message_frame

OK: Final = ResponseReceived(b"OK")


@pytest.mark.parametrize("compression", ["snappy", "deflate"])
def test_a_compressed_connection_begins_with_an_ok_and_stays_compressed(compression: str) -> None:
    server = Server()
    client = server.connect()
    client.send(writing.identify({"feature_negotiation": True, compression: True}))
    raw = client.raw()
    size = 4 + int.from_bytes(raw[:4], "big")
    answer, behind = raw[:size], raw[size:]
    assert b'"%s":true' % compression.encode() in answer
    if compression == "snappy":
        assert behind == SNAPPY_OK  # as recorded
    client.layer = snappy() if compression == "snappy" else deflate()
    assert client.layer.decoded(behind) == writing.OK
    client.send(writing.sub(b"t", b"x") + writing.rdy(5))
    assert client.take() == [OK]
    server.publish("t", b"a" * 100_000, b"b")
    assert client.messages() == [(1, b"a" * 100_000), (1, b"b")]
    server.pass_s(30)
    assert client.take() == [Heartbeat()]
    client.layer = None
    client.send(b"\xff" * 4)
    assert client.closed
    assert "damaged" in server.hub.close_reason(client.number)


@pytest.mark.parametrize("behind", [b"", writing.NOP])
def test_what_was_asked_before_the_change_is_answered_in_the_clear(behind: bytes) -> None:
    """An OK that had to wait was compressed once, and so was the answer to IDENTIFY."""
    client = Server().connect()
    asked = writing.identify({"feature_negotiation": True, "snappy": True})
    client.send(writing.pub(b"t", b"x") + asked + behind)
    raw = client.raw()
    assert raw.startswith(writing.OK)
    assert b'"snappy":true' in raw
    if behind:
        text = b"E_INVALID data behind IDENTIFY, before its answer"
        assert raw.endswith(writing.error_frame(text))
        assert client.closed
    else:
        assert raw.endswith(SNAPPY_OK)


def test_errors_of_answers_come_before_the_error_that_ends_the_connection() -> None:
    """They were lost once, when both were asked for in one piece."""
    server = Server()
    client = server.subscriber("t", "c")
    unknown = b"0123456789abcdef"
    client.send(writing.req(unknown, 0) + writing.touch(unknown) + b"FOO\n")
    codes = [event.code for event in client.take() if isinstance(event, ErrorReceived)]
    assert codes == [b"E_REQ_FAILED", b"E_TOUCH_FAILED", b"E_INVALID"]
    assert client.closed


def secure(server: Server, number: int) -> None:
    """What the I/O does when a session asks for TLS."""
    assert server.hub.begins_tls(number, server.now)
    assert not server.hub.reads(number)
    server.hub.secured(number, server.now)
    server.settle()


def test_an_answer_overtook_the_error_before_it_where_both_came_with_sub() -> None:
    client = Server().connect()
    name = b"0123456789abcdef"
    client.send(writing.sub(b"t", b"c") + writing.fin(name) + writing.pub(b"t", b"x"))
    answers = [type(each) for each in client.take()]
    assert answers == [ResponseReceived, ErrorReceived, ResponseReceived]


def test_an_error_that_ends_the_connection_comes_behind_the_answer_to_sub() -> None:
    client = Server().connect()
    client.send(writing.sub(b"t", b"c") + b"WHAT\n")
    assert [type(each) for each in client.take()] == [ResponseReceived, ErrorReceived]
    assert client.closed


def test_tls_comes_before_compression_each_with_an_ok() -> None:
    server = Server(has_tls=True)
    client = server.connect()
    asked = {"feature_negotiation": True, "tls_v1": True, "snappy": True}
    client.send(writing.identify(asked))
    (answer,) = client.take()
    assert features(answer)["tls_v1"] is True
    secure(server, client.number)
    assert client.raw() == writing.OK + SNAPPY_OK
    client.layer = snappy()
    client.layer.decoded(SNAPPY_OK)
    client.send(writing.identify({"feature_negotiation": True, "tls_v1": True, "snappy": True}))
    (answer,) = client.take()
    told = features(answer)
    assert (told["tls_v1"], told["snappy"]) == (False, False)  # they are on already
    client.send(writing.pub(b"t", b"x"))
    assert client.take() == [OK]


def test_nothing_is_said_in_the_clear_while_tls_begins() -> None:
    server = Server(has_tls=True)
    client = server.connect()
    client.send(writing.identify({"feature_negotiation": True, "tls_v1": True}))
    client.raw()
    server.pass_s(35)
    assert client.raw() == b""
    secure(server, client.number)
    assert client.take() == [OK]


def test_where_tls_is_required_nothing_goes_without_it() -> None:
    server = Server(has_tls=True, tls_required=True)
    client = server.connect()
    client.send(writing.pub(b"t", b"x"))
    (error,) = client.take()
    assert error == ErrorReceived(b"E_INVALID", b"cannot PUB in current state (TLS required)")
    assert client.closed


def test_a_client_gets_in_by_its_secret() -> None:
    asked: list[tuple[str, str]] = []

    def policy(question: Question) -> bool:
        if question.right == AUTHENTICATE:
            assert isinstance(question.command, Connect)
            shown = question.command.credentials
            asked.append(("", "") if shown is None else (shown.kind, shown.secret))
            server.context.world.identities[question.session] = ("me", "http://id", 2)
            return shown is not None and shown.secret == "sekret"
        return True

    server = Server(policy=policy, auth_required=True)
    good = server.connect()
    good.send(writing.identify({"feature_negotiation": True}))
    (answer,) = good.take()
    assert features(answer)["auth_required"] is True
    good.send(writing.auth(b"sekret") + writing.pub(b"t", b"x") + writing.sub(b"t", b"c"))
    told = b'{"identity":"me","identity_url":"http://id","permission_count":2}'
    assert good.take() == [ResponseReceived(told), OK, OK]
    assert asked == [("token", "sekret")]
    good.send(writing.rdy(1))
    assert good.messages() == [(1, b"x")]
    bad = server.connect()
    bad.send(writing.auth(b"wrong") + writing.pub(b"t", b"x"))
    assert bad.take() == [ErrorReceived(b"E_AUTH_FAILED", b"AUTH failed")]
    assert bad.closed


def test_where_nobody_may_connect_without_a_secret_clients_are_told() -> None:
    server = Server(policy=lambda _: False)
    for command, word in ((writing.pub(b"t", b"x"), b"PUB"), (writing.sub(b"t", b"c"), b"SUB")):
        client = server.connect()
        client.send(command)
        text = b"AUTH required before " + word
        assert client.take() == [ErrorReceived(b"E_AUTH_FIRST", text)]
        assert client.closed


def test_what_a_client_may_not_do_is_refused_as_the_original_does() -> None:
    refused = {PUSH}
    server = Server(policy=lambda question: question.right not in refused)
    for command, word in (
        (writing.pub(b"t", b"x"), b"PUB"),
        (writing.mpub(b"t", [b"x", b"y"]), b"MPUB"),
        (writing.dpub(b"t", 1, b"x"), b"DPUB"),
    ):
        client = server.connect()
        client.send(command)
        text = b'AUTH failed for %s on "t" ""' % word
        assert client.take() == [ErrorReceived(b"E_UNAUTHORIZED", text)]
        assert client.closed
    refused = {FEED}
    client = server.connect()
    client.send(writing.sub(b"t", b"c"))
    text = b'AUTH failed for SUB on "t" "c"'
    assert client.take() == [ErrorReceived(b"E_UNAUTHORIZED", text)]


def test_a_client_that_is_not_let_in_yet_is_not_read() -> None:
    """And what it had sent is not lost."""
    waiting: list[Question] = []

    def policy(question: Question) -> bool:
        waiting.append(question)
        raise InterruptedError

    server = Server(policy=policy)
    client = server.connect()
    with pytest.raises(InterruptedError):
        client.send(writing.pub(b"t", b"x") + writing.NOP + writing.pub(b"t", b"y"))
    assert not server.hub.reads(client.number)
    assert server.hub._sessions[client.number].held_bytes() > 100
    server.policy = lambda _: True
    server._decide(waiting[0])
    assert client.take() == [OK, OK]
    assert server.hub.reads(client.number)
    assert server.hub._sessions[client.number].held_bytes() == 0


def test_too_many_unanswered_publications_stop_the_reading() -> None:
    answers: list[Question] = []

    def policy(question: Question) -> bool:
        if question.right == PUSH:
            answers.append(question)
            raise InterruptedError
        return True

    server = Server(NsqLimits(max_unanswered=2), policy=policy)
    client = server.connect()
    client.send(writing.sub(b"t", b"c"))
    client.take()
    with pytest.raises(InterruptedError):
        client.send(writing.pub(b"t", b"1") + writing.mpub(b"t", [b"2", b"3"]))
    assert not server.hub.reads(client.number)
    server.policy = lambda _: True
    server._decide(answers[0])
    assert client.take() == [OK, OK]
    assert server.hub.reads(client.number)


def push_native(server: Server, topic: str, *bodies: bytes, **fields: Any) -> None:
    """Push messages that came in by TMQP."""
    for number, body in enumerate(bodies):
        name = f"message {number} of {topic}, not sixteen"
        frame = Frame.build(
            TYPE_QUEUE_MESSAGE, topic, QUEUE, body, message_id=name, source="them", **fields
        )
        place = (name_of(topic), QUEUE, False, False)
        push = Push(server.native, name, *place, len(frame.raw), frame)
        server.perform(push)


def test_messages_of_other_protocols_are_delivered_answered_and_retried() -> None:
    server = Server()
    client = server.subscriber("t", "c", 2, msg_timeout=1_000)
    native = server.connect(b"")
    server.native = native.number
    server.perform(Connect(native.number, None, "them", door="tmqp"))
    push_native(server, "t", b"1", b"2", b"3", headers=[("Timestamp", "1732000000123")])
    first, second = client.take()
    assert isinstance(first, MessageReceived)
    assert isinstance(second, MessageReceived)
    assert (first.body, second.body) == (b"1", b"2")
    assert first.timestamp_ns == 1732000000123 * 1_000_000
    assert first.message_id == b"%016x" % 1
    client.send(writing.fin(first.message_id) + writing.req(second.message_id, 0))
    third, again = client.take()
    assert isinstance(third, MessageReceived)
    assert isinstance(again, MessageReceived)
    assert (third.body, again.body, again.attempts) == (b"3", b"2", 2)
    assert again.message_id == second.message_id
    client.send(writing.touch(third.message_id), writing.fin(third.message_id))
    client.send(writing.fin(third.message_id))
    why = b"FIN %s failed ID not in flight" % third.message_id
    assert client.take() == [ErrorReceived(b"E_FIN_FAILED", why)]
    server.pass_s(1)
    assert client.messages() == [(3, b"2")]
    client.send(writing.fin(again.message_id))
    assert client.take() == []
    queue = server.queue("t", "c")
    assert queue is not None
    assert (queue.messages, queue.in_flight, queue.done) == (0, 0, 3)
    assert server.context._foreign[client.number] == {}
    client.close()
    assert client.number not in server.context._foreign


def test_ids_of_other_protocols_messages_are_remembered_within_a_limit() -> None:
    server = Server(NsqLimits(max_foreign_in_flight=2))
    client = server.subscriber("t", "c", 9)
    native = server.connect(b"")
    server.native = native.number
    server.perform(Connect(native.number, None, "them", door="tmqp"))
    push_native(server, "t", b"1", b"2", b"3")
    names = [each.message_id for each in client.take() if isinstance(each, MessageReceived)]
    assert len(server.context._foreign[client.number]) == 2
    client.send(writing.fin(names[0]))
    (error,) = client.take()
    assert isinstance(error, ErrorReceived)
    client.send(writing.fin(names[1]) + writing.fin(names[2]))
    assert client.take() == []


def test_ids_are_not_made_twice_and_are_never_those_of_other_protocols() -> None:
    ids = NsqIds("0123456789", EPOCH_S)
    made = [ids.new(), *ids.several(500), ids.new()]
    assert len({*made}) == 502
    assert made == sorted(made)
    assert all(len(name) == 16 and name[0] == "8" for name in made)
    later = NsqIds("0123456789", EPOCH_S + 1)
    assert later.new() > made[-1]


def test_a_run_is_kept_as_its_messages_are_one_by_one() -> None:
    bodies = NsqBodies()
    ids = NsqIds("f" * 32, EPOCH_S).several(3)
    run = NsqRun(ids, [b"a", b"", b"ccc"], 123_456_789, b"source")
    whole = run.stored()
    assert whole is not None
    data, sizes, offsets = whole
    producer = Origin(1, "source", None, None, "nsq")
    parts: list[bytes] = []
    for place, name in enumerate(ids):
        wire = run.frames[place]
        message = Message(name, producer, name_of("topic"), 0, sizes[place], wire, 0, 1)
        part, offset, size = bodies.stored(message)
        assert (offset, size) == (offsets[0], len(run.bodies[place]))
        assert len(part) == sizes[place]
        assert size_of(b"source", run.bodies[place]) == sizes[place]
        assert bodies.restored(part) == (wire, name, "source", "", len(part))
        letter = bodies.letter(wire)
        assert (letter.body, letter.timestamp_ms) == (run.bodies[place], 123)
        parts.append(part)
    assert b"".join(parts) == data
    assert run.size() == len(data)
    assert run.contents() == (ids, sizes, run.frames)


def test_a_message_that_was_kept_with_its_topic_is_read() -> None:
    head = stored_head(5, b"f" * 16, b"T", source_of("é" * 200))
    wire = message_frame(5, 1, b"f" * 16, b"body")
    expected = (wire, "f" * 16, "é" * 127, name_of("T"), len(head) + 4)
    assert NsqBodies().restored(head + b"body") == expected


def test_the_statistics_know_each_client() -> None:
    server = Server()
    client = server.subscriber(
        "t", "c", 1, client_id="cid", hostname="hn", user_agent="ua/1", msg_timeout=1_000
    )
    row = server.context.world.clients[client.number]
    server.publish("t", b"one", b"two", b"three")
    client.send(writing.fin(client.message().message_id))
    client.send(writing.req(client.message().message_id, 0))
    client.message()
    server.pass_s(1)
    client.message()
    client.send(writing.fin(b"0123456789abcdef"))
    # As recorded: one finished, one requeued, one timed out, one in flight.
    assert (row.client_id, row.hostname, row.user_agent) == ("cid", "hn", "ua/1")
    assert (row.state, row.topic, row.channel, row.ready_count) == (3, b"t", b"c", 1)
    counted = (row.message_count, row.finish_count, row.requeue_count, row.in_flight_count)
    assert counted == (4, 1, 1, 1)
    client.send(writing.CLS)
    assert (row.state, row.ready_count) == (4, 0)
    client.close()
    assert server.context.world.clients == {}
    assert server.context.world.message_bytes == {b"t": 11}


def test_the_statistics_do_not_count_what_has_timed_out_as_in_flight() -> None:
    server = Server()
    client = server.subscriber("t", "c", 3, msg_timeout=1_000)
    row = server.context.world.clients[client.number]
    server.publish("t", b"one", b"two", b"three")
    assert row.in_flight_count == 3
    client.send(writing.rdy(0))
    server.pass_s(1)
    assert row.in_flight_count == 0
    client.send(writing.rdy(2))
    assert row.in_flight_count == 2


def test_names_of_channels_are_found_again() -> None:
    names = NsqNames()
    assert names.of(name_of("a.b", "c#ephemeral")) == (b"a.b", b"c#ephemeral")
    assert names.of(name_of("OneToOne")) == (b"OneToOne", b"")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"mem_queue_siz": 1}, "did you mean mem_queue_size"),
        ({"mem_queue_size": -1}, "at least 0"),
        ({"mem_queue_size": True}, "a whole number"),
        ({"snappy": 1}, "true or false"),
        ({"max_deflate_level": 10}, "up to 9"),
        ({"max_deflate_level": 0}, "at least 1"),
        ({"msg_timeout_ms": 900_001}, "beyond"),
        ({"heartbeat_interval_ms": 60_001}, "beyond"),
        ({"dead_letter": "a@b"}, "not a topic name"),
    ],
)
def test_options_that_make_no_sense_are_refused(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        record_of_options(NsqOptions(), table)
    assert record_of_options(NsqOptions(), {"mem_queue_size": 5}) == NsqOptions(mem_queue_size=5)
    with pytest.raises(ValueError, match="positive"):
        NsqLimits(max_msg_size=0)
