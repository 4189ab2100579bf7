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

    ``key`` is the queue's, ``sequence`` the place in it: it increases from Append to Append of a
    queue.  With ``old`` the message has a copy of that sequence in the queue ``old_key``: it is
    settled when this one is safe, at the same moment, and only then.  A ``transient`` message is
    put on disk to save memory and need not survive a restart.
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
    more); it is never answered.  One that ``depends`` is followed by the Append of a newer copy,
    and is void if that cannot be saved.
    """

    __slots__ = ("ticket", "key", "sequence", "depends")

    def __init__(self, ticket: int, key: int, sequence: int, depends: bool = False) -> None:
        self.ticket = ticket
        self.key = key
        self.sequence = sequence
        self.depends = depends


@mypyc_attr(acyclic=True)
class StoredChange(Effect):
    """A change of what the broker consists of, to be kept; answered by ``Synced``."""

    __slots__ = ("ticket",)

    def __init__(self) -> None:
        #: Given by ``Core.keep``.
        self.ticket = 0


class StoreChannel(StoredChange):
    """A channel is new or has new options."""

    __slots__ = ("channel", "options")

    def __init__(self, channel: str, options: ChannelOptions) -> None:
        super().__init__()
        self.channel = channel
        self.options = options


class ForgetChannel(StoredChange):
    """A channel is gone; its queues have been forgotten before."""

    __slots__ = ("channel",)

    def __init__(self, channel: str) -> None:
        super().__init__()
        self.channel = channel


class StoreQueue(StoredChange):
    """A queue is new or has new options or feeds; ``suspect`` is as in ``RestoreQueue``."""

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
    """A queue is gone, with all its messages."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key


class StoreRouter(StoredChange):
    """A router is new or has other bindings; all of it, the bindings in their order."""

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
    """A router is gone."""

    __slots__ = ("router",)

    def __init__(self, router: str) -> None:
        super().__init__()
        self.router = router


class ClearStored(StoredChange):
    """Messages that are on disk only are settled: one priority from ``first`` to ``last``."""

    __slots__ = ("key", "high_priority", "first", "last")

    def __init__(self, key: int, high_priority: bool, first: int, last: int) -> None:
        super().__init__()
        self.key = key
        self.high_priority = high_priority
        self.first = first
        self.last = last


class CommitBatch(StoredChange):
    """Save all these messages and forget all those, or none of it; answered by ``Synced``.

    The tickets of ``appended`` and ``erased`` are 0.  ``at`` is in monotonic seconds.
    """

    __slots__ = ("appended", "erased", "at")

    def __init__(self, appended: list[Append], erased: list[Erase], at: float) -> None:
        super().__init__()
        self.appended = appended
        self.erased = erased
        self.at = at


class Fetch(Effect):
    """Bring back the first messages of a queue that are on disk only; answered by ``Fetched``.

    Up to ``limit`` of one priority that are owed, ``after`` < sequence <= ``last``, and no more
    than ``max_bytes`` of them, but one at least.
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
