"""The effects about messages: deliver, confirm, forward."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.effects.base import Effect
from tmqp_server.engine.model.client import Client
from tmqp_server.engine.model.message import Message

__all__ = [
    "AnswerPull",
    "Confirm",
    "Deliver",
    "DeliverPulled",
    "EndPull",
    "Forward",
    "HandOver",
    "TellNodes",
]


@mypyc_attr(acyclic=True)
class Deliver(Effect):
    """Send one message to all of ``sessions``, in this order; they get the same bytes.

    The list may be shared with other effects: never change it.  ``channel`` is the channel's real
    name, ``message.channel`` the producer's spelling of it.  ``wants_acknowledge`` tells consumers
    to answer (F94); ``first_acquirer`` is the flag of F87; ``redelivered`` is true when the message
    was sent before; ``hide_source`` blanks the producer's name (F76); ``attempt`` is the number of
    this sending, from 1; ``message.attempts`` may be higher, if the message was sent again in the
    same step.
    """

    __slots__ = (
        "sessions",
        "message",
        "channel",
        "first_acquirer",
        "wants_acknowledge",
        "redelivered",
        "hide_source",
        "attempt",
    )

    def __init__(
        self,
        sessions: list[int],
        message: Message,
        channel: str,
        first_acquirer: bool,
        wants_acknowledge: bool,
        redelivered: bool,
        hide_source: bool,
        attempt: int = 1,
    ) -> None:
        self.sessions = sessions
        self.message = message
        self.channel = channel
        self.first_acquirer = first_acquirer
        self.wants_acknowledge = wants_acknowledge
        self.redelivered = redelivered
        self.hide_source = hide_source
        self.attempt = attempt


@mypyc_attr(acyclic=True)
class DeliverPulled(Effect):
    """Send a session one message that it has pulled (F107); the rest is as in Deliver.

    ``request`` is that of the pull.  The message is number ``index``, from 1, of the ``count``
    messages that the pull reserved.  ``high_left`` and ``regular_left`` are the numbers of messages
    left, -1 if not requested.  ``channel`` is the channel's real name.
    """

    __slots__ = (
        "session",
        "request",
        "message",
        "index",
        "count",
        "first_acquirer",
        "wants_acknowledge",
        "hide_source",
        "high_left",
        "regular_left",
        "channel",
        "attempt",
    )

    def __init__(
        self,
        session: int,
        request: object,
        message: Message,
        index: int,
        count: int,
        first_acquirer: bool,
        wants_acknowledge: bool,
        hide_source: bool,
        high_left: int,
        regular_left: int,
        channel: str = "",
        attempt: int = 1,
    ) -> None:
        self.session = session
        self.request = request
        self.message = message
        self.index = index
        self.count = count
        self.first_acquirer = first_acquirer
        self.wants_acknowledge = wants_acknowledge
        self.hide_source = hide_source
        self.high_left = high_left
        self.regular_left = regular_left
        self.channel = channel
        self.attempt = attempt


@mypyc_attr(acyclic=True)
class EndPull(Effect):
    """A pull is over; ``reason`` is a word of ``NoContent``, always sent (F105, F108)."""

    __slots__ = ("session", "request", "reason")

    def __init__(self, session: int, request: object, reason: str) -> None:
        self.session = session
        self.request = request
        self.reason = reason


@mypyc_attr(acyclic=True)
class AnswerPull(Effect):
    """The answer to the pull of a cache queue: the latest message, which stays there (F112)."""

    __slots__ = ("session", "request", "message")

    def __init__(self, session: int, request: object, message: Message) -> None:
        self.session = session
        self.request = request
        self.message = message


@mypyc_attr(acyclic=True)
class Confirm(Effect):
    """Tell a producer what happened to its message; at most once for each message (F77-F80).

    ``channel`` has the producer's spelling.  ``first_acquirer`` is the message's flag at this
    moment (F78).  When a consumer's own acknowledgement is passed on, ``source`` is that consumer's
    id (empty when names are hidden) and ``forwarded`` its acknowledgement as its door brought it
    (F79); otherwise ``source`` is empty and ``forwarded`` None.  ``reason`` counts when not
    ``positive``.  ``receivers`` is how many consumers got the message immediately; -1 if not
    requested.
    """

    __slots__ = (
        "session",
        "message_id",
        "channel",
        "queue_id",
        "positive",
        "reason",
        "first_acquirer",
        "source",
        "forwarded",
        "receivers",
    )

    def __init__(
        self,
        session: int,
        message_id: str,
        channel: str,
        queue_id: int,
        positive: bool,
        reason: str,
        first_acquirer: bool,
        source: str,
        forwarded: object,
    ) -> None:
        self.session = session
        self.message_id = message_id
        self.channel = channel
        self.queue_id = queue_id
        self.positive = positive
        self.reason = reason
        self.first_acquirer = first_acquirer
        self.source = source
        self.forwarded = forwarded
        self.receivers = -1


@mypyc_attr(acyclic=True)
class Forward(Effect):
    """Forward a message from one client to others, unchanged except for its time to live (F114,
    F116, F117).

    All of ``sessions`` get the same bytes, in this order.  ``door`` is the sender's, which can read
    ``wire``.
    """

    __slots__ = ("sessions", "wire", "door")

    def __init__(self, sessions: list[int], wire: object, door: str = "") -> None:
        self.sessions = sessions
        self.wire = wire
        self.door = door


@mypyc_attr(acyclic=True)
class HandOver(Effect):
    """Give a custom message to the server's own code, if there is any (F17).

    ``client`` is its sender, ``wire`` the message as its door brought it.
    """

    __slots__ = ("session", "client", "wire")

    def __init__(self, session: int, client: Client, wire: object) -> None:
        self.session = session
        self.client = client
        self.wire = wire


@mypyc_attr(acyclic=True)
class TellNodes(Effect):
    """Notify all connected nodes that this queue has settled a message (F63).

    ``positive`` says whether its consumer accepted it.
    """

    __slots__ = ("channel", "queue_id", "message_id", "positive")

    def __init__(self, channel: str, queue_id: int, message_id: str, positive: bool) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.message_id = message_id
        self.positive = positive
