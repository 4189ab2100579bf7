"""The WebSocket subprotocol tmqp.json.v1, as a script of bytes and times."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    RejectConnection,
    Request,
    TextMessage,
)

from tests.tmqp_server.doors.http.stage import QUEUE, Stage, request
from tests.tmqp_server.peers import operation, push
from tmqp.constants import OP_REMOVE_CHANNEL
from tmqp_server.doors.http.json_requests import JSON_V1, SOCKET_OPERATIONS
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.port import SERVER_STOPS

Headers = list[tuple[bytes, bytes]]


class JsonPeer:
    """A client of the subprotocol."""

    def __init__(self, stage: Stage, *, extra: Headers | None = None) -> None:
        self.stage = stage
        self.peer = stage.open()
        self._machine = WSConnection(ConnectionType.CLIENT)
        self._read = 0
        hello = Request(
            host="here",
            target="/api/v1/ws",
            subprotocols=[JSON_V1],
            extra_headers=[] if extra is None else extra,
        )
        self.peer.say(self._machine.send(hello))

    def events(self) -> list[Event]:
        """What was received and not read."""
        data = bytes(self.peer.stage.sent[self.peer.number][self._read :])
        self._read += len(data)
        if data:
            self._machine.receive_data(data)
        return list(self._machine.events())

    def opened(self) -> JsonPeer:
        """It was accepted."""
        [accepted] = self.events()
        assert isinstance(accepted, AcceptConnection)
        assert (accepted.subprotocol, accepted.extensions) == (JSON_V1, [])
        return self

    def say(self, *events: Event) -> None:
        """Send, as one chunk."""
        self.peer.say(b"".join([self._machine.send(event) for event in events]))

    def ask(self, op: str, **members: Any) -> list[dict[str, Any]]:
        """Ask for something, and read what comes at once."""
        self.say(TextMessage(data=json.dumps({"op": op, **members})))
        return self.messages()

    def messages(self) -> list[dict[str, Any]]:
        """The messages that were received and not read."""
        found: list[dict[str, Any]] = []
        for event in self.events():
            assert isinstance(event, TextMessage), event
            found.append(json.loads(event.data))
        return found

    def close(self) -> CloseConnection:
        """It was closed: how."""
        last = self.events()[-1]
        assert isinstance(last, CloseConnection)
        return last


def open_json(stage: Stage) -> JsonPeer:
    return JsonPeer(stage).opened()


PLACE: Final = {"channel": "orders", "queue": 1}


def test_what_is_pushed_is_confirmed_delivered_and_acknowledged() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "push")
    producer, consumer = open_json(stage), open_json(stage)
    assert consumer.ask("join", channel="orders", window=2, ref=1) == [{"op": "reply", "ref": 1}]
    headers = {"Kind": "bill"}
    told = producer.ask("push", **PLACE, text="five ü", id="m1", ref="a", headers=headers)
    assert told == [{"op": "confirm", "ref": "a", "id": "m1"}]
    [message] = consumer.messages()
    source = message.pop("source")
    assert (len(source) > 0, message.pop("sequence") >= 0) == (True, True)
    assert message == {
        "op": "message",
        **PLACE,
        "ack": True,
        "id": "m1",
        "attempt": 1,
        "headers": [["Kind", "bill"]],
        "text": "five ü",
    }
    assert consumer.ask("ack", **PLACE, id="m1", ref=2) == [{"op": "reply", "ref": 2}]
    [late] = consumer.ask("ack", **PLACE, id="m1", ref=3)
    assert (late["op"], late["code"], late["to"], late["ref"]) == ("problem", 404, "ack", 3)


def test_a_native_client_and_a_json_client_serve_each_other() -> None:
    stage = Stage()
    consumer = open_json(stage)
    consumer.ask("join", channel="orders")
    native = stage.open_native("bob")
    native.say(push("orders", 1, "m1", b"\xff\x00", source="bob"))
    [message] = consumer.messages()
    assert (message["source"], base64.b64decode(message["base64"])) == ("bob", b"\xff\x00")


def test_credit_is_the_number_of_deliveries_that_come() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "push")
    consumer = open_json(stage)
    consumer.ask("join", channel="orders", credit=2)
    heard: list[str] = []
    for name in ("m1", "m2", "m3", "m4"):
        stage.open().ask("POST", f"{QUEUE}/messages?id={name}", b"x")
        for each in consumer.messages():
            heard.append(each["id"])
            consumer.ask("ack", **PLACE, id=each["id"])
    assert heard == ["m1", "m2"]
    [third, reply] = consumer.ask("grant", channel="orders", credit=1, ref=1)
    assert (third["id"], reply) == ("m3", {"op": "reply", "ref": 1})


def test_a_window_stops_until_something_is_answered() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "push")
    consumer = open_json(stage)
    consumer.ask("join", channel="orders", window=1)
    for name in ("m1", "m2"):
        stage.open().ask("POST", f"{QUEUE}/messages?id={name}", b"x")
    assert [each["id"] for each in consumer.messages()] == ["m1"]
    [second] = consumer.ask("nack", **PLACE, id="m1", reason="no")
    assert second["id"] == "m2"
    [again] = consumer.ask("release", **PLACE, id="m2", put_back="start")
    assert (again["id"], again["attempt"]) == ("m2", 2)
    [told] = consumer.ask("extend", **PLACE, id="m2", timeout_ms=60_000, ref=1)
    assert told == {"op": "reply", "ref": 1}


@pytest.mark.parametrize("politely", [True, False])
def test_what_a_client_that_vanishes_has_goes_to_another_at_once(politely: bool) -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "push")
    one, other = open_json(stage), open_json(stage)
    one.ask("join", channel="orders", window=5)
    stage.open().ask("POST", f"{QUEUE}/messages?id=m1", b"x")
    assert [each["id"] for each in one.messages()] == ["m1"]
    other.ask("join", channel="orders", window=5)
    if politely:
        one.say(CloseConnection(code=1000))
    else:
        stage.end(one.peer.number)
        stage.settle()
    [message] = other.messages()
    assert (message["id"], message["attempt"]) == ("m1", 2)


def test_events_are_told_until_they_are_not_wanted() -> None:
    stage = Stage()
    watcher = open_json(stage)
    assert watcher.ask("subscribe", event="ChannelCreated", ref=1) == [{"op": "reply", "ref": 1}]
    stage.open().ask("POST", f"{QUEUE}/messages?id=m1", b"x")
    [event] = watcher.messages()
    assert (event["op"], event["event"], event["about"]["Name"]) == (
        "event",
        "ChannelCreated",
        "orders",
    )
    watcher.ask("unsubscribe", event="ChannelCreated")
    stage.open().ask("POST", "/api/v1/channels/bills/queues/1/messages", b"x")
    assert watcher.messages() == []
    [problem] = watcher.ask("subscribe", event="MessageProduced", ref=2)
    assert (problem["op"], problem["code"], problem["to"]) == ("problem", 1, "subscribe")


def test_who_removes_a_channel_is_heard_by_its_consumers() -> None:
    stage = Stage()
    consumer = open_json(stage)
    consumer.ask("join", channel="orders")
    stage.open_native("bob").say(operation(OP_REMOVE_CHANNEL, "orders"))
    assert consumer.messages() == [{"op": "left", "channel": "orders"}]


def test_a_delivery_that_lapses_is_told() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "push", AcknowledgeTimeout=1)
    consumer = open_json(stage)
    consumer.ask("join", channel="orders", ack_timeout_ms=1_000, credit=1)
    stage.open().ask("POST", f"{QUEUE}/messages?id=m1", b"x")
    consumer.messages()
    stage.sleep(1.5)
    [lapsed] = consumer.messages()
    assert (lapsed["op"], lapsed["id"], lapsed["reason"]) == ("lapsed", "m1", "timed-out")


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "op must be one of"),
        ('{"op": ["push"]}', "op must be one of"),
        ('{"op": "push", "ref": true}', "ref must be"),
        ('{"op": "push", "chanel": "c"}', "no member 'chanel'"),
        ('{"op": "ack", "channel": "c"}', "ack needs id"),
        ('{"op": "push", "channel": "c", "text": "a", "base64": "YQ=="}', "not both"),
        ('{"op": "push", "channel": "c", "base64": "?"}', "base64 cannot be read"),
        ('{"op": "push", "channel": "c", "text": "\\ud800"}', "half a character"),
        ('{"op": "push", "channel": "c", "headers": {"a": "\\ud800"}}', "half a character"),
        ('{"op": "push", "channel": "c", "headers": [["a"]]}', "strings for names"),
        ('{"op": "push", "channel": "\\u0001c"}', "a control character"),
        ('{"op": "push", "channel": "c", "queue": true}', "queue must be a whole number"),
        ('{"op": "push", "channel": "c", "delay_ms": -1}', "delay_ms must be"),
        ('{"op": "grant", "channel": "c"}', "needs credit, window or both"),
        ('{"op": "join", "channel": "c", "filter": "=;"}', ""),
        ('{"op": "subscribe", "event": "Nothing"}', "is not an event"),
    ],
)
def test_what_cannot_be_read_is_told_and_the_connection_stays(said: str, words: str) -> None:
    stage = Stage()
    peer = open_json(stage)
    peer.say(TextMessage(data=said))
    [problem] = peer.messages()
    assert (problem["op"], problem["code"]) == ("problem", 400)
    assert words in problem["detail"]
    assert peer.ask("subscribe", event="ClientConnected", ref=1)[0]["op"] == "reply"


@given(
    st.text()
    | st.builds(
        json.dumps,
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.dictionaries(
                st.sampled_from(
                    ["op", "ref", "channel", "queue", "id", "text", "headers", "credit"]
                ),
                inner | st.sampled_from(list(SOCKET_OPERATIONS)),
            ),
            max_leaves=8,
        ),
    )
)
def test_whatever_is_said_is_answered_or_done(said: str) -> None:
    stage = Stage()
    peer = open_json(stage)
    peer.say(TextMessage(data=said))
    for each in peer.messages():
        assert each["op"] in ("problem", "reply", "confirm")


def test_a_binary_message_and_one_that_is_too_large_end_the_connection() -> None:
    stage = Stage(HttpLimits(max_websocket_message_bytes=1_000))
    peer = open_json(stage)
    peer.say(BytesMessage(data=b"{}"))
    assert peer.close().code == 1003
    peer = open_json(stage)
    peer.say(TextMessage(data="x" * 1_001))
    assert peer.close().code == 1009


def test_who_joins_too_many_channels_is_told() -> None:
    stage = Stage(HttpLimits(max_websocket_joins=2))
    peer = open_json(stage)
    for name in ("a", "b", "A"):
        assert peer.ask("join", channel=name, ref=1)[0]["op"] == "reply"
    [problem] = peer.ask("join", channel="c", ref=2)
    assert problem["code"] == 429
    peer.ask("leave", channel="a")
    assert peer.ask("join", channel="c", ref=3) == [{"op": "reply", "ref": 3}]


def test_who_has_too_many_pushes_in_the_air_is_not_read_from() -> None:
    stage = Stage(HttpLimits(max_websocket_unconfirmed=2), storage=True)
    stage.make_queue("orders", 1, "push", durable=True)
    peer = open_json(stage)
    for name in ("m1", "m2"):
        assert stage.hub.reads(peer.peer.number)
        assert peer.ask("push", **PLACE, id=name, ref=name) == []
    assert not stage.hub.reads(peer.peer.number)
    stage.save()
    assert [each["ref"] for each in peer.messages()] == ["m1", "m2"]
    assert stage.hub.reads(peer.peer.number)


def test_a_push_that_is_refused_is_told_once_with_its_ref() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "stopped")
    peer = open_json(stage)
    [problem] = peer.ask("push", **PLACE, id="m1", ref=5)
    assert (problem["op"], problem["to"], problem["ref"], problem["id"]) == (
        "problem",
        "push",
        5,
        "m1",
    )
    [unasked] = peer.ask("push", **PLACE, id="m2", confirm=False)
    assert (unasked["op"], unasked["id"]) == ("problem", "m2")


def test_two_pushes_with_one_id_are_not_mixed_up() -> None:
    stage = Stage(storage=True)
    stage.make_queue("orders", 1, "push", durable=True)
    peer = open_json(stage)
    assert peer.ask("push", **PLACE, id="m1", ref=1) == []
    [problem] = peer.ask("push", **PLACE, id="m1", ref=2)
    assert (problem["code"], problem["ref"]) == (409, 2)
    stage.save()
    assert peer.messages() == [{"op": "confirm", "ref": 1, "id": "m1"}]


# --- Coming and going -----------------------------------------------------------------------------


def test_a_page_of_another_origin_opens_nothing() -> None:
    stage = Stage()
    peer = JsonPeer(stage, extra=[(b"Origin", b"http://evil.example")])
    [refused, *_] = peer.events()
    assert isinstance(refused, RejectConnection)
    assert refused.status_code == 403
    JsonPeer(stage, extra=[(b"Origin", b"http://here")]).opened()


def test_the_upgrade_comes_before_everything_else_that_needs_a_client() -> None:
    stage = Stage()
    peer = stage.open()
    assert peer.ask("GET", f"{QUEUE}/messages").status == 404
    fields = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", base64.b64encode(bytes(16)).decode()),
        ("Sec-WebSocket-Protocol", JSON_V1),
    ]
    assert peer.ask("GET", "/api/v1/ws", None, *fields).status == 409
    later = stage.open()
    assert later.ask("GET", "/healthz").status == 200
    later.say(request("GET", "/api/v1/ws", None, *fields))
    assert later.raw().startswith(b"HTTP/1.1 101 ")


def test_the_end_of_the_server_and_of_the_client_id_are_told_by_the_close() -> None:
    stage = Stage()
    peer = open_json(stage)
    stage.hub.close(peer.peer.number, SERVER_STOPS, stage.now)
    stage.settle()
    assert peer.close().code == 1012
    assert stage.broker.statistics().sessions == 0
