"""Counters of the requests of an HTTP door, for monitoring."""

from __future__ import annotations

from typing import Final

__all__ = ["NO_ROUTE", "HttpTally"]

#: The template of a request without a route.
NO_ROUTE: Final = "(none)"


class HttpTally:
    """Counts open ``streams`` of events and open ``websockets``; a subclass also counts requests.
    No decision depends on these numbers."""

    def __init__(self) -> None:
        self.streams = 0
        self.websockets = 0

    def answered(self, template: str, method: str, status: int, took_s: float) -> None:
        """Count a request that was answered, or a stream that has ended.

        :param template: the route's template, or ``NO_ROUTE``.
        :param method: the method as the client sent it; empty if the request could not be read.
        :param took_s: seconds from the head of the request to the end of the answer.
        """
