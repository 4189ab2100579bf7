"""``GET /metrics``: collects a page of metrics and sends it."""

from __future__ import annotations

import math
import zlib
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

#: A larger page is compressed if the client accepts that; and the bytes compressed in one step.
_LARGE: Final = 65_536
_STEP: Final = 32_768
#: The fastest level, and zlib's window size for gzip's format.
_LEVEL: Final = 1
_GZIP: Final = 31
_VARY: Final = (b"Vary", b"Accept, Accept-Encoding")


def metrics_route(collector: Collector, *, anonymous: bool) -> Route:
    """The route of ``GET /metrics``, which answers in the format that the client prefers.

    :param anonymous: whether clients may see them without credentials.
    """

    def begin(exchange: Exchange) -> Handler | None:
        exchange.wanted.check_query()
        return _Metrics(exchange, collector, anonymous=anonymous)

    return Route("GET", "/metrics", begin, public=anonymous, bounded=True)


class _Metrics(Permitted):
    """Collects a page of metrics, and answers with it."""

    def __init__(self, exchange: Exchange, collector: Collector, *, anonymous: bool) -> None:
        super().__init__(exchange, SeeMetrics(exchange.client.number, None))
        accept = exchange.wanted.header(b"accept") or b""
        self._form: Final = OPENMETRICS if wants_openmetrics(accept) else TEXT
        self._collector = collector
        self._page: Page | None = None
        self._anonymous = anonymous
        self._packing: _Packing | None = None

    def start(self, now: float) -> Sequence[Command]:
        """Ask for the right, unless nobody needs it."""
        if not self._anonymous:
            return super().start(now)
        self.permitted(now)
        return ()

    def permitted(self, now: float) -> None:
        """Begin the page."""
        self._page = self._collector.page(self._form, now)
        self.due = now

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Work on the page, and answer when it is complete."""
        page = self._page
        assert page is not None, "nothing else is waited for"
        if not page.done:
            self.due = page.go_on(now)
        if not page.done:
            return ()
        self.due = math.inf
        if len(page.text) <= _LARGE or not self.exchange.wanted.takes_gzip():
            self._respond(page.text)
            return ()
        if self._packing is None:
            self._packing = _Packing(page.text)
        if self._packing.go_on():
            self._respond(b"".join(self._packing.pieces), (b"Content-Encoding", b"gzip"))
        else:
            self.due = now
        return ()

    def _respond(self, page: bytes, *fields: tuple[bytes, bytes]) -> None:
        kind = OPENMETRICS_TYPE if self._form == OPENMETRICS else TEXT_TYPE
        self.exchange.respond(HttpResponse(200, page, kind, _VARY, *fields))


class _Packing:
    """A page that is being compressed; ``pieces`` are the compressed bytes so far."""

    def __init__(self, page: bytes) -> None:
        self._page = page
        self._at = 0
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self.pieces: list[bytes] = []

    def go_on(self) -> bool:
        """Compress the next bytes; return True if these were the last ones."""
        end = self._at + _STEP
        self.pieces.append(self._packer.compress(self._page[self._at : end]))
        self._at = end
        if end < len(self._page):
            return False
        self.pieces.append(self._packer.flush())
        return True
