"""The bodies about the kept messages of queues: offsets and cursors (an extension)."""

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
    """The sequences of a queue that can be read; item of the answer of 711, and answer of 712 with
    code 416.

    If no message is kept, ``latest`` is the last used sequence and ``earliest`` the next one.
    ``oldest_ms`` is the arrival time of the earliest message, in milliseconds of Unix time.
    ``committed`` is the position of the requested cursor, -1 if it does not exist; ``at`` is the
    first sequence that arrived at the requested time or later, ``latest`` + 1 if there is none;
    both are None if not requested.
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
    """A queue, and the last sequence that the client knows; item of the payload of 711 with
    ``Wait``.

    With an ``incarnation``, a later queue of the same name counts as new.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    latest: int = field(default=0, metadata=integer("Latest", UINT63))
    incarnation: str = field(default="", metadata=text("Incarnation"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorInformation(Model):
    """A named reader of a queue; answer of 713, and item of the answers of 714 and of groups.

    It has processed everything up to ``sequence``; ``behind`` messages with ``behind_bytes`` bytes
    are kept after that (719; otherwise None).
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
    """The position of a reader in a queue; item of the payload of 718 and 720.

    With an ``incarnation``, the queue must be the same one.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    channel: str = field(metadata=text("Channel"))
    queue: int = field(metadata=integer("Queue", UINT16))
    incarnation: str = field(default="", metadata=text("Incarnation"))
    sequence: int = field(default=0, metadata=integer("Sequence", UINT63))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartInformation(Model):
    """A part of the kept messages of a queue; item of the answer of 716.

    It has ``count`` messages of ``bytes`` bytes in total, from sequence ``first`` to ``last``.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    first: int = field(metadata=integer("First", UINT63))
    last: int = field(metadata=integer("Last", UINT63))
    count: int = field(default=0, metadata=integer("Count", UINT63))
    bytes: int = field(default=0, metadata=integer("Bytes", UINT63))
