"""The events of a connection: what happened, in the past tense.

Every event has its own small class, so that a program can dispatch by type.  An event about a
message has it as ``frame``, with the time to live that it had on the wire.
"""

from __future__ import annotations

from tmqp.errors import RemoteProtocolError
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.runs import FrameRun

__all__ = [
    "AcknowledgeReceived",
    "ConnectionClosed",
    "CustomMessageReceived",
    "DirectMessageReceived",
    "Event",
    "EventNotificationReceived",
    "EventSubscriptionReceived",
    "HandshakeAccepted",
    "HandshakeReceived",
    "HandshakeRefused",
    "MessageDropped",
    "MessageReceived",
    "PingReceived",
    "PongReceived",
    "PreambleReceived",
    "ProtocolViolated",
    "PullCompleted",
    "PullMessageReceived",
    "PullRequestReceived",
    "QueueMessageReceived",
    "ResponseReceived",
    "RouterMessageReceived",
    "RunReceived",
    "ServerMessageReceived",
    "TerminateReceived",
]

_NACK_REASON = "Nack-Reason"


class Event:
    """Base class of all events."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


# --- Connecting ----------------------------------------------------------------------------------


class PreambleReceived(Event):
    """The peer speaks the protocol; ``preamble`` are its eight bytes (F21, F23)."""

    __slots__ = ("preamble",)

    def __init__(self, preamble: bytes) -> None:
        self.preamble = preamble

    def __repr__(self) -> str:
        return f"<PreambleReceived {self.preamble!r}>"


class HandshakeReceived(Event):
    """Server: a client introduced itself; answer with ``accept`` or ``refuse`` (F26-F33)."""

    __slots__ = ("frame", "information")

    def __init__(self, information: ConnectionInformation, frame: Frame) -> None:
        self.information = information
        self.frame = frame

    def __repr__(self) -> str:
        return f"<HandshakeReceived {self.information!r}>"


class HandshakeAccepted(Event):
    """Client: the server accepted; ``client_id`` is the client's id from now on (F31)."""

    __slots__ = ("client_id",)

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id

    def __repr__(self) -> str:
        return f"<HandshakeAccepted {self.client_id!r}>"


class HandshakeRefused(Event):
    """Client: the server refused with this result code (401, 421, 503 ...; F32, F33).

    ``address`` is the address of another server that serves clients; empty if the server sent none.
    """

    __slots__ = ("address", "code")

    def __init__(self, code: int, address: str = "") -> None:
        self.code = code
        self.address = address

    def __repr__(self) -> str:
        return f"<HandshakeRefused {self.code}>"


# --- Keep-alive ----------------------------------------------------------------------------------


class PingReceived(Event):
    """A ping arrived; the pong is already among the bytes to send (F37)."""

    __slots__ = ()


class PongReceived(Event):
    """A pong arrived (F37)."""

    __slots__ = ()


# --- Messages ------------------------------------------------------------------------------------


class MessageReceived(Event):
    """Base class of the events about one message."""

    __slots__ = ("frame",)

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.frame!r}>"


class CustomMessageReceived(MessageReceived):
    """A message of type 0x00, for user code; ignore it if there is none (F17)."""

    __slots__ = ()


class ServerMessageReceived(MessageReceived):
    """To a server: an operation.  To a client: a Server message outside the handshake (F19,
    F62)."""

    __slots__ = ()


class QueueMessageReceived(MessageReceived):
    """To a server: push this into a queue.  To a client: consume it."""

    __slots__ = ()


class RunReceived(Event):
    """Server: consecutive messages that differ only in id, payload and headers, if the program
    asked for runs (:attr:`tmqp.Connection.makes_runs`).  ``run`` replaces that many
    :class:`QueueMessageReceived` or :class:`AcknowledgeReceived`."""

    __slots__ = ("run",)

    def __init__(self, run: FrameRun) -> None:
        self.run = run

    def __repr__(self) -> str:
        return f"<RunReceived {self.run!r}>"


class DirectMessageReceived(MessageReceived):
    """A message from client to client (F113)."""

    __slots__ = ()


class RouterMessageReceived(MessageReceived):
    """A message for a router; a client gets one only from tag bindings of the original (F126)."""

    __slots__ = ()


class PullRequestReceived(MessageReceived):
    """Server: a consumer requests messages of a pull or cache queue (F104)."""

    __slots__ = ()


class AcknowledgeReceived(MessageReceived):
    """An acknowledgement, positive or negative."""

    __slots__ = ()

    @property
    def reason(self) -> str | None:
        """Why it is negative; None if it is positive (F81: any Nack-Reason header makes it so)."""
        return self.frame.header(_NACK_REASON)

    @property
    def positive(self) -> bool:
        """Whether it is positive: it has no Nack-Reason header (F81)."""
        return self.frame.header(_NACK_REASON) is None


class ResponseReceived(MessageReceived):
    """The answer to the request with the same message id (F44, F117)."""

    __slots__ = ()

    @property
    def code(self) -> int:
        """The result code; 0 is success (F18)."""
        return self.frame.content_type


class EventSubscriptionReceived(MessageReceived):
    """Server: a client subscribes to an event, or unsubscribes (F127)."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The event's name."""
        return self.frame.target

    @property
    def subscribe(self) -> bool:
        """Whether it subscribes (content type 1) or unsubscribes (any other)."""
        return self.frame.content_type == 1


class EventNotificationReceived(MessageReceived):
    """Client: something happened on the server (F129)."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The event's name: the message's source."""
        return self.frame.source

    @property
    def channel(self) -> str:
        """The channel of the event; empty for events of the server."""
        return self.frame.target

    @property
    def queue_id(self) -> int:
        """The queue of the event (MessageProduced only); otherwise 0."""
        return self.frame.content_type


class PullMessageReceived(MessageReceived):
    """Client: one message of a pull (F107).

    ``request_id`` is the pull's; ``index`` counts from one; ``count`` is the number requested, as
    reported by the server (F107).  Both are 0 if the server's headers are invalid.
    """

    __slots__ = ("count", "index", "request_id")

    def __init__(self, frame: Frame, request_id: str, index: int, count: int) -> None:
        self.frame = frame
        self.request_id = request_id
        self.index = index
        self.count = count

    def __repr__(self) -> str:
        return f"<PullMessageReceived {self.index} of {self.count} {self.frame!r}>"


class PullCompleted(MessageReceived):
    """Client: a pull is over.

    ``reason`` is the No-Content word (``End``, ``Empty``, ``Unauthorized`` ...; F105, F108), or the
    empty string if a Response ended it (a cache queue's answer or a result code: F106, F112);
    ``received`` is the number of messages that arrived.
    """

    __slots__ = ("reason", "received", "request_id")

    def __init__(self, frame: Frame, request_id: str, reason: str, received: int) -> None:
        self.frame = frame
        self.request_id = request_id
        self.reason = reason
        self.received = received

    def __repr__(self) -> str:
        return f"<PullCompleted {self.reason[:64]!r} after {self.received} {self.frame!r}>"


class MessageDropped(MessageReceived):
    """A message was read and ignored; ``reason`` is ``ttl`` (F11), ``unknown-type`` (F17) or
    ``not-for-this-role``."""

    __slots__ = ("reason",)

    def __init__(self, frame: Frame, reason: str) -> None:
        self.frame = frame
        self.reason = reason

    def __repr__(self) -> str:
        return f"<MessageDropped {self.reason} {self.frame!r}>"


# --- Ending --------------------------------------------------------------------------------------


class TerminateReceived(Event):
    """The peer announced that it closes (F40)."""

    __slots__ = ()


class ProtocolViolated(Event):
    """The peer broke the rule in ``error``.  The connection has ended; an answer, if any, is among
    the bytes to send."""

    __slots__ = ("error",)

    def __init__(self, error: RemoteProtocolError) -> None:
        self.error = error

    def __repr__(self) -> str:
        return f"<ProtocolViolated {self.error!r}>"


class ConnectionClosed(Event):
    """The last event of every connection: flush the bytes to send, then close the transport.

    ``reason`` is ``terminated``, ``end-of-stream``, ``violation``, ``refused``, ``lifeless`` (no
    answer to pings) or ``local``.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"<ConnectionClosed {self.reason}>"
