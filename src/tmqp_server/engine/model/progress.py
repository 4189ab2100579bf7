"""The progress of a walk over all queues in portions."""

from __future__ import annotations

from tmqp_server.engine.model.counters import QueueCounters

__all__ = ["SurveyInProgress"]


class SurveyInProgress:
    """A walk over all queues: the keys of the queues that it has ``seen``, and the counters of
    those that were removed before it reached them (``left``)."""

    __slots__ = ("left", "seen")

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.left = QueueCounters()
