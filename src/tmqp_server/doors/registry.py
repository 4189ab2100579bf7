"""The protocols that a server can serve, by name.

A :class:`DoorKind` makes the doors of one protocol.  It also knows how to read what is kept of the
protocol's messages, whether or not a door is open: what is on disk was accepted once, and a server
that no longer serves the protocol still delivers it.

Further protocols are given to ``running``.  A kind that needs a package that is not installed says
so when a door is to be opened, not before.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, final

from tmqp.address import Address
from tmqp.limits import Limits
from tmqp_server.doors.http.bodies import HttpBodies
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.letters import Letter, Letters
from tmqp_server.doors.names import DoorNames
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.port import Door, IdSource
from tmqp_server.engine.model.message import Message

__all__ = [
    "LAST_NUMBER",
    "Bodies",
    "DoorContext",
    "DoorKind",
    "DoorRegistry",
    "HttpKind",
    "TmqpKind",
    "limits_from",
    "refuse_options",
]

#: The number of a kind is kept with each message in this many bits.
LAST_NUMBER: Final = 255

_Limits = TypeVar("_Limits", Limits, HttpLimits)


class Bodies(Protocol):
    """What is kept of a protocol's messages; a door of the protocol offers the same."""

    name: str
    number: int

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """See ``Door.stored``."""

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """See ``Door.unpacked``."""

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """See ``Door.restored``."""

    def letter(self, wire: object) -> Letter:
        """See ``Door.letter``."""

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """See ``Door.with_headers``."""


@final
class DoorContext:
    """What a server gives each of its doors.

    ``limits`` and ``options`` are those of the door's table in the configuration, ``addresses``
    where it listens, whose port may be 0 for any; ``connection`` are the limits of
    TMQP connections; ``native`` is the server's own TMQP door, None where it is being made;
    ``has_tls`` says that connections can change to TLS (``DoorSession.wants_tls``); ``names`` turns
    the protocol's names into channels and back, with the aliases of the door's table; ``datagrams``
    that the door is for the peers of a UDP socket: each chunk is one datagram then, and each
    portion of ``DoorSession.next_to_send`` leaves as one, or is lost.
    """

    __slots__ = (
        "addresses",
        "connection",
        "datagrams",
        "has_tls",
        "letters",
        "limits",
        "names",
        "native",
        "new_id",
        "options",
        "wall_clock_offset_s",
    )

    def __init__(
        self,
        new_id: IdSource,
        wall_clock_offset_s: float,
        letters: Letters,
        connection: Limits,
        limits: Mapping[str, Any],
        native: NativeDoor | None = None,
        *,
        has_tls: bool = False,
        datagrams: bool = False,
        names: DoorNames | None = None,
        options: Mapping[str, Any] | None = None,
        addresses: Sequence[Address] = (),
    ) -> None:
        self.options: Mapping[str, Any] = {} if options is None else options
        self.addresses = addresses
        self.new_id = new_id
        self.wall_clock_offset_s = wall_clock_offset_s
        self.letters = letters
        self.connection = connection
        self.limits = limits
        self.native = native
        self.has_tls = has_tls
        self.datagrams = datagrams
        self.names = DoorNames() if names is None else names


class DoorKind:
    """One protocol.

    Attributes: ``name``, also that of its doors; ``number``, kept with its messages and never given
    to another protocol, 0 for one that has no messages of its own; ``default_port``, where it
    listens if nothing else is said; ``has_datagrams``, it is also spoken over UDP
    (``DoorContext.datagrams``); ``has_names``, its names are not those of channels
    (``DoorContext.names``).
    """

    name = ""
    number = 0
    default_port = 0
    has_datagrams = False
    has_names = True

    def bodies(self) -> Bodies:
        """Reads what is kept of its messages; not asked of a kind without a number."""
        raise NotImplementedError

    def open(self, context: DoorContext) -> Door:
        """A door.

        :raises ValueError: for limits or options that cannot be used.
        :raises ModuleNotFoundError: when a package that it needs is not installed.
        """
        raise NotImplementedError


@final
class TmqpKind(DoorKind):
    """TMQP/2.0."""

    # As NativeDoor has them: compiled, a class does not tell the values of its attributes.
    name = "tmqp"
    number = 1
    default_port = 2622
    has_names = False

    def bodies(self) -> Bodies:
        """A door nobody connects to."""
        return NativeDoor(_no_id, Limits())

    def open(self, context: DoorContext) -> NativeDoor:
        """A door with the limits of TMQP connections, where its own table names no others."""
        refuse_options(context)
        return NativeDoor(
            context.new_id,
            limits_from(context.connection, context.limits),
            context.wall_clock_offset_s,
            context.letters,
        )


@final
class HttpKind(DoorKind):
    """HTTP/1.1 and WebSocket."""

    name = HttpBodies.name
    number = HttpBodies.number
    default_port = 8080
    has_names = False

    def bodies(self) -> Bodies:
        """Read without the packages that the door needs."""
        return HttpBodies()

    def open(self, context: DoorContext) -> Door:
        """A door that speaks TMQP in its WebSocket messages."""
        refuse_options(context)
        from tmqp_server.doors.http.door import HttpDoor  # noqa: PLC0415 - an extra

        return HttpDoor(
            context.new_id,
            limits_from(HttpLimits(), context.limits),
            context.wall_clock_offset_s,
            inner={} if context.native is None else {context.native.name: context.native},
            letters=context.letters,
        )


def refuse_options(context: DoorContext) -> None:
    """For a protocol that has no options.

    :raises ValueError: when the door's table has some.
    """
    if context.options:
        raise ValueError(f"the protocol has no options, such as {min(context.options)!r}")


def _no_id() -> str:
    raise AssertionError("nothing comes in here")


def limits_from(defaults: _Limits, table: Mapping[str, Any]) -> _Limits:
    """A limits record with the values of a configuration table in place of its own.

    :raises ValueError: for an unknown name, or a value that cannot be used.
    """
    values = {name: getattr(defaults, name) for name in defaults.__dataclass_fields__}
    given: dict[str, Any] = {}
    for name, value in table.items():
        if name not in values:
            near = difflib.get_close_matches(name, values, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"there is no limit {name!r}{hint}")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        whole = isinstance(values[name], int)
        if not number or (whole and not isinstance(value, int)):
            raise ValueError(f"{name} must be a {'whole ' * whole}number, not {value!r}")
        given[name] = value
    return dataclasses.replace(defaults, **given)


@final
class DoorRegistry:
    """The kinds that a server knows.

    :param more: kinds beside those of this package.
    :raises ValueError: when two of them have one name or one number.
    """

    def __init__(self, more: Iterable[DoorKind] = ()) -> None:
        self._kinds: dict[str, DoorKind] = {}
        for kind in (TmqpKind(), HttpKind(), *more):
            self._add(kind)

    def _add(self, kind: DoorKind) -> None:
        if not kind.name or not 0 <= kind.number <= LAST_NUMBER:
            raise ValueError(
                f"the door {kind.name!r} needs a name, and a number from 1 to {LAST_NUMBER},"
                f" or 0 if it has no messages, not {kind.number}"
            )
        for other in self._kinds.values():
            if other.name == kind.name:
                raise ValueError(f"there is a door {kind.name!r} already")
            if other.number == kind.number != 0:
                raise ValueError(
                    f"the doors {other.name!r} and {kind.name!r} have one number, {kind.number}"
                )
        self._kinds[kind.name] = kind

    def __iter__(self) -> Iterator[DoorKind]:
        return iter(self._kinds.values())

    def find(self, name: str) -> DoorKind:
        """The kind of a name.

        :raises ValueError: when there is none.
        """
        kind = self._kinds.get(name)
        if kind is None:
            raise ValueError(f"there is no door {name!r}; known are {', '.join(self._kinds)}")
        return kind
