"""Makes HTTP calls to other programs.

The turn decides how many run concurrently and how long each may take, and abandons late ones.  A
called program is not trusted: redirects are not followed (they could lead to URLs that the
configuration does not allow), at most ``max_response_bytes`` of an answer are read, answers are not
decompressed, cookies are not kept, and no proxy or password from the server's environment is used.

A failed call is answered with 502, the status of a gateway.
"""

from __future__ import annotations

import logging
from http.cookiejar import CookieJar, DefaultCookiePolicy

import anyio
import httpx

import tmqp
from tmqp_server.doors.port import SERVER_STOPS
from tmqp_server.engine.effects import CallHttp
from tmqp_server.settings.http import HttpSettings

__all__ = ["HttpCaller"]

logger = logging.getLogger("tmqp_server.http")

_BAD_GATEWAY = 502


class _TooLargeError(Exception):
    """An answer is larger than allowed."""


class HttpCaller:
    """Makes calls while :meth:`run` runs.

    :param settings: how many calls run at a time, and how large an answer may be.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._opened: httpx.AsyncClient | None = None
        self._ready = anyio.Event()

    async def run(self) -> None:
        """Keep connections to the called programs, for ever."""
        async with self._client() as client:
            self._opened = client
            self._ready.set()
            try:
                await anyio.sleep_forever()
            finally:
                self._opened = None

    def _client(self) -> httpx.AsyncClient:
        most = self._settings.max_concurrent
        return httpx.AsyncClient(
            headers={
                "User-Agent": f"tmqp-server/{tmqp.__version__}",
                "Accept-Encoding": "identity",
            },
            timeout=None,  # noqa: S113 - the turn bounds the whole call
            limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=False,
            trust_env=False,
        )

    async def make(self, call: CallHttp) -> tuple[int, bytes]:
        """Make one call; return the status and the body.  It raises no exception of its own."""
        await self._ready.wait()
        client = self._opened
        reason = SERVER_STOPS
        status, body = _BAD_GATEWAY, b""
        try:
            if client is not None:
                status, body = await self._exchange(client, call)
                reason = "" if status < 300 else f"answered {status}"
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            reason = str(error) or type(error).__name__
        except _TooLargeError as error:
            reason = str(error)
        except Exception:
            logger.exception("%s %s failed", call.method, _without_query(call.url))
            return status, body
        if reason:
            logger.warning("%s %s: %s", call.method, _without_query(call.url), reason)
        return status, body

    async def _exchange(self, client: httpx.AsyncClient, call: CallHttp) -> tuple[int, bytes]:
        """Send the request and read the answer: its status and body.

        :raises _TooLargeError: when the body is larger than allowed.
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
    """Return a URL for the log, without the query, which may contain secrets."""
    return url.partition("?")[0]
