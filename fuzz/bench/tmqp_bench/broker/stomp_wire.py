"""The load on brokers that speak STOMP 1.2, ActiveMQ for one."""

from __future__ import annotations

import re
import socket
from typing import Final

from tmqp_bench.broker.counting import Pattern

__all__ = ["Sender", "Subscription"]

_DESTINATION: Final = b"/queue/bench"
_ACK: Final = re.compile(rb"\nack:([^\n]+)\n")
#: Of a frame; some brokers write a line feed behind it.
_END: Final = b"\x00"


def _connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(20.0)
    sock.sendall(b"CONNECT\naccept-version:1.2\nhost:localhost\nheart-beat:0,0\n\n\x00")
    answer = sock.recv(4_096)
    if not answer.startswith(b"CONNECTED"):
        raise ConnectionError(f"the broker answered {answer[:200]!r}")
    return sock


class Sender:
    """Sends to the queue; with ``confirms`` each message asks for a receipt."""

    def __init__(self, port: int, payload_bytes: int, *, confirms: bool, persistent: bool) -> None:
        self.socket = _connect(port)
        self.confirms = confirms
        head = b"SEND\ndestination:%s\ncontent-length:%d\n" % (_DESTINATION, payload_bytes)
        if persistent:
            head += b"persistent:true\n"
        if confirms:
            head += b"receipt:r\n"
        self._piece = head + b"\n" + b"x" * payload_bytes + b"\x00\n"
        self._counter = Pattern(b"receipt-id:r")

    def messages(self, count: int) -> bytes:
        return self._piece * count

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data) if self.confirms else 0


class Subscription:
    """Takes from the queue; each message is acknowledged by itself unless ``acks`` is False."""

    def __init__(self, port: int, *, acks: bool) -> None:
        self.socket = _connect(port)
        mode = b"client-individual" if acks else b"auto"
        self.socket.sendall(
            b"SUBSCRIBE\nid:0\ndestination:%s\nack:%s\nactivemq.prefetchSize:20000\n\n\x00"
            % (_DESTINATION, mode)
        )
        self._acks = acks
        self._rest = b""

    def received(self, data: bytes) -> tuple[int, bytes]:
        data = self._rest + data
        at = data.rfind(_END)
        if at < 0:
            self._rest = data
            return 0, b""
        at += len(_END)
        self._rest = data[at:]
        data = data[:at]
        if not self._acks:
            return data.count(b"MESSAGE\n"), b""
        ids = _ACK.findall(data)
        return len(ids), b"".join([b"ACK\nid:%s\n\n\x00\n" % each for each in ids])
