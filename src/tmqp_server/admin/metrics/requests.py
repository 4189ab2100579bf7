"""Counts the requests to the admin door."""

from __future__ import annotations

from typing import Final, final

from tmqp_server.doors.http.tally import HttpTally
from tmqp_server.engine.model.histograms import SHORT_BOUNDS_US, Histogram

__all__ = ["RequestTally"]

_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


@final
class RequestTally(HttpTally):
    """Counts answered requests.

    Attributes: ``requests`` by the template of the route, the method and the class of the status
    (``2xx``); ``seconds`` by the template.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: dict[tuple[str, str, str], int] = {}
        self.seconds: dict[str, Histogram] = {}

    def answered(self, template: str, method: str, status: int, took_s: float) -> None:
        """Count a request that has been answered."""
        known = method if method in _METHODS else "other"  # else clients could make labels
        key = (template, known, f"{status // 100}xx")
        self.requests[key] = self.requests.get(key, 0) + 1
        seconds = self.seconds.get(template)
        if seconds is None:
            seconds = self.seconds[template] = Histogram(SHORT_BOUNDS_US)
        seconds.observe(took_s)
