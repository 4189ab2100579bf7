"""The form in which NSQ's programs answer by HTTP: words in JSON, with the original's fields in its
order.

Answers of the current form (N113) have ``X-NSQ-Content-Type``; the paths of releases before 1.0
(N135) answer in the old form.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.manner import Manner
from tmqp_server.doors.http.messages import BadRequest, Headers, HttpResponse, as_json
from tmqp_server.doors.http.routes import Route
from tmqp_wires.nsq.names import is_name

__all__ = [
    "NsqManner",
    "argument",
    "done",
    "json_answer",
    "name_argument",
    "old_routes",
    "plain",
]

_FORM: Final = (b"X-Nsq-Content-Type", b"nsq; version=1.0")
_JSON: Final = b"application/json; charset=utf-8"
_TEXT: Final = b"text/plain; charset=utf-8"
_TLS_REQUIRED: Final = "TLS_REQUIRED"
_CURRENT: Final = b"application/vnd.nsq; version=1.0"
#: The words for requests that fail before their handler sees them.
_WORDS: Final = {
    400: "INVALID_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    408: "REQUEST_TIMEOUT",
    411: "LENGTH_REQUIRED",
    413: "BODY_TOO_BIG",
    414: "URI_TOO_LONG",
    421: "MISDIRECTED_REQUEST",
    500: "INTERNAL_ERROR",
    503: "EXITING",
}
#: Statuses of the broker's result codes, and the words.
_RESULTS: Final = {
    1: (500, "INTERNAL_ERROR"),
    401: (403, "FORBIDDEN"),
    403: (403, "FORBIDDEN"),
    406: (500, "INTERNAL_ERROR"),
    482: (503, "LIMIT_EXCEEDED"),
    421: (503, "STANDBY"),
    503: (503, "OVERLOADED"),
}


class NsqManner(Manner):
    """Errors are JSON with a word, and each path has only the methods that the original gives it.

    A detail in capitals is the word of the answer.  Any other detail is a sentence for people, and
    the status determines the word.

    :param tls_port: the HTTPS port that all clients must use (N99); 0 if TLS is not required.
    """

    answers_head = False
    needs_length = False
    options_status = 200
    like_go = True

    def __init__(self, tls_port: int = 0) -> None:
        self._tls_port = tls_port
        if tls_port:
            self.refuses = (403, _TLS_REQUIRED)

    def problem(
        self, status: int, detail: str, *more: tuple[bytes, bytes], code: int = 0
    ) -> HttpResponse:
        """``{"message":"TOPIC_NOT_FOUND"}``."""
        word = detail
        if not _is_word(detail):
            phrase = HTTPStatus(status).phrase.upper().replace(" ", "_").replace("-", "_")
            word = _WORDS.get(status, phrase)
        body = as_json({"message": word})
        if word == _TLS_REQUIRED:
            body = b'{"message": "TLS_REQUIRED", "https_port": %d}' % self._tls_port
        return HttpResponse(status, body, _JSON, _FORM, *more)

    def refused(self, code: int, detail: str) -> HttpResponse:
        """The word for a result code of the broker."""
        status, word = _RESULTS.get(code, (500, "INTERNAL_ERROR"))
        return self.problem(status, word)

    def fields(self, response: HttpResponse, date: bytes) -> Headers:
        """The fields in the original's order: sorted ones first, the type of a text last."""
        sorted_ones = sorted([field for field in response.headers if field[1] != _TEXT])
        fields = [*sorted_ones, (b"Date", date)]
        if response.has_length:
            fields.append((b"Content-Length", b"%d" % len(response.body)))
        if len(sorted_ones) != len(response.headers):
            fields.append((b"Content-Type", _TEXT))
        return fields


def _is_word(detail: str) -> bool:
    return bool(detail) and detail.replace("_", "").isalpha() and detail.isupper()


# -- answers ------------------------------------------------------------------------------------


def done(body: bytes = b"") -> HttpResponse:
    """An answer 200 with a text or an empty body, in the current form."""
    return HttpResponse(200, body, _TEXT if body else b"", _FORM)


def plain(body: bytes) -> HttpResponse:
    """An answer 200 with a text, without the field of the current form (N112)."""
    return HttpResponse(200, body, _TEXT)


def json_answer(value: object) -> HttpResponse:
    """An answer 200 with JSON."""
    return HttpResponse(200, as_json(value), _JSON, _FORM)


# -- arguments ----------------------------------------------------------------------------------


def argument(exchange: Exchange, key: str) -> str:
    """The value of a mandatory parameter of the query; it may be empty.

    :raises BadRequest: when it is missing.
    """
    value = exchange.wanted.query.get(key)
    if value is None:
        raise BadRequest(400, f"MISSING_ARG_{key.upper()}")
    return value


def name_argument(exchange: Exchange, key: str, *, word: str = "INVALID_ARG") -> bytes:
    """The name of a topic or a channel from the query.

    :raises BadRequest: when it is missing or not a name.  The word for the latter begins with
        *word*, because the original has two (N120).
    """
    name = argument(exchange, key).encode("utf-8", "replace")
    if not is_name(name):
        raise BadRequest(400, f"{word}_{key.upper()}")
    return name


# -- names of releases before 1.0 ----------------------------------------------------------------


def old_routes(routes: list[Route], names: dict[str, str]) -> list[Route]:
    """Routes with the paths of releases before 1.0, for GET and POST (N135).

    :param names: the old paths, by the current path.
    """
    found: list[Route] = []
    for route in routes:
        old = names.get(f"/{route.template.strip('/')}")
        if old is None:
            continue
        for method in ("GET", "POST") if not route.too_large else ("POST",):
            found.append(
                Route(
                    method,
                    old,
                    _in_old_form(route.begin),
                    public=route.public,
                    overlaps=route.overlaps,
                    takes_body=True,
                    max_body_bytes=route.max_body_bytes,
                    too_large=route.too_large,
                )
            )
    return found


def _in_old_form(
    begin: Callable[[Exchange], Handler | None],
) -> Callable[[Exchange], Handler | None]:
    """Answer in the old form, unless the client asks for the current one."""

    def begin_old(exchange: Exchange) -> Handler | None:
        if (exchange.wanted.header(b"accept") or b"") != _CURRENT:
            exchange.rewrite = _old_form
        try:
            return begin(exchange)
        except BadRequest as error:
            exchange.respond(NsqManner().problem(error.status, error.detail))
            return None

    return begin_old


def _old_form(response: HttpResponse) -> HttpResponse:
    """Convert an answer to the old form: errors are 500, texts stay unchanged, JSON is wrapped."""
    status, word, data = 200, "OK", response.body
    if response.status != 200:
        status, word = 500, _word_of(response.body)
        data = b"null"
    elif response.body and (b"Content-Type", _JSON) not in response.headers:
        return HttpResponse(200, response.body, _TEXT)
    body = b'{"status_code":%d,"status_txt":"%b","data":%b}' % (
        status,
        word.encode(),
        data or b"null",
    )
    return HttpResponse(status, body, _JSON)


def _word_of(body: bytes) -> str:
    return body.partition(b'{"message":"')[2].partition(b'"')[0].decode()
