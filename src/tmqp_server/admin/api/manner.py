"""How the API answers, and how it identifies clients: tokens, cookies, and allowed hosts."""

from __future__ import annotations

import hashlib
import json
import re
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, final

from tmqp_server.admin.api.logins import WebLogIns, is_csrf
from tmqp_server.doors.http.credentials import credentials_of
from tmqp_server.doors.http.manner import Manner, is_same_origin
from tmqp_server.doors.http.messages import (
    BadRequest,
    Headers,
    HttpRequest,
    HttpResponse,
    as_json,
)
from tmqp_server.doors.port import IdSource
from tmqp_server.engine.commands import Credentials

__all__ = ["CSRF", "SESSION", "ApiManner", "cookie_of", "credentials_in", "read_object"]

#: The header that proves that a page of this server has sent a request.
CSRF: Final = b"x-tmqp-csrf"
#: Where a client logs in and out.
SESSION: Final = ("api", "v1", "session")
#: Paths that are served for any host name, for probes and scrapers.
_ANY_HOST: Final = (("healthz",), ("readyz",), ("metrics",))
_SOCKET: Final = ("api", "v1", "ws")
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_PROBLEM: Final = b"application/problem+json"
#: The problem types that have their own name, by the broker's code.
_TYPES: Final = {481: "duplicate", 482: "limit-reached"}
_COOKIE: Final = re.compile(r"[0-9a-f]{64}")
_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
_ALWAYS: Final = [
    (b"Content-Security-Policy", _POLICY),
    (b"Referrer-Policy", b"no-referrer"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
]
#: Headers that pages of other origins may send.
_ASKED_FIELDS: Final = (
    b"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID"
)
_STRICT_TRANSPORT: Final = (b"Strict-Transport-Security", b"max-age=31536000")


def read_object(body: bytes) -> dict[str, object]:
    """The JSON object in a body; an empty body counts as an empty object.

    :raises BadRequest: when the body is anything else.
    """
    if not body:
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest(400, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise BadRequest(400, "the body must be a JSON object")
    return found


def _cookie_name(request: HttpRequest) -> str:
    """The name of a session's cookie.  It contains the port, because a browser sends the cookies of
    a host to all its ports, where other servers may listen.
    """
    port = re.search(rb":([0-9]{1,5})$", request.header(b"host") or b"")
    return f"tmqp-{port[1].decode()}" if port else "tmqp"


def cookie_of(request: HttpRequest) -> str:
    """The cookie of a session; empty if there is none.  Its name may have the prefix ``__Host-``,
    with which the server sets it over TLS.
    """
    wanted = _cookie_name(request)
    for key, value in request.headers:
        if key.lower() != b"cookie":
            continue
        for part in value.decode("latin-1").split(";"):
            name, _, text = part.strip().partition("=")
            if name in (f"__Host-{wanted}", wanted) and _COOKIE.fullmatch(text):
                return text
    return ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


@final
class ApiManner(Manner):
    """The manner of the admin door.

    :param hosts: the allowed host names, in addition to ``localhost`` and addresses.
    :param origins: other origins whose pages may send requests, without cookies.
    :param encrypted: whether its connections are encrypted.
    """

    challenge = b'Bearer realm="tmqp"'
    takes_last_slash = True
    changes_clients = True

    def __init__(
        self,
        logins: WebLogIns,
        new_id: IdSource,
        hosts: tuple[str, ...] = (),
        origins: tuple[str, ...] = (),
        *,
        encrypted: bool = False,
    ) -> None:
        self._logins = logins
        self._new_id = new_id
        self._hosts = {"localhost", *[host.lower() for host in hosts]}
        self._origins = frozenset([each.encode() for each in origins])
        self._encrypted = encrypted

    # -- who asks -------------------------------------------------------------------------------

    def check(self, request: HttpRequest) -> None:
        """Refuse requests for other host names, which protects against DNS rebinding."""
        if request.path in _ANY_HOST:
            return
        host = (request.header(b"host") or b"").decode("latin-1").lower()
        name = re.sub(r":[0-9]*$", "", host)
        if name and name not in self._hosts and not _is_address(name):
            raise BadRequest(403, f"this server has no host {name[:64]!r}: see [admin] hosts")
        if request.path == _SOCKET:
            self._check_origin(request)  # browsers let any page open one

    def identify(self, request: HttpRequest, now: float) -> tuple[bytes, Credentials | None]:
        """Identify the client by its token or its cookie, or, if it logs in, by the body."""
        if request.path == SESSION and request.method == "POST":
            self._check_origin(request)
            credentials = credentials_in(request.body)
            return b"login " + hashlib.sha256(request.body).digest(), credentials
        given = request.header(b"authorization") or b""
        cookie = "" if given or self._other_origin(request) else cookie_of(request)
        if not cookie:
            return given, credentials_of(given)
        found = self._logins.find(cookie, now)
        if found is None:
            raise BadRequest(401, "the session is over: log in again")
        if request.method not in _SAFE:
            self._check_page(request, cookie)
        return b"cookie " + found.digest, found.credentials(cookie)

    def _check_page(self, request: HttpRequest, cookie: str) -> None:
        """Refuse a request that may come from a page of another server."""
        if not is_csrf(cookie, request.header(CSRF) or b""):
            raise BadRequest(403, "X-Tmqp-Csrf must be the value that GET /api/v1/session returns")
        self._check_origin(request)

    def _other_origin(self, request: HttpRequest) -> bytes:
        """The origin of the page that sent the request, if the options allow it; else empty."""
        origin = request.header(b"origin") or b""
        return origin if origin in self._origins else b""

    def _check_origin(self, request: HttpRequest) -> None:
        if not is_same_origin(request):
            raise BadRequest(403, "a page of another origin has sent this")

    # -- answers --------------------------------------------------------------------------------

    def fields(self, response: HttpResponse, date: bytes) -> Headers:
        """Add the security headers for browsers."""
        found = [*super().fields(response, date), *_ALWAYS]
        if self._encrypted:
            found.append(_STRICT_TRANSPORT)
        return found

    def completed(self, response: HttpResponse, request: HttpRequest | None) -> HttpResponse:
        """Add the request's id, and to a problem its type."""
        name = self._new_id()
        if (b"Content-Type", _PROBLEM) in response.headers:
            value = json.loads(response.body)
            status = HTTPStatus(response.status)
            word = _TYPES.get(value.get("code", 0)) or status.phrase.lower().replace(" ", "-")
            value["type"] = f"/problems/{word.replace(chr(39), '')}"
            value["instance"] = name
            response.body = as_json(value)
        response.headers.append((b"X-Request-Id", name.encode()))
        if request is not None and self._origins:
            self._tell_origin(response, request)
        return response

    def _tell_origin(self, response: HttpResponse, request: HttpRequest) -> None:
        """Let a page of another origin read the answer, if it may; ``Vary`` makes caches keep the
        answers apart.
        """
        response.headers.append((b"Vary", b"Origin"))
        origin = self._other_origin(request)
        if not origin:
            return
        response.headers += [
            (b"Access-Control-Allow-Origin", origin),
            (b"Access-Control-Expose-Headers", b"X-Request-Id, Retry-After, Allow"),
        ]
        if request.method == "OPTIONS":
            allowed = dict(response.headers).get(b"Allow", b"")
            response.headers += [
                (b"Access-Control-Allow-Methods", allowed),
                (b"Access-Control-Allow-Headers", _ASKED_FIELDS),
                (b"Access-Control-Max-Age", b"600"),
            ]

    def cookie(self, request: HttpRequest, value: str) -> tuple[bytes, bytes]:
        """The header that sets the cookie of a session; an empty value removes the cookie."""
        prefix, more = ("__Host-", "; Secure") if self._encrypted else ("", "")
        ends = "" if value else "; Max-Age=0"
        name = prefix + _cookie_name(request)
        text = f"{name}={value}; Path=/; HttpOnly; SameSite=Strict{ends}{more}"
        return b"Set-Cookie", text.encode()


def credentials_in(body: bytes) -> Credentials:
    """The credentials in the body of a log-in: ``token``, or ``user`` and ``password``.

    :raises BadRequest: for any other body.
    """
    given = read_object(body)
    texts = {key: value for key, value in given.items() if isinstance(value, str) and value}
    if given.keys() == texts.keys() == {"token"}:
        return Credentials("token", texts["token"])
    if given.keys() == texts.keys() == {"user", "password"}:
        return Credentials("password", texts["password"], texts["user"])
    raise BadRequest(400, "the body must have a token, or a user and a password")
