"""The load on AMQP 0-9-1 brokers; frames are made by pamqp, beforehand."""

from __future__ import annotations

import importlib
import socket
from typing import Any, Final

from tmqp_bench.broker.counting import FixedSize

__all__ = ["Deliveries", "Publisher"]

_QUEUE: Final = "bench"
_FRAME_MAX: Final = 131_072
_ACK_SIZE: Final = 21


def _pamqp(name: str) -> Any:
    """A module of pamqp, imported when it is asked for."""
    return importlib.import_module(f"pamqp.{name}")


class _Talk:
    """A blocking connection with one channel open, for what comes before the load."""

    def __init__(self, port: int) -> None:
        self.commands = _pamqp("commands")
        self.frame = _pamqp("frame")
        self.header = _pamqp("header")
        self.body = _pamqp("body")
        self._errors = _pamqp("exceptions")
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(20.0)
        self._rest = b""
        commands = self.commands
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self.read()
        self.send(
            0,
            commands.Connection.StartOk(
                client_properties={}, mechanism="PLAIN", response="\0guest\0guest", locale="en_US"
            ),
        )
        self.read()
        self.send(0, commands.Connection.TuneOk(channel_max=10, frame_max=_FRAME_MAX, heartbeat=0))
        self.ask(0, commands.Connection.Open(virtual_host="/"))
        self.ask(1, commands.Channel.Open())

    def send(self, channel: int, method: Any) -> None:
        self.socket.sendall(self.frame.marshal(method, channel))

    def ask(self, channel: int, method: Any) -> Any:
        self.send(channel, method)
        return self.read()

    def read(self) -> Any:
        """The next frame."""
        while True:
            if self._rest:
                try:
                    used, _, found = self.frame.unmarshal(self._rest)
                except self._errors.UnmarshalingException:
                    pass
                else:
                    self._rest = self._rest[used:]
                    if found.name in ("Connection.Close", "Channel.Close"):
                        raise ConnectionError(f"the broker closes: {found.reply_text}")
                    return found
            data = self.socket.recv(65_536)
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._rest += data


class Publisher:
    """Publishes into the queue; with ``confirms`` the broker acknowledges."""

    def __init__(
        self, port: int, payload_bytes: int, *, confirms: bool, persistent: bool, declare: bool
    ) -> None:
        talk = _Talk(port)
        commands = talk.commands
        if declare:
            talk.ask(1, commands.Queue.Declare(queue=_QUEUE, durable=persistent))
        if confirms:
            talk.ask(1, commands.Confirm.Select())
        self.socket = talk.socket
        self.confirms = confirms
        properties = commands.Basic.Properties(delivery_mode=2 if persistent else 1)
        payload = b"x" * payload_bytes
        marshal = talk.frame.marshal
        parts = [
            marshal(commands.Basic.Publish(exchange="", routing_key=_QUEUE), 1),
            marshal(talk.header.ContentHeader(0, payload_bytes, properties), 1),
        ]
        step = _FRAME_MAX - 8
        for at in range(0, payload_bytes, step):
            parts.append(marshal(talk.body.ContentBody(payload[at : at + step]), 1))
        self._piece = b"".join(parts)
        self._rest = b""
        self._last = 0

    def messages(self, count: int) -> bytes:
        return self._piece * count

    def confirmed(self, data: bytes) -> int:
        if not self.confirms:
            return 0
        data = self._rest + data
        whole = len(data) // _ACK_SIZE * _ACK_SIZE
        self._rest = data[whole:]
        count = 0
        for at in range(0, whole, _ACK_SIZE):
            if data[at] != 1 or data[at + 7 : at + 11] != b"\x00\x3c\x00\x50":
                raise ConnectionError(f"not a Basic.Ack: {data[at : at + _ACK_SIZE]!r}")
            tag = int.from_bytes(data[at + 11 : at + 19], "big")
            if data[at + 19] & 1:
                count += tag - self._last
                self._last = tag
            else:
                # Single ones may overtake each other; counting them is enough.
                count += 1
                self._last = max(self._last, tag)
        return count


class Deliveries:
    """Consumes the queue; each delivery is acknowledged by itself unless ``acks`` is False."""

    def __init__(self, port: int, payload_bytes: int, *, acks: bool, persistent: bool) -> None:
        talk = _Talk(port)
        commands = talk.commands
        talk.ask(1, commands.Queue.Declare(queue=_QUEUE, durable=persistent))
        talk.ask(1, commands.Basic.Consume(queue=_QUEUE, consumer_tag="c", no_ack=not acks))
        self.socket = talk.socket
        self._acks = acks
        self._tag = 0
        properties = commands.Basic.Properties(delivery_mode=2 if persistent else 1)
        marshal = talk.frame.marshal
        deliver = commands.Basic.Deliver(
            consumer_tag="c", delivery_tag=1, redelivered=False, exchange="", routing_key=_QUEUE
        )
        size = len(marshal(deliver, 1))
        size += len(marshal(talk.header.ContentHeader(0, payload_bytes, properties), 1))
        step = _FRAME_MAX - 8
        for at in range(0, payload_bytes, step):
            size += min(step, payload_bytes - at) + 8
        self._counter = FixedSize(size)

    def received(self, data: bytes) -> tuple[int, bytes]:
        count = self._counter.count(data)
        if not self._acks or not count:
            return count, b""
        first = self._tag + 1
        self._tag += count
        return count, b"".join(
            [
                b"\x01\x00\x01\x00\x00\x00\x0d\x00\x3c\x00\x50"
                + tag.to_bytes(8, "big")
                + b"\x00\xce"
                for tag in range(first, self._tag + 1)
            ]
        )
