"""Encodes each operation as the original client sends it.

The original's servers read some fields from the target and others from a header or the payload
(F48-F58); where the specification differs, the client sends what the original sends, because both
kinds of server understand that.
"""

from __future__ import annotations

from typing import Final

from tmqp import models
from tmqp._compat import mypyc_attr
from tmqp.constants import (
    HEADER_VALUE_YES,
    OP_CHANNEL_CONSUMERS,
    OP_CHANNEL_INFORMATION,
    OP_CHANNEL_LIST,
    OP_CLIENT_LIST,
    OP_CREATE_CHANNEL,
    OP_CREATE_QUEUE,
    OP_INSTANCE_LIST,
    OP_JOIN,
    OP_LEAVE,
    OP_LIST_BINDINGS,
    OP_LIST_ROUTERS,
    OP_QUEUE_INFORMATION,
    OP_QUEUE_LIST,
    OP_REMOVE_CHANNEL,
    OP_REMOVE_QUEUE,
    ORDER_LIFO,
    TYPE_ACKNOWLEDGE,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_SERVER,
    HeaderName,
    PullClear,
    QueueStatus,
    queue_status_from_word,
)
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_ACKNOWLEDGE_TIMEOUT,
    HEADER_CONSUMER_PRIORITY,
    HEADER_COUNTED,
    HEADER_CREDIT,
    HEADER_DELAY,
    HEADER_EXCLUSIVE,
    HEADER_FILTER,
    HEADER_FILTER_LANGUAGE,
    HEADER_MESSAGE_ID,
    HEADER_PUT_BACK,
    HEADER_RETURN,
    HEADER_TELL_LAPSED,
    HEADER_TIMEOUT,
    HEADER_WINDOW,
    LIFETIME_OWNER,
    OP_BROWSE,
    OP_DESCRIBE_CELL,
    OP_EXTEND,
    OP_GRANT_CREDIT,
    OP_LIST_CELLS,
    OP_LIST_CURSORS,
    OP_LIST_FEEDS,
    OP_LIST_GROUPS,
    OP_OFFSETS,
    OP_READ_CELL,
    OP_READ_INDEX,
    OP_READ_RANGE,
    OP_SET_TERMS,
    OP_SPLIT_RANGE,
    PUT_BACK_WORD_END,
    PUT_BACK_WORD_FRONT,
    RETURN_WORD_TIMEOUT,
)
from tmqp.frames import Frame
from tmqp_client._core.arguments import (
    NO_HEADERS,
    Headers,
    Pairs,
    check_channel,
    check_queue_id,
    to_pairs,
)
from tmqp_client._core.pending import NO_QUEUE, Kind

__all__ = [
    "OwnedRequest",
    "PullRequest",
    "Request",
    "acknowledge_frame",
    "create_channel",
    "create_queue",
    "extend",
    "filter_headers",
    "grant",
    "join",
    "leave",
    "push_frame",
    "release_headers",
    "remove_channel",
    "remove_queue",
    "set_terms",
    "terms_headers",
    "with_terms",
]

#: The longest time that can be requested; a server may have its own limit.
_MOST_SECONDS: Final = 2**31
_HIGHEST_PRIORITY: Final = 127
#: The words the original client writes into the header Queue-Status, by status number (F55).
_STATUS_WORDS: Final = ("broadcast", "push", "round-robin", "pull", "cache", "paused", "stopped")


#: Operations that may be repeated if it is unknown whether they were carried out.
_REPEATABLE: Final = frozenset(
    {
        OP_JOIN,
        OP_CHANNEL_INFORMATION,
        OP_CHANNEL_LIST,
        OP_CHANNEL_CONSUMERS,
        OP_QUEUE_INFORMATION,
        OP_QUEUE_LIST,
        OP_INSTANCE_LIST,
        OP_CLIENT_LIST,
        OP_LIST_ROUTERS,
        OP_LIST_BINDINGS,
        OP_OFFSETS,
        OP_READ_RANGE,
        OP_READ_INDEX,
        OP_BROWSE,
        OP_SPLIT_RANGE,
        OP_LIST_CURSORS,
        OP_LIST_FEEDS,
        OP_LIST_GROUPS,
        OP_SET_TERMS,
        OP_LIST_CELLS,
        OP_READ_CELL,
        OP_DESCRIBE_CELL,
    }
)


@mypyc_attr(allow_interpreted_subclasses=True)
class Request:
    """One operation without its message id: number, words for errors, target, headers, payload."""

    __slots__ = ("headers", "kind", "operation", "payload", "queue_id", "target", "word")

    def __init__(
        self,
        operation: int,
        word: str,
        target: str,
        headers: tuple[tuple[str, str], ...] = (),
        payload: bytes = b"",
        queue_id: int = NO_QUEUE,
        kind: int = Kind.OPERATION,
    ) -> None:
        self.kind = kind
        self.operation = operation
        self.word = word
        self.target = target
        self.headers = headers
        self.payload = payload
        self.queue_id = queue_id

    @property
    def repeatable(self) -> bool:
        """Whether the request may be repeated: that changes nothing more, and has the same
        answer."""
        return self.kind == Kind.OPERATION and self.operation in _REPEATABLE

    @property
    def stands(self) -> bool:
        """Whether it requests something lasting, instead of undoing it."""
        return self.operation not in (OP_LEAVE, OP_REMOVE_CHANNEL)

    def asks(self, client_id: str) -> bool:
        """Whether it is addressed to this client, whose answer then counts as well as the
        server's."""
        return False

    def to_frame(self, message_id: str, source: str, answer: bool) -> Frame:
        """The frame to send.

        :raises LocalProtocolError: when a part does not fit the wire.
        """
        return Frame.build(
            TYPE_SERVER,
            self.target,
            self.operation,
            self.payload,
            message_id=message_id,
            source=source,
            headers=self.headers,
            pending_response=answer,
        )


class OwnedRequest(Request):
    """The creation of a channel, or of a queue with its channel, that ends with the connection."""

    __slots__ = ()


class PullRequest:
    """One pull without its message id (F104); without a ``count`` it is for a cache queue.

    :raises LocalProtocolError: if an argument is out of range.
    """

    __slots__ = ("channel", "headers", "queue_id")

    def __init__(
        self,
        channel: str,
        queue_id: int,
        count: int | None = None,
        order: str = "fifo",
        clear: PullClear | str = PullClear.NONE,
        info: bool = False,
    ) -> None:
        self.channel = check_channel(channel)
        self.queue_id = check_queue_id(queue_id)
        self.headers: list[tuple[str, str]] = []
        if count is None:
            return
        if count < 1:
            raise LocalProtocolError(f"a pull needs a count of 1 or more, got {count!r}")
        if order.lower() not in ("fifo", "lifo"):
            raise LocalProtocolError(f"order must be 'fifo' or 'lifo', not {order!r}")
        cleared = [each for each in PullClear if each.value.lower() == str(clear).lower()]
        if not cleared:
            words = ", ".join(PullClear)
            raise LocalProtocolError(f"clear must be one of {words}, not {clear!r}")
        self.headers.append((HeaderName.COUNT.value, str(count)))
        if cleared[0] is not PullClear.NONE:
            self.headers.append((HeaderName.CLEAR.value, cleared[0].value))
        if info:
            self.headers.append((HeaderName.INFO.value, HEADER_VALUE_YES))
        if order.lower() == "lifo":
            self.headers.append((HeaderName.ORDER.value, ORDER_LIFO))

    @property
    def asked(self) -> str:
        """The request in words, for the text of an error."""
        return f"pull from {self.channel!r}/{self.queue_id}"

    def to_frame(self, message_id: str, source: str) -> Frame:
        """The frame to send; it requests a cache queue's answer as the original does."""
        return Frame.build(
            TYPE_PULL_REQUEST,
            self.channel,
            self.queue_id,
            message_id=message_id,
            source=source,
            headers=self.headers,
            pending_response=not self.headers,
        )


def _status_word(status: QueueStatus | str) -> str:
    found = queue_status_from_word(status) if isinstance(status, str) else QueueStatus(status)
    if found is None:
        raise LocalProtocolError(
            f"{status!r} is not a queue status; use one of {', '.join(_STATUS_WORDS)}"
        )
    return _STATUS_WORDS[found]


# --- Messages ------------------------------------------------------------------------------------


def push_frame(
    channel: str,
    queue_id: int,
    payload: bytes,
    message_id: str,
    source: str,
    headers: Headers,
    high_priority: bool,
    confirm: bool,
) -> Frame:
    """A message for a queue (F74); ``confirm`` requests the acknowledgement.

    :raises LocalProtocolError: when a part does not fit the wire.
    """
    return Frame.build(
        TYPE_QUEUE_MESSAGE,
        check_channel(channel),
        check_queue_id(queue_id),
        payload,
        message_id=message_id,
        source=source,
        headers=to_pairs(headers) if headers else (),
        high_priority=high_priority,
        pending_acknowledge=confirm,
    )


def acknowledge_frame(
    message: Frame, source: str, reason: str | None, more: Pairs = NO_HEADERS
) -> Frame:
    """The answer to a delivered message, negative if there is a reason (F95).

    The original sends the first-acquirer flag back as it came.

    :param more: further headers of a negative answer.
    :raises LocalProtocolError: when the reason cannot be written.
    """
    return Frame.build(
        TYPE_ACKNOWLEDGE,
        message.target,
        message.content_type,
        message_id=message.message_id,
        source=source,
        headers=() if reason is None else ((HeaderName.NACK_REASON.value, reason), *more),
        first_acquirer=message.first_acquirer,
    )


def release_headers(delay_s: float, to: str, counted: bool) -> Pairs:
    """Make the headers that turn a negative acknowledgement into the return of the message.

    :raises LocalProtocolError: if an argument is out of range.
    """
    pairs = [(HEADER_PUT_BACK, _place(to))]
    if not 0 <= delay_s <= _MOST_SECONDS:
        raise LocalProtocolError(f"a delay must be 0 seconds or more, got {delay_s!r}")
    if delay_s:
        pairs.append((HEADER_DELAY, str(max(1, round(delay_s * 1000)))))
    if not counted:
        pairs.append((HEADER_COUNTED, "0"))
    return tuple(pairs)


def _place(to: str) -> str:
    if to not in (PUT_BACK_WORD_FRONT, PUT_BACK_WORD_END):
        raise LocalProtocolError(f"a message must go back to 'front' or 'end', not {to!r}")
    return to


# --- Operations ----------------------------------------------------------------------------------


def create_channel(name: str, options: models.ChannelOptions | None) -> Request:
    """Create a channel (F50)."""
    return _creation(options)(
        OP_CREATE_CHANNEL,
        "create channel",
        check_channel(name),
        ((HeaderName.CHANNEL_NAME.value, name),),
        b"" if options is None else options.to_json(),
    )


def _creation(options: models.QueueOptions | None) -> type[Request]:
    """Return the class of the request that creates something with these options."""
    owned = isinstance(options, models.ChannelOptions) and options.lifetime == LIFETIME_OWNER
    return OwnedRequest if owned else Request


def remove_channel(name: str) -> Request:
    """Remove a channel (F51)."""
    return Request(
        OP_REMOVE_CHANNEL,
        "remove channel",
        check_channel(name),
        ((HeaderName.CHANNEL_NAME.value, name),),
    )


def join(
    channel: str,
    filter: str | None = None,
    language: str | None = None,
    terms: Pairs = NO_HEADERS,
) -> Request:
    """Join a channel (F48), for the messages that pass a filter.

    :raises LocalProtocolError: for a language without a filter.
    """
    headers = (*filter_headers(filter, language), *terms)
    return Request(OP_JOIN, "join channel", check_channel(channel), headers)


def filter_headers(filter: str | None, language: str | None) -> Pairs:
    """The headers of a filter; none if all messages are wanted.

    :raises LocalProtocolError: for a language without a filter.
    """
    if filter is None:
        if language is not None:
            raise LocalProtocolError("filter_language needs a filter")
        return NO_HEADERS
    if language is None:
        return ((HEADER_FILTER, filter),)
    return ((HEADER_FILTER, filter), (HEADER_FILTER_LANGUAGE, language))


def with_terms(joining: Request, terms: Pairs, before: Pairs | None = None) -> Request:
    """Return the same join with these terms added; *before* replaces the terms that it has."""
    if not terms and before is None:
        return joining
    said = dict(joining.headers if before is None else before)
    said.update(terms)
    return Request(OP_JOIN, joining.word, joining.target, tuple(said.items()))


def set_terms(channel: str, terms: Pairs) -> Request:
    """Change the terms of a channel that was joined.

    :raises LocalProtocolError: if no term is given.
    """
    if not terms:
        raise LocalProtocolError("give at least one term to change")
    return Request(OP_SET_TERMS, "set terms", check_channel(channel), terms)


def grant(channel: str, credit: int) -> Request:
    """Set how many further messages may be delivered; -1 for any number."""
    pairs = terms_headers(None, credit, None, None, None)
    return Request(OP_GRANT_CREDIT, "grant credit", check_channel(channel), pairs)


def extend(channel: str, queue_id: int, message_id: str, seconds: float) -> Request:
    """Set the time left to answer a message, in seconds.

    :raises LocalProtocolError: if the time is not positive, or too long.
    """
    if not 0 < seconds <= _MOST_SECONDS:
        raise LocalProtocolError(f"the time to answer must be more than 0 seconds, got {seconds!r}")
    pairs = (
        (HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))),
        (HEADER_MESSAGE_ID, message_id),
        (HEADER_TIMEOUT, str(max(1, round(seconds * 1000)))),
    )
    return Request(OP_EXTEND, "extend message", channel, pairs, queue_id=queue_id)


def terms_headers(
    window: int | None,
    credit: int | None,
    ack_timeout_s: float | None,
    returns: str | None,
    priority: int | None,
    exclusive: bool | None = None,
    tells_lapsed: bool = False,
) -> Pairs:
    """Make the headers of a join's terms; None leaves a term out.

    :raises LocalProtocolError: if a term is out of range.
    """
    pairs: list[tuple[str, str]] = []
    for name, number in ((HEADER_WINDOW, window), (HEADER_CREDIT, credit)):
        if number is not None:
            if number < -1:
                raise LocalProtocolError(f"{name.lower()} must be -1 or more, got {number!r}")
            pairs.append((name, str(number)))
    if ack_timeout_s is not None:
        if ack_timeout_s == float("inf"):
            pairs.append((HEADER_ACKNOWLEDGE_TIMEOUT, "-1"))
        elif 0 <= ack_timeout_s <= _MOST_SECONDS:
            timeout_ms = max(1, round(ack_timeout_s * 1000)) if ack_timeout_s else 0
            pairs.append((HEADER_ACKNOWLEDGE_TIMEOUT, str(timeout_ms)))
        else:
            raise LocalProtocolError(f"ack_timeout_s must be 0 or more, got {ack_timeout_s!r}")
    if returns is not None:
        if returns not in (RETURN_WORD_TIMEOUT, PUT_BACK_WORD_FRONT, PUT_BACK_WORD_END):
            raise LocalProtocolError(f"returns must be timeout, front or end, not {returns!r}")
        pairs.append((HEADER_RETURN, returns))
    if priority is not None:
        if not 0 <= priority <= _HIGHEST_PRIORITY:
            raise LocalProtocolError(f"priority must be 0 to {_HIGHEST_PRIORITY}, got {priority!r}")
        pairs.append((HEADER_CONSUMER_PRIORITY, str(priority)))
    pairs += [] if exclusive is None else [(HEADER_EXCLUSIVE, "1" if exclusive else "0")]
    if tells_lapsed:
        pairs.append((HEADER_TELL_LAPSED, "1"))
    return tuple(pairs)


def leave(channel: str) -> Request:
    """Leave a channel (F49)."""
    return Request(OP_LEAVE, "leave channel", check_channel(channel))


def create_queue(
    channel: str,
    queue_id: int,
    options: models.QueueOptions | None,
    status: QueueStatus | str | None,
    tag: str | None,
    delivery_handler: str | None,
    wait_for_acknowledge: bool | None,
    headers: Headers,
) -> Request:
    """Create a queue (F54).

    The original applies the headers always, but the options' body only if it also creates the
    channel.

    :raises LocalProtocolError: if an argument is invalid.
    """
    pairs = [
        (HeaderName.CHANNEL_NAME.value, check_channel(channel)),
        (HeaderName.QUEUE_ID.value, str(check_queue_id(queue_id))),
    ]
    if delivery_handler is not None:
        pairs.append((HeaderName.DELIVERY_HANDLER.value, delivery_handler))
    if tag is not None:
        pairs.append((HeaderName.QUEUE_TAG.value, tag))
    if status is not None:
        pairs.append((HeaderName.QUEUE_STATUS.value, _status_word(status)))
    if wait_for_acknowledge is not None:
        pairs.append((HeaderName.WAIT_FOR_ACKNOWLEDGE.value, "1" if wait_for_acknowledge else "0"))
    pairs.extend(to_pairs(headers))
    return _creation(options)(
        OP_CREATE_QUEUE,
        "create queue",
        channel,
        tuple(pairs),
        b"" if options is None else options.to_json(),
        queue_id,
    )


def remove_queue(channel: str, queue_id: int) -> Request:
    """Remove a queue; its id goes as two bytes of payload (F57)."""
    return Request(
        OP_REMOVE_QUEUE,
        "remove queue",
        check_channel(channel),
        (),
        check_queue_id(queue_id).to_bytes(2, "little"),
        queue_id,
    )
