"""When requests may begin and continue: a door may limit how many run concurrently."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmqp_server.doors.http.exchange import Exchange

__all__ = ["Entrance"]


class Entrance:
    """Decides when requests of ``bounded`` routes begin; this one lets all begin at once."""

    def admit(self, exchange: Exchange, now: float) -> bool:
        """Whether a request begins now.  If not, it waits and is asked about again at its ``due``
        time, which an implementation may make earlier before it wakes the session.

        :raises BadRequest: with 503, if too many requests wait already.
        """
        return True

    def left(self, exchange: Exchange) -> None:
        """Free the place of a request that was answered or whose client no longer waits."""

    def resumes(self, now: float) -> float:
        """The time at which due handlers may continue; at most *now* if they may at once."""
        return 0.0
