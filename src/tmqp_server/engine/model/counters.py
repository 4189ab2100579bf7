"""Counters of a queue and of the whole broker.

No decision depends on them; only ``Queue.imbalance`` compares them with the actual messages.  Each
is changed in one module, named in ``tests/tmqp_server/engine/test_writers.py``.
"""

from __future__ import annotations

__all__ = ["BrokerCounters", "QueueCounters"]


class QueueCounters:
    """What a queue has counted since it was created or restored.

    Accepted messages are live or settled, and settled ones are counted in one of ``done``,
    ``expired``, ``dead``, ``cleared``, ``dropped`` and ``undone``.  No counter ever decreases,
    because monitoring adds up differences.  The rest are the protocol's counters (F68, F100) and
    further ones of our own.
    """

    __slots__ = (
        "accepted",
        "restored",
        "done",
        "expired",
        "dead",
        "cleared",
        "dropped",
        "undone",
        "received",
        "sent",
        "deliveries",
        "redelivered",
        "acks",
        "negative_acks",
        "unknown_acks",
        "ack_timeouts",
        "saved",
        "removed",
        "errors",
        "refused",
        "requeued",
        "released",
        "skipped",
        "missed",
        "untracked",
        "overflowed",
        "displaced",
        "damaged",
        "starved",
        "last_received",
        "last_sent",
    )

    def __init__(self) -> None:
        self.accepted = 0
        #: Those of the accepted messages that were on disk when the server started.
        self.restored = 0
        self.done = 0
        self.expired = 0
        self.dead = 0
        self.cleared = 0
        self.dropped = 0
        #: Messages of a failed commit or batch: received and accepted, but never visible.
        self.undone = 0
        self.received = 0
        self.sent = 0
        self.deliveries = 0
        #: Messages that were sent once more.
        self.redelivered = 0
        self.acks = 0
        self.negative_acks = 0
        #: Acknowledgements (also counted in acks and negative_acks) and releases that matched no
        #: message (F95).
        self.unknown_acks = 0
        self.ack_timeouts = 0
        self.saved = 0
        self.removed = 0
        self.errors = 0
        #: Pushes not accepted: by a limit, by the status, or by the handler.
        self.refused = 0
        #: Put-backs.
        self.requeued = 0
        #: Deliveries that consumers released.
        self.released = 0
        #: Deliveries of broadcasts that a blocked consumer missed.
        self.skipped = 0
        #: Those of ``deliveries`` that a door did not pass on; they are also counted in
        #: ``skipped``.
        self.missed = 0
        #: Deliveries of broadcasts to a consumer with too many unanswered ones: sent, but not
        #: tracked.
        self.untracked = 0
        #: Messages for which an ephemeral queue had no room.
        self.overflowed = 0
        #: Messages that made way for others: dropped, or dead letters.
        self.displaced = 0
        #: Messages that were on disk and cannot be read any more.
        self.damaged = 0
        #: How often messages on disk had to wait because those in memory are for consumers that are
        #: not ready (see choosing.py).
        self.starved = 0
        #: Monotonic seconds; negative for never.
        self.last_received = -1.0
        self.last_sent = -1.0

    def count_dealt(self, count: int, sent: int, wants: bool, now: float) -> None:
        """Count the messages of a run of which so many were sent, each to one consumer, while the
        others wait."""
        self.received += count
        self.last_received = now
        self.accepted += count
        if sent == 0:
            return
        self.removed += sent
        self.sent += sent
        self.deliveries += sent
        self.last_sent = now
        if not wants:
            self.done += sent

    def count_run(self, count: int, consumers: int, wants: bool, now: float) -> None:
        """Count the messages of a run that went to so many consumers immediately."""
        self.received += count
        self.last_received = now
        self.accepted += count
        self.removed += count
        if consumers == 0:
            self.dropped += count
            return
        self.sent += count
        self.deliveries += count * consumers
        self.last_sent = now
        if not wants:
            self.done += count

    def add(self, other: QueueCounters) -> None:
        """Add the counters of another queue; the times are not changed."""
        self.accepted += other.accepted
        self.done += other.done
        self.expired += other.expired
        self.dead += other.dead
        self.cleared += other.cleared
        self.dropped += other.dropped
        self.undone += other.undone
        self.received += other.received
        self.sent += other.sent
        self.deliveries += other.deliveries
        self.redelivered += other.redelivered
        self.acks += other.acks
        self.negative_acks += other.negative_acks
        self.unknown_acks += other.unknown_acks
        self.ack_timeouts += other.ack_timeouts
        self.saved += other.saved
        self.removed += other.removed
        self.errors += other.errors
        self.refused += other.refused
        self.requeued += other.requeued
        self.released += other.released
        self.skipped += other.skipped
        self.missed += other.missed
        self.untracked += other.untracked
        self.overflowed += other.overflowed
        self.displaced += other.displaced
        self.damaged += other.damaged
        self.starved += other.starved

    def settled(self) -> int:
        """The number of accepted messages that are settled."""
        return self.done + self.expired + self.dead + self.cleared + self.dropped + self.undone


class BrokerCounters:
    """The broker's counters since its creation, in addition to those of its queues."""

    __slots__ = (
        "confirms_skipped",
        "dead_lettered",
        "stray_commands",
        "unknown_acks",
        "unknown_tickets",
        "directs_skipped",
        "answers_dropped",
        "decisions_applied",
        "decisions_unknown",
        "withheld",
    )

    def __init__(self) -> None:
        #: Confirms not made because the producer had gone (F77).
        self.confirms_skipped = 0
        #: Messages moved to a dead-letter queue.
        self.dead_lettered = 0
        #: Commands of unknown sessions, such as those after a Disconnect.
        self.stray_commands = 0
        #: Acknowledges for queues that do not exist (F95).
        self.unknown_acks = 0
        #: Answers of the storage that match no request.
        self.unknown_tickets = 0
        #: Direct messages not sent to a client because its outbound buffer was full.
        self.directs_skipped = 0
        #: Responses and acknowledgements that were dropped: the client is gone, or its buffer
        #: stayed full.
        self.answers_dropped = 0
        #: Decisions of other nodes about messages that are here, and about others.
        self.decisions_applied = 0
        self.decisions_unknown = 0
        #: Messages that stay on disk because no door of this server can read them.
        self.withheld = 0
