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
    """The properties that few pushes have.

    ``changes`` are options for a queue that has to be created (F74), ``channel_changes`` those for
    its channel, where that has to be created, too; such a channel cannot have an owner.
    ``expires_in_ms`` is the message's own timeout, 0 for the queue's.  ``delay_ms`` keeps it from
    being sent that long.  ``counts_receivers`` asks how many consumers get the message immediately;
    the Confirm contains the number.  ``silent`` suppresses the answer to an error, for copies that
    nobody waits for (F82).  ``nameless`` is the ``wire`` as received, if the door created the id:
    queues that do not want an id to be created use it.  ``wait_ms`` lets the push wait that long
    for room instead of being refused with 482 or 503, -1 without a limit; later commands of its
    connection wait, too (``PushDecided``).  ``awaits_copies`` makes the Confirm wait until the
    storage has the copies that feeds made of the message in the same step; it is negative if the
    storage cannot save them, or if a feed had no room for one.  ``done_confirms`` allows the
    Confirm before the storage has the message, if the only consumer that got it acknowledges it
    first.
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

    Answered only when it fails: a Reply whose ``request`` is ``wire``, and, if the producer
    requested a confirm, also a negative Confirm with the same reason (F75, contradiction 22).  404,
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

    A pull queue sends up to ``count`` DeliverPulled, then one EndPull with ``End``; or, if there is
    nothing to send, one EndPull that says why.  The message that has waited longest comes first, or
    the newest with ``newest_first``; high priority comes first in either case.  ``clear_high`` and
    ``clear_regular`` remove what is left of these priorities afterwards; ``info`` asks for the
    numbers of messages left.  A cache queue needs only ``request`` and answers with one AnswerPull
    or Reply.  A pull creates nothing.  An invalid ``count`` is passed as 0.  ``size`` is what the
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

    If the message is not in flight to the session, the answer is ignored and counted; if there is a
    ``request``, there is a Reply: 404 if the message is not in flight, 403 if only other sessions
    have it.  There is no other Reply.  ``wire`` is returned to the door when the acknowledgement is
    passed on to the producer (F79).  If there is no channel of this name, an acknowledgement with a
    ``wire`` goes to the client whose id is ``channel`` (F116); ``size`` is what it costs, in bytes.
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
    """Return a delivery: the message waits again, without calling the delivery handler.

    ``put_back`` is ``PUT_BACK_START`` or ``PUT_BACK_END``; ``delay_ms`` keeps the message from
    being sent that long (no longer than ``EngineLimits.max_delay_ms``).  A release that is
    ``counted`` counts as a put-back (F98); others may be repeated without a limit.  A message that
    several consumers have is put back when the last of them has answered.  A queue that stores
    nothing settles the message instead.  ``request`` is answered as for Acknowledge.
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
    """Carry out pushes, acknowledgements and releases of one session all together, or none of them.

    Everything that can be refused is checked before anything is done; the first problem is the
    answer: as for single pushes, 404 for an acknowledgement of a message that is not in flight to
    the session, 406 if a delivery handler refuses a message, or for another kind of command or
    another session's, 482 if the batch is too long, 501 in a cluster, 503 if it cannot be saved.
    Answered 0 when everything is saved; nothing is visible before.
    """

    __slots__ = ("request", "commands")

    def __init__(self, session: int, request: object, commands: list[Command]) -> None:
        super().__init__(session)
        self.request = request
        self.commands = commands


class RemoveMessage(SessionCommand):
    """Remove the first waiting message with this id from a queue, in memory or on disk.

    404 if none waits, 403 if only the owner may consume, 503 if there are too many browses, or if
    the message is just moving, perhaps to the disk: then retry soon.
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
    """Push a copy of the first waiting message with an id into another queue and remove the
    original, both or neither: even if the server is killed, exactly one queue has the message.

    Answered like ``RemoveMessage``, and like a batch with this ``push``: 0 when it is saved, 406 if
    the target is the queue that it is in, 501 in a cluster.  The message is not visible meanwhile.
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

    404 if there is none, because it never existed or is due already.
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
