"""The age of the oldest waiting message of a queue."""

from __future__ import annotations

from tmqp_server.engine.model.queues import Queue

__all__ = ["oldest_since"]


def oldest_since(queue: Queue) -> float | None:
    """When the older of the first messages of both priorities arrived; None if none waits in
    memory, or if the time is unknown."""
    since: float | None = None
    if queue.high_count:
        high = queue.high.look(False)
        if high.sent_at > 0.0:
            since = high.sent_at
    if queue.regular_count:
        regular = queue.regular.look(False)
        if regular.sent_at > 0.0 and (since is None or regular.sent_at < since):
            since = regular.sent_at
    return since
