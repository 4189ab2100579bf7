"""The requests of the WebSocket subprotocol ``tmqp.json.v1``, as one table.

A request is a JSON object in a text message: ``op`` names the operation, and the answer repeats
``ref``, if given.  For each operation, the table has its members, the rights that it needs and the
commands that it becomes.  Documents and the matrix of rights are generated from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from tmqp.constants import MAX_QUEUE_ID, PUT_BACK_START
from tmqp.names import fault_of_name
from tmqp_server.doors.facts import events_by_name
from tmqp_server.doors.http.contents import (
    MOST_DELAY_MS,
    PUT_BACK_PLACES,
    PublishTimes,
    built_frame,
    payload_of,
    wanted_filter,
    wanted_reason,
    whole_text,
)
from tmqp_server.doors.http.messages import BadRequest
from tmqp_server.doors.letters import Letters
from tmqp_server.engine.commands import (
    Acknowledge,
    Command,
    Extend,
    Grant,
    Join,
    Leave,
    Push,
    Release,
    SetTerms,
    SubscribeEvent,
    Terms,
)
from tmqp_server.engine.model.message import SubscriptionFilter

__all__ = [
    "JSON_V1",
    "SOCKET_OPERATIONS",
    "Behind",
    "RefusedRequest",
    "SocketMember",
    "SocketOperation",
    "SocketRequest",
    "push_of",
    "read_request",
]

#: The name of the subprotocol.
JSON_V1: Final = "tmqp.json.v1"

_MOST_REF_CHARACTERS: Final = 128
_MOST_CREDIT: Final = 1 << 31
_HIGHEST_PRIORITY: Final = 127
_EVENTS: Final = events_by_name()


@final
@dataclass(frozen=True, slots=True)
class SocketMember:
    """A member of a request; ``kind`` names its type in documents, ``needed`` says that it is
    mandatory."""

    kind: str
    meaning: str
    needed: bool = False


@final
class SocketRequest:
    """One decoded request.

    Attributes: ``operation``, its row in the table; ``ref``, as the client sent it, None if it did
    not; ``session``, the number of the client's session; ``failed``, the failure was reported to
    the client.
    """

    __slots__ = ("_values", "failed", "operation", "ref", "session")

    def __init__(
        self, operation: SocketOperation, ref: str | int | None, session: int, values: Any
    ) -> None:
        self.operation = operation
        self.ref = ref
        self.session = session
        self.failed = False
        self._values: Mapping[str, Any] = values

    def has(self, name: str) -> bool:
        """Whether the request has this member."""
        return name in self._values

    def text(self, name: str, default: str = "") -> str:
        """The value of a member that is a string.

        :raises BadRequest: when it is not a string, or has half a surrogate pair.
        """
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise BadRequest(400, f"{name} must be a string")
        return whole_text(name, value)

    def name(self, member: str) -> str:
        """The value of a member that is the name of a channel or the id of a message.

        :raises BadRequest: when it is not a valid name or id.
        """
        value = self.text(member)
        if fault := fault_of_name(value):
            raise BadRequest(400, f"{member} has {fault}")
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """The value of a member that is a whole number from *least* to *most*.

        :raises BadRequest: when it is not one, or out of range.
        """
        value = self._values.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise BadRequest(400, f"{name} must be a whole number from {least} to {most}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """The value of a member that is true or false.

        :raises BadRequest: when it is something else.
        """
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise BadRequest(400, f"{name} must be true or false")
        return value

    def word(self, name: str, words: Sequence[str]) -> str:
        """The value of a member that is one of *words*, the first one by default.

        :raises BadRequest: when it is not one of them.
        """
        value = self._values.get(name, words[0])
        if value not in words:
            raise BadRequest(400, f"{name} must be one of {', '.join(words)}")
        assert isinstance(value, str), "all words are texts"
        return value

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """Names and values of a member: an object of strings, or a list of pairs as in deliveries.

        :raises BadRequest: when it is something else.
        """
        value = self._values.get(name, {})
        found = list(value.items()) if isinstance(value, dict) else value
        if not isinstance(found, list):
            raise BadRequest(400, f"{name} must be an object of strings")
        for each in found:
            pair = isinstance(each, (list, tuple)) and len(each) == 2
            if not pair or not isinstance(each[0], str) or not isinstance(each[1], str):
                raise BadRequest(400, f"{name} must have strings for names and values")
        return [(whole_text(name, key), whole_text(name, text)) for key, text in found]

    def payload(self) -> bytes:
        """The payload in the member ``text`` or ``base64``.

        :raises BadRequest: when both are given, or the given one is invalid.
        """
        text = self.text("text") if self.has("text") else None
        return payload_of(text, self.text("base64") if self.has("base64") else None)

    @property
    def place(self) -> tuple[str, int]:
        """The channel and the queue that the request names."""
        return self.name("channel"), self.number("queue", 0, 0, MAX_QUEUE_ID)


@final
class Behind:
    """The token of the command that follows one that the broker answers only if it fails."""

    __slots__ = ("request",)

    def __init__(self, request: SocketRequest) -> None:
        self.request = request


def push_of(
    request: SocketRequest, place: tuple[str, int], name: str, source: str, *, confirms: bool
) -> Push:
    """Build the push of the message in a request.

    :param place: the channel and the queue.
    :param name: the id of the message.
    :raises BadRequest: when a name or a header is invalid, or does not fit a TMQP message.
    """
    high = request.word("priority", ("normal", "high")) == "high"
    timing = PublishTimes(
        request.number("delay_ms", 0, 0, MOST_DELAY_MS),
        request.number("expires_ms", 0, 0, MOST_DELAY_MS),
    )
    headers, payload = request.pairs("headers"), request.payload()
    frame = built_frame(place, name, source, headers, payload, timing, high=high)
    size, extras = len(frame.raw), timing.extras()
    return Push(request.session, name, *place, high, confirms, size, frame, extras)


_Make = Callable[[SocketRequest, Letters], Sequence[Command]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SocketOperation:
    """A row of the table.

    :ivar name: the value of ``op``.
    :ivar summary: what it does, in one line.
    :ivar rights: the rights that a client needs.
    :ivar members: the possible members besides ``op`` and ``ref``.
    :ivar commands: the types of its commands for the broker.
    :ivar make: makes the commands of a request; None if the session makes them.
    """

    name: str
    summary: str
    rights: tuple[str, ...] = ()
    members: Mapping[str, SocketMember]
    commands: tuple[type[Command], ...]
    make: _Make | None = None


def _filter_of(request: SocketRequest, letters: Letters) -> SubscriptionFilter | None:
    language = request.text("filter_language") or None
    text = request.text("filter") if request.has("filter") else None
    return wanted_filter(language, text, letters)


def _join(request: SocketRequest, letters: Letters) -> Sequence[Command]:
    terms = Terms(
        request.number("window", -1, -1, _MOST_CREDIT),
        request.number("ack_timeout_ms", 0, -1, MOST_DELAY_MS),
        PUT_BACK_START,
        request.number("priority", 0, 0, _HIGHEST_PRIORITY),
    )
    return [
        Join(
            request.session,
            request,
            request.name("channel"),
            request.number("credit", -1, -1, _MOST_CREDIT),
            _filter_of(request, letters),
            terms,
            hears_lapses=True,
        )
    ]


def _leave(request: SocketRequest, _letters: Letters) -> Sequence[Command]:
    return [Leave(request.session, request, request.name("channel"))]


def _grant(request: SocketRequest, _letters: Letters) -> Sequence[Command]:
    """Set the credit, the window or both.  Only the last command is answered unless one fails."""
    channel = request.name("channel")
    session = request.session
    if not (request.has("credit") or request.has("window")):
        raise BadRequest(400, "grant needs credit, window or both")
    commands: list[Command] = []
    sets_credit = request.has("credit")
    if request.has("window"):
        window = request.number("window", -1, -1, _MOST_CREDIT)
        commands.append(SetTerms(session, None if sets_credit else request, channel, Terms(window)))
    if sets_credit:
        credit = request.number("credit", -1, -1, _MOST_CREDIT)
        commands.append(Grant(session, channel, credit, request))
    return commands


def _told(request: SocketRequest, command: Command) -> Sequence[Command]:
    """A command that is answered only if it fails and, if the client wants an answer, one after it
    that is always answered."""
    if request.ref is None:
        return [command]
    behind = SetTerms(request.session, Behind(request), request.name("channel"), Terms())
    return [command, behind]


def _ack(request: SocketRequest, _letters: Letters) -> Sequence[Command]:
    channel, queue_id = request.place
    name = request.name("id")
    return _told(request, Acknowledge(request.session, name, channel, queue_id, request=request))


def _nack(request: SocketRequest, _letters: Letters) -> Sequence[Command]:
    channel, queue_id = request.place
    reason = wanted_reason(request.text("reason"))
    name = request.name("id")
    refusal = Acknowledge(request.session, name, channel, queue_id, False, reason, request=request)
    return _told(request, refusal)


def _release(request: SocketRequest, _letters: Letters) -> Sequence[Command]:
    channel, queue_id = request.place
    release = Release(
        request.session,
        request,
        request.name("id"),
        channel,
        queue_id,
        PUT_BACK_PLACES[request.word("put_back", tuple(PUT_BACK_PLACES))],
        request.number("delay_ms", 0, 0, MOST_DELAY_MS),
    )
    return _told(request, release)


def _extend(request: SocketRequest, _letters: Letters) -> Sequence[Command]:
    channel, queue_id = request.place
    timeout_ms = request.number("timeout_ms", 0, 1, MOST_DELAY_MS)
    return [Extend(request.session, request, request.name("id"), channel, queue_id, timeout_ms)]


def _subscribe(request: SocketRequest, _letters: Letters) -> Sequence[Command]:
    return _follow(request, wanted=True)


def _unsubscribe(request: SocketRequest, _letters: Letters) -> Sequence[Command]:
    return _follow(request, wanted=False)


def _follow(request: SocketRequest, *, wanted: bool) -> Sequence[Command]:
    name = request.text("event")
    if name not in _EVENTS:
        raise BadRequest(400, f"{name[:64]!r} is not an event; there are {', '.join(_EVENTS)}")
    queue_id: int | None = None
    if request.has("queue"):
        queue_id = request.number("queue", 0, 0, MAX_QUEUE_ID)
    channel = request.name("channel")
    return [SubscribeEvent(request.session, request, _EVENTS[name], channel, queue_id, wanted)]


_CHANNEL: Final = SocketMember("text", "the channel", needed=True)
_QUEUE: Final = SocketMember("number", "the id of the queue; 0 by default")
_ID: Final = SocketMember("text", "the id of the message", needed=True)
_CREDIT: Final = SocketMember(
    "number", "the number of deliveries that may still be sent; -1: no limit"
)
_WINDOW: Final = SocketMember(
    "number", "the most unacknowledged deliveries at a time; -1: no limit"
)
_EVENT: Final = {
    "event": SocketMember("text", "the name of an event", needed=True),
    "channel": SocketMember("text", "only events of this channel"),
    "queue": SocketMember("number", "only events of this queue"),
}
_DELIVERY: Final = {"channel": _CHANNEL, "queue": _QUEUE, "id": _ID}

_ROWS: Final = (
    SocketOperation(
        name="push",
        summary="Publish a message; the broker confirms it.",
        rights=("push",),
        members={
            "channel": _CHANNEL,
            "queue": _QUEUE,
            "text": SocketMember("text", "the payload as a string"),
            "base64": SocketMember("text", "the payload in base64"),
            "id": SocketMember("text", "the id of the message; by default a new one"),
            "headers": SocketMember("object", "headers of the message, strings by name"),
            "priority": SocketMember("word", "`normal` or `high`"),
            "delay_ms": SocketMember("number", "milliseconds until it may be delivered"),
            "expires_ms": SocketMember("number", "milliseconds until it expires"),
            "confirm": SocketMember("flag", "false for no confirm"),
        },
        commands=(Push,),
    ),
    SocketOperation(
        name="join",
        summary="Consume a channel's queues, or change the terms of doing so.",
        rights=("join",),
        members={
            "channel": _CHANNEL,
            "credit": _CREDIT,
            "window": _WINDOW,
            "filter": SocketMember("text", "only messages that a filter accepts"),
            "filter_language": SocketMember("text", "the language of the filter"),
            "ack_timeout_ms": SocketMember(
                "number", "time to acknowledge; 0: the queue's timeout, -1: no limit"
            ),
            "priority": SocketMember(
                "number", "0 to 127; consumers with a higher priority are served first"
            ),
        },
        commands=(Join,),
        make=_join,
    ),
    SocketOperation(
        name="leave",
        summary="Stop consuming; unacknowledged messages can still be acknowledged.",
        members={"channel": _CHANNEL},
        commands=(Leave,),
        make=_leave,
    ),
    SocketOperation(
        name="grant",
        summary="Change the credit or the window.",
        members={"channel": _CHANNEL, "credit": _CREDIT, "window": _WINDOW},
        commands=(Grant, SetTerms),
        make=_grant,
    ),
    SocketOperation(
        name="ack",
        summary="Acknowledge a delivery.",
        rights=("answer",),
        members=_DELIVERY,
        commands=(Acknowledge,),
        make=_ack,
    ),
    SocketOperation(
        name="nack",
        summary="Refuse a delivery.",
        rights=("answer",),
        members={**_DELIVERY, "reason": SocketMember("text", "why, a line of at most 200 bytes")},
        commands=(Acknowledge,),
        make=_nack,
    ),
    SocketOperation(
        name="release",
        summary="Give a delivery back to the queue.",
        members={
            **_DELIVERY,
            "put_back": SocketMember("word", "`end` or `start` of the queue"),
            "delay_ms": SocketMember("number", "milliseconds until it is delivered again"),
        },
        commands=(Release,),
        make=_release,
    ),
    SocketOperation(
        name="extend",
        summary="Extend the acknowledgement timeout of a delivery.",
        members={
            **_DELIVERY,
            "timeout_ms": SocketMember("number", "milliseconds from now", needed=True),
        },
        commands=(Extend,),
        make=_extend,
    ),
    SocketOperation(
        name="subscribe",
        summary="Subscribe to an event.",
        rights=("subscribe",),
        members=_EVENT,
        commands=(SubscribeEvent,),
        make=_subscribe,
    ),
    SocketOperation(
        name="unsubscribe",
        summary="Unsubscribe from an event.",
        members=_EVENT,
        commands=(SubscribeEvent,),
        make=_unsubscribe,
    ),
)

#: All operations, by name.
SOCKET_OPERATIONS: Final[Mapping[str, SocketOperation]] = {each.name: each for each in _ROWS}


class RefusedRequest(Exception):  # noqa: N818 - it is an answer
    """A request that cannot be read; ``op`` and ``ref`` are the request's, as far as they can be
    read."""

    def __init__(self, detail: str, ref: str | int | None, op: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.ref = ref
        self.op = op


def read_request(data: bytes, session: int) -> SocketRequest:
    """Read the request in a text message.

    :raises RefusedRequest: when it is not a valid request.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise RefusedRequest("the message is not JSON", None, "") from None
    if not isinstance(found, dict):
        raise RefusedRequest("the message must be a JSON object", None, "")
    name, ref = found.pop("op", None), found.pop("ref", None)
    if ref is not None and not _is_ref(ref):
        words = (
            f"ref must be a whole number, or a text of at most {_MOST_REF_CHARACTERS} characters"
        )
        raise RefusedRequest(words, None, "")
    operation = SOCKET_OPERATIONS.get(name) if isinstance(name, str) else None
    if operation is None:
        known = ", ".join(SOCKET_OPERATIONS)
        raise RefusedRequest(f"op must be one of {known}", ref, "")
    for key in found:
        if key not in operation.members:
            known = ", ".join(operation.members)
            words = f"{operation.name} has no member {key[:64]!r}; there are {known}"
            raise RefusedRequest(words, ref, operation.name)
    for key, member in operation.members.items():
        if member.needed and key not in found:
            raise RefusedRequest(f"{operation.name} needs {key}", ref, operation.name)
    return SocketRequest(operation, ref, session, found)


def _is_ref(ref: object) -> bool:
    if isinstance(ref, str):
        return len(ref) <= _MOST_REF_CHARACTERS
    return isinstance(ref, int) and not isinstance(ref, bool) and abs(ref) < 1 << 53
