"""``.../batches``: several messages at once, all or none of them."""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.admin.api.channels import place_of
from tmqp_server.admin.api.running import AskOnce
from tmqp_server.admin.api.table import Api, Operation, body_of
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.json_requests import SOCKET_OPERATIONS, SocketRequest, push_of
from tmqp_server.doors.http.messages import BadRequest, HttpResponse
from tmqp_server.engine.commands import Batch, Push

__all__ = ["BATCH_OPERATIONS", "MOST_MESSAGES"]

#: The most messages in one request, as in one batch of the broker.
MOST_MESSAGES: Final = 1_000
_PUSH: Final = SOCKET_OPERATIONS["push"]
#: The members of a message: those of a push over a WebSocket, without its queue.
_MEMBERS: Final = frozenset(_PUSH.members) - {"channel", "queue", "confirm"}


def _publish_batch(_api: Api, exchange: Exchange) -> Handler:
    place = place_of(exchange)
    items = body_of(exchange.wanted, {"items": list}).get("items", [])
    if not 1 <= len(items) <= MOST_MESSAGES:
        raise BadRequest(422, f"items must be a list of 1 to {MOST_MESSAGES} messages")
    pushes = [_push(exchange, place, at, each) for at, each in enumerate(items)]
    exchange.wanted.body = b""  # the pushes have it
    ids = [each.message_id for each in pushes]
    if len(set(ids)) < len(ids):
        raise BadRequest(422, "two messages have the same id")
    return AskOnce(
        exchange,
        lambda session, request: Batch(session, request, list(pushes)),
        lambda _: HttpResponse.json(201, {"ids": ids}),
        "there is no such queue",
    )


def _push(exchange: Exchange, place: tuple[str, int], at: int, item: Any) -> Push:
    """Return the command that pushes one message of the batch.

    :raises BadRequest: when the item is not a valid message; the text names the item.
    """
    client = exchange.client
    if not isinstance(item, dict):
        raise BadRequest(422, f"items[{at}] must be an object")
    unknown = sorted(item.keys() - _MEMBERS)
    if unknown:
        known = ", ".join(sorted(_MEMBERS))
        raise BadRequest(422, f"items[{at}]: no member {unknown[0][:64]!r}; there are {known}")
    request = SocketRequest(_PUSH, None, client.number, item)
    try:
        name = request.name("id") or client.new_id()
        return push_of(request, place, name, client.client_id, confirms=False)
    except BadRequest as error:
        raise BadRequest(422, f"items[{at}]: {error.detail}") from error


BATCH_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="publishBatch",
        method="POST",
        path="/channels/{channel}/queues/{queue:int}/batches",
        summary="Publish several messages, all or none. Answered when they are confirmed.",
        begin=_publish_batch,
        rights=("push",),
        commands=(Push,),  # in a Batch: the gate looks at its parts
        body="NewBatch",
        answer="PublishedBatch",
        status=201,
        failures=(404, 409, 422, 501, 503),
        cli=("pub",),
    ),
)
