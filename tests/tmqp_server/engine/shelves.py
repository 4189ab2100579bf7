"""What must always hold of deferred messages that are on disk only."""

from __future__ import annotations

from tmqp_server.engine.model.queues import Queue
from tmqp_sim.books import shelved_in

__all__ = ["check_shelf"]


def check_shelf(queue: Queue) -> None:
    """They are in no other place of their queue, and are read in time."""
    shelf = queue.deferred.shelf
    if shelf is None:
        return
    assert len(shelved_in(queue)) == queue.deferred.on_disk()
    for line in (shelf.high, shelf.regular):
        assert sum(entry.size for entry in line.entries.values()) == line.size()
        asked = [entry for entry in line.entries.values() if entry.place < 0]
        assert bool(asked) <= bool(line.awaited)
        if len(asked) < len(line.entries) and not line.awaited:
            assert shelf.wake_at <= line.next_due()
    for tail in (queue.high_tail, queue.regular_tail):
        if tail is not None:
            for sequence in shelf.line_of(tail is queue.high_tail).entries:
                assert not tail.after < sequence <= tail.last or sequence in tail.skip
