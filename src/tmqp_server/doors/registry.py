"""The protocols that a server can serve, by name.

A :class:`DoorKind` makes the doors of one protocol.  It also knows how to read what is kept of the
protocol's messages, whether or not a door is open: what is on disk was accepted once, and a server
that no longer serves the protocol still delivers it.

Further protocols are given to ``running``.  A kind that needs a package that is not installed says
so when a door is to be opened, not before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

from tmqp.address import Address
from tmqp.limits import Limits
from tmqp_server.doors.bodies import Bodies, LateBodies
from tmqp_server.doors.http.bodies import HttpBodies
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.kinds import DoorContext, DoorKind
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.nsq_world import DEFAULT_VERSION, NsqNames, NsqWorld, tell_world
from tmqp_server.doors.openwire_kind import OpenwireKind
from tmqp_server.doors.port import Door
from tmqp_server.doors.tables import Option, limits_from, options_from, record_of_options

if TYPE_CHECKING:
    from tmqp_server.doors.nsq_lookup.door import Lookupd

__all__ = [
    "LAST_NUMBER",
    "DoorRegistry",
    "GomsKind",
    "HttpKind",
    "LookupHttpKind",
    "LookupKind",
    "NsqHttpKind",
    "NsqKind",
    "SmqKind",
    "StompKind",
    "ThrottrKind",
    "TmqpKind",
    "ZmtpKind",
    "refuse_options",
]

#: The number of a kind is kept with each message in this many bits.
LAST_NUMBER: Final = 255

#: Options that any door of an nsqd may have: they are about the whole of it.
_OF_NSQD: Final[dict[str, Option]] = {
    "broadcast_address": "",
    "broadcast_tcp_port": 0,
    "broadcast_http_port": 0,
    "nsqlookupd_tcp_addresses": (),
}


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


@final
class NsqKind(DoorKind):
    """NSQ's TCP protocol V2, as nsqd speaks it.

    :param world: what the doors of one nsqd share.
    """

    name = "nsq"
    number = 2
    default_port = 4150
    changes_to_tls = True

    def __init__(self, world: NsqWorld) -> None:
        self._world = world

    def bodies(self) -> Bodies:
        """Read without a door, by what is loaded for the first message."""
        return LateBodies(self.name, self.number, _nsq_bodies)

    def open(self, context: DoorContext) -> Door:
        """A door; without the packages for snappy it offers none."""
        from tmqp_server.doors.nsq.context import NsqContext  # noqa: PLC0415 - few servers have it
        from tmqp_server.doors.nsq.door import NsqDoor  # noqa: PLC0415 - as above
        from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions  # noqa: PLC0415 - as above

        world = self._world
        options, own = _divided(context, _OF_NSQD)
        names = NsqNames(context.names)
        if world.terms is not None and names.aliases != world.names.aliases:
            raise ValueError("all doors of nsq in one server must have the same aliases")
        world.names = names
        read = record_of_options(NsqOptions(), options)
        if context.has_tls and context.requires_certificate:
            # N99: whoever stays in the clear would show none.
            read = replace(read, tls_required=True)
        shared = NsqContext(
            context.new_id,
            limits_from(NsqLimits(), context.limits),
            read,
            context.wall_clock_offset_s,
            has_tls=context.has_tls,
            durable=context.has_storage,
            world=world,
        )
        world.terms, world.shapes = shared.terms, shared.shapes
        world.tell(tcp_port=_first_port(context.addresses))
        tell_world(world, own, context.hostname)
        return NsqDoor(shared, context.letters)

    def listens(self, addresses: Sequence[Address]) -> None:
        """Tell lookupds the port that was chosen."""
        self._world.tell(tcp_port=_first_port(addresses))


@final
class NsqHttpKind(DoorKind):
    """nsqd's HTTP interface.

    :param world: what the doors of one nsqd share.
    """

    name = "nsqd-http"
    number = 0
    default_port = 4151

    def __init__(self, world: NsqWorld) -> None:
        self._world = world

    def open(self, context: DoorContext) -> Door:
        """A door of HTTP in the manner of NSQ.

        Options about topics and clients are those of the TCP door, if there is one.
        """
        from tmqp_server.doors.http.door import HttpDoor  # noqa: PLC0415 - an extra
        from tmqp_server.doors.nsq_http.door import make_routes  # noqa: PLC0415
        from tmqp_server.doors.nsq_http.manner import NsqManner  # noqa: PLC0415

        world = self._world
        rest, own = _divided(context, {**_OF_NSQD, "old_names": True, "https_port": 0})
        secure = any(address.tls for address in context.addresses)
        if not secure:
            world.tell(http_port=_first_port(context.addresses))
        world.started_s = context.started_s
        names = NsqNames(context.names)
        if world.terms is None:
            world.names = names
        elif names.aliases and names.aliases != world.names.aliases:
            raise ValueError("the aliases of topics and channels belong in the table of nsq")
        limits = limits_from(HttpLimits(), context.limits)
        routes = make_routes(
            world,
            context.new_id,
            context.wall_clock_offset_s,
            rest,
            durable=context.has_storage,
            old_names=bool(own["old_names"]),
        )
        tell_world(world, own, context.hostname)
        return HttpDoor(
            context.new_id,
            limits,
            context.wall_clock_offset_s,
            routes=routes,
            letters=context.letters,
            manner=NsqManner(0 if secure else int(str(own["https_port"]))),
            door_name=NsqKind.name,
        )

    def listens(self, addresses: Sequence[Address]) -> None:
        """Tell lookupds the port that was chosen."""
        self._world.tell(http_port=_first_port([each for each in addresses if not each.tls]))


def _divided(
    context: DoorContext, own: Mapping[str, Option]
) -> tuple[dict[str, Any], dict[str, Option]]:
    """The options that others read, and those of *own* with their defaults.

    :raises ValueError: for one of *own* that has another type.
    """
    given = {name: value for name, value in context.options.items() if name in own}
    rest = {name: value for name, value in context.options.items() if name not in own}
    return rest, options_from(own, given)


@final
class SmqKind(DoorKind):
    """Simple MQ."""

    name = "smq"
    number = 8
    default_port = 2201

    def bodies(self) -> Bodies:
        """Read without a door, by what is loaded for the first message."""
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
        """Read without a door, by what is loaded for the first message."""
        return LateBodies(self.name, self.number, _goms_bodies)

    def open(self, context: DoorContext) -> Door:
        """A door.  Without topics its clients could do nothing."""
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
        """Read without a door, by what is loaded for the first message."""
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
        """Read without a door, by what is loaded for the first message."""
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
        """With CURVE."""
        return options.get("mechanism") == "curve"

    def dialler(self, door: Door) -> Door:
        """The same, in the role that its keys give it."""
        from tmqp_server.doors.zmtp.door import ZmtpDoor  # noqa: PLC0415 - as above

        assert isinstance(door, ZmtpDoor), "it was opened here"
        return door.dialler()

    def dials(self, options: Mapping[str, Any]) -> tuple[Address, ...]:
        """Sockets that listen."""
        from tmqp_server.doors.zmtp.options import ZmtpOptions  # noqa: PLC0415 - as above

        return record_of_options(ZmtpOptions(), options).peers()


@final
class StompKind(DoorKind):
    """STOMP."""

    name = "stomp"
    number = 4
    default_port = 61_613

    def bodies(self) -> Bodies:
        """Read without a door, by what is loaded for the first message."""
        return LateBodies(self.name, self.number, _stomp_bodies)

    def open(self, context: DoorContext) -> Door:
        """A door; without a data directory its queues are in memory."""
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


def _nsq_bodies() -> Bodies:
    from tmqp_server.doors.nsq.message import NsqBodies  # noqa: PLC0415 - few servers have it

    return NsqBodies()


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
    """For a protocol that has no options.

    :raises ValueError: when the door's table has some.
    """
    if context.options:
        raise ValueError(f"the protocol has no options, such as {min(context.options)!r}")


def _no_id() -> str:
    raise AssertionError("nothing comes in here")


@final
class LookupKind(DoorKind):
    """nsqlookupd, for nsqds that tell what they have.

    :param lookupd: what its doors share, made when one of them needs it.
    """

    name = "nsqlookupd"
    number = 0
    default_port = 4160
    has_names = False

    def __init__(self, lookupd: Callable[[], Lookupd]) -> None:
        self._lookupd = lookupd

    def open(self, context: DoorContext) -> Door:
        """A door, whose limits are those of the table."""
        from tmqp_server.doors.nsq_lookup.door import LookupDoor  # noqa: PLC0415 - few have it
        from tmqp_server.doors.nsq_lookup.table import LookupLimits  # noqa: PLC0415 - as above

        lookupd = self._lookupd()
        options = options_from(
            {"broadcast_address": "", "version": DEFAULT_VERSION}, context.options
        )
        lookupd.table.limits = limits_from(LookupLimits(), context.limits)
        lookupd.hostname = context.hostname
        lookupd.broadcast_address = str(options["broadcast_address"]) or context.hostname
        lookupd.version = str(options["version"])
        lookupd.tcp_port = _first_port(context.addresses)
        return LookupDoor(lookupd, context.new_id)

    def listens(self, addresses: Sequence[Address]) -> None:
        """Tell producers the port that was chosen."""
        lookupd = self._lookupd()
        lookupd.tcp_port = _first_port(addresses) or lookupd.tcp_port


@final
class LookupHttpKind(DoorKind):
    """nsqlookupd, for clients that look for a topic.

    :param lookupd: what its doors share, made when one of them needs it.
    """

    name = "nsqlookupd-http"
    number = 0
    default_port = 4161
    has_names = False

    def __init__(self, lookupd: Callable[[], Lookupd]) -> None:
        self._lookupd = lookupd

    def open(self, context: DoorContext) -> Door:
        """A door of HTTP in the manner of NSQ."""
        from tmqp_server.doors.http.door import HttpDoor  # noqa: PLC0415 - an extra
        from tmqp_server.doors.nsq_http.lookup import LookupRoutes  # noqa: PLC0415
        from tmqp_server.doors.nsq_http.manner import NsqManner  # noqa: PLC0415

        options = options_from({"old_names": True}, context.options)
        lookupd = self._lookupd()
        if not lookupd.http_port:
            lookupd.http_port = _first_port(context.addresses)
        routes = LookupRoutes(
            lookupd, context.wall_clock_offset_s, old_names=bool(options["old_names"])
        )
        return HttpDoor(
            context.new_id,
            limits_from(HttpLimits(), context.limits),
            context.wall_clock_offset_s,
            routes=routes.routes,
            letters=context.letters,
            manner=NsqManner(),
            door_name=self.name,
        )

    def listens(self, addresses: Sequence[Address]) -> None:
        """Tell producers the port that was chosen."""
        lookupd = self._lookupd()
        lookupd.http_port = _first_port(addresses) or lookupd.http_port


def _new_lookupd() -> Lookupd:
    from tmqp_server.doors.nsq_lookup.door import Lookupd  # noqa: PLC0415 - few servers have it

    return Lookupd()


def _first_port(addresses: Sequence[Address]) -> int:
    ports = [address.port for address in addresses if not address.socket_path]
    return ports[0] if ports else 0


@final
class DoorRegistry:
    """The kinds that a server knows.

    :param more: kinds beside those of this package.

    Attributes: ``nsq``, what the doors of NSQ share.

    :raises ValueError: when two of them have one name or one number.
    """

    def __init__(self, more: Iterable[DoorKind] = ()) -> None:
        self._kinds: dict[str, DoorKind] = {}
        self.nsq = NsqWorld()
        lookupd = functools.cache(_new_lookupd)
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
        """The kind of a name.

        :raises ValueError: when there is none.
        """
        kind = self._kinds.get(name)
        if kind is None:
            raise ValueError(f"there is no door {name!r}; the doors are {', '.join(self._kinds)}")
        return kind
