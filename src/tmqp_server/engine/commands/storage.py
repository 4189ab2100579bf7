"""The commands of the storage: what is saved, what was read back, and the state of the storage.

``Restore...`` commands come before any session connects: they restore channels, queues and the rest
in the order of their creation, and create no effects for the storage.
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands.base import Command
from tmqp_server.engine.options import BindingOptions, ChannelOptions, QueueOptions
from tmqp_server.engine.records import Record

__all__ = [
    "Fetched",
    "KeptMessage",
    "RestoreChannel",
    "RestoreKeys",
    "RestoreQueue",
    "RestoreRouter",
    "StorageState",
    "Synced",
]


@mypyc_attr(acyclic=True)
class Synced(Command):
    """The storage's answer: the write with this ticket is safe, or could not be saved.

    Tickets are those of Append and of the topology effects; ``count`` consecutive ones share this
    answer.  Only this releases a confirm for a message that is being saved, or the reply to an
    operation that changed the topology (rule 1).
    """

    __slots__ = ("ticket", "ok", "count")

    def __init__(self, ticket: int, ok: bool, count: int = 1) -> None:
        self.ticket = ticket
        self.ok = ok
        self.count = count


@mypyc_attr(acyclic=True)
class KeptMessage(Record):
    """A message from the storage, decoded by its door.

    ``expires_at`` and ``due_at`` are monotonic seconds, or NEVER and AT_ONCE, and may be in the
    past.  ``door`` is the name of the door that can read it.  ``channel`` has the producer's
    spelling; it is None for a dead letter and a feed's copy, which have the address of the queue
    that they are in.  A ``transient`` message was on disk only to save memory.  ``marks`` are those
    of feeds.
    """

    __slots__ = (
        "sequence",
        "message_id",
        "source",
        "door",
        "channel",
        "size",
        "wire",
        "wants_confirm",
        "transient",
        "attempts",
        "put_backs",
        "hops",
        "expires_at",
        "due_at",
        "marks",
    )

    def __init__(
        self,
        sequence: int,
        message_id: str,
        source: str,
        door: str,
        channel: str | None,
        size: int,
        wire: object,
        wants_confirm: bool,
        transient: bool,
        attempts: int,
        put_backs: int,
        hops: int,
        expires_at: float,
        due_at: float,
        marks: int = 0,
    ) -> None:
        self.sequence = sequence
        self.message_id = message_id
        self.source = source
        self.door = door
        self.channel = channel
        self.size = size
        self.wire = wire
        self.wants_confirm = wants_confirm
        self.transient = transient
        self.attempts = attempts
        self.put_backs = put_backs
        self.hops = hops
        self.expires_at = expires_at
        self.due_at = due_at
        self.marks = marks


class Fetched(Command):
    """The answer to Fetch: the messages, in rising sequence.

    The storage has looked up to the sequence ``up_to``: every earlier message that is missing here
    is no longer owed, or could not be read.  ``withheld`` of the missing ones are intact, but no
    door of this server can read them: they stay on disk.
    """

    __slots__ = ("number", "messages", "up_to", "withheld")

    def __init__(
        self, number: int, messages: list[KeptMessage], up_to: int, withheld: int = 0
    ) -> None:
        self.number = number
        self.messages = messages
        self.up_to = up_to
        self.withheld = withheld


class StorageState(Command):
    """Whether the storage can save.  While it cannot, pushes that need it get 503."""

    __slots__ = ("ok",)

    def __init__(self, ok: bool) -> None:
        self.ok = ok


class RestoreKeys(Command):
    """Restore the highest key that a queue ever had."""

    __slots__ = ("last_key",)

    def __init__(self, last_key: int) -> None:
        self.last_key = last_key


class RestoreChannel(Command):
    """Restore a channel.

    :raises ValueError: by ``Broker.step``, if there is one of that name.
    """

    __slots__ = ("channel", "options")

    def __init__(self, channel: str, options: ChannelOptions) -> None:
        self.channel = channel
        self.options = options


class RestoreQueue(Command):
    """Restore a queue, whose messages are on disk.

    ``sequence`` is the last one used; the counts and bytes are those of owed messages.  Messages up
    to ``suspect`` may have been sent without a record of it.

    :raises ValueError: by ``Broker.step``, if there is no such channel, if the queue exists, or if
        its delivery handler is not registered.
    """

    __slots__ = (
        "key",
        "channel",
        "queue_id",
        "options",
        "sequence",
        "high_count",
        "regular_count",
        "high_bytes",
        "regular_bytes",
        "suspect",
    )

    def __init__(
        self,
        key: int,
        channel: str,
        queue_id: int,
        options: QueueOptions,
        sequence: int,
        high_count: int,
        regular_count: int,
        high_bytes: int,
        regular_bytes: int,
        suspect: int,
    ) -> None:
        self.key = key
        self.channel = channel
        self.queue_id = queue_id
        self.options = options
        self.sequence = sequence
        self.high_count = high_count
        self.regular_count = regular_count
        self.high_bytes = high_bytes
        self.regular_bytes = regular_bytes
        self.suspect = suspect


class RestoreRouter(Command):
    """Restore a router."""

    __slots__ = ("router", "method", "bindings", "enabled")

    def __init__(
        self, router: str, method: int, bindings: list[BindingOptions], enabled: bool = True
    ) -> None:
        self.router = router
        self.method = method
        self.bindings = bindings
        self.enabled = enabled
