"""A small HTTP/1.1 server on h11: what nsqadmin answers with.

Every limit holds before anything is kept: the head has at most 16 KiB, the body at most what the
server was made for, a request must arrive within 30 s, an idle connection ends after 60 s, and of
connections there are at most 256.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream

__all__ = ["Handler", "Request", "Response", "WebServer", "json_response"]

logger = logging.getLogger("tmqp_nsq.web")

_HEAD_BYTES: Final = 16_384
_REQUEST_S: Final = 30.0
_IDLE_S: Final = 60.0
_CONNECTIONS: Final = 256
#: Smaller answers gain nothing from compression.
_GZIP_BYTES: Final = 512


@dataclass(frozen=True)
class Request:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    #: The address of the client.
    remote: str

    def header(self, name: str) -> str:
        """A header's value; empty if there is none."""
        return self.headers.get(name.lower(), "")

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the path, each decoded, so that a name may have a slash in it."""
        return tuple(unquote(part) for part in self.path.strip("/").split("/") if part)


@dataclass(frozen=True)
class Response:
    """An answer."""

    status: int
    body: bytes = b""
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=())


Handler = Callable[[Request], Awaitable[Response]]
"""Answers a request."""


def json_response(status: int, value: Any) -> Response:
    """Answer with JSON, as NSQ's programs do (N109)."""
    body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    return Response(
        status,
        body,
        "application/json; charset=utf-8",
        (("X-NSQ-Content-Type", "nsq; version=1.0"),),
    )


class _BadRequestError(Exception):
    """What the client sent cannot be served; the status says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class WebServer:
    """Serves one handler on any number of listeners."""

    def __init__(self, handler: Handler, *, max_body_bytes: int = 65_536) -> None:
        self._handler = handler
        self._max_body_bytes = max_body_bytes
        self._open = 0

    async def serve(self, stream: SocketStream) -> None:
        """Serve one connection until it ends."""
        if self._open >= _CONNECTIONS:
            logger.warning("more than %d connections: one was closed", _CONNECTIONS)
            await stream.aclose()
            return
        self._open += 1
        try:
            await self._connection(stream)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass  # the client has gone
        finally:
            self._open -= 1
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(stream)

    async def _connection(self, stream: SocketStream) -> None:
        machine = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
        peer: Any = stream.extra(SocketAttribute.remote_address, ("", 0))  # noqa: S610
        remote = str(peer[0]) if peer else ""
        while True:
            try:
                request = await self._request(machine, stream, remote)
                if request is None:
                    return
                response = await self._answer(request)
                accepts = "gzip" in request.header("accept-encoding").lower()
                head = request.method == "HEAD"
            except _BadRequestError as error:
                response = json_response(error.status, {"message": str(error)})
                accepts = head = False
            await _send(machine, stream, response, accepts, head)
            if machine.our_state is h11.MUST_CLOSE or machine.our_state is h11.ERROR:
                return
            if machine.our_state is not h11.DONE or machine.their_state is not h11.DONE:
                return
            machine.start_next_cycle()

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._handler(request)
        except Exception:
            logger.exception("%s %s failed", request.method, request.path)
            return json_response(500, {"message": "INTERNAL_ERROR"})

    async def _request(
        self, machine: h11.Connection, stream: SocketStream, remote: str
    ) -> Request | None:
        """Receive one request; None at the end of the connection."""
        with anyio.move_on_after(_IDLE_S) as idle:
            head = await _next_event(machine, stream)
        if idle.cancelled_caught or not isinstance(head, h11.Request):
            return None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        body = b""
        with anyio.move_on_after(_REQUEST_S) as slow:
            while True:
                event = await _next_event(machine, stream)
                if isinstance(event, h11.EndOfMessage):
                    break
                if not isinstance(event, h11.Data):
                    return None
                if len(body) + len(event.data) > self._max_body_bytes:
                    raise _BadRequestError(413, "BODY_TOO_BIG")
                body += bytes(event.data)
        if slow.cancelled_caught:
            raise _BadRequestError(408, "REQUEST_TIMEOUT")
        return _parsed(head, headers, body, remote)


def _parsed(head: h11.Request, headers: dict[str, str], body: bytes, remote: str) -> Request:
    try:
        url = urlsplit(head.target.decode("ascii"))
        query = dict(parse_qsl(url.query, keep_blank_values=True, max_num_fields=64))
    except (ValueError, UnicodeDecodeError):
        raise _BadRequestError(400, "INVALID_REQUEST") from None
    return Request(head.method.decode("ascii"), url.path or "/", query, headers, body, remote)


async def _next_event(machine: h11.Connection, stream: SocketStream) -> h11.Event | None:
    """The next event of a client; None when it closed the connection."""
    try:
        while True:
            event = machine.next_event()
            if event is h11.NEED_DATA:
                if machine.they_are_waiting_for_100_continue:
                    await stream.send(
                        machine.send(h11.InformationalResponse(status_code=100, headers=[])) or b""
                    )
                try:
                    data = await stream.receive(65_536)
                except anyio.EndOfStream:
                    data = b""
                machine.receive_data(data)
                continue
            if isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
                return None
            assert not isinstance(event, type)
            return event
    except h11.RemoteProtocolError as error:
        raise _BadRequestError(error.error_status_hint, "INVALID_REQUEST") from None


async def _send(
    machine: h11.Connection,
    stream: SocketStream,
    response: Response,
    accepts_gzip: bool,
    head: bool,
) -> None:
    body = response.body
    headers = list(response.headers)
    if response.content_type:
        headers.append(("Content-Type", response.content_type))
    if accepts_gzip and len(body) >= _GZIP_BYTES:
        body = gzip.compress(body, 6, mtime=0)
        headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    headers.append(("Content-Length", str(len(body))))
    if machine.our_state is not h11.IDLE and machine.our_state is not h11.SEND_RESPONSE:
        return
    if machine.their_state is not h11.DONE:
        headers.append(("Connection", "close"))
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    out = [
        machine.send(
            h11.Response(
                status_code=response.status,
                headers=pairs,
                reason=HTTPStatus(response.status).phrase.encode("ascii"),
            )
        ),
        b"" if head else machine.send(h11.Data(data=body)),
        machine.send(h11.EndOfMessage()),
    ]
    with anyio.move_on_after(_REQUEST_S):
        await stream.send(b"".join(part for part in out if part))
