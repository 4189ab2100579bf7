"""The load on Redis: publish/subscribe, and streams with a consumer group."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from typing import Final

from tmqp_bench.broker.counting import FixedSize, Lines, Rotation
from tmqp_bench.broker.mixture import Mixture, subject

__all__ = [
    "STREAM",
    "Adder",
    "GroupReader",
    "MixedAdder",
    "Publisher",
    "Subscriber",
    "create_groups",
]

#: Where one stream is enough.
STREAM: Final = b"bench"
_GROUP: Final = b"g"
#: In an answer to XREADGROUP: its beginning, with the number of streams; a stream with its name and
#: the number of its entries; the id of an entry; the number of its fields; the length of a text.
_REPLY: Final = re.compile(rb"\*(\d+)\r\n\*2\r\n\$\d+\r\nbench")
_HEAD: Final = re.compile(rb"\*2\r\n\$\d+\r\n(bench[.\d]*)\r\n\*(\d+)\r\n")
_ID: Final = re.compile(rb"\r\n(\d{10,}-\d+)\r\n")
_FIELDS: Final = re.compile(rb"\*(\d+)\r\n")
_TEXT: Final = re.compile(rb"\$(\d+)\r\n")
_BLOCK_MS: Final = 5_000
_COUNT: Final = 512


def _command(*words: bytes) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts.extend([b"$%d\r\n%s\r\n" % (len(word), word) for word in words])
    return b"".join(parts)


def _connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(10.0)
    return sock


def _add(stream: bytes, *fields: bytes) -> bytes:
    return _command(b"XADD", stream, b"MAXLEN", b"~", b"100000", b"*", *fields)


def create_groups(port: int, streams: Sequence[bytes] = (STREAM,)) -> None:
    """Create streams and the consumer group of each."""
    sock = _connect(port)
    for stream in streams:
        sock.sendall(_command(b"XGROUP", b"CREATE", stream, _GROUP, b"$", b"MKSTREAM"))
        if not sock.recv(1_024).startswith(b"+OK"):
            raise ConnectionError("redis-server does not create the group")
    sock.close()


class Publisher:
    """Publishes; Redis answers each message, which is read and not waited for."""

    confirms = False

    def __init__(self, port: int, payload_bytes: int) -> None:
        self.socket = _connect(port)
        self._piece = _command(b"PUBLISH", b"bench", b"x" * payload_bytes)

    def messages(self, count: int) -> bytes:
        return self._piece * count

    def confirmed(self, data: bytes) -> int:
        return 0


class Subscriber:
    """Takes what is published."""

    def __init__(self, port: int, payload_bytes: int) -> None:
        self.socket = _connect(port)
        self.socket.sendall(_command(b"SUBSCRIBE", b"bench"))
        self.socket.recv(1_024)
        size = len(_command(b"message", b"bench", b"x" * payload_bytes))
        self._counter = FixedSize(size)

    def received(self, data: bytes) -> tuple[int, bytes]:
        return self._counter.count(data), b""


class Adder:
    """Adds to the stream; the answer, an id, is the confirm."""

    confirms = True

    def __init__(self, port: int, payload_bytes: int, stream: bytes = STREAM) -> None:
        self.socket = _connect(port)
        self._piece = _add(stream, b"d", b"x" * payload_bytes)
        self._counter = Lines(2)

    def messages(self, count: int) -> bytes:
        return self._piece * count

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data)


class MixedAdder:
    """Adds to one stream after the other; what would be headers are fields."""

    confirms = True

    def __init__(self, port: int, mixture: Mixture) -> None:
        self.socket = _connect(port)
        pieces: list[bytes] = []
        for number, body in enumerate(mixture.bodies):
            fields = [text.encode() for pair in mixture.headers_of(number) for text in pair]
            stream = subject(number % mixture.queues)
            pieces.append(_add(stream, *fields, b"d", body))
        self._rotation = Rotation(pieces)
        self._counter = Lines(2)

    def messages(self, count: int) -> bytes:
        return self._rotation.take(count)

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data)


class GroupReader:
    """Reads streams for the group and acknowledges what it read, a batch at a time.

    :param count: messages of a batch, of each stream.
    """

    def __init__(
        self,
        port: int,
        streams: Sequence[bytes] = (STREAM,),
        consumer: bytes = b"c",
        count: int = _COUNT,
    ) -> None:
        self.socket = _connect(port)
        self._ask = _command(
            *(b"XREADGROUP", b"GROUP", _GROUP, consumer, b"COUNT", b"%d" % count),
            *(b"BLOCK", b"%d" % _BLOCK_MS, b"STREAMS", *streams, *[b">"] * len(streams)),
        )
        self._rest = b""
        self.socket.sendall(self._ask)

    def received(self, data: bytes) -> tuple[int, bytes]:
        data = self._rest + data
        reply = _REPLY.search(data)
        if reply is None:
            if data.endswith(b"*-1\r\n"):  # nothing came in time
                self._rest = b""
                return 0, self._ask
            self._rest = data
            return 0, b""
        heads = [*_HEAD.finditer(data, reply.end(1))]
        if len(heads) < int(reply[1]):
            self._rest = data
            return 0, b""
        ends = [head.start() for head in heads[1:]] + [len(data)]
        found = [
            _ID.findall(data, head.end() - 2, end) for head, end in zip(heads, ends, strict=True)
        ]
        count = sum([len(ids) for ids in found])
        last = found[-1][-1] if found[-1] else b""
        whole = count == sum([int(head[2]) for head in heads])
        if not whole or not _ends(data, data.rindex(last) + len(last) + 2):
            self._rest = data
            return 0, b""
        self._rest = b""
        answers = [
            _command(b"XACK", head[1], _GROUP, *ids) for head, ids in zip(heads, found, strict=True)
        ]
        return count, b"".join(answers) + self._ask


def _ends(data: bytes, at: int) -> bool:
    """Whether the fields of an entry, which begin there, have come to their end."""
    fields = _FIELDS.match(data, at)
    if fields is None:
        return False
    at = fields.end()
    for _ in range(int(fields[1])):
        text = _TEXT.match(data, at)
        if text is None:
            return False
        at = text.end() + int(text[1]) + 2
    return at <= len(data)
