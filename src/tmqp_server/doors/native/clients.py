"""Reads connection information, messages between clients, and subscriptions to events."""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    DEFAULT_TTL,
    EVENT_SUBSCRIBE,
    OP_ADD_BINDING,
    OP_CREATE_ROUTER,
    OP_LIST_BINDINGS,
    OP_LIST_ROUTERS,
    OP_REMOVE_BINDING,
    OP_REMOVE_ROUTER,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNAUTHORIZED,
    TARGET_NAME_PREFIX,
    TARGET_TYPE_PREFIX,
    TYPE_DIRECT_MESSAGE,
    TYPE_EVENT,
    TYPE_QUEUE_MESSAGE,
    TYPE_SERVER,
    HeaderName,
)
from tmqp.extensions import EVENT_FORM_SPECIFIED, HEADER_EVENT_FORM, OP_SET_ROUTER_ENABLED
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp_server.doors.facts import events_by_name
from tmqp_server.doors.native.http import http_message
from tmqp_server.doors.native.parameters import BadRequestError, queue_id_header
from tmqp_server.doors.port import IdSource
from tmqp_server.engine.commands import (
    BY_ID,
    BY_NAME,
    BY_TYPE,
    Command,
    Connect,
    Credentials,
    Envelope,
    HttpMessage,
    PassAnswer,
    Publish,
    Push,
    SendDirect,
    SubscribeEvent,
)
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE, ASKS_NOTHING, ASKS_RESPONSE

__all__ = [
    "RouterEnvelope",
    "address_of",
    "answer_command",
    "answered_always",
    "asked_by",
    "connect_command",
    "direct_command",
    "publish_command",
    "subscription_command",
]


_ROUTER_OPERATIONS: Final = (
    OP_LIST_ROUTERS,
    OP_CREATE_ROUTER,
    OP_REMOVE_ROUTER,
    OP_LIST_BINDINGS,
    OP_ADD_BINDING,
    OP_REMOVE_BINDING,
    OP_SET_ROUTER_ENABLED,
)

#: The events of this server, by their names.
_EVENTS: Final[dict[str, int]] = events_by_name()


def connect_command(session: int, who: ConnectionInformation, client_id: str, door: str) -> Connect:
    """The command for a client's connection information."""
    return Connect(
        session,
        None,
        client_id,
        who.name or None,
        who.type or None,
        door,
        who,
        kept=who.properties or None,
        credentials=Credentials("token", who.token) if who.token else None,
    )


def answered_always(frame: Frame, code: int = RESULT_OK) -> bool:
    """Whether a request is answered by a Response with this code even without the flag R.

    This is so for subscriptions (F127), operations on routers (F60), and direct messages that go to
    one id or whose sender is not allowed to send them (F115).
    """
    if frame.type == TYPE_DIRECT_MESSAGE:
        return code == RESULT_UNAUTHORIZED or not frame.target.startswith(
            (TARGET_NAME_PREFIX, TARGET_TYPE_PREFIX)
        )
    if frame.type == TYPE_SERVER:
        return frame.content_type in _ROUTER_OPERATIONS
    return frame.type == TYPE_EVENT


def address_of(target: str) -> tuple[int, str]:
    """Whether a target names clients by id, name or type, and that id, name or type (F113)."""
    if target.startswith(TARGET_NAME_PREFIX):
        return BY_NAME, target[len(TARGET_NAME_PREFIX) :]
    if target.startswith(TARGET_TYPE_PREFIX):
        return BY_TYPE, target[len(TARGET_TYPE_PREFIX) :]
    return BY_ID, target


class RouterEnvelope(Envelope):
    """A message for a router, which bindings forward in other forms (F124, F125).

    Each delivery takes one hop from the time to live, so a new message begins with one more (F12).
    """

    def __init__(self, session: int, frame: Frame, new_id: IdSource) -> None:
        self._session = session
        self.frame = frame
        self._new_id = new_id

    def id_of(self) -> str:
        """The message's id."""
        return self.frame.message_id

    def content_type_of(self) -> int:
        """The message's content type."""
        return self.frame.content_type

    def payload_of(self) -> bytes:
        """The message's payload."""
        return self.frame.payload

    def header(self, name: str) -> str | None:
        """The first header of this name, ignoring case (F8)."""
        return self.frame.header(name)

    def as_http(self) -> HttpMessage:
        """The message for a program that is called by HTTP."""
        return http_message(self.frame)

    def as_push(self, channel: str, queue_id: int | None, interaction: int) -> Push:
        """A new Queue Message with the same source and contents."""
        frame = self.frame
        message_id = self._new_id() if interaction == ASKS_NOTHING else frame.message_id
        queue = frame.content_type if queue_id is None else queue_id
        copy = frame.replace(
            TYPE_QUEUE_MESSAGE,
            channel,
            queue,
            message_id,
            ttl=DEFAULT_TTL + 1,
            pending_response=False,
        )
        return Push(
            self._session,
            message_id,
            channel,
            queue,
            copy.high_priority,
            interaction == ASKS_ACKNOWLEDGE,
            len(copy.raw),
            copy,
        )

    def as_direct(self, target: str, content_type: int | None, interaction: int) -> SendDirect:
        """A Direct Message; the binding decides which answers it asks for."""
        frame = self.frame
        changed = frame.replace(
            TYPE_DIRECT_MESSAGE,
            target,
            content_type,
            pending_response=interaction == ASKS_RESPONSE,
        )
        raw = changed.forwarded(frame.first_acquirer, interaction == ASKS_ACKNOWLEDGE, frame.ttl)
        wire = Frame(raw, frame.message_id, frame.source, target, len(raw) - changed.payload_size)
        by, who = address_of(target)
        return SendDirect(
            self._session, by, who, False, len(raw), wire, None, frame.message_id, interaction
        )


def publish_command(session: int, request: Frame, frame: Frame, new_id: IdSource) -> Command:
    """Pass a message to the router that its target names (F123).

    ``request``, the token, is the frame as the client sent it: without an id, no answer (F41).
    """
    return Publish(
        session, request, frame.target, len(frame.raw), RouterEnvelope(session, frame, new_id)
    )


def asked_by(frame: Frame) -> int:
    """Which answers a direct message asks for."""
    asks = ASKS_ACKNOWLEDGE if frame.pending_acknowledge else ASKS_NOTHING
    return asks | ASKS_RESPONSE if frame.pending_response else asks


def answer_command(session: int, frame: Frame, kind: int) -> PassAnswer:
    """Forward the answer to a direct message to the client that sent it."""
    return PassAnswer(session, frame.target, len(frame.raw), frame, frame.message_id, kind)


def direct_command(session: int, request: Frame, frame: Frame) -> SendDirect:
    """Send a direct message to the clients that its target names (F113, F114).

    ``request``, the token, is the frame as the client sent it: without an id, no answer (F41).
    """
    by, who = address_of(frame.target)
    return SendDirect(
        session,
        by,
        who,
        frame.first_acquirer,
        len(frame.raw),
        frame,
        request,
        frame.message_id,
        asked_by(frame),
    )


def subscription_command(session: int, frame: Frame) -> Command:
    """Subscribe to an event, or unsubscribe (F127); the frame is the token.

    :raises BadRequestError: 404 for an unknown event, 400 for an invalid queue id.
    """
    event = _EVENTS.get(frame.target)
    if event is None:
        raise BadRequestError(f"{frame.target[:32]!r} is not an event", RESULT_NOT_FOUND)
    return SubscribeEvent(
        session,
        frame,
        event,
        frame.header(HeaderName.CHANNEL_NAME) or "",
        queue_id_header(frame),
        frame.content_type == EVENT_SUBSCRIBE,
        (frame.header(HEADER_EVENT_FORM) or "").strip().lower() == EVENT_FORM_SPECIFIED,
    )
