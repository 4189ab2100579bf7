"""NSQ among the protocols that a server can serve: nsqd and nsqlookupd, by TCP and by HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

from tmqp.address import Address
from tmqp_server.doors.bodies import Bodies, LateBodies
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.kinds import DoorContext, DoorKind
from tmqp_server.doors.nsq_world import DEFAULT_VERSION, NsqNames, NsqWorld, tell_world
from tmqp_server.doors.port import Door
from tmqp_server.doors.tables import Option, limits_from, options_from, record_of_options

if TYPE_CHECKING:
    from tmqp_server.doors.nsq_lookup.door import Lookupd

__all__ = ["LookupHttpKind", "LookupKind", "NsqHttpKind", "NsqKind", "new_lookupd"]

#: Options that any door of an nsqd may have, because they are about the whole nsqd.
_OF_NSQD: Final[dict[str, Option]] = {
    "broadcast_address": "",
    "broadcast_tcp_port": 0,
    "broadcast_http_port": 0,
    "nsqlookupd_tcp_addresses": (),
}


@final
class NsqKind(DoorKind):
    """NSQ's TCP protocol V2, as nsqd speaks it.

    :param world: the state that the doors of one nsqd share.
    """

    name = "nsq"
    number = 2
    default_port = 4150
    changes_to_tls = True

    def __init__(self, world: NsqWorld) -> None:
        self._world = world

    def bodies(self) -> Bodies:
        """A reader that needs no door; its code is loaded when the first message needs it."""
        return LateBodies(self.name, self.number, _nsq_bodies)

    def open(self, context: DoorContext) -> Door:
        """Open a door; it offers snappy only if the packages for it are installed."""
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
            # N99: a client without TLS could not show a certificate.
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

    :param world: the state that the doors of one nsqd share.
    """

    name = "nsqd-http"
    number = 0
    default_port = 4151

    def __init__(self, world: NsqWorld) -> None:
        self._world = world

    def open(self, context: DoorContext) -> Door:
        """Open an HTTP door in the manner of NSQ.

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
    """Divide the door's options: those for other readers, and those of *own* with defaults for
    missing ones.

    :raises ValueError: when one of *own* has a value of another type.
    """
    given = {name: value for name, value in context.options.items() if name in own}
    rest = {name: value for name, value in context.options.items() if name not in own}
    return rest, options_from(own, given)


def _nsq_bodies() -> Bodies:
    from tmqp_server.doors.nsq.message import NsqBodies  # noqa: PLC0415 - few servers have it

    return NsqBodies()


@final
class LookupKind(DoorKind):
    """nsqlookupd's TCP protocol, for nsqds that register their topics.

    :param lookupd: what its doors share, made when one of them needs it.
    """

    name = "nsqlookupd"
    number = 0
    default_port = 4160
    has_names = False

    def __init__(self, lookupd: Callable[[], Lookupd]) -> None:
        self._lookupd = lookupd

    def open(self, context: DoorContext) -> Door:
        """Open a door; the limits in its table apply to the lookupd."""
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
    """nsqlookupd's HTTP interface, for clients that look up a topic.

    :param lookupd: what its doors share, made when one of them needs it.
    """

    name = "nsqlookupd-http"
    number = 0
    default_port = 4161
    has_names = False

    def __init__(self, lookupd: Callable[[], Lookupd]) -> None:
        self._lookupd = lookupd

    def open(self, context: DoorContext) -> Door:
        """Open an HTTP door in the manner of NSQ."""
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


def new_lookupd() -> Lookupd:
    """Create the lookupd that the doors of one server share."""
    from tmqp_server.doors.nsq_lookup.door import Lookupd  # noqa: PLC0415 - few servers have it

    return Lookupd()


def _first_port(addresses: Sequence[Address]) -> int:
    ports = [address.port for address in addresses if not address.socket_path]
    return ports[0] if ports else 0
