"""Connects this server to lookupds, in the event loop.

These connections are like those of clients, except that this server opens them.
``doors/nsq_announce`` decides when to open one and what to send.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import anyio
import anyio.abc

from tmqp.address import Address, parse_address
from tmqp.errors import LocalProtocolError
from tmqp_server.doors.nsq_announce.links import Announcer
from tmqp_server.doors.port import Door
from tmqp_server.io.connection import Carrier, Connection
from tmqp_server.io.transport import StreamTransport

__all__ = ["Announcing"]

logger = logging.getLogger("tmqp_server.nsq")

#: The timeout for connecting to a lookupd, in seconds.
_CONNECT_TIMEOUT_S = 5.0
_QUESTIONS_AT_A_TIME = 8


class Announcing:
    """Keeps a connection to each lookupd while :meth:`run` runs.

    :param announcer: decides which connections to open.
    :param door: opens their sessions.
    :param ask_door: makes the door that asks about a topic.
    :param new_number: returns the number of a new session.
    """

    def __init__(
        self,
        announcer: Announcer,
        door: Door,
        ask_door: Callable[[bytes], Door | None],
        shell: Carrier,
        new_number: Callable[[], int],
    ) -> None:
        self._announcer = announcer
        announcer.wake(self._attend)
        self._door = door
        self._ask_door = ask_door
        self._shell = shell
        self._new_number = new_number
        self._changed = anyio.Event()
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._room = anyio.CapacityLimiter(_QUESTIONS_AT_A_TIME)
        self._stopped = False

    def _attend(self) -> None:
        self._changed.set()

    def set(self, addresses: tuple[str, ...]) -> None:
        """Use these lookupds from now on."""
        self._announcer.set(addresses)
        self._changed.set()

    def stop(self) -> None:
        """Open no more connections."""
        self._stopped = True
        self._changed.set()

    async def run(self) -> None:
        """Open the connections that are due, until :meth:`stop` is called."""
        announcer = self._announcer
        async with anyio.create_task_group() as tasks:
            while not self._stopped:
                self._changed = anyio.Event()
                removed, announcer.removed = announcer.removed, []
                for address in removed:
                    if address in self._scopes:
                        self._scopes[address].cancel()
                questions, announcer.questions = announcer.questions, []
                for address, topic in questions:
                    tasks.start_soon(self._ask, address, topic)
                now = self._shell.now()
                for address in announcer.due(now):
                    tasks.start_soon(self._dial, address)
                wait_s = max(announcer.next_due() - now, 0.0)
                with anyio.move_on_after(None if wait_s == math.inf else wait_s):
                    await self._changed.wait()

    async def _dial(self, address: str) -> None:
        """Run one connection, from the first attempt to its end."""
        scope = self._scopes[address] = anyio.CancelScope()
        try:
            with scope:
                stream = await self._connect(address)
                transport = StreamTransport(stream, address)
                number = self._new_number()
                connection = Connection(number, transport, address, self._shell, self._door)
                await connection.run()
                if not self._stopped:
                    logger.warning("nsqlookupd %s: %s", address, connection.reason)
        except OSError as error:
            logger.warning("nsqlookupd %s: %s", address, error)
        finally:
            if self._scopes.get(address) is scope:
                del self._scopes[address]
            self._announcer.ended(address, self._shell.now())
            self._changed.set()

    async def _ask(self, address: str, topic: bytes) -> None:
        """Ask a lookupd about a topic, a few at a time."""
        door = self._ask_door(topic)
        if door is None:
            return
        async with self._room:
            if self._stopped:
                return
            try:
                stream = await self._connect(address)
            except OSError as error:
                logger.warning("nsqlookupd %s: %s", address, error)
                return
            transport = StreamTransport(stream, address)
            number = self._new_number()
            await Connection(number, transport, address, self._shell, door).run()

    async def _connect(self, address: str) -> anyio.abc.ByteStream:
        """Connect to ``HOST:PORT``.

        :raises OSError: when it fails.
        """
        try:
            place: Address = parse_address(address)
        except LocalProtocolError as error:
            raise OSError(str(error)) from error
        try:
            with anyio.fail_after(_CONNECT_TIMEOUT_S):
                return await anyio.connect_tcp(place.host, place.port)
        except TimeoutError as error:
            raise OSError("the connection was not accepted in time") from error
