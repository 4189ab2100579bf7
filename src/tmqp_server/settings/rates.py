"""The rate limits of clients and addresses, ``[rates]``; 0 for no limit."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

import attrs

from tmqp_server.settings.checks import ConfigError, known

__all__ = ["RateSettings", "rate_settings"]


def _rate(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < float("inf"):  # type: ignore[operator]
        raise ConfigError(f"rates.{attribute.name} is a number a second, 0 for no limit; {value!r}")


def _seconds(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value < float("inf"):  # type: ignore[operator]
        raise ConfigError(f"rates.{attribute.name} must be a positive number, got {value!r}")


def _networks(value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(each, str) for each in texts):
        raise ConfigError(f"rates.exempt is a list of networks, got {value!r}")
    try:
        for each in texts:
            ip_network(each, strict=False)
    except ValueError as error:
        raise ConfigError(f"rates.exempt: {error}") from error
    return tuple(texts)


@attrs.frozen(kw_only=True)
class RateSettings:
    """Rate limits.  The server pauses reading from a client that sends faster, and refuses nothing
    that it sends.
    """

    client_messages_per_s: float = attrs.field(default=0, validator=_rate)
    """Messages that one connection may push per second."""

    client_bytes_per_s: float = attrs.field(default=0, validator=_rate)
    """Bytes that one connection may send per second."""

    address_messages_per_s: float = attrs.field(default=0, validator=_rate)
    """Messages that all connections of an address may push per second (for IPv6: of a /64)."""

    address_bytes_per_s: float = attrs.field(default=0, validator=_rate)
    """Bytes that all connections of an address may send per second."""

    address_connections_per_s: float = attrs.field(default=0, validator=_rate)
    """Connections that an address may open per second: further ones are delayed, and one that would
    have to wait longer than 10 seconds is closed."""

    burst_s: float = attrs.field(default=2.0, validator=_seconds)
    """How much may arrive at once, as seconds of the rate."""

    exempt: tuple[str, ...] = attrs.field(default=(), converter=_networks)
    """Networks to which the limits of addresses do not apply, for example those of proxies and
    cluster nodes; the limits never apply to loopback and Unix sockets."""


def rate_settings(table: Mapping[str, Any]) -> RateSettings:
    """Read ``[rates]``.

    :raises ConfigError: for an unknown key or a bad value.
    """
    names = [field.name for field in attrs.fields(RateSettings)]
    return RateSettings(**known(table, names, "rates."))
