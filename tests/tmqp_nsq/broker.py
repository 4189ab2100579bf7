"""An nsqd for tests of consumers: one queue, the window of RDY, compression, and a record."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream

from tmqp_nsq.addresses import Address
from tmqp_wires.nsq.codec import CommandDecoder
from tmqp_wires.nsq.events import Close, Event, Finish, Identify, Ready, Requeue, Subscribe, Touch
from tmqp_wires.nsq.identify import ServerTerms
from tmqp_wires.nsq.layers import DeflateLayer, Layer
from tmqp_wires.nsq.writing import CLOSE_WAIT, OK, message_frame, response_frame

__all__ = ["FakeBroker", "broker"]


class FakeBroker:
    """What was said to the server, and the messages that it has."""

    def __init__(self, bodies: Sequence[bytes] = ()) -> None:
        self.address = Address("127.0.0.1", 0)
        self.waiting = deque((number, 1, body) for number, body in enumerate(bodies))
        self.finished: list[int] = []
        self.requeued: list[tuple[int, int]] = []
        self.touched: list[int] = []
        self.subscribed: list[tuple[bytes, bytes]] = []
        self.ready: list[int] = []
        self.user_agents: list[str] = []
        self.closing = 0
        self.most_in_flight = 0
        #: Requeued messages come back at once, whatever their delay.
        self.returns = True
        self.changed = anyio.Event()

    def push(self, *bodies: bytes) -> None:
        """Publish."""
        first = len(self.finished) + len(self.waiting) + 1_000
        self.waiting.extend((first + place, 1, body) for place, body in enumerate(bodies))
        self.changed.set()

    async def serve(self, stream: SocketStream) -> None:
        """Serve one consumer."""
        async with stream, anyio.create_task_group() as group:
            connection = _Connection(self, stream)
            group.start_soon(connection.deliver)
            try:
                while True:
                    await connection.take(await stream.receive())
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                self.waiting.extendleft(connection.in_flight.values())
            group.cancel_scope.cancel()


class _Connection:
    def __init__(self, broker: FakeBroker, stream: SocketStream) -> None:
        self._broker = broker
        self._stream = stream
        self._decoder = CommandDecoder(ServerTerms())
        self._layer: Layer | None = None
        self._window = 0
        self.in_flight: dict[bytes, tuple[int, int, bytes]] = {}

    async def take(self, data: bytes) -> None:
        for event in self._decoder.feed(data if self._layer is None else self._layer.decoded(data)):
            await self._heed(event)
        self._broker.changed.set()

    async def _heed(self, event: Event) -> None:
        broker = self._broker
        if isinstance(event, Identify):
            broker.user_agents.append(str(event.negotiated.user_agent))
            await self._send(response_frame(event.answer))
            if event.negotiated.deflate:
                self._layer = DeflateLayer(
                    zlib.compressobj(6, zlib.DEFLATED, -15),
                    zlib.decompressobj(-15),
                    zlib.Z_SYNC_FLUSH,
                    zlib.error,
                )
                self._decoder.resume()
                await self._send(OK)
        elif isinstance(event, Subscribe):
            broker.subscribed.append((event.topic, event.channel))
            await self._send(OK)
        elif isinstance(event, Ready):
            broker.ready.append(event.count)
            self._window = event.count
        elif isinstance(event, Finish):
            broker.finished.append(self.in_flight.pop(event.message_id)[0])
        elif isinstance(event, Requeue):
            number, attempts, body = self.in_flight.pop(event.message_id)
            broker.requeued.append((number, event.delay_ms))
            if broker.returns:
                broker.waiting.append((number, attempts + 1, body))
        elif isinstance(event, Touch):
            broker.touched.append(self.in_flight[event.message_id][0])
        elif isinstance(event, Close):
            self._window = 0
            broker.closing += 1
            await self._send(CLOSE_WAIT)

    async def _send(self, data: bytes) -> None:
        await self._stream.send(data if self._layer is None else self._layer.encoded(data))

    async def deliver(self) -> None:
        broker = self._broker
        while True:
            frames = []
            while broker.waiting and len(self.in_flight) < self._window:
                number, attempts, body = broker.waiting.popleft()
                message_id = b"%016x" % number
                self.in_flight[message_id] = (number, attempts, body)
                frames.append(message_frame(1, attempts, message_id, body))
            broker.most_in_flight = max(broker.most_in_flight, len(self.in_flight))
            if frames:
                await self._send(b"".join(frames))
            broker.changed = anyio.Event()
            await broker.changed.wait()


@asynccontextmanager
async def broker(*bodies: bytes) -> AsyncIterator[FakeBroker]:
    """Run a server for the time of the block."""
    server = FakeBroker(bodies)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        local: Any = listener.extra(SocketAttribute.local_address)  # noqa: S610 - not Django's
        server.address = Address(str(local[0]), int(local[1]))
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, server.serve)
            yield server
            group.cancel_scope.cancel()
