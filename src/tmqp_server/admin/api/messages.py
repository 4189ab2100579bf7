"""``.../messages``: look into queues, publish, take, clear; much of it is as at the HTTP door."""

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
        summary="What is in a queue now; nothing changes.",
        begin=lambda _, exchange: look(exchange),
        rights=("browse",),
        commands=(Browse,),
        query=(
            integer("from", "The sequence of the first message.", 0, 10**15 - 1, 0),
            integer("max", "How many messages are shown.", 1, 1_000, 100),
            word("state", "Which of them.", "all", "waiting", "deferred", "in-flight"),
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
            text("id", "The id of the message; a new one if nothing is given."),
            word("priority", "Its priority.", "normal", "high"),
            integer("delay_ms", "Milliseconds until it may be delivered.", 0, _MOST_MS, 0),
            integer("deliver_at_ms", "The same as a Unix time.", 0, 1 << 49, 0),
            integer("expires_ms", "Milliseconds until it expires; 0 for never.", 0, _MOST_MS, 0),
            flag("receivers", "Tell how many consumers it went to."),
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
        summary="Remove the messages of a queue; If-Match says how many were seen.",
        begin=_clear,
        rights=("clear-messages",),
        commands=(DescribeQueue, ClearMessages),
        query=(
            word("priority", "Which of those that wait.", "all", "high", "normal"),
            flag("in_flight", "Those that consumers have, too."),
        ),
        status=204,
        failures=(404, 412),
        cli=("queue clear",),
    ),
    Operation(
        name="removeMessage",
        method="DELETE",
        path=f"{_QUEUE}/messages/{{id}}",
        summary="Remove one message: deferred ones need the right to cancel.",
        begin=_remove_message,
        rights=("cancel", "clear-messages"),
        commands=(CancelMessage, RemoveMessage),
        query=(word("state", "What it does.", "deferred", "waiting"),),
        status=204,
        failures=(404,),
        cli=("queue cancel", "queue remove-message"),
    ),
    Operation(
        name="readLatest",
        method="GET",
        path=f"{_QUEUE}/messages/latest",
        summary="The message of a cache queue, which stays there.",
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
        summary="Take messages out of a pull queue.",
        begin=lambda _, exchange: take(exchange),
        rights=("pull", "join"),
        commands=(Pull, Join, Leave, Acknowledge),
        query=(
            integer("max", "How many.", 1, 100, 1),
            text("wait", "Seconds to wait for the first one."),
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
        summary="Acknowledge a message that this connection has taken.",
        begin=lambda _, exchange: acknowledge(exchange),
        commands=(Acknowledge,),
        status=204,
        failures=(404,),
    ),
    Operation(
        name="refuse",
        method="POST",
        path=f"{_QUEUE}/deliveries/{{id}}/nack",
        summary="Refuse a message that this connection has taken.",
        begin=lambda _, exchange: refuse(exchange),
        commands=(Acknowledge,),
        query=(text("reason", "Why: a line of at most 200 bytes."),),
        status=204,
        failures=(404,),
    ),
)
