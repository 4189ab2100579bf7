"""Makes the doors that the configuration asks for."""

from __future__ import annotations

import dataclasses
import socket
from typing import final

from tmqp.address import Address
from tmqp.errors import LocalProtocolError
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.port import Door, IdSource
from tmqp_server.doors.registry import Bodies, DoorContext, DoorKind, DoorRegistry, HttpKind
from tmqp_server.settings.doors import DoorSettings

__all__ = ["Doors", "OpenDoor", "door_name", "further_doors"]


@final
class OpenDoor:
    """A door, its kind, and where it is to listen."""

    def __init__(
        self, settings: DoorSettings, kind: DoorKind, door: Door, addresses: tuple[Address, ...]
    ) -> None:
        self.settings = settings
        self.kind = kind
        self.protocol = settings.protocol
        self.door = door
        self.addresses = addresses


@final
class Doors:
    """All doors of a server.

    :param registry: the protocols that it knows.
    :param started_s: when the server began, in the engine's time.
    :raises ConfigError: when one cannot be opened.

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
    ) -> None:
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
        opened: dict[int, OpenDoor] = {}
        # What doors of one family share is said by the first of them in the registry.
        for place in sorted(range(len(wanted)), key=lambda each: _rank(wanted[each], order)):
            settings = wanted[place]
            context = DoorContext(
                new_id,
                wall_clock_offset_s,
                letters,
                config.connection,
                settings.limits,
                self.native,
                has_tls=bool(config.tls.certificate),
                has_storage=config.data is not None,
                options=settings.options,
                hostname=socket.gethostname(),
                started_s=started_s,
            )
            opened[place] = _opened(settings, registry, context)
        self.further = [opened[place] for place in range(len(wanted))]


def _rank(settings: DoorSettings, order: list[str]) -> int:
    name = settings.protocol
    return order.index(name) if name in order else len(order)


def further_doors(config: ServerConfig) -> list[DoorSettings]:
    """The doors beside TMQP's: the table ``[web]`` is short for one of HTTP."""
    found: list[DoorSettings] = []
    if config.web.listen:
        limits = dataclasses.asdict(config.web.limits)
        found.append(DoorSettings(HttpKind.name, config.web.listen, limits))
    return [*found, *config.doors]


def _opened(settings: DoorSettings, registry: DoorRegistry, context: DoorContext) -> OpenDoor:
    name = settings.protocol
    try:
        kind = registry.find(name)
        addresses = settings.listen or (Address(port=kind.default_port, tls=settings.tls),)
        context.addresses = addresses
        return OpenDoor(settings, kind, kind.open(context), addresses)
    except (LocalProtocolError, ValueError) as error:
        raise ConfigError(f"doors: {name}: {error}") from error
    except ModuleNotFoundError as error:
        # An extra has the name of the protocol that needs it.
        raise ConfigError(
            f"the door {name} needs the package {error.name}: install tmqp[{name}]"
        ) from error


def door_name(protocol: str, address: Address) -> str:
    """An address that is listened on by a door, as people write it: ``http://127.0.0.1:80``."""
    scheme, _, rest = str(address).partition("://")
    if not rest:
        return f"{protocol}+{address}" if protocol != HttpKind.name else str(address)
    secure = scheme == "tmqs"
    if protocol == HttpKind.name:
        return f"http{'s' if secure else ''}://{rest}"
    return f"{protocol}{'+tls' if secure else ''}://{rest}"
