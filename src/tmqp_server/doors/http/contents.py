"""Conversion of messages between HTTP and the queues.

A message that arrives over HTTP is stored as the equivalent TMQP Queue Message: its headers have
everything that another door needs.
"""

from __future__ import annotations

import base64
from typing import Final, final

from tmqp.constants import PUT_BACK_END, PUT_BACK_START, TYPE_QUEUE_MESSAGE
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    HEADER_DELAY,
    HEADER_DELIVER_AT,
    HEADER_MESSAGE_TIMEOUT,
    STATE_DEFERRED,
    STATE_IN_FLIGHT,
    STATE_WAITING,
)
from tmqp.frames import Frame
from tmqp.names import fault_of_name
from tmqp_server.doors.http.messages import BadRequest, HttpRequest, HttpResponse
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.selecting import FilterError, filter_of, read_by
from tmqp_server.engine.commands import PushExtras
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_server.engine.model.snapshots import (
    BROWSED_DEFERRED,
    BROWSED_IN_FLIGHT,
    BROWSED_WAITING,
    BrowsedMessage,
)

__all__ = [
    "MOST_DELAY_MS",
    "PUT_BACK_PLACES",
    "PublishTimes",
    "browsed_item",
    "built_frame",
    "frame_of",
    "item_of",
    "payload_members",
    "payload_of",
    "raw_answer",
    "sent_headers",
    "wanted_filter",
    "wanted_reason",
    "whole_text",
]

#: The longest delay of a message, in milliseconds.
MOST_DELAY_MS: Final = 1 << 40
#: The most bytes of UTF-8 of the reason for a refusal.
_MOST_REASON_BYTES: Final = 200
#: Where a message is put back, by the words of clients; the first is the default.
PUT_BACK_PLACES: Final = {"end": PUT_BACK_END, "start": PUT_BACK_START}

#: A field with this prefix is a header of the message.
_PREFIX: Final = b"tmqp-header-"
_CONTENT_TYPE: Final = "Content-Type"
_STATE_WORDS: Final = {
    BROWSED_WAITING: STATE_WAITING,
    BROWSED_DEFERRED: STATE_DEFERRED,
    BROWSED_IN_FLIGHT: STATE_IN_FLIGHT,
}
#: Fields of HTTP clients with traces (W3C Trace Context), which become headers of the same names.
_OF_TRACES: Final = {b"traceparent": "traceparent", b"tracestate": "tracestate"}
#: The content type of a payload without one.
_UNKNOWN_TYPE: Final = "application/octet-stream"


def sent_headers(request: HttpRequest) -> list[tuple[str, str]]:
    """The headers of a message that was sent by HTTP.

    :raises BadRequest: for a value that is not UTF-8.
    """
    headers: list[tuple[str, str]] = []
    try:
        for key, value in request.headers:
            lower = key.lower()
            if lower == b"content-type":
                headers.append((_CONTENT_TYPE, value.decode("utf-8")))
            elif lower.startswith(_PREFIX) and len(lower) > len(_PREFIX):
                headers.append((key[len(_PREFIX) :].decode("ascii"), value.decode("utf-8")))
            elif lower in _OF_TRACES and not request.header(_PREFIX + lower):
                headers.append((_OF_TRACES[lower], value.decode("utf-8")))
    except UnicodeDecodeError:
        raise BadRequest(400, "a header of the message is not UTF-8") from None
    return headers


def wanted_filter(
    language: str | None, text: str | None, letters: Letters, status: int = 400
) -> SubscriptionFilter | None:
    """The filter that a client asks for; None if it asks for none.

    :raises BadRequest: with *status*, when the filter is invalid.
    """
    if text is None and language is None:
        return None
    try:
        chosen = filter_of(language, text)
    except FilterError as error:
        raise BadRequest(status, str(error)) from error
    read_by(chosen, letters)
    return chosen


def wanted_reason(text: str | None, status: int = 400) -> str:
    """The reason for which a client refuses a delivery; ``error`` by default.

    :raises BadRequest: with *status*, when the reason is too long or not one printable line.
    """
    reason = text or "error"
    if len(reason.encode()) > _MOST_REASON_BYTES or not reason.isprintable():
        raise BadRequest(status, f"reason must be a line of at most {_MOST_REASON_BYTES} bytes")
    return reason


@final
class PublishTimes:
    """From when and until when a message may be delivered; 0 means not given.

    :param deliver_at_ms: in Unix time.
    """

    __slots__ = ("delay_ms", "deliver_at_ms", "expires_ms")

    def __init__(self, delay_ms: int = 0, expires_ms: int = 0, deliver_at_ms: int = 0) -> None:
        self.delay_ms = delay_ms
        self.expires_ms = expires_ms
        self.deliver_at_ms = deliver_at_ms

    def headers(self) -> list[tuple[str, str]]:
        """The times as headers of a TMQP push, for consumers and other servers of the cluster."""
        said = (
            (HEADER_DELAY, self.delay_ms),
            (HEADER_DELIVER_AT, self.deliver_at_ms),
            (HEADER_MESSAGE_TIMEOUT, self.expires_ms),
        )
        return [(name, str(value)) for name, value in said if value]

    def extras(self, *, counts_receivers: bool = False) -> PushExtras | None:
        """The extras of the push; None if there are none."""
        if not (self.headers() or counts_receivers):
            return None
        return PushExtras(
            expires_in_ms=self.expires_ms,
            delay_ms=self.delay_ms,
            counts_receivers=counts_receivers,
        )


def built_frame(
    place: tuple[str, int],
    message_id: str,
    source: str,
    headers: list[tuple[str, str]],
    payload: bytes,
    timing: PublishTimes,
    *,
    high: bool,
) -> Frame:
    """Build the TMQP message that a client publishes.

    :param place: the channel and the queue.
    :raises BadRequest: when a name or a header is invalid, or does not fit a TMQP message.
    """
    channel, queue_id = place
    if fault := fault_of_name(channel) or fault_of_name(message_id):
        raise BadRequest(400, f"a name has {fault}")
    times = timing.headers()
    said = {name.lower() for name, _ in times}
    try:
        return Frame.build(
            TYPE_QUEUE_MESSAGE,
            channel,
            queue_id,
            payload,
            message_id=message_id,
            source=source,
            headers=[pair for pair in headers if pair[0].lower() not in said] + times,
            high_priority=high,
            pending_acknowledge=True,
        )
    except LocalProtocolError as error:
        raise BadRequest(400, str(error)) from error


def frame_of(
    request: HttpRequest, source: str, message_id: str, timing: PublishTimes, *, high: bool
) -> Frame:
    """Build the TMQP message that an HTTP request publishes.

    :raises BadRequest: when a name or a header is invalid, or does not fit a TMQP message.
    """
    place = request.text("channel"), request.number("queue")
    headers = sent_headers(request)
    return built_frame(place, message_id, source, headers, request.body, timing, high=high)


def browsed_item(
    item: BrowsedMessage, letters: Letters, *, hides_source: bool, offset_s: float
) -> dict[str, object]:
    """A browsed message as JSON; its times are Unix milliseconds."""
    try:
        frame = letters.frame_of(item.message)
    except LookupError:
        return {"id": item.message_id, "sequence": item.sequence}  # its door is no more
    shown: dict[str, object] = {"id": item.message_id}
    if not hides_source:
        shown["source"] = item.source
    shown["sequence"] = item.sequence
    shown["state"] = _STATE_WORDS[item.state]
    shown["attempts"] = item.attempts
    if item.high_priority:
        shown["priority"] = "high"
    if item.due_s is not None:
        shown["due_at_ms"] = int((item.due_s + offset_s) * 1_000)
    if item.expires_s is not None:
        shown["expires_at_ms"] = int((item.expires_s + offset_s) * 1_000)
    return _with_contents(shown, frame)


def item_of(
    message: Message, letters: Letters, *, hides_source: bool, attempt: int
) -> dict[str, object]:
    """A delivered message as JSON: the payload is a text if it is UTF-8, else base64."""
    frame = letters.frame_of(message)
    item: dict[str, object] = {"id": message.message_id}
    if not hides_source:
        item["source"] = message.source
    item["sequence"] = message.sequence
    item["attempt"] = attempt
    if message.high_priority:
        item["priority"] = "high"
    return _with_contents(item, frame)


def _with_contents(item: dict[str, object], frame: Frame) -> dict[str, object]:
    """Add the headers and the payload of a message to its item."""
    item["headers"] = [list(pair) for pair in frame.headers]
    item.update(payload_members(frame.payload))
    return item


def payload_members(payload: bytes) -> dict[str, str]:
    """The JSON member with a payload: ``text`` if it is UTF-8, else ``base64``."""
    try:
        return {"text": payload.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(payload).decode("ascii")}


def payload_of(text: str | None, coded: str | None) -> bytes:
    """The payload in the members ``text`` or ``base64``, None for a missing member.

    :raises BadRequest: when both are given, or the given one is invalid.
    """
    if coded is None:
        return whole_text("text", text or "").encode()
    if text is not None:
        raise BadRequest(400, "a message has either text or base64, not both")
    try:
        return base64.b64decode(coded, validate=True)
    except ValueError:
        raise BadRequest(400, "base64 cannot be read") from None


def whole_text(name: str, value: str) -> str:
    """The text, if UTF-8 can encode it.

    :raises BadRequest: if it has half a surrogate pair.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRequest(400, f"{name} has half a character") from None
    return value


def raw_answer(message: Message, letters: Letters, *, hides_source: bool) -> HttpResponse:
    """The answer with a message's payload as its body, and its headers as fields."""
    frame = letters.frame_of(message)
    content_type = frame.header(_CONTENT_TYPE) or _UNKNOWN_TYPE
    if not _is_writable(content_type):
        content_type = _UNKNOWN_TYPE
    response = HttpResponse(200, frame.payload, content_type.encode("utf-8"))
    names = [("Tmqp-Message-Id", message.message_id)]
    if not hides_source:
        names.append(("Tmqp-Source", message.source))
    for name, value in names:
        if _is_writable(value):
            response.headers.append((name.encode(), value.encode("utf-8")))
    for key, value in frame.headers:
        # A header that no field can carry is in the JSON form only.
        if key.lower() != _CONTENT_TYPE.lower() and _is_token(key) and _is_writable(value):
            field = b"Tmqp-Header-" + key.encode("ascii")
            response.headers.append((field, value.encode("utf-8")))
    return response


def _is_token(name: str) -> bool:
    return name.isascii() and all([each.isalnum() or each in "!#$%&'*+-.^_`|~" for each in name])


def _is_writable(value: str) -> bool:
    return value == value.strip() and not any([each < " " or each == "\x7f" for each in value])
