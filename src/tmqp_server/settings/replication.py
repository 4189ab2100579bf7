"""The settings of a replication group, ``[replication]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from tmqp.address import Address, parse_address
from tmqp.errors import LocalProtocolError
from tmqp_server.settings.checks import ConfigError, positive, settings_of, text, whole

__all__ = ["ReplicationConfig", "check_source", "replication_settings"]

_SCHEME: Final = "etcd://"
_MOST_SHARDS: Final = 1_024
#: A lease that etcd grants is of whole seconds; a shorter one would end in every pause.
_LEAST_LEASE_S: Final = 1
_MOST_LEASE_S: Final = 60
#: Names become parts of keys in etcd, and of lines in the log.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_UNREACHABLE: Final = ("0.0.0.0", "::", "")  # noqa: S104 - they are what is refused


def _log(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    text(instance, attribute, value)
    _servers_of(value)


def _servers_of(log: str) -> tuple[list[str], str]:
    """The servers of a log, ``host:port`` each, and the name of the group there.

    :raises ConfigError: when the text is not of this form.
    """
    form = "write etcd://HOST:PORT,HOST:PORT,HOST:PORT/NAME"
    if not log.startswith(_SCHEME):
        raise ConfigError(f"log: {log!r} does not begin with {_SCHEME}; {form}")
    servers, slash, name = log.removeprefix(_SCHEME).partition("/")
    if "@" in servers:
        raise ConfigError("log: use the keys user and password for a user and a password")
    if not slash or not name:
        raise ConfigError(f"log: {log!r} does not name the group; {form}")
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"log: the name of the group has 1 to 64 letters, digits and ._-, got {name!r}"
        )
    addresses = servers.split(",")
    for each in addresses:
        host, colon, port = each.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit():
            raise ConfigError(f"log: {each!r} is not HOST:PORT; {form}")
        if not 0 < int(port) < 65_536:
            raise ConfigError(f"log: {each!r}: a port is 1 to 65535")
        if addresses.count(each) > 1:
            raise ConfigError(f"log: {each} is named twice")
    return addresses, name


def _node(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise ConfigError(
            f"{attribute.name} must have 1 to 64 letters, digits and ._-, got {value!r}"
        )


def _address(value: object) -> Address | None:
    if value is None or isinstance(value, Address):
        return value
    if not isinstance(value, str):
        raise ConfigError(f"address must be a string, got {value!r}")
    try:
        return parse_address(value)
    except LocalProtocolError as error:
        raise ConfigError(f"address: {error}") from error


def _path(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise ConfigError(f"{attribute.name} must be the name of a file, got {value!r}")


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _copies(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{attribute.name} must be a list of URLs, got {value!r}")
    for each in value:
        check_source(each)


def check_source(url: str) -> None:
    """Check that a text is the URL of an admin door.

    :raises ConfigError: when it is not.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/"):
        raise ConfigError(f"copies: {url!r} is not http://HOST:PORT or https://HOST:PORT")


def _lease(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{attribute.name} must be a whole number of seconds, got {value!r}")
    if not _LEAST_LEASE_S <= value <= _MOST_LEASE_S:
        raise ConfigError(
            f"{attribute.name} must be {_LEAST_LEASE_S} to {_MOST_LEASE_S}, got {value}"
        )


def _shard(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST_SHARDS:
        raise ConfigError(f"{attribute.name} must be 0 to {_MOST_SHARDS - 1}, got {value!r}")


@attrs.frozen(kw_only=True)
class ReplicationConfig:
    """This server's part in a replication group."""

    log: str = attrs.field(validator=_log)
    """The address of the log: ``etcd://HOST:PORT,HOST:PORT,HOST:PORT/NAME``, with the unique name
    of the group."""

    node: str = attrs.field(validator=_node)
    """The unique and permanent name of this server in the group."""

    address: Address | None = attrs.field(default=None, converter=_address)
    """The address for clients while this server leads; by default the first address of
    ``listen``."""

    shard: int = attrs.field(default=0, validator=_shard)
    """The group's part of the channels; so far there is only part 0."""

    lease_s: int = attrs.field(default=2, validator=_lease)
    """Seconds without a sign of life after which other servers take over from a leader."""

    timeout_s: float = attrs.field(default=0.7, validator=positive)
    """Seconds to wait for a server of etcd before trying the next one."""

    forget_s: float = attrs.field(default=600.0, validator=positive)
    """Seconds for which the log is kept for a server of the group that is silent."""

    max_behind: int = attrs.field(default=20_000, validator=whole)
    """Entries of the log that are kept for a server that is behind; each has up to 1 MiB."""

    copies: tuple[str, ...] = attrs.field(default=(), converter=_as_tuple, validator=_copies)
    """The admin doors of the group's servers, from which ``tmqp-server rebuild`` gets a copy:
    ``http://HOST:PORT`` each."""

    token: str = attrs.field(default="", validator=text, repr=False)
    """The token for these admin doors."""

    user: str = attrs.field(default="", validator=text)
    """The name to log in to etcd with; empty for no log-in."""

    password: str = attrs.field(default="", validator=text, repr=False)
    """The password of this user."""

    ca: str | None = attrs.field(default=None, validator=_path)
    """The certificates that sign those of etcd, in PEM; with them, TLS is used."""

    certificate: str | None = attrs.field(default=None, validator=_path)
    """The certificate to show to etcd, in PEM, if it asks for one."""

    key: str | None = attrs.field(default=None, validator=_path)
    """Its private key, in PEM."""

    def __attrs_post_init__(self) -> None:
        if self.shard:
            raise ConfigError("shard must be 0: so far there is only one part of the channels")
        if self.password and not self.user:
            raise ConfigError("password needs user")
        if bool(self.certificate) != bool(self.key):
            raise ConfigError("certificate and key belong together")
        if self.certificate and not self.ca:
            raise ConfigError("certificate needs ca: without it TLS is not used")
        if self.timeout_s >= self.lease_s:
            raise ConfigError(
                "timeout_s must be less than lease_s: a leader asks several servers in that time"
            )
        if self.address is not None and not _is_reachable(self.address):
            raise ConfigError(f"address: clients cannot connect to {self.address}")

    @property
    def servers(self) -> list[str]:
        """The servers of the log, ``host:port`` each."""
        return _servers_of(self.log)[0]

    @property
    def group(self) -> str:
        """The name of the group in the log, with the shard."""
        return f"{_servers_of(self.log)[1]}/{self.shard}"

    def told(self, listen: tuple[Address, ...]) -> Address:
        """The address of this server that clients get.

        :raises ConfigError: when no address of the server can be used by clients.
        """
        if self.address is not None:
            return self.address
        for each in listen:
            if _is_reachable(each):
                return each
        raise ConfigError(
            "replication: address is missing: clients need the leader's address, and listen has no "
            "TMQP address that other machines can reach"
        )


def _is_reachable(address: Address) -> bool:
    return bool(address.socket_path) or address.host not in _UNREACHABLE


def replication_settings(table: Mapping[str, Any]) -> ReplicationConfig:
    """Read ``[replication]``.

    :raises ConfigError: for an unknown or missing key, or a bad value.
    """
    return settings_of(ReplicationConfig, table, "replication")
