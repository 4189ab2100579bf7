"""Counters outside the queues, for monitoring: of sessions, confirms, refusals.

No decision depends on these numbers.  The counters of sessions are added when they end, so that a
sum over all sessions, including ended ones, never decreases.
"""

from __future__ import annotations

from tmqp_server.engine.model.exemplars import Exemplars
from tmqp_server.engine.model.histograms import Histogram
from tmqp_server.engine.model.message import Message, Wires
from tmqp_server.engine.model.sessions import Session

__all__ = ["EngineTally", "SessionTotals"]


class SessionTotals:
    """Sums over sessions; ``sessions`` is the number of connected ones."""

    __slots__ = (
        "sessions",
        "subscriptions",
        "pushed",
        "delivered",
        "acknowledged",
        "negative_acks",
        "unknown_acks",
    )

    def __init__(self) -> None:
        self.sessions = 0
        self.subscriptions = 0
        self.pushed = 0
        self.delivered = 0
        self.acknowledged = 0
        self.negative_acks = 0
        self.unknown_acks = 0

    def add(self, session: Session) -> None:
        """Add the counters of a session, connected or not."""
        self.pushed += session.pushed
        self.delivered += session.delivered_in_all()
        self.acknowledged += session.acknowledged
        self.negative_acks += session.negative_acks
        self.unknown_acks += session.unknown_acks

    def copy(self) -> SessionTotals:
        """A copy at this moment."""
        found = SessionTotals()
        found.sessions = self.sessions
        found.subscriptions = self.subscriptions
        found.pushed = self.pushed
        found.delivered = self.delivered
        found.acknowledged = self.acknowledged
        found.negative_acks = self.negative_acks
        found.unknown_acks = self.unknown_acks
        return found


class EngineTally:
    """What one broker has counted.

    Attributes: ``confirms``, messages whose producers got a positive confirm, and
    ``negative_confirms``; ``ended``, the sums of ended sessions by the name of their door;
    ``refusals``, refused pushes by the result code; ``published``, messages that were published to
    routers; ``latency``, how long messages waited that could not be delivered immediately, and
    ``exemplars`` of these, None unless they are kept.
    """

    __slots__ = (
        "confirms",
        "ended",
        "exemplars",
        "latency",
        "negative_confirms",
        "published",
        "refusals",
    )

    def __init__(self) -> None:
        self.confirms = 0
        self.negative_confirms = 0
        self.ended: dict[str, SessionTotals] = {}
        self.refusals: dict[int, int] = {}
        self.published = 0
        self.latency = Histogram()
        self.exemplars: Exemplars | None = None

    def keep_exemplars(self, wires: Wires) -> None:
        """Keep examples of messages that have waited, from now on."""
        if self.exemplars is None:
            self.exemplars = Exemplars(len(self.latency.counts), wires)

    def waited(self, message: Message, seconds: float, count: int, now: float) -> None:
        """Count *count* messages that have waited up to *seconds*; *message* has waited longest."""
        bucket = self.latency.observe(seconds, count)
        if self.exemplars is not None:
            self.exemplars.note(bucket, message, seconds, now)

    def count_confirms(self, count: int, positive: bool = True) -> None:
        """Count messages whose producers get a confirm."""
        if positive:
            self.confirms += count
        else:
            self.negative_confirms += count

    def count_refusal(self, code: int) -> None:
        """Count a push that is refused with this result code."""
        self.refusals[code] = self.refusals.get(code, 0) + 1

    def end(self, session: Session) -> None:
        """Add the counters of a session that has ended and left its channels."""
        totals = self.ended.get(session.door)
        if totals is None:
            totals = self.ended[session.door] = SessionTotals()
        totals.add(session)
