"""The load generator: it moves messages through a broker and counts what came of them.

Theory of operation.  One thread drives all connections, without blocking.  Producers are topped up
so that never more than a *window* of messages is in progress: sent, and not yet both delivered as
often as they should be and, where the producer asks for it, confirmed.  So nothing piles up in the
broker, no broker needs to drop anything, and the producer goes as fast as the slowest part.

The window is one for all producers, or each has its own.  Then a message of a producer that asks
for no confirms is through when the consumer that stands at the same place in its list has it.

After a warm-up the counts, the time and the processor time of server and load are noted, and again
at the end; what lies between is the sample.  With one producer, the time from the sending of a
message to its completion is its latency: messages are completed in the order they were sent.  A
load that used nearly all of its core may be what the sample measures.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from tmqp_bench.broker.processes import Spent

__all__ = ["Consumer", "LoadError", "Producer", "Sample", "Shape", "run"]

_READ_BYTES: Final = 262_144
#: Messages sent in one piece, at the most.
_MOST_AT_ONCE: Final = 1_024
#: A broker that completes nothing for so long has lost something.
_STALL_S: Final = 10.0


class LoadError(Exception):
    """The load could not be applied; the text says what happened."""


class Producer(Protocol):
    """One connection that sends."""

    socket: socket.socket
    #: It waits for confirms.
    confirms: bool

    def messages(self, count: int) -> bytes:
        """The next ``count`` messages, encoded."""

    def confirmed(self, data: bytes) -> int:
        """How many messages what was read confirms."""


class Consumer(Protocol):
    """One connection that receives."""

    socket: socket.socket

    def received(self, data: bytes) -> tuple[int, bytes]:
        """How many messages what was read completes, and what to answer."""


@dataclass(frozen=True)
class Shape:
    """How the load looks.

    ``copies``: how often each message is delivered.  ``window``: messages in progress at most, of
    all producers or, with ``each``, of each of them.
    """

    copies: int
    window: int
    warm_up_s: float = 0.5
    seconds: float = 2.0
    each: bool = False


@dataclass
class Sample:
    """One measurement: ``messages`` completed, ``deliveries`` made, in ``seconds``.

    ``latencies_s`` is empty unless there was one producer with a small window; ``server_kernel_s``
    is what of ``server_cpu_s`` was spent in the kernel.
    """

    messages: int
    deliveries: int
    seconds: float
    server_cpu_s: float
    load_cpu_s: float
    latencies_s: list[float] = field(default_factory=list)
    server_kernel_s: float = 0.0

    @property
    def rate(self) -> float:
        """Deliveries a second."""
        return self.deliveries / self.seconds

    @property
    def cpu_ns(self) -> float:
        """Processor time of the server for one delivery, in nanoseconds."""
        return self.server_cpu_s * 1e9 / max(self.deliveries, 1)

    @property
    def kernel_ns(self) -> float:
        """The kernel's part of :attr:`cpu_ns`."""
        return self.server_kernel_s * 1e9 / max(self.deliveries, 1)

    @property
    def load_share(self) -> float:
        """How much of its core the load took."""
        return self.load_cpu_s / self.seconds


class _End:
    """One socket with what waits to be written to it.

    ``teller``: the producer that is told what this consumer has.  ``room``: how many more messages
    a producer with a window of its own may send.
    """

    __slots__ = ("consumer", "producer", "room", "socket", "teller", "waiting", "watched")

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.waiting = b""
        self.watched = selectors.EVENT_READ
        self.producer: Producer | None = None
        self.consumer: Consumer | None = None
        self.teller: _End | None = None
        self.room = 0


class _Load:
    """The state of one run."""

    def __init__(
        self, producers: Sequence[Producer], consumers: Sequence[Consumer], shape: Shape
    ) -> None:
        self.shape = shape
        self.selector = selectors.DefaultSelector()
        self.sent = 0
        self.delivered = 0
        self.confirmed = 0
        self.asks = all(producer.confirms for producer in producers)
        self.turn = 0
        self.under_way: deque[tuple[float, int]] = deque()
        self.settled = 0
        self.latencies: list[float] | None = [] if len(producers) == 1 else None
        self.producers: list[_End] = []
        #: Producers with windows of their own that have room.
        self.able: deque[_End] = deque()
        self.buffer = memoryview(bytearray(_READ_BYTES))
        for producer in producers:
            end = self._end(producer.socket)
            end.producer = producer
            self.producers.append(end)
            if shape.each:
                self._make_room(end, shape.window)
        for place, consumer in enumerate(consumers):
            end = self._end(consumer.socket)
            end.consumer = consumer
            if shape.each and not self.asks:
                end.teller = self.producers[place]

    def _end(self, sock: socket.socket) -> _End:
        sock.setblocking(False)
        end = _End(sock)
        self.selector.register(sock, selectors.EVENT_READ, end)
        return end

    @property
    def completed(self) -> int:
        """Messages that are through."""
        done = self.delivered // self.shape.copies if self.shape.copies else self.sent
        return min(done, self.confirmed) if self.asks else done

    def top_up(self) -> None:
        """Send as many as the window has room for, if that is worth a system call."""
        if self.shape.each:
            self._top_up_each()
            return
        window = self.shape.window
        room = window - (self.sent - self.completed)
        if room < max(1, window // 4):
            return
        for _ in range(len(self.producers)):
            end = self.producers[self.turn % len(self.producers)]
            self.turn += 1
            if end.waiting:
                continue
            count = min(room, _MOST_AT_ONCE)
            if len(self.producers) > 1:
                count = max(1, min(count, window // len(self.producers)))
            if count > room or count <= 0:
                return
            assert end.producer is not None
            self._write(end, end.producer.messages(count))
            self.sent += count
            room -= count
            if self.latencies is not None:
                self.under_way.append((time.perf_counter(), self.sent))

    def _top_up_each(self) -> None:
        """Send what the windows of their own have room for."""
        for _ in range(len(self.able)):
            end = self.able.popleft()
            assert end.producer is not None
            self._write(end, end.producer.messages(end.room))
            self.sent += end.room
            end.room = 0

    def _make_room(self, end: _End, count: int) -> None:
        """So many messages of a producer are through."""
        if not end.room and count:
            self.able.append(end)
        end.room += count

    def _write(self, end: _End, data: bytes) -> None:
        if not end.waiting:
            try:
                sent = end.socket.send(data)
            except BlockingIOError:
                sent = 0
            if sent == len(data):
                return
            data = data[sent:]
        end.waiting += data
        self._watch(end)

    def _watch(self, end: _End) -> None:
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if end.waiting else 0)
        if wanted != end.watched:
            end.watched = wanted
            self.selector.modify(end.socket, wanted, end)

    def turn_once(self, timeout_s: float) -> None:
        """Serve what is ready."""
        for key, mask in self.selector.select(timeout_s):
            end: _End = key.data
            if mask & selectors.EVENT_WRITE and end.waiting:
                sent = end.socket.send(end.waiting)
                end.waiting = end.waiting[sent:]
                self._watch(end)
            if mask & selectors.EVENT_READ:
                self._read(end)

    def _read(self, end: _End) -> None:
        # A new buffer for each read would cost more than the read: the kernel has to clear it.
        size = end.socket.recv_into(self.buffer)
        if not size:
            raise LoadError("the broker closed a connection")
        data = bytes(self.buffer[:size])
        if end.consumer is not None:
            count, answer = end.consumer.received(data)
            self.delivered += count
            if answer:
                self._write(end, answer)
            if end.teller is not None:
                self._make_room(end.teller, count)
        if end.producer is not None:
            count = end.producer.confirmed(data)
            self.confirmed += count
            if self.shape.each and self.asks:
                self._make_room(end, count)
        if self.latencies is not None:
            self._settle()

    def _settle(self) -> None:
        completed = self.completed
        if completed == self.settled:
            return
        self.settled = completed
        now = time.perf_counter()
        assert self.latencies is not None
        while self.under_way and self.under_way[0][1] <= completed:
            self.latencies.append(now - self.under_way.popleft()[0])

    def go_on_until(self, deadline: float) -> None:
        """Keep the broker busy until then."""
        seen = -1
        moved_at = time.perf_counter()
        while (now := time.perf_counter()) < deadline:
            self.top_up()
            self.turn_once(0.2)
            if self.completed != seen:
                seen = self.completed
                moved_at = now
            elif now - moved_at > _STALL_S:
                raise LoadError(
                    f"nothing moves: {self.sent} sent, {self.delivered} delivered,"
                    f" {self.confirmed} confirmed"
                )

    def drain(self) -> None:
        """Wait for what is in progress."""
        deadline = time.perf_counter() + _STALL_S
        while self.completed < self.sent:
            self.turn_once(0.2)
            if time.perf_counter() > deadline:
                raise LoadError(f"{self.sent - self.completed} messages were lost")


def run(
    producers: Sequence[Producer],
    consumers: Sequence[Consumer],
    shape: Shape,
    server_spent: Callable[[], Spent],
) -> Sample:
    """Apply a load and measure it.

    :raises LoadError: when messages get lost or a connection ends.
    """
    load = _Load(producers, consumers, shape)
    try:
        load.go_on_until(time.perf_counter() + shape.warm_up_s)
        if load.latencies is not None:
            load.latencies.clear()
        before, own, started = server_spent(), time.process_time(), time.perf_counter()
        completed, delivered = load.completed, load.delivered
        load.go_on_until(started + shape.seconds)
        seconds = time.perf_counter() - started
        own = time.process_time() - own
        after = server_spent()
        messages = load.completed - completed
        deliveries = load.delivered - delivered if shape.copies else messages
        latencies = list(load.latencies or ())
        if not deliveries:
            raise LoadError(f"nothing moved for {seconds:.1f} s")
        load.drain()
    finally:
        load.selector.close()
    kernel_s = after.kernel_s - before.kernel_s
    spent_s = after.user_s - before.user_s + kernel_s
    return Sample(messages, deliveries, seconds, spent_s, own, latencies, kernel_s)
