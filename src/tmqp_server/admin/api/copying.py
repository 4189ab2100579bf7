"""Copies of this server's store for another server of its group, which fetches them in blocks."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.access.rights import BROWSE, MANAGE_SERVER
from tmqp_server.admin.api.operating import manage_server
from tmqp_server.admin.api.running import Refused, Stepping, Steps, need
from tmqp_server.admin.api.table import Api, Operation, integer
from tmqp_server.admin.world import CopyDesk
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse, problem
from tmqp_server.engine.commands import AskRight, Manage, SeeServer

__all__ = ["COPY_OPERATIONS"]

#: How often to check whether a block was read, in seconds.
_LOOK_S: Final = 0.002
_MOST_BYTES: Final = 10**15 - 1
_BYTES: Final = "application/octet-stream"


def _desk_of(api: Api) -> CopyDesk:
    """The part of the server that makes copies.

    :raises Refused: if this server makes none.
    """
    desk = api.world.copies
    if desk is None:
        raise Refused(problem(501, "this server is not in a group with a log"))
    return desk


def _shown(desk: CopyDesk) -> dict[str, Any]:
    """The state of the current copy.

    :raises Refused: when there is none.
    """
    if desk.last is None:
        raise Refused(problem(404, "there is no copy"))
    return dict(desk.last)


def _tell(api: Api, exchange: Exchange) -> Handler:
    def steps(session: int, request: object) -> Steps:
        need((yield SeeServer(session, request)))
        return HttpResponse.json(200, _shown(_desk_of(api)))

    return Stepping(exchange, steps)


def _begin(api: Api, exchange: Exchange) -> Handler:
    def carry_out() -> HttpResponse:
        desk = _desk_of(api)
        if not desk.begin():
            return problem(409, "another client is fetching a copy")
        return HttpResponse.json(202, _shown(desk))

    return manage_server(api, exchange, "copy", carry_out)


def _read(api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("id")
    offset = exchange.wanted.count("offset", 0, 0, _MOST_BYTES)

    def steps(session: int, request: object) -> Steps:
        # A copy has what all messages say.
        for right in (MANAGE_SERVER, BROWSE):
            need((yield AskRight(session, request, right)))
        block = _desk_of(api).read(name, offset)
        if block is None:
            raise Refused(problem(404, "there is no such copy"))
        while not block.done:
            yield _LOOK_S
        if block.data is None:
            return problem(503, "the copy cannot be read")
        return HttpResponse(200, block.data, _BYTES.encode())

    return Stepping(exchange, steps)


def _remove(api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("id")

    def carry_out() -> HttpResponse:
        if not _desk_of(api).remove(name):
            return problem(404, "there is no such copy")
        return HttpResponse(204)

    return manage_server(api, exchange, "remove-copy", carry_out)


COPY_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="getCopy",
        method="GET",
        path="/server/copy",
        summary="The copy that another server of the group fetches.",
        begin=_tell,
        rights=("see-server",),
        commands=(SeeServer,),
        answer="Copy",
        failures=(404, 501),
    ),
    Operation(
        name="beginCopy",
        method="POST",
        path="/server/copy",
        summary="Begin a copy for another server of the group.",
        begin=_begin,
        rights=("manage-server",),
        commands=(Manage,),
        action="copy",
        answer="Copy",
        status=202,
        failures=(409, 501),
    ),
    Operation(
        name="readCopy",
        method="GET",
        path="/server/copy/{id}",
        summary="A block of a copy; empty behind its end.",
        begin=_read,
        rights=("manage-server", "browse"),
        commands=(AskRight,),
        query=(integer("offset", "Where the block begins, in bytes.", 0, _MOST_BYTES, 0),),
        answer="Block",
        kind=_BYTES,
        failures=(404, 501, 503),
        waits=True,
    ),
    Operation(
        name="removeCopy",
        method="DELETE",
        path="/server/copy/{id}",
        summary="Remove a copy that was fetched.",
        begin=_remove,
        rights=("manage-server",),
        commands=(Manage,),
        action="remove-copy",
        status=204,
        failures=(404, 501),
    ),
)
