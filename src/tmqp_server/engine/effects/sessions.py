"""The effects about connections: accept, refuse, answer, close."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.effects.base import Effect

__all__ = [
    "Accept",
    "BranchClosed",
    "BranchOpened",
    "CloseSession",
    "EventsEnded",
    "Lapsed",
    "Left",
    "PushDecided",
    "Refuse",
    "Reply",
]


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

    The engine knows nothing of the session; no Disconnect need follow.  ``client_id`` is for the
    log.  ``address`` is that of the server which takes clients instead, empty if there is none.
    """

    __slots__ = ("session", "request", "code", "client_id", "address")

    def __init__(
        self, session: int, request: object, code: int, client_id: str, address: str = ""
    ) -> None:
        self.session = session
        self.request = request
        self.code = code
        self.client_id = client_id
        self.address = address


@mypyc_attr(acyclic=True)
class BranchOpened(Effect):
    """The connection's branch is known: what follows for it names its number."""

    __slots__ = ("session", "request", "branch")

    def __init__(self, session: int, request: object, branch: int) -> None:
        self.session = session
        self.request = request
        self.branch = branch


@mypyc_attr(acyclic=True)
class BranchClosed(Effect):
    """The connection's branch is over; nothing follows for it."""

    __slots__ = ("session", "request", "branch")

    def __init__(self, session: int, request: object, branch: int) -> None:
        self.session = session
        self.request = request
        self.branch = branch


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
class Left(Effect):
    """A channel that the session had joined was removed (F51); clients are not told by TMQP."""

    __slots__ = ("session", "channel")

    def __init__(self, session: int, channel: str) -> None:
        self.session = session
        self.channel = channel


@mypyc_attr(acyclic=True)
class Lapsed(Effect):
    """A delivery is the session's own no more, though it has not answered for it: an answer would
    get 404 or 403.  Only for those that want to be notified of it (``Connect``, ``Join``).

    ``channel`` is the channel's real name, as in ``Deliver``; ``message_id`` and ``sequence`` are
    the message's.  ``reason`` is ``LAPSE_TIMED_OUT``, ``LAPSE_REMOVED`` where the queue was cleared
    or is gone, or ``LAPSE_ANSWERED`` where a consumer at another node has answered.  It comes
    before the message is sent again to anybody.
    """

    __slots__ = ("session", "channel", "queue_id", "message_id", "sequence", "reason")

    def __init__(
        self,
        session: int,
        channel: str,
        queue_id: int,
        message_id: str,
        sequence: int,
        reason: str,
    ) -> None:
        self.session = session
        self.channel = channel
        self.queue_id = queue_id
        self.message_id = message_id
        self.sequence = sequence
        self.reason = reason


@mypyc_attr(acyclic=True)
class PushDecided(Effect):
    """The push that was held until there was room is held no more: what ``session``, a connection,
    has asked for after it continues."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@mypyc_attr(acyclic=True)
class EventsEnded(Effect):
    """The session is notified of an event no more, because its channel or queue was removed;
    clients are not told so by TMQP.  ``channel`` is as the session spelt it."""

    __slots__ = ("session", "event", "channel")

    def __init__(self, session: int, event: int, channel: str) -> None:
        self.session = session
        self.event = event
        self.channel = channel


@mypyc_attr(acyclic=True)
class CloseSession(Effect):
    """Close a session that the engine has already forgotten; ``reason`` is for the log."""

    __slots__ = ("session", "reason")

    def __init__(self, session: int, reason: str) -> None:
        self.session = session
        self.reason = reason
