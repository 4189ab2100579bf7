"""Owns the connection to one master in the event loop: dialling, reading, writing, its clock.

All that is decided is decided by :class:`tmqp_server.cluster.link.Link`; this carries it out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence

import anyio
import anyio.abc

from tmqp.address import Address
from tmqp_server.cluster.link import Link, LinkState
from tmqp_server.config import OutboundLimits
from tmqp_server.engine.commands import Command
from tmqp_server.io.transport import StreamTransport, Transport

__all__ = ["NodeLink"]

logger = logging.getLogger("tmqp_server.cluster")

#: What is written at one go: messages are joined up to this size.
_WRITE_BYTES = 262_144
#: How often messages given up are told of, in seconds.
_TELL_EVERY_S = 10.0


def _why(error: BaseException) -> str:
    """What the system says; libraries wrap it, with a sentence that says less."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno)
        inner = cause.__cause__
        if isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        cause = inner
    return str(error) or type(error).__name__


class NodeLink:
    """One link, run as one task.

    :param link: the machine.
    :param address: where the master is.
    :param perform: carries out what the master brings; must not wait.
    :param connect_timeout_s: seconds to connect in.
    :param limits: how long a master that takes nothing is waited for.
    :param waits: called when everything is written: :meth:`wake` is called when there is more.
    """

    def __init__(
        self,
        link: Link,
        address: Address,
        perform: Callable[[Sequence[Command]], None],
        connect_timeout_s: float,
        limits: OutboundLimits,
        waits: Callable[[], None],
    ) -> None:
        self.link = link
        self._address = address
        self._perform = perform
        self._connect_timeout_s = connect_timeout_s
        self._limits = limits
        self._waits = waits
        self._output = anyio.Event()
        self._closing = anyio.Event()
        self._done = anyio.Event()
        self._dialling = anyio.CancelScope()
        self._told_dropped = 0
        self._told_at = -_TELL_EVERY_S

    # -- from outside ---------------------------------------------------------------------------

    def wake(self) -> None:
        """The link has something to send."""
        self._output.set()
        self._tell_of_dropped()

    def _tell_of_dropped(self) -> None:
        now = anyio.current_time()
        outbox = self.link.outbox
        if outbox.dropped == self._told_dropped or now - self._told_at < _TELL_EVERY_S:
            return
        self._told_at = now
        count = outbox.dropped - self._told_dropped
        self._told_dropped = outbox.dropped
        logger.warning("master %s: %d messages given up: the buffer is full", self._address, count)

    def close(self) -> None:
        """Say goodbye and come to an end, within the flush time."""
        self._perform(self.link.close(anyio.current_time()))
        self._closing.set()
        self._output.set()
        self._dialling.cancel()

    async def wait_closed(self) -> None:
        """Wait until :meth:`run` has come to its end."""
        await self._done.wait()

    # -- the task -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, and connect again, until :meth:`close`."""
        try:
            while self.link.state != LinkState.CLOSED:
                await self._wait_until_due()
                if self.link.state == LinkState.WAITING:
                    await self._try()
        finally:
            self._done.set()

    async def _wait_until_due(self) -> None:
        due = self.link.next_deadline()
        if due is not None:
            with anyio.CancelScope(deadline=due):
                await self._closing.wait()

    async def _try(self) -> None:
        """One connection, from the first byte to the last."""
        link = self.link
        self._tell_of_dropped()
        link.dialling(anyio.current_time())
        transport = await self._dial()
        if transport is None:
            return
        try:
            link.opened(anyio.current_time())
            if link.state != LinkState.CLOSED:
                await self._talk(transport)
        finally:
            with anyio.CancelScope(shield=True):
                await transport.aclose()

    async def _dial(self) -> Transport | None:
        address = self._address
        problem = f"no connection within {self._connect_timeout_s:g} seconds"
        stream: anyio.abc.ByteStream | None = None
        try:
            with anyio.move_on_after(self._connect_timeout_s) as self._dialling:
                if address.socket_path:
                    stream = await anyio.connect_unix(address.socket_path)
                else:
                    stream = await anyio.connect_tcp(address.host, address.port)
        except OSError as error:
            problem = _why(error)
        if stream is None:
            self.link.failed(problem, anyio.current_time())
            self._log_problem()
            return None
        return StreamTransport(stream, str(address))

    def _log_problem(self) -> None:
        self._tell_of_dropped()
        link = self.link
        due = link.next_deadline()
        if link.state == LinkState.WAITING and due is not None:
            wait_s = max(due - anyio.current_time(), 0.0)
            logger.warning(
                "master %s: %s; next try in %.1f seconds", self._address, link.problem, wait_s
            )

    async def _talk(self, transport: Transport) -> None:
        """Read, write and keep the time until one of them says that it is over."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write, transport, tasks.cancel_scope)
            tasks.start_soon(self._keep_time, tasks.cancel_scope)
            await self._read(transport)
            tasks.cancel_scope.cancel()
        self._log_problem()

    def _over(self) -> bool:
        return self.link.state not in (LinkState.HANDSHAKING, LinkState.UP)

    async def _read(self, transport: Transport) -> None:
        link = self.link
        while not self._over():
            try:
                data = await transport.receive()
            except OSError as error:
                self._perform(link.lost(_why(error), anyio.current_time()))
                return
            before = link.connections
            if data:
                commands = link.receive(data, anyio.current_time())
            else:
                commands = link.lost("", anyio.current_time())
            if link.connections != before:
                logger.info("master %s: connected", self._address)
            self._perform(commands)

    async def _write(self, transport: Transport, scope: anyio.CancelScope) -> None:
        """Write what the link has, until the connection ends or this server stops."""
        link = self.link
        while True:
            data = link.take(_WRITE_BYTES)
            if data:
                problem = await self._send(transport, data)
                if problem:
                    self._perform(link.lost(problem, anyio.current_time()))
                    break
            elif self._over():
                break
            else:
                self._output = anyio.Event()
                self._waits()
                await self._output.wait()
        scope.cancel()

    async def _send(self, transport: Transport, data: bytes) -> str:
        """Send all of it; returns what went wrong."""
        limits = self._limits
        stopping = self.link.state == LinkState.CLOSED
        patience_s = limits.flush_timeout_s if stopping else limits.stall_timeout_s
        at = 0
        try:
            while at < len(data):
                sent = 0
                with anyio.move_on_after(patience_s):
                    sent = await transport.send_some(data[at : at + _WRITE_BYTES])
                if not sent:
                    return f"it took nothing for {patience_s:g} seconds"
                at += sent
                self.link.note_written(sent)
        except OSError as error:
            return _why(error)
        return ""

    async def _keep_time(self, scope: anyio.CancelScope) -> None:
        """Call the link's clock when it is due."""
        link = self.link
        while not self._over():
            due = link.next_deadline()
            if due is not None and due > anyio.current_time():
                await anyio.sleep_until(due)
                continue
            self._perform(link.on_deadline(anyio.current_time()))
        if link.state != LinkState.CLOSED:
            scope.cancel()
