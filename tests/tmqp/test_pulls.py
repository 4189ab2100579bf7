"""The checks of ``tmqp.pulls``: results put together by ``Request-Id``, as in a client."""

from __future__ import annotations

import pytest

from tests.support import load_exchange, load_session
from tmqp import (
    Connection,
    ConnectionInformation,
    Event,
    Frame,
    Limits,
    LocalProtocolError,
    MessageType,
    PullCompleted,
    PullMessageReceived,
    QueueMessageReceived,
    ResponseReceived,
    Role,
)
from tmqp.pulls import PendingPulls
from tmqp.testing import CLIENT_TO_SERVER, Exchange, split_step

PULL = MessageType.PULL_REQUEST
PUSH = MessageType.QUEUE_MESSAGE


def client(limits: Limits | None = None) -> Connection:
    """A client on which messages flow."""
    connection = Connection(Role.CLIENT, limits)
    connection.initiate(ConnectionInformation("c"))
    connection.receive(b"TMQP/2.0" + Frame.build(0x10, "c", 202).raw, 0.0)
    connection.data_to_send()
    return connection


def pulling(*ids: str, limits: Limits | None = None) -> Connection:
    """A client that waits for the results of these pulls."""
    connection = client(limits)
    for request_id in ids:
        connection.send(pull(request_id))
    connection.data_to_send()
    return connection


def pull(request_id: str) -> Frame:
    """A pull request."""
    return Frame.build(PULL, "q", 1, message_id=request_id, headers=[("Count", "10")])


def message(
    *headers: tuple[str, str], payload: bytes = b"p", own: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """A message of a queue: the producer's own headers, then those the server appended."""
    return Frame.build(PUSH, "q", 1, payload, message_id="m", headers=[*own, *headers]).raw


def result(request_id: str, index: int, count: int = 10, payload: bytes = b"p") -> bytes:
    """One message of a pull."""
    return message(
        ("Request-Id", request_id), ("Count", str(count)), ("Index", str(index)), payload=payload
    )


def no_content(request_id: str, reason: str) -> bytes:
    """What ends a pull."""
    return message(("Request-Id", request_id), ("No-Content", reason), payload=b"")


def summary(events: list[Event]) -> list[tuple[object, ...]]:
    """What the events say of pulls."""
    said: list[tuple[object, ...]] = []
    for event in events:
        if isinstance(event, PullMessageReceived):
            said.append(("message", event.request_id, event.index, event.count))
        elif isinstance(event, PullCompleted):
            said.append(("completed", event.request_id, event.reason, event.received))
        else:
            said.append((type(event).__name__,))
    return said


def test_the_messages_of_a_pull_come_in_order_and_end() -> None:
    connection = pulling("r1")
    stream = result("r1", 1) + result("r1", 2) + no_content("r1", "End")
    assert summary(connection.receive(stream, 0.0)) == [
        ("message", "r1", 1, 10),
        ("message", "r1", 2, 10),
        ("completed", "r1", "End", 2),
    ]
    assert summary(connection.receive(no_content("r1", "End"), 0.0)) == [("QueueMessageReceived",)]


@pytest.mark.parametrize(
    "reason",
    ["End", "Empty", "Unacceptable", "Unauthorized", "Error", "No-Channel", "No-Queue", "any"],
)
def test_any_no_content_word_ends_a_pull(reason: str) -> None:
    connection = pulling("r1")
    (event,) = connection.receive(no_content("r1", reason), 0.0)
    assert isinstance(event, PullCompleted)
    assert (event.request_id, event.reason, event.received) == ("r1", reason, 0)
    assert event.frame.header("No-Content") == reason


def test_several_pulls_are_told_apart() -> None:
    connection = pulling("r1", "r2", "r3")
    stream = b"".join(
        [
            result("r2", 1, 5),
            result("r1", 1),
            message(),
            no_content("r3", "Empty"),
            result("r2", 2, 5),
            no_content("r1", "End"),
            no_content("r2", "End"),
        ]
    )
    assert summary(connection.receive(stream, 0.0)) == [
        ("message", "r2", 1, 5),
        ("message", "r1", 1, 10),
        ("QueueMessageReceived",),
        ("completed", "r3", "Empty", 0),
        ("message", "r2", 2, 5),
        ("completed", "r1", "End", 1),
        ("completed", "r2", "End", 2),
    ]


def test_a_message_with_an_empty_payload_does_not_end_a_pull() -> None:
    """The index says that it is a message, whatever No-Content the producer wrote himself."""
    connection = pulling("r1")
    headers = (("Request-Id", "r1"), ("Count", "10"), ("Index", "1"))
    own = (("No-Content", "End"),)
    stream = message(*headers, payload=b"", own=own) + message(*headers, payload=b"")
    assert summary(connection.receive(stream, 0.0)) == [("message", "r1", 1, 10)] * 2


def test_a_producers_own_headers_do_not_imitate_the_servers() -> None:
    """F107: the server's headers are after the producer's, and the last one counts."""
    connection = pulling("r1", "r2")
    own = (("Request-Id", "r2"), ("Index", "99"), ("Count", "999"), ("no-content", "End"))
    stream = message(("Request-Id", "r1"), ("Count", "3"), ("Index", "2"), own=own)
    assert summary(connection.receive(stream, 0.0)) == [("message", "r1", 2, 3)]
    stream = message(("Request-Id", "r1"), ("No-Content", "End"), payload=b"")
    assert summary(connection.receive(stream, 0.0)) == [("completed", "r1", "End", 1)]


@pytest.mark.parametrize("own", [(), (("Request-Id", "r9"),), (("Request-Id", ""),)])
def test_a_message_of_no_pull_is_an_ordinary_one(own: tuple[tuple[str, str], ...]) -> None:
    connection = pulling("r1")
    (event,) = connection.receive(message(own=own), 0.0)
    assert isinstance(event, QueueMessageReceived)
    (event,) = client().receive(message(own=own), 0.0)
    assert isinstance(event, QueueMessageReceived)


@pytest.mark.parametrize("number", ["", "-1", "1e3", "٣", "x", "9" * 11, " 1", "1.0"])
def test_numbers_that_make_no_sense_are_none(number: str) -> None:
    connection = pulling("r1")
    stream = message(("Request-Id", "r1"), ("Count", number), ("Index", number))
    assert summary(connection.receive(stream, 0.0)) == [("message", "r1", 0, 0)]


@pytest.mark.parametrize("number", ["0", "7", "4294967295", "9999999999"])
def test_numbers_that_make_sense_are_read(number: str) -> None:
    connection = pulling("r1")
    stream = message(("Request-Id", "r1"), ("Count", number), ("Index", number))
    assert summary(connection.receive(stream, 0.0)) == [("message", "r1", int(number), int(number))]


@pytest.mark.parametrize("code", [0, 404])
def test_a_response_ends_a_pull_too(code: int) -> None:
    """A cache queue answers with its message in a Response (F112); so do refusals (F106)."""
    connection = pulling("r1", "r2")
    answer = Frame.build(MessageType.RESPONSE, "c", code, b"latest", message_id="r1")
    events = connection.receive(result("r1", 1) + answer.raw, 0.0)
    assert summary(events) == [
        ("message", "r1", 1, 10),
        ("ResponseReceived",),
        ("completed", "r1", "", 1),
    ]
    assert isinstance(events[1], ResponseReceived)
    assert events[1].code == code
    other = Frame.build(MessageType.RESPONSE, "c", 0, message_id="x")
    assert summary(connection.receive(other.raw, 0.0)) == [("ResponseReceived",)]
    assert summary(connection.receive(answer.raw, 0.0)) == [("ResponseReceived",)]


def test_a_pull_that_is_forgotten_is_not_recognised_any_more() -> None:
    connection = pulling("r1")
    connection.forget_pull("r1")
    connection.forget_pull("never there")
    assert summary(connection.receive(result("r1", 1), 0.0)) == [("QueueMessageReceived",)]
    connection.send(pull("r1"))


def test_a_pull_must_be_recognisable() -> None:
    connection = pulling("r1", limits=Limits(max_pending_pulls=2))
    for request_id, sentence in (("", "message id"), ("r1", "pending already")):
        with pytest.raises(LocalProtocolError, match=sentence):
            connection.send(pull(request_id))
    connection.send(pull("r2"))
    with pytest.raises(LocalProtocolError, match="max_pending_pulls"):
        connection.send(pull("r3"))
    assert connection.data_to_send() == pull("r2").raw
    connection.receive(no_content("r1", "Empty"), 0.0)
    connection.send(pull("r3"))


def test_a_push_into_another_queue_is_no_result_whatever_its_headers_say() -> None:
    """A producer that knew a pull's id answered it by pushing where its victim consumes."""
    connection = pulling("r1")
    for channel, queue_id in (("other", 1), ("q", 2)):
        headers = [("Request-Id", "r1"), ("Count", "1"), ("Index", "1")]
        forged = Frame.build(PUSH, channel, queue_id, b"x", message_id="m", headers=headers)
        (event,) = connection.receive(forged.raw, 0.0)
        assert type(event) is QueueMessageReceived
    (event,) = connection.receive(result("r1", 1), 0.0)
    assert type(event) is PullMessageReceived


def test_a_result_may_spell_the_channel_in_its_producers_way() -> None:
    connection = pulling("r1")
    headers = [("Request-Id", "r1"), ("Count", "1"), ("Index", "1")]
    spelt = Frame.build(PUSH, "Q", 1, b"x", message_id="m", headers=headers)
    (event,) = connection.receive(spelt.raw, 0.0)
    assert type(event) is PullMessageReceived


def test_another_clients_response_does_not_end_a_pull() -> None:
    connection = pulling("r1")
    forged = Frame.build(MessageType.RESPONSE, "c", 0, message_id="r1", source="somebody")
    (event,) = connection.receive(forged.raw, 0.0)
    assert type(event) is ResponseReceived
    (event,) = connection.receive(result("r1", 1), 0.0)
    assert type(event) is PullMessageReceived


def test_what_is_cleared_is_forgotten() -> None:
    pulls = PendingPulls(2)
    assert not pulls.any()
    pulls.add(pull("r1"))
    pulls.add(pull("r2"))
    assert pulls.any()
    pulls.clear()
    assert not pulls.any()
    pulls.add(pull("r1"))


def test_a_server_does_not_remember_pulls() -> None:
    connection = Connection(Role.SERVER)
    hello = Frame.build(0x10, "", 101, b"CONNECT /\r\n")
    connection.receive(b"TMQP/2.0" + hello.raw, 0.0)
    connection.accept("c")
    for _ in range(2):
        connection.send(pull("r1"))
    assert summary(connection.receive(result("r1", 1), 0.0)) == [("QueueMessageReceived",)]


def replay_pulls(exchange: Exchange, number: int) -> list[tuple[object, ...]]:
    """What a client makes of a recorded connection: its pulls sent, the server's bytes received."""
    connection = client()
    said: list[tuple[object, ...]] = []
    for step in exchange.steps:
        if step.connection != number:
            continue
        parts = split_step(step)
        for frame in parts.frames:
            if step.direction == CLIENT_TO_SERVER:
                if frame.type == PULL:
                    connection.send(frame)
            else:
                said += summary(connection.receive(frame.raw, 0.0))
    return [each for each in said if each[0] in ("message", "completed")]


def test_the_originals_answers_are_understood() -> None:
    assert replay_pulls(load_exchange("probe-042"), 46)[:2] == [
        ("message", "r1", 1, 1),
        ("completed", "r1", "End", 1),
    ]
    session = load_session("real")
    outcomes = [
        each[2:]
        for number in session.connections
        for each in replay_pulls(session, number)
        if each[0] == "completed"
    ]
    assert ("Unauthorized", 0) in outcomes
    assert ("Empty", 0) in outcomes
    assert ("Unacceptable", 0) in outcomes
    assert ("End", 1) in outcomes
    assert ("End", 2) in outcomes
