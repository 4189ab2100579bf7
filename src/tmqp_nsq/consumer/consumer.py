"""The consumer: connections to all nsqds of a topic, messages out, answers back."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream

from tmqp.backoff import Backoff
from tmqp_nsq.addresses import Address
from tmqp_nsq.consumer.discovery import Discovery
from tmqp_nsq.consumer.line import Line, LineError
from tmqp_nsq.consumer.options import ConsumerOptions
from tmqp_nsq.consumer.pace import Pace
from tmqp_wires.nsq.events import MessageReceived

__all__ = ["Consumer", "Delivery"]

logger = logging.getLogger("tmqp_nsq")

#: How long to wait before connecting again to an nsqd of the command line.
_PAUSES: Final = Backoff(0.5, 15.0, 0.0)
#: How long stopping waits for answers to what is in flight.
_STOP_S: Final = 30.0
#: How long stopping waits for the last answers to be sent.
_FLUSH_S: Final = 5.0
_TICK_S: Final = 3600.0


class Delivery:
    """A message; answer it once, with :meth:`finish` or :meth:`requeue`."""

    __slots__ = ("_consumer", "_line", "_message", "is_answered")

    def __init__(self, consumer: Consumer, line: Line, message: MessageReceived) -> None:
        self._consumer = consumer
        self._line = line
        self._message = message
        self.is_answered = False

    @property
    def body(self) -> bytes:
        """What was published."""
        return self._message.body

    @property
    def attempts(self) -> int:
        """How often it was delivered, this time included."""
        return self._message.attempts

    def finish(self) -> None:
        """Say that it is done."""
        if not self.is_answered:
            self.is_answered = True
            self._line.finish(self._message.message_id)
            self._consumer.answered(success=True)

    def requeue(self) -> None:
        """Give it back, with a delay that grows with the attempts, and back off (N167)."""
        if not self.is_answered:
            self.is_answered = True
            delay_ns = self._consumer.requeue_delay_ns(self._message.attempts)
            self._line.requeue(self._message.message_id, delay_ns // 1_000_000)
            self._consumer.answered(success=False)

    def touch(self) -> None:
        """Ask for more time."""
        if not self.is_answered:
            self._line.touch(self._message.message_id)


class Consumer:
    """Consumes a channel of a topic from nsqds: those named, or those that lookupds name."""

    def __init__(
        self,
        topic: str,
        channel: str,
        program: str,
        options: ConsumerOptions,
        nsqds: Sequence[Address],
        discovery: Discovery,
    ) -> None:
        self.topic = topic
        self._channel = channel
        self._program = program
        self._options = options
        self._nsqds = tuple(nsqds)
        self._discovery = discovery
        self._pace = Pace(
            options.max_in_flight,
            options.backoff_multiplier_ns / 1e9,
            options.max_backoff_duration_ns / 1e9,
            options.rdy_redistribute_interval_ns / 1e9,
        )
        self._lines: dict[int, Line] = {}
        self._addresses: set[Address] = set()
        self._number = 0
        self._changed = anyio.Event()
        self._progress = anyio.Event()
        self._stopping = False
        self._send, self._receive = anyio.create_memory_object_stream[Delivery](
            options.max_in_flight
        )

    # --- For deliveries ---------------------------------------------------------------------

    @property
    def is_starved(self) -> bool:
        """Whether a connection waits for answers before it gets more."""
        return any(line.is_starved for line in self._lines.values())

    @property
    def is_stopping(self) -> bool:
        """Whether :meth:`stop` was called."""
        return self._stopping

    def answered(self, *, success: bool) -> None:
        """A message was finished or requeued."""
        self._pace.report(success, anyio.current_time())
        self._changed.set()
        self._progress.set()

    def requeue_delay_ns(self, attempts: int) -> int:
        """How long a message waits that failed so often."""
        return min(
            self._options.default_requeue_delay_ns * attempts, self._options.max_requeue_delay_ns
        )

    # --- Running ----------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[MemoryObjectReceiveStream[Delivery]]:
        """Consume for the time of the block; the messages end after :meth:`stop`."""
        async with self._send, self._receive, anyio.create_task_group() as group:
            group.start_soon(self._steer)
            for address in self._nsqds:
                group.start_soon(self._keep, address)
            if self._discovery.has_lookupds:
                group.start_soon(self._look, group)
            yield self._receive
            group.cancel_scope.cancel()

    async def stop(self) -> None:
        """Ask for no more messages, and end the stream when all that came is answered.

        What is not answered after 30 s goes back to the queue when the connections close.
        """
        if self._stopping:
            return
        self._stopping = True
        self._pace.stop()
        for line in self._lines.values():
            line.close()
        with anyio.move_on_after(_STOP_S):
            while any(line.in_flight for line in self._lines.values()):
                self._progress = anyio.Event()
                await self._progress.wait()
        with anyio.move_on_after(_FLUSH_S):
            for line in list(self._lines.values()):
                await line.flush()
        self._send.close()

    async def _steer(self) -> None:
        """Keep the RDY counts as they should be."""
        while True:
            now = anyio.current_time()
            for number, count in self._pace.shares(now).items():
                self._lines[number].set_ready(count)
            until = min(self._pace.deadline(now), now + _TICK_S)
            with anyio.move_on_at(until):
                if not self._changed.is_set():
                    await self._changed.wait()
            self._changed = anyio.Event() if self._changed.is_set() else self._changed

    async def _look(self, group: TaskGroup) -> None:
        """Ask the lookupds again and again; each nsqd that they name is consumed until it ends."""
        interval_s = self._options.lookupd_poll_interval_ns / 1e9
        while not self._stopping:
            for address in await self._discovery.nodes(self.topic) or ():
                if address not in self._addresses:
                    group.start_soon(self._once, address)
            # All consumers asking at the same moment would load the lookupds.
            jitter = random.random() * self._options.lookupd_poll_jitter  # noqa: S311
            await anyio.sleep(interval_s * (1 + jitter))

    async def _keep(self, address: Address) -> None:
        """Consume from an nsqd of the command line; connect again when the connection ends."""
        failures = 0
        while not self._stopping:
            start = anyio.current_time()
            await self._once(address)
            if anyio.current_time() - start > _PAUSES.most_s:
                failures = 0
            failures += 1
            await anyio.sleep(_PAUSES.delay_s(failures))

    async def _once(self, address: Address) -> None:
        """Consume from an nsqd until the connection ends."""
        if address in self._addresses:
            return
        self._number += 1
        line = Line(self._number, address, self._program, self._options)
        self._addresses.add(address)
        try:
            await line.run(self.topic, self._channel, self._opened, self._deliver)
        except* LineError as group:
            if not self._stopping:
                logger.error("(%s/%s) %s: %s", self.topic, self._channel, address, _first(group))
        finally:
            self._addresses.discard(address)
            self._lines.pop(line.number, None)
            self._pace.leave(line.number)
            self._changed.set()
            self._progress.set()

    def _opened(self, line: Line) -> None:
        logger.info("(%s/%s) connected to nsqd %s", self.topic, self._channel, line.address)
        self._lines[line.number] = line
        self._pace.join(line.number, line.max_ready_count)
        if self._stopping:
            line.close()
        self._changed.set()

    async def _deliver(self, line: Line, message: MessageReceived) -> None:
        most = self._options.max_attempts
        if most and message.attempts > most:
            logger.error(
                "(%s/%s) giving up on message %s after %d attempts",
                self.topic,
                self._channel,
                message.message_id.decode("ascii", "replace"),
                message.attempts - 1,
            )
            line.finish(message.message_id)
            return
        if self._stopping:
            line.requeue(message.message_id, 0)
            return
        try:
            await self._send.send(Delivery(self, line, message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            line.requeue(message.message_id, 0)


def _first(group: BaseExceptionGroup[LineError]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
