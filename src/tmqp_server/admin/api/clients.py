"""``/clients`` and ``/nodes``: who is connected."""

from __future__ import annotations

from typing import Final

from tmqp_server.admin.api.kinds import CLIENTS
from tmqp_server.admin.api.lists import LIST_PARAMETERS, Pages
from tmqp_server.admin.api.overview import turn_of
from tmqp_server.admin.api.running import AskOnce, Stepping, Steps, done, need, show
from tmqp_server.admin.api.shapes import client_details
from tmqp_server.admin.api.table import Api, Operation
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse
from tmqp_server.engine.commands import (
    DescribeClient,
    DisconnectClient,
    ListNodes,
    SurveyChannels,
    SurveyClients,
)
from tmqp_server.engine.model.nodes import NodeSnapshot
from tmqp_server.engine.model.surveyed import ClientDetails

__all__ = ["CLIENT_OPERATIONS"]

_NO_CLIENT: Final = "no client with this id is connected"
#: Channels whose rights are checked together.
_TOGETHER: Final = 64


def _list_clients(api: Api, exchange: Exchange) -> Handler:
    return Pages(api, exchange, CLIENTS)


def _get_client(api: Api, exchange: Exchange) -> Handler:
    client_id = exchange.wanted.text("client")

    def steps(session: int, request: object) -> Steps:
        found = need((yield DescribeClient(session, request, client_id)), _NO_CLIENT)
        assert isinstance(found, ClientDetails), "it is the answer"
        names = list(dict.fromkeys([each.channel for each in found.subscriptions]))
        visible: set[str] = set()
        for at in range(0, len(names), _TOGETHER):
            # Who may see the client may not see every channel that it has joined.
            asked = names[at : at + _TOGETHER]
            reply = yield SurveyChannels(session, request, names=asked)
            if isinstance(reply.body, list):
                visible.update([channel.name for channel in reply.body])
        told = client_details(found, frozenset(visible))
        return HttpResponse.json(200, {**told, **_connection(api, client_id, exchange.now)})

    return Stepping(exchange, steps)


def _connection(api: Api, client_id: str, now: float) -> dict[str, object]:
    """The address of a client's connection, and for how long its deliveries have been held back."""
    turn = turn_of(api.world)
    number = turn.hub.broker.surveying.number_of(client_id)
    out = turn.outbound(number)
    since = turn.slow_consumers.since().get(number)
    return {
        "session": number,
        "address": "" if out is None else out.wire.peer,
        "blocked_s": None if since is None else round(now - since, 3),
    }


def _disconnect(_api: Api, exchange: Exchange) -> Handler:
    client_id = exchange.wanted.text("client")
    return AskOnce(
        exchange,
        lambda session, request: DisconnectClient(session, request, client_id),
        done(),
        _NO_CLIENT,
    )


def _node(node: NodeSnapshot) -> dict[str, object]:
    told: dict[str, object] = {
        "id": node.node_id,
        "name": node.name or "",
        "host": node.host,
        "slave": node.slave,
        "connected": node.connected,
        "lifetime_ms": node.lifetime_ms,
    }
    if node.role:
        told |= {
            "role": node.role,
            "shard": 0,
            "epoch": node.epoch,
            "applied": node.applied,
            "behind": node.behind,
        }
    return told


def _list_nodes(_api: Api, exchange: Exchange) -> Handler:
    def shape(body: object) -> object:
        assert isinstance(body, list), "it is a list"
        return {"items": [_node(each) for each in body if isinstance(each, NodeSnapshot)]}

    return AskOnce(exchange, ListNodes, show(shape))


CLIENT_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="listClients",
        method="GET",
        path="/clients",
        summary="The connected clients, page by page.",
        begin=_list_clients,
        rights=("see-clients",),
        commands=(SurveyClients,),
        query=LIST_PARAMETERS,
        answer="ClientList",
        failures=(410,),
        cli=("clients",),
    ),
    Operation(
        name="getClient",
        method="GET",
        path="/clients/{client}",
        summary="A client, and the channels that it has joined, as far as you may see them.",
        begin=_get_client,
        rights=("see-clients",),
        commands=(DescribeClient, SurveyChannels),
        answer="Client",
        failures=(404,),
    ),
    Operation(
        name="disconnectClient",
        method="DELETE",
        path="/clients/{client}",
        summary="End a client's connection; it may connect again.",
        begin=_disconnect,
        rights=("manage-clients",),
        commands=(DisconnectClient,),
        status=204,
        failures=(404,),
    ),
    Operation(
        name="listNodes",
        method="GET",
        path="/nodes",
        summary="The other servers of the cluster, or all servers of the group with one log.",
        begin=_list_nodes,
        rights=("see-nodes",),
        commands=(ListNodes,),
        answer="NodeList",
        cli=("nodes",),
    ),
)
