"""Reads the configuration, chooses doors and adapters, and runs a server with them.

``async with running(config) as server`` is the whole server in another program or a test;
``serving.py`` adds signals and is what the command runs.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from tmqp_server.access.auth import Access, load_access
from tmqp_server.access.channel_hooks import ChannelEventHandler, OpenAccess, load_channel_hooks
from tmqp_server.access.custom import MessageHook, load_hook
from tmqp_server.admin.world import AdminWorld
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.doors.kinds import DoorKind
from tmqp_server.doors.registry import DoorRegistry
from tmqp_server.engine.model.delivery import DeliveryHandler
from tmqp_server.engine.routing.custom import CustomRouter
from tmqp_server.storage.port import Store
from tmqp_server.wiring.app import Server, guards
from tmqp_server.wiring.assembly import build_broker
from tmqp_server.wiring.clustering import Filters
from tmqp_server.wiring.doors import sealed_addresses
from tmqp_server.wiring.parts import open_store
from tmqp_server.wiring.watched import make_registry

if TYPE_CHECKING:
    from tmqp_server.wiring.replicating import GroupMember

__all__ = ["running"]

logger = logging.getLogger("tmqp_server")


@asynccontextmanager
async def running(
    config: ServerConfig,
    *,
    handlers: Mapping[str, DeliveryHandler] | None = None,
    routers: Mapping[str, CustomRouter] | None = None,
    access: Access | None = None,
    custom_messages: MessageHook | None = None,
    authenticators: Mapping[str, Access] | None = None,
    event_handlers: Mapping[str, ChannelEventHandler] | None = None,
    store: Store | None = None,
    doors: Iterable[DoorKind] = (),
) -> AsyncIterator[Server]:
    """Run a server for the time of the ``async with`` block.

    :param handlers: delivery handlers by the names that queues use, in addition to the built-in
        ones and those of the configuration.
    :param routers: custom routers by name, in addition to those of the configuration.
    :param access: access rules, instead of those of the configuration.
    :param custom_messages: handles custom messages, instead of the configured handler.
    :param authenticators: authenticators by the names that channels use, in addition to those of
        the configuration.
    :param event_handlers: event handlers by the names that channels use, in addition to those of
        the configuration.
    :param store: the store, instead of the one that ``config.data`` names; it is closed at the end.
    :param doors: protocols that the configuration may name, in addition to those of this package.
    :raises ConfigError: when something that the configuration names cannot be used, a name is
        taken, or a declared channel or router cannot be created.
    :raises ListenError: when the server cannot listen on an address; then nothing stays open.
    :raises StoreError: when the data cannot be read, or another process uses it.
    """
    if access is None:
        access = load_access(config.access)
    registry = make_registry(world := AdminWorld(), doors)
    _check_reach(config, access, registry)
    if custom_messages is None and config.custom_messages:
        custom_messages = load_hook(config.custom_messages)
    filters = None if config.cluster is None else Filters(config.cluster)
    hooks = load_channel_hooks(
        config.authenticators, config.event_handlers, authenticators, event_handlers
    )
    if access is None and hooks.authenticators:
        access = OpenAccess()
    broker = build_broker(config, handlers, routers, hooks, storage=store is not None)
    server: Server | None = None
    try:
        store, member = await anyio.to_thread.run_sync(_open_store, config, store)
        try:
            parts = (access, custom_messages, filters, hooks, store, registry, world, member)
            server = Server(config, [], broker, *parts)
            if member is None:
                await server.begin()
            # Last, so that whatever else is wrong is said first, and nobody waits meanwhile.
            await server.listen()
        except BaseException:
            if member is not None:
                member.stop()
            if store is not None:
                store.close(clean=False)
            raise
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run)
            try:
                yield server
            finally:
                server.stop()
    finally:
        if server is not None:
            server.close_listeners()
            server.shut_sockets()


def _open_store(
    config: ServerConfig, store: Store | None
) -> tuple[Store | None, GroupMember | None]:
    """Open the store, and this server's part in its group; None for each that it does not have."""
    if config.replication is not None:
        from tmqp_server.wiring.replicating import join  # noqa: PLC0415 - for few

        member = join(config, store)
        return member.store, member
    return (open_store(config) if store is None else store), None


def _check_reach(config: ServerConfig, access: Access | None, registry: DoorRegistry) -> None:
    """Refuse to serve other machines without access rules, and warn if tokens travel unencrypted.

    :raises ConfigError: when other machines can reach an address, no access rules are set, and
        ``allow_remote`` is not set.
    """
    for address in config.all_addresses():
        if address.is_local or config.allow_remote:
            continue
        if not guards(access):
            raise ConfigError(
                f"{address} can be reached from other machines and clients are not authenticated;"
                " set allow_remote (--allow-remote) if that is wanted"
            )
        if not address.tls and address not in sealed_addresses(config, registry):
            logger.warning("%s: tokens travel unencrypted on this address", address)
