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

#: Go's library reads so much of a body that nobody wants, to keep the connection.
MOST_DROPPED_BYTES: Final = 262_144

#: On every answer: no browser guesses a type, and it is cached only where it says so itself.
_NO_SNIFF: Final = (b"X-Content-Type-Options", b"nosniff")
_NO_STORE: Final = (b"Cache-Control", b"no-store")


def is_same_origin(request: HttpRequest) -> bool:
    """Whether no page of another origin has sent a request, as far as its browser tells."""
    site = request.header(b"sec-fetch-site")
    if site is not None:
        return site in (b"same-origin", b"none")
    origin = request.header(b"origin")
    host = request.header(b"host") or b""
    return origin is None or origin.partition(b"://")[2].lower() == host.lower()


class Manner:
    """The manner of the queues' API: problems as RFC 9457 writes them.

    Attributes: ``answers_head``, a path that answers GET answers HEAD, too; ``needs_length``, a
    request that may have a body must say how long it is; ``options_status``, of the answer to
    OPTIONS; ``takes_last_slash``, one more slash at the end of a path means nothing; ``refuses``,
    status and detail of the answer to every request, None where there are others; ``like_go``,
    requests are read as Go's library does: a body that nobody wants is dropped up to
    :data:`MOST_DROPPED_BYTES`, not refused, and a query that cannot be read (:func:`parse_query`)
    matters only to those who look at it.
    """

    answers_head = True
    needs_length = True
    options_status = 204
    takes_last_slash = False
    like_go = False
    refuses: tuple[int, str] | None = None
    #: A connection belongs to whoever sent its last request; else to who sent the first one.
    changes_clients: bool = False
    #: Answers behind which the connection ends.
    closing: frozenset[int] = frozenset({401})
    #: The field WWW-Authenticate of an answer to who must log in.
    challenge: bytes = b'Bearer realm="tmqp", Basic realm="tmqp"'

    def check(self, request: HttpRequest) -> None:
        """Look at the head of a request, before its route is looked for.

        :raises BadRequest: when it goes no further.
        """

    def identify(self, request: HttpRequest, now: float) -> tuple[bytes, Credentials | None]:
        """Who sends a request: what equals for requests of one client, and what it shows.

        :raises BadRequest: for credentials that cannot be read.
        """
        given = request.header(b"authorization") or b""
        return given, credentials_of(given)

    def completed(self, response: HttpResponse, request: HttpRequest | None) -> HttpResponse:
        """An answer as it leaves; ``request`` is None where none could be read."""
        return response

    def problem(
        self, status: int, detail: str, *more: tuple[bytes, bytes], code: int = 0
    ) -> HttpResponse:
        """The answer to a request that fails; ``code`` is the broker's."""
        return problem(status, detail, *more, code=code)

    def refused(self, code: int, detail: str) -> HttpResponse:
        """The answer that says the same as a result code of the broker."""
        return of_result(code, detail)

    def fields(self, response: HttpResponse, date: bytes) -> Headers:
        """The fields of an answer's head, but ``Connection``."""
        fields = [*response.headers, _NO_SNIFF, (b"Date", date)]
        if not any(name == _NO_STORE[0] for name, _ in fields):
            fields.append(_NO_STORE)
        if response.has_length:
            fields.append((b"Content-Length", b"%d" % len(response.body)))
        return fields
