"""When messages with a timeout are too old, over all lives of the server.

A ledger knows one life; a message that was saved outlives it, and its timeout continues while the
server is down.  The world's clock never restarts, so it is what the server's clocks are held
against.
"""

from __future__ import annotations

from typing import Final

from tmqp_sim.history import Place
from tmqp_sim.world import Violation, World

__all__ = ["Lifetimes"]

_EPSILON_S: Final = 1e-6
#: How much later than it may a push that waits is tried; and the broker, where it fails at a
#: deadline, for it rests for a second then (seed 37279).
_LATENESS_S: Final = 0.2
_FAILING_S: Final = 1.0


class Lifetimes:
    """The times at which the server took in messages, for the places that have a timeout.

    :param fails: the broker fails at a deadline now and then.
    """

    def __init__(self, world: World, places: dict[tuple[str, int], Place], *, fails: bool) -> None:
        self._world = world
        self._lateness_s = _LATENESS_S + _FAILING_S * fails
        self._timeouts = {key: place.expiry_s for key, place in places.items() if place.expiry_s}
        self._taken_in: dict[tuple[str, int], dict[str, list[float]]] = {
            key: {} for key in self._timeouts
        }
        #: How long pushes may have waited for room, before their timeouts began (seed 6098).
        self._waits: dict[tuple[tuple[str, int], str], float] = {}

    def took_in(self, key: tuple[str, int], uid: str, wait_s: float) -> None:
        """A message was pushed now, and entered its queue within *wait_s*."""
        if key in self._timeouts:
            self._taken_in[key].setdefault(uid, []).append(self._world.now)
            self._waits[key, uid] = wait_s + self._lateness_s if wait_s else 0.0

    def refused(self, key: tuple[str, int], uid: str) -> None:
        """The message that was pushed last under this id was refused."""
        if key in self._timeouts:
            self._taken_in[key][uid].pop()

    def check_sending(self, key: tuple[str, int], uid: str) -> None:
        """A message is sent now.

        :raises Violation: when all copies that were pushed are too old.
        """
        times = self._taken_in.get(key, {}).get(uid)
        if times:
            late = self._world.now - times[-1] - self._timeouts[key] - self._waits[key, uid]
            if late > _EPSILON_S:
                raise Violation("deadline", f"{uid} of {key} is sent {late:.4f} s too old")

    def too_old(self, key: tuple[str, int]) -> int:
        """How many of the messages of a place may have expired by now."""
        latest = self._world.now - self._timeouts[key] + _EPSILON_S
        return sum(at <= latest for times in self._taken_in[key].values() for at in times)
