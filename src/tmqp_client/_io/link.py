"""One connection's bytes: reading them into the machine, writing what it has to send.

Theory of operation.  Two tasks serve one transport.  The reader passes chunks to the machine; the
writer sleeps until there are bytes that could not be sent directly.  Callers change the machine
themselves and never touch the transport in a way that waits, so cancelling one of them at any point
leaves whole messages behind.

A failed write does not end the connection: messages that the server sent before it closed (such as
a refusal) may still be readable, and the reader will soon reach the end.
"""

from __future__ import annotations

import contextlib
from typing import Final, Protocol

import anyio
import anyio.lowlevel

from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Outcome
from tmqp_client._io.loop import NewSignal, Signal, now, this_asyncio_loop
from tmqp_client._io.transport import Transport

__all__ = ["ClientLink", "LinkOwner"]

#: How long the last write of a connection that has ended may take.
_LAST_WRITE_S: Final = 1.0


class LinkOwner(Protocol):
    """What a link needs of its session."""

    def settle(self, outcomes: list[Outcome]) -> None:
        """Report outcomes to the code that waits for them."""

    def check_timer(self) -> None:
        """Handle that the machine's next deadline may be earlier now."""

    def flushed(self) -> None:
        """Handle that bytes were sent."""

    @property
    def new_signal(self) -> NewSignal:
        """A function that makes signals."""


class ClientLink:
    """One connection of a client.

    :param transport: freshly connected; closed when :meth:`run` ends.

    Attributes to read: ``greeted``, set when the server has accepted the client or the connection
    is over; ``ended``, set when its tasks have ended.
    """

    def __init__(self, owner: LinkOwner, machine: ClientMachine, transport: Transport) -> None:
        self.transport = transport
        self.greeted = anyio.Event()
        self.ended = anyio.Event()
        self._owner = owner
        self._machine = machine
        self._unsent = memoryview(b"")
        self._write_broken = ""
        self._writer_wake = owner.new_signal()
        self._reader_wake: Signal | None = None
        self._scope: anyio.CancelScope | None = None
        self._over = False
        self._read_over = False
        self._failure: Exception | None = None
        self._reader_call = owner.new_signal()
        self._loop = this_asyncio_loop()
        self._flushing_soon = False
        self._writing = False
        self._ending = False

    async def run(self) -> None:
        """Read and write until the connection is over."""
        try:
            async with anyio.create_task_group() as tasks:
                self._scope = tasks.cancel_scope
                tasks.start_soon(self._write)
                await self._read()
                tasks.cancel_scope.cancel()
        finally:
            if not self._over:
                self._owner.settle(self._machine.fail("the client's tasks were cancelled"))
            self.ended.set()
            with anyio.CancelScope(shield=True):
                await self._send_last()
                await self.transport.aclose()

    def cancel(self) -> None:
        """End the connection at once."""
        if self._scope is not None:
            self._scope.cancel()

    def end(self, *, local: bool) -> None:
        """Handle that the machine has ended the connection; ``local`` if this side closed it."""
        self._over = True
        self.greeted.set()
        self.read_on()
        self.flush()  # Terminate and the reason
        if not local:
            self._ending = True
            self.cancel()

    # -- reading --------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Read until the connection is over, with callbacks of the loop if it has them."""
        transport = self.transport
        try:
            while not self._read_over:
                if self._must_pause():
                    await self._pause()
                self._reader_call = call = self._owner.new_signal()
                if not transport.watch(self._readable):
                    await self._wait_and_read()
                    return
                await call.wait()
                transport.unwatch()
                if self._failure is not None:
                    raise self._failure
        finally:
            transport.unwatch()

    def _readable(self) -> None:
        """Read, because the loop reports that the socket is readable."""
        try:
            data = self.transport.receive_now()
            if data is not None:
                self._take(data)
        except OSError as error:
            self._broken(error)
        except Exception as error:  # noqa: BLE001 - a bug; the reader's task shall end of it
            self._failure = error
            self._read_over = True
        if self._read_over or self._must_pause():
            self.transport.unwatch()
            self._reader_call.set()

    async def _wait_and_read(self) -> None:
        while not self._read_over:
            if self._must_pause():
                await self._pause()
            try:
                data = await self.transport.receive()
            except OSError as error:
                self._broken(error)
                return
            self._take(data)
            await anyio.lowlevel.checkpoint()

    def _take(self, data: bytes) -> None:
        """Process a chunk; empty for the end of the stream."""
        machine = self._machine
        if not data:
            self._read_over = True
            self._owner.settle(machine.receive_eof(now()))
        elif not self._over:  # else this side has closed: read on to the server's end
            self._owner.settle(machine.receive(data, now()))
            self.flush()

    def _broken(self, error: OSError) -> None:
        self._read_over = True
        self._owner.settle(self._machine.fail(self._write_broken or _words(error)))

    def _must_pause(self) -> bool:
        # If writing has failed, the connection ends soon, and only reading notices that.
        return not self._write_broken and self._machine.must_pause(self._machine.unsent_bytes)

    async def _pause(self) -> None:
        machine = self._machine
        machine.pause(now())
        self._owner.check_timer()
        while self._must_pause():
            self._reader_wake = self._owner.new_signal()
            await self._reader_wake.wait()
        self._reader_wake = None
        machine.resume(now())
        self._owner.check_timer()

    def read_on(self) -> None:
        """Let a paused reader check whether it may continue."""
        if self._reader_wake is not None:
            self._reader_wake.set()

    # -- writing --------------------------------------------------------------------------------

    def write_soon(self) -> None:
        """Send the queued bytes together with those that follow soon."""
        if self._loop is None:
            self._writer_wake.set()
        elif not self._flushing_soon:
            self._flushing_soon = True
            self._loop.call_soon(self._flush_now)

    def write_first(self) -> None:
        """Send the queued bytes at once if they are the first of this turn of the loop."""
        if self._loop is None or self._flushing_soon:
            self.write_soon()
            return
        self.flush()
        self.write_soon()  # further messages of this turn are sent together

    def _flush_now(self) -> None:
        self._flushing_soon = False
        self.flush()

    async def _write(self) -> None:
        while True:
            if self.flush() and not self.transport.sending:
                await self._writer_wake.wait()
                self._writer_wake = self._owner.new_signal()
                continue
            if self._ending:
                return  # what is left is sent last
            self._writing = True
            try:
                await self.transport.wait_sendable()
            except OSError as error:
                self._fail_writing(error)
                return
            self._writing = False

    async def _send_last(self) -> None:
        """Send the last bytes, such as Terminate and the reason, if the transport could not send
        them at once.

        A write that was cancelled half-way is not repeated.
        """
        if self._ending and not self._writing and not self._write_broken:
            with anyio.move_on_after(_LAST_WRITE_S), contextlib.suppress(OSError):
                while self.transport.sending:
                    await self.transport.wait_sendable()
                    self.flush()

    def flush(self) -> bool:
        """Send what the transport takes without waiting; return whether that was everything."""
        whole = True
        machine = self._machine
        while not self._write_broken:
            if not self._unsent:
                data = machine.data_to_send()
                if not data:
                    break
                self._unsent = memoryview(data)
            try:
                count = self.transport.try_send(self._unsent)
            except OSError as error:
                self._fail_writing(error)
                break
            if not count:
                whole = False
                break
            self._unsent = self._unsent[count:]
        machine.unsent_bytes = len(self._unsent)
        if self._write_broken:
            machine.data_to_send(pump=False)  # discard it
        if not whole or self.transport.sending:
            self._writer_wake.set()
        self._owner.flushed()
        return whole

    def _fail_writing(self, error: OSError) -> None:
        self._write_broken = _words(error)
        self._unsent = memoryview(b"")
        self._machine.unsent_bytes = 0
        self.read_on()


def _words(error: OSError) -> str:
    """The text of a system error, without its number."""
    text = error.strerror or str(error) or "the connection broke"
    return text[:1].lower() + text[1:]
