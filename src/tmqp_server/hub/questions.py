"""What is for somebody outside; what is asked of the storage is answered by a command."""

from __future__ import annotations

from typing import Final, TypeAlias

from tmqp_server.access.gate import Question
from tmqp_server.engine.commands import Command, OffsetsFound, RangeRead, RangeSplit, StoredMeasured
from tmqp_server.engine.effects import (
    CallHttp,
    Fetch,
    FindOffsets,
    MeasureStored,
    ReadStored,
    RouterFailed,
    SplitStored,
    TellHandler,
)
from tmqp_server.hub.outlets import Fault

__all__ = ["OF_STORAGE", "Outside", "ReaderQuestion", "StorageQuestion", "refusal_of"]

#: What readers ask, and the broker for them.
ReaderQuestion: TypeAlias = FindOffsets | MeasureStored | ReadStored | SplitStored
#: All that is asked.
StorageQuestion: TypeAlias = Fetch | ReaderQuestion
OF_STORAGE: Final = (Fetch, FindOffsets, MeasureStored, ReadStored, SplitStored)
#: What is for somebody outside, each answered by a call but for failures.
Outside: TypeAlias = Question | CallHttp | TellHandler | RouterFailed | Fault | StorageQuestion


def refusal_of(asked: ReaderQuestion, code: int) -> Command:
    """The answer to a reader's question that cannot be served."""
    if isinstance(asked, ReadStored):
        return RangeRead(asked.number, code)
    if isinstance(asked, SplitStored):
        return RangeSplit(asked.number, code, [])
    if isinstance(asked, MeasureStored):
        return StoredMeasured(asked.number, code, [])
    return OffsetsFound(asked.number, code, [])
