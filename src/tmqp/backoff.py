"""How long a peer waits before it tries again: one rule for clients, servers and their tools.

Each failure doubles the wait, up to a bound.  Part of a wait may be left to chance, so that the
clients of a server that was restarted do not all come back at once.
"""

from __future__ import annotations

from typing import Final

__all__ = ["Backoff"]

#: Doubled more often than this, any wait is past every bound (and a float has an end too).
_MOST_DOUBLINGS: Final = 64


class Backoff:
    """The waits between attempts, in seconds.

    :param least_s: the wait after the first failure, at most.
    :param most_s: any wait, at most.
    :param jitter: the share of each wait that is left to chance, 0..1: 0.5 waits between half of it
        and all of it.
    """

    __slots__ = ("jitter", "least_s", "most_s")

    def __init__(self, least_s: float, most_s: float, jitter: float = 0.5) -> None:
        self.least_s = least_s
        self.most_s = most_s
        self.jitter = jitter

    def delay_s(self, failures: int, chance: float = 0.0) -> float:
        """Return the wait after so many failures in a row, at least one.

        :param chance: a random number from 0 up to 1; the wait is shorter the larger it is.
        """
        longest_s = min(self.least_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.most_s)
        return longest_s * (1.0 - self.jitter * chance)
