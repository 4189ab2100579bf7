"""Owns one connection's life in the event loop: its reading task and its bounded outbound buffer.

Theory of operation.  The reading task waits for bytes, hands each chunk to the driver, and after
it the driver writes to every session the chunk touched.  Where the event loop can watch the socket
it calls :meth:`Session._readable` for each chunk, and the task sleeps until something has to be
waited for: a full buffer, an answer, the end.  :meth:`Session.write` sends directly; only
what the kernel does not take at once is kept, and only then a writing task exists.  Past the high
water mark the broker is told to hold this session's deliveries back; if what waits then grows past
the hard limit all the same, or there is no progress for the stall time, the connection is cut: a
slow reader costs a known amount of memory and time, and nobody else's.  What comes at one go before
the broker was told is let through: a large message to a healthy consumer is no reason to cut it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVarTuple, Unpack

import anyio
import anyio.abc
import anyio.lowlevel

from tmqp_server.config import OutboundLimits
from tmqp_server.io.transport import Bytes, Transport

__all__ = ["Session", "SessionOwner"]

logger = logging.getLogger("tmqp_server.session")

_Arguments = TypeVarTuple("_Arguments")

#: Small pieces are joined up to this size before they are sent.
_JOIN_BYTES = 262_144
#: The rest of a piece is copied up to this size.
_WINDOW_BYTES = 65_536


class SessionOwner(Protocol):
    """Whom a session reports to: the driver.  Who holds ``lane`` may work on a portion."""

    @property
    def lane(self) -> anyio.Lock:
        """The lock that sessions with more work pass around, first come, first served."""

    def opened(self, session: Session) -> None:
        """It begins."""

    def received(self, session: Session, data: bytes) -> bool:
        """It read a chunk; True when a part of the work waits for :meth:`go_on`."""

    def go_on(self, session: Session) -> bool:
        """Its turn has come again; True when it must have another."""

    def ended(self, session: Session) -> None:
        """Its peer sends no more."""

    def closed(self, session: Session, reason: str) -> None:
        """It is over."""

    def block(self, session: Session) -> None:
        """Its peer does not read."""

    def unblock(self, session: Session) -> None:
        """Its peer reads again."""

    def close_reason(self, session: Session) -> str:
        """Why its protocol is closed; empty while it is not."""


class Session:
    """One connection; made by the listener, run as one task."""

    def __init__(
        self, number: int, transport: Transport, driver: SessionOwner, limits: OutboundLimits
    ) -> None:
        self.number = number
        self.transport = transport
        self._driver = driver
        self._limits = limits
        self._waiting: deque[Bytes] = deque()
        self._waiting_bytes = 0
        self._blocked = False
        self._writing = False
        self._idle = anyio.Event()
        self._room = anyio.Event()
        self._held = False
        self._go = anyio.Event()
        # Later than deliveries are held back: a client may well push for a while before it reads
        # its acknowledges.
        self._pause_bytes = max(limits.max_outbound_bytes // 2, limits.high_water_bytes)
        self._scope = anyio.CancelScope()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._cut_reason = ""
        self._stopping = False
        #: The reading task is called for: what its callback found, see ``_hear``.
        self._called = anyio.Event()
        self._is_called = False
        self._more = False
        self._broken: OSError | None = None
        self._fault: Exception | None = None

    @property
    def outbound_bytes(self) -> int:
        """Bytes that wait for the peer to read."""
        return self._waiting_bytes

    async def run(self) -> None:
        """Read until the connection ends, then flush and close it.

        :raises ExceptionGroup: with whatever the driver raised; the transport is closed then too.
        """
        driver = self._driver
        reason = "the server stopped"
        try:
            driver.opened(self)
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    self._tasks = tasks
                    try:
                        reason = await self._read()
                        await self._flush()
                    finally:
                        # A group that is ending takes no more tasks, so write() must not try.
                        self._tasks = None
                        self._room.set()
                        tasks.cancel_scope.cancel()
        except Exception:
            reason = "an internal error"
            raise
        finally:
            self._tasks = None
            try:
                driver.closed(self, self._cut_reason or driver.close_reason(self) or reason)
            finally:
                with anyio.CancelScope(shield=True):
                    await self.transport.aclose()

    async def _read(self) -> str:
        """Hand on chunks until the peer or the protocol ends it; return why."""
        driver = self._driver
        while not (reason := driver.close_reason(self)):
            more = await self._hear()
            if self._broken is not None:
                self._lose(self._broken)
                driver.ended(self)
                return self._cut_reason
            while more:
                await self.drained()
                while self._held:
                    self._go = anyio.Event()
                    await self._go.wait()
                # One portion of one session at a time: those who ask for much wait for each other,
                # and whoever asks for little waits for one portion, however many they are.
                async with driver.lane:
                    more = driver.go_on(self)
                    await anyio.lowlevel.checkpoint()
            if self._waiting_bytes > self._pause_bytes:
                await self.drained()
        return reason

    async def _hear(self) -> bool:
        """Hand on what comes, at least one chunk; True when a part of the last one waits.

        Where the transport can be watched that goes on, chunk by chunk and without this task, until
        there is something that only a task can do: wait.
        """
        if self.transport.watch(self._readable):
            self._called = anyio.Event()
            self._is_called = False
            try:
                await self._called.wait()
            finally:
                self.transport.unwatch()
            if self._fault is not None:
                raise self._fault
            return self._more
        try:
            data = await self.transport.receive()
        except OSError as error:
            self._broken = error
            return False
        more = self._hand_on(data)
        # A peer that always has bytes ready, or asks for much, must not starve the others.
        if not self.transport.waited:
            await anyio.lowlevel.checkpoint()
        return more

    def _readable(self) -> None:
        """The event loop says that bytes may have come; called again as long as they have."""
        if self._is_called:
            return
        try:
            data = self.transport.receive_now()
            if data is None:
                return
        except OSError as error:
            self._broken = error
            self._call()
            return
        try:
            if not data:
                self._more = self._hand_on(data)
                self._call()
            elif self._driver.received(self, data):
                self._more = True
                self._call()
            elif self._stopping or self._waiting_bytes > self._pause_bytes:
                self._more = False
                self._call()
        except Exception as error:  # noqa: BLE001 - a bug: the task raises it
            self._fault = error
            self._call()

    def _call(self) -> None:
        """Let the reading task go on, and read nothing more before it does."""
        self.transport.unwatch()
        self._is_called = True
        self._called.set()

    def _hand_on(self, data: bytes) -> bool:
        if data:
            return self._driver.received(self, data)
        self._driver.ended(self)
        return False

    async def drained(self) -> None:
        """Wait until the peer has read what it was held back for: who does not read its answers
        is not read from either.  That this ends is the stall time's business."""
        while self._blocked and not self._cut_reason and self._tasks is not None:
            if self._room.is_set():
                self._room = anyio.Event()  # several may wait for one
            await self._room.wait()

    def hold(self) -> None:
        """Read and work on nothing more until :meth:`release`."""
        self._held = True

    def release(self) -> None:
        """Go on."""
        self._held = False
        self._go.set()

    def start(
        self, work: Callable[[Unpack[_Arguments]], Coroutine[Any, Any, None]], *args: *_Arguments
    ) -> None:
        """Run something beside the reading, until the session ends at the latest."""
        if self._tasks is not None:
            self._tasks.start_soon(work, *args)

    def write(self, data: Bytes) -> None:
        """Send, or keep what cannot be sent now; never waits, never raises.

        Nothing is sent before the session runs and after it has begun to end.
        """
        if self._tasks is None or self._cut_reason:
            return
        if not self._writing:  # else a piece may be half sent, and nothing may overtake it
            try:
                sent = self.transport.send_now(data)
            except OSError as error:
                self._lose(error)
                return
            if sent == len(data):
                return
            if sent:
                data = _rest(data, sent)
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._blocked:
            # Deliveries are held back, and still it has more to read: answers it asks for.
            if self._waiting_bytes > self._limits.max_outbound_bytes:
                self.cut(f"slow reader: over {self._limits.max_outbound_bytes} bytes are waiting")
                return
        elif self._waiting_bytes > self._limits.high_water_bytes:
            self._blocked = True
            self._driver.block(self)
        if not self._writing:
            self._writing = True
            self._idle = anyio.Event()
            self._tasks.start_soon(self._write_waiting)

    async def _write_waiting(self) -> None:
        """Send what waits, piece by piece, until nothing does."""
        limits = self._limits
        try:
            while self._waiting:
                piece = self._next_piece()
                while piece:
                    sent = 0
                    with anyio.move_on_after(limits.stall_timeout_s):
                        sent = await self.transport.send_some(piece)
                    if self._cut_reason:
                        return
                    if not sent:
                        self.cut(f"slow reader: no progress for {limits.stall_timeout_s:g} seconds")
                        return
                    piece = _rest(piece, sent)
                    self._waiting_bytes -= sent
                    if self._blocked and self._waiting_bytes <= limits.low_water_bytes:
                        self._blocked = False
                        self._room.set()
                        self._driver.unblock(self)
        except OSError as error:
            self._lose(error)
        finally:
            self._writing = False
            self._idle.set()

    def _next_piece(self) -> Bytes:
        """Take the next piece off; small ones are joined, so that they share one system call."""
        waiting = self._waiting
        piece = waiting.popleft()
        if not waiting or len(piece) >= _JOIN_BYTES:
            return piece
        pieces = [piece]
        size = len(piece)
        while waiting and size + len(waiting[0]) <= _JOIN_BYTES:
            pieces.append(waiting.popleft())
            size += len(pieces[-1])
        return b"".join(pieces)

    async def _flush(self) -> None:
        """Give the peer a little time to read the last bytes."""
        if self._writing:
            with anyio.move_on_after(self._limits.flush_timeout_s):
                await self._idle.wait()

    def cut(self, reason: str) -> None:
        """End it without another word."""
        self._drop(reason)
        self.transport.unwatch()
        self._scope.cancel()

    def _lose(self, error: OSError) -> None:
        """The connection broke: there is nobody to send to, but what had come is worked off.

        Reading finds the end by itself, and soon; the deadline is for a connection that does not.
        """
        self._drop(error.strerror or str(error) or type(error).__name__)
        self._scope.deadline = anyio.current_time() + self._limits.flush_timeout_s

    def _drop(self, reason: str) -> None:
        """Send nothing any more; the first reason given is the one that counts."""
        if not self._cut_reason:
            self._cut_reason = reason
        self._waiting.clear()
        self._waiting_bytes = 0
        self._room.set()

    def stop(self) -> None:
        """The protocol is closed (from a timer, or by the broker): flush and end."""
        if self._tasks is not None and not self._stopping:
            self._stopping = True
            self._tasks.start_soon(self._stop)

    async def _stop(self) -> None:
        await self._flush()
        self._scope.cancel()


def _rest(data: Bytes, sent: int) -> Bytes:
    """What is left of a piece; of a large one a window, for each try would copy all of it."""
    if len(data) - sent > _WINDOW_BYTES and isinstance(data, bytes):
        return memoryview(data)[sent:]
    return data[sent:]
