"""The settings of further doors, ``[[doors]]``: protocols, and where they listen."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, TypeAlias

import attrs

from tmqp.address import Address, parse_address
from tmqp.errors import LocalProtocolError
from tmqp_server.settings.checks import (
    ConfigError,
    flag_of,
    known,
    table_of,
    tables_of,
    text_of,
    texts_of,
)

__all__ = ["DoorSettings", "Network", "door_option", "door_settings"]

Network: TypeAlias = IPv4Network | IPv6Network

_KEYS: Final = ("protocol", "listen", "tls", "limits", "as", "allow", "options")


@attrs.frozen
class DoorSettings:
    """One door."""

    protocol: str
    """The name of its protocol."""

    listen: tuple[Address, ...] = ()
    """Where it listens; the protocol's own port on 127.0.0.1 if nothing is given."""

    limits: Mapping[str, Any] = attrs.field(factory=dict)
    """What one peer may cost: fields of the protocol's limits."""

    tls: bool = False
    """Whether it speaks TLS."""

    acts_as: str = ""
    """The entry of ``[access]`` that a client is that brings no credentials; in the file ``as``."""

    allow: tuple[Network, ...] = ()
    """From where clients may connect; from everywhere if it is empty."""

    options: Mapping[str, Any] = attrs.field(factory=dict)
    """What else the protocol can be told; each protocol has its own options."""

    def allows(self, host: str) -> bool:
        """Whether clients may connect from there; an empty *host* is this machine."""
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
    addresses = tuple(_address(each, "doors.listen", tls=tls) for each in listen)
    limits = table_of(given.get("limits", {}), "doors.limits")
    acts_as = text_of(given["as"], "doors.as") if "as" in given else ""
    allow = tuple(_network(each) for each in texts_of(given.get("allow", []), "doors.allow"))
    options = table_of(given.get("options", {}), "doors.options")
    return DoorSettings(protocol, addresses, limits, tls, acts_as, allow, options)


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ConfigError(
            f"doors.allow: {text!r} is no network, write 10.0.0.0/8 or ::1: {error}"
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
    return DoorSettings(protocol, (_address(address, "--door", tls=False),))


def _address(value: object, key: str, *, tls: bool) -> Address:
    """``HOST:PORT`` or ``unix:PATH``."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{key}: an address is a text, got {value!r}")
    is_path = value.startswith("unix:")
    port = value.rpartition(":")[2]
    if not is_path and ("://" in value or "/" in value or not port.isdecimal()):
        raise ConfigError(f"{key}: an address is HOST:PORT or unix:PATH, got {value!r}")
    try:
        address = parse_address(value)
    except LocalProtocolError as error:
        raise ConfigError(f"{key}: {error}") from error
    if is_path:
        if tls:
            raise ConfigError(f"{key}: {value!r} is on this machine only and takes no tls")
        return address
    return Address(address.host, address.port, tls=tls)
