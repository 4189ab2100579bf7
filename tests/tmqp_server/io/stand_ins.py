"""Owns stand-ins around a session: a transport whose kernel the test plays, and a driver's ears."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import sniffio
import trio

from tmqp_server.config import OutboundLimits
from tmqp_server.io.session import Session
from tmqp_server.io.transport import Bytes

__all__ = ["Ears", "Pipe", "Stage", "running_session"]


def _call_soon(what: Callable[[], None]) -> None:
    """Have it called by the event loop, in no task."""
    if sniffio.current_async_library() == "trio":
        trio.lowlevel.current_trio_token().run_sync_soon(what)
    else:
        asyncio.get_running_loop().call_soon(what)


class Pipe:
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

    def send_now(self, data: Bytes) -> int:
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
        while not (count := self.send_now(data)):
            self._writable = anyio.Event()
            await self._writable.wait()
        return count

    async def aclose(self) -> None:
        self.closed += 1


class Ears:
    """What a session says to its driver, in order; ``reason`` is what the protocol says.

    What begins with ``faulty`` raises; a chunk takes ``portions`` further turns.
    """

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.reason = ""
        self.end_reason = ""
        self.faulty = ""
        self.portions = 0
        self.lane = anyio.Lock()

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        if self.faulty and what.startswith(self.faulty):
            raise ValueError(f"a fault in {self.faulty}")

    def opened(self, session: Session) -> None:
        self._hear("opened")

    def received(self, session: Session, data: bytes) -> bool:
        self._hear(f"received {data.decode()}")
        return self.portions > 0

    def go_on(self, session: Session) -> bool:
        self._hear("go on")
        self.portions -= 1
        return self.portions > 0

    def ended(self, session: Session) -> None:
        self._hear("ended")
        self.reason = self.reason or "end-of-stream"

    def closed(self, session: Session, reason: str) -> None:
        self.end_reason = reason
        self._hear("closed")

    def block(self, session: Session) -> None:
        self._hear("block")

    def unblock(self, session: Session) -> None:
        self._hear("unblock")

    def close_reason(self, session: Session) -> str:
        return self.reason


class Stage:
    """A session with its stand-ins; ``over`` is set when it has ended, ``error`` if by a fault."""

    def __init__(self, limits: OutboundLimits, room: int) -> None:
        self.pipe = Pipe(room)
        self.ears = Ears()
        self.session = Session(1, self.pipe, self.ears, limits)
        self.over = anyio.Event()
        self.error: Exception | None = None

    async def run(self) -> None:
        try:
            await self.session.run()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        finally:
            self.over.set()


@asynccontextmanager
async def running_session(
    limits: OutboundLimits | None = None, *, room: int = 1_000_000_000
) -> AsyncIterator[Stage]:
    """A session that runs, waiting for bytes; cancelled at the end if it has not ended."""
    stage = Stage(limits or OutboundLimits(), room)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.run)
            await anyio.wait_all_tasks_blocked()
            yield stage
            tasks.cancel_scope.cancel()
