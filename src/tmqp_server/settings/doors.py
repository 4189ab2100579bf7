"""The settings of further doors, ``[[doors]]``: their protocols, addresses and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, TypeAlias

import attrs

from tmqp.address import Address, parse_address
from tmqp.errors import LocalProtocolError
from tmqp_server.settings.checks import (
    ConfigError,
    flag_of,
    known,
    positive,
    table_of,
    tables_of,
    text_of,
    texts_of,
    whole,
)
from tmqp_server.settings.tls import CLIENT_POLICIES

__all__ = ["DoorSettings", "Network", "UdpSettings", "door_option", "door_settings"]

Network: TypeAlias = IPv4Network | IPv6Network

_KEYS: Final = (
    "protocol",
    "listen",
    "tls",
    "tls_client_auth",
    "limits",
    "as",
    "allow",
    "options",
    "udp",
    "aliases",
)
_UDP: Final = "udp://"


def _policy(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value != "" and value not in CLIENT_POLICIES:
        allowed = ", ".join(CLIENT_POLICIES)
        raise ConfigError(f"doors.{attribute.name} is one of {allowed}, got {value!r}")


@attrs.frozen(kw_only=True)
class UdpSettings:
    """What those may cost whose datagrams come in by one ``udp://`` address."""

    max_sessions: int = attrs.field(default=1_000, validator=whole)
    """How many source addresses may have a session at a time; datagrams of further ones are
    dropped."""

    max_sessions_per_address: int = attrs.field(default=100, validator=whole)
    """The same for one host that is not this machine."""

    max_waiting_bytes: int = attrs.field(default=262_144, validator=whole)
    """Bytes of datagrams that wait while the server does not read from their session; eight times
    as many for all sessions of the address. Further datagrams are dropped."""

    idle_timeout_s: float = attrs.field(default=60.0, validator=positive)
    """Seconds without a datagram after which a session ends. An empty datagram keeps it open."""


@attrs.frozen
class DoorSettings:
    """One door."""

    protocol: str
    """The name of its protocol."""

    listen: tuple[Address, ...] = ()
    """The addresses for connections; if there are none, and none for datagrams either, the
    protocol's own port on 127.0.0.1."""

    limits: Mapping[str, Any] = attrs.field(factory=dict)
    """Limits for one peer: fields of the protocol's limits."""

    tls: bool = False
    """Whether it uses TLS."""

    acts_as: str = ""
    """The entry of ``[access]`` for clients without credentials; ``as`` in the file."""

    allow: tuple[Network, ...] = ()
    """The networks from which clients may connect; empty for all."""

    options: Mapping[str, Any] = attrs.field(factory=dict)
    """The protocol's own options."""

    datagrams: tuple[Address, ...] = ()
    """The addresses for datagrams; ``udp://HOST:PORT`` in ``listen`` in the file."""

    udp: UdpSettings = attrs.field(factory=UdpSettings)
    """The limits for sources of datagrams."""

    aliases: Mapping[str, str] = attrs.field(factory=dict)
    """Aliases: names of the protocol mapped to channels."""

    tls_client_auth: str = attrs.field(default="", validator=_policy)
    """The policy for certificates of clients: ``none``; ``request``, which makes them optional;
    ``require`` or ``require-verify``, which are the same; empty for the policy of ``[tls]``."""

    def allows(self, host: str) -> bool:
        """Return whether clients may connect from this host; an empty *host* is this machine."""
        if not self.allow or not host:
            return True
        address = ip_address(host.strip("[]").partition("%")[0])
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.allow)


def door_settings(value: object) -> tuple[DoorSettings, ...]:
    """Read the tables ``[[doors]]``.

    :raises ConfigError: for an unknown key or a bad value.
    """
    return tuple(_door(table) for table in tables_of(value, "doors"))


def _door(table: Mapping[str, Any]) -> DoorSettings:
    given = known(table, _KEYS, "doors.")
    if "protocol" not in given:
        raise ConfigError("doors.protocol is missing: each [[doors]] names its protocol")
    protocol = text_of(given["protocol"], "doors.protocol")
    tls = flag_of(given.get("tls", False), "doors.tls")
    listen = given.get("listen", [])
    if isinstance(listen, str):
        listen = [listen]
    if not isinstance(listen, list):
        raise ConfigError(f"doors.listen must be a list of addresses, got {listen!r}")
    addresses, datagrams = _addresses(listen, "doors.listen", tls=tls)
    limits = table_of(given.get("limits", {}), "doors.limits")
    acts_as = text_of(given["as"], "doors.as") if "as" in given else ""
    allow = tuple(_network(each) for each in texts_of(given.get("allow", []), "doors.allow"))
    options = table_of(given.get("options", {}), "doors.options")
    udp = _udp_settings(table_of(given.get("udp", {}), "doors.udp"))
    if "udp" in given and not datagrams:
        raise ConfigError("doors.udp has no meaning without an address udp://HOST:PORT in listen")
    aliases = {
        name: text_of(channel, f"doors.aliases.{name}")
        for name, channel in table_of(given.get("aliases", {}), "doors.aliases").items()
    }
    return DoorSettings(
        protocol,
        addresses,
        limits,
        tls,
        acts_as,
        allow,
        options,
        datagrams,
        udp,
        aliases,
        given.get("tls_client_auth", ""),
    )


def _udp_settings(table: Mapping[str, Any]) -> UdpSettings:
    values = known(table, [field.name for field in attrs.fields(UdpSettings)], "doors.udp.")
    try:
        return UdpSettings(**values)
    except ConfigError as error:
        raise ConfigError(f"doors.udp: {error}") from error


def _addresses(
    values: Sequence[object], key: str, *, tls: bool
) -> tuple[tuple[Address, ...], tuple[Address, ...]]:
    """Addresses for connections, and addresses for datagrams."""
    streams: list[Address] = []
    datagrams: list[Address] = []
    for value in values:
        if not isinstance(value, str) or not value.lower().startswith(_UDP):
            streams.append(_address(value, key, tls=tls))
            continue
        rest = value[len(_UDP) :]
        if rest.startswith("unix:"):
            raise ConfigError(f"{key}: {value!r}: a Unix socket does not support datagrams")
        if tls:
            raise ConfigError(f"{key}: {value!r} cannot have tls; put it into a separate table")
        datagrams.append(_address(rest, key, tls=False, written=value))
    return tuple(streams), tuple(datagrams)


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ConfigError(
            f"doors.allow: {text!r} is not a network, write 10.0.0.0/8 or ::1: {error}"
        ) from error


def door_option(text: str) -> DoorSettings:
    """Read the option ``--door PROTOCOL`` or ``--door PROTOCOL=ADDRESS``.

    :raises ConfigError: for a bad address.
    """
    protocol, equals, address = text.partition("=")
    if not protocol:
        raise ConfigError(f"--door {text}: the protocol is missing")
    if not equals:
        return DoorSettings(protocol)
    streams, datagrams = _addresses([address], "--door", tls=False)
    return DoorSettings(protocol, streams, datagrams=datagrams)


def _address(value: object, key: str, *, tls: bool, written: str = "") -> Address:
    """``HOST:PORT`` or ``unix:PATH``; *written* is the text in the file, if it differs."""
    if not isinstance(value, str) or not (value or written):
        raise ConfigError(f"{key}: an address must be a string, got {value!r}")
    is_path = value.startswith("unix:")
    port = value.rpartition(":")[2]
    if not is_path and ("://" in value or "/" in value or not port.isdecimal()):
        raise ConfigError(
            f"{key}: an address is HOST:PORT, unix:PATH or udp://HOST:PORT, got"
            f" {written or value!r}"
        )
    try:
        address = parse_address(value)
    except LocalProtocolError as error:
        raise ConfigError(f"{key}: {error}") from error
    if is_path:
        if tls:
            raise ConfigError(f"{key}: {value!r} is on this machine only and takes no tls")
        return address
    return Address(address.host, address.port, tls=tls)
