"""``GET /metrics``: waits for a page of metrics, and works on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tmqp_server.admin.metrics.collect import Collector, Page
from tmqp_server.admin.metrics.exposition import (
    OPENMETRICS,
    OPENMETRICS_TYPE,
    TEXT,
    TEXT_TYPE,
    wants_openmetrics,
)
from tmqp_server.admin.permitted import Permitted
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import HttpResponse
from tmqp_server.doors.http.routes import Route
from tmqp_server.engine.commands import Command, SeeMetrics

__all__ = ["metrics_route"]


def metrics_route(collector: Collector, *, anonymous: bool) -> Route:
    """The route of ``GET /metrics``, which answers in the format that the client prefers.

    :param anonymous: everybody may see them.
    """

    def begin(exchange: Exchange) -> Handler | None:
        exchange.wanted.check_query()
        return _Metrics(exchange, collector, anonymous=anonymous)

    return Route("GET", "/metrics", begin, public=anonymous, bounded=True)


class _Metrics(Permitted):
    """Waits for a page of metrics, and works on it."""

    def __init__(self, exchange: Exchange, collector: Collector, *, anonymous: bool) -> None:
        super().__init__(exchange, SeeMetrics(exchange.client.number, None))
        accept = exchange.wanted.header(b"accept") or b""
        self._form: Final = OPENMETRICS if wants_openmetrics(accept) else TEXT
        self._collector = collector
        self._page: Page | None = None
        self._anonymous = anonymous

    def start(self, now: float) -> Sequence[Command]:
        """Ask for the right, unless everybody has it."""
        if not self._anonymous:
            return super().start(now)
        self.permitted(now)
        return ()

    def permitted(self, now: float) -> None:
        """Begin with the page."""
        self._page = self._collector.page(self._form, now)
        self.due = now

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Work on it, and answer when it is complete."""
        page = self._page
        assert page is not None, "nothing else is waited for"
        self.due = page.go_on(now)
        if page.done:
            self.due = math.inf
            kind = OPENMETRICS_TYPE if self._form == OPENMETRICS else TEXT_TYPE
            self.exchange.respond(HttpResponse(200, page.text, kind))
        return ()
