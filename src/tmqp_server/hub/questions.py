"""Items for code outside; questions to the storage are answered by a command."""

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
    """A bug in a door; ``session`` is 0 if a delivery could not be encoded."""

    __slots__ = ("error", "session")

    def __init__(self, session: int, error: Exception) -> None:
        self.session = session
        self.error = error


@final
class Refusal:
    """A client was refused: ``peer`` is its address, ``code`` the result code."""

    __slots__ = ("client_id", "code", "peer")

    def __init__(self, peer: str, code: int, client_id: str) -> None:
        self.peer = peer
        self.code = code
        self.client_id = client_id


#: The questions of readers to the storage.
ReaderQuestion: TypeAlias = FindOffsets | MeasureStored | ReadStored | SplitStored
#: All questions to the storage.
StorageQuestion: TypeAlias = Fetch | ReaderQuestion
OF_STORAGE: Final = (Fetch, FindOffsets, MeasureStored, ReadStored, SplitStored)
#: The items for code outside, each answered by a call, except failures.
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
    """The refusal of a reader's question to the storage."""
    if isinstance(asked, ReadStored):
        return RangeRead(asked.number, code)
    if isinstance(asked, SplitStored):
        return RangeSplit(asked.number, code, [])
    if isinstance(asked, MeasureStored):
        return StoredMeasured(asked.number, code, [])
    return OffsetsFound(asked.number, code, [])
