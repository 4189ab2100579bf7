"""Owns the making of this server's part in a cluster from its configuration, and its running."""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Sequence
from functools import partial

import anyio

from tmqp.backoff import Backoff
from tmqp.constants import NODE_CLIENT_TYPE
from tmqp.hello import ConnectionInformation
from tmqp_server.cluster.filters import NodeFilter, PatternError, PatternFilter
from tmqp_server.cluster.link import Link
from tmqp_server.cluster.outbox import Outbox
from tmqp_server.cluster.relay import HOST_PROPERTY, ClusterRelay
from tmqp_server.config import ServerConfig
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command, ReportMaster
from tmqp_server.io.node_link import NodeLink
from tmqp_server.io.shell import Shell
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.cluster import ClusterConfig
from tmqp_server.settings.extensions import ClassSetting, load

__all__ = ["Filters", "Membership", "join_cluster", "load_filter"]

logger = logging.getLogger("tmqp_server.cluster")


class Membership:
    """This server's part in a cluster: made, attached to the shell, then run.

    Attributes: ``relay`` with its statistics; ``machines``, which keep the connections to the
    masters, in the order of the configuration; ``links``, which carry their bytes.
    """

    def __init__(self, cluster: ClusterConfig, config: ServerConfig, filters: Filters) -> None:
        self._config = config
        self._addresses = cluster.masters
        self.machines = _machines(cluster, config)
        self.relay = ClusterRelay(
            cluster.name,
            cluster.token,
            cluster.takes_slaves,
            self.machines,
            filters.forward,
            filters.accept,
            filters.custom,
        )
        self.links: tuple[NodeLink, ...] = ()

    def attach(self, shell: Shell) -> None:
        """Make what carries the bytes; *shell* carries out what the masters bring."""

        def perform(commands: Sequence[Command]) -> None:
            # Also without commands: the link may have something to send now.
            shell.perform([each for each in commands if self.relay.heed(each)])

        timeout_s = self._config.connection.handshake_timeout_s
        self.links = tuple(
            [
                NodeLink(
                    machine,
                    address,
                    perform,
                    timeout_s,
                    self._config.outbound,
                    partial(shell.link_waits, at),
                )
                for at, (machine, address) in enumerate(
                    zip(self.machines, self._addresses, strict=True)
                )
            ]
        )

    async def serve(self, shell: Shell) -> None:
        """Keep the connections to the masters, until :meth:`close`."""
        shell.perform([ReportMaster(each.node_id, each.host, False) for each in self.machines])
        async with anyio.create_task_group() as tasks:
            for link in self.links:
                tasks.start_soon(self._run_link, link)

    async def _run_link(self, link: NodeLink) -> None:
        try:
            await link.run()
        except Exception:
            logger.exception("the connection to master %s failed", link.link.node_id)

    async def close(self) -> None:
        """Leave politely; each connection has its flush time."""
        for link in self.links:
            link.close()
        for link in self.links:
            await link.wait_closed()

    def wake(self, link: int) -> None:
        """A link has something to send."""
        if self.links:
            self.links[link].wake()


def load_filter(name: str) -> NodeFilter:
    """Make the filter that a configuration names as ``module:Class``.

    :raises ConfigError: when there is none such.
    """
    module, colon, class_name = name.partition(":")
    if not (colon and module and class_name):
        raise ConfigError(f"cluster.filter must be module:Class, got {name!r}")
    return load(ClassSetting("cluster.filter", module, class_name, {}), NodeFilter)


class Filters:
    """What passes on both sides, read from the configuration.

    :raises ConfigError: when a pattern or the filter in Python cannot be used.
    """

    def __init__(self, cluster: ClusterConfig) -> None:
        self.forward = _patterns("forward", cluster.forward, cluster.forward_kinds)
        self.accept = _patterns("accept", cluster.accept, cluster.accept_kinds)
        self.custom = load_filter(cluster.filter) if cluster.filter else None


def _patterns(key: str, patterns: Sequence[str], kinds: Sequence[str]) -> PatternFilter:
    try:
        return PatternFilter(patterns, kinds)
    except PatternError as error:
        raise ConfigError(f"cluster: {key}: {error}") from error


def _machines(cluster: ClusterConfig, config: ServerConfig) -> list[Link]:
    """What keeps the connection to each master."""
    information = ConnectionInformation(
        cluster.name,
        cluster.name,
        NODE_CLIENT_TYPE,
        cluster.token,
        {HOST_PROPERTY: socket.gethostname()},
    )
    return [
        Link(
            str(address),
            address.host if not address.socket_path else "localhost",
            information,
            config.connection,
            Backoff(cluster.reconnect_min_s, cluster.reconnect_max_s),
            Outbox(cluster.buffer_bytes),
            random.random,
            cluster.share_decisions,
            anyio.current_time(),
        )
        for address in cluster.masters
    ]


def join_cluster(
    cluster: ClusterConfig, config: ServerConfig, filters: Filters, broker: Broker
) -> Membership:
    """Make this server's part in a cluster."""
    if cluster.takes_slaves:
        broker.take_nodes()
    if cluster.share_decisions:
        broker.share_decisions()
    return Membership(cluster, config, filters)
