"""``/channels`` and ``/queues``: lists them, shows, creates, changes and removes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tmqp.constants import MAX_QUEUE_ID, RESULT_OK
from tmqp_server.admin.api.filters import Fields
from tmqp_server.admin.api.kinds import CHANNELS, QUEUES
from tmqp_server.admin.api.lists import LIST_PARAMETERS, Pages
from tmqp_server.admin.api.manner import read_object
from tmqp_server.admin.api.running import AskOnce, Refused, Stepping, Steps, done, need, show
from tmqp_server.admin.api.shapes import channel_item, consumer_item, queue_item
from tmqp_server.admin.api.table import Api, Operation
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, problem
from tmqp_server.engine.commands import (
    CreateChannel,
    CreateQueue,
    DescribeChannel,
    DescribeQueue,
    ListConsumers,
    RemoveChannel,
    RemoveQueue,
    SurveyChannels,
    SurveyQueues,
    UpdateChannel,
    UpdateQueue,
)
from tmqp_server.engine.model.snapshots import ChannelSnapshot, ClientSnapshot, QueueSnapshot
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.engine.options.table import CHANNEL_OPTIONS, QUEUE_OPTIONS, Option
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.options import (
    CHANNEL_KEYS,
    QUEUE_KEYS,
    channel_changes,
    queue_changes,
)

__all__ = ["CHANNEL_OPERATIONS", "check_count", "place_of"]

_DUPLICATE: Final = 481
#: The largest number that every reader of JSON knows, and every store keeps.
_LARGEST: Final = (1 << 53) - 1
_NO_CHANNEL: Final = "there is no such channel"
_NO_QUEUE: Final = "there is no such queue"


def place_of(exchange: Exchange) -> tuple[str, int]:
    """The queue that a path names.

    :raises BadRequest: 404 when the queue id is too large.
    """
    queue_id = exchange.wanted.number("queue")
    if queue_id > MAX_QUEUE_ID:
        raise BadRequest(404, f"the largest queue id is {MAX_QUEUE_ID}")
    return exchange.wanted.text("channel"), queue_id


# --- Options -------------------------------------------------------------------------------------


def _known(table: Mapping[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    """The options that have a value: an option that is null counts as not given.

    :raises BadRequest: when an option does not exist, or its number is too large.
    """
    for key in table:
        if key not in keys:
            raise BadRequest(422, f"there is no option {key[:64]!r}")
        value = table[key]
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise BadRequest(422, f"{key} must be at most {_LARGEST}")
    return {key: value for key, value in table.items() if value is not None}


def _of_queue(table: Mapping[str, object]) -> QueueChanges:
    try:
        changes: QueueChanges = queue_changes(_known(table, QUEUE_KEYS), "")
    except (ConfigError, ValueError, TypeError) as error:
        raise BadRequest(422, str(error)) from error
    return changes


def _of_channel(table: Mapping[str, object]) -> ChannelChanges:
    values = dict(table)
    queue = values.pop("queue_options", {})
    if not isinstance(queue, dict):
        raise BadRequest(422, "queue_options must be an object")
    known = _known(values, CHANNEL_KEYS)
    try:
        changes: ChannelChanges = channel_changes(known, "", _of_queue(queue) if queue else None)
    except (ConfigError, ValueError, TypeError) as error:
        raise BadRequest(422, str(error)) from error
    return changes


def _asks_for(changes: Any, options: Any, declared: tuple[Option, ...]) -> bool:
    """Whether the options already have all the requested values."""
    return all(
        [
            getattr(changes, each.name) in (None, getattr(options, each.name))
            for each in declared
            if hasattr(changes, each.name)
        ]
    )


def _only_creates(exchange: Exchange) -> bool:
    return (exchange.wanted.header(b"if-none-match") or b"").strip() == b"*"


def check_count(exchange: Exchange, count: int) -> None:
    """Refuse to remove many more messages than the client has seen, if ``If-Match`` says how many.

    :raises Refused: 412 when there are more than twice as many, and more than ten.
    :raises BadRequest: when ``If-Match`` is not a number in quotation marks.
    """
    text = (exchange.wanted.header(b"if-match") or b"").strip().strip(b'"')
    if text in (b"", b"*"):
        return
    if not (text.isdigit() and len(text) < 16):
        raise BadRequest(400, "If-Match must be a number of messages in quotation marks")
    if count > max(2 * int(text), 10):
        words = f"this would remove {count} messages, not {int(text)}: look again"
        raise Refused(problem(412, words))


# --- Channels ------------------------------------------------------------------------------------


def _list_channels(api: Api, exchange: Exchange) -> Handler:
    return Pages(api, exchange, CHANNELS)


def _get_channel(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("channel")

    def shape(body: object) -> object:
        assert isinstance(body, ChannelSnapshot), "it is the answer"
        return channel_item(body)

    return AskOnce(
        exchange,
        lambda session, request: DescribeChannel(session, request, name),
        show(shape),
        _NO_CHANNEL,
    )


def _put_channel(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("channel")
    changes = _of_channel(read_object(exchange.wanted.body))
    only, updates = _only_creates(exchange), exchange.wanted.header(b"if-match") is not None

    def steps(session: int, request: object) -> Steps:
        reply = yield CreateChannel(session, request, name, changes)
        if reply.code == RESULT_OK:
            return HttpResponse.json(201, {"name": name})
        if reply.code != _DUPLICATE:
            need(reply)
        if only:
            return problem(412, "the channel already exists")
        reply = yield DescribeChannel(session, request, name)
        body = reply.body
        if isinstance(body, ChannelSnapshot):
            same = _asks_for(changes, body.options, CHANNEL_OPTIONS)
            if same and (
                changes.queue is None or _asks_for(changes.queue, body.options.queue, QUEUE_OPTIONS)
            ):
                return HttpResponse.json(200, {"name": body.name})
        if not updates:
            return problem(409, "the channel exists with other options; If-Match: * changes them")
        need((yield UpdateChannel(session, request, name, changes)), _NO_CHANNEL)
        return HttpResponse.json(200, {"name": name})

    return Stepping(exchange, steps)


def _patch_channel(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("channel")
    changes = _of_channel(read_object(exchange.wanted.body))
    return AskOnce(
        exchange,
        lambda session, request: UpdateChannel(session, request, name, changes),
        done(),
        _NO_CHANNEL,
    )


def _remove_channel(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("channel")
    return AskOnce(
        exchange,
        lambda session, request: RemoveChannel(session, request, name),
        done(),
        _NO_CHANNEL,
    )


def _consumers(_api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("channel")

    def shape(body: object) -> object:
        assert isinstance(body, list), "it is a list"
        return {"items": [consumer_item(each) for each in body if isinstance(each, ClientSnapshot)]}

    def make(session: int, request: object) -> ListConsumers:
        command = ListConsumers(session, request, name)
        command.most_items = 1_000
        return command

    return AskOnce(exchange, make, show(shape), _NO_CHANNEL)


# --- Queues --------------------------------------------------------------------------------------


def _list_queues(api: Api, exchange: Exchange) -> Handler:
    return Pages(api, exchange, QUEUES, more=_growth(api, exchange))


def _growth(api: Api, exchange: Exchange) -> Fields:
    """The field ``growth``, which needs two looks at the queues, if the request sorts or filters by
    it.
    """
    query = exchange.wanted.query
    asked = "growth" in query.get("sort", "") or "growth" in query.get("filter", "")
    return api.growth.fields(exchange.now) if asked else {}


def _list_queues_of_channel(api: Api, exchange: Exchange) -> Handler:
    name = exchange.wanted.text("channel")
    if "*" in name:
        raise BadRequest(404, "a channel name has no star here; filter the list of queues")
    return Pages(api, exchange, QUEUES, names=name, more=_growth(api, exchange))


def _get_queue(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)

    def shape(body: object) -> object:
        assert isinstance(body, QueueSnapshot), "it is the answer"
        return queue_item(body, exchange.now, exchange.client.offset_s)

    return AskOnce(
        exchange,
        lambda session, request: DescribeQueue(session, request, channel, queue_id),
        show(shape),
        _NO_QUEUE,
    )


def _put_queue(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    changes = _of_queue(read_object(exchange.wanted.body))
    only, updates = _only_creates(exchange), exchange.wanted.header(b"if-match") is not None
    shown = {"channel": channel, "queue": queue_id}

    def steps(session: int, request: object) -> Steps:
        reply = yield CreateQueue(session, request, channel, queue_id, changes)
        if reply.code == RESULT_OK:
            return HttpResponse.json(201, shown)
        if reply.code != _DUPLICATE:
            need(reply)
        if only:
            return problem(412, "the queue already exists")
        reply = yield DescribeQueue(session, request, channel, queue_id)
        body = reply.body
        if isinstance(body, QueueSnapshot) and _asks_for(changes, body.options, QUEUE_OPTIONS):
            return HttpResponse.json(200, shown)
        if not updates:
            return problem(409, "the queue exists with other options; If-Match: * changes them")
        need((yield UpdateQueue(session, request, channel, queue_id, changes)), _NO_QUEUE)
        return HttpResponse.json(200, shown)

    return Stepping(exchange, steps)


def _patch_queue(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    changes = _of_queue(read_object(exchange.wanted.body))
    return AskOnce(
        exchange,
        lambda session, request: UpdateQueue(session, request, channel, queue_id, changes),
        done(),
        _NO_QUEUE,
    )


def _remove_queue(_api: Api, exchange: Exchange) -> Handler:
    channel, queue_id = place_of(exchange)
    guarded = exchange.wanted.header(b"if-match") is not None

    def steps(session: int, request: object) -> Steps:
        if guarded:
            body = need((yield DescribeQueue(session, request, channel, queue_id)), _NO_QUEUE)
            waiting = body.messages + body.priority_messages
            check_count(exchange, waiting + body.deferred + body.in_flight)
        need((yield RemoveQueue(session, request, channel, queue_id)), _NO_QUEUE)
        return HttpResponse(204)

    return Stepping(exchange, steps)


_CHANNEL: Final = "/channels/{channel}"
_QUEUE: Final = f"{_CHANNEL}/queues/{{queue:int}}"

CHANNEL_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="listChannels",
        method="GET",
        path="/channels",
        summary="The channels that the client may see, page by page.",
        begin=_list_channels,
        rights=("see-channel",),
        commands=(SurveyChannels,),
        query=LIST_PARAMETERS,
        answer="ChannelList",
        failures=(410,),
        cli=("channel ls",),
    ),
    Operation(
        name="getChannel",
        method="GET",
        path=_CHANNEL,
        summary="A channel and its options.",
        begin=_get_channel,
        rights=("see-channel",),
        commands=(DescribeChannel,),
        answer="Channel",
        failures=(404,),
        cli=("channel info",),
    ),
    Operation(
        name="putChannel",
        method="PUT",
        path=_CHANNEL,
        summary="Create a channel; an existing one must agree, unless If-Match is given.",
        begin=_put_channel,
        rights=("create-channel",),
        commands=(CreateChannel, DescribeChannel, UpdateChannel),
        body="ChannelOptions",
        answer="ChannelName",
        status=201,
        failures=(409, 412, 422),
        cli=("channel create",),
    ),
    Operation(
        name="patchChannel",
        method="PATCH",
        path=_CHANNEL,
        summary="Change options of a channel.",
        begin=_patch_channel,
        rights=("update-channel",),
        commands=(UpdateChannel,),
        body="ChannelOptions",
        status=204,
        failures=(404, 409, 422),
        cli=("channel update",),
    ),
    Operation(
        name="removeChannel",
        method="DELETE",
        path=_CHANNEL,
        summary="Remove a channel with its queues and their messages.",
        begin=_remove_channel,
        rights=("remove-channel",),
        commands=(RemoveChannel,),
        status=204,
        failures=(404,),
        cli=("channel rm",),
    ),
    Operation(
        name="listConsumers",
        method="GET",
        path=f"{_CHANNEL}/consumers",
        summary="The clients that have joined a channel; at most 1,000.",
        begin=_consumers,
        rights=("see-consumers",),
        commands=(ListConsumers,),
        answer="ConsumerList",
        failures=(404, 409),
        cli=("channel consumers",),
    ),
    Operation(
        name="listQueues",
        method="GET",
        path="/queues",
        summary="The queues of all channels that the client may see, page by page.",
        begin=_list_queues,
        rights=("see-channel",),
        commands=(SurveyQueues,),
        query=LIST_PARAMETERS,
        answer="QueueList",
        failures=(410,),
        cli=("queue ls", "top"),
    ),
    Operation(
        name="listQueuesOfChannel",
        method="GET",
        path=f"{_CHANNEL}/queues",
        summary="The queues of a channel; empty if the channel does not exist.",
        begin=_list_queues_of_channel,
        rights=("see-channel",),
        commands=(SurveyQueues,),
        query=LIST_PARAMETERS,
        answer="QueueList",
        failures=(404, 410),
        cli=("queue ls",),
    ),
    Operation(
        name="getQueue",
        method="GET",
        path=_QUEUE,
        summary="A queue: its options, its counters, and where its messages are.",
        begin=_get_queue,
        rights=("see-channel",),
        commands=(DescribeQueue,),
        answer="Queue",
        failures=(404,),
        cli=("queue info",),
    ),
    Operation(
        name="putQueue",
        method="PUT",
        path=_QUEUE,
        summary="Create a queue; an existing one must agree, unless If-Match is given.",
        begin=_put_queue,
        rights=("create-queue",),
        commands=(CreateQueue, DescribeQueue, UpdateQueue),
        body="QueueOptions",
        answer="QueueName",
        status=201,
        failures=(404, 409, 412, 422),
        cli=("queue create",),
    ),
    Operation(
        name="patchQueue",
        method="PATCH",
        path=_QUEUE,
        summary="Change options of a queue.",
        begin=_patch_queue,
        rights=("update-queue",),
        commands=(UpdateQueue,),
        body="QueueOptions",
        status=204,
        failures=(404, 409, 422),
        cli=("queue update",),
    ),
    Operation(
        name="removeQueue",
        method="DELETE",
        path=_QUEUE,
        summary="Remove a queue and its messages; If-Match has the number of messages seen.",
        begin=_remove_queue,
        rights=("remove-queue",),
        commands=(DescribeQueue, RemoveQueue),
        status=204,
        failures=(404, 412),
        cli=("queue rm",),
    ),
    Operation(
        name="listConsumersOfQueue",
        method="GET",
        path=f"{_QUEUE}/consumers",
        summary="The consumers of a queue: the clients that have joined its channel.",
        begin=_consumers,
        rights=("see-consumers",),
        commands=(ListConsumers,),
        answer="ConsumerList",
        failures=(404, 409),
        cli=("channel consumers",),
    ),
)
