"""The form of an HTTP door's answers: their common fields, and the form of errors.

Doors that imitate another server's HTTP interface have their own manner.
"""

from __future__ import annotations

from typing import Final

from tmqp_server.doors.http.credentials import credentials_of
from tmqp_server.doors.http.messages import (
    Headers,
    HttpRequest,
    HttpResponse,
    of_result,
    problem,
)
from tmqp_server.engine.commands import Credentials

__all__ = ["MOST_DROPPED_BYTES", "Manner", "is_same_origin"]

#: Go's library reads so many bytes of an unexpected body, to keep the connection.
MOST_DROPPED_BYTES: Final = 262_144

#: In every answer: browsers must not guess a type, and may cache an answer only if it says so
#: itself.
_NO_SNIFF: Final = (b"X-Content-Type-Options", b"nosniff")
_NO_STORE: Final = (b"Cache-Control", b"no-store")


def is_same_origin(request: HttpRequest) -> bool:
    """Whether a request is not from a page of another origin, according to the browser's fields."""
    site = request.header(b"sec-fetch-site")
    if site is not None:
        return site in (b"same-origin", b"none")
    origin = request.header(b"origin")
    host = request.header(b"host") or b""
    return origin is None or origin.partition(b"://")[2].lower() == host.lower()


class Manner:
    """The manner of the queues' API: errors are problem documents (RFC 9457).

    Attributes: ``answers_head``, a path that answers GET also answers HEAD; ``needs_length``, a
    request that may have a body needs its length; ``options_status``, the status of the answer to
    OPTIONS; ``takes_last_slash``, one slash at the end of a path is ignored; ``refuses``, the
    status and detail with which every request is refused, None if requests are served; ``like_go``,
    requests are read as by Go's library: an unexpected body of up to :data:`MOST_DROPPED_BYTES` is
    dropped, not refused, and an invalid query (:func:`parse_query`) is an error only for handlers
    that use it.
    """

    answers_head = True
    needs_length = True
    options_status = 204
    takes_last_slash = False
    like_go = False
    refuses: tuple[int, str] | None = None
    #: A connection belongs to the client of its last request, not to that of the first one.
    changes_clients: bool = False
    #: Statuses after which the connection ends.
    closing: frozenset[int] = frozenset({401})
    #: The field WWW-Authenticate for a client that must log in.
    challenge: bytes = b'Bearer realm="tmqp", Basic realm="tmqp"'

    def check(self, request: HttpRequest) -> None:
        """Check the head of a request before its route is chosen.

        :raises BadRequest: when the request is refused.
        """

    def identify(self, request: HttpRequest, now: float) -> tuple[bytes, Credentials | None]:
        """Identify the client of a request: returns bytes that are equal for all requests of one
        client, and its credentials, None without any.

        :raises BadRequest: when the credentials cannot be read.
        """
        given = request.header(b"authorization") or b""
        return given, credentials_of(given)

    def completed(self, response: HttpResponse, request: HttpRequest | None) -> HttpResponse:
        """Complete an answer before it is sent; *request* is None if it could not be read."""
        return response

    def problem(
        self, status: int, detail: str, *more: tuple[bytes, bytes], code: int = 0
    ) -> HttpResponse:
        """The answer to a request that fails; *code* is the broker's result code, 0 for none."""
        return problem(status, detail, *more, code=code)

    def refused(self, code: int, detail: str) -> HttpResponse:
        """The answer for a result code of the broker."""
        return of_result(code, detail)

    def fields(self, response: HttpResponse, date: bytes) -> Headers:
        """The fields of an answer's head, except ``Connection``."""
        fields = [*response.headers, _NO_SNIFF, (b"Date", date)]
        if not any(name == _NO_STORE[0] for name, _ in fields):
            fields.append(_NO_STORE)
        if response.has_length:
            fields.append((b"Content-Length", b"%d" % len(response.body)))
        return fields
