"""Which address gets a message (N164).  Pure: times, in seconds, and chances are arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from tmqp.backoff import Backoff

__all__ = ["AllPool", "FastestPool", "HealthyPool", "Pool", "RoundRobinPool", "make_pool"]

#: A host that failed is tried again after this time, which doubles with each further failure.
_PAUSES: Final = Backoff(30.0, 900.0, 0.0)
#: The share of messages with which the fastest pool tries others than the fastest host.
_EXPLORED: Final = 0.1
#: How much a new time counts in a host's average.
_NEWEST: Final = 0.1


class Pool(Protocol):
    """Chooses addresses, and learns how they did."""

    def choose(self, now: float, chance: float) -> Sequence[int]:
        """The places of the addresses for the next message; *chance* is from 0 to 1."""

    def mark(self, place: int, ok: bool, took_s: float, now: float) -> None:
        """Tell how an address did."""


class AllPool:
    """Every address gets every message."""

    def __init__(self, count: int) -> None:
        self._all = tuple(range(count))

    def choose(self, now: float, chance: float) -> Sequence[int]:
        """All of them."""
        return self._all

    def mark(self, place: int, ok: bool, took_s: float, now: float) -> None:
        """Nothing to learn."""


class RoundRobinPool:
    """The addresses take turns, whether they work or not."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._next = -1

    def choose(self, now: float, chance: float) -> Sequence[int]:
        """The next one."""
        self._next = (self._next + 1) % self._count
        return (self._next,)

    def mark(self, place: int, ok: bool, took_s: float, now: float) -> None:
        """Nothing to learn."""


class HealthyPool:
    """The addresses that work take turns; one that failed is tried again later."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._next = -1
        self._retry_at = [0.0] * count
        self._failures = [0] * count

    def choose(self, now: float, chance: float) -> Sequence[int]:
        """The next healthy one; if none is, the next of all."""
        for _ in range(self._count):
            self._next = (self._next + 1) % self._count
            if self._retry_at[self._next] <= now:
                break
        else:
            self._next = (self._next + 1) % self._count
        return (self._next,)

    def is_healthy(self, place: int, now: float) -> bool:
        """Whether an address may be used."""
        return self._retry_at[place] <= now

    def mark(self, place: int, ok: bool, took_s: float, now: float) -> None:
        """A failure pauses an address, a success ends its pauses."""
        if ok:
            self._retry_at[place] = 0.0
            self._failures[place] = 0
        elif self._retry_at[place] <= now:
            self._failures[place] += 1
            self._retry_at[place] = now + _PAUSES.delay_s(self._failures[place])


class FastestPool(HealthyPool):
    """Mostly the healthy address that answers fastest; some messages try the others."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self._took_s = [0.0] * count

    def choose(self, now: float, chance: float) -> Sequence[int]:
        """The fastest healthy one, or another to see how it does."""
        healthy = [place for place in range(self._count) if self.is_healthy(place, now)]
        if not healthy or chance < _EXPLORED:
            return super().choose(now, chance)
        return (min(healthy, key=lambda place: self._took_s[place]),)

    def mark(self, place: int, ok: bool, took_s: float, now: float) -> None:
        """Remember how long it takes."""
        super().mark(place, ok, took_s, now)
        if ok:
            before = self._took_s[place] or took_s
            self._took_s[place] = before * (1 - _NEWEST) + took_s * _NEWEST


def make_pool(mode: str, count: int) -> Pool:
    """The pool of a mode; an unknown one sends each message to all."""
    if mode == "round-robin":
        return RoundRobinPool(count)
    if mode == "hostpool":
        return HealthyPool(count)
    if mode == "epsilon-greedy":
        return FastestPool(count)
    return AllPool(count)
