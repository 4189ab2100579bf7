"""The admin door: HTTP for operators, on a separate listener.

It is a door like the others: its sessions are without I/O, its clients log in as everywhere, and
the gate decides what they may see.
"""

from __future__ import annotations

from functools import partial
from typing import final

from tmqp_server.admin.api.consuming import HttpConsumers
from tmqp_server.admin.api.logins import WebLogIns
from tmqp_server.admin.api.manner import ApiManner
from tmqp_server.admin.api.openapi import description_of
from tmqp_server.admin.api.operations import OPERATIONS, routes_of
from tmqp_server.admin.api.overview import Overviews
from tmqp_server.admin.api.pace import Pace
from tmqp_server.admin.api.recalling import KEEPER, EventKeeper, KeptEvents
from tmqp_server.admin.api.table import Api
from tmqp_server.admin.api.views import Views
from tmqp_server.admin.console.files import console_routes
from tmqp_server.admin.metrics.collect import Collector
from tmqp_server.admin.metrics.serving import metrics_route
from tmqp_server.admin.options import ADMIN, AdminOptions, read_choice
from tmqp_server.admin.places import Places
from tmqp_server.admin.probes import say_alive, say_ready
from tmqp_server.admin.session import AdminSession
from tmqp_server.admin.share import LoopShare
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.http.door import HttpDoor
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.messages import as_json
from tmqp_server.doors.http.routes import Route
from tmqp_server.doors.kinds import DoorContext
from tmqp_server.doors.port import DoorSession
from tmqp_server.doors.tables import limits_from
from tmqp_server.engine.effects import Inform

__all__ = ["AdminDoor", "open_door"]


@final
class AdminDoor(HttpDoor):
    """The admin door; ``kept`` has its last events, ``places`` limits the requests that work at
    once.
    """

    kept: KeptEvents
    places: Places

    def open(self, session: int, now: float) -> DoorSession:
        """Open the session of a connection, or the keeper of events."""
        if session == KEEPER:
            return EventKeeper(self.kept)
        return AdminSession(self.context, self.places, session, now)

    def encode_event(self, effect: Inform) -> bytes:
        """An event with its id."""
        return self.kept.number(effect, super().encode_event(effect))


def open_door(
    world: AdminWorld, context: DoorContext, options: AdminOptions
) -> tuple[AdminDoor, Api]:
    """Make a door, and what its operations work with."""
    limits = limits_from(HttpLimits(), context.limits)
    logins = WebLogIns(world.random_bytes)
    manner = ApiManner(
        logins,
        context.new_id,
        options.hosts,
        options.origins,
        encrypted=context.encrypted,
    )
    api = Api(
        world,
        manner,
        logins,
        Views(),
        partial(_described, world),
        Overviews(world),
        HttpConsumers(world),
        options,
        Pace(options.requests_per_s),
        KeptEvents(world),
    )
    choices = [read_choice(each) for each in options.metrics_queues]
    collector = Collector(world, choices, options.max_metrics_queues)
    if options.exemplars:
        collector.exemplars_offset_s = context.wall_clock_offset_s
    collector.logins = logins
    share = LoopShare(options.share, world.clock_s, world.busy_s)
    places = Places(options.max_at_work, options.max_waiting, share, world.wake)
    collector.places = places
    door = AdminDoor(
        context.new_id,
        limits,
        context.wall_clock_offset_s,
        {} if context.native is None else {context.native.name: context.native},
        routes=[*_routes(world, options, collector), *routes_of(api)],
        letters=context.letters,
        manner=manner,
        door_name=ADMIN,
        tally=collector.requests,
        entrance=places,
    )
    door.name = ADMIN
    door.for_operators = True
    api.kept.door = door
    door.kept = api.kept
    door.places = places
    return door, api


def _described(world: AdminWorld) -> bytes:
    """Describe the API in OpenAPI."""
    return as_json(description_of(OPERATIONS, world.build["version"]))


def _routes(world: AdminWorld, options: AdminOptions, collector: Collector) -> list[Route]:
    page = console_routes() if options.console else []
    return [
        *page,
        Route("GET", "/healthz", say_alive(world), public=True),
        Route("GET", "/readyz", say_ready(world), public=True),
        metrics_route(collector, anonymous=options.anonymous_metrics),
    ]
