"""The commands about connections and subscriptions."""

from __future__ import annotations

from typing import Literal, TypeAlias, final

from tmqp_server.engine.commands.base import Command, SessionCommand
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_server.engine.model.terms import Terms

__all__ = [
    "Block",
    "Connect",
    "CredentialKind",
    "Credentials",
    "Disconnect",
    "Extend",
    "Grant",
    "Join",
    "Leave",
    "Miss",
    "SetTerms",
    "Unblock",
]

CredentialKind: TypeAlias = Literal["token", "password", "public-key"]


@final
class Credentials:
    """The credentials of a client; the engine forwards them without reading them.

    :ivar kind: ``token``, a secret without a user; ``password``, the secret of ``user``; or
        ``public-key``, for which the door has verified that the client has the private key.
    :ivar user: the user; empty for a token.
    :ivar secret: the token, the password or the key.
    :ivar optional: treat the client as one without credentials if no entry has the key.
    """

    __slots__ = ("kind", "optional", "secret", "user")

    def __init__(
        self, kind: CredentialKind, secret: str, user: str = "", optional: bool = False
    ) -> None:
        self.kind: CredentialKind = kind
        self.secret = secret
        self.optional = optional
        self.user = user

    def __repr__(self) -> str:
        return f"Credentials({self.kind!r}, user={self.user!r})"


class Connect(Command):
    """Begin a session.  Answered by Accept or Refuse.

    Refusals: 400 for an empty or too long client id, 503 for one that is in use (F32), 482 when
    there are too many sessions (F33).  With ``take_over``, a client that already has the id is
    closed instead (CloseSession), and its deliveries are returned as after a lost connection.  The
    door makes an id when the peer has none (F30) and trims what it read (F29).  The right to
    connect was checked before, and ``authenticated`` and ``node`` were set then.  ``node`` means
    that it is a slave of this server (F133), on the machine ``host``; it has an effect only if the
    broker accepts nodes.  ``properties`` is what the door read, for authenticators; ``kept`` is the
    part of it that the session keeps for user code.  ``credentials`` are None if the client has
    none.  With ``hears_lapses``, the session and its branches are notified when they lose a
    delivery (Lapsed).
    """

    __slots__ = (
        "session",
        "request",
        "client_id",
        "name",
        "client_type",
        "door",
        "properties",
        "authenticated",
        "take_over",
        "node",
        "host",
        "kept",
        "credentials",
        "hears_lapses",
    )

    def __init__(
        self,
        session: int,
        request: object,
        client_id: str,
        name: str | None = None,
        client_type: str | None = None,
        door: str = "",
        properties: object = None,
        authenticated: bool = False,
        take_over: bool = False,
        node: bool = False,
        host: str = "",
        kept: dict[str, str] | None = None,
        credentials: Credentials | None = None,
        hears_lapses: bool = False,
    ) -> None:
        self.session = session
        self.request = request
        self.client_id = client_id
        self.name = name
        self.client_type = client_type
        self.door = door
        self.properties = properties
        self.authenticated = authenticated
        self.take_over = take_over
        self.node = node
        self.host = host
        self.kept = kept
        self.credentials = credentials
        self.hears_lapses = hears_lapses


class Disconnect(SessionCommand):
    """The connection has ended, for whatever reason.

    What the client had in flight is returned at each delivery's acknowledge timeout, not before
    (F99), and never lost: see ``Workflow.time_out``.
    """

    __slots__ = ()


class Block(SessionCommand):
    """The session's outbound buffer is full: send it nothing until Unblock.

    Queues that keep their messages hold them; a broadcast skips the session.
    """

    __slots__ = ()


class Unblock(SessionCommand):
    """The session's outbound buffer has drained; held messages are delivered."""

    __slots__ = ()


class Join(SessionCommand):
    """Subscribe to a channel, and with it to all its queues (F48).

    Stored messages are delivered before the Reply, as many as one step allows.  Joining again is
    answered 0 and replaces ``credit``, ``filter`` and those ``terms`` that are given.  ``credit``
    is the number of deliveries that may be sent, -1 for no limit.  A missing channel is created if
    it ``creates`` and the broker allows it.  400 and 482 for impossible terms, 404 if there is no
    such channel and none is created, 482 for the channel's client limit or the session's number of
    subscriptions.  With ``hears_lapses``, the session is notified from now on when it loses a
    delivery of any channel (Lapsed).
    """

    __slots__ = ("request", "channel", "credit", "filter", "terms", "creates", "hears_lapses")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        credit: int = -1,
        filter: SubscriptionFilter | None = None,
        terms: Terms | None = None,
        creates: bool = True,
        hears_lapses: bool = False,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.credit = credit
        self.filter = filter
        self.terms = terms
        self.creates = creates
        self.hears_lapses = hears_lapses


class Leave(SessionCommand):
    """End a subscription (F49).  404 if there is no such channel or the session has not joined it.

    Deliveries in flight stay in flight and can still be acknowledged.
    """

    __slots__ = ("request", "channel")

    def __init__(self, session: int, request: object, channel: str) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel


class Grant(SessionCommand):
    """Set the delivery credit of a subscription: this many more may be sent, -1 for no limit.

    Replaces what was left.  404 if the session has not joined the channel.
    """

    __slots__ = ("channel", "credit", "request")

    def __init__(self, session: int, channel: str, credit: int, request: object = None) -> None:
        super().__init__(session)
        self.channel = channel
        self.credit = credit
        self.request = request


class SetTerms(SessionCommand):
    """Change the terms of a subscription for deliveries sent from now on.

    With a smaller window, nothing is sent until enough deliveries are answered.  404 when the
    session has not joined the channel, 400 and 482 for impossible terms.
    """

    __slots__ = ("request", "channel", "terms")

    def __init__(self, session: int, request: object, channel: str, terms: Terms) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.terms = terms


class Extend(SessionCommand):
    """Give a consumer ``timeout_ms`` from now to acknowledge a delivery, but no longer than
    ``most_ms`` since it was sent, unless that is 0.

    404 if the message is not in flight, 403 if only others have it, 400 and 482 for an impossible
    time.
    """

    __slots__ = ("request", "message_id", "channel", "queue_id", "timeout_ms", "most_ms")

    def __init__(
        self,
        session: int,
        request: object,
        message_id: str,
        channel: str,
        queue_id: int,
        timeout_ms: int,
        most_ms: int = 0,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.message_id = message_id
        self.channel = channel
        self.queue_id = queue_id
        self.timeout_ms = timeout_ms
        self.most_ms = most_ms


class Miss(SessionCommand):
    """Count deliveries of broadcasts that a door did not pass on because its client is too slow.

    They become skipped ones, like those of clients whose outbound buffer is full.  Never answered;
    for a removed queue, nothing is counted.
    """

    __slots__ = ("channel", "queue_id", "count")

    def __init__(self, session: int, channel: str, queue_id: int, count: int) -> None:
        super().__init__(session)
        self.channel = channel
        self.queue_id = queue_id
        self.count = count
