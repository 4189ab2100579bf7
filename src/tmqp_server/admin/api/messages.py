"""``.../messages``: browse, publish, take and clear; much of it works as in the HTTP door."""

from __future__ import annotations

from typing import Final

from tmqp_server.admin.api.channels import check_count, place_of
from tmqp_server.admin.api.running import AskOnce, Stepping, Steps, done, need
from tmqp_server.admin.api.table import Api, Operation, flag, integer, text, word
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse
from tmqp_server.doors.http.queues import (
    acknowledge,
    look,
    publish,
    read_latest,
    refuse,
    take,
)
from tmqp_server.engine.commands import (
    Acknowledge,
    Browse,
    CancelMessage,
    ClearMessages,
    Command,
    DescribeQueue,
    Join,
    Leave,
    Pull,
    Push,
    RemoveMessage,
)

__all__ = ["MESSAGE_OPERATIONS"]

_NO_QUEUE: Final = "there is no such queue"


def _clear(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    priority = exchange.wanted.word("priority", ("all", "high", "normal"))
    in_flight = exchange.wanted.word("in_flight", ("no", "yes")) == "yes"
    guarded = exchange.wanted.header(b"if-match") is not None

    def steps(session: int, request: object) -> Steps:
        if guarded:
            body = need((yield DescribeQueue(session, request, channel, queue_id)), _NO_QUEUE)
            check_count(exchange, body.messages + body.priority_messages + body.deferred)
        command = ClearMessages(
            session,
            request,
            channel,
            queue_id,
            priority != "normal",
            priority != "high",
            in_flight,
        )
        need((yield command), _NO_QUEUE)
        return HttpResponse(204)

    return Stepping(exchange, steps)


def _remove_message(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    message_id = exchange.wanted.text("id")
    waits = exchange.wanted.word("state", ("deferred", "waiting")) == "waiting"

    def make(session: int, request: object) -> Command:
        if waits:
            return RemoveMessage(session, request, channel, queue_id, message_id)
        return CancelMessage(session, request, channel, queue_id, message_id)

    words = f"there is no such {'waiting' if waits else 'deferred'} message"
    return AskOnce(exchange, make, done(), words)


_QUEUE: Final = "/channels/{channel}/queues/{queue:int}"
_MOST_MS: Final = 1 << 40

MESSAGE_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="browse",
        method="GET",
        path=f"{_QUEUE}/messages",
        summary="Browse the messages of a queue; nothing changes.",
        begin=lambda _, exchange: look(exchange),
        rights=("browse",),
        commands=(Browse,),
        query=(
            integer("from", "The sequence of the first message.", 0, 10**15 - 1, 0),
            integer("max", "The maximum number of messages.", 1, 1_000, 100),
            word("state", "Their state.", "all", "waiting", "deferred", "in-flight"),
            text("id", "Only messages with this id."),
            text("filter", "Only messages that a filter accepts."),
            text("filter_language", "The language of the filter."),
        ),
        answer="MessageList",
        failures=(404, 409),
        cli=("peek",),
    ),
    Operation(
        name="publish",
        method="POST",
        path=f"{_QUEUE}/messages",
        summary="Publish a message: the body is the payload. Answered when it is confirmed.",
        begin=lambda _, exchange: publish(exchange),
        rights=("push",),
        commands=(Push,),
        query=(
            text("id", "The id of the message; by default a new one."),
            word("priority", "Its priority.", "normal", "high"),
            integer("delay_ms", "Milliseconds until it may be delivered.", 0, _MOST_MS, 0),
            integer("deliver_at_ms", "The same as a Unix time.", 0, 1 << 49, 0),
            integer("expires_ms", "Milliseconds until it expires; 0 for never.", 0, _MOST_MS, 0),
            flag("receivers", "Report the number of consumers that it was sent to."),
            text("wait", "Seconds to wait for the confirm; then the answer is 202."),
        ),
        body="Payload",
        answer="Published",
        status=201,
        failures=(202, 404, 409),
        cli=("pub",),
        waits=True,
        overlaps=True,
    ),
    Operation(
        name="clear",
        method="DELETE",
        path=f"{_QUEUE}/messages",
        summary="Remove the messages of a queue; If-Match has the number of messages seen.",
        begin=_clear,
        rights=("clear-messages",),
        commands=(DescribeQueue, ClearMessages),
        query=(
            word("priority", "The priority of the messages to remove.", "all", "high", "normal"),
            flag("in_flight", "Also remove messages in flight."),
        ),
        status=204,
        failures=(404, 412),
        cli=("queue clear",),
    ),
    Operation(
        name="removeMessage",
        method="DELETE",
        path=f"{_QUEUE}/messages/{{id}}",
        summary="Remove one message; a deferred one needs the right `cancel`.",
        begin=_remove_message,
        rights=("cancel", "clear-messages"),
        commands=(CancelMessage, RemoveMessage),
        query=(word("state", "The state of the message.", "deferred", "waiting"),),
        status=204,
        failures=(404,),
        cli=("queue cancel", "queue remove-message"),
    ),
    Operation(
        name="readLatest",
        method="GET",
        path=f"{_QUEUE}/messages/latest",
        summary="Read the message of a cache queue without removing it.",
        begin=lambda _, exchange: read_latest(exchange),
        rights=("pull", "join"),
        commands=(Pull, Join, Leave),
        answer="MessageList",
        failures=(404, 409),
        cli=("cache",),
    ),
    Operation(
        name="take",
        method="POST",
        path=f"{_QUEUE}/deliveries",
        summary="Pull messages from a pull queue.",
        begin=lambda _, exchange: take(exchange),
        rights=("pull", "join"),
        commands=(Pull, Join, Leave, Acknowledge),
        query=(
            integer("max", "The maximum number of messages.", 1, 100, 1),
            text("wait", "Seconds to wait for the first message."),
            word("ack", "Whether they are acknowledged at once.", "auto", "manual"),
        ),
        answer="MessageList",
        failures=(404, 409, 429),
        cli=("pull", "sub"),
        waits=True,
    ),
    Operation(
        name="acknowledge",
        method="POST",
        path=f"{_QUEUE}/deliveries/{{id}}/ack",
        summary="Acknowledge a message that this connection has pulled.",
        begin=lambda _, exchange: acknowledge(exchange),
        commands=(Acknowledge,),
        status=204,
        failures=(404,),
    ),
    Operation(
        name="refuse",
        method="POST",
        path=f"{_QUEUE}/deliveries/{{id}}/nack",
        summary="Refuse a message that this connection has pulled.",
        begin=lambda _, exchange: refuse(exchange),
        commands=(Acknowledge,),
        query=(text("reason", "The reason, a line of at most 200 bytes."),),
        status=204,
        failures=(404,),
    ),
)
