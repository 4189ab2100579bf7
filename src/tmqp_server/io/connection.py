"""One connection in the event loop: carries bytes between a transport and the turn.

It decides nothing: :class:`~tmqp_server.shell.turn.Turn` says after each chunk whether to continue
reading, to wait or to end, when to start a writer, and when the connection is over.

If the event loop can watch the socket, it calls a :class:`Reading` for each chunk, and no task is
woken.  Otherwise (trio, TLS), a task reads.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from typing import Protocol

import anyio
import anyio.lowlevel

from tmqp_server.doors.port import Door
from tmqp_server.io.reading import STEP, Reading
from tmqp_server.io.tls import TlsTransport, agree
from tmqp_server.io.transport import Bytes, SocketTransport, Transport
from tmqp_server.shell.steps import EFFECTS, END, WAIT
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import why_broken

__all__ = ["Carrier", "Connection"]

logger = logging.getLogger("tmqp_server.connection")


class Carrier(Protocol):
    """Runs the turn in the event loop."""

    turn: Turn
    #: The time, as the event loop tells it.
    now: Callable[[], float]

    def opened(self, connection: Connection) -> int:
        """Begin a connection; return what its reader does next."""

    def gone(self, connection: Connection) -> None:
        """Handle the end of a connection."""

    def failed(self, connection: Connection, error: Exception) -> None:
        """Handle a bug in the transfer of bytes."""

    def attend(self) -> None:
        """Carry out the effects of the turn."""


class Connection:
    """One connection; made by the listener, run as one task.

    :param host: the peer's address without its port, by which refused log-ins are counted.
    :param door: the protocol; None for that of the shell.
    :param tls: the TLS context for protocols that change to TLS, and the timeout of the handshake
        in seconds; None without a certificate.

    Attributes: ``number``, that of its session; ``transport``; ``reason``, why it was closed.
    """

    def __init__(
        self,
        number: int,
        transport: Transport,
        host: str,
        shell: Carrier,
        door: Door | None = None,
        tls: tuple[ssl.SSLContext, float] | None = None,
    ) -> None:
        self.number = number
        self.door = door
        self.transport = transport
        self.host = host
        self.reason = ""
        self._shell = shell
        self._turn = shell.turn
        self._scope = anyio.CancelScope()
        self._writing: anyio.CancelScope | None = None
        #: Set by ``Resume``; only where a task reads.
        self._resumed: anyio.Event | None = None
        #: Set when the transport is a ``TlsTransport`` that still needs its handshake.
        self._upgraded = anyio.Event()
        self._tls = tls
        self._handshake_timeout_s = 0.0

    async def run(self) -> None:
        """Transfer bytes until the connection ends; it is closed in any case."""
        try:
            with self._scope:
                step = self._shell.opened(self)
                if step != END and not self._watch():
                    await self._read(step)
                await self._upgraded.wait()  # most never are: ``close`` ends it
                await self._read(await self._shake_hands())
                await anyio.sleep_forever()  # the last bytes are written
        except Exception as error:  # noqa: BLE001 - a bug; it hurts this connection alone
            self._shell.failed(self, error)
        finally:
            self.transport.unwatch()
            if self._writing is not None:
                self._writing.cancel()
            try:
                self._shell.gone(self)
            finally:
                with anyio.CancelScope(shield=True):
                    await self.transport.aclose()

    def close(self, reason: str) -> None:
        """End the connection immediately."""
        self.reason = reason
        self.transport.unwatch()
        self._scope.cancel()

    # -- reading --------------------------------------------------------------------------------

    def _watch(self) -> bool:
        shell = self._shell
        reading = Reading(
            self.number, self.transport, shell.turn, shell.now, shell.attend, self._fail
        )
        return self.transport.watch(reading.readable)

    def _fail(self, error: Exception) -> None:
        self._shell.failed(self, error)

    async def _read(self, step: int) -> None:
        """Read in a task, because the event loop cannot watch this transport."""
        self._resumed = anyio.Event()
        shell = self._shell
        while step != END:
            if step == WAIT:
                await self._resumed.wait()
                self._resumed = anyio.Event()
                if self._upgraded.is_set():
                    return
            try:
                data = await self.transport.receive()
            except OSError as error:
                step = self._turn.broken(self.number, why_broken(error), shell.now())
            else:
                step = self._turn.received(self.number, data, shell.now())
            if step & EFFECTS:
                shell.attend()
                step &= STEP
            if not self.transport.waited:
                # A peer that always has bytes ready must not starve the others.
                await anyio.lowlevel.checkpoint()

    def upgrade(self) -> None:
        """Change to TLS; the connection is not read from meanwhile."""
        if self._tls is None:
            self._turn.broken(self.number, "the server has no certificate", self._shell.now())
            return
        tls, timeout_s = self._tls
        transport = self.transport
        if not isinstance(transport, SocketTransport):
            self._turn.broken(self.number, "TLS cannot begin here", self._shell.now())
            return
        self._handshake_timeout_s = timeout_s
        self.transport = TlsTransport(transport.detach(), transport.peer, tls)
        self.transport.acts_as = transport.acts_as
        self._upgraded.set()
        if self._resumed is not None:
            self._resumed.set()

    async def _shake_hands(self) -> int:
        transport = self.transport
        assert isinstance(transport, TlsTransport), "it was upgraded"
        self._upgraded = anyio.Event()
        shell = self._shell
        try:
            await agree(transport, self._handshake_timeout_s)
        except OSError as error:
            step = self._turn.broken(self.number, why_broken(error), shell.now())
        else:
            step = self._turn.secured(self.number, shell.now())
        if step & EFFECTS:
            shell.attend()
        return step & STEP

    def resume(self) -> None:
        """Continue reading."""
        if self._resumed is not None:
            self._resumed.set()
        elif not self._watch():
            self._turn.broken(self.number, "closed on this side", self._shell.now())

    # -- writing --------------------------------------------------------------------------------

    async def write(self, scope: anyio.CancelScope) -> None:
        """Write the waiting bytes, piece by piece, until there are none or *scope* is cancelled."""
        self._writing = scope
        turn = self._turn
        shell = self._shell
        with scope:
            while piece := turn.piece(self.number):
                offset = turn.offset(self.number)
                rest: Bytes = memoryview(piece)[offset:] if offset else piece
                try:
                    sent = await self.transport.send_some(rest)
                except OSError as error:
                    turn.lost(self.number, why_broken(error), shell.now())
                    shell.attend()
                    return
                turn.taken(self.number, sent, shell.now())
                shell.attend()
