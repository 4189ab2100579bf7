"""Listeners for the programs' web servers, and the line that says where they listen."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup

from tmqp_nsq.addresses import Address
from tmqp_nsq.starting import ProgramError

__all__ = ["listen", "serve_web"]

logger = logging.getLogger("tmqp_nsq")


async def listen(address: Address) -> Listener[SocketStream]:
    """Listen on an address.

    :raises ProgramError: if it cannot be listened on.
    """
    try:
        if address.path:
            _remove_stale(address.path)
            return await anyio.create_unix_listener(address.path)
        return await anyio.create_tcp_listener(
            local_host=address.host, local_port=address.port, reuse_port=False
        )
    except OSError as error:
        why = error.strerror or str(error)
        raise ProgramError(f"cannot listen on {address}: {why}") from error


def _remove_stale(path: str) -> None:
    """Remove the socket that an earlier run left; anything else at the path stays."""
    try:
        if Path(path).is_socket():
            Path(path).unlink()
    except OSError:
        return


async def serve_web(
    address: Address,
    handler: Callable[[SocketStream], Awaitable[Any]],
    group: TaskGroup,
) -> Address:
    """Serve connections to an address in tasks of *group*; say and return where.

    :raises ProgramError: if it cannot be listened on.
    """
    listener = await listen(address)
    real = address
    if not address.path:
        local: Any = listener.extra(SocketAttribute.local_address)  # noqa: S610 - not Django's
        real = Address(str(local[0]), int(local[1]))
    logger.info("HTTP: listening on %s", real)
    group.start_soon(_serve, listener, handler)
    return real


async def _serve(
    listener: Listener[SocketStream], handler: Callable[[SocketStream], Awaitable[Any]]
) -> None:
    async with listener:
        await listener.serve(handler)
