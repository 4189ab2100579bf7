"""Owns the wiring: reads the configuration, chooses doors and adapters, starts and stops it all.

It is the only module that names concrete adapters.  ``async with running(config) as server`` is the
whole server in another program or a test; :func:`serve_forever` adds signals and is what the
command runs.
"""

from __future__ import annotations

import logging
import signal
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from tmqp.address import Address
from tmqp_server.config import ServerConfig
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.hub import Hub
from tmqp_server.io.driver import Driver
from tmqp_server.io.listener import Listener, open_listener
from tmqp_server.io.session import Session
from tmqp_server.io.transport import SocketTransport, peer_name

__all__ = ["Server", "running", "serve_forever"]

logger = logging.getLogger("tmqp_server")


def _new_id() -> str:
    return uuid.uuid4().hex


class Server:
    """A running server.

    Attributes: ``addresses`` it listens on (ports chosen), ``broker`` for its statistics.
    """

    def __init__(self, config: ServerConfig, tasks: anyio.abc.TaskGroup) -> None:
        self.config = config
        self.broker = Broker(config.broker)
        self.addresses: list[Address] = []
        self._door = NativeDoor(
            _new_id, config.connection, wall_clock_offset_s=time.time() - anyio.current_time()
        )
        self._driver = Driver(Hub(self.broker, config.outbound.high_water_bytes), self._door)
        self._tasks = tasks
        self._listeners: list[Listener] = []
        self._last_number = 0
        self._per_host: dict[str, int] = {}

    @property
    def sessions(self) -> int:
        """Connections at this moment."""
        return self._driver.sessions

    async def start(self) -> None:
        """Listen on all addresses.

        :raises ListenError: if one cannot be; nothing is left open then.
        """
        try:
            for address in self.config.listen:
                self._listeners.append(await open_listener(address))
        except BaseException:
            self._close_listeners()
            raise
        self.addresses = [listener.address for listener in self._listeners]
        self._tasks.start_soon(self._driver.run_timers)
        for listener in self._listeners:
            self._tasks.start_soon(self._accept, listener)
            logger.info("listening on %s", listener.address)

    async def _accept(self, listener: Listener) -> None:
        await listener.serve(self._connected)

    def _connected(self, sock: socket.socket) -> None:
        """A client connected: refuse it past the limits, else give it a task."""
        config = self.config
        host = "" if sock.family == socket.AF_UNIX else peer_name(sock).rpartition(":")[0]
        local = not host or Address(host).is_local
        here = self._per_host.get(host, 0)
        if self._driver.sessions >= config.max_connections:
            logger.warning("refused %s: %d connections", peer_name(sock), config.max_connections)
            sock.close()
            return
        if not local and here >= config.max_connections_per_address:
            logger.warning("refused %s: %d connections from there", peer_name(sock), here)
            sock.close()
            return
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_number += 1
        transport = SocketTransport(sock, peer_name(sock))
        session = Session(self._last_number, transport, self._driver, config.outbound)
        self._per_host[host] = here + 1
        self._tasks.start_soon(self._run_session, session, host)

    async def _run_session(self, session: Session, host: str) -> None:
        """A session's whole life; a fault in it is logged and ends it alone."""
        try:
            await session.run()
        except Exception:
            logger.exception("%s: the session failed", session.transport.peer)
        finally:
            self._per_host[host] -= 1
            if not self._per_host[host]:
                del self._per_host[host]

    async def stop(self) -> None:
        """Accept no more, close every connection politely, wait for them a bounded time."""
        self._close_listeners()
        self._driver.close_all("the server stops")
        with anyio.move_on_after(self.config.shutdown_timeout_s):
            await self._driver.wait_for_none()

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners = []


@asynccontextmanager
async def running(config: ServerConfig) -> AsyncIterator[Server]:
    """Run a server for the time of the ``async with`` block.

    :raises ListenError: when an address cannot be listened on.
    """
    async with anyio.create_task_group() as tasks:
        server = Server(config, tasks)
        await server.start()
        try:
            yield server
        finally:
            with anyio.CancelScope(shield=True):
                await server.stop()
            tasks.cancel_scope.cancel()


async def serve_forever(config: ServerConfig, started: Callable[[Server], None]) -> None:
    """Run a server until SIGINT or SIGTERM.

    :param started: called once, when it listens.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with running(config) as server:
            started(server)
            async for number in signals:
                logger.info("%s: stopping", signal.Signals(number).name)
                break
