"""The settings of a cluster, ``[cluster]``: this server's part in it (F133)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from tmqp.address import Address, parse_address
from tmqp.constants import MAX_NAME_BYTES
from tmqp.errors import LocalProtocolError
from tmqp_server.settings.checks import ConfigError, positive, settings_of, text, whole

__all__ = ["ClusterConfig", "cluster_settings"]

_ROLES = ("master", "slave", "both")
_KINDS = ("queue", "router", "direct", "acknowledge", "response", "decision")


def _masters(values: object) -> tuple[Address, ...]:
    if not isinstance(values, (list, tuple)):
        raise ConfigError(f"masters must be a list of addresses, got {values!r}")
    addresses: list[Address] = []
    for value in values:
        address = value if isinstance(value, Address) else _address(value)
        if address.tls:
            raise ConfigError(f"masters: {address}: TLS is not supported yet; use tmq:// or unix:")
        if address in addresses:
            raise ConfigError(f"masters: {address} is named twice")
        addresses.append(address)
    return tuple(addresses)


def _address(value: object) -> Address:
    if not isinstance(value, str):
        raise ConfigError(f"masters: an address must be a string, got {value!r}")
    try:
        return parse_address(value)
    except LocalProtocolError as error:
        raise ConfigError(f"masters: {error}") from error


def _flag(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"{attribute.name} must be true or false, got {value!r}")


def _texts(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{attribute.name} must be a list of strings, got {value!r}")


def _word(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or not value or value != value.strip():
        raise ConfigError(f"{attribute.name} must be a string without blanks around it")
    if not value.isprintable():
        raise ConfigError(f"{attribute.name} must be one line of printable characters")


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _text_list(*default: str) -> tuple[str, ...]:
    return attrs.field(default=default, converter=_listed, validator=_texts)


@attrs.frozen(kw_only=True)
class ClusterConfig:
    """This server's part in a cluster (F133)."""

    name: str = attrs.field(validator=_word)
    """The unique name of this node."""

    token: str = attrs.field(validator=_word, repr=False)
    """The secret of the cluster, the same on all nodes."""

    role: str = attrs.field()
    """``master`` accepts slaves, ``slave`` connects to masters, ``both`` does both."""

    masters: tuple[Address, ...] = attrs.field(default=(), converter=_masters)
    """Addresses of the masters."""

    forward: tuple[str, ...] = _text_list("*")
    """Patterns ``channel/queue`` for traffic to the masters."""

    accept: tuple[str, ...] = _text_list("*")
    """Patterns ``channel/queue`` for traffic accepted from other nodes."""

    forward_kinds: tuple[str, ...] = _text_list(*_KINDS)
    """Kinds of messages that are forwarded to the masters."""

    accept_kinds: tuple[str, ...] = _text_list(*_KINDS)
    """Kinds of messages that are accepted from other nodes."""

    filter: str = attrs.field(default="", validator=text)
    """A filter in Python: ``module:Class``, a subclass of ``NodeFilter``."""

    share_decisions: bool = attrs.field(default=False, validator=_flag)
    """Report settled messages to other nodes, and remove messages that they have settled (F63)."""

    buffer_bytes: int = attrs.field(default=16_777_216, validator=whole)
    """How many bytes may wait for one master that is not connected or slow; beyond this, the oldest
    messages are dropped."""

    reconnect_min_s: float = attrs.field(default=0.5, validator=positive)
    """Seconds between the first two attempts to connect to a master."""

    reconnect_max_s: float = attrs.field(default=30.0, validator=positive)
    """The longest time between two attempts, in seconds."""

    def __attrs_post_init__(self) -> None:
        if len(self.name.encode()) > MAX_NAME_BYTES:
            raise ConfigError(f"name must be at most {MAX_NAME_BYTES} bytes")
        if self.role not in _ROLES:
            raise ConfigError(f"role must be master, slave or both, got {self.role!r}")
        if self.role == "master" and self.masters:
            raise ConfigError('a master does not connect: use role = "both", or no masters')
        if self.role != "master" and not self.masters:
            raise ConfigError(f"role {self.role} needs masters, the addresses to connect to")
        if self.reconnect_max_s < self.reconnect_min_s:
            raise ConfigError("reconnect_max_s must not be less than reconnect_min_s")

    @property
    def takes_slaves(self) -> bool:
        """Whether others may connect as nodes."""
        return self.role != "slave"


def cluster_settings(table: Mapping[str, Any]) -> ClusterConfig:
    """Read ``[cluster]``.

    :raises ConfigError: for an unknown or missing key, or a bad value.
    """
    return settings_of(ClusterConfig, table, "cluster")
