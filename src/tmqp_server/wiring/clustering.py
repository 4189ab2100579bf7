"""Builds this server's part in a cluster from its configuration."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence

import anyio

from tmqp.backoff import Backoff
from tmqp.constants import NODE_CLIENT_TYPE
from tmqp.hello import ConnectionInformation
from tmqp_server.cluster.filters import NodeFilter, PatternError, PatternFilter
from tmqp_server.cluster.link import MasterLink
from tmqp_server.cluster.outbox import Outbox
from tmqp_server.cluster.relay import HOST_PROPERTY, ClusterRelay
from tmqp_server.config import ServerConfig
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.cluster import ClusterConfig
from tmqp_server.settings.extensions import ClassSetting, load

__all__ = ["Filters", "Membership", "load_filter"]


class Membership:
    """This server's part in a cluster.

    Attributes: ``relay`` with its statistics; ``links``, the connections to the masters, in the
    order of the configuration.
    """

    def __init__(self, cluster: ClusterConfig, config: ServerConfig, filters: Filters) -> None:
        self.links = _links(cluster, config)
        self.relay = ClusterRelay(
            cluster.name,
            cluster.token,
            cluster.takes_slaves,
            self.links,
            filters.forward,
            filters.accept,
            filters.custom,
        )

    def waiting_bytes(self) -> int:
        """How many bytes wait for the masters."""
        return sum([link.outbox.waiting_bytes for link in self.links])


def load_filter(name: str) -> NodeFilter:
    """Make the filter that a configuration names as ``module:Class``.

    :raises ConfigError: when it cannot be loaded.
    """
    module, colon, class_name = name.partition(":")
    if not (colon and module and class_name):
        raise ConfigError(f"cluster.filter must be module:Class, got {name!r}")
    return load(ClassSetting("cluster.filter", module, class_name, {}), NodeFilter)


class Filters:
    """The filters of both sides, read from the configuration.

    :raises ConfigError: when a pattern, or the filter in Python, cannot be used.
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


def _links(cluster: ClusterConfig, config: ServerConfig) -> tuple[MasterLink, ...]:
    """The connection to each master."""
    information = ConnectionInformation(
        cluster.name,
        cluster.name,
        NODE_CLIENT_TYPE,
        cluster.token,
        {HOST_PROPERTY: socket.gethostname()},
    )
    links = [
        MasterLink(
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
    return tuple(links)
