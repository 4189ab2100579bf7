"""TMQP inside WebSocket messages, as a script of bytes and times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)

from tests.tmqp_server.doors.http.stage import QUEUE, Stage, request
from tests.tmqp_server.peers import greeting, operation, push
from tmqp.codec import FrameDecoder
from tmqp.constants import EVENT_SUBSCRIBE, OP_JOIN, PREAMBLE, TYPE_EVENT, TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp_server.doors.http.limits import HttpLimits


class WebSocketPeer:
    """A WebSocket client with a TMQP client inside."""

    def __init__(self, stage: Stage, protocols: tuple[str, ...] = ("tmqp",)) -> None:
        self.peer = stage.open()
        self._machine = WSConnection(ConnectionType.CLIENT)
        self._read = 0
        self._decoder = FrameDecoder()
        self.stream = b""
        hello = Request(host="here", target="/api/v1/ws", subprotocols=list(protocols))
        self.peer.say(self._machine.send(hello))

    def events(self) -> list[Event]:
        """What was received and not read."""
        data = bytes(self.peer.stage.sent[self.peer.number][self._read :])
        self._read += len(data)
        if data:
            self._machine.receive_data(data)
        return list(self._machine.events())

    def say(self, *events: Event) -> None:
        """Send, as one chunk."""
        self.peer.say(b"".join([self._machine.send(event) for event in events]))

    def tell(self, *parts: bytes | Frame) -> None:
        """Send bytes of TMQP, a message each."""
        pieces = [part if isinstance(part, bytes) else part.raw for part in parts]
        self.say(*[BytesMessage(data=piece) for piece in pieces])

    def frames(self) -> list[Frame]:
        """The frames received and not read."""
        for event in self.events():
            assert isinstance(event, BytesMessage), event
            self.stream += event.data
        data, self.stream = self.stream, b""
        return self._decoder.feed(data.removeprefix(PREAMBLE))

    def connect(self, client_id: str) -> WebSocketPeer:
        """Upgrade, and connect as a client."""
        [accepted] = self.events()
        assert isinstance(accepted, AcceptConnection)
        assert (accepted.subprotocol, accepted.extensions) == ("tmqp", [])
        self.tell(greeting(client_id))
        assert self.frames()[0].content_type == 202
        return self


def test_tmqp_is_spoken_in_binary_messages() -> None:
    stage = Stage()
    socket = WebSocketPeer(stage).connect("web")
    socket.tell(operation(OP_JOIN, "orders"))
    assert socket.frames()[0].content_type == 0
    peer = stage.open()
    peer.ask("POST", f"{QUEUE}/messages?id=m1", b"by http")
    native = stage.open_native("bob")
    native.say(push("orders", 1, "m2", b"by tmqp", source="bob"))
    frames = socket.frames()
    assert [(each.message_id, each.payload) for each in frames] == [
        ("m1", b"by http"),
        ("m2", b"by tmqp"),
    ]
    socket.tell(push("orders", 1, "m3", b"by web", source="web"))
    native.say(operation(OP_JOIN, "orders"))
    socket.tell(push("orders", 1, "m4", b"by web", source="web"))
    got = [each.message_id for each in native.frames() if each.type == TYPE_QUEUE_MESSAGE]
    assert got[-1] == "m4"


def test_events_keep_the_form_of_each_connection() -> None:
    stage = Stage()
    stage.make_queue("orders", 1, "push")
    stream = stage.open()
    stream.say(request("GET", "/api/v1/events?kind=MessageProduced&channel=orders&queue=1"))
    socket = WebSocketPeer(stage).connect("web")
    headers = [("Channel-Name", "orders"), ("Queue-Id", "1")]
    socket.tell(
        Frame.build(TYPE_EVENT, "MessageProduced", EVENT_SUBSCRIBE, message_id="e", headers=headers)
    )
    socket.frames()
    stage.open().ask("POST", f"{QUEUE}/messages?id=m1", b"x")
    [event] = socket.frames()
    assert (event.type, event.source) == (TYPE_EVENT, "MessageProduced")
    assert b"event: MessageProduced" in stream.raw()


def test_a_message_and_a_frame_may_be_cut_anywhere() -> None:
    socket = WebSocketPeer(Stage())
    socket.events()
    for byte in greeting("web"):
        socket.tell(bytes([byte]))
    assert socket.frames()[0].content_type == 202
    whole = operation(OP_JOIN, "orders").raw
    socket.say(
        BytesMessage(data=whole[:5], message_finished=False),
        BytesMessage(data=whole[5:9], message_finished=False),
        BytesMessage(data=whole[9:]),
    )
    assert socket.frames()[0].content_type == 0


def test_pings_are_answered_and_sent() -> None:
    stage = Stage(HttpLimits(websocket_ping_interval_s=5.0))
    socket = WebSocketPeer(stage).connect("web")
    socket.say(Ping(payload=b"abc"))
    [pong] = socket.events()
    assert isinstance(pong, Pong)
    assert bytes(pong.payload) == b"abc"
    stage.sleep(5.1)
    assert [type(each) for each in socket.events()] == [Ping]
    socket.say(Pong())
    stage.sleep(4.9)
    assert socket.events() == []
    stage.sleep(5.2)
    assert [type(each) for each in socket.events()] == [Ping]
    stage.sleep(5.1)
    assert socket.peer.over


def test_a_peer_had_no_time_to_answer_the_ping_of_a_server_that_had_stood_still() -> None:
    stage = Stage(HttpLimits(websocket_ping_interval_s=5.0))
    socket = WebSocketPeer(stage).connect("web")
    stage.now += 11.0
    stage.hub.on_session_deadline(socket.peer.number, stage.now)
    due = stage.hub.session_deadline(socket.peer.number)
    assert due == stage.now + 5.0
    stage.sleep(4.9)
    assert not socket.peer.over
    stage.sleep(0.2)
    assert socket.peer.over


def test_a_socket_that_was_closing_was_due_all_the_time_once_its_ping_was() -> None:
    stage = Stage(HttpLimits(websocket_ping_interval_s=5.0))
    socket = WebSocketPeer(stage).connect("web")
    stage.sleep(4.0)
    stage.hub.close(socket.peer.number, "the server stops", stage.now)
    assert stage.hub.session_deadline(socket.peer.number) == stage.now + 2.0


def test_a_close_is_answered_and_ends_both_connections() -> None:
    stage = Stage()
    socket = WebSocketPeer(stage).connect("web")
    assert stage.broker.statistics().sessions == 1
    socket.say(CloseConnection(code=1001, reason="going"))
    [closed] = socket.events()
    assert isinstance(closed, CloseConnection)
    assert closed.code == 1001
    assert socket.peer.over
    assert stage.broker.statistics().sessions == 0


def test_the_end_of_the_server_is_told_with_1001() -> None:
    stage = Stage()
    socket = WebSocketPeer(stage).connect("web")
    stage.hub.close(socket.peer.number, "the server stops", stage.now)
    stage.settle()
    *_, closed = socket.events()
    assert isinstance(closed, CloseConnection)
    assert closed.code == 1001
    stage.sleep(2.1)  # the peer does not answer
    assert socket.peer.over


def test_a_peer_that_breaks_tmqp_is_closed() -> None:
    stage = Stage()
    socket = WebSocketPeer(stage)
    socket.events()
    socket.tell(b"GET / HTTP/1.1\r\n\r\n")
    closed = socket.events()[-1]
    assert isinstance(closed, CloseConnection)
    assert closed.code == 1000
    socket.say(closed.response())
    assert "not TMQP" in socket.peer.over


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([TextMessage(data="hello")], 1003),
        ([BytesMessage(data=b"x" * 101)], 1009),
        (
            [BytesMessage(data=b"x" * 60, message_finished=False), BytesMessage(data=b"x" * 60)],
            1009,
        ),
        ([BytesMessage(data=b"x", message_finished=False)] * 5, 1008),
    ],
)
def test_each_limit_of_a_message_has_its_close_code(events: list[Event], code: int) -> None:
    stage = Stage(HttpLimits(max_websocket_message_bytes=100, max_websocket_fragments=4))
    socket = WebSocketPeer(stage).connect("web")
    socket.say(*events)
    closed = socket.events()[-1]
    assert isinstance(closed, CloseConnection)
    assert closed.code == code
    stage.sleep(2.1)
    assert socket.peer.over
    assert stage.broker.statistics().sessions == 0


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x82\x01x", 1002),  # not masked
        (b"\xf2\x81\0\0\0\0x", 1002),  # reserved bits
        (b"\x80\x81\0\0\0\0x", 1002),  # continues nothing
        (b"\x89\xfe\0\x7e\0\0\0\0", 1002),  # a ping of 126 bytes
        (b"\x88\x81\0\0\0\0x", 1002),  # half a close code
        (b"\x81\x82\0\0\0\0\xff\xff", 1007),  # no UTF-8
        (b"\x83\x80\0\0\0\0", 1002),  # an opcode without a meaning
    ],
)
def test_a_broken_frame_has_its_close_code(data: bytes, code: int) -> None:
    stage = Stage()
    socket = WebSocketPeer(stage).connect("web")
    socket.peer.say(data)
    closed = socket.events()[-1]
    assert isinstance(closed, CloseConnection)
    assert closed.code == code


def test_an_unknown_subprotocol_is_refused() -> None:
    for protocols in ((), ("chat",)):
        socket = WebSocketPeer(Stage(), protocols)
        refused = socket.events()[0]
        assert isinstance(refused, RejectConnection)
        assert refused.status_code == 400


def test_a_connection_that_belongs_to_a_client_is_not_upgraded() -> None:
    peer = Stage().open()
    peer.ask("POST", f"{QUEUE}/messages", b"x")
    fields = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
              ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
              ("Sec-WebSocket-Protocol", "tmqp")]  # fmt: skip
    assert peer.ask("GET", "/api/v1/ws", None, *fields).status == 409
    bad = [("Sec-WebSocket-Key", "short") if key.endswith("Key") else (key, value)
           for key, value in fields]  # fmt: skip
    assert Stage().open().ask("GET", "/api/v1/ws", None, *bad).status == 400
    old = [(key, "8") if key.endswith("Version") else (key, value) for key, value in fields]
    assert Stage().open().ask("GET", "/api/v1/ws", None, *old).status == 426


@given(st.lists(st.binary(max_size=100), max_size=6))
def test_whatever_comes_ends_at_most_this_connection(chunks: list[bytes]) -> None:
    stage = Stage(HttpLimits(websocket_ping_interval_s=5.0))
    socket = WebSocketPeer(stage).connect("web")
    for chunk in chunks:
        socket.peer.say(chunk)
    stage.sleep(100.0)
    assert socket.peer.over
    assert stage.broker.statistics().sessions == 0
