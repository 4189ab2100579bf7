"""How fast queues grow, computed from two looks at all of them.

The numbers of messages are kept only while somebody sorts or filters by growth, for the next such
request some seconds later.  The first request therefore sees no growth at all.
"""

from __future__ import annotations

import math
from typing import Final, final

from tmqp_server.admin.api.filters import Fields
from tmqp_server.engine.model.snapshots import QueueSnapshot

__all__ = ["Growth"]

#: The shortest time between two compared looks, and the age at which one is useless; seconds.
_STEP_S: Final = 2.0
_LONGEST_S: Final = 60.0
#: The most queues whose number of messages is kept.
_MOST: Final = 50_000


@final
class Growth:
    """The message counts of the queues at the last looks, shared by all requests."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, int], int] = {}
        self._before_s = -math.inf
        self._latest: dict[tuple[str, int], int] = {}
        self._latest_s = -math.inf

    def fields(self, now: float) -> Fields:
        """The field ``growth``, in messages per second, for a look that begins now."""
        if now - self._latest_s > _LONGEST_S:
            self._latest = {}
        if now - self._latest_s >= _STEP_S:
            self._before, self._before_s = self._latest, self._latest_s
            self._latest, self._latest_s = {}, now
        before, latest = self._before, self._latest
        passed_s = now - self._before_s

        def growth(item: object) -> float:
            assert isinstance(item, QueueSnapshot), "the list is one of queues"
            key = item.channel, item.queue_id
            held = item.messages + item.priority_messages + item.deferred + item.in_flight
            if key not in latest and len(latest) < _MOST:
                latest[key] = held
            return (held - before.get(key, held)) / passed_s

        return {"growth": growth}
