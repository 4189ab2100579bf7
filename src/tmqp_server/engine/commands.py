"""Owns the commands: everything that can be asked of the engine, in imperatives.

A door builds them from what its peers send; the io layer adds Connect, Disconnect, Block and
Unblock, the storage Synced.  ``session`` is the number of the connection that asks.  ``request``
is opaque to the engine: it comes back in the Reply, so that the door knows what is answered, and
a request of None gets no Reply at all.

Every operation is answered exactly once, errors included; the connection stays (F43).
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.message import SubscriptionFilter
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.engine.records import Record

__all__ = [
    "Acknowledge",
    "Batch",
    "Block",
    "ClearMessages",
    "Command",
    "Connect",
    "CreateChannel",
    "CreateQueue",
    "Disconnect",
    "Grant",
    "Join",
    "Leave",
    "Pull",
    "Push",
    "PushExtras",
    "RemoveChannel",
    "RemoveQueue",
    "SessionCommand",
    "Synced",
    "Unblock",
    "UpdateChannel",
    "UpdateQueue",
]


@mypyc_attr(acyclic=True)
class Command(Record):
    """Something asked of the engine."""

    __slots__ = ()


@mypyc_attr(acyclic=True)
class SessionCommand(Command):
    """Something asked by a session that is connected; from any other it is ignored and counted."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


# --- Connections ---------------------------------------------------------------------------------


class Connect(Command):
    """Make a session known.  Answered by Accept or Refuse.

    Refusals: 400 for an empty or too long client id, 503 for one that is in use (F32), 482 when
    there are too many sessions (F33).  With ``take_over`` a client that has the id already is
    closed instead (CloseSession), and its deliveries are returned like those of one that vanished.
    The door makes an id when the peer has none (F30) and trims what it read (F29).  Who may
    connect has been decided before, ``authenticated`` and ``node`` with it: that it is a slave of
    this server (F133), on the machine named ``host``; it counts only where the broker takes nodes.
    ``properties`` is what the door read, for those who decide; ``kept`` is the part of it that the
    session keeps for user code.
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


class Disconnect(SessionCommand):
    """The connection has ended, however.

    What the client had in flight is returned at each delivery's acknowledge time-out, not before
    (F99), and never lost: see ``Workflow.time_out``.
    """

    __slots__ = ()


class Block(SessionCommand):
    """The session's outbound buffer is full: send it no more until Unblock.

    Queues that keep their messages hold them; a broadcast passes the session over.
    """

    __slots__ = ()


class Unblock(SessionCommand):
    """The session's outbound buffer has drained; what was held goes on."""

    __slots__ = ()


# --- Channels ------------------------------------------------------------------------------------


class CreateChannel(SessionCommand):
    """Create a channel (F50).  481 when it exists, 400 for a bad name or option, 482."""

    __slots__ = ("request", "channel", "changes")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        changes: ChannelChanges | None = None,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.changes = changes


class UpdateChannel(SessionCommand):
    """Change options of a channel (F20).  404, 400, 406, 482, 503.

    Queues, consumers and messages that are there stay; what ``changes.queue`` says is for queues
    created from now on.
    """

    __slots__ = ("request", "channel", "changes")

    def __init__(
        self, session: int, request: object, channel: str, changes: ChannelChanges
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.changes = changes


class RemoveChannel(SessionCommand):
    """Remove a channel with its queues; consumers are simply no longer joined (F51).  404."""

    __slots__ = ("request", "channel")

    def __init__(self, session: int, request: object, channel: str) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel


class Join(SessionCommand):
    """Subscribe to a channel, and with it to all its queues (F48).

    Stored messages are delivered before the Reply, as far as one step carries.  Joining again is
    answered 0 and sets ``credit`` and ``filter`` anew.  ``credit`` is the number of deliveries
    that may be sent, -1 for no bound.  404 when there is no such channel and none is created,
    482 for the channel's client limit or the session's number of subscriptions.
    """

    __slots__ = ("request", "channel", "credit", "filter")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        credit: int = -1,
        filter: SubscriptionFilter | None = None,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.credit = credit
        self.filter = filter


class Leave(SessionCommand):
    """End a subscription (F49).  404 when there is no such channel or it was not joined.

    Deliveries in flight stay in flight and can still be acknowledged.
    """

    __slots__ = ("request", "channel")

    def __init__(self, session: int, request: object, channel: str) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel


class Grant(SessionCommand):
    """Set the delivery credit of a subscription: so many more may be sent, -1 for no bound.

    Replaces what was left.  Ignored when the session has not joined the channel.
    """

    __slots__ = ("channel", "credit")

    def __init__(self, session: int, channel: str, credit: int) -> None:
        super().__init__(session)
        self.channel = channel
        self.credit = credit


# --- Queues --------------------------------------------------------------------------------------


class CreateQueue(SessionCommand):
    """Create a queue (F54), and its channel when that is missing.

    ``changes`` is what the request asks for beyond the channel's options; ``channel_changes``
    applies only to a channel created now.  481 when the queue exists, 406 for a queue id the
    channel does not allow and for a delivery handler nobody registered, 400, 404, 482.
    """

    __slots__ = ("request", "channel", "queue_id", "changes", "channel_changes")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        changes: QueueChanges | None = None,
        channel_changes: ChannelChanges | None = None,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.changes = changes
        self.channel_changes = channel_changes


class UpdateQueue(SessionCommand):
    """Change options of a queue (F56).  404, 400, 406, 482.

    A changed status takes effect on what is stored (F92), a changed acknowledge time-out on what
    is in flight.
    """

    __slots__ = ("request", "channel", "queue_id", "changes")

    def __init__(
        self, session: int, request: object, channel: str, queue_id: int, changes: QueueChanges
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.changes = changes


class RemoveQueue(SessionCommand):
    """Remove a queue and its messages (F57, F93).  404."""

    __slots__ = ("request", "channel", "queue_id")

    def __init__(self, session: int, request: object, channel: str, queue_id: int) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id


class ClearMessages(SessionCommand):
    """Remove waiting messages of either priority, or of both, or of none (F58).  404."""

    __slots__ = ("request", "channel", "queue_id", "high_priority", "regular")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        high_priority: bool,
        regular: bool,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.high_priority = high_priority
        self.regular = regular


# --- Messages ------------------------------------------------------------------------------------


class PushExtras(Record):
    """What few pushes carry.

    ``changes`` are options for a queue that has to be created (F74).  ``expires_in_ms`` is the
    message's own time-out, 0 for the queue's.  ``delay_ms`` keeps it from being sent that long.
    ``silent`` keeps errors from being answered, for copies nobody waits for (F82).  ``nameless`` is
    the ``wire`` as it came, where the door has made the id: for queues that want none made.
    """

    __slots__ = ("changes", "expires_in_ms", "delay_ms", "silent", "nameless")

    def __init__(
        self,
        changes: QueueChanges | None = None,
        expires_in_ms: int = 0,
        delay_ms: int = 0,
        silent: bool = False,
        nameless: object = None,
    ) -> None:
        self.changes = changes
        self.expires_in_ms = expires_in_ms
        self.delay_ms = delay_ms
        self.silent = silent
        self.nameless = nameless


@mypyc_attr(acyclic=True)
class Push(SessionCommand):
    """Put a message into a queue; channel and queue are created if that is allowed (F74).

    Answered only when it fails: a Reply whose ``request`` is ``wire``, and when the producer asked
    to be told also a negative Confirm whose reason says the same (F75, contradiction 22).  404,
    401 for a stopped queue, 482, 503, 400 and 406.  ``size`` is what the message costs, in bytes.
    """

    __slots__ = (
        "message_id",
        "channel",
        "queue_id",
        "high_priority",
        "wants_confirm",
        "size",
        "wire",
        "extras",
    )

    def __init__(
        self,
        session: int,
        message_id: str,
        channel: str,
        queue_id: int,
        high_priority: bool,
        wants_confirm: bool,
        size: int,
        wire: object,
        extras: PushExtras | None = None,
    ) -> None:
        self.session = session  # not by super(): a push must not cost one more call
        self.message_id = message_id
        self.channel = channel
        self.queue_id = queue_id
        self.high_priority = high_priority
        self.wants_confirm = wants_confirm
        self.size = size
        self.wire = wire
        self.extras = extras


class Pull(SessionCommand):
    """Take messages out of a pull queue, or read a cache queue (F104-F112).

    A pull queue sends up to ``count`` DeliverPulled, then one EndPull with ``End``; or, when there
    is nothing to send, one EndPull that says why.  What waits longest comes first, with
    ``newest_first`` what came last; high priority before both.  ``clear_high`` and
    ``clear_regular`` remove what is left of these priorities afterwards; ``info`` asks to be told
    what is left.  A cache queue needs only ``request`` and answers with one AnswerPull or Reply.
    Nothing is created by asking.  A ``count`` that makes no sense is 0.  ``size`` is what the
    request costs while the pull waits, in bytes.
    """

    __slots__ = (
        "request",
        "channel",
        "queue_id",
        "count",
        "newest_first",
        "clear_high",
        "clear_regular",
        "info",
        "size",
    )

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        count: int,
        newest_first: bool = False,
        clear_high: bool = False,
        clear_regular: bool = False,
        info: bool = False,
        size: int = 0,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.count = count
        self.newest_first = newest_first
        self.clear_high = clear_high
        self.clear_regular = clear_regular
        self.info = info
        self.size = size


@mypyc_attr(acyclic=True)
class Acknowledge(SessionCommand):
    """A consumer's answer to a delivery (F95).  Never answered itself.

    One for a message the session has not in its hands is ignored and counted.  ``wire`` is what
    the door wants back when the acknowledge is passed on to the producer (F79).  One whose
    ``channel`` is none goes to the client of that id, if it has a ``wire`` (F116); ``size`` is what
    it costs, in bytes.
    """

    __slots__ = ("message_id", "channel", "queue_id", "positive", "reason", "wire", "size")

    def __init__(
        self,
        session: int,
        message_id: str,
        channel: str,
        queue_id: int,
        positive: bool = True,
        reason: str = "",
        wire: object = None,
        size: int = 0,
    ) -> None:
        self.session = session  # as in Push
        self.message_id = message_id
        self.channel = channel
        self.queue_id = queue_id
        self.positive = positive
        self.reason = reason
        self.wire = wire
        self.size = size


@mypyc_attr(acyclic=True)
class Synced(Command):
    """The storage's answer: what has this ticket is safe, or could not be saved.

    Tickets are those of Append and of the topology effects; ``count`` of them, one after the
    other, share this answer.  Only this releases a confirm for a message that is being saved, or
    the reply to an operation that changed the topology (rule 1).
    """

    __slots__ = ("ticket", "ok", "count")

    def __init__(self, ticket: int, ok: bool, count: int = 1) -> None:
        self.ticket = ticket
        self.ok = ok
        self.count = count


class Batch(SessionCommand):
    """Apply pushes and acknowledges of one session at once, or none of them.

    Everything that can be refused is checked before anything is applied; the first problem is the
    batch's answer.  406 when it holds another kind of command or another session's, 482 when it is
    too long.  Answered 0 after its effects.
    """

    __slots__ = ("request", "commands")

    def __init__(self, session: int, request: object, commands: list[Command]) -> None:
        super().__init__(session)
        self.request = request
        self.commands = commands


# --- Information ---------------------------------------------------------------------------------
