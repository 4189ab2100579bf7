"""The commands about messages: push, pull, acknowledge, and several commands as one."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp.constants import PUT_BACK_END
from tmqp_server.engine.commands.base import Command, SessionCommand
from tmqp_server.engine.options import ChannelChanges, QueueChanges
from tmqp_server.engine.records import Record

__all__ = [
    "Acknowledge",
    "Batch",
    "CancelMessage",
    "MoveMessage",
    "Pull",
    "Push",
    "PushExtras",
    "Release",
    "RemoveMessage",
]


class PushExtras(Record):
    """What few pushes carry.

    ``changes`` are options for a queue that has to be created (F74), ``channel_changes`` those for
    its channel, where that has to be created, too; such a channel cannot have an owner.
    ``expires_in_ms`` is the message's own timeout, 0 for the queue's.  ``delay_ms`` keeps it from
    being sent that long.  ``counts_receivers`` asks how many consumers the message goes to at once;
    the Confirm says it.  ``silent`` keeps errors from being answered, for copies nobody waits for
    (F82).  ``nameless`` is the ``wire`` as it came, where the door has made the id: for queues that
    want none made.  ``wait_ms`` lets the push wait that long for room instead of being refused with
    482 or 503, -1 for as long as it takes; what its connection asks for after it waits, too
    (``PushDecided``).  ``awaits_copies`` lets the Confirm wait until the storage has the copies
    that feeds made of the message in the same step; it is negative if it cannot have them, or if
    a feed had no room for one.  ``done_confirms`` lets the Confirm go before the storage has the
    message, if the one consumer that it was sent to acknowledges it first.
    """

    __slots__ = (
        "changes",
        "expires_in_ms",
        "delay_ms",
        "silent",
        "nameless",
        "counts_receivers",
        "channel_changes",
        "wait_ms",
        "awaits_copies",
        "done_confirms",
    )

    def __init__(
        self,
        changes: QueueChanges | None = None,
        expires_in_ms: int = 0,
        delay_ms: int = 0,
        silent: bool = False,
        nameless: object = None,
        counts_receivers: bool = False,
        channel_changes: ChannelChanges | None = None,
        wait_ms: int = 0,
        awaits_copies: bool = False,
        done_confirms: bool = False,
    ) -> None:
        self.changes = changes
        self.expires_in_ms = expires_in_ms
        self.delay_ms = delay_ms
        self.silent = silent
        self.nameless = nameless
        self.counts_receivers = counts_receivers
        self.channel_changes = channel_changes
        self.wait_ms = wait_ms
        self.awaits_copies = awaits_copies
        self.done_confirms = done_confirms


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
    """A consumer's answer to a delivery (F95).

    One for a message the session has not in its hands is ignored and counted; if there is a
    ``request``, it is answered by a Reply: 404 when the message is not in flight, 403 when only
    others have it.  Nothing else is answered.  ``wire`` is what
    the door wants back when the acknowledgement is passed on to the producer (F79).  One whose
    ``channel`` is none goes to the client of that id, if it has a ``wire`` (F116); ``size`` is what
    it costs, in bytes.
    """

    __slots__ = (
        "message_id",
        "channel",
        "queue_id",
        "positive",
        "reason",
        "wire",
        "size",
        "request",
    )

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
        request: object = None,
    ) -> None:
        self.session = session  # as in Push
        self.message_id = message_id
        self.channel = channel
        self.queue_id = queue_id
        self.positive = positive
        self.reason = reason
        self.wire = wire
        self.size = size
        self.request = request


class Release(SessionCommand):
    """Give a delivery back: the message waits again, and no delivery handler is asked.

    ``put_back`` is ``PUT_BACK_START`` or ``PUT_BACK_END``; ``delay_ms`` keeps the message from
    being sent that long (no longer than ``EngineLimits.max_delay_ms``).  One that is ``counted``
    counts as a put-back (F98); any other may be given back for ever.  A message that several
    consumers have goes back when the last of them is done with it.  A queue that keeps nothing
    takes nothing back.  ``request`` is answered as that of an Acknowledge.
    """

    __slots__ = ("request", "message_id", "channel", "queue_id", "put_back", "delay_ms", "counted")

    def __init__(
        self,
        session: int,
        request: object,
        message_id: str,
        channel: str,
        queue_id: int,
        put_back: int = PUT_BACK_END,
        delay_ms: int = 0,
        counted: bool = True,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.message_id = message_id
        self.channel = channel
        self.queue_id = queue_id
        self.put_back = put_back
        self.delay_ms = delay_ms
        self.counted = counted


class Batch(SessionCommand):
    """Do pushes, acknowledges and releases of one session all together, or nothing of it.

    Everything that can be refused is checked before anything is done; the first problem is the
    batch's answer: as for single pushes, 404 for an acknowledgement of what the session has not in
    its hands, 406 when a delivery handler refuses a message or when it holds another kind of
    command or another session's, 482 when it is too long, 501 in a cluster, 503 when it cannot be
    saved.  Answered 0 when all of it is safe; nobody sees any of it before.
    """

    __slots__ = ("request", "commands")

    def __init__(self, session: int, request: object, commands: list[Command]) -> None:
        super().__init__(session)
        self.request = request
        self.commands = commands


class RemoveMessage(SessionCommand):
    """Remove the first waiting message with this id from a queue, in memory or on the disk.

    404 when none waits, 403 where only its owner consumes, 503 when too many look into queues, or
    when the message moves on, or may be on its way to the disk: then it is there soon.
    """

    __slots__ = ("request", "channel", "queue_id", "message_id")

    def __init__(
        self, session: int, request: object, channel: str, queue_id: int, message_id: str
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.message_id = message_id


class MoveMessage(SessionCommand):
    """Push a copy of the first waiting message with an id into another queue, and remove it, all
    together or nothing of it: never is it in both, or in none, also when the server is killed.

    Answered as ``RemoveMessage``, and as a batch with this ``push``: 0 when it is safe, with 406
    for the queue that it is in, 501 in a cluster.  Nobody sees the message meanwhile.
    """

    __slots__ = ("request", "channel", "queue_id", "message_id", "push")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        message_id: str,
        push: Push,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.message_id = message_id
        self.push = push


class CancelMessage(SessionCommand):
    """Remove the deferred messages with this id from a queue.

    404 when there is none, because it never was there or is due already.
    """

    __slots__ = ("request", "channel", "queue_id", "message_id")

    def __init__(
        self, session: int, request: object, channel: str, queue_id: int, message_id: str
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.message_id = message_id
