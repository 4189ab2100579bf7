"""Runs a server for nsqd and nsqlookupd, in the words of their users."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio

import tmqp
from tmqp.address import Address as DoorAddress
from tmqp_nsq.addresses import Address
from tmqp_nsq.flags import FlagError
from tmqp_nsq.starting import ProgramError, stop_signals
from tmqp_server import ConfigError, ListenError, Server, ServerConfig, StoreError, running

__all__ = ["door_address", "serve"]

logger = logging.getLogger("tmqp_nsq")


def door_address(address: Address, *, tls: bool = False) -> DoorAddress:
    """An address as doors of the server have it."""
    if address.path:
        return DoorAddress(socket_path=address.path)
    return DoorAddress(address.host, address.port, tls=tls)


@asynccontextmanager
async def _named_errors() -> AsyncIterator[None]:
    """Raise what the server cannot do as errors of programs."""
    try:
        yield
    except ConfigError as error:
        raise FlagError(str(error)) from error
    except (ListenError, StoreError) as error:
        raise ProgramError(str(error)) from error


async def serve(
    config: ServerConfig, beside: Callable[[Server], Coroutine[Any, Any, None]] | None = None
) -> None:
    """Run a server until SIGTERM or SIGINT.

    :param beside: runs in a task beside it.
    :raises FlagError: if the configuration cannot be used.
    :raises ProgramError: if an address cannot be listened on, or the data cannot be read.
    """
    async with _named_errors(), stop_signals() as signals, running(config) as server:
        build = "compiled" if tmqp.compiled else "interpreted"
        logger.info("tmqp %s (%s)", tmqp.__version__, build)
        async with anyio.create_task_group() as group:
            if beside is not None:
                group.start_soon(beside, server)
            async for number in signals:
                logger.info("%s: stopping", number.name)
                break
            group.cancel_scope.cancel()
