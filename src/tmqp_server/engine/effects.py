"""Owns the effects: what the engine tells the world to do, in the order in which to do it.

An effect names sessions by number and says nothing of bytes: the door of each session turns it
into its own protocol (rule 3).  ``request`` and ``wire`` are handed back exactly as the command
brought them.
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.client import Client
from tmqp_server.engine.events import Fact
from tmqp_server.engine.message import Message
from tmqp_server.engine.records import Record

__all__ = [
    "Accept",
    "AnswerPull",
    "Append",
    "CloseSession",
    "Confirm",
    "Deliver",
    "DeliverPulled",
    "Effect",
    "EndPull",
    "Erase",
    "Forward",
    "HandOver",
    "Inform",
    "Notify",
    "Refuse",
    "Reply",
    "TellHandler",
    "TellNodes",
]


@mypyc_attr(acyclic=True)
class Effect(Record):
    """Something for the world to do."""

    __slots__ = ()


@mypyc_attr(acyclic=True)
class Accept(Effect):
    """The session is connected; ``client_id`` is its name from now on (F31).

    ``node`` says that it brings what clients of another server said, under their names (F133).
    """

    __slots__ = ("session", "request", "client_id", "node")

    def __init__(self, session: int, request: object, client_id: str, node: bool = False) -> None:
        self.session = session
        self.request = request
        self.client_id = client_id
        self.node = node


@mypyc_attr(acyclic=True)
class Refuse(Effect):
    """The session is not connected: tell it ``code`` and close it (F32, F33).

    The engine knows nothing of the session; no Disconnect need follow.
    """

    __slots__ = ("session", "request", "code")

    def __init__(self, session: int, request: object, code: int) -> None:
        self.session = session
        self.request = request
        self.code = code


@mypyc_attr(acyclic=True)
class Reply(Effect):
    """The answer to an operation, or the refusal of a push (F44, F75).

    ``code`` is a result code, 0 for success; ``body`` a snapshot, a list of snapshots or None.
    Whether the peer asked for an answer is the door's to know, from ``request``.
    """

    __slots__ = ("session", "request", "code", "body")

    def __init__(self, session: int, request: object, code: int, body: object = None) -> None:
        self.session = session
        self.request = request
        self.code = code
        self.body = body


@mypyc_attr(acyclic=True)
class Deliver(Effect):
    """Send one message to all of ``sessions``, which get the very same bytes, in this order.

    The list may be shared with other effects: never change it.  ``channel`` is the channel's real
    name, ``message.channel`` the producer's spelling of it.  ``wants_acknowledge`` tells consumers
    to answer (F94); ``first_acquirer`` is the flag of F87; ``redelivered`` is true when the
    message was sent before; ``hide_source`` blanks the producer's name (F76).
    """

    __slots__ = (
        "sessions",
        "message",
        "channel",
        "first_acquirer",
        "wants_acknowledge",
        "redelivered",
        "hide_source",
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
    ) -> None:
        self.sessions = sessions
        self.message = message
        self.channel = channel
        self.first_acquirer = first_acquirer
        self.wants_acknowledge = wants_acknowledge
        self.redelivered = redelivered
        self.hide_source = hide_source


@mypyc_attr(acyclic=True)
class DeliverPulled(Effect):
    """Send a session one message that it has pulled (F107); the rest is as in Deliver.

    ``request`` is the pull's.  It is number ``index``, from 1, of ``count`` that the pull set out
    to send.  ``high_left`` and ``regular_left`` are what waits after it, -1 where nobody asked.
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


@mypyc_attr(acyclic=True)
class EndPull(Effect):
    """A pull is over; ``reason`` is a word of ``NoContent``, always told (F105, F108)."""

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
    """Tell a producer what became of its message; at most once a message (F77-F80).

    ``channel`` is the message's spelling.  ``first_acquirer`` is the message's flag at this moment
    (F78).  When a consumer's own acknowledge is passed on, ``source`` is that consumer's id (empty
    when names are hidden) and ``forwarded`` its acknowledge as its door brought it (F79);
    otherwise ``source`` is empty and ``forwarded`` None.  ``reason`` counts when not ``positive``.
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


@mypyc_attr(acyclic=True)
class Append(Effect):
    """Save a message and answer with the command Synced under the same ticket (rule 1).

    Tickets rise and are never used twice.  A world without storage answers Synced(ticket, False).
    A storage keeps the order of Append and Erase.

    ``key`` is the queue's, ``sequence`` the place in it: it rises from Append to Append of a queue.
    With ``old`` the message has a copy of that sequence in the queue ``old_key``: it is settled
    when this one is safe, at the same moment, and only then.  A ``transient`` message is put on
    disk to save memory and need not survive a restart.
    """

    __slots__ = (
        "ticket",
        "message",
        "channel",
        "queue_id",
        "key",
        "sequence",
        "transient",
        "old_key",
        "old",
    )

    def __init__(
        self,
        ticket: int,
        message: Message,
        channel: str,
        queue_id: int,
        key: int,
        sequence: int,
        transient: bool,
        old_key: int,
        old: int,
    ) -> None:
        self.ticket = ticket
        self.message = message
        self.channel = channel
        self.queue_id = queue_id
        self.key = key
        self.sequence = sequence
        self.transient = transient
        self.old_key = old_key
        self.old = old


@mypyc_attr(acyclic=True)
class Erase(Effect):
    """The message of this sequence in the queue of this key is settled and need not be kept.

    May come before the Synced of its Append, whose ticket it bears (0 when that is not known any
    more); it is never answered.
    """

    __slots__ = ("ticket", "key", "sequence")

    def __init__(self, ticket: int, key: int, sequence: int) -> None:
        self.ticket = ticket
        self.key = key
        self.sequence = sequence


@mypyc_attr(acyclic=True)
class CloseSession(Effect):
    """Close a session that the engine has already forgotten; ``reason`` is for the log."""

    __slots__ = ("session", "reason")

    def __init__(self, session: int, reason: str) -> None:
        self.session = session
        self.reason = reason


@mypyc_attr(acyclic=True)
class Forward(Effect):
    """Pass on what one client said to others, as it came and one hop older (F114, F116, F117).

    All of ``sessions`` get the very same bytes, in this order.
    """

    __slots__ = ("sessions", "wire")

    def __init__(self, sessions: list[int], wire: object) -> None:
        self.sessions = sessions
        self.wire = wire


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
class Inform(Effect):
    """Tell subscribers of an event (F129); all of ``sessions`` get the very same bytes.

    ``channel`` is the channel as these subscribers spelt it, empty for events of the server;
    ``specified`` says that they want the form of the specification.
    """

    __slots__ = ("sessions", "event", "fact", "channel", "specified")

    def __init__(
        self, sessions: list[int], event: int, fact: Fact, channel: str, specified: bool
    ) -> None:
        self.sessions = sessions
        self.event = event
        self.fact = fact
        self.channel = channel
        self.specified = specified


@mypyc_attr(acyclic=True)
class Notify(Effect):
    """Something happened: ``event`` is one bit of ``events.py``, ``fact`` what it is about."""

    __slots__ = ("event", "fact")

    def __init__(self, event: int, fact: Fact) -> None:
        self.event = event
        self.fact = fact


@mypyc_attr(acyclic=True)
class TellHandler(Effect):
    """Something happened in a channel that has this event handler; otherwise as ``Notify``."""

    __slots__ = ("handler", "event", "fact")

    def __init__(self, handler: str, event: int, fact: Fact) -> None:
        self.handler = handler
        self.event = event
        self.fact = fact


@mypyc_attr(acyclic=True)
class TellNodes(Effect):
    """Tell all nodes connected that this queue is done with a message (F63).

    ``positive`` says whether its consumer accepted it.
    """

    __slots__ = ("channel", "queue_id", "message_id", "positive")

    def __init__(self, channel: str, queue_id: int, message_id: str, positive: bool) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.message_id = message_id
        self.positive = positive
