"""The body about cells, counters and values with a time to live (an extension)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from tmqp.models._kinds import UINT63
from tmqp.models._model import MAX_LIST_BYTES, Model, integer, text

__all__ = ["CellInformation"]

_UINT64: Final = (0, 2**64 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellInformation(Model):
    """A cell; answer of 757 and item of the answer of 756.

    ``key`` contains bytes that are not text as ``%xx``.  ``kind`` is ``counter`` or ``value``; a
    counter has a ``count``, a value ``bytes``.  ``timeout_ms`` is its remaining time to live,
    ``number`` its position in the order of creation in its space.  Only the answer of 757 has the
    statistics, of which the last two are about the last minute.
    """

    max_bytes: ClassVar[int] = MAX_LIST_BYTES

    key: str = field(metadata=text("Key"))
    kind: str = field(metadata=text("Kind"))
    number: int = field(default=0, metadata=integer("Number", UINT63))
    count: int = field(default=0, metadata=integer("Count", _UINT64))
    bytes: int = field(default=0, metadata=integer("Bytes", UINT63))
    timeout_ms: int = field(default=0, metadata=integer("Timeout", _UINT64))
    reads: int = field(default=0, metadata=integer("Reads", UINT63))
    writes: int = field(default=0, metadata=integer("Writes", UINT63))
    reads_per_minute: int = field(default=0, metadata=integer("ReadsPerMinute", UINT63))
    writes_per_minute: int = field(default=0, metadata=integer("WritesPerMinute", UINT63))
