"""The load on the doors of ZeroMQ, Throttr, goMS and Simple MQ, as their clients put it.

ZeroMQ's PUSH sockets, senders of goMS and producers of Simple MQ hear nothing of their messages:
these are through when they are delivered.  A request of Throttr is through when it is answered.
"""

from __future__ import annotations

import socket
from typing import Final

from tmqp_bench.broker.counting import FixedSize
from tmqp_wires.goms import Dialect
from tmqp_wires.goms.codec import message_line, request_line
from tmqp_wires.smq.codec import consume_line, done_line, publish_line, stats_line
from tmqp_wires.throttr import Request, words
from tmqp_wires.throttr.requests import encode_request
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.frames import message_frames

__all__ = [
    "TOPIC",
    "GomsConsumer",
    "GomsSender",
    "SmqConsumer",
    "SmqProducer",
    "ThrottrClient",
    "ZmtpPull",
    "ZmtpPush",
]

#: What goMS's clients register to; its door must be told.
TOPIC: Final = "bench"
_QUEUE: Final = b"bench"
_VALUE_BYTES: Final = 2
_READ_BYTES: Final = 4_096


def _connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(20.0)
    return sock


def _read(sock: socket.socket) -> bytes:
    data = sock.recv(_READ_BYTES)
    if not data:
        raise ConnectionError("the broker closed the connection")
    return data


def _read_line(sock: socket.socket) -> bytes:
    """A line that is all there is to read."""
    line = b""
    while not line.endswith(b"\n"):
        line += _read(sock)
    return line


def _zmtp(port: int, socket_type: str) -> socket.socket:
    """A connection of a ZeroMQ socket, after the handshake."""
    sock = _connect(port)
    zmtp = ZmtpConnection(ZmtpConfig(socket_type=socket_type), 0.0)
    sock.sendall(zmtp.data_to_send())
    while not zmtp.receive(_read(sock), 0.0):
        sock.sendall(zmtp.data_to_send())
    sock.sendall(zmtp.data_to_send())
    return sock


class _Silent:
    """A producer that hears nothing, and sends one message again and again."""

    confirms = False

    def __init__(self, sock: socket.socket, message: bytes) -> None:
        self.socket = sock
        self._message = message

    def messages(self, count: int) -> bytes:
        return self._message * count

    def confirmed(self, data: bytes) -> int:
        raise ConnectionError(f"the broker said {data[:100]!r}")


class _Fixed:
    """A consumer that answers nothing, of messages that have one size."""

    def __init__(self, sock: socket.socket, size: int) -> None:
        self.socket = sock
        self._counter = FixedSize(size)

    def received(self, data: bytes) -> tuple[int, bytes]:
        return self._counter.count(data), b""


class ZmtpPush(_Silent):
    """A PUSH socket."""

    def __init__(self, port: int, payload_bytes: int) -> None:
        super().__init__(_zmtp(port, "PUSH"), message_frames((b"x" * payload_bytes,)))


class ZmtpPull(_Fixed):
    """A PULL socket."""

    def __init__(self, port: int, payload_bytes: int) -> None:
        super().__init__(_zmtp(port, "PULL"), len(message_frames((bytes(payload_bytes),))))


class GomsSender(_Silent):
    """Sends to the topic."""

    def __init__(self, port: int, payload_bytes: int) -> None:
        line = request_line(Dialect.MESSAGETYPE, "send", [TOPIC], "x" * payload_bytes)
        super().__init__(_connect(port), line)


class GomsConsumer(_Fixed):
    """Is registered to the topic."""

    def __init__(self, port: int, payload_bytes: int) -> None:
        sock = _connect(port)
        # The first registration is answered by nothing, the second by an error.
        sock.sendall(request_line(Dialect.MESSAGETYPE, "register", [TOPIC]) * 2)
        _read_line(sock)
        line = message_line(Dialect.MESSAGETYPE, TOPIC, "x" * payload_bytes)
        super().__init__(sock, len(line))


class SmqProducer(_Silent):
    """Sends into the queue."""

    def __init__(self, port: int, payload_bytes: int) -> None:
        super().__init__(_connect(port), publish_line(_QUEUE, b"x" * payload_bytes))


class SmqConsumer(_Fixed):
    """Takes from the queue, and says so."""

    def __init__(self, port: int, payload_bytes: int) -> None:
        sock = _connect(port)
        sock.sendall(consume_line(_QUEUE) + stats_line())
        _read_line(sock)
        super().__init__(sock, payload_bytes + 1)

    def received(self, data: bytes) -> tuple[int, bytes]:
        count = self._counter.count(data)
        return count, done_line(_QUEUE, count) if count else b""


class ThrottrClient:
    """Counts a key up, request behind request."""

    confirms = True

    def __init__(self, port: int) -> None:
        self.socket = _connect(port)
        insert = Request(words.INSERT, b"key", b"", 1, words.TTL_HOURS, 1)
        self.socket.sendall(encode_request(insert, _VALUE_BYTES))
        if self.socket.recv(1) != words.YES:
            raise ConnectionError("the broker did not make the key")
        update = Request(words.UPDATE, b"key", amount=1, change=words.CHANGE_INCREASE)
        self._request = encode_request(update, _VALUE_BYTES)

    def messages(self, count: int) -> bytes:
        return self._request * count

    def confirmed(self, data: bytes) -> int:
        done = data.count(words.YES)
        if done != len(data):
            raise ConnectionError("the broker refused a request")
        return done
