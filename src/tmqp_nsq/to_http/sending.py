"""Makes the request for a message, and counts (N165)."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote_plus, urlsplit

import anyio
import httpx

from tmqp_nsq import NSQ_VERSION
from tmqp_nsq.consumer.consumer import Delivery
from tmqp_nsq.flags import FlagError, FlagValues
from tmqp_nsq.to_http.pools import Pool, make_pool

__all__ = ["Sender", "http_client"]

logger = logging.getLogger("tmqp_nsq")

#: Of an answer's body so much is read, so that the connection can be used again.
_ANSWER_BYTES: Final = 65_536


def _headers(values: FlagValues) -> list[tuple[str, str]]:
    """The headers of each request.

    :raises FlagError: if one is not ``NAME: VALUE``.
    """
    found = [("User-Agent", f"nsq_to_http v{NSQ_VERSION}")]
    for line in values.texts("header"):
        name, colon, value = line.partition(":")
        is_name = bool(name.strip()) and name.strip().replace("-", "").replace("_", "").isalnum()
        if not colon or not is_name or not line.isascii() or not line.isprintable():
            raise FlagError(f"--header must be 'NAME: VALUE', not {line!r}")
        found.append((name.strip(), value.strip()))
    return found


def _urls(values: FlagValues) -> tuple[str, tuple[str, ...]]:
    """Method and URLs.

    :raises FlagError: if there are none, or they cannot be used.
    """
    posts, gets = values.texts("post"), values.texts("get")
    if not posts and not gets:
        raise FlagError("--get or --post required")
    if posts and gets:
        raise FlagError("use --get or --post not both")
    if gets and "content-type" in values.given:
        raise FlagError("--content-type only used with --post")
    for url in gets:
        if url.count("%s") != 1:
            raise FlagError(f"invalid --get address, must have one %s: {url!r}")
    for url in posts + gets:
        try:
            parts = urlsplit(url.replace("%s", ""))
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good:
            raise FlagError(f"not an http URL: {url!r}")
    return ("POST", posts) if posts else ("GET", gets)


def http_client(values: FlagValues) -> httpx.AsyncClient:
    """The client for the requests; the caller closes it.

    :raises FlagError: if a flag is wrong.
    """
    connections = values.number("n")
    if not 1 <= connections <= 10_000:
        raise FlagError(f"--n must be from 1 to 10000, not {connections}")
    return httpx.AsyncClient(
        headers=_headers(values),
        timeout=httpx.Timeout(
            values.seconds("http-client-request-timeout"),
            connect=values.seconds("http-client-connect-timeout"),
            pool=None,
        ),
        limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        follow_redirects=True,
        trust_env=False,
    )


class Sender:
    """Sends messages to the addresses of the flags."""

    def __init__(self, values: FlagValues, client: httpx.AsyncClient) -> None:
        """Read the flags.

        :raises FlagError: if one is wrong.
        """
        self._client = client
        self._method, self._urls = _urls(values)
        self._pool: Pool = make_pool(values.text("mode"), len(self._urls))
        self._sample = values.real("sample")
        if not 0.0 <= self._sample <= 1.0:
            raise FlagError("--sample must be between 0.0 and 1.0")
        self._headers = {}
        if self._method == "POST":
            self._headers["Content-Type"] = values.text("content-type")
        self._every = values.number("status-every")
        self._times_s: list[float] = []

    async def handle(self, delivery: Delivery) -> None:
        """Send a message and answer it: finished if all its requests succeeded."""
        if self._sample < 1.0 and random.random() > self._sample:  # noqa: S311
            delivery.finish()
            return
        for place in self._pool.choose(anyio.current_time(), random.random()):  # noqa: S311
            start = anyio.current_time()
            problem = await self._request(self._urls[place], delivery.body)
            now = anyio.current_time()
            self._pool.mark(place, not problem, now - start, now)
            if problem:
                logger.error("%s %s: %s", self._method, self._urls[place], problem)
                delivery.requeue()
                return
            self._count(now - start)
        delivery.finish()

    async def _request(self, url: str, body: bytes) -> str:
        """Make one request; returns what went wrong, or nothing."""
        content = body if self._method == "POST" else None
        if self._method == "GET":
            url = url.replace("%s", quote_plus(body))
        try:
            request = self._client.build_request(
                self._method, url, content=content, headers=self._headers
            )
            answer = await self._client.send(request, stream=True)
            try:
                await _discard(answer)
            finally:
                await answer.aclose()
        except httpx.TimeoutException:
            return "no answer in time"
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return str(error) or type(error).__name__
        status = answer.status_code
        good = status == 200 if self._method == "GET" else 200 <= status < 300
        return "" if good else f"got status code {status}"

    def _count(self, took_s: float) -> None:
        if self._every <= 0:
            return
        self._times_s.append(took_s)
        if len(self._times_s) >= self._every:
            times = sorted(self._times_s)
            self._times_s = []
            logger.info(
                "finished %d - 99th: %.2fms - 95th: %.2fms - avg: %.2fms",
                len(times),
                _percentile(times, 0.99) * 1000,
                _percentile(times, 0.95) * 1000,
                sum(times) / len(times) * 1000,
            )


def _percentile(times: Sequence[float], share: float) -> float:
    return times[min(len(times) - 1, int(len(times) * share))]


async def _discard(answer: httpx.Response) -> None:
    size = 0
    async for chunk in answer.aiter_raw():
        size += len(chunk)
        if size > _ANSWER_BYTES:
            return
