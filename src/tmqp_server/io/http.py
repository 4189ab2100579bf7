"""Owns the calls to other programs by HTTP: makes each, in bounded time, and says what came of it.

Theory of operation.  A call begins when the broker asks for it and is answered within the time-out,
whatever happens; the wait for its turn counts.  At most ``max_concurrent`` are made at one time;
how many wait, the broker bounds.  Nothing of a called program is trusted: redirects are not
followed (they could lead where the configuration does not), no more of an answer is read than
``max_response_bytes``, answers are not unpacked, cookies are not kept, and no proxy or password of
the server's environment is used.

A call that fails is answered with the status a gateway would send: 504 for a time-out, else 502.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy

import anyio
import httpx

import tmqp
from tmqp_server.engine.commands import HttpAnswered
from tmqp_server.engine.effects import CallHttp
from tmqp_server.settings.http import HttpSettings

__all__ = ["HttpCaller"]

logger = logging.getLogger("tmqp_server.http")

_BAD_GATEWAY = 502
_GATEWAY_TIMEOUT = 504


class _TooLargeError(Exception):
    """An answer has more bytes than may be read."""


class HttpCaller:
    """Makes calls.

    :param settings: how many at one time, how long, how large.
    :param answered: called once for each call, in the event loop's thread.
    """

    def __init__(self, settings: HttpSettings, answered: Callable[[HttpAnswered], None]) -> None:
        self._settings = settings
        self._answered = answered
        self._asked: deque[tuple[CallHttp, float]] = deque()
        self._wake = anyio.Event()
        self._turns = anyio.CapacityLimiter(settings.max_concurrent)

    def call(self, call: CallHttp) -> None:
        """Make a call, as soon as it is its turn."""
        self._asked.append((call, anyio.current_time() + self._settings.timeout_s))
        self._wake.set()

    async def run(self) -> None:
        """Make calls, for ever; a cancelled one is not answered any more."""
        async with self._client() as client, anyio.create_task_group() as tasks:
            while True:
                while self._asked:
                    call, until = self._asked.popleft()
                    tasks.start_soon(self._serve, client, call, until)
                await self._wake.wait()
                self._wake = anyio.Event()

    def _client(self) -> httpx.AsyncClient:
        most = self._settings.max_concurrent
        return httpx.AsyncClient(
            headers={
                "User-Agent": f"tmqp-server/{tmqp.__version__}",
                "Accept-Encoding": "identity",
            },
            timeout=None,  # noqa: S113 - the whole call has a time-out, not each of its steps
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=False,
            trust_env=False,
        )

    async def _serve(self, client: httpx.AsyncClient, call: CallHttp, until: float) -> None:
        """One call from its beginning to its answer."""
        status = _GATEWAY_TIMEOUT
        body = b""
        reason = f"no answer within {self._settings.timeout_s:g} s"
        with anyio.CancelScope(deadline=until):
            try:
                async with self._turns:
                    status, body = await self._exchange(client, call)
                reason = "" if status < 300 else f"answered {status}"
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                status, reason = _BAD_GATEWAY, str(error) or type(error).__name__
            except _TooLargeError as error:
                status, reason = _BAD_GATEWAY, str(error)
            except Exception:
                logger.exception("%s %s failed", call.method, _without_query(call.url))
                status = _BAD_GATEWAY
        if reason:
            logger.warning("%s %s: %s", call.method, _without_query(call.url), reason)
        self._answered(HttpAnswered(call.ticket, status, body))

    async def _exchange(self, client: httpx.AsyncClient, call: CallHttp) -> tuple[int, bytes]:
        """Send the request and read the answer: its status and body.

        :raises _TooLargeError: when the body is larger than may be read.
        """
        most_bytes = self._settings.max_response_bytes
        headers = [(name.encode(), value.encode("utf-8")) for name, value in call.headers]
        parts: list[bytes] = []
        size = 0
        async with client.stream(
            call.method, call.url, headers=headers, content=call.body or None
        ) as response:
            # Cancelled, the reading ends from the inside: the library's generators, of which there
            # are five in one another, do not end cleanly when only the outermost is left.
            with anyio.CancelScope() as reading:
                async for part in response.aiter_raw():
                    size += len(part)
                    if size > most_bytes:
                        parts.clear()
                        reading.cancel()
                    else:
                        parts.append(part)
        if size > most_bytes:
            raise _TooLargeError(f"the answer has more than {most_bytes} bytes")
        return response.status_code, b"".join(parts)


def _without_query(url: str) -> str:
    """A URL for the log: a query may hold what nobody should read there."""
    return url.partition("?")[0]
