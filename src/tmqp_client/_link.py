"""Owns one connection's bytes: reading them into the machine, writing what it has to send.

Theory of operation.  Two tasks stand around one transport.  The reader feeds the machine chunk by
chunk; the writer sleeps until there is something that could not be sent directly.  Callers change
the machine themselves and never touch the transport in a way that waits, so cancelling one of them
at any point leaves whole messages behind.

A write that fails ends nothing by itself: what the server said before it closed (a refusal, say)
may still be readable, and the reader will come to the end soon enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio
import anyio.lowlevel

from tmqp_client._machine import ClientMachine
from tmqp_client._outcomes import Outcome
from tmqp_client._transport import Transport

__all__ = ["Link", "LinkOwner"]


class LinkOwner(Protocol):
    """What a link needs of its session."""

    def settle(self, outcomes: list[Outcome]) -> None:
        """Tell everyone an outcome concerns."""

    def check_timer(self) -> None:
        """The machine's next deadline may be earlier now."""

    def flushed(self) -> None:
        """Bytes have gone out."""


class Link:
    """One connection of a client.

    :param transport: freshly connected; closed when :meth:`run` ends.

    Attributes to read: ``greeted`` and ``ended``, set when the server has accepted or the
    connection is over, and when nothing of it runs any more.
    """

    def __init__(self, owner: LinkOwner, machine: ClientMachine, transport: Transport) -> None:
        self.transport = transport
        self.greeted = anyio.Event()
        self.ended = anyio.Event()
        self._owner = owner
        self._machine = machine
        self._unsent = memoryview(b"")
        self._write_broken = ""
        self._writer_wake = anyio.Event()
        self._reader_wake: anyio.Event | None = None
        self._scope: anyio.CancelScope | None = None
        self._over = False

    @property
    def unsent_bytes(self) -> int:
        """Bytes taken from the machine that the transport has not taken."""
        return len(self._unsent)

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
                await self.transport.aclose()

    def cancel(self) -> None:
        """End it at once."""
        if self._scope is not None:
            self._scope.cancel()

    def end(self, *, local: bool) -> None:
        """The machine says that the connection is over; ``local`` if this side closed it."""
        self._over = True
        self.greeted.set()
        self.read_on()
        self.flush()  # Terminate, and why
        if not local:
            self.cancel()

    # -- reading --------------------------------------------------------------------------------

    async def _read(self) -> None:
        machine = self._machine
        settle: Callable[[list[Outcome]], None] = self._owner.settle
        while True:
            if self._must_pause():
                await self._pause()
            try:
                data = await self.transport.receive()
            except OSError as error:
                settle(machine.fail(self._write_broken or _words(error)))
                return
            now = anyio.current_time()
            if not data:
                settle(machine.receive_eof(now))
                return
            if not self._over:  # else this side has closed: read on to the server's end
                settle(machine.receive(data, now))
                self.flush()
            await anyio.lowlevel.checkpoint()

    def _must_pause(self) -> bool:
        # When writing has failed the end is near, and only reading finds it.
        return not self._write_broken and self._machine.must_pause(len(self._unsent))

    async def _pause(self) -> None:
        machine = self._machine
        machine.pause(anyio.current_time())
        self._owner.check_timer()
        while self._must_pause():
            self._reader_wake = anyio.Event()
            await self._reader_wake.wait()
        self._reader_wake = None
        machine.resume(anyio.current_time())
        self._owner.check_timer()

    def read_on(self) -> None:
        """Something has changed that may have kept the reader from reading."""
        if self._reader_wake is not None:
            self._reader_wake.set()

    # -- writing --------------------------------------------------------------------------------

    def write_soon(self) -> None:
        """There is something to send; nobody is in a hurry."""
        self._writer_wake.set()

    async def _write(self) -> None:
        while True:
            if self.flush() and not self.transport.sending:
                await self._writer_wake.wait()
                self._writer_wake = anyio.Event()
                continue
            try:
                await self.transport.wait_sendable()
            except OSError as error:
                self._fail_writing(error)
                return

    def flush(self) -> bool:
        """Send what the transport takes without waiting; say whether that was everything."""
        whole = True
        while not self._write_broken:
            if not self._unsent:
                self._unsent = memoryview(self._machine.data_to_send())
                if not self._unsent:
                    break
            try:
                count = self.transport.try_send(self._unsent)
            except OSError as error:
                self._fail_writing(error)
                break
            if not count:
                whole = False
                break
            self._unsent = self._unsent[count:]
        if self._write_broken:
            self._machine.data_to_send(pump=False)  # for nobody
        if not whole or self.transport.sending:
            self._writer_wake.set()
        self._owner.flushed()
        return whole

    def _fail_writing(self, error: OSError) -> None:
        self._write_broken = _words(error)
        self._unsent = memoryview(b"")
        self.read_on()


def _words(error: OSError) -> str:
    """What an error of the system says, without its number."""
    text = error.strerror or str(error) or "the connection broke"
    return text[:1].lower() + text[1:]
