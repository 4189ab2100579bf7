"""Questions to nsqd and nsqlookupd over HTTP (N155)."""

from __future__ import annotations

import json
import ssl
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx

from tmqp_nsq import NSQ_VERSION
from tmqp_nsq.flags import FlagError, FlagValues

__all__ = ["ClientSettings", "Upstream", "UpstreamError", "tls_context"]

#: An answer larger than this is not read to its end.
_MOST_BYTES: Final = 64 * 1_048_576
_HEADERS: Final = {"Accept": "application/vnd.nsq; version=1.0"}
_AT_ONCE: Final = 32


class UpstreamError(Exception):
    """A node that did not answer, or answered with an error."""


class ClientSettings:
    """How a program's HTTP client connects."""

    __slots__ = ("connect_s", "request_s", "tls")

    def __init__(self, connect_s: float, request_s: float, tls: ssl.SSLContext | bool) -> None:
        self.connect_s = connect_s
        self.request_s = request_s
        self.tls = tls


def tls_context(values: FlagValues) -> ssl.SSLContext | bool:
    """The TLS settings of the flags ``http-client-tls-...``; True for those of the platform.

    :raises FlagError: if a file cannot be read.
    """
    ca = values.text("http-client-tls-root-ca-file")
    certificate = values.text("http-client-tls-cert")
    key = values.text("http-client-tls-key")
    insecure = values.is_on("http-client-tls-insecure-skip-verify")
    if bool(certificate) != bool(key):
        raise FlagError("--http-client-tls-cert and --http-client-tls-key go together")
    if not (ca or certificate or insecure):
        return True
    try:
        context = ssl.create_default_context(cafile=ca or None)
        if certificate:
            context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise FlagError(f"cannot load the TLS files of the HTTP client: {error}") from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _go_quoted(data: bytes) -> str:
    """A body in quotes, as Go's ``%q`` writes it."""
    text = data.decode("utf-8", "replace")
    return json.dumps(text, ensure_ascii=False)


class Upstream:
    """Asks nodes; at most 32 questions are open at a time."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._limit = anyio.CapacityLimiter(_AT_ONCE)

    @staticmethod
    def client(settings: ClientSettings, program: str) -> httpx.AsyncClient:
        """A client for :class:`Upstream`; the caller closes it."""
        return httpx.AsyncClient(
            timeout=httpx.Timeout(settings.request_s, connect=settings.connect_s),
            verify=settings.tls,
            headers={**_HEADERS, "User-Agent": f"{program} v{NSQ_VERSION}"},
            trust_env=False,
        )

    async def get(self, base: str, path: str) -> Any:
        """Ask for JSON.

        :raises UpstreamError: if there is no answer, an error, or something else than JSON.
        """
        body = await self.fetch("GET", base, path)
        try:
            return json.loads(body)
        except ValueError:
            raise UpstreamError(f"{base}: answer is not JSON") from None

    async def post(self, base: str, path: str) -> None:
        """Ask for an action.

        :raises UpstreamError: if there is no answer, or an error.
        """
        await self.fetch("POST", base, path)

    async def fetch(self, method: str, base: str, path: str) -> bytes:
        """Ask, and again over HTTPS where the node wants TLS.

        :raises UpstreamError: if there is no answer, or an error.
        """
        async with self._limit:
            status, phrase, body = await self._exchange(method, f"{base}{path}")
            port = _https_port(body) if status == 403 and base.startswith("http://") else 0
            if port:
                host = urlsplit(base).hostname or ""
                shown = f"[{host}]" if ":" in host else host
                status, phrase, body = await self._exchange(method, f"https://{shown}:{port}{path}")
        if status != 200:
            raise UpstreamError(f"got response {status} {phrase} {_go_quoted(body)}")
        return body

    async def _exchange(self, method: str, url: str) -> tuple[int, str, bytes]:
        try:
            async with self._client.stream(method, url) as answer:
                body = b""
                async for chunk in answer.aiter_bytes(65_536):
                    body += chunk
                    if len(body) > _MOST_BYTES:
                        raise UpstreamError(f"{url}: answer has more than {_MOST_BYTES} bytes")
                return answer.status_code, answer.reason_phrase, body
        except httpx.TimeoutException:
            raise UpstreamError(f"{method} {url}: no answer in time") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise UpstreamError(f"{method} {url}: {str(error) or type(error).__name__}") from error


def _https_port(body: bytes) -> int:
    """The port that an answer with TLS_REQUIRED names; 0 if it names none (N99)."""
    try:
        port = json.loads(body)["https_port"]
    except (ValueError, KeyError, TypeError):
        return 0
    return port if isinstance(port, int) and 0 < port < 65_536 else 0
