"""The protocols that a server can serve, by name.

A :class:`DoorKind` creates the doors of one protocol.  It also reads the protocol's stored
messages, whether or not a door is open: messages on disk were accepted, so a server delivers them
even if it no longer serves the protocol.

Programs pass further protocols to ``running``.  A kind that needs a package that is not installed
raises an error when a door is opened, not before.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, final

from tmqp.address import Address
from tmqp.limits import Limits
from tmqp_server.doors.bodies import Bodies, LateBodies
from tmqp_server.doors.http.bodies import HttpBodies
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.kinds import DoorContext, DoorKind
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.nsq_kinds import (
    LookupHttpKind,
    LookupKind,
    NsqHttpKind,
    NsqKind,
    new_lookupd,
)
from tmqp_server.doors.nsq_world import NsqWorld
from tmqp_server.doors.openwire_kind import OpenwireKind
from tmqp_server.doors.port import Door
from tmqp_server.doors.tables import limits_from, record_of_options

__all__ = [
    "LAST_NUMBER",
    "DoorRegistry",
    "GomsKind",
    "HttpKind",
    "SmqKind",
    "StompKind",
    "ThrottrKind",
    "TmqpKind",
    "ZmtpKind",
    "refuse_options",
]

#: The number of a kind is kept with each message in this many bits.
LAST_NUMBER: Final = 255


@final
class TmqpKind(DoorKind):
    """TMQP/2.0."""

    # The values of NativeDoor, repeated because a compiled class does not show those of its
    # attributes.
    name = "tmqp"
    number = 1
    default_port = 2622
    has_names = False

    def bodies(self) -> Bodies:
        """A reader of its stored messages."""
        return NativeDoor(_no_id, Limits())

    def open(self, context: DoorContext) -> NativeDoor:
        """Open a door with the limits of TMQP connections, except those in its own table."""
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
        """A reader that needs none of the packages that the door needs."""
        return HttpBodies()

    def open(self, context: DoorContext) -> Door:
        """Open a door whose WebSockets can carry TMQP."""
        refuse_options(context)
        from tmqp_server.doors.http.door import HttpDoor  # noqa: PLC0415 - an extra

        return HttpDoor(
            context.new_id,
            limits_from(HttpLimits(), context.limits),
            context.wall_clock_offset_s,
            inner={} if context.native is None else {context.native.name: context.native},
            letters=context.letters,
        )


@final
class SmqKind(DoorKind):
    """Simple MQ."""

    name = "smq"
    number = 8
    default_port = 2201

    def bodies(self) -> Bodies:
        """A reader that needs no door; its code is loaded when the first message needs it."""
        return LateBodies(self.name, self.number, _smq_bodies)

    def open(self, context: DoorContext) -> Door:
        """A door."""
        from tmqp_server.doors.smq.door import SmqDoor  # noqa: PLC0415 - few servers have it
        from tmqp_server.doors.smq.options import SmqLimits, SmqOptions  # noqa: PLC0415 - as above

        options = record_of_options(SmqOptions(), context.options)
        if options.durable and not context.has_storage:
            raise ValueError("durable queues need a data directory: start the server with --data")
        limits = limits_from(SmqLimits(), context.limits)
        return SmqDoor(context.new_id, limits, options, context.letters, context.names)


@final
class GomsKind(DoorKind):
    """goMS."""

    name = "goms"
    number = 7
    default_port = 55_545
    has_datagrams = True

    def bodies(self) -> Bodies:
        """A reader that needs no door; its code is loaded when the first message needs it."""
        return LateBodies(self.name, self.number, _goms_bodies)

    def open(self, context: DoorContext) -> Door:
        """Open a door; it needs at least one topic."""
        from tmqp_server.doors.goms.door import GomsDoor  # noqa: PLC0415 - few servers have it
        from tmqp_server.doors.goms.options import (  # noqa: PLC0415 - as above
            GomsLimits,
            GomsOptions,
        )

        options = record_of_options(GomsOptions(), context.options)
        if not options.topics:
            raise ValueError("options.topics must name the topics: clients cannot create any")
        return GomsDoor(
            context.new_id,
            limits_from(GomsLimits(), context.limits),
            options,
            context.letters,
            context.names,
            datagrams=context.datagrams,
        )


@final
class ThrottrKind(DoorKind):
    """Throttr."""

    name = "throttr"
    number = 6
    default_port = 9000

    def bodies(self) -> Bodies:
        """A reader that needs no door; its code is loaded when the first message needs it."""
        return LateBodies(self.name, self.number, _throttr_bodies)

    def open(self, context: DoorContext) -> Door:
        """A door."""
        from tmqp_server.doors.throttr.door import ThrottrDoor  # noqa: PLC0415 - as above
        from tmqp_server.doors.throttr.options import (  # noqa: PLC0415 - as above
            ThrottrLimits,
            ThrottrOptions,
        )

        return ThrottrDoor(
            context.new_id,
            limits_from(ThrottrLimits(), context.limits),
            record_of_options(ThrottrOptions(), context.options),
            context.letters,
            context.names,
            context.wall_clock_offset_s,
            context.started_s,
        )


@final
class ZmtpKind(DoorKind):
    """ZeroMQ."""

    name = "zmtp"
    number = 5
    default_port = 5555

    def bodies(self) -> Bodies:
        """A reader that needs no door; its code is loaded when the first message needs it."""
        return LateBodies(self.name, self.number, _zmtp_bodies)

    def open(self, context: DoorContext) -> Door:
        """A door."""
        from tmqp_server.doors.zmtp.door import ZmtpDoor  # noqa: PLC0415 - few servers have it
        from tmqp_server.doors.zmtp.keys import endpoint_keys  # noqa: PLC0415 - as above
        from tmqp_server.doors.zmtp.options import ZmtpLimits, ZmtpOptions  # noqa: PLC0415

        options = record_of_options(ZmtpOptions(), context.options)
        if options.durable and not context.has_storage:
            raise ValueError("durable queues need a data directory: start the server with --data")
        keys = endpoint_keys(options, context.read_secret)
        if keys is not None and not (context.has_access or options.curve_anonymous):
            raise ValueError(
                "the mechanism curve needs [access], whose entries name the public keys of clients;"
                " set curve_anonymous to accept every client that knows the server's"
            )
        limits = limits_from(ZmtpLimits(), context.limits)
        return ZmtpDoor(context.new_id, limits, options, context.letters, context.names, keys)

    def encrypts(self, options: Mapping[str, Any]) -> bool:
        """Whether the mechanism is CURVE."""
        return options.get("mechanism") == "curve"

    def dialler(self, door: Door) -> Door:
        """The same door, for connections that the server makes."""
        from tmqp_server.doors.zmtp.door import ZmtpDoor  # noqa: PLC0415 - as above

        assert isinstance(door, ZmtpDoor), "it was opened here"
        return door.dialler()

    def dials(self, options: Mapping[str, Any]) -> tuple[Address, ...]:
        """The addresses of the option ``connect``."""
        from tmqp_server.doors.zmtp.options import ZmtpOptions  # noqa: PLC0415 - as above

        return record_of_options(ZmtpOptions(), options).peers()


@final
class StompKind(DoorKind):
    """STOMP."""

    name = "stomp"
    number = 4
    default_port = 61_613

    def bodies(self) -> Bodies:
        """A reader that needs no door; its code is loaded when the first message needs it."""
        return LateBodies(self.name, self.number, _stomp_bodies)

    def open(self, context: DoorContext) -> Door:
        """Open a door; without a data directory, its queues are in memory only."""
        from tmqp_server.doors.stomp.door import StompDoor  # noqa: PLC0415 - few servers have it
        from tmqp_server.doors.stomp.options import StompLimits, StompOptions  # noqa: PLC0415

        options = record_of_options(StompOptions(), context.options)
        return StompDoor(
            context.new_id,
            limits_from(StompLimits(), context.limits),
            options,
            context.letters,
            context.names,
            context.wall_clock_offset_s,
            durable=context.has_storage and options.durable,
            done_confirms=options.done_confirms and not context.in_group,
        )


def _stomp_bodies() -> Bodies:
    from tmqp_server.doors.stomp.message import StompBodies  # noqa: PLC0415 - as above

    return StompBodies()


def _zmtp_bodies() -> Bodies:
    from tmqp_server.doors.zmtp.message import ZmtpBodies  # noqa: PLC0415 - few servers have it

    return ZmtpBodies()


def _smq_bodies() -> Bodies:
    from tmqp_server.doors.smq.message import SmqBodies  # noqa: PLC0415 - few servers need it

    return SmqBodies()


def _goms_bodies() -> Bodies:
    from tmqp_server.doors.goms.message import GomsBodies  # noqa: PLC0415 - few servers need it

    return GomsBodies()


def _throttr_bodies() -> Bodies:
    from tmqp_server.doors.throttr.message import ThrottrBodies  # noqa: PLC0415 - as above

    return ThrottrBodies()


def refuse_options(context: DoorContext) -> None:
    """Refuse all options, for a protocol that has none.

    :raises ValueError: when the door's table has any.
    """
    if context.options:
        raise ValueError(f"the protocol has no options, such as {min(context.options)!r}")


def _no_id() -> str:
    raise AssertionError("nothing comes in here")


@final
class DoorRegistry:
    """All kinds of doors that a server knows.

    :param more: kinds beside those of this package.

    Attributes: ``nsq``, the state that the doors of NSQ share.

    :raises ValueError: when two of them have the same name or number.
    """

    def __init__(self, more: Iterable[DoorKind] = ()) -> None:
        self._kinds: dict[str, DoorKind] = {}
        self.nsq = NsqWorld()
        lookupd = functools.cache(new_lookupd)
        kinds = (
            TmqpKind(),
            HttpKind(),
            NsqKind(self.nsq),
            NsqHttpKind(self.nsq),
            LookupKind(lookupd),
            LookupHttpKind(lookupd),
            SmqKind(),
            GomsKind(),
            ThrottrKind(),
            ZmtpKind(),
            StompKind(),
            OpenwireKind(),
        )
        for kind in (*kinds, *more):
            self._add(kind)

    def _add(self, kind: DoorKind) -> None:
        if not kind.name or not 0 <= kind.number <= LAST_NUMBER:
            raise ValueError(
                f"the door {kind.name!r} needs a name, and a number from 1 to {LAST_NUMBER},"
                f" or 0 if it has no messages, not {kind.number}"
            )
        for other in self._kinds.values():
            if other.name == kind.name:
                raise ValueError(f"the door {kind.name!r} exists already")
            if other.number == kind.number != 0:
                raise ValueError(
                    f"the doors {other.name!r} and {kind.name!r} have one number, {kind.number}"
                )
        self._kinds[kind.name] = kind

    def __iter__(self) -> Iterator[DoorKind]:
        return iter(self._kinds.values())

    def find(self, name: str) -> DoorKind:
        """The kind with this name.

        :raises ValueError: when there is no such protocol.
        """
        kind = self._kinds.get(name)
        if kind is None:
            raise ValueError(f"there is no door {name!r}; the doors are {', '.join(self._kinds)}")
        return kind
