"""The effects of routers: HTTP calls to other programs, and the results of messages."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.effects.base import Effect

__all__ = ["AnswerRouted", "CallHttp", "RouterFailed"]


@mypyc_attr(acyclic=True)
class CallHttp(Effect):
    """Make an HTTP request and answer with the command HttpAnswered under the same ticket (F120).

    Every call must be answered once, in bounded time.  ``method`` is the HTTP word; ``headers`` are
    pairs of name and value that fit HTTP, ``body`` is empty if the method has none.  The rules
    allow the URL.
    """

    __slots__ = ("ticket", "method", "url", "headers", "body")

    def __init__(
        self, ticket: int, method: str, url: str, headers: list[tuple[str, str]], body: bytes
    ) -> None:
        self.ticket = ticket
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body


@mypyc_attr(acyclic=True)
class AnswerRouted(Effect):
    """What a called program answered to a publisher's message (F123).

    ``interaction`` is the binding's: ASKS_ACKNOWLEDGE for an acknowledgement, positive when
    ``code`` is 0; ASKS_RESPONSE for a response with ``code`` and ``body``.  ``request`` is the
    publisher's.
    """

    __slots__ = ("session", "request", "interaction", "code", "body")

    def __init__(
        self, session: int, request: object, interaction: int, code: int, body: bytes
    ) -> None:
        self.session = session
        self.request = request
        self.interaction = interaction
        self.code = code
        self.body = body


class RouterFailed(Effect):
    """A router of the user's raised *error*, or returned no list of targets: for the log."""

    __slots__ = ("router", "error")

    def __init__(self, router: str, error: Exception) -> None:
        self.router = router
        self.error = error
