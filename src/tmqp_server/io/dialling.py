"""Connects this server to listening peers, in the event loop.

In some protocols either side may listen.  Such a connection is like one of a client, except that
this server opens it; when it ends, another one is opened a while later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, final

import anyio
import anyio.abc

from tmqp.address import Address
from tmqp.backoff import Backoff
from tmqp_server.doors.port import Door
from tmqp_server.io.connection import Carrier, Connection
from tmqp_server.io.transport import StreamTransport

__all__ = ["Dialling"]

logger = logging.getLogger("tmqp_server")

#: The timeout for connecting to a peer, in seconds.
_CONNECT_TIMEOUT_S: Final = 5.0
_LEAST_WAIT_S: Final = 0.1
_MOST_WAIT_S: Final = 5.0


@final
class Dialling:
    """Keeps a connection to each peer of the doors.

    :param new_number: returns the number of a new session.
    :param chance: returns a random number from 0 up to 1.
    """

    def __init__(
        self, shell: Carrier, new_number: Callable[[], int], chance: Callable[[], float]
    ) -> None:
        self._shell = shell
        self._new_number = new_number
        self._chance = chance
        self._backoff = Backoff(_LEAST_WAIT_S, _MOST_WAIT_S)
        self._stopped = False

    def stop(self) -> None:
        """Open no more connections."""
        self._stopped = True

    def serve(self, tasks: anyio.abc.TaskGroup, address: Address, door: Door, acts_as: str) -> None:
        """Keep a connection to this peer.

        :param acts_as: see ``Transport.acts_as``.
        """
        tasks.start_soon(self._keep, address, door, acts_as)

    async def _keep(self, address: Address, door: Door, acts_as: str) -> None:
        failures = 0
        while not self._stopped:
            try:
                with anyio.fail_after(_CONNECT_TIMEOUT_S):
                    stream = await anyio.connect_tcp(address.host, address.port)
            except (OSError, TimeoutError) as error:
                if not failures:
                    logger.warning("%s: no connection yet: %s", address, error)
                failures += 1
            else:
                failures = 1
                await self._speak(stream, address, door, acts_as)
            await anyio.sleep(self._backoff.delay_s(failures, self._chance()))

    async def _speak(
        self, stream: anyio.abc.ByteStream, address: Address, door: Door, acts_as: str
    ) -> None:
        """Run one connection; a fault in it is logged and ends only this connection."""
        transport = StreamTransport(stream, str(address))
        transport.acts_as = acts_as
        number = self._new_number()
        try:
            await Connection(number, transport, address.host, self._shell, door).run()
        except Exception:
            logger.exception("%s: the session failed", address)
