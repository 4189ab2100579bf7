"""Reads a request: checks its head and its body before it is carried out."""

from __future__ import annotations

from typing import Final

import h11

from tmqp_server.doors.http.context import HttpContext
from tmqp_server.doors.http.exchange import Exchange
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.manner import MOST_DROPPED_BYTES
from tmqp_server.doors.http.messages import BadRequest, HttpRequest, parse_query, split_path

__all__ = ["NO_REQUEST", "RequestReader", "has_body", "problem_of"]

#: The detail for invalid bytes.  It names no fault, because the first one that is found depends on
#: how the bytes are divided.
NO_REQUEST: Final = "the bytes received are not an HTTP/1.1 request, whose lines end with CR and LF"


class RequestReader:
    """Checks the heads and bodies of requests while they arrive."""

    __slots__ = ("_context", "_limits")

    def __init__(self, context: HttpContext) -> None:
        self._context = context
        self._limits = context.limits

    def head(self, exchange: Exchange, event: h11.Request) -> None:
        """Check the head of a request, before its body is read.

        :raises BadRequest: when it is refused.
        """
        limits = self._limits
        headers = event.headers.raw_items()
        if not event.http_version.startswith(b"1."):
            raise BadRequest(505, "the version of HTTP must be 1.1 or 1.0")
        if len(event.target) > limits.max_target_bytes:
            raise BadRequest(414, f"a target has at most {limits.max_target_bytes} bytes")
        if len(headers) > limits.max_header_fields:
            raise BadRequest(431, f"a request has at most {limits.max_header_fields} fields")
        method = event.method.decode("ascii")
        request = HttpRequest(method, (), {}, headers)
        if self._context.manner.refuses is not None:
            raise BadRequest(*self._context.manner.refuses)
        length = request.header(b"content-length")
        if length is not None and request.header(b"transfer-encoding") is not None:
            raise BadRequest(400, "a request has a Content-Length or a Transfer-Encoding, not both")
        expect = request.header(b"expect")
        if expect is not None and expect.lower() != b"100-continue":
            raise BadRequest(417, "the only supported expectation is 100-continue")
        if method == "OPTIONS" and event.target == b"*":
            exchange.request = request
            return
        folders = self._context.manner.takes_last_slash
        request.path, query = split_path(event.target, takes_last_slash=folders)
        exchange.request = request
        self._context.manner.check(request)
        self._look_at_query(request, query)
        if method == "OPTIONS" and self._context.routes.methods(request.path):
            return
        self._find_route(exchange, request)
        if exchange.route is not None and exchange.route.takes_body:
            unknown = length is None and request.header(b"transfer-encoding") is None
            if unknown and self._context.manner.needs_length:
                raise BadRequest(411, "the request needs a Content-Length, 0 for an empty body")
            if length is not None:
                self._check_size(exchange, int(length))
            if (request.header(b"content-encoding") or b"identity").lower() != b"identity":
                raise BadRequest(415, "a body must not be compressed")

    def _look_at_query(self, request: HttpRequest, query: bytes) -> None:
        """Read the parameters.

        :raises BadRequest: when the query is invalid, unless the manner is ``like_go``.
        """
        like_go = self._context.manner.like_go
        try:
            request.query = parse_query(query, like_go=like_go)
        except BadRequest as error:
            if not like_go:
                raise
            request.fault = error.detail

    def _find_route(self, exchange: Exchange, request: HttpRequest) -> None:
        """Find the route.

        :raises BadRequest: when there is none, unless the manner is ``like_go``, which reads the
            body first.
        """
        try:
            exchange.route, request.values = self._context.routes.find(request.method, request.path)
        except BadRequest as error:
            if not self._context.manner.like_go:
                raise
            exchange.refusal = error

    def keep(self, exchange: Exchange, data: bytes) -> None:
        """Keep a piece of the body, or drop it if the route takes no body.

        :raises BadRequest: 413 when the body is too large.
        """
        if exchange.route is None or not exchange.route.takes_body:
            exchange.dropped_bytes += len(data)
            most = MOST_DROPPED_BYTES if self._context.manner.like_go else 0
            if exchange.dropped_bytes > most:
                raise BadRequest(413, "this request must not have a body")
            return
        self._check_size(exchange, len(exchange.body) + len(data))
        exchange.body += data

    def _check_size(self, exchange: Exchange, size: int) -> None:
        """Refuse a body of *size* bytes if that is too large.

        :raises BadRequest: 413 when the body is too large.
        """
        route = exchange.route
        assert route is not None, "a request without a route has no body"
        most = route.max_body_bytes or self._limits.max_body_bytes
        if size > most:
            raise BadRequest(413, route.too_large or f"a body has at most {most} bytes")


def has_body(exchange: Exchange) -> bool:
    """Whether a body may follow the head of a request."""
    request = exchange.request
    if exchange.machine.their_state is not h11.SEND_BODY or request is None:
        return True
    length = request.header(b"content-length")
    return (length is not None and length != b"0") or (
        request.header(b"transfer-encoding") is not None
    )


def problem_of(
    error: h11.RemoteProtocolError, exchange: Exchange, limits: HttpLimits
) -> tuple[int, str]:
    """The status and the detail of the answer to an invalid request."""
    status = error.error_status_hint
    if status == 431 and exchange.request is None:
        begin = exchange.machine.trailing_data[0][: limits.max_target_bytes]
        if b"\n" not in begin:
            return 414, f"a target has at most {limits.max_target_bytes} bytes"
        return 431, f"a head has at most {limits.max_head_bytes} bytes"
    if status == 501:
        return 501, "the only transfer coding is chunked"
    return 400, NO_REQUEST
