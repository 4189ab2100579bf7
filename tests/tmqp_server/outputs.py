"""What a hub has for others, for tests that look at one kind of it."""

from __future__ import annotations

from typing import TypeVar

from tmqp_server.access.gate import Question
from tmqp_server.engine.effects import (
    CallHttp,
    Fetch,
    FindOffsets,
    MeasureStored,
    ReadStored,
    SplitStored,
)
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.questions import Fault, StorageQuestion

__all__ = [
    "asked_of_storage",
    "calls",
    "faults",
    "questions",
    "sent",
    "touched",
    "wants_storage",
]

_T = TypeVar("_T")


def touched(hub: Hub) -> list[int]:
    """The sessions that may have something to send, in the order they were touched."""
    return list(hub._outlets.take_touched())


def sent(hub: Hub, number: int) -> bytes:
    """Everything a session has queued; nothing for one that is gone."""
    session = hub._sessions.get(number)
    return b"" if session is None else session.data_to_send()


def _taken(hub: Hub, kind: type[_T]) -> list[_T]:
    """What is of a kind; the rest stays."""
    found = [each for each in hub.outside if isinstance(each, kind)]
    hub.outside[:] = [each for each in hub.outside if not isinstance(each, kind)]
    return found  # type: ignore[return-value]  # mypy multiplies the union


def faults(hub: Hub) -> dict[int, Exception]:
    """What went wrong since the last call, the first by session; 0 for what belongs to none."""
    found: dict[int, Exception] = {}
    for fault in _taken(hub, Fault):
        found.setdefault(fault.session, fault.error)
    return found


def questions(hub: Hub) -> list[Question]:
    """What somebody has to decide, since the last call."""
    return _taken(hub, Question)


def calls(hub: Hub) -> list[CallHttp]:
    """The HTTP calls to make, since the last call."""
    return _taken(hub, CallHttp)


def asked_of_storage(hub: Hub) -> list[StorageQuestion]:
    """What is to be read from the storage, since the last call."""
    found: list[StorageQuestion] = []
    for each in hub.take_outside():
        if isinstance(each, (Fetch, FindOffsets, MeasureStored, ReadStored, SplitStored)):
            found.append(each)
        else:
            hub.outside.append(each)
    return found


def wants_storage(hub: Hub) -> bool:
    """Whether something is to be written or read."""
    reads = (Fetch, FindOffsets, MeasureStored, ReadStored, SplitStored)
    written = hub.journal is not None and not hub.journal.is_empty
    return written or any(isinstance(each, reads) for each in hub.outside)
