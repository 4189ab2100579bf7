"""Stand-ins around a connection: a transport whose kernel the test plays, and a stage for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import anyio.lowlevel
import sniffio
import trio

from tests.tmqp_server.line_door import LineDoor, LineSession
from tests.tmqp_server.shell.stage import marks
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.io.connection import Connection
from tmqp_server.io.shell import Shell
from tmqp_server.io.transport import Bytes, Transport
from tmqp_server.shell.outbound import Marks
from tmqp_server.shell.turn import Turn
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.port import Store

__all__ = ["Pipe", "Stage", "settled", "staged"]


def _call_soon(what: Callable[[], None]) -> None:
    """Have it called by the event loop, in no task."""
    if sniffio.current_async_library() == "trio":
        trio.lowlevel.current_trio_token().run_sync_soon(what)
    else:
        asyncio.get_running_loop().call_soon(what)


async def settled() -> None:
    """Let everything happen that can: callbacks of the loop as well, which are in no task."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()


class Pipe(Transport):
    """A transport of which the test decides what comes in and how much goes out.

    ``room`` is how many bytes the other end takes before it has to read; once set, ``failure`` is
    raised by everything and ``send_failure`` by all that sends.  ``calls`` counts the sends,
    ``copied`` how many bytes stood in other objects than those before.  ``watched``: it
    can be watched.
    """

    watched = False

    def __init__(self, room: int = 1_000_000_000) -> None:
        self.peer = "pipe"
        self.secure = False
        self.waited = False
        self.room = room
        self.sent = bytearray()
        self.calls = 0
        self.copied = 0
        self._whole: object = None
        self.failure: OSError | None = None
        self.send_failure: OSError | None = None
        self.closed = 0
        self._in: deque[bytes] = deque()
        self._ready: Callable[[], None] | None = None
        self._arrived = anyio.Event()
        self._writable = anyio.Event()

    def give(self, data: bytes) -> None:
        """The peer sends; nothing is its end of stream."""
        self._in.append(data)
        self._arrived.set()
        if self._ready is not None:
            _call_soon(self._tell)

    def read(self, count: int) -> None:
        """The peer reads: so many more bytes find room."""
        self.room += count
        self._writable.set()

    def fail(self, failure: OSError) -> None:
        """The connection breaks."""
        self.failure = failure
        self._arrived.set()
        if self._ready is not None:
            _call_soon(self._tell)
        self._writable.set()

    def watch(self, ready: Callable[[], None]) -> bool:
        if not self.watched:
            return False
        self._ready = ready
        _call_soon(self._tell)
        return True

    def unwatch(self) -> None:
        self._ready = None

    def receive_now(self) -> bytes | None:
        if self._in:
            return self._in.popleft()
        if self.failure is not None:
            raise self.failure
        return None

    def _tell(self) -> None:
        """As an event loop does: again and again, as long as something is there."""
        if self._ready is not None and (self._in or self.failure is not None):
            self._ready()
            _call_soon(self._tell)

    async def receive(self) -> bytes:
        while not self._in:
            if self.failure is not None:
                raise self.failure
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return self._in.popleft()

    def send(self, data: Bytes) -> int:
        failure = self.failure or self.send_failure
        if failure is not None:
            raise failure
        self.calls += 1
        count = min(len(data), self.room)
        self.room -= count
        self.sent += data[:count]
        return count

    async def send_some(self, data: Bytes) -> int:
        whole = data.obj if isinstance(data, memoryview) else data
        if whole is not self._whole:
            self._whole = whole
            self.copied += len(data)
        while not (count := self.send(data)):
            self._writable = anyio.Event()
            await self._writable.wait()
        return count

    async def aclose(self) -> None:
        self.closed += 1


class Stage:
    """A shell with a door of lines, and as many connections as wanted.

    ``ended`` are the numbers of those that have come to their end.
    """

    def __init__(
        self, tasks: anyio.abc.TaskGroup, limits: Marks, store: Store | None, portion_bytes: int
    ) -> None:
        self.door = LineDoor()
        self.journal = None if store is None else Journal([self.door])
        options = BrokerOptions(storage=store is not None)
        self.hub = Hub(Broker(options=options), portion_bytes, self.journal)
        self.turn = Turn(self.hub, limits, self.journal)
        self.shell = Shell(self.turn, self.door, store=store, journal=self.journal)
        self.tasks = tasks
        self.ended: list[int] = []
        self.connections: dict[int, Connection] = {}

    async def open(
        self, number: int = 1, *lines: str, room: int = 1_000_000_000
    ) -> tuple[Pipe, LineSession]:
        """A client that has connected and said these lines; its kernel has so much room then."""
        pipe = Pipe()
        pipe.peer = f"client {number}"
        connection = self.connections[number] = Connection(number, pipe, "host", self.shell)
        self.tasks.start_soon(self._run, connection)
        for line in (f"connect n{number}", *lines):
            pipe.give(line.encode())
            await settled()
        session = self.door.sessions[number]
        session.said.clear()
        pipe.sent.clear()
        pipe.calls = 0
        pipe.room = room
        return pipe, session

    async def _run(self, connection: Connection) -> None:
        try:
            await connection.run()
        finally:
            self.ended.append(connection.number)

    def say(self, data: bytes, number: int = 1) -> None:
        """The broker has something for a session."""
        self.hub.send(number, data)
        self.shell.turn.perform((), self.shell.now())
        self.shell.attend()

    def waits(self, number: int = 1) -> int:
        """Bytes that wait for a peer."""
        out = self.turn.outbound(number)
        return 0 if out is None else out.bytes


@asynccontextmanager
async def staged(
    limits: Marks | None = None, *, store: Store | None = None, portion_bytes: int = 0
) -> AsyncIterator[Stage]:
    """A shell that runs; cancelled at the end."""
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            stage = Stage(tasks, limits or marks(), store, portion_bytes)
            tasks.start_soon(stage.shell.run)
            await settled()
            yield stage
            tasks.cancel_scope.cancel()
