"""One adapter for each door: how its clients send and receive, and what its protocol can say.

A door that is added needs one more, in :data:`ADAPTERS`.  ``gives`` and ``shows`` are what the
table of docs/doors/README.md says of it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Final

from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, Request
from wsproto.events import Event as WebSocketEvent

from tests.tmqp_server.doors.http.stage import HttpPeer
from tests.tmqp_server.doors.matrix_openwire import Openwire
from tests.tmqp_server.doors.matrix_parts import (
    CHANNEL,
    EVERYTHING,
    MOST,
    Adapter,
    Case,
    Consumer,
    Wire,
    one_table,
    times,
)
from tests.tmqp_server.doors.matrix_small import Goms, GomsDatagrams, Smq
from tests.tmqp_server.doors.matrix_stage import MatrixStage
from tests.tmqp_server.doors.matrix_stomp import Stomp
from tests.tmqp_server.doors.matrix_toy import Toy, ToyPull
from tests.tmqp_server.doors.matrix_zmtp import Zmtp
from tests.tmqp_server.peers import ack, greeting, operation, push
from tmqp.codec import FrameDecoder
from tmqp.constants import OP_CREATE_QUEUE, OP_JOIN, PREAMBLE, MessageType
from tmqp.extensions import OP_ADD_FEED
from tmqp.frames import Frame
from tmqp.models import QueueOptions
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.letter_frames import frame_of_letter, letter_of_frame
from tmqp_wires.nsq.writing import dpub, fin, mpub, pub, rdy, sub
from tmqp_wires.throttr import ClientConnection
from tmqp_wires.throttr import Push as ThrottrPush
from tmqp_wires.throttr import Request as ThrottrRequest
from tmqp_wires.throttr.words import PUBLISH, SUBSCRIBE

__all__ = ["ADAPTERS", "declare", "feed"]


def declare(
    stage: MatrixStage, status: str, *, durable: bool = True, channel: str = CHANNEL
) -> None:
    """Have an administrator make the queue."""
    peer = _TmqpPeer(Wire(stage, "tmqp"), "administrator")
    headers = [("Queue-Id", "0"), ("Queue-Status", status)]
    body = QueueOptions(durable=durable, request_acknowledge=True).to_json()
    peer.ask(operation(OP_CREATE_QUEUE, channel, body, headers=headers))
    peer.hang_up()


def feed(stage: MatrixStage, target: str) -> None:
    """Have an administrator let the queue feed another."""
    peer = _TmqpPeer(Wire(stage, "tmqp"), "feeder")
    headers = [("Queue-Id", "0"), ("Feed-Channel", target), ("Feed-Queue", "0")]
    peer.ask(operation(OP_ADD_FEED, CHANNEL, headers=headers))


# --- TMQP, over TCP and in WebSocket messages ----------------------------------------------------


class _Socket(Wire):
    """The same in WebSocket messages."""

    def __init__(self, stage: MatrixStage) -> None:
        super().__init__(stage, "http")
        self._machine = WSConnection(ConnectionType.CLIENT)
        hello = Request(host="here", target="/api/v1/ws", subprotocols=["tmqp"])
        self._peer.say(self._machine.send(hello))
        self._events()

    def _events(self) -> list[WebSocketEvent]:
        data = self._peer.take()
        if data:
            self._machine.receive_data(data)
        return list(self._machine.events())

    def say(self, *parts: bytes) -> None:
        """Send, as one message."""
        self._peer.say(self._machine.send(BytesMessage(data=b"".join(parts))))

    def take(self) -> bytes:
        """What has come since the last time."""
        events = self._events()
        return b"".join([bytes(each.data) for each in events if isinstance(each, BytesMessage)])


class _TmqpPeer:
    """A TMQP client."""

    def __init__(self, wire: Wire, client_id: str) -> None:
        self._wire = wire
        self.hang_up = wire.hang_up
        self._decoder = FrameDecoder()
        self._unread: list[Frame] = []
        wire.say(greeting(client_id))
        (accepted,) = self._decoder.feed(wire.take().removeprefix(PREAMBLE))
        assert accepted.content_type == 202

    def say(self, *frames: Frame) -> None:
        """Send, as one chunk."""
        self._wire.say(*[frame.raw for frame in frames])

    def frames(self) -> list[Frame]:
        """What has come since the last time."""
        unread, self._unread = self._unread, []
        return unread + self._decoder.feed(self._wire.take())

    def ask(self, asked: Frame) -> None:
        """Ask for an operation that must succeed."""
        self.say(asked)
        frames = self.frames()
        (answer,) = [each for each in frames if each.type == MessageType.RESPONSE]
        assert answer.content_type == 0
        self._unread = [each for each in frames if each is not answer]


class _TmqpConsumer(Consumer):
    """Gets messages as they come, or pulls them."""

    def __init__(self, peer: _TmqpPeer, *, pulls: bool) -> None:
        self._peer = peer
        self._pulls = pulls
        peer.ask(operation(OP_JOIN, CHANNEL))

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        peer = self._peer
        if self._pulls:
            count = [("Count", str(MOST))]
            peer.say(
                Frame.build(MessageType.PULL_REQUEST, CHANNEL, 0, message_id="p", headers=count)
            )
        frames = [each for each in peer.frames() if each.type == MessageType.QUEUE_MESSAGE]
        found: list[Letter] = []
        for frame in frames:
            if frame.header("No-Content"):
                continue
            if frame.pending_acknowledge:
                peer.say(ack(frame))
            letter = letter_of_frame(frame)
            letter.headers = [pair for pair in letter.headers if pair[0].lower() not in _OF_PULLS]
            found.append(letter)
        return found


#: Headers that a server adds to the messages of a pull.
_OF_PULLS: Final = ("request-id", "count", "index")


class Tmqp(Adapter):
    """TMQP over TCP."""

    name = "tmqp"
    of_frames = True
    gives = EVERYTHING
    shows = EVERYTHING

    def wire(self, stage: MatrixStage) -> Wire:
        """A new connection."""
        return Wire(stage, "tmqp")

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``."""
        peer = _TmqpPeer(self.wire(stage), "producer")
        frames = [self._frame(case) for case in cases]
        for chunk in [frames] if in_a_row else [[frame] for frame in frames]:
            peer.say(*chunk)
            answers = [each for each in peer.frames() if each.type == MessageType.ACKNOWLEDGE]
            assert [each.message_id for each in answers] == [each.message_id for each in chunk]
            assert not any(each.header("Nack-Reason") for each in answers)
        peer.hang_up()

    def said(self, case: Case, letter: Letter, unix_ms: int) -> None:
        """Headers say how long it lives, and until when it waits."""
        letter.headers += times(case)

    def _frame(self, case: Case) -> Frame:
        letter = case.letter
        high = letter.high_priority
        headers = [*frame_of_letter(letter, high_priority=high).headers, *times(case)]
        return push(
            CHANNEL,
            0,
            letter.message_id,
            letter.body,
            source="producer",
            headers=headers,
            high_priority=high,
            pending_acknowledge=True,
        )

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        peer = _TmqpPeer(self.wire(stage), "consumer")
        return _TmqpConsumer(peer, pulls=self.status == "pull")


class TmqpPull(Tmqp):
    """The same, by pull requests."""

    name = "tmqp, pull"
    sends = False
    status = "pull"


class WebSocket(Tmqp):
    """TMQP in WebSocket messages."""

    name = "websocket"
    tables = one_table(protocol="http")

    def wire(self, stage: MatrixStage) -> Wire:
        """A new connection."""
        return _Socket(stage)


# --- HTTP ----------------------------------------------------------------------------------------


class _HttpConsumer(Consumer):
    """Asks for messages, by POST."""

    def __init__(self, stage: MatrixStage) -> None:
        self._peer = HttpPeer(stage, stage.dial("http"))

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        answer = self._peer.ask("POST", f"{_QUEUE}/deliveries?max={MOST}&ack=manual", b"")
        found: list[Letter] = []
        for item in answer.items:
            body = item["text"].encode() if "text" in item else base64.b64decode(item["base64"])
            headers = [(key, value) for key, value in item["headers"]]
            high = item.get("priority") == "high"
            frame = push("c", 0, item["id"], body, headers=headers, high_priority=high)
            letter = letter_of_frame(frame)
            letter.source = item["source"]
            found.append(letter)
            target = f"{_QUEUE}/deliveries/{item['id']}/ack"
            assert self._peer.ask("POST", target, b"").status == 204
        return found


_QUEUE: Final = f"/api/v1/channels/{CHANNEL}/queues/0"


class Http(Adapter):
    """Queues over plain HTTP."""

    name = "http"
    of_frames = True
    tables = one_table(protocol="http")
    gives = EVERYTHING - {"source"}
    shows = EVERYTHING
    status = "pull"

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; requests in a row are pipelined."""
        peer = HttpPeer(stage, stage.dial("http"))
        asked = [self._request(case) for case in cases]
        for chunk in [asked] if in_a_row else [[each] for each in asked]:
            peer.say(*chunk)
            answers = peer.answers("POST")
            assert [each.status for each in answers] == [201] * len(chunk)
        peer.hang_up()

    def said(self, case: Case, letter: Letter, unix_ms: int) -> None:
        """As TMQP does."""
        letter.headers += times(case)

    def _request(self, case: Case) -> bytes:
        letter = case.letter
        high = letter.high_priority
        target = f"{_QUEUE}/messages?id={letter.message_id}&priority={'high' if high else 'normal'}"
        if case.lifetime_ms:
            target += f"&expires_ms={case.lifetime_ms}"
        if case.delay_ms:
            target += f"&delay_ms={case.delay_ms}"
        fields: list[bytes] = []
        for key, value in frame_of_letter(letter, high_priority=high).headers:
            name = key if key == "Content-Type" else f"Tmqp-Header-{key}"
            fields.append(f"{name}: {value}".encode())
        size = b"Content-Length: %d" % len(letter.body)
        head = [f"POST {target} HTTP/1.1".encode(), b"Host: here", size, *fields]
        return b"\r\n".join([*head, b"", b""]) + letter.body

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _HttpConsumer(stage)


# --- NSQ -----------------------------------------------------------------------------------------

_OK: Final = b"\x00\x00\x00\x06\x00\x00\x00\x00OK"


class _NsqConsumer(Consumer):
    """Subscribes to a channel of the topic."""

    def __init__(self, stage: MatrixStage) -> None:
        self._wire = Wire(stage, "nsq")
        self._wire.say(b"  V2", sub(CHANNEL.encode(), b"archive"), rdy(MOST))
        data = self._wire.take()
        assert data.startswith(_OK)
        self._unread = data.removeprefix(_OK)

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        found: list[Letter] = []
        data, self._unread = self._unread + self._wire.take(), b""
        while data:
            size = int.from_bytes(data[:4], "big")
            frame, data = data[8 : 4 + size], data[4 + size :]
            letter = Letter(frame[26:], frame[10:26].decode())
            letter.timestamp_ms = int.from_bytes(frame[:8], "big") // 1_000_000
            assert frame[8:10] == b"\x00\x01", "it is the first attempt"
            self._wire.say(fin(frame[10:26]))
            found.append(letter)
        return found


class Nsq(Adapter):
    """NSQ's TCP protocol."""

    name = "nsq"
    tables = one_table(protocol="nsq")
    gives = frozenset({"delay"})
    shows = frozenset({"timestamp_ms"})

    def can_send(self, case: Case) -> bool:
        """NSQ refuses empty messages."""
        return bool(case.letter.body)

    def said(self, case: Case, letter: Letter, unix_ms: int) -> None:
        """A message has the time of its publication."""
        letter.timestamp_ms = unix_ms

    def shown(self, letter: Letter, unix_ms: int) -> None:
        """A message without a time has that of its delivery."""
        letter.timestamp_ms = letter.timestamp_ms or unix_ms

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; those in a row are one MPUB."""
        wire = Wire(stage, "nsq")
        wire.say(b"  V2")
        topic = CHANNEL.encode()
        if in_a_row:
            commands = [mpub(topic, [case.letter.body for case in cases])]
        else:
            commands = [
                dpub(topic, case.delay_ms, case.letter.body)
                if case.delay_ms
                else pub(topic, case.letter.body)
                for case in cases
            ]
        for command in commands:
            wire.say(command)
            assert wire.take() == _OK
        wire.hang_up()

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _NsqConsumer(stage)


class NsqdHttp(Nsq):
    """nsqd's HTTP interface, by which messages are published alone."""

    name = "nsqd-http"
    tables = one_table(protocol="nsqd-http")
    shows = frozenset()
    receives = False

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; those in a row are one ``/mpub``."""
        if in_a_row:
            _, _, rest = mpub(b"", [case.letter.body for case in cases]).partition(b"\n")
            asked = [(f"/mpub?topic={CHANNEL}&binary=true", rest[4:])]
        else:
            asked = [
                (f"/pub?topic={CHANNEL}&defer={case.delay_ms}", case.letter.body) for case in cases
            ]
        answers = [
            HttpPeer(stage, stage.dial("nsqd-http")).ask("POST", target, body)
            for target, body in asked
        ]
        assert [(each.status, each.body) for each in answers] == [(200, b"OK")] * len(answers)


# --- Throttr -------------------------------------------------------------------------------------


class _ThrottrConsumer(Consumer):
    """Subscribes to the channel."""

    def __init__(self, stage: MatrixStage) -> None:
        self._wire = Wire(stage, "throttr")
        self._client = ClientConnection("7.3", 4)
        self._wire.say(self._client.send(ThrottrRequest(SUBSCRIBE, CHANNEL.encode())))

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        found: list[Letter] = []
        for each in self._client.receive(self._wire.take()):
            if isinstance(each, ThrottrPush):
                assert each.channel == CHANNEL.encode()
                found.append(Letter(each.payload))
            else:
                assert each.ok
        return found


class Throttr(Adapter):
    """Throttr 7.3."""

    name = "throttr"
    tables = one_table(protocol="throttr", options={"dialect": "7.3", "value_bytes": 4})

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; a reply tells whether somebody got it at once."""
        wire = Wire(stage, "throttr")
        client = ClientConnection("7.3", 4)
        sent = [
            client.send(ThrottrRequest(PUBLISH, CHANNEL.encode(), case.letter.body))
            for case in cases
        ]
        for chunk in [sent] if in_a_row else [[each] for each in sent]:
            wire.say(*chunk)
        assert len(wire.take()) == len(cases)
        wire.hang_up()

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _ThrottrConsumer(stage)


_MAKE: Final[tuple[Callable[[], Adapter], ...]] = (
    Tmqp,
    TmqpPull,
    WebSocket,
    Http,
    Nsq,
    NsqdHttp,
    Smq,
    Goms,
    GomsDatagrams,
    Throttr,
    Zmtp,
    Stomp,
    Openwire,
    Toy,
    ToyPull,
)
#: One for each door, and for each way in which its clients take messages.
ADAPTERS: Final[tuple[Adapter, ...]] = tuple([make() for make in _MAKE])
