"""The bodies about what is kept of queues: offsets and cursors (an extension)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tmqp.models._kinds import UINT16, UINT63
from tmqp.models._model import MAX_LIST_BYTES, Model, extension, integer, text

__all__ = [
    "CursorInformation",
    "GroupOffsets",
    "KnownOffsets",
    "OffsetsInformation",
    "PartInformation",
]

#: A sequence, or -1 for none.
_SEQUENCE_OR_NONE = (-1, UINT63[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsInformation(Model):
    """What can be read of a queue; item of the answer of 711, and answer of 712 with code 416.

    Where nothing is kept, ``latest`` is the last sequence that was used and ``earliest`` the next.
    ``oldest_ms`` is when the earliest message came, in milliseconds of Unix time.  ``committed`` is
    where the cursor asked about is, -1 if there is none; ``at`` the first sequence that came at the
    time asked about or later, ``latest`` + 1 if none; both are None when nothing was asked.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    incarnation: str = field(default="", metadata=text("Incarnation"))
    earliest: int = field(default=0, metadata=integer("Earliest", UINT63))
    latest: int = field(default=0, metadata=integer("Latest", UINT63))
    count: int = field(default=0, metadata=integer("Count", UINT63))
    bytes: int = field(default=0, metadata=integer("Bytes", UINT63))
    oldest_ms: int = field(default=0, metadata=integer("Oldest", UINT63))
    committed: int | None = field(
        default=None, metadata=extension(integer("Committed", _SEQUENCE_OR_NONE))
    )
    at: int | None = field(default=None, metadata=extension(integer("At", UINT63)))


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownOffsets(Model):
    """A queue, and how far whoever asks knows it; item of the payload of 711 with ``Wait``.

    With an ``incarnation`` another queue of that name is something new.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    latest: int = field(default=0, metadata=integer("Latest", UINT63))
    incarnation: str = field(default="", metadata=text("Incarnation"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorInformation(Model):
    """A named reader of a queue; answer of 713, and item of the answers of 714 and of groups.

    It is done with everything up to ``sequence``; ``behind`` messages with ``behind_bytes`` are
    kept after that (719; else None).
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    name: str = field(metadata=text("Name"))
    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    incarnation: str = field(default="", metadata=text("Incarnation"))
    sequence: int = field(default=0, metadata=integer("Sequence", UINT63))
    behind: int | None = field(default=None, metadata=extension(integer("Behind", UINT63)))
    behind_bytes: int | None = field(
        default=None, metadata=extension(integer("BehindBytes", UINT63))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsets(Model):
    """How far a reader is with a queue; item of the payload of 718 and 720.

    With an ``incarnation`` it must be that very queue.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    incarnation: str = field(default="", metadata=text("Incarnation"))
    sequence: int = field(default=0, metadata=integer("Sequence", UINT63))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartInformation(Model):
    """A part of what is kept of a queue; item of the answer of 716.

    It has ``count`` messages with ``bytes`` from sequence ``first`` to ``last``.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    first: int = field(metadata=integer("First", UINT63))
    last: int = field(metadata=integer("Last", UINT63))
    count: int = field(default=0, metadata=integer("Count", UINT63))
    bytes: int = field(default=0, metadata=integer("Bytes", UINT63))
