"""What queues retain, who reads it, and which feeds copy it; and transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp.blocks import BlockError, split_blocks
from tmqp.constants import MAX_QUEUE_ID
from tmqp_server.admin.api.channels import place_of
from tmqp_server.admin.api.running import AskOnce, Stepping, Steps, done, need, show
from tmqp_server.admin.api.shapes import record_item
from tmqp_server.admin.api.table import Api, Operation, body_of, integer, text
from tmqp_server.doors.http.contents import payload_members
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse
from tmqp_server.engine.commands import (
    AddFeed,
    Blocks,
    Command,
    CommitCursor,
    ListCursors,
    ListFeeds,
    ListGroups,
    ListOffsets,
    ListTransactions,
    OpenCursor,
    ReadRange,
    RemoveCursor,
    RemoveFeed,
)

__all__ = ["READING_OPERATIONS"]

_NO_QUEUE: Final = "there is no such queue"
_MOST_SEQUENCE: Final = 10**15 - 1
#: The most records in one answer.
_MOST_RECORDS: Final = 100


def _items(exchange: Exchange) -> Callable[[object], HttpResponse]:
    """An answer with a list of records of the engine."""
    offset_s = exchange.client.offset_s

    def shape(body: object) -> object:
        assert isinstance(body, (list, tuple)), "it is a list"
        return {"items": [record_item(each, offset_s) for each in body]}

    return show(shape)


def _queue_wanted(exchange: Exchange) -> int | None:
    request = exchange.wanted
    return request.count("queue", 0, 0, MAX_QUEUE_ID) if "queue" in request.query else None


def _list_offsets(_api: Api, exchange: Exchange) -> Handler:
    query = exchange.wanted.query
    queue_id = _queue_wanted(exchange)
    return AskOnce(
        exchange,
        lambda session, request: ListOffsets(
            session, request, query.get("channel", ""), queue_id, cursor=query.get("cursor", "")
        ),
        _items(exchange),
    )


def _list_groups(_api: Api, exchange: Exchange) -> Handler:
    query = exchange.wanted.query
    queue_id = _queue_wanted(exchange)
    return AskOnce(
        exchange,
        lambda session, request: ListGroups(
            session, request, query.get("channel", ""), queue_id, cursor=query.get("name", "")
        ),
        _items(exchange),
    )


def _list_transactions(_api: Api, exchange: Exchange) -> Handler:
    pattern = exchange.wanted.query.get("application", "")
    return AskOnce(
        exchange,
        lambda session, request: ListTransactions(session, request, pattern),
        _items(exchange),
    )


# --- Records -------------------------------------------------------------------------------------


def _read(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    wanted = exchange.wanted
    first = wanted.count("first", 0, 0, _MOST_SEQUENCE)
    last = wanted.count("last", 0, 0, _MOST_SEQUENCE)
    most = wanted.count("max", _MOST_RECORDS, 1, _MOST_RECORDS)
    most_bytes = exchange.client.limits.max_body_bytes

    def steps(session: int, request: object) -> Steps:
        command = ReadRange(session, request, channel, queue_id, first, last, most, most_bytes)
        body = need((yield command), _NO_QUEUE)
        assert isinstance(body, Blocks), "it is the answer"
        return HttpResponse.json(200, {"items": _records(body, first, last)[:most]})

    return Stepping(exchange, steps)


def _records(blocks: Blocks, first: int, last: int) -> list[dict[str, object]]:
    """The messages of some blocks; blocks may contain more messages than the request asked for."""
    found: list[dict[str, object]] = []
    try:
        for block in split_blocks(b"".join(blocks.pieces)):
            for each in block.messages():
                if each.sequence < first or (last and each.sequence > last):
                    continue
                item: dict[str, object] = {
                    "sequence": each.sequence,
                    "at_ms": each.timestamp_us // 1_000,
                    "attempts": each.attempts,
                }
                found.append({**item, **payload_members(each.payload)})
    except BlockError as error:
        raise BadRequest(503, f"the stored messages are damaged: {error}") from error
    return found


# --- Cursors -------------------------------------------------------------------------------------


def _list_cursors(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    return AskOnce(
        exchange,
        lambda session, request: ListCursors(session, request, channel, queue_id),
        _items(exchange),
        _NO_QUEUE,
    )


def _put_cursor(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    name = exchange.wanted.text("cursor")
    given = body_of(exchange.wanted, {"start": str, "sequence": int})
    start, sequence = given.get("start"), given.get("sequence")
    if (start is None) == (sequence is None) or start not in (None, "earliest", "latest"):
        raise BadRequest(422, 'give start, "earliest" or "latest", or a sequence')
    if sequence is not None and not 0 <= sequence <= _MOST_SEQUENCE:
        raise BadRequest(422, f"sequence must be a whole number from 0 to {_MOST_SEQUENCE}")

    def make(session: int, request: object) -> Command:
        if sequence is None:
            return OpenCursor(session, request, channel, queue_id, name, start == "earliest")
        return CommitCursor(session, request, channel, queue_id, name, sequence)

    offset_s = exchange.client.offset_s

    def respond(body: object) -> HttpResponse:
        if body is None:
            return HttpResponse(204)
        return HttpResponse.json(200, record_item(body, offset_s))

    return AskOnce(exchange, make, respond, _NO_QUEUE)


def _remove_cursor(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    name = exchange.wanted.text("cursor")
    return AskOnce(
        exchange,
        lambda session, request: RemoveCursor(session, request, channel, queue_id, name),
        done(),
        "there is no such queue or cursor",
    )


# --- Feeds ---------------------------------------------------------------------------------------


def _list_feeds(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("channel")
    queue_id = _queue_wanted(exchange)

    def make(session: int, request: object) -> Command:
        return ListFeeds(session, request, name, -1 if queue_id is None else queue_id)

    return AskOnce(exchange, make, _items(exchange), "there is no such channel")


def _target_of(exchange: Exchange) -> tuple[str, int]:
    number = exchange.wanted.number("target_queue")
    if number > MAX_QUEUE_ID:
        raise BadRequest(404, f"the largest queue id is {MAX_QUEUE_ID}")
    return exchange.wanted.text("target"), number


def _put_feed(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    target, number = _target_of(exchange)
    given = body_of(exchange.wanted, {"filter": str, "filter_language": str})
    chosen: Any = given.get("filter", "")
    language: Any = given.get("filter_language", "")
    if language and not chosen:
        raise BadRequest(422, "filter_language needs a filter")

    def steps(session: int, request: object) -> Steps:
        command = AddFeed(
            session, request, channel, queue_id, target, number, None, language, chosen
        )
        reply = yield command
        if reply.code == 481:
            return HttpResponse(204)
        need(reply, _NO_QUEUE)
        return HttpResponse(204)

    return Stepping(exchange, steps)


def _remove_feed(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    target, number = _target_of(exchange)
    return AskOnce(
        exchange,
        lambda session, request: RemoveFeed(session, request, channel, queue_id, target, number),
        done(),
        "there is no such feed",
    )


_QUEUE: Final = "/channels/{channel}/queues/{queue:int}"
_CURSOR: Final = f"{_QUEUE}/cursors/{{cursor}}"
_FEED: Final = f"{_QUEUE}/feeds/{{target}}/{{target_queue:int}}"
_WHICH: Final = (
    text("channel", "A filter for names of channels; by default all."),
    integer("queue", "Only queues with this id.", 0, MAX_QUEUE_ID, 0),
)

READING_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="listOffsets",
        method="GET",
        path="/offsets",
        summary="The offsets that the server keeps for its queues.",
        begin=_list_offsets,
        rights=("see-channel",),
        commands=(ListOffsets,),
        query=(*_WHICH, text("cursor", "Also report the position of this cursor.")),
        answer="RecordList",
        failures=(404, 409, 501),
        cli=("offsets",),
    ),
    Operation(
        name="listGroups",
        method="GET",
        path="/groups",
        summary="The cursors of all queues, and their lag.",
        begin=_list_groups,
        rights=("see-channel",),
        commands=(ListGroups,),
        query=(*_WHICH, text("name", "Only cursors of this name.")),
        answer="RecordList",
        failures=(404, 409, 501),
    ),
    Operation(
        name="listTransactions",
        method="GET",
        path="/transactions",
        summary="The open transactions, and the last epochs that applications have committed.",
        begin=_list_transactions,
        rights=("transact",),
        commands=(ListTransactions,),
        query=(text("application", "A filter for names of applications."),),
        answer="RecordList",
        failures=(409,),
    ),
    Operation(
        name="readRecords",
        method="GET",
        path=f"{_QUEUE}/records",
        summary="The retained messages of a queue, consumed or not.",
        begin=_read,
        rights=("pull",),
        commands=(ReadRange,),
        query=(
            integer("first", "The first sequence; 0 for the earliest.", 0, _MOST_SEQUENCE, 0),
            integer("last", "The last sequence; 0 for the latest.", 0, _MOST_SEQUENCE, 0),
            integer("max", "How many.", 1, _MOST_RECORDS, _MOST_RECORDS),
        ),
        answer="MessageList",
        failures=(404, 409, 416, 501),
        cli=("read",),
    ),
    Operation(
        name="listCursors",
        method="GET",
        path=f"{_QUEUE}/cursors",
        summary="The named readers of a queue.",
        begin=_list_cursors,
        rights=("see-channel",),
        commands=(ListCursors,),
        answer="RecordList",
        failures=(404, 409, 501),
        cli=("cursor ls",),
    ),
    Operation(
        name="putCursor",
        method="PUT",
        path=_CURSOR,
        summary="Create a named reader, or commit its position.",
        begin=_put_cursor,
        rights=("pull",),
        commands=(OpenCursor, CommitCursor),
        body="CursorChange",
        answer="Record",
        failures=(204, 404, 409, 416, 422, 501),
        cli=("cursor open", "cursor commit"),
    ),
    Operation(
        name="removeCursor",
        method="DELETE",
        path=_CURSOR,
        summary="Remove a named reader.",
        begin=_remove_cursor,
        rights=("pull",),
        commands=(RemoveCursor,),
        status=204,
        failures=(404, 409, 501),
        cli=("cursor rm",),
    ),
    Operation(
        name="listFeeds",
        method="GET",
        path="/channels/{channel}/feeds",
        summary="The feeds of a channel's queues.",
        begin=_list_feeds,
        rights=("see-channel",),
        commands=(ListFeeds,),
        query=(integer("queue", "Only feeds of this queue.", 0, MAX_QUEUE_ID, 0),),
        answer="RecordList",
        failures=(404, 409),
        cli=("feed ls",),
    ),
    Operation(
        name="putFeed",
        method="PUT",
        path=_FEED,
        summary="Add a feed, which copies the messages of a queue into another queue.",
        begin=_put_feed,
        rights=("feed",),
        commands=(AddFeed,),
        body="FeedOptions",
        status=204,
        failures=(404, 409, 422),
        cli=("feed add",),
    ),
    Operation(
        name="removeFeed",
        method="DELETE",
        path=_FEED,
        summary="Remove a feed.",
        begin=_remove_feed,
        rights=("feed",),
        commands=(RemoveFeed,),
        status=204,
        failures=(404,),
        cli=("feed rm",),
    ),
)
