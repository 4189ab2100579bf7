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
    """The session is connected; ``client_id`` is its id from now on (F31).

    ``node`` means that it forwards messages of another server's clients, under their names (F133).
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
    log.  ``address`` is that of the server that accepts clients instead, empty if there is none.
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
    """The branch is open; further effects for it have its number."""

    __slots__ = ("session", "request", "branch")

    def __init__(self, session: int, request: object, branch: int) -> None:
        self.session = session
        self.request = request
        self.branch = branch


@mypyc_attr(acyclic=True)
class BranchClosed(Effect):
    """The branch is closed; no further effects for it follow."""

    __slots__ = ("session", "request", "branch")

    def __init__(self, session: int, request: object, branch: int) -> None:
        self.session = session
        self.request = request
        self.branch = branch


@mypyc_attr(acyclic=True)
class Reply(Effect):
    """The answer to an operation, or the refusal of a push (F44, F75).

    ``code`` is a result code, 0 for success; ``body`` a snapshot, a list of snapshots or None.  The
    door knows from ``request`` whether the peer requested an answer.
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
    """The session has lost a delivery that it has not answered: an answer would get 404 or 403.
    Only sessions that requested it are notified (``hears_lapses`` of ``Connect`` and ``Join``).

    ``channel`` is the channel's real name, as in ``Deliver``; ``message_id`` and ``sequence`` are
    the message's.  ``reason`` is ``LAPSE_TIMED_OUT``, ``LAPSE_REMOVED`` if the queue was cleared or
    removed, or ``LAPSE_ANSWERED`` if a consumer at another node has answered.  This effect comes
    before the message is sent again.
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
    """A held push is decided: the later commands of ``session``, a connection, continue."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@mypyc_attr(acyclic=True)
class EventsEnded(Effect):
    """The session is no longer notified of an event, because its channel or queue was removed; TMQP
    does not tell clients.  ``channel`` is as the session spelt it."""

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
