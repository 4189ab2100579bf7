"""The load on nats-server: its text protocol, core and JetStream."""

from __future__ import annotations

import json
import re
import socket
from typing import Final

from tmqp_bench.broker.counting import FixedSize, Pattern

__all__ = ["Asker", "Publisher", "StreamSubscriber", "Subscriber", "create_stream"]

_SUBJECT: Final = "bench"
_CONNECT: Final = b'CONNECT {"verbose":false,"pedantic":false,"headers":true}\r\nPING\r\n'
_ACK_SUBJECT: Final = re.compile(rb"(\$JS\.ACK\.\S+) ")


def _connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(10.0)
    sock.sendall(_CONNECT)
    _read_until(sock, b"PONG\r\n")
    return sock


def _read_until(sock: socket.socket, end: bytes) -> bytes:
    data = b""
    while end not in data:
        piece = sock.recv(65_536)
        if not piece:
            raise ConnectionError("nats-server closed the connection")
        data += piece
    return data


def _request(sock: socket.socket, subject: str, body: dict[str, object]) -> None:
    text = json.dumps(body).encode()
    sock.sendall(
        b"SUB _INBOX.setup 9\r\nPUB %s _INBOX.setup %d\r\n%s\r\n"
        % (subject.encode(), len(text), text)
    )
    answer = _read_until(sock, b"}\r\n")
    if b'"error"' in answer:
        raise ConnectionError(f"nats-server answered {answer[:300]!r}")
    sock.sendall(b"UNSUB 9\r\n")


def create_stream(port: int, *, on_file: bool) -> None:
    """Create a stream and a consumer that delivers to the subject ``deliver``."""
    sock = _connect(port)
    _request(
        sock,
        "$JS.API.STREAM.CREATE.S",
        {
            "name": "S",
            "subjects": [_SUBJECT],
            "storage": "file" if on_file else "memory",
            "retention": "workqueue",
            "max_msgs": -1,
            "max_bytes": -1,
            "num_replicas": 1,
        },
    )
    _request(
        sock,
        "$JS.API.CONSUMER.DURABLE.CREATE.S.C",
        {
            "stream_name": "S",
            "config": {
                "durable_name": "C",
                "deliver_subject": "deliver",
                "ack_policy": "explicit",
                "deliver_policy": "all",
                "max_ack_pending": 100_000,
                "ack_wait": 60_000_000_000,
            },
        },
    )
    sock.close()


class Publisher:
    """Publishes; with ``confirms`` each message asks JetStream for its acknowledge."""

    def __init__(self, port: int, payload_bytes: int, *, confirms: bool) -> None:
        self.socket = _connect(port)
        self.confirms = confirms
        reply = b""
        if confirms:
            self.socket.sendall(b"SUB _INBOX.acks 1\r\n")
            reply = b"_INBOX.acks "
        head = b"PUB %s %s%d\r\n" % (_SUBJECT.encode(), reply, payload_bytes)
        self._piece = head + b"x" * payload_bytes + b"\r\n"
        self._counter = Pattern(b"MSG _INBOX.acks")

    def messages(self, count: int) -> bytes:
        return self._piece * count

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data) if self.confirms else 0


class Asker:
    """Sends requests; a confirm is the reply."""

    confirms = True

    def __init__(self, port: int, payload_bytes: int) -> None:
        self.socket = _connect(port)
        self.socket.sendall(b"SUB _INBOX.reply 1\r\n")
        head = b"PUB %s _INBOX.reply %d\r\n" % (_SUBJECT.encode(), payload_bytes)
        self._piece = head + b"x" * payload_bytes + b"\r\n"
        self._counter = FixedSize(len(b"MSG _INBOX.reply 1 0\r\n\r\n"))

    def messages(self, count: int) -> bytes:
        return self._piece * count

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data)


class Subscriber:
    """Takes what is published; with ``replies`` it answers each message with an empty one."""

    def __init__(self, port: int, payload_bytes: int, *, replies: bool = False) -> None:
        self.socket = _connect(port)
        self.socket.sendall(b"SUB %s 1\r\nPING\r\n" % _SUBJECT.encode())
        _read_until(self.socket, b"PONG\r\n")
        reply = b"_INBOX.reply " if replies else b""
        head = b"MSG %s 1 %s%d\r\n" % (_SUBJECT.encode(), reply, payload_bytes)
        self._counter = FixedSize(len(head) + payload_bytes + 2)
        self._answer = b"PUB _INBOX.reply 0\r\n\r\n" if replies else b""

    def received(self, data: bytes) -> tuple[int, bytes]:
        count = self._counter.count(data)
        return count, self._answer * count


class StreamSubscriber:
    """Takes what JetStream delivers and acknowledges each message."""

    def __init__(self, port: int) -> None:
        self.socket = _connect(port)
        self.socket.sendall(b"SUB deliver 1\r\nPING\r\n")
        _read_until(self.socket, b"PONG\r\n")
        self._rest = b""

    def received(self, data: bytes) -> tuple[int, bytes]:
        data = self._rest + data
        found = _ACK_SUBJECT.findall(data)
        if not found:
            self._rest = data
            return 0, b""
        # What is behind the last subject found may be the beginning of the next.
        self._rest = data[data.rindex(found[-1]) + len(found[-1]) :]
        return len(found), b"".join([b"PUB %s 0\r\n\r\n" % subject for subject in found])
