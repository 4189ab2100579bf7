"""Owns the making of this server's part in a cluster from its configuration, and its running."""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Sequence

import anyio

from tmqp.constants import NODE_CLIENT_TYPE
from tmqp.hello import ConnectionInformation
from tmqp_server.cluster.filters import NodeFilter, PatternError, PatternFilter
from tmqp_server.cluster.link import Backoff, Link
from tmqp_server.cluster.outbox import Outbox
from tmqp_server.cluster.relay import HOST_PROPERTY, ClusterRelay
from tmqp_server.config import ServerConfig
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import Command, ReportMaster
from tmqp_server.io.driver import Driver
from tmqp_server.io.node_link import NodeLink
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.cluster import ClusterConfig
from tmqp_server.settings.extensions import ClassSetting, load

__all__ = ["Filters", "Membership", "join_cluster", "load_filter"]

logger = logging.getLogger("tmqp_server.cluster")


class Membership:
    """This server's part in a cluster, at work.

    Attributes: ``relay`` with its statistics, and ``links``, one for each master.
    """

    def __init__(self, relay: ClusterRelay, links: Sequence[NodeLink], driver: Driver) -> None:
        self.relay = relay
        self.links = tuple(links)
        self._driver = driver
        self._told_errors = 0

    async def run(self) -> None:
        """Keep the connections to the masters, until :meth:`close`."""
        now_known = [ReportMaster(n.link.node_id, n.link.host, False) for n in self.links]
        self._driver.perform(now_known)
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

    def after_turn(self) -> None:
        """Let the links look for something to send; log what a filter in Python raised."""
        for link in self.links:
            link.wake()
        error = self.relay.filter_error
        if error is not None:
            self.relay.filter_error = None
            logger.error("the filter of the cluster failed", exc_info=error)

    def perform(self, commands: Sequence[Command]) -> None:
        """Carry out what a master brought, if the filters let it."""
        if commands:
            self._driver.perform([each for each in commands if self.relay.heed(each)])


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


def join_cluster(
    cluster: ClusterConfig,
    config: ServerConfig,
    filters: Filters,
    broker: Broker,
    driver: Driver,
) -> Membership:
    """Make this server's part in a cluster and connect it with its hub."""
    if cluster.takes_slaves:
        broker.take_nodes()
    if cluster.share_decisions:
        broker.share_decisions()
    information = ConnectionInformation(
        cluster.name,
        cluster.name,
        NODE_CLIENT_TYPE,
        cluster.token,
        {HOST_PROPERTY: socket.gethostname()},
    )
    links: list[Link] = []
    for address in cluster.masters:
        link = Link(
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
        links.append(link)
    relay = ClusterRelay(
        cluster.name,
        cluster.token,
        cluster.takes_slaves,
        links,
        filters.forward,
        filters.accept,
        filters.custom,
    )
    nodes: list[NodeLink] = []
    membership = Membership(relay, nodes, driver)
    for link, address in zip(links, cluster.masters, strict=True):
        timeout_s = config.connection.handshake_timeout_s
        nodes.append(NodeLink(link, address, membership.perform, timeout_s, config.outbound))
    membership.links = tuple(nodes)
    driver.hub.relay = relay
    driver.after_turn = membership.after_turn
    return membership
