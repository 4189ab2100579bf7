"""The table of all operations of the API.

The routes, the OpenAPI description, the matrix of rights and the reference in ``docs/api.md`` are
made from it, so they agree.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import MAX_QUEUE_ID
from tmqp_server.admin.api.batches import BATCH_OPERATIONS
from tmqp_server.admin.api.cells import CELL_OPERATIONS
from tmqp_server.admin.api.channels import CHANNEL_OPERATIONS
from tmqp_server.admin.api.clients import CLIENT_OPERATIONS
from tmqp_server.admin.api.consumers import CONSUMER_OPERATIONS
from tmqp_server.admin.api.copying import COPY_OPERATIONS
from tmqp_server.admin.api.definitions import DEFINITION_OPERATIONS
from tmqp_server.admin.api.live import LIVE_OPERATIONS
from tmqp_server.admin.api.messages import MESSAGE_OPERATIONS
from tmqp_server.admin.api.operating import OPERATING_OPERATIONS
from tmqp_server.admin.api.reading import READING_OPERATIONS
from tmqp_server.admin.api.repeats import name_in
from tmqp_server.admin.api.rights import tell_rights
from tmqp_server.admin.api.routers import ROUTER_OPERATIONS
from tmqp_server.admin.api.server import (
    drain,
    reload_settings,
    tell_audit,
    tell_limits,
    tell_server,
    tell_settings,
    tell_storage,
)
from tmqp_server.admin.api.sessions import log_in, log_out, tell_session
from tmqp_server.admin.api.slowness import SLOWNESS_OPERATIONS
from tmqp_server.admin.api.table import Api, Operation, integer, text
from tmqp_server.admin.api.transfers import TRANSFER_OPERATIONS
from tmqp_server.admin.probes import tell_health
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import JSON, HttpResponse
from tmqp_server.doors.http.routes import Begin, Route
from tmqp_server.engine.commands import AskRight, Drain, Manage, SeeAudit, SeeServer

__all__ = ["OPERATIONS", "routes_of"]


def _describe(api: Api, exchange: Exchange) -> None:
    exchange.respond(HttpResponse(200, api.description(), JSON))


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="getServer",
        method="GET",
        path="/server",
        summary="The server in numbers.",
        begin=tell_server,
        rights=("see-server",),
        commands=(SeeServer,),
        answer="Server",
        cli=("server info",),
    ),
    Operation(
        name="getLimits",
        method="GET",
        path="/server/limits",
        summary="The limits, with the current use of some.",
        begin=tell_limits,
        rights=("see-server",),
        commands=(SeeServer,),
        answer="Limits",
    ),
    Operation(
        name="getStorage",
        method="GET",
        path="/server/storage",
        summary="The state and size of the storage, and the duration of its writes.",
        begin=tell_storage,
        rights=("see-server",),
        commands=(SeeServer,),
        answer="Storage",
    ),
    Operation(
        name="getHealth",
        method="GET",
        path="/server/health",
        summary="The results of the probes.",
        begin=lambda api, exchange: tell_health(api.world)(exchange),
        rights=("see-server",),
        commands=(SeeServer,),
        answer="Health",
    ),
    Operation(
        name="getSettings",
        method="GET",
        path="/server/config",
        summary="The settings, without secrets.",
        begin=tell_settings,
        rights=("see-server",),
        commands=(SeeServer,),
        answer="Settings",
    ),
    Operation(
        name="drain",
        method="POST",
        path="/server/drain",
        summary="Stop accepting messages and wait for acknowledgements; optionally end the server.",
        begin=drain,
        rights=("manage-server",),
        commands=(Drain,),
        body="Draining",
        answer="Drained",
        status=202,
        failures=(409, 422),
        cli=("drain",),
    ),
    Operation(
        name="reload",
        method="POST",
        path="/server/reload",
        summary="Reload the configuration; the result is in the log.",
        begin=reload_settings,
        rights=("manage-server",),
        commands=(Manage,),
        action="reload",
        answer="Reloaded",
        status=202,
        failures=(501,),
    ),
    Operation(
        name="getAudit",
        method="GET",
        path="/audit",
        summary="The last requested changes, the newest first.",
        begin=tell_audit,
        rights=("see-audit",),
        commands=(SeeAudit,),
        query=(integer("max", "How many.", 1, 1_000, 100),),
        answer="Audit",
        cli=("audit",),
    ),
    Operation(
        name="getOpenApi",
        method="GET",
        path="/openapi.json",
        summary="This description.",
        begin=_describe,
        answer="OpenApi",
    ),
    Operation(
        name="logIn",
        method="POST",
        path="/session",
        summary="Log in with a token, or a user and a password: the answer sets a cookie.",
        begin=log_in,
        body="LogIn",
        answer="LoggedIn",
        status=201,
    ),
    Operation(
        name="getSession",
        method="GET",
        path="/session",
        summary="The client that sends the request.",
        begin=tell_session,
        answer="Session",
    ),
    Operation(
        name="getRights",
        method="GET",
        path="/session/rights",
        summary="The client's rights, for a channel, a queue, a router or a space of cells.",
        begin=tell_rights,
        commands=(AskRight,),
        query=(
            text("channel", "The name of a channel."),
            integer("queue", "The id of a queue in the channel.", 0, MAX_QUEUE_ID, 0),
            text("router", "The name of a router."),
            text("space", "The name of a space of cells."),
        ),
        answer="Rights",
    ),
    Operation(
        name="logOut",
        method="DELETE",
        path="/session",
        summary="Log out; the cookie becomes invalid.",
        begin=log_out,
        status=204,
    ),
    *OPERATING_OPERATIONS,
    *COPY_OPERATIONS,
    *CHANNEL_OPERATIONS,
    *MESSAGE_OPERATIONS,
    *BATCH_OPERATIONS,
    *TRANSFER_OPERATIONS,
    *CONSUMER_OPERATIONS,
    *CLIENT_OPERATIONS,
    *SLOWNESS_OPERATIONS,
    *ROUTER_OPERATIONS,
    *READING_OPERATIONS,
    *CELL_OPERATIONS,
    *DEFINITION_OPERATIONS,
    *LIVE_OPERATIONS,
)


def _begun(api: Api, operation: Operation) -> Begin:
    def begin(exchange: Exchange) -> Handler | None:
        operation.check(exchange.wanted)
        host = exchange.peer.rpartition(":")[0]
        cost = operation.cost(exchange.wanted)
        too_soon = api.pace.meet(exchange.client.proof, host, cost, exchange.now)
        if too_soon is not None:
            exchange.respond(too_soon)
            return None
        met = None
        if operation.repeats:
            met = api.repeats.meet(exchange.client.proof, exchange.wanted, exchange.now)
        if isinstance(met, HttpResponse):
            exchange.respond(met)
            return None
        exchange.rewrite = met
        if met is not None and operation.name == "publish" and "id" not in exchange.wanted.query:
            # Should it be carried out twice after all, consumers can see that it is the same.
            exchange.wanted.query["id"] = name_in(exchange.wanted)
        return operation.begin(api, exchange)

    return begin


def routes_of(api: Api) -> list[Route]:
    """The routes of all operations."""
    return [
        Route(
            each.method,
            each.template,
            _begun(api, each),
            public=each.public,
            overlaps=each.overlaps,
            bounded=not each.waits,
            takes_body=bool(each.body),
        )
        for each in OPERATIONS
    ]
