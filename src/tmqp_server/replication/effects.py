"""The effects of a life (``life``): each is carried out, and its result reported, exactly once."""

from __future__ import annotations

from typing import TypeAlias

from tmqp_server.engine.records import Record
from tmqp_server.storage.log import Leader, LogEntry, LogRequest

__all__ = ["Apply", "AskLog", "Begin", "End", "Lead", "LifeEffect"]


class AskLog(Record):
    """Send a request to the log; answered by ``Life.answered`` or ``Life.unanswered`` with that
    request.
    """

    __slots__ = ("request",)

    def __init__(self, request: LogRequest) -> None:
        self.request = request


class Apply(Record):
    """Let the store apply these entries; answered by ``Life.applied``."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[LogEntry]) -> None:
        self.entries = entries


class Begin(Record):
    """Let the store make the entry with which a leader begins; answered by ``Life.begin``."""

    __slots__ = ("leader",)

    def __init__(self, leader: Leader) -> None:
        self.leader = leader


class Lead(Record):
    """Recover the store, which has everything, and serve clients."""

    __slots__ = ("leader",)

    def __init__(self, leader: Leader) -> None:
        self.leader = leader


class End(Record):
    """Answer no client any more, and close the store as after a crash; then begin a new life.

    ``needs_rebuild`` says that the log no longer has what this server has not read.
    """

    __slots__ = ("needs_rebuild", "reason")

    def __init__(self, reason: str, needs_rebuild: bool = False) -> None:
        self.reason = reason
        self.needs_rebuild = needs_rebuild


LifeEffect: TypeAlias = AskLog | Apply | Begin | Lead | End
