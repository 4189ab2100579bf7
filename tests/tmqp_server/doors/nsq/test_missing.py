"""Topics and channels that are missing: who makes them, when they end, what a refusal leaves."""

from __future__ import annotations

from typing import Final

import pytest

from tests.tmqp_server.doors.nsq.server import Server, name_of
from tests.tmqp_server.doors.nsq.stage import Stage
from tmqp_server.access.gate import Question, Verdict
from tmqp_server.access.rights import CREATE_QUEUE, FEED, JOIN
from tmqp_server.engine.commands import Connect
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import WITH_CONSUMERS
from tmqp_wires.nsq import writing
from tmqp_wires.nsq.events import ErrorReceived, ResponseReceived

OK: Final = ResponseReceived(b"OK")
TOPIC: Final = name_of("t")
CHANNEL: Final = name_of("t", "c")


def channels(server: Server | Stage) -> set[str]:
    """The engine's names of what is there."""
    return {each.stored_name for each in server.broker._core.channels.by_key.values()}


@pytest.mark.parametrize(
    "publication",
    [
        writing.pub(b"e#ephemeral", b"m"),
        writing.mpub(b"e#ephemeral", [b"m", b"m"]),
        writing.dpub(b"e#ephemeral", 1, b"m"),
    ],
)
def test_an_ephemeral_topic_of_who_may_only_push_outlived_its_last_channel(
    publication: bytes,
) -> None:
    refused = {CREATE_QUEUE}
    server = Server(policy=lambda question: question.right not in refused)
    producer = server.connect()
    producer.send(publication)
    assert producer.take() == [OK]
    server.pass_s(3600)
    assert channels(server) == {name_of("e#ephemeral")}, "it had no channel yet (N73)"
    refused.clear()
    consumer = server.subscriber("e#ephemeral", "c#ephemeral", 5)
    assert {body for _, body in consumer.messages()} == {b"m"}
    consumer.close()
    assert channels(server) == set()


@pytest.mark.parametrize("query", ["", "&defer=1"])
def test_an_ephemeral_topic_published_by_http_outlived_its_last_channel(query: str) -> None:
    stage = Stage(guarded=True)
    target = f"/pub?topic=e%23ephemeral{query}"
    said = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nm"
    client = stage.dial("nsqd-http", said.encode())
    while questions := stage.hub.take_outside():
        for each in questions:
            assert isinstance(each, Question)
            connect = each.command if isinstance(each.command, Connect) else None
            verdict = Verdict(each.right != CREATE_QUEUE, connect=connect)
            stage.hub.decide(each.session, each.ticket, verdict, stage.now)
            stage.hub.go_on(each.session, stage.now)
        stage.settle()
    assert client.answer("POST").body == b"OK"
    (topic,) = stage.broker._core.channels.by_key.values()
    assert topic.options.lifetime == WITH_CONSUMERS


#: What the client may not do, and what is there behind its SUB.
_REFUSALS: Final = [
    ({(CREATE_QUEUE, TOPIC), (CREATE_QUEUE, CHANNEL)}, set[str]()),
    ({(CREATE_QUEUE, TOPIC)}, set[str]()),
    ({(CREATE_QUEUE, CHANNEL)}, {TOPIC}),  # which it may make: a PUB would do so, too
    ({(FEED, TOPIC)}, {TOPIC}),
    ({(FEED, CHANNEL)}, {TOPIC}),
]


@pytest.mark.parametrize(("refused", "left"), _REFUSALS)
def test_a_refused_sub_left_an_empty_channel(refused: set[tuple[str, str]], left: set[str]) -> None:
    server = Server(policy=lambda question: (question.right, question.subject) not in refused)
    client = server.connect()
    client.send(writing.sub(b"t", b"c"))
    text = b'AUTH failed for SUB on "t" "c"'
    assert client.take() == [ErrorReceived(b"E_UNAUTHORIZED", text)]
    assert client.closed
    client.close()
    assert channels(server) == left


def test_who_may_not_create_consumes_what_is_there() -> None:
    refused: set[str] = set()
    server = Server(policy=lambda question: question.right not in refused)
    server.subscriber("t", "c").close()
    server.publish("t", b"m")
    refused.add(CREATE_QUEUE)
    assert server.subscriber("t", "c", 1).messages() == [(1, b"m")]


def test_who_may_not_join_is_told_so() -> None:
    server = Server(policy=lambda question: question.right != JOIN)
    client = server.connect()
    client.send(writing.sub(b"t", b"c"))
    text = b'AUTH failed for SUB on "t" "c"'
    assert client.take() == [ErrorReceived(b"E_UNAUTHORIZED", text)]


def test_a_channel_without_room_says_so_though_the_topic_is_there() -> None:
    """A client without the right to make the topic was told that, though it was there."""
    refused = set[tuple[str, str]]()
    server = Server(
        policy=lambda question: (question.right, question.subject) not in refused,
        engine_limits=EngineLimits(max_channels=1),
    )
    server.publish("t", b"m")
    refused.add((CREATE_QUEUE, TOPIC))
    client = server.connect()
    client.send(writing.sub(b"t", b"c"))
    assert client.take() == [ErrorReceived(b"E_SUB_FAILED", b"SUB failed limit-exceeded")]
    assert channels(server) == {TOPIC}
