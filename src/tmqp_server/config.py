"""Owns the server's configuration: what can be set, what is checked, what the defaults are.

A configuration comes from the command line, or from a TOML file whose keys are the fields' names.
Every mistake is one sentence that names the key; nothing is guessed.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping
from typing import Any

import attrs

from tmqp.address import DEFAULT_PORT, Address, parse_address
from tmqp.constants import MAX_NAME_BYTES
from tmqp.errors import LocalProtocolError
from tmqp.limits import Limits
from tmqp_server.engine.limits import EngineLimits

__all__ = ["ClusterConfig", "ConfigError", "OutboundLimits", "ServerConfig", "parse_config"]


class ConfigError(Exception):
    """The configuration cannot be used; the text says which key and why."""


def _positive(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ConfigError(f"{attribute.name} must be a positive number, got {value!r}")


def _whole(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not value > 0:
        raise ConfigError(f"{attribute.name} must be a positive whole number, got {value!r}")


def _flag(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"{attribute.name} must be true or false, got {value!r}")


def _bytes(default: int) -> int:
    return attrs.field(default=default, validator=_whole)


def _seconds(default: float) -> float:
    return attrs.field(default=default, validator=_positive)


@attrs.frozen(kw_only=True)
class OutboundLimits:
    """What a peer that reads slowly may cost."""

    max_outbound_bytes: int = _bytes(4_194_304)
    """Bytes waiting for one peer, whose deliveries are held back already, at which its connection
    is cut."""

    high_water_bytes: int = _bytes(262_144)
    """Bytes waiting for one peer at which queues hold its deliveries back."""

    low_water_bytes: int = _bytes(65_536)
    """Bytes waiting at which deliveries go on."""

    stall_timeout_s: float = _seconds(10.0)
    """Seconds in which a peer with bytes waiting reads nothing, before it is cut."""

    flush_timeout_s: float = _seconds(2.0)
    """Seconds a closing connection has to read its last bytes."""

    def __attrs_post_init__(self) -> None:
        if not self.low_water_bytes <= self.high_water_bytes <= self.max_outbound_bytes:
            raise ConfigError(
                "low_water_bytes, high_water_bytes and max_outbound_bytes must not decrease"
            )


def _addresses(values: object, key: str = "listen") -> tuple[Address, ...]:
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, (list, tuple)) or not values:
        raise ConfigError(f"{key} must be one or more addresses")
    addresses: list[Address] = []
    for value in values:
        if isinstance(value, Address):
            addresses.append(value)
            continue
        if not isinstance(value, str):
            raise ConfigError(f"{key}: an address is a text, got {value!r}")
        try:
            addresses.append(parse_address(value))
        except LocalProtocolError as error:
            raise ConfigError(f"{key}: {error}") from error
    return tuple(addresses)


def _masters(values: object) -> tuple[Address, ...]:
    if isinstance(values, (list, tuple)) and not values:
        return ()
    addresses = _addresses(values, "masters")
    for place, address in enumerate(addresses):
        if address.tls:
            raise ConfigError(f"masters: {address}: TLS is not spoken yet; use tmq:// or unix:")
        if address in addresses[:place]:
            raise ConfigError(f"masters: {address} is named twice")
    return addresses


def _texts(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{attribute.name} must be a list of texts, got {value!r}")


def _word(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or not value or value != value.strip():
        raise ConfigError(f"{attribute.name} must be a text without blanks around it")
    if not value.isprintable():
        raise ConfigError(f"{attribute.name} must be one line of printable characters")


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _text(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(f"{attribute.name} must be a text, got {value!r}")


def _text_list(*default: str) -> tuple[str, ...]:
    return attrs.field(default=default, converter=_listed, validator=_texts)


_ROLES = ("master", "slave", "both")
_KINDS = ("queue", "router", "direct", "acknowledge", "response", "decision")


@attrs.frozen(kw_only=True)
class ClusterConfig:
    """This server's part in a cluster (F133)."""

    name: str = attrs.field(validator=_word)
    """What the other nodes know this one by; each has its own."""

    token: str = attrs.field(validator=_word, repr=False)
    """The secret of the cluster, the same on all nodes."""

    role: str = attrs.field()
    """``master`` takes slaves, ``slave`` connects to masters, ``both`` does both."""

    masters: tuple[Address, ...] = attrs.field(default=(), converter=_masters)
    """Addresses of the masters."""

    forward: tuple[str, ...] = _text_list("*")
    """Patterns ``channel/queue`` of what goes to the masters."""

    accept: tuple[str, ...] = _text_list("*")
    """Patterns ``channel/queue`` of what is taken from other nodes."""

    forward_kinds: tuple[str, ...] = _text_list(*_KINDS)
    """Kinds of messages that go to the masters."""

    accept_kinds: tuple[str, ...] = _text_list(*_KINDS)
    """Kinds of messages that are taken from other nodes."""

    filter: str = attrs.field(default="", validator=_text)
    """A filter in Python: ``module:Class``, a subclass of ``NodeFilter``."""

    share_decisions: bool = attrs.field(default=False, validator=_flag)
    """Tell other nodes what queues are done with, and let go of what they are done with (F63)."""

    buffer_bytes: int = _bytes(16_777_216)
    """Bytes that wait for one master that is away or slow; the oldest messages make room."""

    reconnect_min_s: float = _seconds(0.5)
    """Seconds between the first two tries to connect to a master."""

    reconnect_max_s: float = _seconds(30.0)
    """The longest time between two tries."""

    def __attrs_post_init__(self) -> None:
        if len(self.name.encode()) > MAX_NAME_BYTES:
            raise ConfigError(f"name must be at most {MAX_NAME_BYTES} bytes")
        if self.role not in _ROLES:
            raise ConfigError(f"role must be master, slave or both, got {self.role!r}")
        if self.role == "master" and self.masters:
            raise ConfigError('a master connects to nobody: use role = "both", or no masters')
        if self.role != "master" and not self.masters:
            raise ConfigError(f"role {self.role} needs masters, the addresses to connect to")
        if self.reconnect_max_s < self.reconnect_min_s:
            raise ConfigError("reconnect_max_s must not be less than reconnect_min_s")

    @property
    def takes_slaves(self) -> bool:
        """Whether others may connect as nodes."""
        return self.role != "slave"


@attrs.frozen(kw_only=True)
class ServerConfig:
    """Everything that can be set."""

    listen: tuple[Address, ...] = attrs.field(
        factory=lambda: (Address("127.0.0.1", DEFAULT_PORT),), converter=_addresses
    )
    """Addresses to listen on."""

    allow_remote: bool = attrs.field(default=False, validator=_flag)
    """Listen on addresses other machines can reach although nobody is authenticated."""

    max_connections: int = _bytes(10_000)
    """Connections at one time; one more is closed at once."""

    max_connections_per_address: int = _bytes(1_000)
    """Connections at one time from one remote address (Unix sockets and loopback excepted)."""

    shutdown_timeout_s: float = _seconds(10.0)
    """Seconds connections have to take their last bytes when the server stops."""

    connection: Limits = attrs.field(factory=Limits)
    """What one peer may cost on the wire."""

    broker: EngineLimits = attrs.field(factory=EngineLimits)
    """What all clients together may cost."""

    outbound: OutboundLimits = attrs.field(factory=OutboundLimits)
    """What a slow reader may cost."""

    cluster: ClusterConfig | None = None
    """This server's part in a cluster; None while it stands alone."""

    def __attrs_post_init__(self) -> None:
        for address in self.listen:
            if address.tls:
                raise ConfigError(f"{address}: TLS is not served yet; use tmq:// or unix:")
            if not address.is_local and not self.allow_remote:
                raise ConfigError(
                    f"{address} can be reached from other machines and nobody is authenticated;"
                    " set allow_remote (--allow-remote) if that is wanted"
                )


def parse_config(text: str) -> dict[str, Any]:
    """Read a TOML configuration into keyword arguments for :class:`ServerConfig`.

    Tables ``[connection]``, ``[broker]``, ``[outbound]`` and ``[cluster]`` hold the fields of
    :class:`tmqp.Limits`, ``EngineLimits``, :class:`OutboundLimits` and :class:`ClusterConfig`.

    :raises ConfigError: for a syntax error, an unknown key (naming the nearest) or a bad value.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not a TOML file: {error}") from error
    values = _known(table, [field.name for field in attrs.fields(ServerConfig)], "")
    for key, kind in (("connection", Limits), ("broker", EngineLimits)):
        if key in values:
            values[key] = _limits(key, kind, _table(values, key))
    if "outbound" in values:
        names = [field.name for field in attrs.fields(OutboundLimits)]
        outbound = _known(_table(values, "outbound"), names, "outbound.")
        try:
            values["outbound"] = OutboundLimits(**outbound)
        except ConfigError as error:
            raise ConfigError(f"outbound: {error}") from error
    if "cluster" in values:
        values["cluster"] = _cluster(_table(values, "cluster"))
    return values


def _cluster(table: Mapping[str, Any]) -> ClusterConfig:
    fields = attrs.fields(ClusterConfig)
    known = _known(table, [field.name for field in fields], "cluster.")
    for field in fields:
        if field.default is attrs.NOTHING and field.name not in known:
            raise ConfigError(f"cluster.{field.name} is missing")
    try:
        return ClusterConfig(**known)
    except ConfigError as error:
        raise ConfigError(f"cluster: {error}") from error


def _limits(
    key: str, kind: type[Limits | EngineLimits], table: Mapping[str, Any]
) -> Limits | EngineLimits:
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    numbers = _known(table, list(defaults), f"{key}.")
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ConfigError(f"{key}.{name} must be a number, got {value!r}")
        if isinstance(defaults[name], int) and not isinstance(value, int):
            raise ConfigError(f"{key}.{name} must be a whole number, got {value!r}")
    try:
        return kind(**numbers)
    except (LocalProtocolError, ValueError) as error:
        raise ConfigError(f"{key}: {error}") from error


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = values[key]
    if not isinstance(value, dict):
        raise ConfigError(f"{key} must be a table: [{key}]")
    return value


def _known(table: Mapping[str, Any], names: list[str], prefix: str) -> dict[str, Any]:
    for key in table:
        if key not in names:
            near = difflib.get_close_matches(key, names, 1)
            hint = f"; did you mean {prefix}{near[0]}?" if near else ""
            raise ConfigError(f"unknown key {prefix}{key}{hint}")
    return dict(table)
