"""When requests may begin and continue: a door may limit how many run concurrently."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmqp_server.doors.http.exchange import Exchange

__all__ = ["Entrance"]


class Entrance:
    """Lets requests of routes that are ``bounded`` begin; this one, all of them at once."""

    def admit(self, exchange: Exchange, now: float) -> bool:
        """Whether a request begins now.  Else it waits, and is asked about again at its ``due``,
        which may be made nearer when its session is woken.

        :raises BadRequest: with 503, if too many wait already.
        """
        return True

    def left(self, exchange: Exchange) -> None:
        """A request is answered, or nobody waits for the answer any more: it has no place."""

    def resumes(self, now: float) -> float:
        """When handlers may continue that are due; not later than *now* if they may at once."""
        return 0.0
