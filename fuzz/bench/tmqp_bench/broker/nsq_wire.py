"""The load on a server that speaks NSQ: PUB or MPUB, and a consumer that finishes each message."""

from __future__ import annotations

import socket
from collections import deque
from typing import Final

from tmqp_bench.broker.counting import FixedSize
from tmqp_wires.nsq.writing import (
    MAGIC,
    MESSAGE_HEAD_BYTES,
    OK,
    identify,
    mpub,
    pub,
    rdy,
    sub,
)

__all__ = ["Consumer", "Publisher", "make_channel"]

_TOPIC: Final = b"bench"
_CHANNEL: Final = b"channel"
_ID_BYTES: Final = 16


def _connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(20.0)
    sock.sendall(MAGIC + identify({"client_id": "bench"}))
    _expect_ok(sock)
    return sock


def _expect_ok(sock: socket.socket) -> None:
    answer = b""
    while len(answer) < len(OK):
        piece = sock.recv(len(OK) - len(answer))
        if not piece:
            raise ConnectionError(f"the broker closed the connection after {answer!r}")
        answer += piece
    if answer != OK:
        raise ConnectionError(f"the broker answered {answer!r}")


def make_channel(port: int) -> None:
    """Make the topic and its channel, with nobody to consume it."""
    sock = _connect(port)
    sock.sendall(sub(_TOPIC, _CHANNEL))
    _expect_ok(sock)
    sock.close()


class Publisher:
    """Publishes so many messages with each MPUB, or one with each PUB."""

    def __init__(self, port: int, payload_bytes: int, batch: int) -> None:
        self.socket = _connect(port)
        self.confirms = True
        self._bodies = [b"x" * payload_bytes] * batch
        self._whole = self._command(batch)
        #: How many messages each answer confirms that has not come.
        self._unanswered: deque[int] = deque()
        self._counter = FixedSize(len(OK))

    def _command(self, count: int) -> bytes:
        bodies = self._bodies[:count]
        return pub(_TOPIC, bodies[0]) if count == 1 else mpub(_TOPIC, bodies)

    def messages(self, count: int) -> bytes:
        batch = len(self._bodies)
        whole, rest = divmod(count, batch)
        self._unanswered.extend([batch] * whole)
        data = self._whole * whole
        if rest:
            self._unanswered.append(rest)
            data += self._command(rest)
        return data

    def confirmed(self, data: bytes) -> int:
        return sum([self._unanswered.popleft() for _ in range(self._counter.count(data))])


class Consumer:
    """Takes messages from the channel, and finishes each."""

    def __init__(self, port: int, payload_bytes: int, ready: int) -> None:
        self.socket = _connect(port)
        self.socket.sendall(sub(_TOPIC, _CHANNEL))
        _expect_ok(self.socket)
        self.socket.sendall(rdy(ready))
        self._size = MESSAGE_HEAD_BYTES + payload_bytes
        self._rest = b""

    def received(self, data: bytes) -> tuple[int, bytes]:
        data = self._rest + data
        size = self._size
        whole = len(data) // size
        self._rest = data[whole * size :]
        first = MESSAGE_HEAD_BYTES - _ID_BYTES
        pieces = [
            b"FIN %s\n" % data[at : at + _ID_BYTES] for at in range(first, whole * size, size)
        ]
        return whole, b"".join(pieces)
