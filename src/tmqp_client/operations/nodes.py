"""The client's methods about the server and the nodes of its cluster (F59, F69)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmqp import models
from tmqp.constants import HEADER_VALUE_YES, OP_INSTANCE_LIST
from tmqp.extensions import HEADER_STOP, OP_DESCRIBE_SERVER, OP_DRAIN
from tmqp_client._core.requests import Request
from tmqp_client._port import Operations

if TYPE_CHECKING:
    from tmqp.models import NodeInformation, ServerInformation

__all__ = ["Nodes"]


class Nodes(Operations):
    """The methods of :class:`tmqp_client.Client` about the server and its nodes."""

    async def server_information(self, *, timeout_s: float | None = None) -> ServerInformation:
        """Return information about the server: its version, clock, clients and memory (an
        extension).

        :raises OperationFailed: with 401 without the right; with 400 from a server that does not
            know the operation.
        :raises ModelError: if the server's answer is invalid.
        """
        request = Request(OP_DESCRIBE_SERVER, "describe the server", "")
        return models.ServerInformation.from_json(await self._answer(request, timeout_s))

    async def drain(self, *, stop: bool = False, timeout_s: float | None = None) -> None:
        """Make the server stop accepting clients and messages, and wait until nothing is
        unacknowledged, up to its configured timeout (an extension).

        The server answers at once; later it disconnects its clients, including this one.

        :param stop: end its process afterwards.
        :raises OperationFailed: with 401 without the right; with 400 from a server that does not
            know the operation.
        """
        headers = ((HEADER_STOP, HEADER_VALUE_YES),) if stop else ()
        await self._answer(Request(OP_DRAIN, "drain the server", "", headers), timeout_s)

    async def nodes(self, *, timeout_s: float | None = None) -> list[NodeInformation]:
        """Return the other nodes of the server's cluster: its masters, then the slaves connected to
        it.

        :raises OperationFailed: with 401 without the right.
        :raises ModelError: if the server's answer is invalid.
        """
        return await self._list(
            models.NodeInformation, Request(OP_INSTANCE_LIST, "list nodes", ""), timeout_s
        )
