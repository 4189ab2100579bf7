"""What is asked of the storage, each answered by a command."""

from __future__ import annotations

from typing import TypeAlias

from tmqp_server.engine.commands import Command, OffsetsFound, RangeRead, RangeSplit, StoredMeasured
from tmqp_server.engine.effects import Fetch, FindOffsets, MeasureStored, ReadStored, SplitStored

__all__ = ["ReaderQuestion", "StorageQuestion", "refusal_of"]

#: What readers ask, and the broker for them.
ReaderQuestion: TypeAlias = FindOffsets | MeasureStored | ReadStored | SplitStored
#: All that is asked.
StorageQuestion: TypeAlias = Fetch | ReaderQuestion


def refusal_of(asked: ReaderQuestion, code: int) -> Command:
    """The answer to a reader's question that cannot be served."""
    if isinstance(asked, ReadStored):
        return RangeRead(asked.number, code)
    if isinstance(asked, SplitStored):
        return RangeSplit(asked.number, code, [])
    if isinstance(asked, MeasureStored):
        return StoredMeasured(asked.number, code, [])
    return OffsetsFound(asked.number, code, [])
