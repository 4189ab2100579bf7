"""Requests as handlers see them, and answers as handlers make them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, final
from urllib.parse import unquote_to_bytes

__all__ = [
    "JSON",
    "BadRequest",
    "Headers",
    "HttpRequest",
    "HttpResponse",
    "as_json",
    "has_bare_newline",
    "of_result",
    "parse_query",
    "problem",
    "split_path",
]

Headers = list[tuple[bytes, bytes]]

JSON: Final = b"application/json"
_PROBLEM: Final = b"application/problem+json"
_HEXADECIMAL: Final = b"0123456789abcdefABCDEF"
_MAX_QUERY_FIELDS: Final = 64

#: Statuses of the broker's result codes; other codes are statuses themselves.
_STATUSES: Final[dict[int, int]] = {
    1: 400,
    401: 403,  # who may not is told so before anybody looks whether there is such a thing
    406: 422,
    408: 504,
    421: 503,  # 421 means another thing in HTTP: it is about this connection
    481: 409,
    482: 409,
}
#: Seconds after which to retry a request that may succeed later.
_RETRY_AFTER_S: Final = 1


class BadRequest(Exception):  # noqa: N818 - it is an answer
    """A request that is answered with a problem.

    :param status: of the answer.
    :param detail: a sentence for the client.
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail


@final
class HttpRequest:
    """One request, with its whole body.

    Attributes: ``method``; ``path``, the decoded segments; ``headers`` in order, with names as
    received; ``body``; ``values``, the parameters in the path, by the names in the route's
    template; ``fault``, what is wrong with the query, if this is an error only for handlers that
    use it.
    """

    __slots__ = ("_query", "body", "fault", "headers", "method", "path", "values")

    def __init__(
        self, method: str, path: tuple[str, ...], query: dict[str, str], headers: Headers
    ) -> None:
        self.method = method
        self.path = path
        self._query = query
        self.headers = headers
        self.body = b""
        self.values: Mapping[str, str | int] = {}
        self.fault = ""

    @property
    def query(self) -> dict[str, str]:
        """The decoded parameters; of equal keys, only one is kept.

        :raises BadRequest: when the query is invalid.
        """
        if self.fault:
            raise BadRequest(400, self.fault)
        return self._query

    @query.setter
    def query(self, query: dict[str, str]) -> None:
        self._query = query

    def header(self, name: bytes) -> bytes | None:
        """The value of the first field with this lower-case name; None if there is none."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None

    def text(self, name: str) -> str:
        """A text parameter of the path."""
        value = self.values[name]
        assert isinstance(value, str), "the template says so"
        return value

    def number(self, name: str) -> int:
        """A number parameter of the path."""
        value = self.values[name]
        assert isinstance(value, int), "the template says so"
        return value

    def accepts(self, media_type: str) -> bool:
        """Whether the client accepts this media type; without a field Accept it accepts all."""
        accept = self.header(b"accept")
        if accept is None or not accept.strip():
            return True
        main = media_type.partition("/")[0]
        wanted = (media_type, f"{main}/*", "*/*")
        for part in accept.decode("latin-1").lower().split(","):
            kind, *parameters = [piece.strip() for piece in part.split(";")]
            if kind in wanted and not any(_is_zero(each) for each in parameters):
                return True
        return False

    def takes_gzip(self) -> bool:
        """Whether the client accepts answers that are compressed by gzip."""
        offered = (self.header(b"accept-encoding") or b"").decode("latin-1").lower()
        for part in offered.split(","):
            name, *parameters = [piece.strip() for piece in part.split(";")]
            if name == "gzip":
                return not any(_is_zero(each) for each in parameters)
        return False

    def seconds(self, key: str, default: float, most: float) -> float:
        """A number of seconds from the query.

        :raises BadRequest: when it is no such number.
        """
        text = self.query.get(key)
        if text is None:
            return min(default, most)
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0.0 <= value <= most:
            raise BadRequest(400, f"{key} must be a number of seconds from 0 to {most:g}")
        return value

    def count(self, key: str, default: int, least: int, most: int) -> int:
        """A whole number from the query.

        :raises BadRequest: when it is no such number.
        """
        text = self.query.get(key)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise BadRequest(400, f"{key} must be a whole number")
        if not least <= int(text) <= most:
            raise BadRequest(400, f"{key} must be a whole number from {least} to {most}")
        return int(text)

    def word(self, key: str, words: tuple[str, ...]) -> str:
        """A parameter of the query that is one of *words*, the first one by default.

        :raises BadRequest: when it is not one of them.
        """
        value = self.query.get(key, words[0])
        if value not in words:
            raise BadRequest(400, f"{key} must be one of {', '.join(words)}")
        return value

    def check_query(self, *keys: str) -> None:
        """Refuse unknown parameters, so that a misspelt one is not silently ignored.

        :raises BadRequest: when a parameter is not one of *keys*.
        """
        for key in self.query:
            if key not in keys:
                raise BadRequest(400, f"there is no parameter {key[:64]!r}")


def _is_zero(parameter: str) -> bool:
    key, _, value = parameter.partition("=")
    return key.strip() == "q" and value.strip().rstrip("0").rstrip(".") in ("", "0")


@final
class HttpResponse:
    """One answer; its body is complete, or streamed when ``streams`` is set."""

    __slots__ = ("body", "headers", "status", "streams")

    def __init__(
        self, status: int, body: bytes = b"", content_type: bytes = b"", *more: tuple[bytes, bytes]
    ) -> None:
        self.status = status
        self.body = body
        self.streams = False
        self.headers: Headers = [*more]
        if content_type:
            self.headers.insert(0, (b"Content-Type", content_type))

    @property
    def has_length(self) -> bool:
        """Whether the head has the length of the body."""
        return not self.streams and self.status not in (204, 304)

    @staticmethod
    def json(status: int, value: object) -> HttpResponse:
        """An answer whose body is a JSON document."""
        return HttpResponse(status, as_json(value), JSON)

    @staticmethod
    def stream(content_type: bytes) -> HttpResponse:
        """An answer whose body follows in pieces."""
        response = HttpResponse(200, b"", content_type)
        response.streams = True
        return response


def as_json(value: object) -> bytes:
    """A value as JSON, in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def problem(status: int, detail: str, *more: tuple[bytes, bytes], code: int = 0) -> HttpResponse:
    """A problem document (RFC 9457); *code* is the broker's result code, 0 for none."""
    value: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if code:
        value["code"] = code
    return HttpResponse(status, as_json(value), _PROBLEM, *more)


def of_result(code: int, detail: str) -> HttpResponse:
    """The answer for a result code of the broker."""
    status = _STATUSES.get(code, code)
    if status not in HTTPStatus._value2member_map_ or status < 400:
        status = 500
    if status == 403:
        detail = "you have no right to do this"
    more = [(b"Retry-After", b"%d" % _RETRY_AFTER_S)] if status == 503 else []
    return problem(status, detail, *more, code=code)


def _decoded(raw: bytes, what: str, *, loose: bool = False) -> str:
    """Percent-decode once.

    :param loose: replace bytes that are not UTF-8.
    :raises BadRequest: for an invalid escape, or bytes that are not UTF-8.
    """
    at = raw.find(b"%")
    while at >= 0:
        digits = raw[at + 1 : at + 3]
        if len(digits) != 2 or any(digit not in _HEXADECIMAL for digit in digits):
            raise BadRequest(400, f"the {what} has a % without two hexadecimal digits")
        at = raw.find(b"%", at + 3)
    try:
        return unquote_to_bytes(raw).decode("utf-8", "replace" if loose else "strict")
    except UnicodeDecodeError:
        raise BadRequest(400, f"the {what} is not UTF-8") from None


def split_path(target: bytes, *, takes_last_slash: bool = False) -> tuple[tuple[str, ...], bytes]:
    """The decoded segments of a request target's path, and its query, not decoded.

    Segments are split before they are decoded, so an escaped slash belongs to a name.  Dot
    segments, empty segments and unescaped semicolons are refused, so that no two programs read a
    path differently.

    :param takes_last_slash: skip one slash at the end.
    :raises BadRequest: for a target in another form.
    """
    if b"#" in target:
        raise BadRequest(400, "a request target has no fragment")
    path, _, query = target.partition(b"?")
    if path.startswith((b"http://", b"https://")):
        path = b"/" + path.partition(b"//")[2].partition(b"/")[2]
    if not path.startswith(b"/"):
        raise BadRequest(400, "the request target must begin with a slash")
    if takes_last_slash and len(path) > 1 and not path.endswith(b"//"):
        path = path.removesuffix(b"/")
    if path == b"/":
        return (), query
    segments: list[str] = []
    for raw in path[1:].split(b"/"):
        if b";" in raw or b"\\" in raw:
            raise BadRequest(400, "a semicolon or backslash in a path must be escaped")
        segment = _decoded(raw, "path")
        if segment in ("", ".", ".."):
            raise BadRequest(400, "the path has an empty segment or a dot segment")
        segments.append(segment)
    return tuple(segments), query


def parse_query(query: bytes, *, like_go: bool = False) -> dict[str, str]:
    """The parameters of a query: ``+`` is a blank, and the last of equal keys counts.

    :param like_go: read it as Go's library does: the first of equal keys counts, invalid UTF-8 is
        replaced, and a semicolon is refused.
    :raises BadRequest: when there are too many or they cannot be decoded.
    """
    found: dict[str, str] = {}
    if not query:
        return found
    parts = query.split(b"&")
    if len(parts) > _MAX_QUERY_FIELDS:
        raise BadRequest(400, f"a query has at most {_MAX_QUERY_FIELDS} parameters")
    for part in parts:
        if part:
            if like_go and b";" in part:
                raise BadRequest(400, "a semicolon in a query must be escaped")
            key, _, value = part.replace(b"+", b" ").partition(b"=")
            name = _decoded(key, "query", loose=like_go)
            text = _decoded(value, "query", loose=like_go)
            if not (like_go and name in found):
                found[name] = text
    return found


def has_bare_newline(data: bytes) -> bool:
    """Whether a line of the head at the beginning of *data* ends with LF alone: programs disagree
    on whether this ends a line."""
    end = data.find(b"\r\n\r\n")
    head = data if end < 0 else data[:end]
    return head.count(b"\n") != head.count(b"\r\n")
