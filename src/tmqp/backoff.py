"""How long a peer waits before it tries again: the same rule for clients, servers and tools.

Each failure doubles the wait, up to a limit.  Part of a wait can be random, so that the clients of
a restarted server do not all return at once.
"""

from __future__ import annotations

from typing import Final

__all__ = ["Backoff"]

#: A wait that was doubled more often exceeds every limit (and floats are finite, too).
_MOST_DOUBLINGS: Final = 64


class Backoff:
    """The waits between attempts, in seconds.

    :param least_s: the longest wait after the first failure.
    :param most_s: the longest of all waits.
    :param jitter: the random share of each wait, 0..1: 0.5 waits between half of the time and all
        of it.
    """

    __slots__ = ("jitter", "least_s", "most_s")

    def __init__(self, least_s: float, most_s: float, jitter: float = 0.5) -> None:
        self.least_s = least_s
        self.most_s = most_s
        self.jitter = jitter

    def delay_s(self, failures: int, chance: float = 0.0) -> float:
        """Return the wait after this number of consecutive failures, at least one.

        :param chance: a random number from 0 up to 1; the larger it is, the shorter is the wait.
        """
        longest_s = min(self.least_s * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.most_s)
        return longest_s * (1.0 - self.jitter * chance)
