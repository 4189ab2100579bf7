"""Creates the routes of nsqd's HTTP door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tmqp
from tmqp_server.doors.http.routes import Route
from tmqp_server.doors.nsq.message import NsqIds
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions, terms_of
from tmqp_server.doors.nsq.topics import Shapes
from tmqp_server.doors.nsq_http.nsqd import NsqdRoutes
from tmqp_server.doors.nsq_world import NsqWorld
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.tables import record_of_options

__all__ = ["make_routes"]


def make_routes(
    world: NsqWorld,
    new_id: IdSource,
    wall_clock_offset_s: float,
    options: Mapping[str, Any],
    *,
    durable: bool,
    old_names: bool,
) -> list[Route]:
    """The routes of an nsqd, with the settings of its TCP door or, without one, with *options*.

    :raises ValueError: for options that are invalid, or belong to the table of the TCP door.
    """
    if world.terms is None or world.shapes is None:
        read = record_of_options(NsqOptions(), options)
        world.terms = terms_of(NsqLimits(), read, has_tls=False, has_snappy=False)
        world.shapes = Shapes(read, world.names, durable=durable and read.durable)
    elif options:
        names = ", ".join(options)
        raise ValueError(f"the table of nsq has the options of topics and clients: {names}")
    memory = world.shapes.mem_queue_size
    routes = NsqdRoutes(
        world,
        world.terms,
        world.shapes,
        NsqIds(new_id(), wall_clock_offset_s),
        wall_clock_offset_s,
        {
            "mem_queue_size": memory,
            "e2e_processing_latency_percentiles": list(world.latencies.percentiles),
            "e2e_processing_latency_window_time": world.latencies.window_ms * 1_000_000,
        },
        f"tmqp {tmqp.__version__}",
        old_names=old_names,
    )
    return routes.routes
