"""How fast clients of the API may send requests: a token bucket for each client and each address.

A client that is too fast gets 429 and the time to wait; a refused request takes no tokens. This
machine's own addresses are exempt, as in ``[rates]``.
"""

from __future__ import annotations

import math
from typing import Final, final

from tmqp_server.doors.http.messages import HttpResponse, problem
from tmqp_server.shell.rates import TokenBucket, address_key, is_exempt

__all__ = ["DEAR", "Pace"]

#: As how many requests an expensive one counts.
DEAR: Final = 10
#: For how many seconds requests may be saved up.
_BURST_S: Final = 2.0
#: How many clients and addresses are remembered: those that were active last.
_MOST: Final = 2_048


@final
class Pace:
    """The buckets of one door.

    :param per_s: requests per second; 0 for no limit.
    """

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._buckets: dict[object, TokenBucket] = {}

    def meet(self, client: bytes, host: str, cost: int, now: float) -> HttpResponse | None:
        """The answer to a request that comes too soon; None for a request that may proceed."""
        if self._per_s <= 0.0 or is_exempt(host, []):
            return None
        buckets = [self._bucket(key, now) for key in (client, address_key(host))]
        wait_s = max([each.take(cost, now) for each in buckets])
        if wait_s <= 0.0:
            return None
        for each in buckets:
            each.level += cost
        again = (b"Retry-After", b"%d" % max(1, math.ceil(wait_s)))
        words = f"more than {self._per_s:g} requests a second: come again later"
        return problem(429, words, again)

    def _bucket(self, key: object, now: float) -> TokenBucket:
        found = self._buckets.pop(key, None)
        if found is None:
            found = TokenBucket(self._per_s, _BURST_S, now)
            if len(self._buckets) >= _MOST:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[key] = found
        return found
