"""The load on Redis: publish/subscribe, and streams with a consumer group."""

from __future__ import annotations

import re
import socket
from typing import Final

from tmqp_bench.broker.counting import FixedSize, Lines

__all__ = ["Adder", "GroupReader", "Publisher", "Subscriber", "create_group"]

_ID: Final = re.compile(rb"\r\n(\d{10,}-\d+)\r\n")
_HEAD: Final = re.compile(rb"\*1\r\n\*2\r\n\$5\r\nbench\r\n\*(\d+)\r\n")
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


def create_group(port: int) -> None:
    """Create the stream and its consumer group."""
    sock = _connect(port)
    sock.sendall(_command(b"XGROUP", b"CREATE", b"bench", b"g", b"$", b"MKSTREAM"))
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

    def __init__(self, port: int, payload_bytes: int) -> None:
        self.socket = _connect(port)
        self._piece = _command(
            b"XADD", b"bench", b"MAXLEN", b"~", b"100000", b"*", b"d", b"x" * payload_bytes
        )
        self._counter = Lines(2)

    def messages(self, count: int) -> bytes:
        return self._piece * count

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data)


class GroupReader:
    """Reads the stream for the group and acknowledges what it read, a batch at a time."""

    def __init__(self, port: int, payload_bytes: int) -> None:
        self.socket = _connect(port)
        self._ask = _command(
            *(b"XREADGROUP", b"GROUP", b"g", b"c", b"COUNT", b"%d" % _COUNT),
            *(b"BLOCK", b"%d" % _BLOCK_MS, b"STREAMS", b"bench", b">"),
        )
        self._payload = payload_bytes
        self._rest = b""
        self.socket.sendall(self._ask)

    def received(self, data: bytes) -> tuple[int, bytes]:
        data = self._rest + data
        head = _HEAD.search(data)
        if head is None:
            if data.endswith(b"*-1\r\n"):  # nothing came in time
                self._rest = b""
                return 0, self._ask
            self._rest = data
            return 0, b""
        wanted = int(head[1])
        ids = _ID.findall(data, head.end() - 2)
        # The last message ends with its payload.
        if len(ids) < wanted or not self._ends(data, ids[-1]):
            self._rest = data
            return 0, b""
        self._rest = b""
        return wanted, _command(b"XACK", b"bench", b"g", *ids) + self._ask

    def _ends(self, data: bytes, last: bytes) -> bool:
        entry = b"*2\r\n$1\r\nd\r\n$%d\r\n" % self._payload
        return len(data) >= data.rindex(last) + len(last) + 2 + len(entry) + self._payload + 2
