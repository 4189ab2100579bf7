"""Graphs and rates from a graphite server that a statsd of the nsqds feeds (N134, N153)."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlencode

from tmqp_nsq.flags import FlagError, FlagValues
from tmqp_nsq.nodes.upstream import Upstream, UpstreamError
from tmqp_nsq.web import Request, Response, json_response

__all__ = ["Graphite"]

#: What a graph may be; anything else is not handed to a browser.
_TYPES: Final = {b"\x89PNG": "image/png", b"GIF8": "image/gif"}


class Graphite:
    """Asks graphite; does nothing without ``--graphite-url``."""

    def __init__(self, values: FlagValues, upstream: Upstream) -> None:
        """Read the flags.

        :raises FlagError: if one is wrong.
        """
        self.url = values.text("graphite-url").rstrip("/")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise FlagError(f"--graphite-url must begin with http:// or https://, not {self.url!r}")
        self.is_proxied = values.is_on("proxy-graphite")
        self._counter = values.text("statsd-counter-format")
        self._gauge = values.text("statsd-gauge-format")
        self._prefix = values.text("statsd-prefix")
        self._interval_s = max(1, int(values.seconds("statsd-interval")))
        for flag in ("statsd-counter-format", "statsd-gauge-format"):
            if values.text(flag).count("%s") != 1:
                raise FlagError(f"--{flag} must have one %s, not {values.text(flag)!r}")
        self._upstream = upstream

    def settings(self) -> dict[str, Any] | None:
        """What the page needs to name metrics; None without graphite."""
        if not self.url:
            return None
        return {
            "url": "" if self.is_proxied else self.url,
            "counter": self._counter,
            "gauge": self._gauge,
            "prefix": self._prefix,
            "interval": self._interval_s,
        }

    async def rate(self, request: Request) -> Response:
        """The messages per second of a metric, over the interval before the last one."""
        if request.query.get("metric") != "rate":
            return json_response(400, {"message": "INVALID_ARG_METRIC"})
        target = request.query.get("target", "")
        if not target:
            return json_response(400, {"message": "INVALID_ARG_TARGET"})
        query = urlencode(
            {
                "from": f"-{self._interval_s * 2}sec",
                "until": f"-{self._interval_s}sec",
                "format": "json",
                "target": target,
            }
        )
        if not self.url:
            return json_response(500, {"message": "INTERNAL_ERROR"})
        try:
            answer = await self._upstream.get(self.url, f"/render?{query}")
            count = float(answer[0]["datapoints"][0][0])
        except (UpstreamError, LookupError, TypeError, ValueError):
            return json_response(500, {"message": "INTERNAL_ERROR"})
        shown = "N/A" if count < 0 else f"{count / self._interval_s:.2f}"
        return json_response(200, {"rate": shown, "message": ""})

    async def render(self, request: Request) -> Response:
        """A graph, fetched for a browser that cannot reach graphite itself."""
        if not (self.url and self.is_proxied):
            return json_response(404, {"message": "NOT_FOUND"})
        try:
            body = await self._upstream.fetch(
                "GET", self.url, f"/render?{urlencode(request.query)}"
            )
        except UpstreamError as error:
            return json_response(502, {"message": f"UPSTREAM_ERROR: {error}"})
        for start, content_type in _TYPES.items():
            if body.startswith(start):
                return Response(200, body, content_type)
        try:
            return json_response(200, json.loads(body))
        except ValueError:
            return json_response(502, {"message": "UPSTREAM_ERROR: graphite sent no image"})
