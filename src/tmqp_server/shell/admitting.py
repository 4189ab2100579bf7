"""How long a refused client waits for its answer: longer with each refusal of its address.

The first refusal of an address is told after a quarter of a second, each further one after twice as
long, up to four seconds.  An address that was not refused for a minute begins anew.
"""

from __future__ import annotations

from typing import Final, final

from tmqp.backoff import Backoff

__all__ = ["Pauses"]

#: Seconds a refused client waits to hear of it: the first one of an address, and at most.
_PAUSES: Final = Backoff(0.25, 4.0, 0.0)
#: Seconds without a refusal after which an address begins anew.
_FORGIVEN_AFTER_S: Final = 60.0
#: Addresses whose refusals are counted; beyond them the oldest is forgotten.
_ADDRESSES: Final = 1_024


@final
class Pauses:
    """Counts the refusals of each address."""

    def __init__(self) -> None:
        self._refusals: dict[str, tuple[int, float]] = {}

    def next(self, host: str, now: float) -> float:
        """Count a refusal; returns for how many seconds its client waits."""
        count, last = self._refusals.pop(host, (0, now))
        if now - last > _FORGIVEN_AFTER_S:
            count = 0
        self._refusals[host] = (count + 1, now)
        if len(self._refusals) > _ADDRESSES:
            del self._refusals[next(iter(self._refusals))]
        return _PAUSES.delay_s(count + 1)
