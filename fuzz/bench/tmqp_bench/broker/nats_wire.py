"""The load on nats-server: its text protocol, core and JetStream."""

from __future__ import annotations

import itertools
import json
import re
import socket
from collections.abc import Sequence
from typing import Final

from tmqp_bench.broker.counting import FixedSize, Pattern, Rotation
from tmqp_bench.broker.mixture import Mixture, subject

__all__ = [
    "Asker",
    "MixedPublisher",
    "MixedSubscriber",
    "Publisher",
    "StreamSubscriber",
    "Subscriber",
    "create_stream",
    "delivery",
]

_SUBJECT: Final = b"bench"
#: How the acknowledgements of JetStream begin that come to a publisher.
_ACKS: Final = b"MSG _INBOX.acks."
_NUMBERS: Final = itertools.count()
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


def delivery(name: bytes) -> bytes:
    """The subject that JetStream delivers to for the consumer of another."""
    return b"deliver." + name


def create_stream(
    port: int,
    *,
    on_file: bool,
    subjects: Sequence[bytes] = (_SUBJECT,),
    shared: bool = False,
    together: bool = False,
) -> None:
    """Create a stream of all these subjects, and a consumer of each.

    :param shared: those who listen to what a consumer delivers share it, as the queue ``all``.
    :param together: there is only one consumer, which delivers to where that of ``bench`` would.
    """
    sock = _connect(port)
    _request(
        sock,
        "$JS.API.STREAM.CREATE.S",
        {
            "name": "S",
            "subjects": [each.decode() for each in subjects],
            "storage": "file" if on_file else "memory",
            "retention": "workqueue",
            "max_msgs": -1,
            "max_bytes": -1,
            "num_replicas": 1,
        },
    )
    for number, each in enumerate([_SUBJECT] if together else subjects):
        config = {
            "durable_name": f"C{number}",
            "deliver_subject": delivery(each).decode(),
            "ack_policy": "explicit",
            "deliver_policy": "all",
            "max_ack_pending": 100_000,
            "ack_wait": 60_000_000_000,
        }
        if not together:
            config["filter_subject"] = each.decode()
        if shared:
            config["deliver_group"] = "all"
        path = f"$JS.API.CONSUMER.DURABLE.CREATE.S.C{number}"
        _request(sock, path, {"stream_name": "S", "config": config})
    sock.close()


def _await_acks(sock: socket.socket) -> bytes:
    """Listen for JetStream's acknowledges; returns what a message says to have one."""
    inbox = b"_INBOX.acks.%d" % next(_NUMBERS)
    sock.sendall(b"SUB %s 1\r\n" % inbox)
    return inbox + b" "


class Publisher:
    """Publishes; with ``confirms`` each message asks JetStream for its acknowledgement."""

    def __init__(
        self, port: int, payload_bytes: int, *, confirms: bool, subject: bytes = _SUBJECT
    ) -> None:
        self.socket = _connect(port)
        self.confirms = confirms
        reply = _await_acks(self.socket) if confirms else b""
        head = b"PUB %s %s%d\r\n" % (subject, reply, payload_bytes)
        self._piece = head + b"x" * payload_bytes + b"\r\n"
        self._counter = Pattern(_ACKS)

    def messages(self, count: int) -> bytes:
        return self._piece * count

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data) if self.confirms else 0


class MixedPublisher:
    """Publishes messages that differ, to one subject after the other."""

    def __init__(self, port: int, mixture: Mixture, *, confirms: bool) -> None:
        self.socket = _connect(port)
        self.confirms = confirms
        reply = _await_acks(self.socket) if confirms else b""
        pieces: list[bytes] = []
        for number, body in enumerate(mixture.bodies):
            name = subject(number % mixture.queues)
            headers = mixture.headers_of(number)
            if headers:
                lines = [b"NATS/1.0", *[f"{key}: {value}".encode() for key, value in headers]]
                block = b"\r\n".join(lines) + b"\r\n\r\n"
                sizes = (len(block), len(block) + len(body))
                pieces.append(b"HPUB %s %s%d %d\r\n" % (name, reply, *sizes) + block)
            else:
                pieces.append(b"PUB %s %s%d\r\n" % (name, reply, len(body)))
            pieces[-1] += body + b"\r\n"
        self._rotation = Rotation(pieces)
        self._counter = Pattern(_ACKS)

    def messages(self, count: int) -> bytes:
        return self._rotation.take(count)

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data) if self.confirms else 0


class Asker:
    """Sends requests; a confirm is the reply."""

    confirms = True

    def __init__(self, port: int, payload_bytes: int) -> None:
        self.socket = _connect(port)
        self.socket.sendall(b"SUB _INBOX.reply 1\r\n")
        head = b"PUB %s _INBOX.reply %d\r\n" % (_SUBJECT, payload_bytes)
        self._piece = head + b"x" * payload_bytes + b"\r\n"
        self._counter = FixedSize(len(b"MSG _INBOX.reply 1 0\r\n\r\n"))

    def messages(self, count: int) -> bytes:
        return self._piece * count

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data)


def _listen(port: int, subject: bytes, group: bytes = b"") -> socket.socket:
    """A connection that is subscribed, with others of a group where one is named."""
    sock = _connect(port)
    sock.sendall(b"SUB %s 1\r\nPING\r\n" % b" ".join([subject, *[group] * bool(group)]))
    _read_until(sock, b"PONG\r\n")
    return sock


class MixedSubscriber:
    """Takes what is published to all the subjects."""

    def __init__(self, port: int) -> None:
        self.socket = _listen(port, b"bench.*")
        self._counter = Pattern(b"MSG bench.")

    def received(self, data: bytes) -> tuple[int, bytes]:
        return self._counter.count(data), b""


class Subscriber:
    """Takes what is published; with ``replies`` it answers each message with an empty one."""

    def __init__(
        self, port: int, payload_bytes: int, *, replies: bool = False, subject: bytes = _SUBJECT
    ) -> None:
        self.socket = _listen(port, subject)
        reply = b"_INBOX.reply " if replies else b""
        head = b"MSG %s 1 %s%d\r\n" % (subject, reply, payload_bytes)
        #: A connection that has to live as long as this one.
        self.beside: socket.socket | None = None
        self._counter = FixedSize(len(head) + payload_bytes + 2)
        self._answer = b"PUB _INBOX.reply 0\r\n\r\n" if replies else b""

    def received(self, data: bytes) -> tuple[int, bytes]:
        count = self._counter.count(data)
        return count, self._answer * count


class StreamSubscriber:
    """Takes what JetStream delivers and acknowledges each message."""

    def __init__(self, port: int, subject: bytes = _SUBJECT, group: bytes = b"") -> None:
        self.socket = _listen(port, delivery(subject), group)
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
