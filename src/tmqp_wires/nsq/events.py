"""The events of the decoders: commands of clients, frames of servers, and errors in either.

Names, message ids and bodies are bytes as they arrived.  Times are milliseconds unless the name
says otherwise.
"""

from __future__ import annotations

from typing import final

from tmqp_wires._compat import mypyc_attr
from tmqp_wires.nsq.identify import Negotiated

__all__ = [
    "Authenticate",
    "Close",
    "ErrorReceived",
    "Event",
    "Finish",
    "Heartbeat",
    "Identify",
    "MessageReceived",
    "Nop",
    "Publish",
    "PublishDeferred",
    "PublishMany",
    "Ready",
    "Requeue",
    "ResponseReceived",
    "Subscribe",
    "Touch",
    "Violation",
]


@mypyc_attr(allow_interpreted_subclasses=True)
class Event:
    """Something that the peer has sent; events with the same fields are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))


@final
class Violation(Event):
    """The peer has broken the protocol: send ``answer``, if there is one, and close.

    ``text`` is the error in the answer; without an answer, it is for the log.
    """

    __slots__ = ("answer", "text")

    def __init__(self, answer: bytes, text: bytes) -> None:
        self.answer = answer
        self.text = text

    def __repr__(self) -> str:
        return f"Violation({self.answer!r}, {self.text!r})"


@final
class Identify(Event):
    """IDENTIFY (N24), with the negotiated features and the answer to send."""

    __slots__ = ("answer", "negotiated")

    def __init__(self, negotiated: Negotiated, answer: bytes) -> None:
        self.negotiated = negotiated
        self.answer = answer

    def __repr__(self) -> str:
        return f"Identify({self.negotiated!r}, {self.answer!r})"


@final
class Authenticate(Event):
    """AUTH (N45)."""

    __slots__ = ("secret",)

    def __init__(self, secret: bytes) -> None:
        self.secret = secret

    def __repr__(self) -> str:
        return f"Authenticate(<{len(self.secret)} bytes>)"


@final
class Publish(Event):
    """PUB (N55)."""

    __slots__ = ("topic", "body")

    def __init__(self, topic: bytes, body: bytes) -> None:
        self.topic = topic
        self.body = body

    def __repr__(self) -> str:
        return f"Publish({self.topic!r}, {self.body!r})"


@final
class PublishMany(Event):
    """MPUB (N57): all of the messages or none."""

    __slots__ = ("topic", "bodies")

    def __init__(self, topic: bytes, bodies: list[bytes]) -> None:
        self.topic = topic
        self.bodies = bodies

    def __repr__(self) -> str:
        return f"PublishMany({self.topic!r}, {self.bodies!r})"


@final
class PublishDeferred(Event):
    """DPUB (N62)."""

    __slots__ = ("topic", "body", "delay_ms")

    def __init__(self, topic: bytes, body: bytes, delay_ms: int) -> None:
        self.topic = topic
        self.body = body
        self.delay_ms = delay_ms

    def __repr__(self) -> str:
        return f"PublishDeferred({self.topic!r}, {self.body!r}, {self.delay_ms})"


@final
class Subscribe(Event):
    """SUB (N75)."""

    __slots__ = ("topic", "channel")

    def __init__(self, topic: bytes, channel: bytes) -> None:
        self.topic = topic
        self.channel = channel

    def __repr__(self) -> str:
        return f"Subscribe({self.topic!r}, {self.channel!r})"


@final
class Ready(Event):
    """RDY (N77): how many messages may be in flight from now on."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    def __repr__(self) -> str:
        return f"Ready({self.count})"


@final
class Finish(Event):
    """FIN (N85): the message of this id, 16 bytes, is done."""

    __slots__ = ("message_id",)

    def __init__(self, message_id: bytes) -> None:
        self.message_id = message_id

    def __repr__(self) -> str:
        return f"Finish({self.message_id!r})"


@final
class Requeue(Event):
    """REQ (N85): deliver the message again after a delay, which is cut to the longest allowed
    (N89)."""

    __slots__ = ("message_id", "delay_ms")

    def __init__(self, message_id: bytes, delay_ms: int) -> None:
        self.message_id = message_id
        self.delay_ms = delay_ms

    def __repr__(self) -> str:
        return f"Requeue({self.message_id!r}, {self.delay_ms})"


@final
class Touch(Event):
    """TOUCH (N85): the consumer needs more time."""

    __slots__ = ("message_id",)

    def __init__(self, message_id: bytes) -> None:
        self.message_id = message_id

    def __repr__(self) -> str:
        return f"Touch({self.message_id!r})"


@final
class Close(Event):
    """CLS (N90): send no more messages; those in flight will still be answered."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Close()"


@final
class Nop(Event):
    """NOP (N91): a heartbeat."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Nop()"


@final
class ResponseReceived(Event):
    """A response frame: ``OK``, JSON, ``CLOSE_WAIT``."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"ResponseReceived({self.data!r})"


@final
class Heartbeat(Event):
    """The server asks for a heartbeat (N96): answer with NOP, or with any command."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Heartbeat()"


@final
class ErrorReceived(Event):
    """An error frame: its word, and the rest of its text.

    All errors but those of FIN, REQ and TOUCH end the connection (N86): ``is_fatal``.
    """

    __slots__ = ("code", "text")

    def __init__(self, code: bytes, text: bytes) -> None:
        self.code = code
        self.text = text

    @property
    def is_fatal(self) -> bool:
        """Whether the server closes the connection after it."""
        return self.code not in (b"E_FIN_FAILED", b"E_REQ_FAILED", b"E_TOUCH_FAILED")

    def __repr__(self) -> str:
        return f"ErrorReceived({self.code!r}, {self.text!r})"


@final
class MessageReceived(Event):
    """A message (N14): the time of publication in nanoseconds since 1970, the number of attempts
    including this one, its id and its body."""

    __slots__ = ("timestamp_ns", "attempts", "message_id", "body")

    def __init__(self, timestamp_ns: int, attempts: int, message_id: bytes, body: bytes) -> None:
        self.timestamp_ns = timestamp_ns
        self.attempts = attempts
        self.message_id = message_id
        self.body = body

    def __repr__(self) -> str:
        return (
            f"MessageReceived({self.timestamp_ns}, {self.attempts}, {self.message_id!r},"
            f" {self.body!r})"
        )
