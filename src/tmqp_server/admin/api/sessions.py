"""``/session``: log in, log out, and show who the client is."""

from __future__ import annotations

from tmqp_server.admin.api.manner import cookie_of, credentials_in
from tmqp_server.admin.api.table import Api
from tmqp_server.doors.http.exchange import Exchange
from tmqp_server.doors.http.messages import JSON, HttpResponse, as_json

__all__ = ["log_in", "log_out", "tell_session"]


def log_in(api: Api, exchange: Exchange) -> None:
    """Begin a session: the broker has accepted the credentials in the body."""
    credentials = credentials_in(exchange.wanted.body)
    cookie, found = api.logins.open(credentials, exchange.now)
    most_s = int(found.ends_s() - exchange.now)
    answer = {"csrf": found.csrf, "idle_s": most_s, "client": exchange.client.client_id}
    field = api.manner.cookie(exchange.wanted, cookie)
    response = HttpResponse(201, as_json(answer), JSON, field)
    exchange.respond(response)


def log_out(api: Api, exchange: Exchange) -> None:
    """End the session of the request's cookie, if it has one."""
    api.logins.end(cookie_of(exchange.wanted))
    exchange.respond(HttpResponse(204, b"", b"", api.manner.cookie(exchange.wanted, "")))


def tell_session(api: Api, exchange: Exchange) -> None:
    """Who the client is, and the CSRF value that its pages must send."""
    request = exchange.wanted
    cookie = "" if request.header(b"authorization") else cookie_of(request)
    found = api.logins.find(cookie, exchange.now) if cookie else None
    answer = {
        "client": exchange.client.client_id,
        "session": found is not None,
        "csrf": None if found is None else found.csrf,
        "ends_in_s": None if found is None else int(found.ends_s() - exchange.now),
    }
    exchange.respond(HttpResponse.json(200, answer))
