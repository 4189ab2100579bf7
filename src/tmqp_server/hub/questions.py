"""What is for somebody outside; what is asked of the storage is answered by a command."""

from __future__ import annotations

from typing import Final, TypeAlias, final

from tmqp_server.access.gate import Question
from tmqp_server.engine.commands import Command, OffsetsFound, RangeRead, RangeSplit, StoredMeasured
from tmqp_server.engine.effects import (
    CallHttp,
    DrainAsked,
    Fetch,
    FindOffsets,
    MeasureStored,
    ReadStored,
    RouterFailed,
    SplitStored,
    TellHandler,
)

__all__ = [
    "OF_STORAGE",
    "Fault",
    "Outside",
    "ReaderQuestion",
    "Refusal",
    "StorageQuestion",
    "refusal_of",
]


@final
class Fault:
    """A bug in a door: of which session, 0 for a delivery that could be encoded for nobody."""

    __slots__ = ("error", "session")

    def __init__(self, session: int, error: Exception) -> None:
        self.session = session
        self.error = error


@final
class Refusal:
    """A client was not let in: ``peer`` is where it came from, ``code`` what it was told."""

    __slots__ = ("client_id", "code", "peer")

    def __init__(self, peer: str, code: int, client_id: str) -> None:
        self.peer = peer
        self.code = code
        self.client_id = client_id


#: What readers ask, and the broker for them.
ReaderQuestion: TypeAlias = FindOffsets | MeasureStored | ReadStored | SplitStored
#: All that is asked.
StorageQuestion: TypeAlias = Fetch | ReaderQuestion
OF_STORAGE: Final = (Fetch, FindOffsets, MeasureStored, ReadStored, SplitStored)
#: What is for somebody outside, each answered by a call but for failures.
Outside: TypeAlias = (
    Question
    | CallHttp
    | DrainAsked
    | TellHandler
    | RouterFailed
    | Fault
    | Refusal
    | StorageQuestion
)


def refusal_of(asked: ReaderQuestion, code: int) -> Command:
    """The answer to a reader's question that cannot be served."""
    if isinstance(asked, ReadStored):
        return RangeRead(asked.number, code)
    if isinstance(asked, SplitStored):
        return RangeSplit(asked.number, code, [])
    if isinstance(asked, MeasureStored):
        return StoredMeasured(asked.number, code, [])
    return OffsetsFound(asked.number, code, [])
