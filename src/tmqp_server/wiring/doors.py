"""Builds the doors of the configuration."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Collection
from typing import final

from tmqp.address import Address
from tmqp.errors import LocalProtocolError
from tmqp_server.access.roles import OPEN
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.doors.bodies import Bodies
from tmqp_server.doors.kinds import DoorContext, DoorKind
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.port import Door, IdSource
from tmqp_server.doors.registry import DoorRegistry, HttpKind
from tmqp_server.settings.doors import DoorSettings
from tmqp_server.settings.secrets import read_secret
from tmqp_server.settings.tls import NO_CERTIFICATE, requires

__all__ = ["Doors", "OpenDoor", "door_name", "further_doors", "sealed_addresses"]


@final
class OpenDoor:
    """A door, its kind, and its addresses; ``by_datagrams`` is the door for the same protocol over
    UDP, None if it is not served over UDP.
    """

    def __init__(
        self,
        settings: DoorSettings,
        kind: DoorKind,
        door: Door,
        addresses: tuple[Address, ...],
        by_datagrams: Door | None,
    ) -> None:
        self.settings = settings
        self.kind = kind
        self.protocol = settings.protocol
        self.door = door
        self.addresses = addresses
        self.by_datagrams = by_datagrams


@final
class Doors:
    """All doors of a server.

    :param registry: the known protocols.
    :param started_s: when the server began, in the engine's time.
    :param guarded: whether clients must authenticate; None for what the configuration says.
    :raises ConfigError: when a door cannot be opened.

    Attributes: ``native``, the TMQP door; ``further``, the others, those of ``[web]`` first;
    ``bodies``, one for each protocol, whether or not it is served.
    """

    def __init__(
        self,
        config: ServerConfig,
        registry: DoorRegistry,
        new_id: IdSource,
        wall_clock_offset_s: float,
        started_s: float = 0.0,
        *,
        guarded: bool | None = None,
    ) -> None:
        if guarded is None:
            guarded = config.access.kind != OPEN
        letters = Letters((), wall_clock_offset_s)
        self.native = NativeDoor(new_id, config.connection, wall_clock_offset_s, letters)
        self.bodies: list[Bodies] = []
        for kind in registry:
            if not kind.number:
                continue
            bodies = self.native if kind.name == self.native.name else kind.bodies()
            self.bodies.append(bodies)
            letters.add(bodies)
        wanted = further_doors(config)
        order = [kind.name for kind in registry]
        protocols = {each.protocol for each in wanted}
        opened: dict[int, OpenDoor] = {}
        # What doors of one family share is said by the first of them in the registry.
        for place in sorted(range(len(wanted)), key=lambda each: _rank(wanted[each], order)):
            settings = wanted[place]
            names = _names(settings, config.broker.max_name_bytes)
            context, for_datagrams = [
                DoorContext(
                    new_id,
                    wall_clock_offset_s,
                    letters,
                    config.connection,
                    settings.limits,
                    self.native,
                    has_tls=bool(config.tls.certificate) and not datagrams,
                    has_storage=config.data is not None,
                    in_group=config.replication is not None,
                    options=settings.options,
                    addresses=settings.datagrams if datagrams else settings.listen,
                    hostname=socket.gethostname(),
                    started_s=started_s,
                    datagrams=datagrams,
                    names=names,
                    requires_certificate=requires(
                        settings.tls_client_auth or config.tls.client_policy
                    ),
                    read_secret=read_secret,
                    has_access=guarded,
                    encrypted=settings.tls,
                )
                for datagrams in (False, True)
            ]
            opened[place] = _opened(settings, registry, context, for_datagrams, protocols)
        self.further = [opened[place] for place in range(len(wanted))]


def _rank(settings: DoorSettings, order: list[str]) -> int:
    name = settings.protocol
    return order.index(name) if name in order else len(order)


def further_doors(config: ServerConfig) -> list[DoorSettings]:
    """The settings of all doors except TMQP's; the table ``[web]`` is short for one of HTTP."""
    found: list[DoorSettings] = []
    if config.web.listen:
        limits = dataclasses.asdict(config.web.limits)
        found.append(DoorSettings(HttpKind.name, config.web.listen, limits))
    return [*found, *config.doors]


def sealed_addresses(config: ServerConfig, registry: DoorRegistry) -> list[Address]:
    """The addresses of doors whose protocol encrypts its contents without TLS."""
    kinds = {kind.name: kind for kind in registry}
    return [
        address
        for door in config.doors
        if door.protocol in kinds and kinds[door.protocol].encrypts(door.options)
        for address in door.listen
    ]


def _names(settings: DoorSettings, max_bytes: int) -> DoorNames:
    """The names of channels at a door."""
    where = f"doors: {settings.protocol}: aliases"
    for channel in settings.aliases.values():
        if len(channel.encode()) > max_bytes:
            raise ConfigError(f"{where}: {channel!r} has more than {max_bytes} bytes")
    try:
        return DoorNames(settings.aliases)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _opened(
    settings: DoorSettings,
    registry: DoorRegistry,
    context: DoorContext,
    for_datagrams: DoorContext,
    beside: Collection[str],
) -> OpenDoor:
    name = settings.protocol
    try:
        kind = registry.find(name)
        if settings.aliases and not kind.has_names:
            raise ConfigError(
                f"doors: {name}: aliases: this protocol uses the names of channels, so it has no "
                f"aliases"
            )
        _check_policy(settings, kind)
        addresses = settings.listen
        by_datagrams: Door | None = None
        if settings.datagrams:
            address = settings.datagrams[0]
            if not kind.has_datagrams:
                raise ConfigError(
                    f"doors: {name}: udp://{address.host}:{address.port}: this protocol is not"
                    " spoken over UDP; write HOST:PORT"
                )
            by_datagrams = kind.open(for_datagrams)
        elif not addresses:
            ports = kind.ports(beside)
            addresses = tuple([Address(port=port, tls=settings.tls) for port in ports])
        context.addresses = addresses
        return OpenDoor(settings, kind, kind.open(context), addresses, by_datagrams)
    except (LocalProtocolError, ValueError) as error:
        raise ConfigError(f"doors: {name}: {error}") from error
    except ModuleNotFoundError as error:
        # An extra has the name of the protocol that needs it.
        raise ConfigError(
            f"the door {name} needs the package {error.name}: install tmqp[{name}]"
        ) from error


def _check_policy(settings: DoorSettings, kind: DoorKind) -> None:
    """Check that the server can request client certificates if a policy needs them."""
    policy = settings.tls_client_auth
    speaks = settings.tls or kind.changes_to_tls or any(each.tls for each in settings.listen)
    if policy not in ("", NO_CERTIFICATE) and not speaks:
        raise ConfigError(
            f"doors: {settings.protocol}: tls_client_auth = {policy!r} has no effect: this door"
            " does not speak TLS; set tls = true"
        )


def door_name(protocol: str, address: Address) -> str:
    """An address of a door as text: ``http://127.0.0.1:80``."""
    scheme, _, rest = str(address).partition("://")
    if not rest:
        return f"{protocol}+{address}" if protocol != HttpKind.name else str(address)
    secure = scheme == "tmqs"
    if protocol == HttpKind.name:
        return f"http{'s' if secure else ''}://{rest}"
    return f"{protocol}{'+tls' if secure else ''}://{rest}"
