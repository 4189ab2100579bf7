"""The effects for the storage: saving and erasing messages and topology.

Topology effects have a ticket like ``Append`` and are answered by ``Synced`` in the same way.  A
storage keeps the order of all of them.
"""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.effects.base import Effect
from tmqp_server.engine.model.feeds import KeptFeed
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import BindingOptions, ChannelOptions, QueueOptions

__all__ = [
    "Append",
    "ClearStored",
    "CommitBatch",
    "Erase",
    "Fetch",
    "ForgetChannel",
    "ForgetQueue",
    "ForgetRouter",
    "StoreChannel",
    "StoreQueue",
    "StoreRouter",
    "StoredChange",
]


@mypyc_attr(acyclic=True)
class Append(Effect):
    """Save a message and answer with the command Synced under the same ticket (rule 1).

    Tickets rise and are never used twice.  A world without storage answers Synced(ticket, False).
    A storage keeps the order of Append and Erase.

    ``key`` is the queue's, ``sequence`` the position in it, which increases with each Append for a
    queue.  With ``old``, the message has a copy of that sequence in the queue ``old_key``: the copy
    is settled at the moment when this one is safe, not before.  A ``transient`` message is put on
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
    """Erase the message of this sequence in the queue of this key: it is settled.

    It may come before the Synced of its Append, whose ticket it has (0 if unknown); it is never
    answered.  If it ``depends``, the Append of a newer copy follows, and the erasure is void if
    that cannot be saved.
    """

    __slots__ = ("ticket", "key", "sequence", "depends")

    def __init__(self, ticket: int, key: int, sequence: int, depends: bool = False) -> None:
        self.ticket = ticket
        self.key = key
        self.sequence = sequence
        self.depends = depends


@mypyc_attr(acyclic=True)
class StoredChange(Effect):
    """A change of the topology, to be saved; answered by ``Synced``."""

    __slots__ = ("ticket",)

    def __init__(self) -> None:
        #: Given by ``Core.keep``.
        self.ticket = 0


class StoreChannel(StoredChange):
    """Save a channel that is new or has new options."""

    __slots__ = ("channel", "options")

    def __init__(self, channel: str, options: ChannelOptions) -> None:
        super().__init__()
        self.channel = channel
        self.options = options


class ForgetChannel(StoredChange):
    """Remove a channel; its queues have been forgotten before."""

    __slots__ = ("channel",)

    def __init__(self, channel: str) -> None:
        super().__init__()
        self.channel = channel


class StoreQueue(StoredChange):
    """Save a queue that is new or has new options or feeds; ``suspect`` as in ``RestoreQueue``."""

    __slots__ = ("key", "channel", "queue_id", "options", "suspect", "feeds")

    def __init__(
        self,
        key: int,
        channel: str,
        queue_id: int,
        options: QueueOptions,
        suspect: int,
        feeds: list[KeptFeed] | None = None,
    ) -> None:
        super().__init__()
        self.key = key
        self.channel = channel
        self.queue_id = queue_id
        self.options = options
        self.suspect = suspect
        self.feeds = feeds


class ForgetQueue(StoredChange):
    """Remove a queue with all its messages."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key


class StoreRouter(StoredChange):
    """Save a router that is new or has other bindings, with all its bindings in order."""

    __slots__ = ("router", "method", "bindings", "enabled")

    def __init__(
        self, router: str, method: int, bindings: list[BindingOptions], enabled: bool = True
    ) -> None:
        super().__init__()
        self.router = router
        self.method = method
        self.bindings = bindings
        self.enabled = enabled


class ForgetRouter(StoredChange):
    """Remove a router."""

    __slots__ = ("router",)

    def __init__(self, router: str) -> None:
        super().__init__()
        self.router = router


class ClearStored(StoredChange):
    """Erase messages that are on disk only, because they are settled: one priority from ``first``
    to ``last``."""

    __slots__ = ("key", "high_priority", "first", "last")

    def __init__(self, key: int, high_priority: bool, first: int, last: int) -> None:
        super().__init__()
        self.key = key
        self.high_priority = high_priority
        self.first = first
        self.last = last


class CommitBatch(StoredChange):
    """Save all of ``appended`` and erase all of ``erased``, or neither; answered by ``Synced``.

    The tickets of ``appended`` and ``erased`` are 0.  ``at`` is in monotonic seconds.
    """

    __slots__ = ("appended", "erased", "at")

    def __init__(self, appended: list[Append], erased: list[Erase], at: float) -> None:
        super().__init__()
        self.appended = appended
        self.erased = erased
        self.at = at


class Fetch(Effect):
    """Read the first messages of a queue that are on disk only; answered by ``Fetched``.

    The answer has owed messages of one priority with ``after`` < sequence <= ``last``: up to
    ``limit`` messages and ``max_bytes``, but at least one.
    """

    __slots__ = ("number", "key", "high_priority", "after", "last", "limit", "max_bytes")

    def __init__(
        self,
        number: int,
        key: int,
        high_priority: bool,
        after: int,
        last: int,
        limit: int,
        max_bytes: int,
    ) -> None:
        self.number = number
        self.key = key
        self.high_priority = high_priority
        self.after = after
        self.last = last
        self.limit = limit
        self.max_bytes = max_bytes
