"""The load on our own broker: pushes, deliveries, acknowledges, direct messages.

Everything is encoded beforehand.  A delivery is the pushed message with two bytes changed, so all
of one load have the same size, and the id stands at the same place in each.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Final

from tmqp.codec import FrameDecoder
from tmqp.constants import (
    OP_CREATE_QUEUE,
    OP_JOIN,
    TYPE_ACKNOWLEDGE,
    TYPE_DIRECT_MESSAGE,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_SERVER,
    TYPE_TERMINATE,
)
from tmqp.extensions import (
    HEADER_CREDIT,
    HEADER_FEED_CHANNEL,
    HEADER_FEED_QUEUE,
    OP_ADD_FEED,
    OP_GRANT_CREDIT,
)
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp_bench.broker.counting import FixedSize, Pattern, Rotation

__all__ = [
    "CHANNEL",
    "QUEUE",
    "CreditedTaker",
    "Puller",
    "Responder",
    "Taker",
    "Teller",
    "create_queue",
    "feed",
    "greet",
    "join",
    "take_one",
]

#: Messages encoded beforehand; they come round again, so a window must be smaller.
_PREPARED: Final = 16_384
_PREAMBLE: Final = b"TMQP/2.0"
CHANNEL: Final = "bench"
QUEUE: Final = 1
_ANSWER_S: Final = 10.0
#: For the first message of a server that has just been started.
_FIRST_S: Final = 60.0


class _Talk:
    """A blocking connection for what comes before the load."""

    def __init__(self, port: int, client_id: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(_ANSWER_S)
        self._decoder = FrameDecoder()
        try:
            self._greet(client_id)
        except BaseException:
            self.socket.close()
            raise

    def _greet(self, client_id: str) -> None:
        hello = Frame.build(TYPE_SERVER, "", 101, ConnectionInformation(client_id).encode())
        self.socket.sendall(_PREAMBLE + hello.raw)
        greeting = b""
        while len(greeting) < len(_PREAMBLE):
            piece = self.socket.recv(len(_PREAMBLE) - len(greeting))
            if not piece:
                raise ConnectionError("the server closed the connection")
            greeting += piece
        self.read(1)

    def read(self, count: int) -> list[Frame]:
        """The next frames."""
        frames: list[Frame] = []
        while len(frames) < count:
            data = self.socket.recv(65_536)
            if not data:
                raise ConnectionError("the server closed the connection")
            frames.extend(self._decoder.feed(data))
        return frames

    def ask(self, frame: Frame) -> Frame:
        """Send a request and return its answer."""
        self.socket.sendall(frame.raw)
        (answer,) = self.read(1)
        if answer.type != TYPE_RESPONSE or answer.content_type != 0:
            raise ConnectionError(f"the server answered {answer!r}")
        return answer


def greet(port: int, client_id: str) -> socket.socket:
    """A connection that is let in."""
    return _Talk(port, client_id).socket


def create_queue(
    port: int, status: str, options: str, channel: str = CHANNEL, queue: int = QUEUE
) -> None:
    """Create the queue that everything goes through, or one of several; ``options`` is a JSON
    object."""
    _ask(port, channel, OP_CREATE_QUEUE, [("Queue-Status", status)], options.encode(), queue)


def feed(port: int, channel: str) -> None:
    """Let the queue that everything goes through copy into the queue of another channel."""
    headers = [(HEADER_FEED_CHANNEL, channel), (HEADER_FEED_QUEUE, str(QUEUE))]
    _ask(port, CHANNEL, OP_ADD_FEED, headers)


def _ask(
    port: int,
    channel: str,
    operation: int,
    headers: list[tuple[str, str]],
    body: bytes = b"",
    queue: int = QUEUE,
) -> None:
    """Have the server do something about a queue."""
    talk = _Talk(port, "creator")
    talk.ask(
        Frame.build(
            TYPE_SERVER,
            channel,
            operation,
            body,
            message_id="ask",
            pending_response=True,
            headers=[("Queue-Id", str(queue)), *headers],
        )
    )
    talk.socket.sendall(Frame.build(TYPE_TERMINATE, "", 0).raw)
    talk.socket.close()


def join(
    port: int, name: str, channel: str = CHANNEL, terms: Sequence[tuple[str, str]] = ()
) -> socket.socket:
    """A connection that has joined a channel; ``terms`` are headers of the join."""
    talk = _Talk(port, name)
    talk.ask(
        Frame.build(
            TYPE_SERVER, channel, OP_JOIN, message_id="join", pending_response=True, headers=terms
        )
    )
    return talk.socket


def take_one(port: int, client_id: str) -> None:
    """Join the channel, wait for a delivery, and go without an answer to it."""
    talk = _Talk(port, client_id)
    talk.socket.sendall(Frame.build(TYPE_SERVER, CHANNEL, OP_JOIN, message_id="join").raw)
    talk.socket.settimeout(_FIRST_S)
    while not any(frame.type == TYPE_QUEUE_MESSAGE for frame in talk.read(1)):
        pass
    talk.socket.close()


class Teller:
    """A producer: pushes into the queue, or sends direct messages and awaits their responses."""

    def __init__(
        self,
        port: int,
        name: str,
        payload_bytes: int,
        *,
        confirms: bool,
        target: str = "",
        channel: str = CHANNEL,
    ) -> None:
        self.socket = greet(port, name)
        self.confirms = confirms
        kind = TYPE_DIRECT_MESSAGE if target else TYPE_QUEUE_MESSAGE
        prepared = min(_PREPARED, max(64, 67_108_864 // (payload_bytes + 64)))
        frames = [
            Frame.build(
                kind,
                target or channel,
                QUEUE,
                number.to_bytes(4, "big") * (payload_bytes // 4),
                message_id=f"{name[-6:]:->6}{number:026x}",
                source=name,
                pending_acknowledge=confirms and not target,
                pending_response=confirms and bool(target),
            )
            for number in range(prepared)
        ]
        self._rotation = Rotation([frame.raw for frame in frames])
        answered = TYPE_RESPONSE if target else TYPE_ACKNOWLEDGE
        first = frames[0]
        confirm = Frame.build(
            answered,
            name if target else channel,
            0 if target else QUEUE,
            message_id=first.message_id,
            source=target,
        )
        self._counter = FixedSize(len(confirm.raw))

    def messages(self, count: int) -> bytes:
        return self._rotation.take(count)

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data) if self.confirms else 0


class Taker:
    """A consumer of the queue; answers each delivery if the queue wants that.

    ``channel``: where it joins; ``terms``: headers of the join.
    """

    def __init__(
        self,
        port: int,
        name: str,
        producer: str,
        payload_bytes: int,
        *,
        acks: bool,
        channel: str = CHANNEL,
        terms: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.socket = join(port, name, channel, terms)
        mark = "0" * 32
        sample = Frame.build(
            TYPE_QUEUE_MESSAGE,
            channel,
            QUEUE,
            bytes(payload_bytes // 4 * 4),
            message_id=mark,
            source=producer,
        ).raw
        self._size = len(sample)
        self._id_at = sample.index(mark.encode())
        ack = Frame.build(TYPE_ACKNOWLEDGE, channel, QUEUE, message_id=mark, source=name).raw
        self._before, self._after = ack.split(mark.encode())
        #: A connection that has to live as long as this one.
        self.beside: socket.socket | None = None
        self._counter = FixedSize(self._size)
        self._acks = acks
        self._rest = b""

    def received(self, data: bytes) -> tuple[int, bytes]:
        if not self._acks:
            return self._counter.count(data), b""
        data = self._rest + data
        size = self._size
        count = len(data) // size
        self._rest = data[count * size :]
        at, before, after = self._id_at, self._before, self._after
        ids = [data[place + at : place + at + 32] for place in range(0, count * size, size)]
        return count, before + (after + before).join(ids) + after if ids else b""


class CreditedTaker(Taker):
    """The same for one that is sent no more than it has granted; half of that is granted again as
    soon as it is taken.

    :param credit: how many messages may be sent at a time.
    """

    def __init__(
        self, port: int, name: str, producer: str, payload_bytes: int, credit: int
    ) -> None:
        terms = ((HEADER_CREDIT, str(credit)),)
        super().__init__(port, name, producer, payload_bytes, acks=True, terms=terms)
        self._credit = credit
        self._taken = 0
        self._grant = Frame.build(
            TYPE_SERVER, CHANNEL, OP_GRANT_CREDIT, source=name, headers=terms
        ).raw

    def received(self, data: bytes) -> tuple[int, bytes]:
        count, answers = super().received(data)
        self._taken += count
        if self._taken >= self._credit // 2:
            self._taken = 0
            answers += self._grant
        return count, answers


class Puller:
    """A consumer that pulls a batch after the other, and asks again when there was nothing."""

    def __init__(self, port: int, name: str, batch: int) -> None:
        self.socket = join(port, name)  # who has not joined may not pull (F105)
        self._request = Frame.build(
            TYPE_PULL_REQUEST,
            CHANNEL,
            QUEUE,
            message_id="pull",
            source=name,
            headers=[("Count", str(batch))],
        ).raw
        self._answers = Pattern(b"Request-Id:")
        self._ends = Pattern(b"No-Content:")
        self.socket.sendall(self._request)

    def received(self, data: bytes) -> tuple[int, bytes]:
        ends = self._ends.count(data)
        # Every message of a pull says which it belongs to, and so does its end.
        return self._answers.count(data) - ends, self._request * ends


class Responder:
    """Answers every direct message with an empty response."""

    def __init__(self, port: int, name: str, asker: str, payload_bytes: int) -> None:
        self.socket = greet(port, name)
        mark = "0" * 32
        body = bytes(payload_bytes // 4 * 4)
        sample = Frame.build(
            TYPE_DIRECT_MESSAGE, name, QUEUE, body, message_id=mark, source=asker
        ).raw
        self._size = len(sample)
        self._id_at = sample.index(mark.encode())
        answer = Frame.build(TYPE_RESPONSE, asker, 0, message_id=mark, source=name).raw
        self._before, self._after = answer.split(mark.encode())
        self._rest = b""
        time.sleep(0.05)

    def received(self, data: bytes) -> tuple[int, bytes]:
        data = self._rest + data
        size = self._size
        count = len(data) // size
        self._rest = data[count * size :]
        at, before, after = self._id_at, self._before, self._after
        ids = [data[place + at : place + at + 32] for place in range(0, count * size, size)]
        return count, before + (after + before).join(ids) + after if ids else b""
