"""The admin door: HTTP for operators, on a listener of its own.

It is a door like the others.  Its sessions are pure, its clients log in as everywhere, and the gate
is asked what they may see.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tmqp.constants import MAX_QUEUE_ID
from tmqp_server.admin.api.logins import WebLogIns
from tmqp_server.admin.api.manner import ApiManner
from tmqp_server.admin.api.openapi import description_of
from tmqp_server.admin.api.operations import OPERATIONS, routes_of
from tmqp_server.admin.api.overview import Overviews
from tmqp_server.admin.api.table import Api
from tmqp_server.admin.api.views import Views
from tmqp_server.admin.console.files import console_routes
from tmqp_server.admin.metrics.collect import Collector, Page
from tmqp_server.admin.metrics.exposition import (
    OPENMETRICS,
    OPENMETRICS_TYPE,
    TEXT,
    TEXT_TYPE,
    wants_openmetrics,
)
from tmqp_server.admin.permitted import Permitted
from tmqp_server.admin.probes import say_alive, say_ready
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.messages import HttpResponse, as_json
from tmqp_server.doors.http.routes import Begin, Route
from tmqp_server.doors.kinds import DoorContext
from tmqp_server.doors.port import Door
from tmqp_server.doors.tables import limits_from, record_of_options
from tmqp_server.engine.commands import Command, SeeMetrics
from tmqp_server.engine.operations.survey import QueueChoice

__all__ = ["AdminOptions", "open_door", "read_choice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminOptions:
    """What the admin door can be told."""

    metrics_queues: tuple[str, ...] = ()
    """The queues that have metrics of their own: ``orders`` for all of that channel, ``bills-*/1``
    for the queue 1 of channels whose names begin so; none if nothing is given."""

    max_metrics_queues: int = 1_000
    """How many of these are shown one by one; the others are summed."""

    hosts: tuple[str, ...] = ()
    """The names under which browsers and scripts reach this server, beside ``localhost`` and
    addresses; requests for other hosts are refused."""

    anonymous_metrics: bool = False
    """Whether ``/metrics`` is shown to clients that do not log in."""

    console: bool = True
    """Whether ``/`` is the console."""

    def __post_init__(self) -> None:
        if self.max_metrics_queues < 1:
            raise ValueError(f"max_metrics_queues must be positive, got {self.max_metrics_queues}")


def read_choice(text: str) -> QueueChoice:
    """Read one of ``metrics_queues``: ``CHANNELS`` or ``CHANNELS/QUEUE``.

    :raises ValueError: for a filter that cannot be used.
    """
    pattern, slash, number = text.rpartition("/")
    if not slash or not (number.isascii() and number.isdecimal()):
        pattern, number = text, ""
    if not pattern or "*" in pattern[1:-1]:
        raise ValueError(
            f"metrics_queues: a star is at the beginning, at the end or at both, not as in {text!r}"
        )
    if number and int(number) > MAX_QUEUE_ID:
        raise ValueError(f"metrics_queues: {text!r}: the largest queue id is {MAX_QUEUE_ID}")
    return QueueChoice(pattern, int(number) if number else -1)


def open_door(name: str, world: AdminWorld, context: DoorContext) -> tuple[Door, Api]:
    """A door of HTTP, and what its operations work with.

    :param name: what the door is called.
    :param world: the server that it is about.
    """
    from tmqp_server.doors.http.door import HttpDoor  # noqa: PLC0415 - an extra

    options = record_of_options(AdminOptions(), context.options)
    limits = limits_from(HttpLimits(), context.limits)
    logins = WebLogIns(world.random_bytes)
    manner = ApiManner(logins, context.new_id, options.hosts, encrypted=context.encrypted)
    api = Api(world, manner, logins, Views(), partial(_described, world), Overviews(world))
    door = HttpDoor(
        context.new_id,
        limits,
        context.wall_clock_offset_s,
        {} if context.native is None else {context.native.name: context.native},
        routes=[*_routes(world, options), *routes_of(api)],
        letters=context.letters,
        manner=manner,
        door_name=name,
    )
    door.name = name
    door.for_operators = True
    return door, api


def _described(world: AdminWorld) -> bytes:
    """What the API is like."""
    return as_json(description_of(OPERATIONS, world.build["version"]))


def _routes(world: AdminWorld, options: AdminOptions) -> list[Route]:
    choices = [read_choice(each) for each in options.metrics_queues]
    collector = Collector(world, choices, options.max_metrics_queues)
    anonymous = options.anonymous_metrics
    page = console_routes() if options.console else []
    return [
        *page,
        Route("GET", "/healthz", say_alive(world), public=True),
        Route("GET", "/readyz", say_ready(world), public=True),
        Route("GET", "/metrics", _show(collector, anonymous=anonymous), public=anonymous),
    ]


def _show(collector: Collector, *, anonymous: bool) -> Begin:
    """``GET /metrics``, in the format that the client prefers."""

    def begin(exchange: Exchange) -> Handler | None:
        exchange.wanted.check_query()
        return _Metrics(exchange, collector, anonymous=anonymous)

    return begin


class _Metrics(Permitted):
    """Waits for a page of metrics, and works on it."""

    def __init__(self, exchange: Exchange, collector: Collector, *, anonymous: bool) -> None:
        super().__init__(exchange, SeeMetrics(exchange.client.number, None))
        accept = exchange.wanted.header(b"accept") or b""
        self._form: Final = OPENMETRICS if wants_openmetrics(accept) else TEXT
        self._collector = collector
        self._page: Page | None = None
        self._anonymous = anonymous

    def start(self, now: float) -> Sequence[Command]:
        """Ask for the right, unless everybody has it."""
        if not self._anonymous:
            return super().start(now)
        self.permitted(now)
        return ()

    def permitted(self, now: float) -> None:
        """Begin with the page."""
        self._page = self._collector.page(self._form, now)
        self.due = now

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Work on it, and answer when it is complete."""
        page = self._page
        assert page is not None, "nothing else is waited for"
        self.due = page.go_on(now)
        if page.done:
            self.due = math.inf
            kind = OPENMETRICS_TYPE if self._form == OPENMETRICS else TEXT_TYPE
            self.exchange.respond(HttpResponse(200, page.text, kind))
        return ()
