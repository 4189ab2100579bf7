"""Encodes messages to other clients (F113-F118), and subscriptions (F127)."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp.constants import (
    EVENT_SUBSCRIBE,
    EVENT_UNSUBSCRIBE,
    TARGET_NAME_PREFIX,
    TARGET_TYPE_PREFIX,
    TYPE_ACKNOWLEDGE,
    TYPE_DIRECT_MESSAGE,
    TYPE_EVENT,
    TYPE_RESPONSE,
    TYPE_ROUTER,
    EventName,
    HeaderName,
)
from tmqp.errors import LocalProtocolError
from tmqp.frames import Frame
from tmqp_client._core.arguments import Headers, check_channel, check_queue_id, to_pairs
from tmqp_client._core.pending import NO_QUEUE, Kind
from tmqp_client._core.requests import Request

__all__ = [
    "DirectRequest",
    "RouterRequest",
    "SubscriptionRequest",
    "WrittenRequest",
    "acknowledge_frame",
    "response_frame",
    "subscription",
]

_NEED_A_CHANNEL = frozenset(
    {
        EventName.CLIENT_JOINED,
        EventName.CLIENT_LEFT,
        EventName.QUEUE_CREATED,
        EventName.QUEUE_UPDATED,
        EventName.QUEUE_REMOVED,
        EventName.MESSAGE_PRODUCED,
    }
)


@mypyc_attr(allow_interpreted_subclasses=True)  # the one for custom messages is not compiled
class WrittenRequest(Request):
    """A message that the program writes, ready to be given an id.

    :param type: of the frame.
    """

    __slots__ = ("content_type", "first_only", "high_priority", "type")

    def __init__(
        self,
        type: int,
        word: str,
        kind: int,
        target: str,
        content_type: int,
        payload: bytes,
        headers: Headers,
        first_only: bool,
        high_priority: bool,
    ) -> None:
        super().__init__(0, word, target, tuple(to_pairs(headers)), payload, NO_QUEUE, kind)
        self.type = type
        self.content_type = content_type
        self.first_only = first_only
        self.high_priority = high_priority

    def to_frame(self, message_id: str, source: str, answer: bool) -> Frame:
        """The frame to send.

        :raises LocalProtocolError: when a part does not fit the wire.
        """
        return Frame.build(
            self.type,
            self.target,
            self.content_type,
            self.payload,
            message_id=message_id,
            source=source,
            headers=self.headers,
            first_acquirer=self.first_only,
            high_priority=self.high_priority,
            pending_response=answer and self.kind == Kind.REQUEST,
            pending_acknowledge=answer and self.kind == Kind.DIRECT,
        )


class DirectRequest(WrittenRequest):
    """A direct message, ready to be given an id."""

    __slots__ = ()

    def __init__(
        self,
        kind: int,
        target: str,
        content_type: int,
        payload: bytes,
        headers: Headers,
        first_only: bool,
        high_priority: bool,
    ) -> None:
        word = "request to" if kind == Kind.REQUEST else "direct message to"
        super().__init__(
            TYPE_DIRECT_MESSAGE,
            word,
            kind,
            target,
            content_type,
            payload,
            headers,
            first_only,
            high_priority,
        )
        if not target:
            raise LocalProtocolError("a direct message needs a target")

    def asks(self, client_id: str) -> bool:
        """Whether the target may include this client (F113)."""
        target = self.target
        return target == client_id or target.startswith((TARGET_NAME_PREFIX, TARGET_TYPE_PREFIX))


class RouterRequest(WrittenRequest):
    """A message for a router, ready to be given an id (F123)."""

    __slots__ = ()

    def __init__(
        self,
        kind: int,
        router: str,
        content_type: int,
        payload: bytes,
        headers: Headers,
        high_priority: bool,
    ) -> None:
        word = "request to router" if kind == Kind.REQUEST else "publish to router"
        name = check_channel(router)
        super().__init__(
            TYPE_ROUTER, word, kind, name, content_type, payload, headers, False, high_priority
        )

    def asks(self, client_id: str) -> bool:
        """Whether the router may forward it to this client; always true, because bindings
        decide."""
        return True


class SubscriptionRequest(Request):
    """A subscription to an event, or its end, ready to be given an id (F127)."""

    __slots__ = ("wanted",)

    def __init__(self, name: str, headers: tuple[tuple[str, str], ...], wanted: bool) -> None:
        super().__init__(0, "subscribe to" if wanted else "unsubscribe from", name, headers)
        self.wanted = wanted

    @property
    def stands(self) -> bool:
        """Whether it requests something lasting, instead of undoing it."""
        return self.wanted

    def opposite(self) -> SubscriptionRequest:
        """Return the request that undoes this one."""
        return SubscriptionRequest(self.target, self.headers, not self.wanted)

    def to_frame(self, message_id: str, source: str, answer: bool) -> Frame:
        """The frame to send.

        :raises LocalProtocolError: when a part does not fit the wire.
        """
        return Frame.build(
            TYPE_EVENT,
            self.target,
            EVENT_SUBSCRIBE if self.wanted else EVENT_UNSUBSCRIBE,
            message_id=message_id,
            source=source,
            headers=self.headers,
            pending_response=answer,
        )


def subscription(name: str, channel: str | None, queue_id: int | None) -> SubscriptionRequest:
    """Make the request to subscribe to an event.

    :raises LocalProtocolError: if the event is unknown, or the channel or queue is missing or not
        allowed.
    """
    try:
        event = EventName(name)
    except ValueError:
        names = ", ".join(EventName)
        raise LocalProtocolError(f"{name!r} is not an event; there are {names}") from None
    needs_queue = event == EventName.MESSAGE_PRODUCED
    if (channel is not None) != (event in _NEED_A_CHANNEL):
        need = "needs a" if channel is None else "is of the whole server and has no"
        raise LocalProtocolError(f"the event {event.value} {need} channel (F127)")
    if (queue_id is not None) != needs_queue:
        need = "needs a" if queue_id is None else "has no"
        raise LocalProtocolError(f"the event {event.value} {need} queue (F127)")
    pairs: list[tuple[str, str]] = []
    if channel is not None:
        pairs.append((HeaderName.CHANNEL_NAME.value, check_channel(channel)))
    if queue_id is not None:
        pairs.append((HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))))
    return SubscriptionRequest(event.value, tuple(pairs), True)


def acknowledge_frame(message: Frame, source: str, reason: str | None) -> Frame:
    """The acknowledgement of a direct message; high priority says that it is for a client (F116).

    :raises LocalProtocolError: when the reason cannot be written.
    """
    return Frame.build(
        TYPE_ACKNOWLEDGE,
        message.source,
        message.content_type,
        message_id=message.message_id,
        source=source,
        headers=() if reason is None else ((HeaderName.NACK_REASON.value, reason),),
        first_acquirer=message.first_acquirer,
        high_priority=True,
    )


def response_frame(message: Frame, source: str, code: int, payload: bytes) -> Frame:
    """The response to a direct message (F117).

    :raises LocalProtocolError: when the code is not 0..65,535.
    """
    return Frame.build(
        TYPE_RESPONSE,
        message.source,
        code,
        payload,
        message_id=message.message_id,
        source=source,
        first_acquirer=message.first_acquirer,
        high_priority=message.high_priority,
    )
