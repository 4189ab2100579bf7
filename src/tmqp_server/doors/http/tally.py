"""Counters of the requests of an HTTP door, for monitoring."""

from __future__ import annotations

from typing import Final

__all__ = ["NO_ROUTE", "HttpTally"]

#: Stands for the route of a request that has none.
NO_ROUTE: Final = "(none)"


class HttpTally:
    """Counts the ``streams`` of events that continue and open ``websockets``; a subclass, requests
    as well.  Nothing decides by these numbers."""

    def __init__(self) -> None:
        self.streams = 0
        self.websockets = 0

    def answered(self, template: str, method: str, status: int, took_s: float) -> None:
        """A request has its answer; a stream, its end.

        :param template: that of its route, or ``NO_ROUTE``.
        :param method: as the client has sent it.
        :param took_s: seconds from the head of the request to the end of the answer.
        """
