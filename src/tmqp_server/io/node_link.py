"""One connection to a master in the event loop: connects, and carries bytes to and from the turn.

It decides nothing: :class:`~tmqp_server.shell.links.Links` does.
"""

from __future__ import annotations

import os

import anyio
import anyio.abc

from tmqp.address import Address
from tmqp_server.io.connection import Carrier
from tmqp_server.io.transport import StreamTransport, Transport
from tmqp_server.shell.world import Dial

__all__ = ["NodeLink"]

#: The most bytes of one write.
_WRITE_BYTES = 262_144


def _why(error: BaseException) -> str:
    """The reason that the system gives; libraries wrap it in an error that says less."""
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
    """One connection, from the first attempt to its end; run as one task.

    :param address: the address of the master.
    """

    def __init__(self, dial: Dial, address: Address, shell: Carrier) -> None:
        self._dial = dial
        self._address = address
        self._shell = shell
        self._turn = shell.turn
        self._scope = anyio.CancelScope()
        self._output = anyio.Event()

    def write(self) -> None:
        """Write the waiting bytes."""
        self._output.set()

    def hang_up(self) -> None:
        """End the connection immediately."""
        self._scope.cancel()

    async def run(self) -> None:
        """Connect and carry bytes until it is over."""
        try:
            with self._scope:
                transport = await self._connect()
                try:
                    await self._talk(transport)
                finally:
                    with anyio.CancelScope(shield=True):
                        await transport.aclose()
        except OSError as error:
            self._failed(_why(error))

    def _failed(self, problem: str) -> None:
        self._turn.link_failed(self._dial, problem, self._shell.now())
        self._shell.attend()

    async def _connect(self) -> Transport:
        address = self._address
        stream: anyio.abc.ByteStream
        if address.socket_path:
            stream = await anyio.connect_unix(address.socket_path)
        else:
            stream = await anyio.connect_tcp(address.host, address.port)
        return StreamTransport(stream, str(address))

    async def _talk(self, transport: Transport) -> None:
        shell = self._shell
        self._turn.link_dialled(self._dial, shell.now())
        shell.attend()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write, transport)
            data = b"-"
            while data:
                try:
                    data = await transport.receive()
                except OSError as error:
                    self._failed(_why(error))
                    break
                self._turn.link_read(self._dial, data, shell.now())
                shell.attend()
            # The turn ends the connection, now or when the last bytes are written.

    async def _write(self, transport: Transport) -> None:
        """Write piece after piece, until the connection is over."""
        shell = self._shell
        links = self._turn.links
        while True:
            await self._output.wait()
            self._output = anyio.Event()
            while piece := links.piece(self._dial):
                offset = links.offset(self._dial)
                part = memoryview(piece)[offset : offset + _WRITE_BYTES]
                try:
                    sent = await transport.send_some(part)
                except OSError as error:
                    self._failed(_why(error))
                    return
                self._turn.link_taken(self._dial, sent, shell.now())
                shell.attend()
