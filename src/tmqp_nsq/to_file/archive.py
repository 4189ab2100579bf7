"""Consumes topics into files: a message is finished when the disk has it (N159, N162, N163)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream

from tmqp_nsq.consumer.consumer import Consumer, Delivery
from tmqp_nsq.starting import ProgramError
from tmqp_nsq.to_file.files import TopicFile

__all__ = ["TopicArchive"]

logger = logging.getLogger("tmqp_nsq")


class TopicArchive:
    """Writes one topic."""

    def __init__(
        self,
        consumer: Consumer,
        file: TopicFile,
        max_in_flight: int,
        sync_interval_s: float,
        skip_empty: bool,
    ) -> None:
        self._consumer = consumer
        self._file = file
        self._max_in_flight = max_in_flight
        self._sync_interval_s = sync_interval_s
        self._skip_empty = skip_empty
        #: Written, but perhaps not on disk yet.
        self._written: list[Delivery] = []
        self._lock = anyio.Lock()
        self._finished = anyio.Event()

    async def run(self) -> None:
        """Write messages until :meth:`stop`.

        :raises ProgramError: if a file cannot be written; its messages stay unfinished.
        """
        try:
            async with self._consumer.running() as messages, anyio.create_task_group() as group:
                group.start_soon(self._tick)
                await self._write(messages)
                async with self._lock:
                    await self._blocking(self._file.close)
                group.cancel_scope.cancel()
        finally:
            self._file.abandon()  # if it was not closed: something has failed
        self._finished.set()

    async def stop(self) -> None:
        """Write and finish what was delivered, and end :meth:`run`."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._consumer.stop)
            await self._sync()
        await self._finished.wait()

    async def reopen(self) -> None:
        """Sync and close the file: the next message opens it again (SIGHUP, for log rotation)."""
        await self._sync()
        async with self._lock:
            await self._blocking(self._file.close)

    async def _write(self, messages: MemoryObjectReceiveStream[Delivery]) -> None:
        async for first in messages:
            batch = [first]
            while len(batch) < self._max_in_flight:
                try:
                    batch.append(messages.receive_nowait())
                except (anyio.WouldBlock, anyio.EndOfStream):
                    break
            bodies = [each.body for each in batch]
            async with self._lock:
                now_s = time.time()
                rotates = self._file.needs_rotation(now_s)
                await self._blocking(lambda: self._file.write(bodies, now_s))  # noqa: B023
                self._written += batch
            # A message that waits to be finished would keep the stop waiting.
            if (
                rotates
                or len(self._written) >= self._max_in_flight
                or self._consumer.is_starved
                or self._consumer.is_stopping
            ):
                await self._sync()

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(self._sync_interval_s)
            async with self._lock:
                now_s = time.time()
                if self._file.needs_rotation(now_s):
                    if self._skip_empty:
                        await self._blocking(self._file.close)
                    else:
                        await self._blocking(lambda: self._file.rotate(now_s))  # noqa: B023
            await self._sync()

    async def _sync(self) -> None:
        async with self._lock:
            if self._written:
                await self._blocking(self._file.sync)
                for delivery in self._written:
                    delivery.finish()
                self._written = []

    async def _blocking(self, call: Callable[[], None]) -> None:
        try:
            await anyio.to_thread.run_sync(call)
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            raise ProgramError(
                f"[{self._consumer.topic}] writing{where} failed: {error.strerror or error}"
            ) from error
