"""The commands for reading kept messages: offsets, ranges, cursors, and the storage's answers.

Numbers are sequences: a message's position in its queue.  The engine passes the bytes of messages
through without reading them.
"""

from __future__ import annotations

from tmqp.blocks import AS_BLOCKS
from tmqp_server.engine.commands.base import Command, SessionCommand
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_server.engine.model.snapshots import KeptOffsets
from tmqp_server.engine.records import Record

__all__ = [
    "Blocks",
    "Browse",
    "CommitCursor",
    "CursorCommand",
    "KeptPart",
    "KnownQueue",
    "ListCursors",
    "ListOffsets",
    "NameStore",
    "OffsetsFound",
    "OpenCursor",
    "RangeRead",
    "RangeSplit",
    "ReadIndex",
    "ReadRange",
    "RemoveCursor",
    "RestoreCursor",
    "SplitRange",
]


class KeptPart(Record):
    """A part of the kept messages of a queue: ``count`` messages from ``first`` to ``last``."""

    __slots__ = ("first", "last", "count", "bytes")

    def __init__(self, first: int, last: int, count: int, bytes: int) -> None:
        self.first = first
        self.last = last
        self.count = count
        self.bytes = bytes


class KnownQueue(Record):
    """A queue that the client knows already, up to ``latest``.

    With an ``incarnation``, only this incarnation of the queue is meant.
    """

    __slots__ = ("channel", "queue_id", "latest", "incarnation")

    def __init__(self, channel: str, queue_id: int, latest: int, incarnation: str = "") -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.latest = latest
        self.incarnation = incarnation


# --- What clients ask ----------------------------------------------------------------------------


class ListOffsets(SessionCommand):
    """List what can be read in the queues of all channels whose name passes a filter (F53).

    If ``queue_id`` is given, only queues with this id are listed.  ``visible`` are the channels
    that the client may see; None for all.  With a ``cursor``, the answer has its position in each
    queue; with a ``timestamp_ms`` (Unix time, negative for none), the first message that arrived
    then or later.  With ``wait_ms``, the answer is held for this time, or until something differs
    from what is ``known``.
    """

    __slots__ = (
        "request",
        "filter",
        "queue_id",
        "visible",
        "cursor",
        "timestamp_ms",
        "wait_ms",
        "known",
    )

    def __init__(
        self,
        session: int,
        request: object,
        filter: str,
        queue_id: int | None = None,
        visible: frozenset[str] | None = None,
        cursor: str = "",
        timestamp_ms: int = -1,
        wait_ms: int = 0,
        known: list[KnownQueue] | None = None,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.filter = filter
        self.queue_id = queue_id
        self.visible = visible
        self.cursor = cursor
        self.timestamp_ms = timestamp_ms
        self.wait_ms = wait_ms
        self.known = [] if known is None else known


class ReadRange(SessionCommand):
    """Read the kept messages of a queue from ``first`` to ``last``, consumed or not.

    ``first`` 0 means the earliest, ``last`` 0 the latest, ``limit`` and ``max_bytes`` 0 as many as
    the server allows.  With an ``incarnation``, it must be this incarnation of the queue.  ``form``
    is one of ``tmqp.blocks`` (``AS_BLOCKS``).
    """

    __slots__ = (
        "request",
        "channel",
        "queue_id",
        "first",
        "last",
        "limit",
        "max_bytes",
        "incarnation",
        "form",
    )

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        first: int = 0,
        last: int = 0,
        limit: int = 0,
        max_bytes: int = 0,
        incarnation: str = "",
        form: int = AS_BLOCKS,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.first = first
        self.last = last
        self.limit = limit
        self.max_bytes = max_bytes
        self.incarnation = incarnation
        self.form = form


class ReadIndex(ReadRange):
    """Read what is known about the messages of such a range, without the messages themselves."""

    __slots__ = ()


class SplitRange(ReadRange):
    """Divide such a range into parts, each with at most ``limit`` messages and ``max_bytes``."""

    __slots__ = ()


class CursorCommand(SessionCommand):
    """A command about the cursors of a queue; ``incarnation`` as in :class:`ReadRange`."""

    __slots__ = ("request", "channel", "queue_id", "incarnation")

    def __init__(
        self, session: int, request: object, channel: str, queue_id: int, incarnation: str
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.incarnation = incarnation


class OpenCursor(CursorCommand):
    """Create a cursor, at the earliest kept message or after the latest; an existing one stays
    where it is."""

    __slots__ = ("cursor", "earliest")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        cursor: str,
        earliest: bool,
        incarnation: str = "",
    ) -> None:
        super().__init__(session, request, channel, queue_id, incarnation)
        self.cursor = cursor
        self.earliest = earliest


class CommitCursor(CursorCommand):
    """Move a cursor forward, created if missing: everything up to ``sequence`` is processed."""

    __slots__ = ("cursor", "sequence")

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        cursor: str,
        sequence: int,
        incarnation: str = "",
    ) -> None:
        super().__init__(session, request, channel, queue_id, incarnation)
        self.cursor = cursor
        self.sequence = sequence


class ListCursors(CursorCommand):
    """List the cursors of a queue."""

    __slots__ = ()

    def __init__(
        self, session: int, request: object, channel: str, queue_id: int, incarnation: str = ""
    ) -> None:
        super().__init__(session, request, channel, queue_id, incarnation)


class RemoveCursor(CursorCommand):
    """Remove a cursor."""

    __slots__ = ("cursor",)

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        cursor: str,
        incarnation: str = "",
    ) -> None:
        super().__init__(session, request, channel, queue_id, incarnation)
        self.cursor = cursor


# --- Answers of the storage -----------------------------------------------------------------------


class NameStore(Command):
    """Set the storage's name for itself, which is a part of each incarnation; comes before any
    session."""

    __slots__ = ("store_id",)

    def __init__(self, store_id: str) -> None:
        self.store_id = store_id


class RestoreCursor(Command):
    """Restore a cursor; nothing happens if its queue does not exist."""

    __slots__ = ("channel", "queue_id", "cursor", "sequence")

    def __init__(self, channel: str, queue_id: int, cursor: str, sequence: int) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.cursor = cursor
        self.sequence = sequence


class OffsetsFound(Command):
    """The answer to FindOffsets, in its order; empty if the code is not 0."""

    __slots__ = ("number", "code", "offsets")

    def __init__(self, number: int, code: int, offsets: list[KeptOffsets]) -> None:
        self.number = number
        self.code = code
        self.offsets = offsets


class Browse(SessionCommand):
    """Show the messages in a queue, by rising sequence, without changing anything.

    The answer has up to ``limit`` messages and ``max_bytes``, from ``first`` on; 0 means as many as
    the server shows; ``states`` are bits of ``BROWSED_...``; with a ``message_id`` only messages
    that have it, with a ``filter`` only those that it accepts.  Answered with a ``BrowseSnapshot``;
    404, and 503 if the session already has a browse in progress, or too many sessions do.
    """

    __slots__ = (
        "request",
        "channel",
        "queue_id",
        "first",
        "limit",
        "max_bytes",
        "states",
        "message_id",
        "filter",
    )

    def __init__(
        self,
        session: int,
        request: object,
        channel: str,
        queue_id: int,
        first: int,
        limit: int,
        max_bytes: int,
        states: int,
        message_id: str,
        filter: SubscriptionFilter | None = None,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id
        self.first = first
        self.limit = limit
        self.max_bytes = max_bytes
        self.states = states
        self.message_id = message_id
        self.filter = filter


class Blocks(Record):
    """Kept messages of a queue, in consecutive pieces that were not joined."""

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.size = sum([len(piece) for piece in pieces])


class RangeRead(Command):
    """The answer to ReadStored.

    With the code 416, ``offsets`` tells what is there instead.
    """

    __slots__ = ("number", "code", "blocks", "offsets")

    def __init__(
        self,
        number: int,
        code: int,
        blocks: Blocks | None = None,
        offsets: KeptOffsets | None = None,
    ) -> None:
        self.number = number
        self.code = code
        self.blocks = blocks
        self.offsets = offsets


class RangeSplit(Command):
    """The answer to SplitStored; with the code 416, ``offsets`` tells what is there instead."""

    __slots__ = ("number", "code", "parts", "offsets")

    def __init__(
        self, number: int, code: int, parts: list[KeptPart], offsets: KeptOffsets | None = None
    ) -> None:
        self.number = number
        self.code = code
        self.parts = parts
        self.offsets = offsets
