"""The server's configuration: the settings, their defaults and their checks.

A configuration comes from the command line, or from a TOML file whose keys are the fields' names.
Every mistake is reported in one sentence that names the key; nothing is guessed.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from tmqp.address import DEFAULT_PORT, Address, parse_address
from tmqp.errors import LocalProtocolError
from tmqp.limits import Limits
from tmqp_server.access.roles import OPEN, TABLE, AccessConfig, AccessError, parse_access
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.settings.admin import ADMIN, admin_settings
from tmqp_server.settings.audit import AuditSettings, audit_settings
from tmqp_server.settings.checks import ConfigError as ConfigError
from tmqp_server.settings.checks import known as _known
from tmqp_server.settings.checks import positive as _positive
from tmqp_server.settings.checks import table_of
from tmqp_server.settings.checks import whole as _whole
from tmqp_server.settings.cluster import ClusterConfig, cluster_settings
from tmqp_server.settings.doors import DoorSettings, door_settings
from tmqp_server.settings.extensions import ClassSetting, class_settings
from tmqp_server.settings.http import HttpSettings, http_settings
from tmqp_server.settings.log import LogSettings, log_settings
from tmqp_server.settings.options import (
    DeclaredChannel,
    channel_changes,
    declared_channels,
    queue_changes,
)
from tmqp_server.settings.rates import RateSettings, rate_settings
from tmqp_server.settings.replication import ReplicationConfig, replication_settings
from tmqp_server.settings.routers import DeclaredRouter, declared_routers
from tmqp_server.settings.tls import NO_CERTIFICATE, TlsSettings, tls_settings

__all__ = [
    "OutboundLimits",
    "ServerConfig",
    "StorageConfig",
    "WebConfig",
    "parse_config",
    "read_config",
]


_Kind = TypeVar("_Kind", Limits, EngineLimits, HttpLimits)


def _flag(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"{attribute.name} must be true or false, got {value!r}")


def _path(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(f"{attribute.name} must be a string, got {value!r}")
    module, colon, name = value.partition(":")
    if colon and all(part.isidentifier() for part in (*module.split("."), name)):
        return
    if value:
        raise ConfigError(f"{attribute.name} must have the form module:attribute, got {value!r}")


def _bytes(default: int) -> int:
    return attrs.field(default=default, validator=_whole)


def _seconds(default: float) -> float:
    return attrs.field(default=default, validator=_positive)


@attrs.frozen(kw_only=True)
class OutboundLimits:
    """Limits for peers that read slowly."""

    max_outbound_bytes: int = _bytes(4_194_304)
    """How many bytes may wait for one peer whose deliveries are already held back; beyond this, its
    connection is cut."""

    high_water_bytes: int = _bytes(262_144)
    """Bytes waiting for one peer above which queues hold its deliveries back."""

    low_water_bytes: int = _bytes(65_536)
    """Bytes waiting at which deliveries to the peer resume."""

    stall_timeout_s: float = _seconds(10.0)
    """Seconds for which a peer with bytes waiting may read nothing before its connection is cut."""

    flush_timeout_s: float = _seconds(2.0)
    """Seconds for which a closing connection may read its last bytes."""

    def __attrs_post_init__(self) -> None:
        if not self.low_water_bytes <= self.high_water_bytes <= self.max_outbound_bytes:
            raise ConfigError(
                "low_water_bytes, high_water_bytes and max_outbound_bytes must not decrease"
            )


def _addresses(values: object) -> tuple[Address, ...]:
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, (list, tuple)):
        raise ConfigError("listen must be one or more addresses")
    addresses: list[Address] = []
    for value in values:
        if isinstance(value, Address):
            addresses.append(value)
            continue
        if not isinstance(value, str):
            raise ConfigError(f"listen: an address must be a string, got {value!r}")
        try:
            addresses.append(parse_address(value))
        except LocalProtocolError as error:
            raise ConfigError(f"listen: {error}") from error
    return tuple(addresses)


@attrs.frozen(kw_only=True)
class StorageConfig:
    """How messages are kept on disk."""

    floor_bytes: int = _bytes(67_108_864)
    """Free bytes of the disk below which the server saves no more messages."""


def _web_addresses(values: object) -> tuple[Address, ...]:
    """Check addresses: they must begin with ``http://``, ``https://`` or ``unix:``."""
    if isinstance(values, (str, Address)):
        values = [values]
    if not isinstance(values, (list, tuple)):
        raise ConfigError("listen must be a list of addresses")
    addresses: list[Address] = []
    for value in values:
        if isinstance(value, Address):
            addresses.append(value)
            continue
        scheme, separator, rest = str(value).partition("://")
        if isinstance(value, str) and value.startswith("unix:"):
            addresses += _addresses(value)
        elif not isinstance(value, str) or not separator or scheme not in ("http", "https"):
            raise ConfigError(
                f"listen: an address must begin with http://, https:// or unix:, got {value!r}"
            )
        else:
            addresses += _addresses(f"{'tmqs' if scheme == 'https' else 'tmq'}://{rest}")
    return tuple(addresses)


@attrs.frozen(kw_only=True)
class WebConfig:
    """The door for HTTP and WebSocket."""

    listen: tuple[Address, ...] = attrs.field(default=(), converter=_web_addresses)
    """Addresses to listen on for HTTP: ``http://HOST:PORT``, ``https://HOST:PORT`` or
    ``unix:PATH``; if empty, HTTP is not served."""

    limits: HttpLimits = attrs.field(factory=HttpLimits)
    """Limits for one HTTP peer."""


def _web_config(table: Mapping[str, Any]) -> WebConfig:
    numbers = dict(table)
    listen = numbers.pop("listen", ())
    names = [field.name for field in dataclasses.fields(HttpLimits)]
    _known(table, ["listen", *names], "web.")
    try:
        return WebConfig(listen=listen, limits=_limits("web", HttpLimits, numbers))
    except ConfigError as error:
        text = str(error)
        raise ConfigError(text if text.startswith("web") else f"web: {text}") from error


def _directory(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value or "\0" in value):
        raise ConfigError(f"{attribute.name} must be the name of a directory, got {value!r}")


@attrs.frozen(kw_only=True)
class ServerConfig:
    """All settings of a server."""

    listen: tuple[Address, ...] = attrs.field(
        factory=lambda: (Address("127.0.0.1", DEFAULT_PORT),), converter=_addresses
    )
    """Addresses to listen on; may be empty if there are doors, and then TMQP is not served."""

    allow_remote: bool = attrs.field(default=False, validator=_flag)
    """Listen on addresses that other machines can reach, although clients are not authenticated."""

    access: AccessConfig = attrs.field(factory=AccessConfig)
    """Who may connect, and what each client may do."""

    custom_messages: str = attrs.field(default="", validator=_path)
    """``module:attribute`` of the code that handles custom messages; empty for none."""

    hook_timeout_s: float = _seconds(5.0)
    """Seconds that the server's own code may take to decide about access or to handle a custom
    message."""

    max_connections: int = _bytes(10_000)
    """Simultaneous connections; further ones are closed at once."""

    max_connections_per_address: int = _bytes(1_000)
    """Simultaneous connections from one remote address (Unix sockets and loopback excepted)."""

    shutdown_timeout_s: float = _seconds(10.0)
    """Seconds for which connections may read their last bytes when the server stops."""

    drain_timeout_s: float = _seconds(30.0)
    """Seconds that a draining server (SIGTERM) waits for acknowledgements."""

    slow_turn_ms: int = _bytes(50)
    """Milliseconds from which on a turn of the event loop is slow, and logged."""

    data: str | None = attrs.field(default=None, validator=_directory)
    """The directory of durable queues; without it, nothing is stored."""

    storage: StorageConfig = attrs.field(factory=StorageConfig)
    """How durable queues are stored."""

    connection: Limits = attrs.field(factory=Limits)
    """Limits for one peer on the wire."""

    broker: EngineLimits = attrs.field(factory=EngineLimits)
    """Limits for all clients together."""

    outbound: OutboundLimits = attrs.field(factory=OutboundLimits)
    """Limits for a slow reader."""

    auto_channel_creation: bool = attrs.field(default=True, validator=_flag)
    """Whether a channel is created when a client joins it or pushes to it."""

    auto_queue_creation: bool = attrs.field(default=True, validator=_flag)
    """Whether a queue is created when a client pushes to it."""

    channel: ChannelChanges = attrs.field(factory=ChannelChanges)
    """The default options of channels, where they differ from the protocol's."""

    queue: QueueChanges = attrs.field(factory=QueueChanges)
    """The default options of queues, where they differ from the protocol's."""

    channels: tuple[DeclaredChannel, ...] = ()
    """Channels and queues to create at the start."""

    routers: tuple[DeclaredRouter, ...] = ()
    """Routers and bindings to create at the start."""

    handlers: Mapping[str, ClassSetting] = attrs.field(factory=dict)
    """Your own delivery handlers, by the names that queues use."""

    custom_routers: Mapping[str, ClassSetting] = attrs.field(factory=dict)
    """Your own routers, by name."""

    authenticators: Mapping[str, ClassSetting] = attrs.field(factory=dict)
    """The authenticators that channels can name."""

    event_handlers: Mapping[str, ClassSetting] = attrs.field(factory=dict)
    """The event handlers that channels can name."""

    tls: TlsSettings = attrs.field(factory=TlsSettings)
    """The certificate shown on addresses that begin with ``tmqs://``."""

    http: HttpSettings = attrs.field(factory=HttpSettings)
    """The URLs that HTTP bindings may call, and the limits of calls."""

    web: WebConfig = attrs.field(factory=WebConfig)
    """The door for HTTP and WebSocket."""

    doors: tuple[DoorSettings, ...] = ()
    """Further protocols, and the addresses on which they listen."""

    log: LogSettings = attrs.field(factory=LogSettings)
    """The log of the command ``tmqp-server``."""

    audit: AuditSettings = attrs.field(factory=AuditSettings)
    """Where changes that clients request are recorded."""

    rates: RateSettings = attrs.field(factory=RateSettings)
    """The rate limits of clients and addresses."""

    cluster: ClusterConfig | None = None
    """This server's part in a cluster; None for a single server."""

    replication: ReplicationConfig | None = None
    """This server's part in a group whose durable queues survive the loss of any server; None if
    only its own disk has them."""

    def __attrs_post_init__(self) -> None:
        if not (self.listen or self.web.listen or self.doors):
            raise ConfigError("listen must be one or more addresses, or there must be [[doors]]")
        if self.replication is not None:
            self._check_group(self.replication)
        for door in self.doors:
            if door.tls and not self.tls.certificate:
                raise ConfigError(
                    f"doors: {door.protocol}: tls needs a certificate: the table [tls], or"
                    " --tls-cert and --tls-key"
                )
            policy = door.tls_client_auth
            if policy not in ("", NO_CERTIFICATE) and not self.tls.client_authorities:
                raise ConfigError(
                    f"doors: {door.protocol}: tls_client_auth = {policy!r} needs"
                    " tls.client_authorities: every certificate is verified"
                )
            self._check_entry(door)
        for address in self.all_addresses():
            if address.tls and not self.tls.certificate:
                raise ConfigError(
                    f"{address} needs a certificate: the table [tls], or --tls-cert and --tls-key"
                )
            if not address.is_local and not self.allow_remote and self.access.kind == OPEN:
                raise ConfigError(
                    f"{address} can be reached from other machines and clients are not "
                    "authenticated; set allow_remote (--allow-remote) if that is wanted"
                )

    def _check_group(self, replication: ReplicationConfig) -> None:
        """Check that a server of a group has what it needs."""
        if self.data is None:
            raise ConfigError("replication needs data, a directory for this server's copy (--data)")
        if self.cluster is not None:
            raise ConfigError("cluster and replication exclude each other")
        replication.told(self.listen)

    def _check_entry(self, door: DoorSettings) -> None:
        """Check the entries of ``[access]`` that doors name for clients without credentials."""
        if not door.acts_as:
            return
        where = f"doors: {door.protocol}: as: {door.acts_as!r}"
        if self.access.kind == OPEN:
            raise ConfigError(f"{where} has no meaning without [access]")
        entries = [each for each in self.access.tokens if each.name == door.acts_as]
        if self.access.kind == TABLE and not entries:
            raise ConfigError(f"{where} names no entry of [[access.tokens]]")
        if any(each.node for each in entries):
            raise ConfigError(f"{where} is the entry of a node; clients of a door cannot be nodes")
        remote = any(not each.is_local for each in (*door.listen, *door.datagrams))
        if remote and not door.allow and not self.allow_remote:
            raise ConfigError(
                f"{where} would apply to every client that reaches the door from another machine; "
                "list networks in allow, or set allow_remote (--allow-remote) if that is wanted"
            )

    def all_addresses(self) -> list[Address]:
        """Return all addresses on which the server listens, of all protocols; a door without an
        address listens on this machine only."""
        named = [each for door in self.doors for each in (*door.listen, *door.datagrams)]
        return [*self.listen, *self.web.listen, *named]


def parse_config(text: str) -> dict[str, Any]:
    """Read a TOML configuration into keyword arguments for :class:`ServerConfig`.

    Tables ``[connection]``, ``[broker]``, ``[outbound]`` and ``[storage]`` hold the fields of
    :class:`tmqp.Limits`, ``EngineLimits``, :class:`OutboundLimits` and :class:`StorageConfig`; the
    others are read by ``settings``.

    :raises ConfigError: for a syntax error, an unknown key (with the most similar one) or an
        invalid value.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not a TOML file: {error}") from error
    return read_config(table)


def read_config(table: Mapping[str, Any]) -> dict[str, Any]:
    """Read a configuration from a parsed TOML file; otherwise as :func:`parse_config`.

    :raises ConfigError: for an unknown key (with the most similar one) or an invalid value.
    """
    names = [field.name for field in attrs.fields(ServerConfig)]
    values = _known(table, [*names, ADMIN], "")
    if "connection" in values:
        values["connection"] = _limits("connection", Limits, _table(values, "connection"))
    if "broker" in values:
        values["broker"] = _limits("broker", EngineLimits, _table(values, "broker"))
    if "access" in values:
        try:
            values["access"] = parse_access(_table(values, "access"))
        except AccessError as error:
            raise ConfigError(f"access: {error}") from error
    for key, group in (("outbound", OutboundLimits), ("storage", StorageConfig)):
        if key in values:
            names = [field.name for field in attrs.fields(group)]
            given = _known(_table(values, key), names, f"{key}.")
            try:
                values[key] = group(**given)
            except ConfigError as error:
                raise ConfigError(f"{key}: {error}") from error
    for key, read in _READERS.items():
        if key in values:
            values[key] = read(values[key])
    if ADMIN in values:  # short for one of the doors
        admin = admin_settings(table_of(values.pop(ADMIN), ADMIN))
        values["doors"] = (*values.get("doors", ()), admin)
    return values


#: The reader of each table about the broker.
_READERS: dict[str, Callable[[Any], object]] = {
    "channel": lambda value: channel_changes(table_of(value, "channel"), "channel."),
    "queue": lambda value: queue_changes(table_of(value, "queue"), "queue."),
    "channels": declared_channels,
    "routers": declared_routers,
    "handlers": lambda value: class_settings(value, "handlers"),
    "custom_routers": lambda value: class_settings(value, "custom_routers"),
    "authenticators": lambda value: class_settings(value, "authenticators"),
    "event_handlers": lambda value: class_settings(value, "event_handlers"),
    "http": lambda value: http_settings(table_of(value, "http")),
    "tls": lambda value: tls_settings(table_of(value, "tls")),
    "web": lambda value: _web_config(table_of(value, "web")),
    "doors": door_settings,
    "log": lambda value: log_settings(table_of(value, "log")),
    "audit": lambda value: audit_settings(table_of(value, "audit")),
    "rates": lambda value: rate_settings(table_of(value, "rates")),
    "cluster": lambda value: cluster_settings(table_of(value, "cluster")),
    "replication": lambda value: replication_settings(table_of(value, "replication")),
}


def _limits(key: str, kind: type[_Kind], table: Mapping[str, Any]) -> _Kind:
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
    return table_of(values[key], key)
