"""One adapter for each door: how its clients send and receive, and what its protocol can say.

A door that is added needs one more, in :data:`ADAPTERS`.  ``gives`` and ``shows`` are what the
table of docs/doors/README.md says of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, Request
from wsproto.events import Event as WebSocketEvent

from tests.tmqp_server.doors.http.stage import HttpPeer
from tests.tmqp_server.doors.hub_stage import StagePeer
from tests.tmqp_server.doors.matrix_stage import MatrixStage
from tests.tmqp_server.peers import ack, greeting, operation, push
from tests.tmqp_server.toy_door import FIELDS, lines_of
from tmqp.codec import FrameDecoder
from tmqp.constants import OP_CREATE_QUEUE, OP_JOIN, PREAMBLE, MessageType
from tmqp.frames import Frame
from tmqp.models import QueueOptions
from tmqp_server.doors.letters import Letter, Property, frame_of_letter, letter_of_frame
from tmqp_wires.goms import Dialect
from tmqp_wires.goms.codec import request_line
from tmqp_wires.nsq.writing import fin, mpub, pub, rdy, sub
from tmqp_wires.smq.codec import consume_line, done_line, publish_line

__all__ = ["ADAPTERS", "EVERYTHING", "Adapter", "Case", "Consumer", "declare"]

#: The channel that all use, and its queue.
CHANNEL: Final = "letters"
#: All that a message can say beside its body: attributes of a letter, its ``id`` and ``source``,
#: and ``lifetime``, a time to live in the queue.
EVERYTHING: Final = frozenset({*FIELDS, "headers", "properties", "id", "source", "lifetime"})
_MOST: Final = 100


class Case:
    """A message.

    :param line: how a protocol of lines shows the body, if not as it is.
    :param text: how a protocol of texts does.
    :param lifetime_ms: how long it lives, 0 for ever.
    """

    def __init__(
        self,
        name: str,
        letter: Letter,
        line: bytes | None = None,
        text: bytes | None = None,
        lifetime_ms: int = 0,
    ) -> None:
        self.name = name
        self.letter = letter
        self.line = letter.body if line is None else line
        self.text = letter.body if text is None else text
        self.lifetime_ms = lifetime_ms
        letter.message_id = f"id-{name}"


class Consumer:
    """A client that waits for messages."""

    def take(self) -> list[Letter]:
        """What has come since the last time, every message of which is acknowledged."""
        raise NotImplementedError


class Adapter:
    """One door as the matrix sees it.

    Attributes: ``name``; ``tables``, its tables of ``[[doors]]``; ``gives``, what its clients can
    say of a message, ``shows``, what they are told; ``status``, of the queues from which they take;
    ``sends`` and ``receives``, whether they do; ``of_frames``, its messages are those of TMQP, and
    go as they are to clients that read TMQP's.
    """

    name: ClassVar[str]
    tables: ClassVar[Sequence[dict[str, Any]]] = ()
    gives: ClassVar[frozenset[str]] = frozenset()
    shows: ClassVar[frozenset[str]] = frozenset()
    status: ClassVar[str] = "push"
    sends: ClassVar[bool] = True
    receives: ClassVar[bool] = True
    of_frames: ClassVar[bool] = False

    def can_send(self, case: Case) -> bool:
        """Whether the protocol can say its body."""
        return True

    def body(self, case: Case) -> bytes:
        """Its body as consumers get it."""
        return case.letter.body

    def said(self, case: Case, letter: Letter, unix_ms: int) -> None:
        """Add what the door says of a message that a client of its own sends at this time."""

    def shown(self, letter: Letter, unix_ms: int) -> None:
        """Add what the door tells of a message, delivered at this time, that does not say it."""

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """Send messages, in one chunk if they are in a row, and see that they are confirmed."""
        raise NotImplementedError

    def consumer(self, stage: MatrixStage) -> Consumer:
        """A new consumer."""
        raise NotImplementedError


def declare(stage: MatrixStage, status: str) -> None:
    """Have an administrator make the queue, durable."""
    peer = _TmqpPeer(_Wire(stage, "tmqp"), "administrator")
    headers = [("Queue-Id", "0"), ("Queue-Status", status)]
    body = QueueOptions(durable=True, request_acknowledge=True).to_json()
    peer.ask(operation(OP_CREATE_QUEUE, CHANNEL, body, headers=headers))


# --- TMQP, over TCP and in WebSocket messages ----------------------------------------------------


class _Wire:
    """A connection with a door."""

    def __init__(self, stage: MatrixStage, door: str) -> None:
        self._peer = StagePeer(stage, stage.dial(door))

    def say(self, *parts: bytes) -> None:
        """Send, as one chunk."""
        self._peer.say(*parts)

    def take(self) -> bytes:
        """What has come since the last time."""
        return self._peer.take()

    def hang_up(self) -> None:
        """Close the connection."""
        self._peer.hang_up()


class _Socket(_Wire):
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

    def __init__(self, wire: _Wire, client_id: str) -> None:
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
            count = [("Count", str(_MOST))]
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

    def wire(self, stage: MatrixStage) -> _Wire:
        """A new connection."""
        return _Wire(stage, "tmqp")

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
        """A header says how long it lives."""
        if case.lifetime_ms:
            letter.headers.append(("Message-Timeout", str(case.lifetime_ms)))

    def _frame(self, case: Case) -> Frame:
        letter = case.letter
        high = letter.high_priority
        headers = list(frame_of_letter(letter, high_priority=high).headers)
        if case.lifetime_ms:
            headers.append(("Message-Timeout", str(case.lifetime_ms)))
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
    tables = ({"protocol": "http"},)

    def wire(self, stage: MatrixStage) -> _Wire:
        """A new connection."""
        return _Socket(stage)


# --- HTTP ----------------------------------------------------------------------------------------


class _HttpConsumer(Consumer):
    """Asks for messages, by POST."""

    def __init__(self, stage: MatrixStage) -> None:
        self._peer = HttpPeer(stage, stage.dial("http"))

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        answer = self._peer.ask("POST", f"{_QUEUE}/deliveries?max={_MOST}&ack=manual", b"")
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
    tables = ({"protocol": "http"},)
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
        if case.lifetime_ms:
            letter.headers.append(("Message-Timeout", str(case.lifetime_ms)))

    def _request(self, case: Case) -> bytes:
        letter = case.letter
        high = letter.high_priority
        target = f"{_QUEUE}/messages?id={letter.message_id}&priority={'high' if high else 'normal'}"
        if case.lifetime_ms:
            target += f"&expires_ms={case.lifetime_ms}"
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
        self._wire = _Wire(stage, "nsq")
        self._wire.say(b"  V2", sub(CHANNEL.encode(), b"archive"), rdy(_MOST))
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
    tables = ({"protocol": "nsq"},)
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
        wire = _Wire(stage, "nsq")
        wire.say(b"  V2")
        topic, bodies = CHANNEL.encode(), [case.letter.body for case in cases]
        for command in [mpub(topic, bodies)] if in_a_row else [pub(topic, each) for each in bodies]:
            wire.say(command)
            assert wire.take() == _OK
        wire.hang_up()

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _NsqConsumer(stage)


class NsqdHttp(Nsq):
    """nsqd's HTTP interface, by which messages are published alone."""

    name = "nsqd-http"
    tables = ({"protocol": "nsqd-http"},)
    shows = frozenset()
    receives = False

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; those in a row are one ``/mpub``."""
        bodies = [case.letter.body for case in cases]
        if in_a_row:
            _, _, rest = mpub(CHANNEL.encode(), bodies).partition(b"\n")
            peer = HttpPeer(stage, stage.dial("nsqd-http"))
            answers = [peer.ask("POST", f"/mpub?topic={CHANNEL}&binary=true", rest[4:])]
        else:
            answers = [
                HttpPeer(stage, stage.dial("nsqd-http")).ask("POST", f"/pub?topic={CHANNEL}", body)
                for body in bodies
            ]
        assert [(each.status, each.body) for each in answers] == [(200, b"OK")] * len(answers)


# --- Simple MQ -----------------------------------------------------------------------------------


class _SmqConsumer(Consumer):
    """Consumes the queue."""

    def __init__(self, stage: MatrixStage) -> None:
        self._wire = _Wire(stage, "smq")
        self._wire.say(consume_line(CHANNEL.encode()))

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        lines = self._wire.take().split(b"\n")
        assert lines.pop() == b"", "each line is whole"
        if lines:
            self._wire.say(done_line(CHANNEL.encode(), len(lines)))
        return [Letter(line) for line in lines]


class Smq(Adapter):
    """Simple MQ."""

    name = "smq"
    tables = ({"protocol": "smq", "options": {"durable": True}},)

    def can_send(self, case: Case) -> bool:
        """A message is a line."""
        return b"\n" not in case.letter.body

    def body(self, case: Case) -> bytes:
        """A message is a line."""
        return case.line

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; nothing is confirmed."""
        wire = _Wire(stage, "smq")
        lines = [publish_line(CHANNEL.encode(), case.letter.body) for case in cases]
        for chunk in [lines] if in_a_row else [[line] for line in lines]:
            wire.say(*chunk)
        assert wire.take() == b""
        wire.hang_up()

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _SmqConsumer(stage)


# --- goMS ----------------------------------------------------------------------------------------


class _GomsConsumer(Consumer):
    """Registers to the topic."""

    def __init__(self, stage: MatrixStage, door: str) -> None:
        self._wire = _Wire(stage, door)
        self._wire.say(request_line(Dialect.MESSAGETYPE, "register", [CHANNEL]))

    def take(self) -> list[Letter]:
        """See ``Consumer``: the protocol has no word for it."""
        found: list[Letter] = []
        for line in self._wire.take().splitlines():
            said = json.loads(line)
            assert (said["messagetype"], said["topics"]) == ("message", [CHANNEL])
            found.append(Letter(said["data"].encode()))
        return found


class Goms(Adapter):
    """goMS over TCP."""

    name = "goms"
    tables = (
        {
            "protocol": "goms",
            "listen": ["127.0.0.1:55545", "udp://127.0.0.1:55545"],
            "options": {"topics": [CHANNEL]},
        },
    )
    door: ClassVar[str] = "goms"

    def can_send(self, case: Case) -> bool:
        """A message is a text."""
        return case.text == case.letter.body

    def body(self, case: Case) -> bytes:
        """A message is a text."""
        return case.text

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; nothing is confirmed."""
        wire = _Wire(stage, self.door)
        lines = [
            request_line(Dialect.MESSAGETYPE, "send", [CHANNEL], case.letter.body.decode())
            for case in cases
        ]
        whole = in_a_row and self.door == "goms"
        for chunk in [lines] if whole else [[line] for line in lines]:
            wire.say(*chunk)
        assert wire.take() == b""
        wire.hang_up()

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _GomsConsumer(stage, self.door)


class GomsDatagrams(Goms):
    """goMS over UDP."""

    name = "goms, UDP"
    door = "goms, datagrams"


# --- The tests' own protocol ---------------------------------------------------------------------


class _ToyPeer:
    """A client of the tests' own protocol."""

    def __init__(self, stage: MatrixStage, client_id: str) -> None:
        self._wire = _Wire(stage, "toy")
        self.hang_up = self._wire.hang_up
        self._unread: list[dict[str, Any]] = []
        assert self.ask(do="connect", id=client_id)["is"] == "accepted"

    def say(self, *asked: dict[str, Any]) -> None:
        """Send, as one chunk."""
        self._wire.say(*[json.dumps(each).encode() + b"\n" for each in asked])

    def lines(self) -> list[dict[str, Any]]:
        """What has come since the last time."""
        unread, self._unread = self._unread, []
        return unread + lines_of(self._wire.take())

    def ask(self, **asked: Any) -> dict[str, Any]:
        """Send a line, and read the one that answers it."""
        self.say(asked)
        lines = self.lines()
        (answer,) = [each for each in lines if each["is"] in ("accepted", "reply")]
        self._unread = [each for each in lines if each is not answer]
        return answer


class _ToyConsumer(Consumer):
    """Gets messages as they come, or pulls them."""

    def __init__(self, stage: MatrixStage, *, pulls: bool) -> None:
        self._peer = _ToyPeer(stage, "consumer")
        self._pulls = pulls
        assert self._peer.ask(do="join", channel=CHANNEL)["code"] == 0

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        peer = self._peer
        if self._pulls:
            peer.say({"do": "pull", "channel": CHANNEL, "queue": 0, "count": _MOST})
        found: list[Letter] = []
        for line in peer.lines():
            if line["is"] not in ("message", "pulled"):
                continue
            letter = Letter(base64.b64decode(line["body"]), line["id"], line["source"])
            for field in FIELDS:
                setattr(letter, field, line.get(field, getattr(letter, field)))
            letter.headers = [(key, value) for key, value in line.get("headers", [])]
            letter.properties = [Property(*each) for each in line.get("properties", [])]
            found.append(letter)
            peer.say({"do": "ack", "channel": CHANNEL, "queue": 0, "id": letter.message_id})
        return found


class Toy(Adapter):
    """The tests' own protocol, which can say everything."""

    name = "toy"
    tables = ({"protocol": "toy", "listen": ["127.0.0.1:0"]},)
    gives = EVERYTHING
    shows = EVERYTHING

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``."""
        peer = _ToyPeer(stage, "producer")
        asked = [self._request(case) for case in cases]
        for chunk in [asked] if in_a_row else [[each] for each in asked]:
            peer.say(*chunk)
            answers = [(each["is"], each["positive"]) for each in peer.lines()]
            assert answers == [("confirm", True)] * len(chunk)
        peer.hang_up()

    def _request(self, case: Case) -> dict[str, Any]:
        letter = case.letter
        asked: dict[str, Any] = {field: getattr(letter, field) for field in FIELDS}
        asked.update(do="push", channel=CHANNEL, queue=0, id=letter.message_id)
        asked["body"] = base64.b64encode(letter.body).decode()
        asked["headers"] = letter.headers
        asked["properties"] = [[each.name, each.kind, each.value] for each in letter.properties]
        if case.lifetime_ms:
            asked["ttl_ms"] = case.lifetime_ms
        return asked

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _ToyConsumer(stage, pulls=self.status == "pull")


class ToyPull(Toy):
    """The same, by pulling."""

    name = "toy, pull"
    sends = False
    status = "pull"


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
    Toy,
    ToyPull,
)
#: One for each door, and for each way in which its clients take messages.
ADAPTERS: Final[tuple[Adapter, ...]] = tuple([make() for make in _MAKE])
