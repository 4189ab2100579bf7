"""Reads operations and the headers of pushes: numbers, headers and bodies into commands.

A mistake in them is a :class:`BadRequestError`, answered with its result code; the connection stays
(F43, recommended reading).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp import models
from tmqp.constants import (
    HEADER_VALUE_YES,
    OP_ADD_BINDING,
    OP_CHANNEL_CONSUMERS,
    OP_CHANNEL_INFORMATION,
    OP_CHANNEL_LIST,
    OP_CLEAR_MESSAGES,
    OP_CLIENT_LIST,
    OP_CREATE_CHANNEL,
    OP_CREATE_QUEUE,
    OP_CREATE_ROUTER,
    OP_INSTANCE_LIST,
    OP_JOIN,
    OP_LEAVE,
    OP_LIST_BINDINGS,
    OP_LIST_ROUTERS,
    OP_QUEUE_INFORMATION,
    OP_QUEUE_LIST,
    OP_REMOVE_BINDING,
    OP_REMOVE_CHANNEL,
    OP_REMOVE_QUEUE,
    OP_REMOVE_ROUTER,
    OP_UPDATE_QUEUE,
    WIRE_OPERATION_OF_DOCUMENT,
    HeaderName,
    Operation,
    ResultCode,
    queue_status_from_word,
)
from tmqp.extensions import (
    DEAD_LETTER_HEADERS,
    HEADER_DELAY,
    HEADER_DELIVER_AT,
    HEADER_MESSAGE_ID,
    HEADER_MESSAGE_TIMEOUT,
    HEADER_RECEIVERS,
    HEADER_ROUTER_ENABLED,
    HEADER_STOP,
    HEADER_WAIT,
    OP_ADD_FEED,
    OP_CANCEL_MESSAGE,
    OP_DESCRIBE_SERVER,
    OP_DRAIN,
    OP_EXTEND,
    OP_GRANT_CREDIT,
    OP_LIST_FEEDS,
    OP_REMOVE_FEED,
    OP_REMOVE_MESSAGE,
    OP_SET_ROUTER_ENABLED,
    OP_SET_TERMS,
    OP_UPDATE_CHANNEL,
)
from tmqp.frames import Frame
from tmqp.header_names import HeaderNames
from tmqp.models import ChannelOptions, ModelError, QueueOptions
from tmqp_server.doors.native.cells import CELLS
from tmqp_server.doors.native.feeds import add_feed_of, list_feeds_of, remove_feed_of
from tmqp_server.doors.native.filters import filter_in
from tmqp_server.doors.native.parameters import BadRequestError, number_header, queue_id_of
from tmqp_server.doors.native.reading import READING
from tmqp_server.doors.native.terms import extend_of, grant_of, join_of, set_terms_of
from tmqp_server.engine.commands import (
    AddBinding,
    CancelMessage,
    ClearMessages,
    Command,
    CreateChannel,
    CreateQueue,
    CreateRouter,
    DescribeChannel,
    DescribeQueue,
    DescribeServer,
    Drain,
    Leave,
    ListBindings,
    ListChannels,
    ListClients,
    ListConsumers,
    ListNodes,
    ListQueues,
    ListRouters,
    PushExtras,
    RemoveBinding,
    RemoveChannel,
    RemoveMessage,
    RemoveQueue,
    RemoveRouter,
    SetRouterEnabled,
    UpdateChannel,
    UpdateQueue,
)
from tmqp_server.engine.options import NOWHERE, BindingOptions, ChannelChanges, QueueChanges
from tmqp_server.engine.options.table import ADDRESS, CHANNEL_OPTIONS, QUEUE_OPTIONS, TEXT, Option

__all__ = ["OPERATIONS", "PUSH_HEADERS", "command_of", "may_have_times", "push_extras"]

_TRUE_WORDS = ("1", "true")


def _queue_options_of(frame: Frame, *, has_body: bool) -> QueueChanges | None:
    """The queue options in the body and headers of an operation or a pushed message.

    A header has precedence over the body, as in the original (F54, F74).

    :param has_body: the payload is a JSON object of options (an operation), not a message.
    :returns: None when there are none.
    :raises BadRequestError: when the body is not such an object.
    """
    body: dict[str, object] | None = None
    if has_body and frame.payload_size:
        body = _values_in(frame, QueueOptions)
    status_word = frame.header(HeaderName.QUEUE_STATUS)
    wait_word = frame.header(HeaderName.WAIT_FOR_ACKNOWLEDGE)
    tag = frame.header(HeaderName.QUEUE_TAG) or None
    handler = frame.header(HeaderName.DELIVERY_HANDLER) or None
    status: int | None = None
    if status_word:
        # A word the original does not know makes a broadcast queue there (F55): its messages
        # would be lost without a sign.
        known = queue_status_from_word(status_word.strip())
        if known is None:
            raise BadRequestError(f"Queue-Status: {status_word[:32]!r} is not a queue status")
        status = int(known)
    wait = wait_word.strip().lower() in _TRUE_WORDS if wait_word else None
    if body is None and status is None and wait is None and tag is None and handler is None:
        return None
    changes = QueueChanges(**_given(_NO_BODY if body is None else body, _OF_QUEUES))
    if status is not None:
        changes.status = status
    if wait is not None:
        changes.wait_for_acknowledge = wait
    if handler is not None:
        changes.delivery_handler = handler
    changes.tag = tag
    return changes


def _channel_changes(frame: Frame, *, takes_none: bool = False) -> ChannelChanges | None:
    """The channel options in an operation's body (F70, F71); None if it has no body.

    :param takes_none: an empty name of an authenticator or event handler removes it from the
        channel; otherwise an empty name means that none is given.
    :raises BadRequestError: when the body is not such an object.
    """
    if not frame.payload_size:
        return None
    body = _values_in(frame, ChannelOptions)
    given = _given(body, _OF_CHANNELS)
    for option in _TEXTS_OF_CHANNELS:
        if not takes_none and given.get(option.name) == "":
            given[option.name] = None
    return ChannelChanges(**given, queue=QueueChanges(**_given(body, _OF_QUEUES)))


def _values_in(frame: Frame, model: type[QueueOptions]) -> dict[str, object]:
    """The values in an operation's body, by the model's attributes.

    :raises BadRequestError: when the body is not such an object.
    """
    try:
        return model.values_in(frame.payload)
    except ModelError as error:
        raise BadRequestError(str(error)) from error


#: What a request without a body says.
_NO_BODY: Final = QueueOptions.values_in(b"{}")
#: The options that a body may hold, by the attribute of its model.
_OF_QUEUES: Final = {each.attribute: each for each in QUEUE_OPTIONS if each.attribute}
_OF_CHANNELS: Final = {each.attribute: each for each in CHANNEL_OPTIONS if each.attribute}
_TEXTS_OF_CHANNELS: Final = [each for each in CHANNEL_OPTIONS if each.kind == TEXT]


def _given(body: dict[str, object], options: dict[str, Option]) -> dict[str, Any]:
    """The values that a body has for these options, by the options' names."""
    given: dict[str, Any] = {}
    for attribute, value in body.items():
        option = options.get(attribute)
        if option is None:
            continue
        if option.kind == ADDRESS:
            channel, _, queue_id = str(value).rpartition(";")
            value = (channel, int(queue_id)) if channel else NOWHERE  # noqa: PLW2901
        given[option.name] = value
    return given


_QUEUE_HEADER_NAMES: Final = (
    HeaderName.QUEUE_STATUS.value,
    HeaderName.WAIT_FOR_ACKNOWLEDGE.value,
    HeaderName.QUEUE_TAG.value,
    HeaderName.DELIVERY_HANDLER.value,
)
#: Headers by which a push says something about its queue.
_QUEUE_HEADERS: Final = HeaderNames(_QUEUE_HEADER_NAMES)
_TIME_HEADER_NAMES: Final = (HEADER_DELAY, HEADER_DELIVER_AT, HEADER_MESSAGE_TIMEOUT)
#: Headers by which a push says when it may be delivered.
_TIME_HEADERS: Final = HeaderNames(_TIME_HEADER_NAMES)
#: Headers by which a push says what is to be done with it.
_WISHES: Final = HeaderNames((HEADER_RECEIVERS, HEADER_WAIT))
#: Headers of a push that this server reads: a message that has one is handled by itself.
PUSH_HEADERS: Final = HeaderNames(
    (
        *_QUEUE_HEADER_NAMES,
        *_TIME_HEADER_NAMES,
        HEADER_RECEIVERS,
        HEADER_WAIT,
        HeaderName.CC.value,
        HeaderName.REQUEST_ID.value,
        *DEAD_LETTER_HEADERS,
    )
)


def push_extras(frame: Frame, unix_s: float) -> PushExtras | None:
    """The extras in a pushed message's headers: options of a queue that may have to be created
    (F74), delay and expiry, whether its receivers are counted, and how long it waits for room.
    None if there are none.

    :param unix_s: the time, in seconds since 1970.
    :raises BadRequestError: when a header is invalid.
    """
    block = frame.header_block
    extras: PushExtras | None = None
    if _QUEUE_HEADERS.may_occur(block, 0, len(block)):
        changes = _queue_options_of(frame, has_body=False)
        if changes is not None:
            extras = PushExtras(changes)
    if may_have_times(frame):
        delay_ms = _delay_ms(frame, unix_s)
        expires_in_ms = number_header(frame, HEADER_MESSAGE_TIMEOUT) or 0
        if delay_ms or expires_in_ms:
            if extras is None:
                extras = PushExtras()
            extras.delay_ms = delay_ms
            extras.expires_in_ms = expires_in_ms
    if _WISHES.may_occur(block, 0, len(block)):
        counts = _says_yes(frame, HEADER_RECEIVERS)
        wait_ms = number_header(frame, HEADER_WAIT) or 0
        if counts or wait_ms:
            if extras is None:
                extras = PushExtras()
            extras.counts_receivers = counts
            extras.wait_ms = wait_ms
    return extras


def may_have_times(frame: Frame) -> bool:
    """Whether a message may have a header for its delay or expiry; a quick check of the bytes."""
    block = frame.header_block
    return _TIME_HEADERS.may_occur(block, 0, len(block))


def _delay_ms(frame: Frame, unix_s: float) -> int:
    """For how many milliseconds a message is deferred; 0 for none, or a time in the past."""
    delay_ms = number_header(frame, HEADER_DELAY)
    deliver_at_ms = number_header(frame, HEADER_DELIVER_AT)
    if deliver_at_ms is None:
        return delay_ms or 0
    if delay_ms is not None:
        raise BadRequestError(f"either {HEADER_DELAY} or {HEADER_DELIVER_AT}, not both")
    return max(0, deliver_at_ms - int(unix_s * 1_000))


def command_of(session: int, frame: Frame) -> Command:
    """The command for a server operation, by either numbering (F19, F48-F60).

    The frame itself is the request's token.

    :raises BadRequestError: 400 for an unknown operation or invalid contents, 501 for an operation
        that this server does not have.
    """
    number = WIRE_OPERATION_OF_DOCUMENT.get(frame.content_type, frame.content_type)
    build = OPERATIONS.get(number)
    if build is not None:
        return build(session, frame)
    if number in Operation._value2member_map_:
        name = Operation(number).name
        raise BadRequestError(f"{name} is not served", int(ResultCode.NOT_IMPLEMENTED))
    raise BadRequestError(f"{frame.content_type} is not a server operation")


def _create_channel(session: int, frame: Frame) -> Command:
    return CreateChannel(session, frame, frame.target, _channel_changes(frame))


def _update_channel(session: int, frame: Frame) -> Command:
    if not frame.payload_size:
        raise BadRequestError("the new options are missing: send them as a JSON body")
    changes = _channel_changes(frame, takes_none=True)
    assert changes is not None, "a body was given"
    return UpdateChannel(session, frame, frame.target, changes)


def _create_queue(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    changes = _queue_options_of(frame, has_body=True)
    # A body may hold channel options too; they count if the channel has to be created (F54).
    return CreateQueue(session, frame, frame.target, queue_id, changes, _channel_changes(frame))


def _update_queue(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    if not frame.payload_size:
        raise BadRequestError("the new options are missing: send them as a JSON body")
    changes = _queue_options_of(frame, has_body=True)
    assert changes is not None, "a body was given"
    return UpdateQueue(session, frame, frame.target, queue_id, changes)


def _remove_queue(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=True)
    return RemoveQueue(session, frame, frame.target, queue_id)


def _describe_queue(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=True)
    return DescribeQueue(session, frame, frame.target, queue_id)


def _clear_messages(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    high = _says_yes(frame, HeaderName.PRIORITY_MESSAGES)
    return ClearMessages(
        session, frame, frame.target, queue_id, high, _says_yes(frame, HeaderName.MESSAGES)
    )


def _cancel_message(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    return CancelMessage(session, frame, frame.target, queue_id, _message_id_of(frame))


def _remove_message(session: int, frame: Frame) -> Command:
    queue_id = queue_id_of(frame, body_may_hold_it=False)
    return RemoveMessage(session, frame, frame.target, queue_id, _message_id_of(frame))


def _message_id_of(frame: Frame) -> str:
    message_id = (frame.header(HEADER_MESSAGE_ID) or "").strip()
    if not message_id:
        raise BadRequestError(f"the header {HEADER_MESSAGE_ID} is missing")
    return message_id


def _says_yes(frame: Frame, name: str) -> bool:
    value = frame.header(name)
    return value is not None and value.strip().lower() == HEADER_VALUE_YES.lower()


def _list_channels(session: int, frame: Frame) -> Command:
    # The specification's filter is the target, the original reads a header (contradiction 6).
    return ListChannels(session, frame, frame.header(HeaderName.CHANNEL_NAME) or frame.target)


def _create_router(session: int, frame: Frame) -> Command:
    text = (frame.header(HeaderName.ROUTE_METHOD) or "0").strip()
    # The original takes any number (F60); what such a router does nobody can know.
    if text not in ("0", "1", "2"):
        raise BadRequestError(f"Route-Method is 0, 1 or 2, got {text[:32]!r}")
    return CreateRouter(session, frame, frame.target, int(text))


def _add_binding(session: int, frame: Frame) -> Command:
    try:
        body = models.BindingInformation.from_json(frame.payload)
    except ModelError as error:
        raise BadRequestError(str(error)) from error
    options = BindingOptions(
        body.name,
        int(body.binding_type),
        body.target or "",
        body.content_type,
        body.priority,
        int(body.interaction),
        int(body.method),
    )
    return AddBinding(session, frame, frame.target, options)


def _set_router_enabled(session: int, frame: Frame) -> Command:
    text = (frame.header(HEADER_ROUTER_ENABLED) or "").strip()
    if text not in ("0", "1"):
        raise BadRequestError(f"{HEADER_ROUTER_ENABLED} is 0 or 1, got {text[:32]!r}")
    return SetRouterEnabled(session, frame, frame.target, text == "1")


def _remove_binding(session: int, frame: Frame) -> Command:
    name = frame.header(HeaderName.BINDING_NAME)
    if name is None:
        raise BadRequestError("the header Binding-Name is missing")
    return RemoveBinding(session, frame, frame.target, name)


#: The operations by number, each with what makes a command of it.
OPERATIONS: dict[int, Callable[[int, Frame], Command]] = {
    OP_JOIN: lambda session, frame: join_of(session, frame, filter_in(frame)),
    OP_LEAVE: lambda session, frame: Leave(session, frame, frame.target),
    OP_CREATE_CHANNEL: _create_channel,
    OP_REMOVE_CHANNEL: lambda session, frame: RemoveChannel(session, frame, frame.target),
    OP_CHANNEL_INFORMATION: lambda session, frame: DescribeChannel(session, frame, frame.target),
    OP_CHANNEL_LIST: _list_channels,
    OP_CHANNEL_CONSUMERS: lambda session, frame: ListConsumers(session, frame, frame.target),
    OP_CREATE_QUEUE: _create_queue,
    OP_UPDATE_QUEUE: _update_queue,
    OP_REMOVE_QUEUE: _remove_queue,
    OP_CLEAR_MESSAGES: _clear_messages,
    OP_CANCEL_MESSAGE: _cancel_message,
    OP_REMOVE_MESSAGE: _remove_message,
    OP_QUEUE_INFORMATION: _describe_queue,
    OP_QUEUE_LIST: lambda session, frame: ListQueues(session, frame, frame.target),
    OP_INSTANCE_LIST: ListNodes,
    OP_LIST_ROUTERS: ListRouters,
    OP_CREATE_ROUTER: _create_router,
    OP_REMOVE_ROUTER: lambda session, frame: RemoveRouter(session, frame, frame.target),
    OP_LIST_BINDINGS: lambda session, frame: ListBindings(session, frame, frame.target),
    OP_ADD_BINDING: _add_binding,
    OP_REMOVE_BINDING: _remove_binding,
    OP_SET_ROUTER_ENABLED: _set_router_enabled,
    OP_UPDATE_CHANNEL: _update_channel,
    OP_DESCRIBE_SERVER: DescribeServer,
    OP_DRAIN: lambda session, frame: Drain(session, frame, _says_yes(frame, HEADER_STOP)),
    OP_SET_TERMS: set_terms_of,
    OP_GRANT_CREDIT: grant_of,
    OP_EXTEND: extend_of,
    OP_ADD_FEED: add_feed_of,
    OP_REMOVE_FEED: remove_feed_of,
    OP_LIST_FEEDS: list_feeds_of,
    **READING,
    **CELLS,
    OP_CLIENT_LIST: lambda session, frame: ListClients(session, frame, frame.target),
}
