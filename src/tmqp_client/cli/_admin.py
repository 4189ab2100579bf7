"""Asks a server's admin door over HTTP: its probes and its metrics.

Everything that TMQP can answer is requested over TMQP; this module is for the rest.  The standard
library's HTTP client runs in a thread, which is enough for the two or three requests of a command.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterable, Mapping
from typing import Any, Final, final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from tmqp.address import Address

__all__ = ["ADMIN_PORT", "Admin", "AdminDeniedError", "AdminError", "Samples", "default_url"]

#: Where a server's admin door listens if nothing else is configured.
ADMIN_PORT: Final = 2680
#: An answer that is longer is not one of ours: a page of metrics has at most some megabytes.
_MAX_BYTES: Final = 32 * 1_048_576
#: Statuses of answers that are done, and of those that are read for why they are not.
_GOOD: Final = (200, 201, 202, 204)
_ANSWERS: Final = (*_GOOD, 400, 404, 406, 409, 422, 503)
_SAMPLE: Final = re.compile(r"([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$")
_LABEL: Final = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")


class AdminError(Exception):
    """There was no answer, or it is not valid; the text is a sentence that says so."""


class AdminDeniedError(AdminError):
    """The server refuses this request to this client."""


def default_url(address: Address) -> str:
    """Return the default URL of a server's admin door: the same host and the default port."""
    host = "127.0.0.1" if address.socket_path else address.host
    return f"http://[{host}]:{ADMIN_PORT}" if ":" in host else f"http://{host}:{ADMIN_PORT}"


@final
class Samples:
    """The samples of a page of metrics, in Prometheus' text format as our servers write it."""

    def __init__(self, text: str) -> None:
        self._samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for line in text.splitlines():
            found = _SAMPLE.match(line)
            if found is None:
                continue
            name, labels, value = found.groups()
            read = {key: _ESCAPED.sub(_plain, text) for key, text in _LABEL.findall(labels or "")}
            self._samples.setdefault(name, []).append((read, float(value)))

    def all(self, name: str, **labels: str) -> list[tuple[Mapping[str, str], float]]:
        """Return the samples of a metric that have these labels."""
        wanted = labels.items()
        return [each for each in self._samples.get(name, []) if wanted <= each[0].items()]

    def total(self, name: str, **labels: str) -> float | None:
        """Return the sum of the samples with these labels; None if there are none."""
        found = self.all(name, **labels)
        return sum(value for _, value in found) if found else None

    def quantile(self, name: str, share: float) -> float | None:
        """Return a quantile of a histogram, as the upper bound of its bucket.

        :param share: the quantile from 0 to 1: 0.99 is the value that 99 of 100 do not exceed.
        :return: None for a histogram that has counted nothing.
        """
        buckets = sorted(
            (float(labels["le"]), value) for labels, value in self.all(f"{name}_bucket")
        )
        if not buckets or not buckets[-1][1]:
            return None
        wanted = share * buckets[-1][1]
        return next(end for end, count in buckets if count >= wanted)


def _plain(escaped: re.Match[str]) -> str:
    return "\n" if escaped[1] == "n" else escaped[1]


@final
class Admin:
    """A server's admin door.

    :param url: ``http://HOST:PORT``, ``https://HOST:PORT`` or ``unix:PATH``.
    :param token: to log in with; empty for none.
    :raises ValueError: for any other URL.
    """

    def __init__(self, url: str, token: str, timeout_s: float) -> None:
        self.url = url
        self._token = token
        self._timeout_s = timeout_s
        self._make = _connector(url, timeout_s)

    async def ready(self) -> tuple[bool, str]:
        """Return whether the server is ready, and the text of its answer.

        :raises AdminError: if there is no answer.
        """
        status, body = await self._get("/readyz", (200, 503))
        return status == 200, body.decode(errors="replace").strip()

    async def health(self) -> Mapping[str, Any]:
        """Return the results of the server's health checks.

        :raises AdminError: if there is no answer.
        """
        return await self.ask("GET", "/server/health")

    async def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Return the answer of an operation of the API; empty if it has no body.

        :param path: below ``/api/v1``.
        :raises AdminError: if there is no answer, or the server refuses; the text says why.
        """
        data = b"" if body is None else json.dumps(body).encode()
        status, told = await self._do(method, f"/api/v1{path}", data, _ANSWERS)
        try:
            answer = json.loads(told) if told else {}
        except ValueError as error:
            raise AdminError(f"{self.url} answers with something that is not JSON") from error
        if not isinstance(answer, dict):
            answer = {}
        if status not in _GOOD:
            raise AdminError(str(answer.get("detail", f"{self.url}{path} answers with {status}")))
        return answer

    async def metrics(self) -> Samples:
        """Return all metrics.

        :raises AdminError: if there is no answer.
        """
        _, body = await self._get("/metrics")
        return Samples(body.decode(errors="replace"))

    async def _get(self, path: str, good: Iterable[int] = (200,)) -> tuple[int, bytes]:
        return await self._do("GET", path, b"", good)

    async def _do(
        self, method: str, path: str, data: bytes, good: Iterable[int]
    ) -> tuple[int, bytes]:
        try:
            with anyio.fail_after(self._timeout_s):
                status, body = await anyio.to_thread.run_sync(
                    self._ask, method, path, data, abandon_on_cancel=True
                )
        except TimeoutError as error:
            raise AdminError(f"{self.url} does not answer in {self._timeout_s:g} s") from error
        except (OSError, http.client.HTTPException) as error:
            words = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise AdminError(f"no answer from {self.url}: {words}") from error
        if status in (401, 403):
            raise AdminDeniedError(f"{self.url} does not allow this client to see {path}")
        if status not in good:
            raise AdminError(f"{self.url}{path} answers with {status}")
        return status, body

    def _ask(self, method: str, path: str, data: bytes) -> tuple[int, bytes]:
        connection = self._make()
        try:
            headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            if data:
                headers["Content-Type"] = "application/json"
            connection.request(method, path, body=data or None, headers=headers)
            answer = connection.getresponse()
            body = answer.read(_MAX_BYTES + 1)
        finally:
            connection.close()
        if len(body) > _MAX_BYTES:
            raise OSError(f"more than {_MAX_BYTES:,} bytes")
        return answer.status, body


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket of that path."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _connector(url: str, timeout_s: float) -> Any:
    """Return a function that makes a connection to this URL."""
    if url.startswith("unix:"):
        path = url.removeprefix("unix:").removeprefix("//")
        return lambda: _UnixConnection(path, timeout_s)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{url!r}: {error}") from error
    if parts.scheme not in ("http", "https") or not host or parts.path.strip("/"):
        raise ValueError(f"{url!r} is not http://HOST:PORT, https://HOST:PORT or unix:PATH")
    if parts.scheme == "http":
        return lambda: http.client.HTTPConnection(host, port or ADMIN_PORT, timeout=timeout_s)
    return lambda: http.client.HTTPSConnection(
        host, port or ADMIN_PORT, timeout=timeout_s, context=ssl.create_default_context()
    )
