"""The load on MQTT 3.1.1 brokers, with quality of service 0 and 1."""

from __future__ import annotations

import socket
from typing import Final

from tmqp_bench.broker.counting import FixedSize

__all__ = ["Publisher", "Subscriber"]

_TOPIC: Final = b"bench"
_MOST_IDS: Final = 65_535


def _packet(kind: int, body: bytes) -> bytes:
    size, digits = len(body), bytearray()
    while True:
        size, digit = size >> 7, size & 127
        digits.append(digit | (128 if size else 0))
        if not size:
            return bytes([kind]) + bytes(digits) + body


def _text(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def _connect(port: int, name: bytes) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(10.0)
    sock.sendall(_packet(0x10, _text(b"MQTT") + b"\x04\x02\x00\x00" + _text(name)))
    answer = sock.recv(4)
    if answer != b"\x20\x02\x00\x00":
        raise ConnectionError(f"the broker answered {answer!r} to CONNECT")
    return sock


def _publish(payload_bytes: int, packet_id: int) -> bytes:
    number = packet_id.to_bytes(2, "big") if packet_id else b""
    kind = 0x32 if packet_id else 0x30
    return _packet(kind, _text(_TOPIC) + number + b"x" * payload_bytes)


class Publisher:
    """Publishes; with quality 1 the broker confirms each message (PUBACK)."""

    def __init__(self, port: int, payload_bytes: int, quality: int) -> None:
        self.socket = _connect(port, b"producer")
        self.confirms = quality == 1
        self._at = 0
        ids = range(1, _MOST_IDS + 1 if payload_bytes <= 1_024 else 1_025) if quality else (0,)
        self._pieces = [_publish(payload_bytes, number) for number in ids]
        self._counter = FixedSize(4)

    def messages(self, count: int) -> bytes:
        pieces = self._pieces
        if len(pieces) == 1:
            return pieces[0] * count
        at = self._at
        self._at = (at + count) % len(pieces)
        chosen = pieces[at : at + count]
        while len(chosen) < count:
            chosen += pieces[: count - len(chosen)]
        return b"".join(chosen)

    def confirmed(self, data: bytes) -> int:
        return self._counter.count(data) if self.confirms else 0


class Subscriber:
    """Takes what is published; with quality 1 it acknowledges each message."""

    def __init__(self, port: int, payload_bytes: int, quality: int, name: str = "consumer") -> None:
        self.socket = _connect(port, name.encode())
        self.socket.sendall(_packet(0x82, b"\x00\x01" + _text(_TOPIC) + bytes([quality])))
        answer = self.socket.recv(5)
        if answer[:1] != b"\x90":
            raise ConnectionError(f"the broker answered {answer!r} to SUBSCRIBE")
        sample = _publish(payload_bytes, quality)
        self._size = len(sample)
        self._id_at = self._size - payload_bytes - 2
        self._quality = quality
        self._counter = FixedSize(self._size)
        self._rest = b""

    def received(self, data: bytes) -> tuple[int, bytes]:
        if not self._quality:
            return self._counter.count(data), b""
        data = self._rest + data
        size, at = self._size, self._id_at
        count = len(data) // size
        self._rest = data[count * size :]
        acks = [
            b"\x40\x02" + data[place + at : place + at + 2]
            for place in range(0, count * size, size)
        ]
        return count, b"".join(acks)
