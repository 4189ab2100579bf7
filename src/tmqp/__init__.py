"""TMQP/2.0, the protocol of the Twino Messaging Queue server 3.0, without any I/O.

There are two ways to use it.  :class:`Connection` is one side of a connection: you pass in received
bytes and the current time, and it returns events and bytes to send.  :class:`FrameDecoder` and
:func:`encode` are the codec alone.  Nothing here opens a socket, reads a clock or draws a random
number; ``docs/io-contract.md`` describes the caller's duties.
"""

from __future__ import annotations

from tmqp import codec as _codec
from tmqp.codec import FrameDecoder, encode
from tmqp.connection import Connection
from tmqp.constants import (
    DocumentOperation,
    EventName,
    HeaderName,
    MessageType,
    NackReason,
    NoContent,
    Operation,
    QueueStatus,
    ResultCode,
    ServerCode,
)
from tmqp.errors import AbuseError, LocalProtocolError, RemoteProtocolError, TmqpError
from tmqp.events import (
    AcknowledgeReceived,
    ConnectionClosed,
    CustomMessageReceived,
    DirectMessageReceived,
    Event,
    EventNotificationReceived,
    EventSubscriptionReceived,
    HandshakeAccepted,
    HandshakeReceived,
    HandshakeRefused,
    MessageDropped,
    MessageReceived,
    PingReceived,
    PongReceived,
    PreambleReceived,
    ProtocolViolated,
    PullCompleted,
    PullMessageReceived,
    PullRequestReceived,
    QueueMessageReceived,
    ResponseReceived,
    RouterMessageReceived,
    RunReceived,
    ServerMessageReceived,
    TerminateReceived,
)
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp.runs import FrameRun
from tmqp.state import Role, State

__all__ = [
    "AbuseError",
    "AcknowledgeReceived",
    "Connection",
    "ConnectionClosed",
    "ConnectionInformation",
    "CustomMessageReceived",
    "DirectMessageReceived",
    "DocumentOperation",
    "Event",
    "EventName",
    "EventNotificationReceived",
    "EventSubscriptionReceived",
    "Frame",
    "FrameDecoder",
    "FrameRun",
    "HandshakeAccepted",
    "HandshakeReceived",
    "HandshakeRefused",
    "HeaderName",
    "Limits",
    "LocalProtocolError",
    "MessageDropped",
    "MessageReceived",
    "MessageType",
    "NackReason",
    "NoContent",
    "Operation",
    "PingReceived",
    "PongReceived",
    "PreambleReceived",
    "ProtocolViolated",
    "PullCompleted",
    "PullMessageReceived",
    "PullRequestReceived",
    "QueueMessageReceived",
    "QueueStatus",
    "RemoteProtocolError",
    "ResponseReceived",
    "ResultCode",
    "Role",
    "RouterMessageReceived",
    "RunReceived",
    "ServerCode",
    "ServerMessageReceived",
    "State",
    "TerminateReceived",
    "TmqpError",
    "__version__",
    "compiled",
    "encode",
]

__version__ = "0.1.0"

#: True if the hot modules of this installation were compiled (by mypyc), False if interpreted.
compiled: bool = not (_codec.__file__ or "").endswith(".py")
